// The stand-in for the CUDA runtime: order of streams, deferred work, events, graphs, statuses.
#include <cmath>
#include <thread>

#include "streams.hpp"
#include "support.hpp"

namespace {

__global__ void add(float* data, float value, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) data[i] += value;
}
__global__ void copy(const float* from, float* to, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) to[i] = from[i];
}
__global__ void broken(float* data) {
  if (threadIdx.x < 3) __syncthreads();
  data[threadIdx.x] = 0;
}

}  // namespace

TEST_CASE("fresh device memory is NaN, copies and fills arrive") {
  const DeviceArray<float> array(100);
  for (const float x : array.values()) CHECK(std::isnan(x));
  CHECK(cudaMemset(array.get(), 0, 200) == cudaSuccess);
  const auto values = array.values();
  CHECK(values[49] == 0.0f);
  CHECK(std::isnan(values[50]));
  const std::vector<float> source{1, 2, 3, 4, 5, 6};
  CHECK(cudaMemcpy2DAsync(array.get(), 16, source.data(), 12, 8, 2, cudaMemcpyHostToDevice, nullptr) == cudaSuccess);
  const auto pitched = array.values();
  CHECK(pitched[0] == 1);
  CHECK(pitched[1] == 2);
  CHECK(pitched[2] == 0);
  CHECK(pitched[4] == 4);
  CHECK(pitched[5] == 5);
}

TEST_CASE("work waits for a synchronization: forgetting it leaves old data") {
  const OwnStream own;
  const DeviceArray<float> array(std::vector<float>(64, 1.0f));
  std::vector<float> result(64, -1.0f);
  CHECK(simt::launch(add, {1, 64, 0, own.stream}, array.get(), 2.0f, 64) == cudaSuccess);
  CHECK(cudaMemcpyAsync(result.data(), array.get(), 256, cudaMemcpyDeviceToHost, own.stream) == cudaSuccess);
  CHECK(result[5] == -1.0f);
  CHECK(cudaStreamSynchronize(own.stream) == cudaSuccess);
  CHECK(result[5] == 3.0f);
}

TEST_CASE("an upload from pageable memory reads at the call, from pinned memory when it runs") {
  const OwnStream own;
  const DeviceArray<float> array(2);
  float pageable = 1;
  void* pinned = nullptr;
  REQUIRE(cudaMallocHost(&pinned, 4) == cudaSuccess);
  *static_cast<float*>(pinned) = 1;
  CHECK(cudaMemcpyAsync(array.get(), &pageable, 4, cudaMemcpyHostToDevice, own.stream) == cudaSuccess);
  CHECK(cudaMemcpyAsync(array.get() + 1, pinned, 4, cudaMemcpyHostToDevice, own.stream) == cudaSuccess);
  pageable = 2;
  *static_cast<float*>(pinned) = 2;
  CHECK(cudaStreamSynchronize(own.stream) == cudaSuccess);
  CHECK(array.values() == std::vector<float>{1, 2});
  CHECK(cudaFreeHost(pinned) == cudaSuccess);
  CHECK(cudaFreeHost(pinned) == cudaErrorInvalidValue);
}

TEST_CASE("events order streams, and without one they are not ordered") {
  const OwnStream first(cudaStreamNonBlocking), second(cudaStreamNonBlocking);
  const OwnEvent ready;
  const DeviceArray<float> a(std::vector<float>(64, 0.0f)), b(64);
  int stale = 0;
  for (int round = 0; round < 40; ++round) {
#if defined(TYPEFORMER_SIMT_RACECHECK)
    const bool ordered = true;  // else it would be reported
#else
    const bool ordered = round % 2 == 0;
#endif
    REQUIRE(cudaMemset(a.get(), 0, 256) == cudaSuccess);
    REQUIRE(cudaStreamSynchronize(nullptr) == cudaSuccess);  // the host does not wait for a fill
    for (int k = 0; k < 4; ++k) REQUIRE(simt::launch(add, {1, 64, 0, first.stream}, a.get(), 1.0f, 64) == cudaSuccess);
    REQUIRE(cudaEventRecord(ready.event, first.stream) == cudaSuccess);
    if (ordered) REQUIRE(cudaStreamWaitEvent(second.stream, ready.event, 0) == cudaSuccess);
    REQUIRE(simt::launch(copy, {1, 64, 0, second.stream}, static_cast<const float*>(a.get()), b.get(), 64) ==
            cudaSuccess);
    REQUIRE(cudaStreamSynchronize(second.stream) == cudaSuccess);
    REQUIRE(cudaStreamSynchronize(first.stream) == cudaSuccess);
    const float got = b.values()[7];
    if (ordered)
      CHECK(got == 4.0f);
    else
      stale += got != 4.0f;
  }
#if !defined(TYPEFORMER_SIMT_RACECHECK)
  CHECK(stale > 0);
#endif
}

TEST_CASE("the null stream and blocking streams wait for each other") {
  const OwnStream own;
  const DeviceArray<float> a(std::vector<float>(64, 0.0f));
  for (int round = 0; round < 10; ++round) {
    REQUIRE(simt::launch(add, {1, 64, 0, own.stream}, a.get(), 1.0f, 64) == cudaSuccess);
    REQUIRE(cudaMemset(a.get(), 0, 256) == cudaSuccess);
    REQUIRE(simt::launch(add, {1, 64, 0, own.stream}, a.get(), 2.0f, 64) == cudaSuccess);
    CHECK(a.values()[3] == 2.0f);
  }
}

TEST_CASE("queries make progress, elapsed times exist") {
  const OwnStream own;
  const OwnEvent start, end;
  const DeviceArray<float> a(std::vector<float>(64, 0.0f));
  float time = -1;
  CHECK(cudaEventQuery(start.event) == cudaSuccess);
  CHECK(cudaEventElapsedTime(&time, start.event, end.event) == cudaErrorInvalidResourceHandle);
  CHECK(cudaEventRecord(start.event, own.stream) == cudaSuccess);
  for (int k = 0; k < 3; ++k) CHECK(simt::launch(add, {1, 64, 0, own.stream}, a.get(), 1.0f, 64) == cudaSuccess);
  CHECK(cudaEventRecord(end.event, own.stream) == cudaSuccess);
  CHECK(cudaEventElapsedTime(&time, start.event, end.event) == cudaErrorNotReady);
  CHECK(cudaStreamQuery(own.stream) == cudaErrorNotReady);
  int questions = 0;
  while (cudaEventQuery(end.event) == cudaErrorNotReady) ++questions;
  CHECK(questions > 0);
  CHECK(cudaStreamQuery(own.stream) == cudaSuccess);
  CHECK(cudaEventElapsedTime(&time, start.event, end.event) == cudaSuccess);
  CHECK(time >= 0.0f);
  cudaGetLastError();
}

TEST_CASE("what is wrong is a status, and the first call afterwards tells it once") {
  cudaGetLastError();
  const DeviceArray<float> a(16);
  float host[16] = {};
  CHECK(cudaMemcpy(a.get(), host, 65, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
  CHECK(cudaMemcpy(host, a.get() + 1, 64, cudaMemcpyDeviceToHost) == cudaErrorInvalidValue);
  CHECK(cudaMemcpy(host, host, 64, cudaMemcpyDeviceToHost) == cudaErrorInvalidValue);
  CHECK(cudaMemcpy(a.get(), host, 64, cudaMemcpyDeviceToDevice) == cudaErrorInvalidValue);
  CHECK(cudaMemcpy(host, nullptr, 64, cudaMemcpyHostToHost) == cudaErrorInvalidValue);
  CHECK(cudaMemset(a.get(), 0, 65) == cudaErrorInvalidValue);
  CHECK(cudaMemset(host, 0, 4) == cudaErrorInvalidValue);
  CHECK(cudaFree(host) == cudaErrorInvalidValue);
  CHECK(cudaFree(a.get() + 1) == cudaErrorInvalidValue);
  CHECK(cudaFree(nullptr) == cudaSuccess);
  CHECK(cudaSetDevice(2) == cudaErrorInvalidDevice);
  void* pointer = nullptr;
  CHECK(cudaMalloc(&pointer, std::size_t{1} << 40) == cudaErrorMemoryAllocation);
  CHECK(cudaPeekAtLastError() == cudaErrorMemoryAllocation);
  CHECK(std::string(cudaGetErrorString(cudaGetLastError())) == "out of memory");
  CHECK(cudaGetLastError() == cudaSuccess);
}

TEST_CASE("memory freed in a stream lives until the stream gets there") {
  const OwnStream own;
  void* pointer = nullptr;
  REQUIRE(cudaMallocAsync(&pointer, 256, own.stream) == cudaSuccess);
  REQUIRE(cudaMemsetAsync(pointer, 0, 256, own.stream) == cudaSuccess);
  float result = 1;
  REQUIRE(cudaMemcpyAsync(&result, pointer, 4, cudaMemcpyDeviceToHost, own.stream) == cudaSuccess);
  REQUIRE(cudaFreeAsync(pointer, own.stream) == cudaSuccess);
  REQUIRE(cudaStreamSynchronize(own.stream) == cudaSuccess);
  CHECK(result == 0.0f);
  CHECK(cudaFreeAsync(pointer, own.stream) == cudaErrorInvalidValue);
  cudaGetLastError();
}

TEST_CASE("a fault leaves destructors alone and empties the queues") {
  const DeviceArray<float> a(std::vector<float>(64, 0.0f));
  {
    const OwnStream own;
    REQUIRE(simt::launch(broken, {1, 64, 0, own.stream}, a.get()) == cudaSuccess);
    REQUIRE(simt::launch(add, {1, 64, 0, own.stream}, a.get(), 1.0f, 64) == cudaSuccess);
    const DeviceArray<float> other(4);  // its cudaFree waits, and fails quietly
  }
  CHECK(cudaGetLastError() == cudaErrorLaunchFailure);
  CHECK(simt::runtime().last_fault.find("divergent barriers") != std::string::npos);
  CHECK(a.values()[0] == 0.0f);
}

TEST_CASE("the imaginary device describes itself consistently") {
  cudaDeviceProp properties;
  int value = 0, count = 0;
  REQUIRE(cudaGetDeviceCount(&count) == cudaSuccess);
  CHECK(count == 2);
  REQUIRE(cudaGetDeviceProperties(&properties, 1) == cudaSuccess);
  CHECK(cudaGetDeviceProperties(&properties, 2) == cudaErrorInvalidDevice);
  CHECK(properties.major == 8);
  CHECK(properties.sharedMemPerBlockOptin == 163 * 1024);
  REQUIRE(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 0) == cudaSuccess);
  CHECK(value == properties.multiProcessorCount);
  REQUIRE(cudaDeviceGetAttribute(&value, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0) == cudaSuccess);
  CHECK(static_cast<std::size_t>(value) == properties.sharedMemPerBlockOptin);
  std::size_t free_bytes = 0, total = 0;
  REQUIRE(cudaMemGetInfo(&free_bytes, &total) == cudaSuccess);
  CHECK(free_bytes <= total);
}

TEST_CASE("two GPUs: each thread has a current one, and streams, events and memory belong to one") {
  int current = -1;
  const OwnStream first;
  const OwnEvent event;
  const DeviceArray<float> a(std::vector<float>(64, 0.0f));
  REQUIRE(cudaSetDevice(1) == cudaSuccess);
  {
    const OwnStream second;
    const DeviceArray<float> b(std::vector<float>(64, 0.0f));
    std::thread([&] { CHECK((cudaGetDevice(&current) == cudaSuccess && current == 0)); }).join();
    CHECK((cudaGetDevice(&current) == cudaSuccess && current == 1));
    CHECK(simt::launch(add, {1, 64, 0, first.stream}, a.get(), 1.0f, 64) == cudaErrorInvalidResourceHandle);
    CHECK(cudaMemsetAsync(a.get(), 0, 4, first.stream) == cudaErrorInvalidResourceHandle);
    CHECK(cudaEventRecord(event.event, second.stream) == cudaErrorInvalidResourceHandle);
    CHECK(mentions(fault_of(add, {1, 64, 0, second.stream}, a.get(), 1.0f, 64), "memory of GPU 1", "of GPU 0"));
    CHECK(cudaMemcpyAsync(b.get(), a.get(), 256, cudaMemcpyDeviceToDevice, first.stream) == cudaSuccess);
    CHECK(cudaStreamSynchronize(first.stream) == cudaSuccess);
    CHECK(simt::launch(add, {1, 64, 0, second.stream}, b.get(), 3.0f, 64) == cudaSuccess);
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
    CHECK(b.values()[63] == 3.0f);
    CHECK(cudaFuncSetAttribute(reinterpret_cast<const void*>(copy), cudaFuncAttributeMaxDynamicSharedMemorySize,
                               99999) == cudaSuccess);
    REQUIRE(cudaSetDevice(0) == cudaSuccess);
    CHECK(simt::launch(copy, {1, 64, 99999, first.stream}, static_cast<const float*>(a.get()), a.get(), 64) ==
          cudaErrorInvalidValue);
    cudaPointerAttributes attributes{};
    CHECK((cudaPointerGetAttributes(&attributes, b.get() + 3) == cudaSuccess && attributes.device == 1));
    CHECK(attributes.type == cudaMemoryTypeDevice);
    CHECK((cudaPointerGetAttributes(&attributes, a.get()) == cudaSuccess && attributes.device == 0));
  }
  cudaPointerAttributes attributes{};
  CHECK((cudaPointerGetAttributes(&attributes, &current) == cudaSuccess &&
         attributes.type == cudaMemoryTypeUnregistered));
  void* pinned = nullptr;
  REQUIRE(cudaMallocHost(&pinned, 8) == cudaSuccess);
  CHECK((cudaPointerGetAttributes(&attributes, pinned) == cudaSuccess && attributes.type == cudaMemoryTypeHost));
  CHECK(cudaFreeHost(pinned) == cudaSuccess);
  cudaGetLastError();
}

TEST_CASE("two host threads, each with its own stream") {
  const auto work = [](float value, float* result) {
    cudaStream_t stream = nullptr;
    void* memory = nullptr;
    float start[64] = {};
    bool good = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess &&
                cudaMalloc(&memory, 256) == cudaSuccess;
    auto* data = static_cast<float*>(memory);
    good = good && cudaMemcpyAsync(data, start, 256, cudaMemcpyHostToDevice, stream) == cudaSuccess;
    for (int k = 0; good && k < 20; ++k) good = simt::launch(add, {1, 64, 0, stream}, data, value, 64) == cudaSuccess;
    good = good && cudaMemcpyAsync(start, data, 256, cudaMemcpyDeviceToHost, stream) == cudaSuccess;
    good = good && cudaStreamSynchronize(stream) == cudaSuccess;
    *result = good ? start[63] : -1;
    cudaFree(data);
    cudaStreamDestroy(stream);
  };
  float one = 0, two = 0;
  std::thread other(work, 1.0f, &one);
  work(2.0f, &two);
  other.join();
  CHECK(one == 20.0f);
  CHECK(two == 40.0f);
}
