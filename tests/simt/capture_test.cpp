// What CUDA forbids while a stream is captured, to whom, and what becomes of the capture.
#include <functional>
#include <thread>

#include "streams.hpp"
#include "support.hpp"

namespace {

__global__ void add(float* data, float value) { data[threadIdx.x] += value; }

// The stream is captured, `code` makes a forbidden call: what it says, and that the capture is lost.
template <class Code>
void forbidden(cudaError_t expected, Code code, unsigned flags = cudaStreamNonBlocking,
               cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal) {
  const OwnStream own(flags);
  cudaGraph_t graph = nullptr;
  REQUIRE(cudaStreamBeginCapture(own.stream, mode) == cudaSuccess);
  CHECK(code(own.stream) == expected);
  CHECK(state_of(own.stream) == cudaStreamCaptureStatusInvalidated);
  CHECK(simt::launch(add, {1, 32, 0, own.stream}, nullptr, 0.0f) == cudaErrorStreamCaptureInvalidated);
  CHECK(cudaStreamEndCapture(own.stream, &graph) == cudaErrorStreamCaptureInvalidated);
  CHECK(graph == nullptr);
  CHECK(state_of(own.stream) == cudaStreamCaptureStatusNone);
  cudaGetLastError();
}

}  // namespace

TEST_CASE("calls that no capture allows") {
  const DeviceArray<float> a(std::vector<float>(32, 0.0f));
  const OwnStream other(cudaStreamNonBlocking);
  const OwnEvent event, before;
  REQUIRE(cudaEventRecord(before.event, other.stream) == cudaSuccess);
  REQUIRE(cudaStreamSynchronize(other.stream) == cudaSuccess);
  for (const auto mode :
       {cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeRelaxed}) {
    const auto check = [&](cudaError_t code, auto call) { forbidden(code, call, cudaStreamNonBlocking, mode); };
    check(cudaErrorStreamCaptureUnsupported, [](cudaStream_t stream) { return cudaStreamSynchronize(stream); });
    check(cudaErrorStreamCaptureUnsupported, [](cudaStream_t stream) { return cudaStreamQuery(stream); });
    check(cudaErrorStreamCaptureUnsupported, [](cudaStream_t) { return cudaDeviceSynchronize(); });
    check(cudaErrorCapturedEvent, [&](cudaStream_t stream) {
      CHECK(cudaEventRecord(event.event, stream) == cudaSuccess);
      return cudaEventQuery(event.event);
    });
    check(cudaErrorCapturedEvent, [&](cudaStream_t stream) {
      CHECK(cudaEventRecord(event.event, stream) == cudaSuccess);
      return cudaEventSynchronize(event.event);
    });
    check(cudaErrorStreamCaptureIsolation,
          [&](cudaStream_t stream) { return cudaStreamWaitEvent(stream, before.event, 0); });
    check(cudaErrorStreamCaptureUnsupported, [&](cudaStream_t stream) {
      CHECK(cudaEventRecord(event.event, stream) == cudaSuccess);
      return cudaStreamWaitEvent(nullptr, event.event, 0);
    });
  }
  CHECK(cudaEventQuery(event.event) == cudaErrorCapturedEvent);  // until it is recorded again
  CHECK(cudaStreamWaitEvent(other.stream, event.event, 0) == cudaErrorCapturedEvent);
  CHECK(cudaEventRecord(event.event, other.stream) == cudaSuccess);
  CHECK(cudaStreamWaitEvent(other.stream, event.event, 0) == cudaSuccess);
  cudaGetLastError();
}

TEST_CASE("calls that may be unsafe are forbidden to the capturing thread unless the capture is relaxed") {
  float host[32] = {};
  const DeviceArray<float> a(std::vector<float>(32, 0.0f));
  const OwnStream other(cudaStreamNonBlocking);
  const OwnEvent event;
  REQUIRE(cudaEventRecord(event.event, other.stream) == cudaSuccess);
  void *memory = nullptr, *pinned = nullptr;
  using Unsafe = std::function<cudaError_t()>;
  const Unsafe unsafe[] = {[&] { return cudaMalloc(&memory, 16); },
                           [&] { return cudaFree(memory); },
                           [&] { return cudaMallocHost(&pinned, 16); },
                           [&] { return cudaFreeHost(pinned); },
                           [&] { return cudaMemcpy(a.get(), host, 128, cudaMemcpyHostToDevice); },
                           [&] { return cudaMemset(a.get(), 0, 128); },
                           [&] { return cudaStreamSynchronize(other.stream); },
                           [&] { return cudaStreamQuery(other.stream); },
                           [&] { return cudaEventSynchronize(event.event); },
                           [&] { return cudaEventQuery(event.event); }};
  for (const Unsafe& call : unsafe) {
    for (const auto mode : {cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal})
      forbidden(
          cudaErrorStreamCaptureUnsupported, [&](cudaStream_t) { return call(); }, cudaStreamNonBlocking, mode);
    const OwnStream own(cudaStreamNonBlocking);
    const Graph graph(
        own.stream,
        [&](cudaStream_t) {
          const cudaError_t code = call();
          CHECK((code == cudaSuccess || code == cudaErrorNotReady));
        },
        cudaStreamCaptureModeRelaxed);
    CHECK(graph.nodes() == 0);
  }
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  // creations, questions and what is queued on other streams are safe
  const OwnStream own(cudaStreamNonBlocking);
  const Graph graph(own.stream, [&](cudaStream_t) {
    std::size_t free_bytes = 0, total = 0;
    const OwnStream made;
    const OwnEvent made_too;
    CHECK(cudaMemGetInfo(&free_bytes, &total) == cudaSuccess);
    CHECK(cudaMemcpyAsync(a.get(), host, 128, cudaMemcpyHostToDevice, other.stream) == cudaSuccess);
  });
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
}

TEST_CASE("unsafe calls of other threads: forbidden by a global capture, and to threads that did not opt out") {
  const auto from_thread = [](cudaStreamCaptureMode thread_mode) {
    cudaError_t result = cudaErrorUnknown;
    std::thread([&] {
      void* memory = nullptr;
      CHECK(cudaThreadExchangeStreamCaptureMode(&thread_mode) == cudaSuccess);
      CHECK(thread_mode == cudaStreamCaptureModeGlobal);  // the default
      result = cudaMalloc(&memory, 16);
      if (!result) {
        CHECK(cudaThreadExchangeStreamCaptureMode(&thread_mode) == cudaSuccess);
        thread_mode = cudaStreamCaptureModeRelaxed;
        CHECK(cudaThreadExchangeStreamCaptureMode(&thread_mode) == cudaSuccess);
        CHECK(cudaFree(memory) == cudaSuccess);
      }
    }).join();
    return result;
  };
  forbidden(cudaErrorStreamCaptureUnsupported, [&](cudaStream_t) { return from_thread(cudaStreamCaptureModeGlobal); });
  const OwnStream own(cudaStreamNonBlocking);
  const Graph global(
      own.stream,
      [&](cudaStream_t) {
        CHECK(from_thread(cudaStreamCaptureModeThreadLocal) == cudaSuccess);
        CHECK(from_thread(cudaStreamCaptureModeRelaxed) == cudaSuccess);
      },
      cudaStreamCaptureModeGlobal);
  const Graph local(own.stream, [&](cudaStream_t) { CHECK(from_thread(cudaStreamCaptureModeGlobal) == cudaSuccess); });
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  CHECK(cudaThreadExchangeStreamCaptureMode(&mode) == cudaSuccess);
  const Graph allowed(
      own.stream,
      [&](cudaStream_t) {
        void* memory = nullptr;
        CHECK(cudaMalloc(&memory, 16) == cudaSuccess);
        CHECK(cudaFree(memory) == cudaSuccess);
      },
      cudaStreamCaptureModeGlobal);
  CHECK(cudaThreadExchangeStreamCaptureMode(&mode) == cudaSuccess);
  CHECK(mode == cudaStreamCaptureModeRelaxed);
}

TEST_CASE("while a blocking stream is captured, the null stream is out of use") {
  const DeviceArray<float> a(std::vector<float>(32, 0.0f));
  float host[32] = {};
  for (const auto mode : {cudaStreamCaptureModeGlobal, cudaStreamCaptureModeRelaxed}) {
    const auto check = [&](auto call) { forbidden(cudaErrorStreamCaptureImplicit, call, cudaStreamDefault, mode); };
    check([&](cudaStream_t) { return simt::launch(add, {1, 32}, a.get(), 1.0f); });
    check([&](cudaStream_t) { return cudaMemsetAsync(a.get(), 0, 128, nullptr); });
    check([&](cudaStream_t) { return cudaMemcpy(host, a.get(), 128, cudaMemcpyDeviceToHost); });
    check([&](cudaStream_t) { return cudaStreamSynchronize(nullptr); });
  }
  const OwnStream own;
  const Graph graph(own.stream, [&](cudaStream_t) {
    cudaStreamCaptureStatus state{};
    CHECK(cudaStreamIsCapturing(nullptr, &state) == cudaErrorStreamCaptureImplicit);  // which forgives
    cudaGetLastError();
  });
  CHECK(a.values()[0] == 0.0f);
}

TEST_CASE("captures must be joined, kept apart, and ended where they began") {
  const OwnStream own(cudaStreamNonBlocking), helper(cudaStreamNonBlocking);
  const OwnEvent event;
  const DeviceArray<float> a(std::vector<float>(32, 0.0f));
  cudaGraph_t graph = nullptr;
  const auto begin = [&](cudaStream_t stream) {
    REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal) == cudaSuccess);
  };
  const auto fork = [&] {
    CHECK(cudaEventRecord(event.event, own.stream) == cudaSuccess);
    CHECK(cudaStreamWaitEvent(helper.stream, event.event, 0) == cudaSuccess);
    CHECK(simt::launch(add, {1, 32, 0, helper.stream}, a.get(), 1.0f) == cudaSuccess);
  };
  SUBCASE("unjoined") {
    begin(own.stream);
    fork();
    CHECK(cudaStreamEndCapture(own.stream, &graph) == cudaErrorStreamCaptureUnjoined);
  }
  SUBCASE("unmatched") {
    begin(own.stream);
    fork();
    CHECK(cudaStreamEndCapture(helper.stream, &graph) == cudaErrorStreamCaptureUnmatched);
    CHECK(cudaStreamEndCapture(own.stream, &graph) == cudaErrorStreamCaptureInvalidated);
  }
  SUBCASE("merged") {
    begin(own.stream);
    begin(helper.stream);
    CHECK(cudaEventRecord(event.event, own.stream) == cudaSuccess);
    CHECK(cudaStreamWaitEvent(helper.stream, event.event, 0) == cudaErrorStreamCaptureMerge);
    CHECK(cudaStreamEndCapture(own.stream, &graph) == cudaErrorStreamCaptureInvalidated);
    CHECK(cudaStreamEndCapture(helper.stream, &graph) == cudaErrorStreamCaptureInvalidated);
  }
  SUBCASE("another thread") {
    begin(own.stream);
    std::thread([&] { CHECK(cudaStreamEndCapture(own.stream, &graph) == cudaErrorStreamCaptureWrongThread); }).join();
    CHECK(cudaStreamEndCapture(own.stream, &graph) == cudaErrorStreamCaptureInvalidated);
    REQUIRE(cudaStreamBeginCapture(own.stream, cudaStreamCaptureModeRelaxed) == cudaSuccess);
    std::thread([&] { CHECK(cudaStreamEndCapture(own.stream, &graph) == cudaSuccess); }).join();
    CHECK(cudaGraphDestroy(std::exchange(graph, nullptr)) == cudaSuccess);
  }
  SUBCASE("not begun, or begun twice, or on the null stream") {
    CHECK(cudaStreamEndCapture(own.stream, &graph) == cudaErrorIllegalState);
    CHECK(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal) == cudaErrorStreamCaptureUnsupported);
    begin(own.stream);
    CHECK(cudaStreamBeginCapture(own.stream, cudaStreamCaptureModeGlobal) == cudaErrorIllegalState);
    CHECK(cudaStreamEndCapture(own.stream, &graph) == cudaSuccess);
    CHECK(cudaGraphDestroy(std::exchange(graph, nullptr)) == cudaSuccess);
  }
  SUBCASE("destroyed streams") {
    cudaStream_t gone = nullptr;
    REQUIRE(cudaStreamCreate(&gone) == cudaSuccess);
    begin(gone);
    CHECK(cudaStreamDestroy(gone) == cudaSuccess);
    CHECK(cudaDeviceSynchronize() == cudaSuccess);  // the capture is over
  }
  CHECK(graph == nullptr);
  CHECK(state_of(own.stream) == cudaStreamCaptureStatusNone);
  CHECK(state_of(helper.stream) == cudaStreamCaptureStatusNone);
  CHECK(simt::launch(add, {1, 32, 0, helper.stream}, a.get(), 1.0f) == cudaSuccess);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  CHECK(a.values()[0] == 1.0f);
  cudaGetLastError();
}
