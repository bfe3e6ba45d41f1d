// What CUDA documents of single functions: when they wait, what they read and when, which arguments they refuse.
#include <cmath>

#include "streams.hpp"
#include "support.hpp"
#include "typeformer/simt/injection.hpp"

namespace {

__global__ void add(float* data, float value) { data[threadIdx.x] += value; }

}  // namespace

TEST_CASE("pinned memory is read and written when the stream gets there, and starts as NaN") {
  const OwnStream own(cudaStreamNonBlocking);
  const DeviceArray<float> a(std::vector<float>(32, 1.0f));
  void* memory = nullptr;
  REQUIRE(cudaHostAlloc(&memory, 128, cudaHostAllocPortable) == cudaSuccess);
  auto* pinned = static_cast<float*>(memory);
  CHECK(std::isnan(pinned[31]));
  CHECK(cudaMemcpyAsync(pinned, a.get(), 128, cudaMemcpyDeviceToHost, own.stream) == cudaSuccess);
  CHECK(std::isnan(pinned[31]));
  CHECK(cudaMemcpyAsync(a.get(), pinned, 64, cudaMemcpyHostToDevice, own.stream) == cudaSuccess);
  pinned[0] = 5;  // overwritten by the first copy before the second one reads
  CHECK(cudaStreamSynchronize(own.stream) == cudaSuccess);
  CHECK(pinned[31] == 1.0f);
  CHECK(a.values()[0] == 1.0f);
  CHECK(cudaMemset(pinned, 0, 128) == cudaSuccess);  // the host waits for it
  CHECK(pinned[7] == 0.0f);
  void* mapped = nullptr;
  CHECK(cudaHostGetDevicePointer(&mapped, pinned, 0) == cudaSuccess);
  run(add, {1, 32}, static_cast<float*>(mapped), 2.0f);
  CHECK(pinned[31] == 2.0f);
  CHECK(simt::launch(add, {1, 32, 0, own.stream}, pinned, 1.0f) == cudaSuccess);
  CHECK(cudaFreeHost(memory) == cudaSuccess);  // waits for the kernel
  CHECK(cudaHostAlloc(&memory, 128, 0x80) == cudaErrorInvalidValue);
  CHECK(cudaHostGetDevicePointer(&mapped, &mapped, 0) == cudaErrorInvalidValue);
  CHECK(cudaMallocHost(&memory, 0) == cudaSuccess);
  CHECK(memory == nullptr);
  cudaGetLastError();
}

TEST_CASE("copies of rows") {
  const DeviceArray<float> a(std::vector<float>(12, 0.0f));
  const std::vector<float> rows{1, 2, 3, 4, 5, 6};
  std::vector<float> back(6, 0.0f);
  CHECK(cudaMemcpy2D(a.get(), 16, rows.data(), 8, 8, 3, cudaMemcpyHostToDevice) == cudaSuccess);
  CHECK(a.values() == std::vector<float>{1, 2, 0, 0, 3, 4, 0, 0, 5, 6, 0, 0});
  CHECK(cudaMemcpy2DAsync(back.data(), 8, a.get(), 16, 8, 3, cudaMemcpyDeviceToHost, nullptr) == cudaSuccess);
  CHECK(cudaStreamSynchronize(nullptr) == cudaSuccess);
  CHECK(back == rows);
  CHECK(cudaMemcpy2D(a.get(), 16, rows.data(), 8, 12, 2, cudaMemcpyHostToDevice) == cudaErrorInvalidPitchValue);
  CHECK(cudaMemcpy2D(a.get(), 16, rows.data(), 8, 8, 4, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
  CHECK(cudaMemcpy2D(a.get(), 16, rows.data(), 8, 0, 9, cudaMemcpyHostToDevice) == cudaSuccess);
  cudaGetLastError();
}

TEST_CASE("the host waits neither for fills of device memory nor for copies between devices' memory") {
  const OwnStream own(cudaStreamNonBlocking);
  const DeviceArray<float> a(std::vector<float>(32, 1.0f)), b(std::vector<float>(32, 2.0f));
  CHECK(cudaMemset(a.get(), 0, 128) == cudaSuccess);
  CHECK(cudaMemcpy(b.get(), a.get(), 128, cudaMemcpyDeviceToDevice) == cudaSuccess);
  CHECK(cudaStreamQuery(nullptr) == cudaErrorNotReady);
  CHECK(b.values()[3] == 0.0f);
}

TEST_CASE("a stream's work goes on after its destruction") {
  const DeviceArray<float> a(std::vector<float>(32, 1.0f));
  cudaStream_t stream = nullptr;
  REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
  float result = -1;
  CHECK(simt::launch(add, {1, 32, 0, stream}, a.get(), 2.0f) == cudaSuccess);
  CHECK(cudaMemcpyAsync(&result, a.get(), 4, cudaMemcpyDeviceToHost, stream) == cudaSuccess);
  CHECK(cudaStreamDestroy(stream) == cudaSuccess);
  CHECK(result == -1.0f);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  CHECK(result == 3.0f);
  CHECK(cudaStreamDestroy(stream) == cudaErrorInvalidResourceHandle);
  CHECK(cudaMemsetAsync(a.get(), 0, 4, stream) == cudaErrorInvalidResourceHandle);
  cudaGetLastError();
}

TEST_CASE("events: the last record before the call counts, none is none, timing may be off") {
  const OwnStream first(cudaStreamNonBlocking), second(cudaStreamNonBlocking);
  const OwnEvent event, untimed(cudaEventDisableTiming);
  const DeviceArray<float> a(std::vector<float>(32, 0.0f)), b(std::vector<float>(32, 0.0f));
  CHECK(cudaStreamWaitEvent(second.stream, event.event, 0) == cudaSuccess);  // never recorded
  CHECK(cudaEventSynchronize(event.event) == cudaSuccess);
  CHECK(simt::launch(add, {1, 32, 0, first.stream}, a.get(), 1.0f) == cudaSuccess);
  CHECK(cudaEventRecord(event.event, first.stream) == cudaSuccess);
  CHECK(cudaStreamWaitEvent(second.stream, event.event, 0) == cudaSuccess);
  CHECK(simt::launch(add, {1, 32, 0, first.stream}, b.get(), 1.0f) == cudaSuccess);
  CHECK(cudaEventRecord(event.event, first.stream) == cudaSuccess);  // does not change what second waits for
  CHECK(simt::launch(add, {1, 32, 0, second.stream}, a.get(), 1.0f) == cudaSuccess);
  CHECK(cudaStreamSynchronize(second.stream) == cudaSuccess);
  CHECK(cudaEventSynchronize(event.event) == cudaSuccess);
  CHECK(a.values()[0] == 2.0f);
  CHECK(b.values()[0] == 1.0f);
  float time = -1;
  CHECK(cudaEventRecord(untimed.event, first.stream) == cudaSuccess);
  CHECK(cudaEventSynchronize(untimed.event) == cudaSuccess);
  CHECK(cudaEventElapsedTime(&time, event.event, untimed.event) == cudaErrorInvalidResourceHandle);
  cudaEvent_t gone = nullptr;
  CHECK(cudaEventCreateWithFlags(&gone, 0x40) == cudaErrorInvalidValue);
  CHECK(cudaEventCreateWithFlags(&gone, cudaEventInterprocess) == cudaErrorInvalidValue);
  CHECK(cudaEventRecord(gone, first.stream) == cudaErrorInvalidResourceHandle);
  CHECK(cudaEventDestroy(gone) == cudaErrorInvalidResourceHandle);
  cudaGetLastError();
}

TEST_CASE("attributes of kernels, and how many blocks fit") {
  cudaFuncAttributes attributes{};
  const auto* kernel = reinterpret_cast<const void*>(add);
  REQUIRE(cudaFuncGetAttributes(&attributes, kernel) == cudaSuccess);
  CHECK(attributes.maxThreadsPerBlock == 1024);
  CHECK(attributes.maxDynamicSharedSizeBytes == 48 << 10);
  int blocks = -1;
  const auto fit = [&](int threads, std::size_t bytes) {
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, bytes) == cudaSuccess);
    return blocks;
  };
  CHECK(fit(128, 0) == 16);
  CHECK(fit(33, 0) == 32);
  CHECK(fit(1024, 0) == 2);
  CHECK(fit(128, 40 << 10) == 4);
  CHECK(fit(128, 100 << 10) == 0);
  REQUIRE(simt::allow_shared(add, 100 << 10) == cudaSuccess);
  CHECK(fit(128, 100 << 10) == 1);
  CHECK(fit(1025, 0) == 0);
  int value = 0;
  CHECK(cudaDeviceGetAttribute(&value, cudaDevAttrReservedSharedMemoryPerBlock, 0) == cudaSuccess);
  CHECK(value == 1024);
  CHECK(std::string(cudaGetErrorName(cudaErrorStreamCaptureMerge)) == "cudaErrorStreamCaptureMerge");
}
