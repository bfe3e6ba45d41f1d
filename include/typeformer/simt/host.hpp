/// The host side of simt.hpp: CUDA's built-ins as ordinary C++, and the primitives that kernels call in
/// typeformer::simt.
#pragma once
#if !defined(TYPEFORMER_CUDA_ON_HOST)
#error "Define TYPEFORMER_CUDA_ON_HOST in every file of a program that runs CUDA kernels on the host."
#endif
#include "typeformer/simt/async_copy.hpp"
#include "typeformer/simt/atomics.hpp"
#include "typeformer/simt/collectives.hpp"
#include "typeformer/simt/convert.hpp"
#include "typeformer/simt/launch.hpp"
#include "typeformer/simt/math.hpp"
#include "typeformer/simt/matrix.hpp"
#include "typeformer/simt/vector_access.hpp"

/// Declares `T name[size]` in the block's shared memory: uninitialized, aligned to 16 bytes, guarded on the host.
#define TYPEFORMER_SHARED_ARRAY(T, name, size) auto& name = ::typeformer::simt::static_shared<T[size]>([] {})

// Kernels find threadIdx, __syncthreads and the rest without qualification, as nvcc provides them.
using namespace ::typeformer::simt::device;
