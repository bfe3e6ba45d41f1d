/// The CUDA device: operations of the contract as kernels, matrix products through cuBLASLt.
///
/// Compiled by nvcc for a GPU, or by any C++20 compiler with TYPEFORMER_CUDA_ON_HOST, which runs the same kernels on
/// the host.
#pragma once
#include "typeformer/kernel/buffer.hpp"
#include "typeformer/kernel/contract.hpp"
#include "typeformer/kernel/cuda/attention.cuh"
#include "typeformer/kernel/cuda/device.cuh"
#include "typeformer/kernel/cuda/elementwise.cuh"
#include "typeformer/kernel/cuda/embedding.cuh"
#include "typeformer/kernel/cuda/feedforward.cuh"
#include "typeformer/kernel/cuda/heads.cuh"
#include "typeformer/kernel/cuda/linear.cuh"
#include "typeformer/kernel/cuda/loss.cuh"
#include "typeformer/kernel/cuda/norm.cuh"
#include "typeformer/kernel/cuda/sampling.cuh"
