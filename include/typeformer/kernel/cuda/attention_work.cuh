/// How attention is cut into blocks: lists of tiles over all sequences of a batch, and what each kernel is told.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "typeformer/kernel/contract.hpp"
#include "typeformer/kernel/cuda/attention_tile.cuh"
#include "typeformer/kernel/cuda/device.cuh"
#include "typeformer/kernel/cuda/rows.cuh"
#include "typeformer/kernel/cuda/status.cuh"

namespace typeformer::inline TYPEFORMER_ABI::cuda::detail {

/// A tile's place: its first row within a segment.
struct TilePlace {
  int segment = 0;
  int first = 0;
};

/// A head's rows of q, o and their gradients, dense.
template <class T>
__device__ __forceinline__ HeadRows<T> query_rows(const T* data, const AttendArgs<T>& a, const Segment& s, int head) {
  return {data + std::int64_t{head} * a.head_dim, std::int64_t{a.heads} * a.head_dim, s.query_row, s.queries, 0};
}
/// A head's rows of k or v.
template <class T>
__device__ __forceinline__ HeadRows<T> key_rows(const T* data, const AttendArgs<T>& a, const Segment& s, int kv_head) {
  return {data + std::int64_t{kv_head} * a.head_dim, a.kv_stride, s.key_row, s.keys, s.ring};
}

/// The keys that a tile of queries sees, within those that exist.
template <class Mask>
__device__ __forceinline__ KeySpan span_of(const Mask& mask, const Segment& s, int first_query, int queries) {
  const int last_query = min(first_query + queries, s.queries) - 1;
  KeySpan span = key_span(mask, s.first_position + first_query, s.first_position + last_query, s.keys, s.mask);
  span.begin = max(span.begin, 0);
  span.end = min(span.end, s.keys);
  span.full_end = min(span.full_end, s.keys);
  return span;
}

/// A tile of every `rows` rows of every segment, the last ones first: under causal masks they have the most work.
inline std::vector<TilePlace> list_tiles(std::span<const Segment> segments, int rows, bool of_keys) {
  std::vector<TilePlace> tiles;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const int count = of_keys ? segments[i].keys : segments[i].queries;
    for (int first = (count - 1) / rows * rows; count > 0 && first >= 0; first -= rows)
      tiles.push_back({static_cast<int>(i), first});
  }
  return tiles;
}

/// Tiles on the device.
struct TileList {
  const TilePlace* tiles = nullptr;
  std::int64_t count = 0;
};
/// Cuts the segments' queries or keys into tiles of `rows` rows.
template <class T>
TileList place_tiles(Device& on, std::string_view operation, const AttendArgs<T>& a, int rows, bool of_keys) {
  const std::span<const Segment> segments(a.host_segments, static_cast<std::size_t>(a.segment_count));
  const std::vector<TilePlace> tiles = list_tiles(segments, rows, of_keys);
  if (tiles.empty()) return {};
  const std::byte* list = on.list(std::as_bytes(std::span(tiles)), operation);
  return {reinterpret_cast<const TilePlace*>(list), static_cast<std::int64_t>(tiles.size())};
}

/// Throws Error unless the arguments describe heads, segments and arrays that fit together. Fills in the stride.
template <class T>
void check_attend(std::string_view operation, AttendArgs<T>& a) {
  require(a.heads > 0 && a.kv_heads > 0 && a.heads % a.kv_heads == 0, operation, "heads, kv_heads",
          "heads to be a multiple of kv_heads", std::to_string(a.heads) + " and " + std::to_string(a.kv_heads));
  require(a.head_dim > 0 && attention_depth(a.head_dim) > 0, operation, "head_dim", "1 to 256",
          std::to_string(a.head_dim));
  require(a.segment_count >= 0, operation, "segment_count", "0 or more", std::to_string(a.segment_count));
  require(a.segment_count == 0 || (a.segments && a.host_segments), operation, "segments, host_segments", "arrays",
          "null");
  const std::int64_t width = std::int64_t{a.kv_heads} * a.head_dim;
  check_width(operation, "heads, head_dim", std::int64_t{a.heads} * a.head_dim);
  if (a.kv_stride == 0) a.kv_stride = width;
  require(a.kv_stride >= width, operation, "kv_stride", "0 or at least " + std::to_string(width),
          std::to_string(a.kv_stride));
  bool queries = false, keys = false;
  for (int i = 0; i < a.segment_count; ++i) {
    const Segment& s = a.host_segments[i];
    const auto within = [&](const char* field, std::int64_t value, std::int64_t most) {
      if (value < 0 || value > most)
        throw Error(operation, "segment " + std::to_string(i) + ", " + field, "0 to " + std::to_string(most),
                    std::to_string(value));
    };
    within("query_row", s.query_row, std::numeric_limits<std::int64_t>::max());
    within("key_row", s.key_row, std::numeric_limits<std::int64_t>::max());
    within("ring", s.ring, std::numeric_limits<int>::max());
    within("keys", s.keys, largest_length);
    within("queries", s.queries, largest_length);
    within("first_position", s.first_position, largest_length - s.queries);
    queries = queries || s.queries > 0;
    keys = keys || (s.keys > 0 && s.queries > 0);
  }
  require(!queries || (a.q && a.o), operation, "q, o", "arrays", "null");
  require(!keys || (a.k && a.v), operation, "k, v", "arrays", "null");
}

/// Calls body with the padded head_dim as a type.
template <class Body>
void with_depth(int head_dim, Body&& body) {
  switch (attention_depth(head_dim)) {
    case 32:
      return body(std::integral_constant<int, 32>{});
    case 64:
      return body(std::integral_constant<int, 64>{});
    case 128:
      return body(std::integral_constant<int, 128>{});
    default:
      return body(std::integral_constant<int, 256>{});
  }
}

/// Whether rows of every head can be accessed 16 bytes at a time.
template <class T, class... Pointers>
bool rows_aligned(const AttendArgs<T>& a, const Pointers*... pointers) {
  constexpr int elements = vector_elements<T>;
  return a.head_dim % elements == 0 && a.kv_stride % elements == 0 && aligned_to_vectors(pointers...);
}

}  // namespace typeformer::inline TYPEFORMER_ABI::cuda::detail
