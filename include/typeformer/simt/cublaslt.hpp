/// cuBLASLt for code that runs on a GPU or on the host layer: NVIDIA's header under nvcc, elsewhere a stand-in that
/// takes the problems NVIDIA documents for float sums (float, bf16, f16; row and column order; transposes; strided
/// batches; bias, ReLU, tanh-GELU, their auxiliary outputs and gradients, bias gradients) and answers all others with
/// their status. Epilogues with a vector or an auxiliary matrix need a column-major D.
#pragma once
#if defined(__CUDACC__)
#include <cublasLt.h>
#else
#include "typeformer/simt/cublaslt_matmul.hpp"
#include "typeformer/simt/runtime.hpp"

namespace typeformer::inline TYPEFORMER_ABI::simt {

/// What a cublasLtMatmulPreference_t points to.
struct MatmulPreference {
  std::uint32_t search_mode = 0, reduction_mask = ~0u;
  std::uint64_t workspace_bytes = 0;
  std::uint32_t alignment[4] = {256, 256, 256, 256};
};

/// An attribute's storage.
struct Attribute {
  void* data = nullptr;
  std::size_t bytes = 0;
};
template <class T>
Attribute attribute(T& field) {
  return {&field, sizeof field};
}

inline Attribute find_attribute(MatmulDescription& it, cublasLtMatmulDescAttributes_t name) {
  switch (name) {
    case CUBLASLT_MATMUL_DESC_COMPUTE_TYPE:
      return attribute(it.compute);
    case CUBLASLT_MATMUL_DESC_SCALE_TYPE:
      return attribute(it.scale);
    case CUBLASLT_MATMUL_DESC_POINTER_MODE:
      return attribute(it.pointer_mode);
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return attribute(it.transpose_a);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return attribute(it.transpose_b);
    case CUBLASLT_MATMUL_DESC_TRANSC:
      return attribute(it.transpose_c);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return attribute(it.epilogue);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return attribute(it.bias);
    case CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE:
      return attribute(it.bias_batch_stride);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
      return attribute(it.aux);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
      return attribute(it.aux_ld);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE:
      return attribute(it.aux_batch_stride);
    case CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET:
      return attribute(it.sm_count);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE:
      return attribute(it.aux_type);
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
      return attribute(it.bias_type);
    default:
      return {};
  }
}
inline Attribute find_attribute(MatrixLayout& it, cublasLtMatrixLayoutAttribute_t name) {
  switch (name) {
    case CUBLASLT_MATRIX_LAYOUT_TYPE:
      return attribute(it.type);
    case CUBLASLT_MATRIX_LAYOUT_ORDER:
      return attribute(it.order);
    case CUBLASLT_MATRIX_LAYOUT_ROWS:
      return attribute(it.rows);
    case CUBLASLT_MATRIX_LAYOUT_COLS:
      return attribute(it.columns);
    case CUBLASLT_MATRIX_LAYOUT_LD:
      return attribute(it.ld);
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
      return attribute(it.batch);
    case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
      return attribute(it.batch_stride);
    default:
      return {};
  }
}
inline Attribute find_attribute(MatmulPreference& it, cublasLtMatmulPreferenceAttributes_t name) {
  switch (name) {
    case CUBLASLT_MATMUL_PREF_SEARCH_MODE:
      return attribute(it.search_mode);
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
      return attribute(it.workspace_bytes);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
      return attribute(it.reduction_mask);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
      return attribute(it.alignment[0]);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
      return attribute(it.alignment[1]);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
      return attribute(it.alignment[2]);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
      return attribute(it.alignment[3]);
    default:
      return {};
  }
}

template <class Object, class Name>
cublasStatus_t set_attribute(void* object, Name name, const void* value, std::size_t bytes) {
  if (!object || !value) return CUBLAS_STATUS_INVALID_VALUE;
  const Attribute found = find_attribute(*static_cast<Object*>(object), name);
  if (!found.data) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (bytes != found.bytes) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(found.data, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}
template <class Object, class Name>
cublasStatus_t get_attribute(void* object, Name name, void* value, std::size_t bytes, std::size_t* written) {
  if (!object) return CUBLAS_STATUS_INVALID_VALUE;
  const Attribute found = find_attribute(*static_cast<Object*>(object), name);
  if (!found.data) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (bytes == 0 ? !written : (!value || bytes != found.bytes)) return CUBLAS_STATUS_INVALID_VALUE;
  if (bytes) std::memcpy(value, found.data, bytes);
  if (written) *written = found.bytes;
  return CUBLAS_STATUS_SUCCESS;
}

/// What an algorithm is tied to: it serves any sizes, but only the types, orders and epilogue that it was chosen for.
inline std::uint64_t problem_key(const Matmul& call) {
  std::uint64_t key = 0x7966u;
  const auto mix = [&](std::uint64_t value) { key = (key ^ value) * 0x100000001b3ull; };
  for (const MatrixLayout* layout : {&call.a, &call.b, &call.c, &call.d}) {
    mix(layout->type);
    mix(static_cast<std::uint64_t>(layout->order));
  }
  mix(static_cast<std::uint64_t>(call.description.compute));
  mix(static_cast<std::uint64_t>(call.description.transpose_a * 4 + call.description.transpose_b));
  mix(call.description.epilogue);
  return key;
}

inline Matmul describe_matmul(cublasLtMatmulDesc_t description, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d) {
  Matmul call;
  call.description = *reinterpret_cast<MatmulDescription*>(description);
  call.a = *reinterpret_cast<MatrixLayout*>(a);
  call.b = *reinterpret_cast<MatrixLayout*>(b);
  call.c = *reinterpret_cast<MatrixLayout*>(c);
  call.d = *reinterpret_cast<MatrixLayout*>(d);
  return call;
}

/// The memory of a matrix or vector of a call: `items` times `rows` pieces of row_bytes bytes.
struct Extent {
  const char* name;
  const void* data;
  Span::Use use;
  std::size_t row_bytes, rows = 1, pitch = 0, items = 1, item_pitch = 0;

  std::size_t bytes() const { return (items - 1) * item_pitch + (rows - 1) * pitch + row_bytes; }
};
inline Extent extent_of(const char* name, const void* data, const MatrixLayout& layout, Span::Use use) {
  const std::size_t size = type_bytes(layout.type), inner = layout.column_major() ? layout.rows : layout.columns,
                    outer = layout.column_major() ? layout.columns : layout.rows;
  return {name,
          data,
          use,
          inner * size,
          outer,
          static_cast<std::size_t>(layout.ld) * size,
          static_cast<std::size_t>(layout.batch),
          static_cast<std::size_t>(layout.batch_stride) * size};
}
inline std::vector<Extent> extents_of(const Matmul& call) {
  using Use = Span::Use;
  std::vector<Extent> result = {extent_of("A", call.a_data, call.a, Use::read),
                                extent_of("B", call.b_data, call.b, Use::read)};
  if (call.beta != 0.0f) result.push_back(extent_of("C", call.c_data, call.c, Use::read));
  result.push_back(extent_of("D", call.d_data, call.d, Use::write));
  const MatmulDescription& description = call.description;
  const auto items = static_cast<std::size_t>(call.d.batch);
  const std::size_t size = type_bytes(call.d.type);
  if (uses_bias(call)) {
    const std::size_t length = call.has(CUBLASLT_EPILOGUE_BGRADB) ? call.columns() : call.rows();
    result.push_back({"bias", description.bias, call.has(epilogue_bias) ? Use::read : Use::write, length * size, 1, 0,
                      items, static_cast<std::size_t>(description.bias_batch_stride) * size});
  }
  if (call.has(epilogue_aux)) {
    const bool mask = call.has(epilogue_relu | epilogue_drelu);  // of bits
    const auto bytes = [&](std::size_t elements) { return mask ? (elements + 7) / 8 : elements * size; };
    result.push_back({"aux", description.aux, call.has(epilogue_drelu | epilogue_dgelu) ? Use::read : Use::write,
                      bytes(call.rows()), call.columns(), bytes(static_cast<std::size_t>(description.aux_ld)), items,
                      bytes(static_cast<std::size_t>(description.aux_batch_stride))});
  }
  return result;
}

/// They must lie in one device allocation each: on a device an illegal access, here a Fault that names it.
inline void check_extent(const char* name, const void* data, std::size_t bytes) {
  if (runtime().memory.valid(data, bytes)) return;
  throw Fault("cublasLtMatmul", name, message("%zu bytes of device memory", bytes).text,
              message("%p outside every allocation or too short", data).text);
}
inline void check_extents(const Matmul& call) {
  for (const Extent& extent : extents_of(call)) check_extent(extent.name, extent.data, extent.bytes());
}

inline void check_multiple(const char* name, const void* data, std::uint64_t alignment, const char* reason) {
  if (reinterpret_cast<std::uintptr_t>(data) % alignment == 0) return;
  throw Fault("cublasLtMatmul", name,
              message("an address aligned to %llu bytes: %s", static_cast<unsigned long long>(alignment), reason).text,
              message("a misaligned pointer %p", data).text);
}
/// Pointers must be what the algorithm was chosen for, and elements lie at multiples of their size.
inline void check_alignments(const Matmul& call, const cublasLtMatmulAlgo_t* algorithm, const void* workspace) {
  for (const Extent& extent : extents_of(call)) {
    const bool mask = extent.name[1] == 'u' && call.has(epilogue_relu | epilogue_drelu);
    const std::uint32_t type = extent.name[0] == 'A' ? call.a.type : extent.name[0] == 'B' ? call.b.type : call.d.type;
    check_multiple(extent.name, extent.data, mask ? 1 : type_bytes(type), "its elements");
  }
  if (workspace) check_multiple("workspace", workspace, 256, "cuBLASLt's rule");
  if (!algorithm) return;
  const void* const data[] = {call.a_data, call.b_data, call.beta != 0.0f ? call.c_data : nullptr, call.d_data};
  const char* const names[] = {"A", "B", "C", "D"};
  for (int i = 0; i < 4; ++i)
    if (const std::uint64_t promised = algorithm->data[2] >> 16 * i & 0xffffu)
      check_multiple(names[i], data[i], promised, "what was preferred when the algorithm was chosen");
}

inline void push_matmul(const Stream& queue, const Matmul& call, void* workspace, std::size_t workspace_bytes) {
  Operation operation{Work::product, "cublasLtMatmul"};
  for (const Extent& extent : extents_of(call))
    for (std::size_t item = 0; item < extent.items; ++item)
      operation.spans.push_back({static_cast<const char*>(extent.data) + item * extent.item_pitch, extent.row_bytes,
                                 extent.use, extent.rows, extent.pitch});
  if (workspace_bytes) operation.spans.push_back(Span::write(workspace, workspace_bytes));
  operation.run = [call, workspace, workspace_bytes] {
    if (workspace_bytes) std::memset(workspace, poison_byte, workspace_bytes);  // may be left with anything
    run_matmul(call);
  };
  push(queue, std::move(operation));
}

inline constexpr std::uint64_t split_workspace = std::uint64_t{1}
                                                 << 20;  // what the stand-in's second algorithm asks for

}  // namespace typeformer

struct cublasLtContext {
  int version = 130100;
  int gpu = typeformer::simt::current_gpu;
};

namespace typeformer::inline TYPEFORMER_ABI::simt {

/// A call of a function of cuBLASLt: a failure on purpose has a status of its own; on a GPU that is broken, only those
/// that need it fail.
class BlasCall : public Call {
 public:
  explicit BlasCall(const char* name, Effect effect = Effect::none, bool needs_gpu = false)
      : Call(name, effect, false) {
    if (blas_status)
      status = static_cast<cublasStatus_t>(blas_status);
    else if (error && needs_gpu)
      status = CUBLAS_STATUS_EXECUTION_FAILED;
  }
  cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
};

/// Makes what a handle of the caller's points to.
template <class Object, class Handle>
Object* create_object(BlasKind kind, Handle* handle) {
  auto* created = new Object;
  *handle = reinterpret_cast<Handle>(created);
  runtime().handles.blas[kind].insert(created);
  return created;
}
/// Destroys it. Null is nothing; what is none of ours is an error.
template <class Object, class Handle>
cublasStatus_t destroy_object(const BlasCall& call, BlasKind kind, Handle handle) {
  if (handle && !runtime().handles.blas[kind].erase(handle)) return CUBLAS_STATUS_INVALID_VALUE;
  delete reinterpret_cast<Object*>(handle);
  return call.status;
}

}  // namespace typeformer

TYPEFORMER_SIMT_C cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  const typeformer::simt::BlasCall call("cublasLtCreate", typeformer::simt::Effect::none, true);
  if (call.status) return call.status;
  if (!handle) return CUBLAS_STATUS_INVALID_VALUE;
  typeformer::simt::create_object<cublasLtContext>(typeformer::simt::BlasKind::handle, handle);
  return CUBLAS_STATUS_SUCCESS;
}
TYPEFORMER_SIMT_C cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  const typeformer::simt::BlasCall call("cublasLtDestroy", typeformer::simt::Effect::releases);
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  return typeformer::simt::destroy_object<cublasLtContext>(call, typeformer::simt::BlasKind::handle, handle);
}
TYPEFORMER_SIMT_C std::size_t cublasLtGetVersion() { return 130100; }
TYPEFORMER_SIMT_C const char* cublasLtGetStatusString(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return "success";
    case CUBLAS_STATUS_NOT_INITIALIZED:
      return "the library was not initialized";
    case CUBLAS_STATUS_ALLOC_FAILED:
      return "the resource allocation failed";
    case CUBLAS_STATUS_INVALID_VALUE:
      return "an unsupported value or parameter was passed to the function";
    case CUBLAS_STATUS_EXECUTION_FAILED:
      return "the GPU program failed to execute";
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "the functionality requested is not supported";
    default:
      return "unknown status";
  }
}

TYPEFORMER_SIMT_C cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* description,
                                                          cublasComputeType_t compute, cudaDataType_t scale) {
  const typeformer::simt::BlasCall call("cublasLtMatmulDescCreate");
  if (call.status) return call.status;
  if (!description) return CUBLAS_STATUS_INVALID_VALUE;
  auto* created = typeformer::simt::create_object<typeformer::simt::MatmulDescription>(
      typeformer::simt::BlasKind::description, description);
  created->compute = static_cast<std::int32_t>(compute);
  created->scale = static_cast<std::int32_t>(scale);
  return CUBLAS_STATUS_SUCCESS;
}
TYPEFORMER_SIMT_C cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t description) {
  const typeformer::simt::BlasCall call("cublasLtMatmulDescDestroy", typeformer::simt::Effect::releases);
  return typeformer::simt::destroy_object<typeformer::simt::MatmulDescription>(
      call, typeformer::simt::BlasKind::description, description);
}
TYPEFORMER_SIMT_C cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t description,
                                                                cublasLtMatmulDescAttributes_t name, const void* value,
                                                                std::size_t bytes) {
  const typeformer::simt::BlasCall call("cublasLtMatmulDescSetAttribute");
  return call.status
             ? call.status
             : typeformer::simt::set_attribute<typeformer::simt::MatmulDescription>(description, name, value, bytes);
}
TYPEFORMER_SIMT_C cublasStatus_t cublasLtMatmulDescGetAttribute(cublasLtMatmulDesc_t description,
                                                                cublasLtMatmulDescAttributes_t name, void* value,
                                                                std::size_t bytes, std::size_t* written) {
  const typeformer::simt::BlasCall call("cublasLtMatmulDescGetAttribute");
  return call.status ? call.status
                     : typeformer::simt::get_attribute<typeformer::simt::MatmulDescription>(description, name, value,
                                                                                            bytes, written);
}

TYPEFORMER_SIMT_C cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type,
                                                            std::uint64_t rows, std::uint64_t columns,
                                                            std::int64_t ld) {
  const typeformer::simt::BlasCall call("cublasLtMatrixLayoutCreate");
  if (call.status) return call.status;
  if (!layout) return CUBLAS_STATUS_INVALID_VALUE;
  auto* created =
      typeformer::simt::create_object<typeformer::simt::MatrixLayout>(typeformer::simt::BlasKind::layout, layout);
  created->type = static_cast<std::uint32_t>(type);
  created->rows = rows;
  created->columns = columns;
  created->ld = ld;
  return CUBLAS_STATUS_SUCCESS;
}
TYPEFORMER_SIMT_C cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  const typeformer::simt::BlasCall call("cublasLtMatrixLayoutDestroy", typeformer::simt::Effect::releases);
  return typeformer::simt::destroy_object<typeformer::simt::MatrixLayout>(call, typeformer::simt::BlasKind::layout,
                                                                          layout);
}
TYPEFORMER_SIMT_C cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                                  cublasLtMatrixLayoutAttribute_t name,
                                                                  const void* value, std::size_t bytes) {
  const typeformer::simt::BlasCall call("cublasLtMatrixLayoutSetAttribute");
  return call.status ? call.status
                     : typeformer::simt::set_attribute<typeformer::simt::MatrixLayout>(layout, name, value, bytes);
}
TYPEFORMER_SIMT_C cublasStatus_t cublasLtMatrixLayoutGetAttribute(cublasLtMatrixLayout_t layout,
                                                                  cublasLtMatrixLayoutAttribute_t name, void* value,
                                                                  std::size_t bytes, std::size_t* written) {
  const typeformer::simt::BlasCall call("cublasLtMatrixLayoutGetAttribute");
  return call.status
             ? call.status
             : typeformer::simt::get_attribute<typeformer::simt::MatrixLayout>(layout, name, value, bytes, written);
}

TYPEFORMER_SIMT_C cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  const typeformer::simt::BlasCall call("cublasLtMatmulPreferenceCreate");
  if (call.status) return call.status;
  if (!preference) return CUBLAS_STATUS_INVALID_VALUE;
  typeformer::simt::create_object<typeformer::simt::MatmulPreference>(typeformer::simt::BlasKind::preference,
                                                                      preference);
  return CUBLAS_STATUS_SUCCESS;
}
TYPEFORMER_SIMT_C cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  const typeformer::simt::BlasCall call("cublasLtMatmulPreferenceDestroy", typeformer::simt::Effect::releases);
  return typeformer::simt::destroy_object<typeformer::simt::MatmulPreference>(
      call, typeformer::simt::BlasKind::preference, preference);
}
TYPEFORMER_SIMT_C cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                                      cublasLtMatmulPreferenceAttributes_t name,
                                                                      const void* value, std::size_t bytes) {
  const typeformer::simt::BlasCall call("cublasLtMatmulPreferenceSetAttribute");
  return call.status
             ? call.status
             : typeformer::simt::set_attribute<typeformer::simt::MatmulPreference>(preference, name, value, bytes);
}

/// Up to two algorithms: one that wants a workspace (when the preference grants it) and one that does not.
TYPEFORMER_SIMT_C cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t handle, cublasLtMatmulDesc_t description, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
    cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d, cublasLtMatmulPreference_t preference, int requested,
    cublasLtMatmulHeuristicResult_t results[], int* returned) {
  const typeformer::simt::BlasCall begun("cublasLtMatmulAlgoGetHeuristic", typeformer::simt::Effect::none, true);
  if (begun.status) return begun.status;
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (!description || !a || !b || !c || !d || !preference || !results || !returned || requested < 1)
    return CUBLAS_STATUS_INVALID_VALUE;
  *returned = 0;
  const auto call = typeformer::simt::describe_matmul(description, a, b, c, d);
  if (const auto status = typeformer::simt::check_problem(call)) return status;
  const auto& wanted = *reinterpret_cast<typeformer::simt::MatmulPreference*>(preference);
  for (const std::uint64_t workspace : {typeformer::simt::split_workspace, std::uint64_t{0}}) {
    if (workspace > wanted.workspace_bytes || *returned == requested) continue;
    auto& result = results[(*returned)++];
    result = {};
    result.algo.data[0] = typeformer::simt::problem_key(call);
    result.algo.data[1] = result.workspaceSize = workspace;
    // the worst that the caller allows
    result.algo.data[3] = workspace && wanted.reduction_mask &
                                           (CUBLASLT_REDUCTION_SCHEME_INPLACE | CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE);
    for (int i = 0; i < 4; ++i) result.algo.data[2] |= std::uint64_t{std::min(wanted.alignment[i], 256u)} << 16 * i;
    result.state = CUBLAS_STATUS_SUCCESS;
    result.wavesCount = 1.0f;
  }
  return CUBLAS_STATUS_SUCCESS;
}

TYPEFORMER_SIMT_C cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t description,
                                                const void* alpha, const void* a_data, cublasLtMatrixLayout_t a,
                                                const void* b_data, cublasLtMatrixLayout_t b, const void* beta,
                                                const void* c_data, cublasLtMatrixLayout_t c, void* d_data,
                                                cublasLtMatrixLayout_t d, const cublasLtMatmulAlgo_t* algorithm,
                                                void* workspace, std::size_t workspace_bytes, cudaStream_t stream) {
  const typeformer::simt::BlasCall begun("cublasLtMatmul", typeformer::simt::Effect::none, true);
  typeformer::simt::Stream queue;
  if (begun.status) return begun.status;
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (!description || !alpha || !beta || !a_data || !b_data || !d_data || !a || !b || !c || !d)
    return CUBLAS_STATUS_INVALID_VALUE;
  if (typeformer::simt::find_queue(stream, queue)) return CUBLAS_STATUS_EXECUTION_FAILED;
  if (queue->gpu != handle->gpu || typeformer::simt::current_gpu != handle->gpu) return CUBLAS_STATUS_EXECUTION_FAILED;
  auto call = typeformer::simt::describe_matmul(description, a, b, c, d);
  if (const auto status = typeformer::simt::check_problem(call)) return status;
  call.a_data = a_data;
  call.b_data = b_data;
  call.c_data = c_data;
  call.d_data = d_data;
  call.alpha_pointer = alpha;
  call.beta_pointer = beta;
  if (call.description.pointer_mode == CUBLASLT_POINTER_MODE_HOST) {  // read now, as the real call does
    call.alpha = *static_cast<const float*>(alpha);
    call.beta = *static_cast<const float*>(beta);
  }
  if (call.beta != 0.0f && !c_data) return CUBLAS_STATUS_INVALID_VALUE;
  if (c_data == d_data && call.c.ld != call.d.ld) return CUBLAS_STATUS_INVALID_VALUE;
  std::uint64_t needed = 0;
  if (algorithm) {
    if (algorithm->data[0] != typeformer::simt::problem_key(call)) return CUBLAS_STATUS_INVALID_VALUE;
    needed = algorithm->data[1];
    call.rounds_parts = algorithm->data[3] != 0;
    if (needed > workspace_bytes || (needed && !workspace)) return CUBLAS_STATUS_INVALID_VALUE;
  }
  const auto broken = typeformer::simt::check_arguments([&] {
    typeformer::simt::check_extents(call);
    typeformer::simt::check_alignments(call, algorithm, workspace);
    if (needed) typeformer::simt::check_extent("workspace", workspace, needed);
  });
  if (broken) return CUBLAS_STATUS_EXECUTION_FAILED;
  typeformer::simt::push_matmul(queue, call, workspace, needed);
  return CUBLAS_STATUS_SUCCESS;
}
#endif
