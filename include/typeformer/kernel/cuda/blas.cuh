/// Matrix products through cuBLASLt: one handle, one workspace, and the algorithm chosen for each shape.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>

#include "typeformer/core/error.hpp"
#include "typeformer/core/scalar.hpp"
#include "typeformer/kernel/cuda/status.cuh"
#include "typeformer/kernel/cuda/workspace.cuh"
#include "typeformer/simt/cublaslt.hpp"
#include "typeformer/simt/simt.hpp"

namespace typeformer::inline TYPEFORMER_ABI::cuda::detail {

/// Throws an Error of `operation` when the cuBLASLt call `what` has failed.
inline void check_blas(cublasStatus_t status, std::string_view operation, std::string_view what) {
  if (status != CUBLAS_STATUS_SUCCESS) throw Error(operation, what, "success", cublasLtGetStatusString(status));
}

template <Number T>
inline constexpr cudaDataType_t data_type = std::is_same_v<T, float> ? CUDA_R_32F : CUDA_R_16BF;

/// A row-major matrix in GPU memory, rows `stride` elements apart.
struct BlasMatrix {
  const void* data = nullptr;
  cudaDataType_t type = CUDA_R_32F;
  std::int64_t rows = 0, columns = 0, stride = 0;
};
template <class T>
BlasMatrix blas_matrix(const T* data, std::int64_t rows, std::int64_t columns, std::int64_t stride = 0) {
  return {data, data_type<T>, rows, columns, stride ? stride : columns};
}

/// d = op(a) op(b) (+ c) (+ bias), sums in float. a or b is read transposed when asked for.
struct BlasProduct {
  BlasMatrix a, b, d;
  bool transpose_a = false, transpose_b = false;
  /// Of d's type, rows c_stride apart; may be d itself with d's stride; null: nothing is added.
  const void* c = nullptr;
  std::int64_t c_stride = 0;   ///< 0: d's
  const void* bias = nullptr;  ///< one number of d's type for each of its columns, or null
};

/// An object of cuBLASLt that is destroyed with the holder.
template <class Object, cublasStatus_t (*destroy)(Object)>
struct BlasObject {
  Object object = nullptr;
  BlasObject() = default;
  BlasObject(BlasObject&& other) noexcept : object(other.object) { other.object = nullptr; }
  BlasObject& operator=(BlasObject&&) = delete;
  ~BlasObject() {
    if (object) (void)destroy(object);
  }
};

/// cuBLASLt on behalf of one device.
class Blas {
 public:
  explicit Blas(Memory& source) : workspace_(source) {}
  Blas(const Blas&) = delete;
  Blas& operator=(const Blas&) = delete;

  /// Queues the product on the stream. Calls before_growth() before it allocates anything on the GPU.
  template <class BeforeGrowth>
  void multiply(cudaStream_t stream, std::string_view operation, const BlasProduct& product,
                const BeforeGrowth& before_growth) {
    if (!handle_.object) before_growth();  // cuBLASLt may allocate for it
    const Plan& plan = plan_of(operation, product);
    if (plan.workspace_bytes > workspace_.bytes()) before_growth();
    if (product.bias)
      check_blas(cublasLtMatmulDescSetAttribute(plan.description.object, CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                                                &product.bias, sizeof product.bias),
                 operation, "bias pointer");
    const float one = 1.f, beta = product.c ? 1.f : 0.f;
    const void* const c = product.c ? product.c : product.d.data;
    // cuBLASLt is column-major, which makes every matrix its transpose: d^T = op(b)^T op(a)^T
    check_blas(cublasLtMatmul(handle_.object, plan.description.object, &one, product.b.data, plan.b.object,
                              product.a.data, plan.a.object, &beta, c, plan.c.object, const_cast<void*>(product.d.data),
                              plan.d.object, &plan.algorithm, workspace_.reserve(plan.workspace_bytes, operation),
                              plan.workspace_bytes, stream),
               operation, "cublasLtMatmul");
  }

  /// Most plans that are kept. The next one makes all be forgotten, so that lengths which never return take no memory
  /// for ever; those that do are planned again. A training step or an answer needs a few dozen.
  static constexpr std::size_t plan_limit = 512;
  /// Plans that are kept: an algorithm for every shape, up to plan_limit.
  std::size_t plan_count() const { return plans_.size(); }
  const void* workspace() const { return workspace_.data(); }

 private:
  static constexpr std::uint64_t workspace_limit = std::uint64_t{32} << 20;  // NVIDIA's advice for Hopper
  using Layout = BlasObject<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;

  struct Plan {
    BlasObject<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy> description;
    Layout a, b, c, d;
    cublasLtMatmulAlgo_t algorithm{};
    std::size_t workspace_bytes = 0;
  };
  using Key = std::array<std::int64_t, 16>;

  /// The largest power of two up to 256 that divides the address.
  static std::uint32_t alignment(const void* address) {
    std::uint32_t bytes = 256;
    while (reinterpret_cast<std::uintptr_t>(address) % bytes) bytes /= 2;
    return bytes;
  }
  static Key key_of(const BlasProduct& p) {
    const auto types = static_cast<std::int64_t>(p.a.type) * 65536 + static_cast<std::int64_t>(p.b.type) * 256 +
                       static_cast<std::int64_t>(p.d.type);
    const std::int64_t flags = (p.transpose_a ? 1 : 0) + (p.transpose_b ? 2 : 0) + (p.c ? 4 : 0) + (p.bias ? 8 : 0) +
                               (p.c == p.d.data ? 16 : 0);
    return {types,
            flags,
            p.a.rows,
            p.a.columns,
            p.a.stride,
            p.b.rows,
            p.b.columns,
            p.b.stride,
            p.d.stride,
            p.c_stride,
            p.d.columns,
            alignment(p.a.data),
            alignment(p.b.data),
            alignment(p.c ? p.c : p.d.data),
            alignment(p.d.data),
            alignment(p.bias)};
  }
  const Plan& plan_of(std::string_view operation, const BlasProduct& product) {
    const Key key = key_of(product);
    const auto found = plans_.find(key);
    if (found != plans_.end()) return found->second;
    if (!handle_.object) check_blas(cublasLtCreate(&handle_.object), operation, "cublasLtCreate");
    if (plans_.size() == plan_limit) plans_.clear();  // queued products need theirs no more
    return plans_.emplace(key, make_plan(operation, product)).first->second;
  }

  static void make_layout(std::string_view operation, Layout& layout, const BlasMatrix& matrix, std::int64_t stride) {
    check_blas(cublasLtMatrixLayoutCreate(&layout.object, matrix.type, static_cast<std::uint64_t>(matrix.columns),
                                          static_cast<std::uint64_t>(matrix.rows), stride),
               operation, "matrix layout");
  }
  template <class Value>
  static void describe(std::string_view operation, const Plan& plan, cublasLtMatmulDescAttributes_t name, Value value) {
    check_blas(cublasLtMatmulDescSetAttribute(plan.description.object, name, &value, sizeof value), operation,
               "product's attribute");
  }
  Plan make_plan(std::string_view operation, const BlasProduct& product) const {
    Plan plan;
    check_blas(cublasLtMatmulDescCreate(&plan.description.object, CUBLAS_COMPUTE_32F, CUDA_R_32F), operation,
               "product's description");
    describe(operation, plan, CUBLASLT_MATMUL_DESC_TRANSA, product.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
    describe(operation, plan, CUBLASLT_MATMUL_DESC_TRANSB, product.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
    if (product.bias) {
      describe(operation, plan, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
      describe(operation, plan, CUBLASLT_MATMUL_DESC_BIAS_POINTER, product.bias);
    }
    make_layout(operation, plan.a, product.a, product.a.stride);
    make_layout(operation, plan.b, product.b, product.b.stride);
    make_layout(operation, plan.c, product.d, product.c_stride ? product.c_stride : product.d.stride);
    make_layout(operation, plan.d, product.d, product.d.stride);
    choose_algorithm(operation, product, plan);
    return plan;
  }
  void choose_algorithm(std::string_view operation, const BlasProduct& product, Plan& plan) const {
    BlasObject<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy> preference;
    check_blas(cublasLtMatmulPreferenceCreate(&preference.object), operation, "preference");
    const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t name, auto value) {
      check_blas(cublasLtMatmulPreferenceSetAttribute(preference.object, name, &value, sizeof value), operation,
                 "preference's attribute");
    };
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace_limit);
    // parts of a sum are added in float, never in the output's bf16
    prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, std::uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment(product.b.data));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment(product.a.data));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment(product.c ? product.c : product.d.data));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment(product.d.data));
    cublasLtMatmulHeuristicResult_t result{};
    int found = 0;
    check_blas(cublasLtMatmulAlgoGetHeuristic(handle_.object, plan.description.object, plan.b.object, plan.a.object,
                                              plan.c.object, plan.d.object, preference.object, 1, &result, &found),
               operation, "choice of an algorithm");
    if (found == 0) throw Error(operation, "cuBLASLt", "an algorithm for the product", "none");
    plan.algorithm = result.algo;
    plan.workspace_bytes = result.workspaceSize;
  }

  BlasObject<cublasLtHandle_t, cublasLtDestroy> handle_;
  Workspace workspace_;
  std::map<Key, Plan> plans_;
};

}  // namespace typeformer::inline TYPEFORMER_ABI::cuda::detail
