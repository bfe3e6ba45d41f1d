/// How a file stores numbers, and how to read them as floats: plain types and the block formats of ggml.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "typeformer/core/annotate.hpp"
#include "typeformer/core/scalar.hpp"

namespace typeformer::inline TYPEFORMER_ABI::io {

static_assert(std::endian::native == std::endian::little,
              "typeformer/io needs a little-endian machine: safetensors and GGUF store little-endian numbers.");

/// One way to store numbers: blocks of `elements` numbers in `bytes` bytes, one block after the other.
/// A plain type is a block of one.
struct ElementFormat {
  /// The container's name for it, e.g. F32, BF16, Q4_1.
  std::string_view name;
  std::uint32_t elements;
  std::uint32_t bytes;
  /// out[0 .. count * elements) = the numbers of `count` blocks at `blocks`, which need no alignment.
  /// Null: known by size only, cannot be read as float.
  void (*decode)(const std::byte* blocks, std::size_t count, float* out) = nullptr;
};

/// The value of type T at `at`, which needs no alignment.
template <class T>
T load_unaligned(const std::byte* at) noexcept {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

namespace detail {

/// A block of one number whose type converts to float.
template <class T>
struct PlainBlock {
  static constexpr std::uint32_t elements = 1, bytes = sizeof(T);
  static void decode(const std::byte* block, float* out) {
    const T value = load_unaligned<T>(block);
    if constexpr (Storage<T>) {
      *out = to_float(value);
    } else {
      *out = static_cast<float>(value);
    }
  }
};

// The quantized blocks follow ggml-common.h and dequantize_row_* of ggml-quants.c (github.com/ggml-org/ggml). A scale
// is a binary16 (11 significant bits) and a quant has at most 8, so their product is exact in float: whether a compiler
// contracts product and sum into one instruction does not change a bit of the result.

/// 32 numbers d * q: scale d (f16), then 32 signed bytes q.
struct Q8_0Block {
  static constexpr std::uint32_t elements = 32, bytes = 34;
  static void decode(const std::byte* block, float* out) {
    const float scale = to_float(load_unaligned<f16>(block));
    for (std::size_t i = 0; i < elements; ++i)
      out[i] = scale * static_cast<float>(static_cast<std::int8_t>(std::to_integer<std::uint8_t>(block[2 + i])));
  }
};

/// Calls put(i, q) for the 32 four-bit quants in 16 bytes: byte i holds quant i in its low half and quant 16 + i above.
template <class Put>
void for_each_nibble(const std::byte* packed, Put put) {
  for (std::size_t i = 0; i < 16; ++i) {
    const auto pair = std::to_integer<std::int32_t>(packed[i]);
    put(i, pair & 15);
    put(i + 16, pair >> 4);
  }
}

/// 32 numbers d * (q - 8): scale d (f16), then 32 quants of four bits.
struct Q4_0Block {
  static constexpr std::uint32_t elements = 32, bytes = 18;
  static void decode(const std::byte* block, float* out) {
    const float scale = to_float(load_unaligned<f16>(block));
    for_each_nibble(block + 2,
                    [&](std::size_t i, std::int32_t quant) { out[i] = scale * static_cast<float>(quant - 8); });
  }
};

/// 32 numbers d * q + m: scale d (f16), minimum m (f16), then 32 quants of four bits.
struct Q4_1Block {
  static constexpr std::uint32_t elements = 32, bytes = 20;
  static void decode(const std::byte* block, float* out) {
    const float scale = to_float(load_unaligned<f16>(block)), minimum = to_float(load_unaligned<f16>(block + 2));
    for_each_nibble(block + 4,
                    [&](std::size_t i, std::int32_t quant) { out[i] = scale * static_cast<float>(quant) + minimum; });
  }
};

template <class Block>
void decode_blocks(const std::byte* blocks, std::size_t count, float* out) {
  for (std::size_t i = 0; i < count; ++i) Block::decode(blocks + i * Block::bytes, out + i * Block::elements);
}

template <class Block>
constexpr ElementFormat readable(std::string_view name) {
  return {name, Block::elements, Block::bytes, &decode_blocks<Block>};
}

struct GgmlFormat {
  std::uint32_t id;
  ElementFormat format;
};

/// enum ggml_type of ggml.h, in the order of its numbers; numbers that are missing here were withdrawn.
inline constexpr GgmlFormat ggml_formats[] = {
    {0, readable<PlainBlock<float>>("F32")},
    {1, readable<PlainBlock<f16>>("F16")},
    {2, readable<Q4_0Block>("Q4_0")},
    {3, readable<Q4_1Block>("Q4_1")},
    {6, {"Q5_0", 32, 22}},
    {7, {"Q5_1", 32, 24}},
    {8, readable<Q8_0Block>("Q8_0")},
    {9, {"Q8_1", 32, 36}},
    {10, {"Q2_K", 256, 84}},
    {11, {"Q3_K", 256, 110}},
    {12, {"Q4_K", 256, 144}},
    {13, {"Q5_K", 256, 176}},
    {14, {"Q6_K", 256, 210}},
    {15, {"Q8_K", 256, 292}},
    {16, {"IQ2_XXS", 256, 66}},
    {17, {"IQ2_XS", 256, 74}},
    {18, {"IQ3_XXS", 256, 98}},
    {19, {"IQ1_S", 256, 50}},
    {20, {"IQ4_NL", 32, 18}},
    {21, {"IQ3_S", 256, 110}},
    {22, {"IQ2_S", 256, 82}},
    {23, {"IQ4_XS", 256, 136}},
    {24, {"I8", 1, 1}},
    {25, {"I16", 1, 2}},
    {26, {"I32", 1, 4}},
    {27, {"I64", 1, 8}},
    {28, readable<PlainBlock<double>>("F64")},
    {29, {"IQ1_M", 256, 56}},
    {30, readable<PlainBlock<bf16>>("BF16")},
    {34, {"TQ1_0", 256, 54}},
    {35, {"TQ2_0", 256, 66}},
    {39, {"MXFP4", 32, 17}},
    {40, {"NVFP4", 64, 36}},
    {41, {"Q1_0", 128, 18}},
};

/// The dtypes of the safetensors format; F4 and F6 pack several numbers into whole bytes.
inline constexpr ElementFormat safetensors_formats[] = {
    readable<PlainBlock<double>>("F64"),
    readable<PlainBlock<float>>("F32"),
    readable<PlainBlock<f16>>("F16"),
    readable<PlainBlock<bf16>>("BF16"),
    {"BOOL", 1, 1},
    {"F4", 2, 1},
    {"F6_E2M3", 4, 3},
    {"F6_E3M2", 4, 3},
    {"U8", 1, 1},
    {"I8", 1, 1},
    {"F8_E5M2", 1, 1},
    {"F8_E4M3", 1, 1},
    {"F8_E8M0", 1, 1},
    {"F8_E4M3FNUZ", 1, 1},
    {"F8_E5M2FNUZ", 1, 1},
    {"I16", 1, 2},
    {"U16", 1, 2},
    {"I32", 1, 4},
    {"U32", 1, 4},
    {"C64", 1, 8},
    {"I64", 1, 8},
    {"U64", 1, 8},
};

}  // namespace detail

/// The format of ggml's tensor type `id`; null when there is none of that number.
constexpr const ElementFormat* ggml_format(std::uint32_t id) noexcept {
  for (const detail::GgmlFormat& entry : detail::ggml_formats)
    if (entry.id == id) return &entry.format;
  return nullptr;
}

/// The format of a safetensors dtype, e.g. "BF16"; null when the format defines none of that name.
constexpr const ElementFormat* safetensors_format(std::string_view dtype) noexcept {
  for (const ElementFormat& format : detail::safetensors_formats)
    if (format.name == dtype) return &format;
  return nullptr;
}

}  // namespace typeformer
