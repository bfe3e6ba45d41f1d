/// The library's macros: where a function may run, and which inline namespace its symbols carry.
#pragma once

#if defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__
#error \
    "typeformer must be compiled without -ffast-math: masks and empty rows are infinities, and NaN must stay \
visible. Remove -ffast-math or add -fno-finite-math-only."
#endif

/// Marks a function that runs on the host and in CUDA kernels alike.
#if defined(__CUDACC__)
#define TYPEFORMER_HD __host__ __device__
#else
#define TYPEFORMER_HD
#endif

/// Stands before the bodies of what io/ and text/ offer and what does not depend on a model: inline, unless the program
/// compiles them once (io_impl.hpp).
#if defined(TYPEFORMER_SEPARATE_COMPILATION)
#define TYPEFORMER_INLINE
#else
#define TYPEFORMER_INLINE inline
#endif

// Every symbol's name carries the major version, the CPU instruction set it was compiled for, whether CUDA sources run
// on the host, and whether the standard library's containers have their debugging form: units built with different
// flags then link into one program without their inline functions being merged.
#if defined(__AVX512BF16__)
#define TYPEFORMER_ISA avx512bf16
#elif defined(__AVX512VL__) && defined(__AVX512BW__) && defined(__AVX512DQ__)
#define TYPEFORMER_ISA avx512
#elif defined(__AVX512F__)
#define TYPEFORMER_ISA avx512f
#elif defined(__AVX2__) && defined(__FMA__)
#define TYPEFORMER_ISA avx2fma
#elif defined(__AVX2__)
#define TYPEFORMER_ISA avx2
#elif defined(__AVX__)
#define TYPEFORMER_ISA avx
#elif defined(__SSE4_2__)
#define TYPEFORMER_ISA sse42
#elif defined(__SSE4_1__)
#define TYPEFORMER_ISA sse41
#elif defined(__ARM_FEATURE_SVE)
#define TYPEFORMER_ISA sve
#elif defined(__ARM_NEON)
#define TYPEFORMER_ISA neon
#else
#define TYPEFORMER_ISA portable
#endif
#if defined(TYPEFORMER_CUDA_ON_HOST) && defined(_GLIBCXX_DEBUG)
#define TYPEFORMER_MODE simt_debug
#elif defined(TYPEFORMER_CUDA_ON_HOST)
#define TYPEFORMER_MODE simt
#elif defined(_GLIBCXX_DEBUG)
#define TYPEFORMER_MODE native_debug
#else
#define TYPEFORMER_MODE native
#endif
#define TYPEFORMER_JOIN_(version, isa, mode) v##version##_##isa##_##mode
#define TYPEFORMER_JOIN(version, isa, mode) TYPEFORMER_JOIN_(version, isa, mode)

/// The inline namespace of this compilation, as in `namespace typeformer::inline TYPEFORMER_ABI {`.
#define TYPEFORMER_ABI TYPEFORMER_JOIN(0, TYPEFORMER_ISA, TYPEFORMER_MODE)
