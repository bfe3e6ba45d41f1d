/// Which of several GPUs calls go to.
#pragma once
#include "typeformer/simt/simt.hpp"

namespace typeformer::inline TYPEFORMER_ABI::cuda::detail {

/// Makes a GPU the calling thread's current one while the object lives; when it is already, that is all it finds out.
/// What fails shows in the calls that follow. Going back makes the runtime's context on the thread's former GPU when it
/// had none yet (from CUDA 12 on): choose a thread's GPU by cudaSetDevice before its first use of a Device on another
/// one.
class OnGpu {
 public:
  explicit OnGpu(int gpu) noexcept : other_(cudaGetDevice(&before_) == cudaSuccess && before_ != gpu) {
    if (other_) (void)cudaSetDevice(gpu);
  }
  OnGpu(const OnGpu&) = delete;
  OnGpu& operator=(const OnGpu&) = delete;
  ~OnGpu() {
    if (other_) (void)cudaSetDevice(before_);
  }

 private:
  int before_ = 0;
  const bool other_;
};

}  // namespace typeformer::inline TYPEFORMER_ABI::cuda::detail
