/// Kernels that go over an array element by element: which thread works where, and the launch.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "typeformer/kernel/cuda/launch.cuh"
#include "typeformer/kernel/cuda/status.cuh"
#include "typeformer/kernel/cuda/threads.cuh"
#include "typeformer/kernel/cuda/tuning.hpp"

namespace typeformer::inline TYPEFORMER_ABI::cuda::detail {

/// The first element of this thread's access, `from` being that of the launch. Accesses of several elements begin at 0:
/// with a `from` nvcc does not see that they are aligned, and stores them one by one.
template <int elements>
__device__ __forceinline__ std::int64_t flat_index(std::int64_t first, std::int64_t from) {
  const std::int64_t access = (first + blockIdx.x) * flat_threads + thread_index();
  return elements > 1 ? access * elements : from + access;
}

inline void check_count(std::string_view operation, std::int64_t count) {
  require(count >= 0, operation, "count", "0 or more", std::to_string(count));
}

/// Launches `vectors` for the accesses of 16 bytes that fit into the array, when they are possible, and `scalars` for
/// the elements that are left. A kernel's second parameter is the first element of its launch; it does nothing where an
/// access would reach beyond args.count.
template <class Args, class... More>
void launch_flat(Device& on, std::string_view operation, void (*vectors)(std::int64_t, std::int64_t, Args, More...),
                 void (*scalars)(std::int64_t, std::int64_t, Args, More...), int elements, bool aligned,
                 const Args& args, const More&... more) {
  const std::int64_t accesses = aligned ? args.count / elements : 0, left = args.count - accesses * elements;
  const BlockShape block{dim3(flat_threads)};
  const auto blocks = [](std::int64_t threads) { return (threads + flat_threads - 1) / flat_threads; };
  launch(on, operation, vectors, blocks(accesses), block, std::int64_t{0}, args, more...);
  launch(on, operation, scalars, blocks(left), block, accesses * elements, args, more...);
}

}  // namespace typeformer::inline TYPEFORMER_ABI::cuda::detail
