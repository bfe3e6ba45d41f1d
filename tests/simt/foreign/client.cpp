// A program that knows nothing of the host layer: NVIDIA's headers and functions only, linked with the stand-ins.
#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

namespace {

bool multiply(std::vector<float>& result) {
  constexpr int rows = 24, columns = 17, inner = 40;
  std::vector<float> a(rows * inner), b(inner * columns);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = std::sin(0.1f * static_cast<float>(i));
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = std::cos(0.3f * static_cast<float>(i));
  void *da = nullptr, *db = nullptr, *dd = nullptr;
  cudaStream_t stream = nullptr;
  cublasLtHandle_t handle = nullptr;
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatrixLayout_t la = nullptr, lb = nullptr, ld = nullptr;
  const cublasOperation_t transposed = CUBLAS_OP_T;
  const float one = 1, zero = 0;
  result.assign(rows * columns, 0.0f);
  bool good = cudaMalloc(&da, a.size() * 4) == cudaSuccess && cudaMalloc(&db, b.size() * 4) == cudaSuccess &&
              cudaMalloc(&dd, result.size() * 4) == cudaSuccess && cudaStreamCreate(&stream) == cudaSuccess &&
              cudaMemcpyAsync(da, a.data(), a.size() * 4, cudaMemcpyHostToDevice, stream) == cudaSuccess &&
              cudaMemcpyAsync(db, b.data(), b.size() * 4, cudaMemcpyHostToDevice, stream) == cudaSuccess &&
              cublasLtCreate(&handle) == CUBLAS_STATUS_SUCCESS &&
              cublasLtMatmulDescCreate(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F) == CUBLAS_STATUS_SUCCESS &&
              cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed) ==
                  CUBLAS_STATUS_SUCCESS &&
              cublasLtMatrixLayoutCreate(&la, CUDA_R_32F, inner, rows, inner) == CUBLAS_STATUS_SUCCESS &&
              cublasLtMatrixLayoutCreate(&lb, CUDA_R_32F, inner, columns, inner) == CUBLAS_STATUS_SUCCESS &&
              cublasLtMatrixLayoutCreate(&ld, CUDA_R_32F, rows, columns, rows) == CUBLAS_STATUS_SUCCESS &&
              cublasLtMatmul(handle, operation, &one, da, la, db, lb, &zero, dd, ld, dd, ld, nullptr, nullptr, 0,
                             stream) == CUBLAS_STATUS_SUCCESS &&
              cudaMemcpyAsync(result.data(), dd, result.size() * 4, cudaMemcpyDeviceToHost, stream) == cudaSuccess &&
              cudaStreamSynchronize(stream) == cudaSuccess;
  for (int i = 0; good && i < rows; ++i)
    for (int j = 0; j < columns; ++j) {
      double sum = 0;
      for (int k = 0; k < inner; ++k)
        sum += static_cast<double>(a[static_cast<std::size_t>(i * inner + k)]) *
               b[static_cast<std::size_t>(j * inner + k)];
      good = good && std::fabs(result[static_cast<std::size_t>(j * rows + i)] - sum) < 1e-4;
    }
  cublasLtMatrixLayoutDestroy(la);
  cublasLtMatrixLayoutDestroy(lb);
  cublasLtMatrixLayoutDestroy(ld);
  cublasLtMatmulDescDestroy(operation);
  cublasLtDestroy(handle);
  cudaStreamDestroy(stream);
  for (void* pointer : {da, db, dd}) cudaFree(pointer);
  return good;
}

}  // namespace

int main() {
  std::vector<float> result;
  const bool good = multiply(result);
  std::puts(good ? "right" : "wrong");
  return good ? 0 : 1;
}
