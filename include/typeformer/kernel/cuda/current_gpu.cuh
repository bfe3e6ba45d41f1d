/// Which of several GPUs calls go to.
#pragma once
#include <string_view>

#include "typeformer/kernel/cuda/status.cuh"
#include "typeformer/simt/simt.hpp"

namespace typeformer::inline TYPEFORMER_ABI::cuda::detail {

/// Makes a GPU the calling thread's current one while the object lives; when it is already, that is all it finds out.
/// Throws an Error of the operation when that fails. Freeing and destroying need no current GPU. Going back makes the
/// runtime's context on the thread's former GPU when it had none yet (from CUDA 12 on): choose a thread's GPU by
/// cudaSetDevice before its first use of a Device on another one.
class OnGpu {
 public:
  OnGpu(int gpu, std::string_view operation) {
    check(cudaGetDevice(&before_), operation, "current GPU");
    if (before_ == gpu) return;
    check(cudaSetDevice(gpu), operation, "GPU");
    other_ = true;
  }
  OnGpu(const OnGpu&) = delete;
  OnGpu& operator=(const OnGpu&) = delete;
  ~OnGpu() {
    if (other_) (void)cudaSetDevice(before_);
  }

 private:
  int before_ = 0;
  bool other_ = false;
};

}  // namespace typeformer::inline TYPEFORMER_ABI::cuda::detail
