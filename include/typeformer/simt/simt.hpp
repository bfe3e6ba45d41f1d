/// The only header that CUDA kernels include: the device's own built-ins under nvcc, the host layer elsewhere.
///
/// Rules for kernels: no asm and no __CUDA_ARCH__ (a new instruction is one wrapper in cuda.hpp and one in the host
/// layer); static shared arrays through TYPEFORMER_SHARED_ARRAY, dynamic ones through dynamic_shared; 8- and 16-byte
/// accesses through load_vector / store_vector; collectives and barriers on separate source lines; no return of
/// a part of the block before a later barrier of all; no waiting for another thread's or block's store; 32 instead of
/// warpSize.
#pragma once
#if defined(__CUDACC__)
#include "typeformer/simt/cuda.hpp"
#else
#include "typeformer/simt/host.hpp"
#endif
