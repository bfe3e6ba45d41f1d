/// Statuses of the CUDA runtime as Errors.
#pragma once
#include <string>
#include <string_view>
#include <type_traits>

#include "typeformer/core/error.hpp"
#include "typeformer/core/scalar.hpp"
#include "typeformer/simt/simt.hpp"

namespace typeformer::inline TYPEFORMER_ABI::cuda {

/// What activations, and the weights that they are multiplied with, can be on this device.
template <class T>
concept Number = std::is_same_v<T, float> || std::is_same_v<T, bf16>;

namespace detail {

/// Throws an Error of `operation` when the CUDA call `what` has failed.
inline void check(cudaError_t status, std::string_view operation, std::string_view what) {
  if (status == cudaSuccess) return;
  (void)cudaGetLastError();  // else a later, unrelated launch would report this failure again
  throw Error(operation, what, "success", std::string(cudaGetErrorString(status)));
}

/// Throws an Error of `operation` unless its argument holds what is expected.
inline void require(bool holds, std::string_view operation, std::string_view argument, std::string_view expected,
                    std::string_view got) {
  if (!holds) throw Error(operation, argument, expected, got);
}

}  // namespace detail
}  // namespace typeformer::inline TYPEFORMER_ABI::cuda
