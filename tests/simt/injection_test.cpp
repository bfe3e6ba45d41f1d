// Failures on purpose, counts of calls, leaks: what tests of programs that use CUDA ask of the host layer.
#include "typeformer/simt/injection.hpp"
#include "support.hpp"
#include "typeformer/simt/cublaslt.hpp"
#include "typeformer/simt/tally.hpp"

namespace {

__global__ void add(float* data, float value) { data[threadIdx.x] += value; }
template <int times>
__global__ void add_often(float* data) {
  for (int k = 0; k < times; ++k) data[threadIdx.x] += 1;
}
__global__ void broken(float* data) {
  if (threadIdx.x < 3) __syncthreads();
  data[threadIdx.x] = 0;
}
__global__ void misaligned(float* data) { simt::store_vector(data + 1, make_float4(1, 2, 3, 4)); }

// A program with a call of each kind. Returns the first error, after it has cleaned up.
cudaError_t program(float& result) {
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  void *memory = nullptr, *pinned = nullptr;
  const auto work = [&] {
    if (const auto error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking)) return error;
    if (const auto error = cudaEventCreate(&event)) return error;
    if (const auto error = cudaMalloc(&memory, 128)) return error;
    if (const auto error = cudaMallocHost(&pinned, 128)) return error;
    if (const auto error = cudaMemsetAsync(memory, 0, 128, stream)) return error;
    if (const auto error = simt::launch(add, {1, 32, 0, stream}, static_cast<float*>(memory), 3.0f)) return error;
    if (const auto error = cudaMemcpyAsync(pinned, memory, 128, cudaMemcpyDeviceToHost, stream)) return error;
    if (const auto error = cudaEventRecord(event, stream)) return error;
    if (const auto error = cudaEventSynchronize(event)) return error;
    result = static_cast<float*>(pinned)[31];
    return cudaSuccess;
  };
  cudaError_t result_code = work();
  const auto keep = [&](cudaError_t error) {
    if (!result_code) result_code = error;
  };
  if (pinned) keep(cudaFreeHost(pinned));
  if (memory) keep(cudaFree(memory));
  if (event) keep(cudaEventDestroy(event));
  if (stream) keep(cudaStreamDestroy(stream));
  return result_code;
}

}  // namespace

TEST_CASE("each call fails in turn, and nothing leaks") {
  const auto before = simt::live_objects();
  std::uint64_t calls = 0;
  {
    float result = 0;
    const simt::Tally tally;
    CHECK(program(result) == cudaSuccess);
    CHECK(result == 3.0f);
    calls = tally.calls();
    CHECK(calls == 13);
  }
  std::string names;
  for (std::uint64_t nth = 1; nth <= calls; ++nth)
    for (const cudaError_t code : {cudaErrorUnknown, cudaErrorMemoryAllocation, cudaErrorIllegalAddress}) {
      float result = 0;
      const simt::FailCall fail(nth, code);
      CHECK(program(result) == code);
      CHECK(fail.fired());
      if (code == cudaErrorUnknown) names += fail.name() + " ";
      CHECK(cudaGetLastError() == code);
      CHECK_MESSAGE(simt::live_objects() == before, "after ", fail.name(), ": ", simt::live_objects().text());
    }
  CHECK(mentions(names, "cudaStreamCreateWithFlags cudaEventCreate cudaMalloc cudaMallocHost cudaMemsetAsync ",
                 "cudaLaunchKernel cudaMemcpyAsync cudaEventRecord cudaEventSynchronize cudaFreeHost cudaFree ",
                 "cudaEventDestroy cudaStreamDestroy "));
  const simt::FailCall late(calls + 1);
  float result = 0;
  CHECK(program(result) == cudaSuccess);
  CHECK_FALSE(late.fired());
}

TEST_CASE("a failure of some functions only") {
  float result = 0;
  const simt::FailCall fail(2, cudaErrorInvalidValue, "cudaE");
  CHECK(program(result) == cudaErrorInvalidValue);
  CHECK(fail.name() == "cudaEventRecord");
  cudaGetLastError();
}

TEST_CASE("a sticky error fails every call until the device is reset, others fail once") {
  const auto before = simt::live_objects();
  void* memory = nullptr;
  REQUIRE(cudaSetDevice(1) == cudaSuccess);
  {
    const simt::FailCall fail(1, cudaErrorInvalidValue);
    CHECK(cudaMalloc(&memory, 16) == cudaErrorInvalidValue);
    CHECK(cudaMalloc(&memory, 16) == cudaSuccess);
  }
  {
    const simt::FailCall fail(1, cudaErrorIllegalAddress);
    CHECK(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
    CHECK(cudaMemset(memory, 0, 16) == cudaErrorIllegalAddress);
    CHECK(cudaGetLastError() == cudaErrorIllegalAddress);
    CHECK(cudaGetLastError() == cudaErrorIllegalAddress);
    CHECK(cudaDeviceReset() == cudaSuccess);
    CHECK(cudaGetLastError() == cudaSuccess);
    CHECK(cudaMemset(memory, 0, 16) == cudaErrorInvalidValue);  // gone with the reset
    CHECK(cudaFree(memory) == cudaErrorInvalidValue);
  }
  CHECK(simt::live_objects() == before);
  cudaGetLastError();
  REQUIRE(cudaSetDevice(0) == cudaSuccess);
}

TEST_CASE("a reset takes streams and events along") {
  REQUIRE(cudaSetDevice(1) == cudaSuccess);
  const auto before = simt::live_objects();
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  void* pinned = nullptr;
  REQUIRE(cudaStreamCreate(&stream) == cudaSuccess);
  REQUIRE(cudaEventCreate(&event) == cudaSuccess);
  REQUIRE(cudaMallocHost(&pinned, 8) == cudaSuccess);
  REQUIRE(cudaDeviceReset() == cudaSuccess);
  CHECK(simt::live_objects() == before);
  CHECK(cudaStreamSynchronize(stream) == cudaErrorInvalidResourceHandle);
  CHECK(cudaEventRecord(event, nullptr) == cudaErrorInvalidResourceHandle);
  CHECK(cudaStreamDestroy(stream) == cudaErrorInvalidResourceHandle);
  CHECK(cudaEventDestroy(event) == cudaErrorInvalidResourceHandle);
  cudaGetLastError();
  REQUIRE(cudaSetDevice(0) == cudaSuccess);
}

TEST_CASE("a kernel's fault as a GPU tells it: a status that stays") {
  const DeviceArray<float> data(std::vector<float>(64, 0.0f));
  {
    const simt::StickyFaults as_on_a_gpu;
    CHECK(simt::launch(broken, {1, 64}, data.get()) == cudaSuccess);
    CHECK(cudaDeviceSynchronize() == cudaErrorLaunchFailure);
    CHECK(mentions(simt::last_fault(), "divergent barriers"));
    CHECK(simt::launch(add, {1, 64}, data.get(), 1.0f) == cudaErrorLaunchFailure);
    CHECK(cudaStreamSynchronize(nullptr) == cudaErrorLaunchFailure);
    CHECK(cudaPeekAtLastError() == cudaErrorLaunchFailure);
  }
  CHECK(cudaGetLastError() == cudaSuccess);
  {
    const simt::StickyFaults as_on_a_gpu;
    CHECK(simt::launch(misaligned, {1, 1}, data.get()) == cudaSuccess);
    CHECK(cudaDeviceSynchronize() == cudaErrorMisalignedAddress);
  }
  {
    const simt::StickyFaults as_on_a_gpu;
    float host[64] = {};
    CHECK(simt::launch(add, {1, 64}, host, 1.0f) != cudaSuccess);
    CHECK(mentions(simt::last_fault(), "host memory"));
    CHECK(cudaDeviceSynchronize() != cudaSuccess);
  }
  CHECK(data.values()[5] == 0.0f);
}

TEST_CASE("memory runs out at the n-th allocation, or at a limit") {
  void *first = nullptr, *second = nullptr, *pinned = nullptr;
  {
    const simt::FailAllocation fail(2);
    CHECK(cudaMalloc(&first, 16) == cudaSuccess);
    CHECK(cudaMemset(first, 0, 16) == cudaSuccess);
    CHECK(cudaMallocHost(&pinned, 16) == cudaErrorMemoryAllocation);
    CHECK(cudaMallocAsync(&second, 16, nullptr) == cudaSuccess);
    CHECK(fail.fired());
  }
  CHECK(cudaFree(first) == cudaSuccess);
  CHECK(cudaFree(second) == cudaSuccess);
  {
    const std::size_t used = simt::live_objects().bytes;
    const simt::MemoryLimit limit(used + 1000);
    std::size_t free_bytes = 0, total = 0;
    REQUIRE(cudaMemGetInfo(&free_bytes, &total) == cudaSuccess);
    CHECK(total == used + 1000);
    CHECK(free_bytes == 1000);
    CHECK(cudaMalloc(&first, 600) == cudaSuccess);
    CHECK(cudaMalloc(&second, 600) == cudaErrorMemoryAllocation);
    REQUIRE(cudaMemGetInfo(&free_bytes, &total) == cudaSuccess);
    CHECK(free_bytes == 400);
    CHECK(cudaMalloc(&second, 400) == cudaSuccess);
    CHECK(cudaFree(first) == cudaSuccess);
    CHECK(cudaFree(second) == cudaSuccess);
  }
  CHECK(cudaGetLastError() == cudaErrorMemoryAllocation);
}

TEST_CASE("cuBLASLt: its calls count and fail, its objects are alive or not") {
  const auto before = simt::live_objects();
  const simt::Tally tally;
  cublasLtHandle_t handle = nullptr;
  cublasLtMatmulDesc_t description = nullptr;
  cublasLtMatrixLayout_t layout = nullptr;
  cublasLtMatmulPreference_t preference = nullptr;
  REQUIRE(cublasLtCreate(&handle) == CUBLAS_STATUS_SUCCESS);
  REQUIRE(cublasLtMatmulDescCreate(&description, CUBLAS_COMPUTE_32F, CUDA_R_32F) == CUBLAS_STATUS_SUCCESS);
  REQUIRE(cublasLtMatrixLayoutCreate(&layout, CUDA_R_32F, 8, 8, 8) == CUBLAS_STATUS_SUCCESS);
  REQUIRE(cublasLtMatmulPreferenceCreate(&preference) == CUBLAS_STATUS_SUCCESS);
  const DeviceArray<float> data(std::vector<float>(64, 1.0f)), out(64);
  const float one = 1, zero = 0;
  const auto multiply = [&] {
    return cublasLtMatmul(handle, description, &one, data.get(), layout, data.get(), layout, &zero, out.get(), layout,
                          out.get(), layout, nullptr, nullptr, 0, nullptr);
  };
  const auto now = simt::live_objects();
  CHECK(now.blas_handles == before.blas_handles + 1);
  CHECK(now.blas_descriptions == before.blas_descriptions + 1);
  CHECK(now.blas_layouts == before.blas_layouts + 1);
  CHECK(now.blas_preferences == before.blas_preferences + 1);
  {
    const simt::FailCall fail(2, cudaErrorUnknown, "cublasLt");
    CHECK(multiply() == CUBLAS_STATUS_SUCCESS);
    CHECK(multiply() == CUBLAS_STATUS_INTERNAL_ERROR);
    CHECK(cudaPeekAtLastError() == cudaSuccess);  // not the runtime's
    const simt::FailCall other(1, cudaErrorUnknown, "cublasLtMatmul", CUBLAS_STATUS_ALLOC_FAILED);
    CHECK(multiply() == CUBLAS_STATUS_ALLOC_FAILED);
  }
  {
    const simt::FailCall fail(1, cudaErrorIllegalAddress, "cudaDeviceS");
    CHECK(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
    CHECK(multiply() == CUBLAS_STATUS_EXECUTION_FAILED);
  }
  CHECK(tally.calls("cublasLtMatmul") == 4 + 2);  // two creations
  CHECK(tally.products() == 1);
  {
    const simt::FailCall fail(1, cudaErrorUnknown, "cublasLtMatrixLayoutDestroy");
    CHECK(cublasLtMatrixLayoutDestroy(layout) == CUBLAS_STATUS_INTERNAL_ERROR);
  }
  CHECK(cublasLtMatmulPreferenceDestroy(preference) == CUBLAS_STATUS_SUCCESS);
  CHECK(cublasLtMatmulDescDestroy(description) == CUBLAS_STATUS_SUCCESS);
  CHECK(cublasLtMatmulDescDestroy(description) == CUBLAS_STATUS_INVALID_VALUE);
  CHECK(cublasLtDestroy(handle) == CUBLAS_STATUS_SUCCESS);
  const auto end = simt::live_objects();
  CHECK(end.blas_layouts == before.blas_layouts);
  CHECK(end.blas_handles == before.blas_handles);
}

TEST_CASE("launches by name, copies, waits") {
  const DeviceArray<float> data(std::vector<float>(32, 0.0f));
  const simt::Tally tally;
  for (int k = 0; k < 3; ++k) CHECK(simt::launch(add, {1, 32}, data.get(), 1.0f) == cudaSuccess);
  CHECK(simt::launch(add_often<2>, {1, 32}, data.get()) == cudaSuccess);
  CHECK(simt::launch(add_often<5>, {1, 32}, data.get()) == cudaSuccess);
  CHECK(tally.launches() == 5);
  CHECK(tally.launches("add") == 3);
  CHECK(tally.launches("add_often") == 2);
  CHECK(tally.launches("broken") == 0);
  CHECK(tally.kernels() == std::map<std::string, std::uint64_t>{{"add", 3}, {"add_often", 2}});
  CHECK(tally.waits() == 0);
  CHECK(data.values()[0] == 10.0f);
  CHECK(tally.copies() == 1);
  CHECK(tally.copied_bytes() == 128);
  CHECK(tally.waits() == 1);
  CHECK(cudaMemset(data.get(), 0, 4) == cudaSuccess);
  CHECK(tally.fills() == 1);
  CHECK(tally.allocations() == 0);
}

TEST_CASE("memory freed in a stream before an operation that was given it has run") {
  void *memory = nullptr, *other = nullptr;
  REQUIRE(cudaMallocAsync(&memory, 256, nullptr) == cudaSuccess);
  REQUIRE(cudaMalloc(&other, 256) == cudaSuccess);
  REQUIRE(cudaFreeAsync(memory, nullptr) == cudaSuccess);
  CHECK(cudaFreeAsync(memory, nullptr) == cudaErrorInvalidValue);
  REQUIRE(cudaMemcpyAsync(other, memory, 256, cudaMemcpyDeviceToDevice, nullptr) == cudaSuccess);
  std::string report;
  try {
    cudaDeviceSynchronize();
  } catch (const simt::Fault& fault) {
    report = fault.what();
  }
  CHECK(mentions(report, "cudaMemcpyAsync", "freed before"));
  CHECK(cudaFree(other) == cudaSuccess);
  cudaGetLastError();
}
