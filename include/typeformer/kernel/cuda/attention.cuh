/// attend and its backward on CUDA.
#pragma once
#include <cstdint>
#include <string_view>

#include "typeformer/kernel/contract.hpp"
#include "typeformer/kernel/cuda/attention_forward.cuh"
#include "typeformer/kernel/cuda/device.cuh"
#include "typeformer/kernel/cuda/launch.cuh"

namespace typeformer::inline TYPEFORMER_ABI::cuda {
namespace detail {

/// Slots of the device's uploaded lists.
inline constexpr int forward_list = 0, backward_query_list = 1, backward_key_list = 2;

}  // namespace detail

/// o = softmax(score(q k^T)) v over the keys that the mask lets each query see, and the log-sum-exp; see AttendArgs.
/// T float multiplies floats exactly as written, bf16 multiplies on tensor cores; sums are float. head_dim is 1 to 256.
/// Key tiles outside mask.span() are skipped, full ones are not tested. Throws Error on arguments that do not fit
/// together.
template <MaskPolicy Mask, class Score, Storage T>
void attend(Device& on, const Mask& mask, const Score& score, const AttendArgs<T>& args) {
  constexpr std::string_view operation = "attend";
  AttendArgs<T> a = args;
  detail::check_attend(operation, a);
  detail::with_depth(a.head_dim, [&](auto depth) {
    using Tile = typename detail::TileOf<T, depth(), detail::AttentionPass::forward>::type;
    static_assert(Tile::threads == detail::TileOf<T, depth(), detail::AttentionPass::forward>::tuned.threads(),
                  "a tile must have the threads that tuning.hpp gives it: tests read them there.");
    detail::AttendTask<T> task;
    const std::int64_t tiles = detail::place_tiles(on, operation, detail::forward_list, a, Tile::rows, false, task);
    task.vectors = detail::rows_aligned(a, a.q, a.k, a.v, a.o);
    const detail::BlockShape block{dim3(Tile::threads), detail::TileMemory<Tile>::bytes(1)};
    detail::launch(on, operation, detail::attend<Tile, Mask, Score, T>, tiles * a.heads, block, mask, score, task);
  });
}

}  // namespace typeformer::inline TYPEFORMER_ABI::cuda
