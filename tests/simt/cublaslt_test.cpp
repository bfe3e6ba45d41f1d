// The stand-in for cuBLASLt against a double reference: layouts, types, batches, epilogues, gradients; and the statuses
// of what NVIDIA does not document. Written against the interface alone: the same file is built with NVIDIA's own
// headers.
#include "typeformer/simt/cublaslt.hpp"

#include <cmath>
#include <optional>

#include "support.hpp"

namespace {

struct Problem {
  std::uint64_t m = 5, n = 7, k = 9;
  bool transpose_a = false, transpose_b = false;
  cublasLtOrder_t order_a = CUBLASLT_ORDER_COL, order_b = CUBLASLT_ORDER_COL, order_d = CUBLASLT_ORDER_COL;
  cudaDataType in = CUDA_R_32F, out = CUDA_R_32F;
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  float alpha = 1, beta = 0;
  int batch = 1;
  std::int64_t aux_ld = 0, padding = 2;
  bool with_bias = true, with_aux = true;
};

struct Outcome {
  cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
  double error = 0;                     // worst over D
  std::vector<float> bias, product, d;  // bias vector afterwards; alpha op(A) op(B) + beta C in double, D as read
  std::vector<unsigned char> aux;
};

std::size_t bytes_of(cudaDataType type) { return type == CUDA_R_32F ? 4 : 2; }
float rounded(float value, cudaDataType type) {
  if (type == CUDA_R_16BF) return typeformer::to_float(typeformer::from_float<bf16>(value));
  return type == CUDA_R_16F ? typeformer::to_float(typeformer::from_float<f16>(value)) : value;
}
std::vector<unsigned char> encode(const std::vector<float>& values, cudaDataType type) {
  std::vector<unsigned char> result(values.size() * bytes_of(type));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto b = typeformer::from_float<bf16>(values[i]);
    const auto h = typeformer::from_float<f16>(values[i]);
    const void* from = type == CUDA_R_32F    ? static_cast<const void*>(&values[i])
                       : type == CUDA_R_16BF ? static_cast<const void*>(&b)
                                             : &h;
    std::memcpy(&result[i * bytes_of(type)], from, bytes_of(type));
  }
  return result;
}
std::vector<float> decode(const std::vector<unsigned char>& bytes, cudaDataType type) {
  std::vector<float> result(bytes.size() / bytes_of(type));
  for (std::size_t i = 0; i < result.size(); ++i) {
    std::uint16_t half = 0;
    if (type == CUDA_R_32F)
      std::memcpy(&result[i], &bytes[4 * i], 4);
    else
      std::memcpy(&half, &bytes[2 * i], 2);
    if (type == CUDA_R_16BF) result[i] = typeformer::to_float(bf16{half});
    if (type == CUDA_R_16F) result[i] = typeformer::to_float(f16{half});
  }
  return result;
}

// A batch of matrices in device memory, with the layout that describes it and the numbers that it holds.
struct Matrix {
  std::uint64_t rows, columns;
  cublasLtOrder_t order;
  cudaDataType type;
  std::int64_t ld, stride;
  std::vector<float> numbers;
  DeviceArray<unsigned char> memory;
  cublasLtMatrixLayout_t layout = nullptr;

  Matrix(std::uint64_t r, std::uint64_t c, cublasLtOrder_t o, cudaDataType t, int batch, std::int64_t padding,
         unsigned seed)
      : rows(r), columns(c), order(o), type(t),
        ld(static_cast<std::int64_t>(o == CUBLASLT_ORDER_COL ? r : c) + padding),
        stride(ld * static_cast<std::int64_t>(o == CUBLASLT_ORDER_COL ? c : r) + 3),
        numbers(fill(static_cast<std::size_t>(stride * batch), t, seed)), memory(encode(numbers, t)) {
    REQUIRE(cublasLtMatrixLayoutCreate(&layout, type, rows, columns, ld) == CUBLAS_STATUS_SUCCESS);
    REQUIRE(cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_ORDER, &order, sizeof order) ==
            CUBLAS_STATUS_SUCCESS);
    REQUIRE(cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof batch) ==
            CUBLAS_STATUS_SUCCESS);
    REQUIRE(cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
                                             sizeof stride) == CUBLAS_STATUS_SUCCESS);
  }
  Matrix(const Matrix&) = delete;
  Matrix& operator=(const Matrix&) = delete;
  ~Matrix() { cublasLtMatrixLayoutDestroy(layout); }

  static std::vector<float> fill(std::size_t count, cudaDataType type, unsigned seed) {
    std::vector<float> result(count);
    for (std::size_t i = 0; i < count; ++i)
      result[i] = rounded(
          static_cast<float>(static_cast<int>(scramble(seed + static_cast<unsigned>(i)) % 201) - 100) / 80.0f, type);
    return result;
  }
  std::size_t at(std::uint64_t row, std::uint64_t column, int item) const {
    const bool by_column = order == CUBLASLT_ORDER_COL;
    return static_cast<std::size_t>(item * stride) +
           static_cast<std::size_t>((by_column ? column : row) * static_cast<std::uint64_t>(ld) +
                                    (by_column ? row : column));
  }
};

template <class T>
void set(cublasLtMatmulDesc_t description, cublasLtMatmulDescAttributes_t name, const T& value) {
  REQUIRE(cublasLtMatmulDescSetAttribute(description, name, &value, sizeof value) == CUBLAS_STATUS_SUCCESS);
}

Outcome solve(const Problem& p) {
  const Matrix a(p.transpose_a ? p.k : p.m, p.transpose_a ? p.m : p.k, p.order_a, p.in, p.batch, p.padding, 1);
  const Matrix b(p.transpose_b ? p.n : p.k, p.transpose_b ? p.k : p.n, p.order_b, p.in, p.batch, p.padding, 10000);
  const Matrix c(p.m, p.n, p.order_d, p.out, p.batch, p.padding, 20000),
      d(p.m, p.n, p.order_d, p.out, p.batch, p.padding, 30000);
  const std::int64_t bias_stride = static_cast<std::int64_t>(std::max(p.m, p.n)) + 1;
  const DeviceArray<unsigned char> bias(
      encode(Matrix::fill(static_cast<std::size_t>(bias_stride * p.batch), p.out, 40000), p.out));
  const std::int64_t aux_stride = p.aux_ld * static_cast<std::int64_t>(p.n);
  const DeviceArray<unsigned char> aux(
      encode(Matrix::fill(static_cast<std::size_t>(aux_stride * p.batch + 1), p.out, 50000), p.out));
  cublasLtHandle_t handle = nullptr;
  cublasLtMatmulDesc_t description = nullptr;
  REQUIRE(cublasLtCreate(&handle) == CUBLAS_STATUS_SUCCESS);
  REQUIRE(cublasLtMatmulDescCreate(&description, p.compute, CUDA_R_32F) == CUBLAS_STATUS_SUCCESS);
  set(description, CUBLASLT_MATMUL_DESC_TRANSA, p.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(description, CUBLASLT_MATMUL_DESC_TRANSB, p.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(description, CUBLASLT_MATMUL_DESC_EPILOGUE, p.epilogue);
  if (p.with_bias) {
    set(description, CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<const void*>(bias.get()));
    set(description, CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, bias_stride);
  }
  if (p.with_aux) {
    set(description, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, static_cast<const void*>(aux.get()));
    set(description, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, p.aux_ld);
    set(description, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, aux_stride);
  }
  Outcome outcome;
  outcome.status =
      cublasLtMatmul(handle, description, &p.alpha, a.memory.get(), a.layout, b.memory.get(), b.layout, &p.beta,
                     c.memory.get(), c.layout, d.memory.get(), d.layout, nullptr, nullptr, 0, nullptr);
  const auto got = decode(d.memory.values(), p.out);
  for (int item = 0; item < p.batch; ++item)
    for (std::uint64_t i = 0; i < p.m; ++i)
      for (std::uint64_t j = 0; j < p.n; ++j) {
        double sum = 0;
        for (std::uint64_t k = 0; k < p.k; ++k)
          sum += static_cast<double>(a.numbers[p.transpose_a ? a.at(k, i, item) : a.at(i, k, item)]) *
                 b.numbers[p.transpose_b ? b.at(j, k, item) : b.at(k, j, item)];
        const double expected = p.alpha * sum + static_cast<double>(p.beta) * c.numbers[c.at(i, j, item)];
        const float value = got[d.at(i, j, item)];
        outcome.product.push_back(static_cast<float>(expected));
        outcome.d.push_back(value);
        outcome.error = std::max(outcome.error, std::fabs(value - expected) / (1 + std::fabs(expected)));
      }
  outcome.bias = decode(bias.values(), p.out);
  outcome.aux = aux.values();
  // what op(A)'s rows and op(B)'s columns sum to, appended for the bias gradients
  if (p.epilogue == CUBLASLT_EPILOGUE_BGRADA || p.epilogue == CUBLASLT_EPILOGUE_BGRADB) {
    const bool by_a = p.epilogue == CUBLASLT_EPILOGUE_BGRADA;
    for (std::uint64_t i = 0; i < (by_a ? p.m : p.n); ++i) {
      double sum = 0;
      for (std::uint64_t k = 0; k < p.k; ++k)
        sum += by_a ? a.numbers[p.transpose_a ? a.at(k, i, 0) : a.at(i, k, 0)]
                    : b.numbers[p.transpose_b ? b.at(i, k, 0) : b.at(k, i, 0)];
      CHECK(outcome.bias[static_cast<std::size_t>(i)] == doctest::Approx(sum).epsilon(1e-4));
    }
  }
  cublasLtMatmulDescDestroy(description);
  cublasLtDestroy(handle);
  return outcome;
}

double tanh_gelu(double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }

// The epilogue's value for element (i, j) of the only matrix: outcome.product holds what goes into it.
void check_elements(const Problem& p, const Outcome& outcome, double (*formula)(double x, double bias, double aux),
                    double tolerance) {
  REQUIRE(outcome.status == CUBLAS_STATUS_SUCCESS);
  const auto bias = Matrix::fill(64, p.out, 40000), aux = Matrix::fill(4096, p.out, 50000);
  for (std::size_t i = 0; i < p.m; ++i)
    for (std::size_t j = 0; j < p.n; ++j) {
      const double expected =
          formula(outcome.product[i * p.n + j], bias[i], aux[j * static_cast<std::size_t>(p.aux_ld) + i]);
      CHECK(outcome.d[i * p.n + j] == doctest::Approx(expected).epsilon(tolerance));
    }
}

}  // namespace

TEST_CASE("orders, transposes, scaling and batches") {
  for (int variant = 0; variant < 32; ++variant) {
    Problem p;
    p.transpose_a = variant & 1;
    p.transpose_b = variant & 2;
    p.order_a = variant & 4 ? CUBLASLT_ORDER_ROW : CUBLASLT_ORDER_COL;
    p.order_b = variant & 8 ? CUBLASLT_ORDER_ROW : CUBLASLT_ORDER_COL;
    p.order_d = variant & 16 ? CUBLASLT_ORDER_ROW : CUBLASLT_ORDER_COL;
    for (const int batch : {1, 3}) {
      p.batch = batch;
      p.alpha = batch == 1 ? 1.0f : -0.5f;
      p.beta = batch == 1 ? 0.0f : 2.0f;
      const auto outcome = solve(p);
      REQUIRE(outcome.status == CUBLAS_STATUS_SUCCESS);
      CHECK(outcome.error < 1e-6);
    }
  }
}

TEST_CASE("types that the documentation lists, and others") {
  struct Row {
    cublasComputeType_t compute;
    cudaDataType in, out;
    double tolerance;  // negative: not supported
  };
  const Row rows[] = {{CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_32F, 1e-6},
                      {CUBLAS_COMPUTE_32F_PEDANTIC, CUDA_R_32F, CUDA_R_32F, 1e-6},
                      {CUBLAS_COMPUTE_32F, CUDA_R_16BF, CUDA_R_16BF, 4e-3},
                      {CUBLAS_COMPUTE_32F, CUDA_R_16BF, CUDA_R_32F, 1e-6},
                      {CUBLAS_COMPUTE_32F, CUDA_R_16F, CUDA_R_16F, 5e-4},
                      {CUBLAS_COMPUTE_32F, CUDA_R_16F, CUDA_R_32F, 1e-6},
                      {CUBLAS_COMPUTE_32F_FAST_TF32, CUDA_R_32F, CUDA_R_32F, 5e-3},
                      {CUBLAS_COMPUTE_32F_FAST_16BF, CUDA_R_32F, CUDA_R_32F, 4e-2},
                      {CUBLAS_COMPUTE_32F, CUDA_R_16BF, CUDA_R_16F, -1},
                      {CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_16BF, -1},
                      {CUBLAS_COMPUTE_32F_FAST_TF32, CUDA_R_16BF, CUDA_R_32F, -1},
                      {CUBLAS_COMPUTE_64F, CUDA_R_32F, CUDA_R_32F, -1},
                      {CUBLAS_COMPUTE_16F, CUDA_R_16F, CUDA_R_16F, -1}};
  for (const Row& row : rows) {
    Problem p;
    p.compute = row.compute;
    p.in = row.in;
    p.out = row.out;
    const auto outcome = solve(p);
    CHECK(outcome.status == (row.tolerance < 0 ? CUBLAS_STATUS_NOT_SUPPORTED : CUBLAS_STATUS_SUCCESS));
    if (row.tolerance > 0) CHECK(outcome.error < row.tolerance);
  }
  Problem fast;
  fast.compute = CUBLAS_COMPUTE_32F_FAST_TF32;
  CHECK(solve(fast).error > 1e-6);  // its inputs really lose bits
}

TEST_CASE("bias, ReLU and GELU, with what they keep for the backward pass") {
  for (const auto type : {CUDA_R_32F, CUDA_R_16BF}) {
    Problem p;
    p.in = p.out = type;
    p.alpha = 0.5f;
    const double tolerance = type == CUDA_R_32F ? 1e-5 : 2e-2;
    const auto check = [&](cublasLtEpilogue_t epilogue, double (*formula)(double, double, double),
                           std::int64_t aux_ld = 0) {
      p.epilogue = epilogue;
      p.aux_ld = aux_ld;
      const auto outcome = solve(p);
      check_elements(p, outcome, formula, tolerance);
      return outcome;
    };
    check(CUBLASLT_EPILOGUE_BIAS, [](double x, double b, double) { return x + b; });
    check(CUBLASLT_EPILOGUE_RELU, [](double x, double, double) { return std::max(x, 0.0); });
    check(CUBLASLT_EPILOGUE_RELU_BIAS, [](double x, double b, double) { return std::max(x + b, 0.0); });
    check(CUBLASLT_EPILOGUE_GELU, [](double x, double, double) { return tanh_gelu(x); });
    check(CUBLASLT_EPILOGUE_GELU_BIAS, [](double x, double b, double) { return tanh_gelu(x + b); });
    check(
        CUBLASLT_EPILOGUE_DGELU,
        [](double x, double, double a) { return x * (tanh_gelu(a + 1e-5) - tanh_gelu(a - 1e-5)) / 2e-5; }, 8);
    const auto kept = check(
        CUBLASLT_EPILOGUE_GELU_AUX_BIAS, [](double x, double b, double) { return tanh_gelu(x + b); }, 16);
    const auto inputs = decode(kept.aux, type), bias = Matrix::fill(64, type, 40000);
    for (std::size_t i = 0; i < p.m; ++i)
      for (std::size_t j = 0; j < p.n; ++j)
        CHECK(inputs[16 * j + i] == doctest::Approx(kept.product[i * p.n + j] + bias[i]).epsilon(tolerance));
    const auto masked = check(
        CUBLASLT_EPILOGUE_RELU_AUX, [](double x, double, double) { return std::max(x, 0.0); }, 128);
    for (std::size_t i = 0; i < p.m; ++i)
      for (std::size_t j = 0; j < p.n; ++j)
        CHECK((masked.aux[16 * j + i / 8] >> i % 8 & 1) == (masked.product[i * p.n + j] > 0));
  }
}

TEST_CASE("gradients of ReLU and of biases") {
  Problem p;
  p.aux_ld = 128;
  p.epilogue = CUBLASLT_EPILOGUE_DRELU_BGRAD;
  const auto outcome = solve(p);
  REQUIRE(outcome.status == CUBLAS_STATUS_SUCCESS);
  int kept = 0;
  for (std::size_t i = 0; i < p.m; ++i) {
    double sum = 0;
    for (std::size_t j = 0; j < p.n; ++j) {
      const bool bit = outcome.aux[16 * j + i / 8] >> i % 8 & 1;
      kept += bit;
      CHECK(outcome.d[i * p.n + j] == doctest::Approx(bit ? outcome.product[i * p.n + j] : 0.0).epsilon(1e-5));
      sum += outcome.d[i * p.n + j];
    }
    CHECK(outcome.bias[i] == doctest::Approx(sum).epsilon(1e-5));
  }
  CHECK(kept > 0);
  CHECK(kept < 35);
  for (const auto epilogue : {CUBLASLT_EPILOGUE_BGRADA, CUBLASLT_EPILOGUE_BGRADB})  // solve() checks the sums
    for (int variant = 0; variant < 4; ++variant) {
      Problem q;
      q.epilogue = epilogue;
      q.transpose_a = variant & 1;
      q.transpose_b = variant & 2;
      const auto gradients = solve(q);
      CHECK(gradients.status == CUBLAS_STATUS_SUCCESS);
      CHECK(gradients.error < 1e-6);
    }
}

TEST_CASE("what NVIDIA does not document is a status") {
  const auto status_of = [](auto change) {
    Problem p;
    p.aux_ld = 128;
    change(p);
    return solve(p).status;
  };
  CHECK(status_of([](Problem&) {}) == CUBLAS_STATUS_SUCCESS);
  CHECK(status_of([](Problem& p) { p.epilogue = CUBLASLT_EPILOGUE_BIAS, p.with_bias = false; }) ==
        CUBLAS_STATUS_INVALID_VALUE);
  CHECK(status_of([](Problem& p) { p.epilogue = CUBLASLT_EPILOGUE_GELU_AUX, p.with_aux = false; }) ==
        CUBLAS_STATUS_INVALID_VALUE);
  CHECK(status_of([](Problem& p) { p.epilogue = CUBLASLT_EPILOGUE_GELU_AUX, p.aux_ld = 12; }) ==
        CUBLAS_STATUS_INVALID_VALUE);
  CHECK(status_of([](Problem& p) { p.epilogue = CUBLASLT_EPILOGUE_RELU_AUX, p.aux_ld = 64; }) ==
        CUBLAS_STATUS_INVALID_VALUE);
  CHECK(status_of([](Problem& p) { p.epilogue = static_cast<cublasLtEpilogue_t>(48); }) == CUBLAS_STATUS_INVALID_VALUE);
  CHECK(status_of([](Problem& p) { p.epilogue = CUBLASLT_EPILOGUE_BIAS, p.order_d = CUBLASLT_ORDER_ROW; }) ==
        CUBLAS_STATUS_NOT_SUPPORTED);
  CHECK(status_of([](Problem& p) { p.order_a = CUBLASLT_ORDER_COL32; }) == CUBLAS_STATUS_NOT_SUPPORTED);
  CHECK(status_of([](Problem& p) { p.padding = -1; }) == CUBLAS_STATUS_INVALID_VALUE);
}

TEST_CASE("descriptors check names and sizes, handles and sizes of matrices") {
  cublasLtMatmulDesc_t description = nullptr;
  cublasLtMatrixLayout_t layout = nullptr, other = nullptr;
  cublasLtHandle_t handle = nullptr;
  REQUIRE(cublasLtCreate(&handle) == CUBLAS_STATUS_SUCCESS);
  CHECK(cublasLtCreate(nullptr) == CUBLAS_STATUS_INVALID_VALUE);
  REQUIRE(cublasLtMatmulDescCreate(&description, CUBLAS_COMPUTE_32F, CUDA_R_32F) == CUBLAS_STATUS_SUCCESS);
  const std::int64_t wide = 1;
  CHECK(cublasLtMatmulDescSetAttribute(description, CUBLASLT_MATMUL_DESC_TRANSA, &wide, sizeof wide) ==
        CUBLAS_STATUS_INVALID_VALUE);
  CHECK(cublasLtMatmulDescSetAttribute(nullptr, CUBLASLT_MATMUL_DESC_TRANSA, &wide, 4) == CUBLAS_STATUS_INVALID_VALUE);
  std::int64_t ld = 0;
  std::size_t written = 0;
  set(description, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, std::int64_t{40});
  CHECK(cublasLtMatmulDescGetAttribute(description, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &ld, sizeof ld, &written) ==
        CUBLAS_STATUS_SUCCESS);
  CHECK(ld == 40);
  CHECK(written == 8);
  REQUIRE(cublasLtMatrixLayoutCreate(&layout, CUDA_R_32F, 4, 4, 4) == CUBLAS_STATUS_SUCCESS);
  REQUIRE(cublasLtMatrixLayoutCreate(&other, CUDA_R_32F, 5, 4, 5) == CUBLAS_STATUS_SUCCESS);
  const DeviceArray<float> x(std::vector<float>(20, 1.0f)), y(20), small(15);
  const float one = 1, zero = 0;
  const auto multiply = [&](cublasLtHandle_t h, const float* a, cublasLtMatrixLayout_t la, float* d) {
    return cublasLtMatmul(h, description, &one, a, la, x.get(), layout, &zero, d, layout, d, layout, nullptr, nullptr,
                          0, nullptr);
  };
  CHECK(multiply(handle, x.get(), layout, y.get()) == CUBLAS_STATUS_SUCCESS);
  CHECK(multiply(nullptr, x.get(), layout, y.get()) == CUBLAS_STATUS_NOT_INITIALIZED);
  CHECK(multiply(handle, nullptr, layout, y.get()) == CUBLAS_STATUS_INVALID_VALUE);
  CHECK(multiply(handle, x.get(), other, y.get()) == CUBLAS_STATUS_INVALID_VALUE);
  std::string report;
  try {
    multiply(handle, x.get(), layout, small.get());
  } catch (const simt::Fault& fault) {
    report = fault.what();
  }
  CHECK(mentions(report, "cublasLtMatmul: D: expected 64 bytes of device memory"));
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  CHECK(y.values()[15] == 4.0f);
  cublasLtMatrixLayoutDestroy(layout);
  cublasLtMatrixLayoutDestroy(other);
  cublasLtMatmulDescDestroy(description);
  cublasLtDestroy(handle);
}

TEST_CASE("heuristics: parts of a sum are rounded to D's type where the caller allows it") {
  cublasLtHandle_t handle = nullptr;
  cublasLtMatmulDesc_t description = nullptr;
  cublasLtMatmulPreference_t preference = nullptr;
  REQUIRE(cublasLtCreate(&handle) == CUBLAS_STATUS_SUCCESS);
  REQUIRE(cublasLtMatmulDescCreate(&description, CUBLAS_COMPUTE_32F, CUDA_R_32F) == CUBLAS_STATUS_SUCCESS);
  REQUIRE(cublasLtMatmulPreferenceCreate(&preference) == CUBLAS_STATUS_SUCCESS);
  const std::uint64_t granted = 4 << 20;
  REQUIRE(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &granted,
                                               sizeof granted) == CUBLAS_STATUS_SUCCESS);
  const Matrix a(1, 514, CUBLASLT_ORDER_COL, CUDA_R_16BF, 1, 0, 1), b(514, 1, CUBLASLT_ORDER_COL, CUDA_R_16BF, 1, 0, 2),
      d(1, 1, CUBLASLT_ORDER_COL, CUDA_R_16BF, 1, 0, 3);
  std::vector<float> signs(514, 0);  // their sum is 257 - 256; bf16 has no 257
  for (std::size_t k = 0; k < 513; ++k) signs[k] = k < 257 ? 1 : -1;
  const DeviceArray<unsigned char> ones(encode(std::vector<float>(514, 1), CUDA_R_16BF)),
      numbers(encode(signs, CUDA_R_16BF));
  const DeviceArray<char> workspace(granted);
  const float one = 1, zero = 0;
  const auto product = [&] {
    cublasLtMatmulHeuristicResult_t result;
    int found = 0;
    CHECK(cublasLtMatmulAlgoGetHeuristic(handle, description, a.layout, b.layout, d.layout, d.layout, preference, 1,
                                         &result, &found) == CUBLAS_STATUS_SUCCESS);
    CHECK(cublasLtMatmul(handle, description, &one, ones.get(), a.layout, numbers.get(), b.layout, &zero,
                         d.memory.get(), d.layout, d.memory.get(), d.layout, &result.algo, workspace.get(), granted,
                         nullptr) == CUBLAS_STATUS_SUCCESS);
    return decode(d.memory.values(), CUDA_R_16BF)[0];
  };
  CHECK(product() == 0);
  for (const auto& [scheme, expected] : {std::pair{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE, 1.f},
                                         {CUBLASLT_REDUCTION_SCHEME_NONE, 1.f},
                                         {CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE, 0.f},
                                         {CUBLASLT_REDUCTION_SCHEME_INPLACE, 0.f}}) {
    const auto mask = static_cast<std::uint32_t>(scheme);
    CHECK(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &mask,
                                               sizeof mask) == CUBLAS_STATUS_SUCCESS);
    CHECK(product() == expected);
  }
  cublasLtMatmulPreferenceDestroy(preference);
  cublasLtMatmulDescDestroy(description);
  cublasLtDestroy(handle);
}

TEST_CASE("heuristics: workspaces only when granted, algorithms only for their problem") {
  cublasLtHandle_t handle = nullptr;
  cublasLtMatmulDesc_t description = nullptr;
  cublasLtMatmulPreference_t preference = nullptr;
  REQUIRE(cublasLtCreate(&handle) == CUBLAS_STATUS_SUCCESS);
  REQUIRE(cublasLtMatmulDescCreate(&description, CUBLAS_COMPUTE_32F, CUDA_R_32F) == CUBLAS_STATUS_SUCCESS);
  REQUIRE(cublasLtMatmulPreferenceCreate(&preference) == CUBLAS_STATUS_SUCCESS);
  const Matrix a(8, 8, CUBLASLT_ORDER_COL, CUDA_R_32F, 1, 0, 1), b(8, 8, CUBLASLT_ORDER_COL, CUDA_R_32F, 1, 0, 2),
      d(8, 8, CUBLASLT_ORDER_COL, CUDA_R_32F, 1, 0, 3);
  cublasLtMatmulHeuristicResult_t results[4];
  int found = -1;
  const auto ask = [&] {
    return cublasLtMatmulAlgoGetHeuristic(handle, description, a.layout, b.layout, d.layout, d.layout, preference, 4,
                                          results, &found);
  };
  CHECK(ask() == CUBLAS_STATUS_SUCCESS);
  CHECK(found == 1);
  CHECK(results[0].workspaceSize == 0);
  const std::uint64_t granted = 4 << 20;
  CHECK(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &granted,
                                             sizeof granted) == CUBLAS_STATUS_SUCCESS);
  CHECK(ask() == CUBLAS_STATUS_SUCCESS);
  REQUIRE(found == 2);
  const std::size_t needed = results[0].workspaceSize;
  CHECK(needed > 0);
  const DeviceArray<char> workspace(needed);
  const float one = 1, zero = 0;
  const auto multiply = [&](std::size_t bytes) {
    return cublasLtMatmul(handle, description, &one, a.memory.get(), a.layout, b.memory.get(), b.layout, &zero,
                          d.memory.get(), d.layout, d.memory.get(), d.layout, &results[0].algo, workspace.get(), bytes,
                          nullptr);
  };
  CHECK(multiply(needed) == CUBLAS_STATUS_SUCCESS);
  CHECK(multiply(needed - 1) == CUBLAS_STATUS_INVALID_VALUE);
  set(description, CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
  CHECK(multiply(needed) == CUBLAS_STATUS_INVALID_VALUE);
  set(description, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
  CHECK(ask() == CUBLAS_STATUS_INVALID_VALUE);
  CHECK(found == 0);
  cublasLtMatmulPreferenceDestroy(preference);
  cublasLtMatmulDescDestroy(description);
  cublasLtDestroy(handle);
}
