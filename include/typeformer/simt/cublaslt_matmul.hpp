/// The arithmetic behind the cuBLASLt stand-in: which problems NVIDIA documents, and their results in float.
#pragma once
#include <cmath>
#include <vector>

#include "typeformer/core/scalar.hpp"
#include "typeformer/simt/cublaslt_types.hpp"
#include "typeformer/simt/streams.hpp"

namespace typeformer::inline TYPEFORMER_ABI::simt {

/// What a cublasLtMatmulDesc_t points to.
struct MatmulDescription {
  std::int32_t compute = 0, scale = CUDA_R_32F, pointer_mode = CUBLASLT_POINTER_MODE_HOST;
  std::int32_t transpose_a = CUBLAS_OP_N, transpose_b = CUBLAS_OP_N, transpose_c = CUBLAS_OP_N;
  std::uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  void* bias = nullptr;
  std::int64_t bias_batch_stride = 0;
  void* aux = nullptr;
  std::int64_t aux_ld = 0, aux_batch_stride = 0;
  std::int32_t sm_count = 0, aux_type = -1, bias_type = -1;
};

/// What a cublasLtMatrixLayout_t points to.
struct MatrixLayout {
  std::uint32_t type = CUDA_R_32F;
  std::int32_t order = CUBLASLT_ORDER_COL;
  std::uint64_t rows = 0, columns = 0;
  std::int64_t ld = 0;
  std::int32_t batch = 1;
  std::int64_t batch_stride = 0;

  bool column_major() const { return order == CUBLASLT_ORDER_COL; }
  std::size_t at(std::size_t row, std::size_t column, int item) const {
    const std::size_t inner = column_major() ? row : column, outer = column_major() ? column : row;
    return static_cast<std::size_t>(item) * static_cast<std::size_t>(batch_stride) +
           outer * static_cast<std::size_t>(ld) + inner;
  }
  /// Elements from the first to the last, over all matrices of the batch.
  std::size_t extent() const { return at(rows - 1, columns - 1, batch - 1) + 1; }
};

/// One call.
struct Matmul {
  MatmulDescription description;
  MatrixLayout a, b, c, d;
  const void *a_data = nullptr, *b_data = nullptr, *c_data = nullptr;
  void* d_data = nullptr;
  const void *alpha_pointer = nullptr, *beta_pointer = nullptr;
  float alpha = 1, beta = 0;
  bool rounds_parts = false;  ///< of a sum, to D's type, as cuBLASLt does in place and by output type

  std::size_t rows() const { return description.transpose_a == CUBLAS_OP_N ? a.rows : a.columns; }
  std::size_t inner() const { return description.transpose_a == CUBLAS_OP_N ? a.columns : a.rows; }
  std::size_t columns() const { return description.transpose_b == CUBLAS_OP_N ? b.columns : b.rows; }
  bool has(std::uint32_t bit) const { return (description.epilogue & bit) != 0; }
  std::uint32_t bias_type() const {
    return description.bias_type < 0 ? d.type : static_cast<std::uint32_t>(description.bias_type);
  }
  std::uint32_t aux_type() const {
    return description.aux_type < 0 ? d.type : static_cast<std::uint32_t>(description.aux_type);
  }
};

// The bits that epilogues are made of.
inline constexpr std::uint32_t epilogue_relu = 2, epilogue_bias = 4, epilogue_drelu = 8, epilogue_bias_gradient = 16,
                               epilogue_gelu = 32, epilogue_dgelu = 64, epilogue_aux = 128;

inline std::size_t type_bytes(std::uint32_t type) { return type == CUDA_R_32F ? 4 : 2; }

inline float read_element(const void* data, std::uint32_t type, std::size_t index) {
  switch (type) {
    case CUDA_R_32F:
      return static_cast<const float*>(data)[index];
    case CUDA_R_16BF:
      return to_float(static_cast<const bf16*>(data)[index]);
    default:
      return to_float(static_cast<const f16*>(data)[index]);
  }
}
inline void write_element(void* data, std::uint32_t type, std::size_t index, float value) {
  switch (type) {
    case CUDA_R_32F:
      static_cast<float*>(data)[index] = value;
      break;
    case CUDA_R_16BF:
      static_cast<bf16*>(data)[index] = from_float<bf16>(value);
      break;
    default:
      static_cast<f16*>(data)[index] = from_float<f16>(value);
  }
}

/// The value as an element of the type holds it.
inline float rounded_to(std::uint32_t type, float value) {
  float held = 0;
  write_element(&held, type, 0, value);
  return read_element(&held, type, 0);
}

/// The type combinations of cuBLAS's table "A, B, C and D in regular column- or row-major order" for float sums.
inline bool supported_types(const Matmul& call) {
  const auto compute = call.description.compute;
  const auto in = call.a.type, out = call.d.type;
  if (call.description.scale != CUDA_R_32F || call.b.type != in || call.c.type != out) return false;
  const bool all_float = in == CUDA_R_32F && out == CUDA_R_32F;
  switch (compute) {
    case CUBLAS_COMPUTE_32F_FAST_16F:
    case CUBLAS_COMPUTE_32F_FAST_16BF:
    case CUBLAS_COMPUTE_32F_FAST_TF32:
      return all_float;
    case CUBLAS_COMPUTE_32F:
    case CUBLAS_COMPUTE_32F_PEDANTIC:
      return all_float || ((in == CUDA_R_16BF || in == CUDA_R_16F) && (out == in || out == CUDA_R_32F));
    default:
      return false;
  }
}

inline bool known_epilogue(std::uint32_t epilogue) {
  switch (epilogue) {
    case CUBLASLT_EPILOGUE_DEFAULT:
    case CUBLASLT_EPILOGUE_RELU:
    case CUBLASLT_EPILOGUE_RELU_AUX:
    case CUBLASLT_EPILOGUE_BIAS:
    case CUBLASLT_EPILOGUE_RELU_BIAS:
    case CUBLASLT_EPILOGUE_RELU_AUX_BIAS:
    case CUBLASLT_EPILOGUE_DRELU:
    case CUBLASLT_EPILOGUE_DRELU_BGRAD:
    case CUBLASLT_EPILOGUE_GELU:
    case CUBLASLT_EPILOGUE_GELU_AUX:
    case CUBLASLT_EPILOGUE_GELU_BIAS:
    case CUBLASLT_EPILOGUE_GELU_AUX_BIAS:
    case CUBLASLT_EPILOGUE_DGELU:
    case CUBLASLT_EPILOGUE_DGELU_BGRAD:
    case CUBLASLT_EPILOGUE_BGRADA:
    case CUBLASLT_EPILOGUE_BGRADB:
      return true;
    default:
      return false;
  }
}

/// Whether a vector of bias or bias gradients belongs to the call.
inline bool uses_bias(const Matmul& call) {
  return call.has(epilogue_bias | epilogue_bias_gradient | CUBLASLT_EPILOGUE_BGRADA | CUBLASLT_EPILOGUE_BGRADB);
}

/// Rules of the epilogue's vectors and matrices.
inline cublasStatus_t check_epilogue(const Matmul& call) {
  const MatmulDescription& description = call.description;
  if (!known_epilogue(description.epilogue)) return CUBLAS_STATUS_INVALID_VALUE;
  const bool plain =
      (description.epilogue & ~(epilogue_relu | epilogue_gelu | std::uint32_t{CUBLASLT_EPILOGUE_DEFAULT})) == 0;
  if (!plain && !call.d.column_major()) return CUBLAS_STATUS_NOT_SUPPORTED;  // vectors run along D's columns only
  if (uses_bias(call)) {
    if (!description.bias || call.bias_type() != call.d.type) return CUBLAS_STATUS_INVALID_VALUE;
    if (call.d.batch > 1 && call.has(epilogue_bias_gradient | CUBLASLT_EPILOGUE_BGRADA | CUBLASLT_EPILOGUE_BGRADB) &&
        description.bias_batch_stride == 0)
      return CUBLAS_STATUS_INVALID_VALUE;  // the gradients of the batch would overwrite each other
  }
  if (call.has(epilogue_aux)) {
    const std::int64_t unit = call.has(epilogue_relu | epilogue_drelu) ? 128 : 8;  // bits of a mask, or elements
    if (!description.aux || description.aux_ld % unit || description.aux_ld < static_cast<std::int64_t>(call.rows()) ||
        description.aux_batch_stride % unit || (call.d.batch > 1 && description.aux_batch_stride == 0))
      return CUBLAS_STATUS_INVALID_VALUE;
    if (unit == 8 && call.aux_type() != call.d.type) return CUBLAS_STATUS_INVALID_VALUE;
  }
  return CUBLAS_STATUS_SUCCESS;
}

/// What cublasLtMatmul would say about the problem, pointers apart.
inline cublasStatus_t check_problem(const Matmul& call) {
  const MatmulDescription& description = call.description;
  for (const MatrixLayout* layout : {&call.a, &call.b, &call.c, &call.d}) {
    if (layout->order != CUBLASLT_ORDER_COL && layout->order != CUBLASLT_ORDER_ROW) return CUBLAS_STATUS_NOT_SUPPORTED;
    const std::uint64_t least = layout->column_major() ? layout->rows : layout->columns;
    if (layout->rows == 0 || layout->columns == 0 || layout->ld < static_cast<std::int64_t>(least) || layout->batch < 1)
      return CUBLAS_STATUS_INVALID_VALUE;
    if (layout->batch != call.d.batch) return CUBLAS_STATUS_INVALID_VALUE;
  }
  const std::size_t inner_b = description.transpose_b == CUBLAS_OP_N ? call.b.rows : call.b.columns;
  if (call.inner() != inner_b || call.d.rows != call.rows() || call.d.columns != call.columns() ||
      call.c.rows != call.d.rows || call.c.columns != call.d.columns || call.c.order != call.d.order)
    return CUBLAS_STATUS_INVALID_VALUE;
  if (description.transpose_c != CUBLAS_OP_N) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (description.pointer_mode != CUBLASLT_POINTER_MODE_HOST &&
      description.pointer_mode != CUBLASLT_POINTER_MODE_DEVICE)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  if (call.d.batch > 1 && call.d.batch_stride == 0) return CUBLAS_STATUS_INVALID_VALUE;
  if (!supported_types(call)) return CUBLAS_STATUS_NOT_SUPPORTED;
  return check_epilogue(call);
}

inline float gelu_tanh(float x) { return 0.5f * x * (1.0f + std::tanh(0.7978845608f * (x + 0.044715f * x * x * x))); }
inline float gelu_tanh_derivative(float x) {
  const float t = std::tanh(0.7978845608f * (x + 0.044715f * x * x * x));
  return 0.5f * (1.0f + t) + 0.5f * x * (1.0f - t * t) * 0.7978845608f * (1.0f + 3.0f * 0.044715f * x * x);
}

/// Inputs as the tensor cores of the fast modes see them.
inline float rounded_input(float value, std::int32_t compute) {
  if (compute == CUBLAS_COMPUTE_32F_FAST_16BF) return to_float(from_float<bf16>(value));
  if (compute == CUBLAS_COMPUTE_32F_FAST_16F) return to_float(from_float<f16>(value));
  if (compute != CUBLAS_COMPUTE_32F_FAST_TF32 || !std::isfinite(value)) return value;
  const auto bits = std::bit_cast<std::uint32_t>(value);  // 10 bits of mantissa, to nearest, ties away from zero
  return std::bit_cast<float>((bits + 0x1000u) & 0xffffe000u);
}

/// op(A) as [rows, inner] or op(B) as [inner, columns], row-major floats, matrix `item` of the batch.
inline std::vector<float> gather_matrix(const Matmul& call, bool left, int item) {
  const MatrixLayout& layout = left ? call.a : call.b;
  const void* data = left ? call.a_data : call.b_data;
  const bool transposed = (left ? call.description.transpose_a : call.description.transpose_b) != CUBLAS_OP_N;
  const std::size_t rows = transposed ? layout.columns : layout.rows,
                    columns = transposed ? layout.rows : layout.columns;
  std::vector<float> result(rows * columns);
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < columns; ++j) {
      const std::size_t index = transposed ? layout.at(j, i, item) : layout.at(i, j, item);
      result[i * columns + j] = rounded_input(read_element(data, layout.type, index), call.description.compute);
    }
  return result;
}

/// One element through the epilogue: bias, then the activation or its derivative, with the auxiliary matrix.
inline float finish_element(const Matmul& call, float value, std::size_t i, std::size_t j, int item) {
  const MatmulDescription& description = call.description;
  const auto batch = static_cast<std::size_t>(item);
  if (call.has(epilogue_bias))
    value += read_element(description.bias, call.d.type,
                          batch * static_cast<std::size_t>(description.bias_batch_stride) + i);
  const std::size_t aux = batch * static_cast<std::size_t>(description.aux_batch_stride) +
                          j * static_cast<std::size_t>(description.aux_ld) + i;
  auto* mask = static_cast<unsigned char*>(description.aux) + aux / 8;
  const auto bit = static_cast<unsigned char>(1u << aux % 8);
  if (call.has(epilogue_drelu)) return *mask & bit ? value : 0.0f;
  if (call.has(epilogue_dgelu)) return value * gelu_tanh_derivative(read_element(description.aux, call.d.type, aux));
  if (call.has(epilogue_relu)) {
    const bool positive = value > 0.0f;
    if (call.has(epilogue_aux)) *mask = static_cast<unsigned char>(positive ? *mask | bit : *mask & ~bit);
    return positive ? value : 0.0f;
  }
  if (call.has(epilogue_gelu)) {
    if (call.has(epilogue_aux)) write_element(description.aux, call.d.type, aux, value);
    return gelu_tanh(value);
  }
  return value;
}

/// Sums of op(A)'s rows or op(B)'s columns, or of D's rows: the bias gradients.
inline void write_bias_gradient(const Matmul& call, const std::vector<float>& left, const std::vector<float>& right,
                                const std::vector<float>& result, int item) {
  const std::size_t rows = call.rows(), columns = call.columns(), inner = call.inner();
  const auto start = static_cast<std::size_t>(item) * static_cast<std::size_t>(call.description.bias_batch_stride);
  const bool by_column = call.has(CUBLASLT_EPILOGUE_BGRADB);
  for (std::size_t i = 0; i < (by_column ? columns : rows); ++i) {
    float sum = 0;
    if (by_column)
      for (std::size_t k = 0; k < inner; ++k) sum += right[k * columns + i];
    else if (call.has(CUBLASLT_EPILOGUE_BGRADA))
      for (std::size_t k = 0; k < inner; ++k) sum += left[i * inner + k];
    else
      for (std::size_t j = 0; j < columns; ++j) sum += result[i * columns + j];
    write_element(call.description.bias, call.d.type, start + i, sum);
  }
}

/// D = epilogue(alpha op(A) op(B) + beta C), float sums in the order of the inner dimension.
inline void run_matmul(const Matmul& call) {
  const std::size_t rows = call.rows(), columns = call.columns(), inner = call.inner();
  const bool on_device = call.description.pointer_mode == CUBLASLT_POINTER_MODE_DEVICE;
  const float alpha = on_device ? *static_cast<const float*>(call.alpha_pointer) : call.alpha;
  const float beta = on_device ? *static_cast<const float*>(call.beta_pointer) : call.beta;
  for (int item = 0; item < call.d.batch; ++item) {
    const std::vector<float> left = gather_matrix(call, true, item), right = gather_matrix(call, false, item);
    std::vector<float> result(rows * columns, 0.0f);
    for (std::size_t i = 0; i < rows; ++i) {
      float* row = &result[i * columns];
      for (std::size_t k = 0; k < inner; ++k) {
        const float factor = left[i * inner + k];
        const float* other = &right[k * columns];
        for (std::size_t j = 0; j < columns; ++j) row[j] += factor * other[j];
        if (call.rounds_parts && k + 1 == inner / 2)
          for (std::size_t j = 0; j < columns; ++j) row[j] = rounded_to(call.d.type, row[j]);
      }
      for (std::size_t j = 0; j < columns; ++j) {
        const float old = beta == 0.0f ? 0.0f : beta * read_element(call.c_data, call.c.type, call.c.at(i, j, item));
        row[j] = finish_element(call, alpha * row[j] + old, i, j, item);
      }
    }
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t j = 0; j < columns; ++j)
        write_element(call.d_data, call.d.type, call.d.at(i, j, item), result[i * columns + j]);
    if (uses_bias(call) && !call.has(epilogue_bias)) write_bias_gradient(call, left, right, result, item);
  }
}

}  // namespace typeformer
