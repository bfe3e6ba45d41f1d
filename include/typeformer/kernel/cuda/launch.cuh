/// The only place that launches kernels.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "typeformer/kernel/cuda/current_gpu.cuh"
#include "typeformer/kernel/cuda/device.cuh"
#include "typeformer/kernel/cuda/status.cuh"
#include "typeformer/simt/simt.hpp"

namespace typeformer::inline TYPEFORMER_ABI::cuda::detail {

/// Threads of a block and its dynamic shared memory.
struct BlockShape {
  dim3 threads;
  std::size_t shared_bytes = 0;
};

/// One block for each of `items` pieces of work. A kernel's first parameter is the first item of its launch: block b
/// works on item first + b, so that more items than a grid has blocks need nothing else.
template <class... Parameters, class... Arguments>
void launch(Device& on, std::string_view operation, void (*kernel)(std::int64_t, Parameters...), std::int64_t items,
            const BlockShape& block, const Arguments&... arguments) {
  constexpr std::size_t granted_to_all = std::size_t{48} << 10;
  const OnGpu current(on.gpu(), operation);
  if (items > 0 && block.shared_bytes > granted_to_all)
    check(simt::allow_shared(kernel, block.shared_bytes), operation,
          std::to_string(block.shared_bytes) + " bytes of shared memory for a block");
  for (std::int64_t first = 0; first < items; first += on.grid_limit()) {
    const auto blocks = static_cast<unsigned>(std::min(items - first, on.grid_limit()));
    const simt::LaunchShape shape(dim3(blocks), block.threads, block.shared_bytes, on.stream());
    check(simt::launch(kernel, shape, first, arguments...), operation, "launch");
  }
}

}  // namespace typeformer::inline TYPEFORMER_ABI::cuda::detail
