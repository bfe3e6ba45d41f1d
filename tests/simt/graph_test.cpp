// CUDA graphs: what is captured and what a launch runs.
#include "streams.hpp"
#include "support.hpp"
#include "typeformer/simt/cublaslt.hpp"
#include "typeformer/simt/injection.hpp"
#include "typeformer/simt/tally.hpp"

namespace {

__global__ void add(float* data, float value) { data[threadIdx.x] += value; }
__global__ void copy(const float* from, float* to) { to[threadIdx.x] = from[threadIdx.x]; }
__global__ void broken(float* data) {
  if (threadIdx.x < 3) __syncthreads();  // @graph barrier
  data[threadIdx.x] = 0;
}

std::string fault_at(cudaStream_t stream) {
  try {
    cudaStreamSynchronize(stream);
  } catch (const simt::Fault& fault) {
    return fault.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a captured graph runs when it is launched, as often as it is launched") {
  const OwnStream own, helper;
  const OwnEvent fork, join;
  const DeviceArray<float> a(std::vector<float>(32, 0.0f)), b(32);
  const Graph graph(own.stream, [&](cudaStream_t stream) {
    CHECK(state_of(stream) == cudaStreamCaptureStatusActive);
    CHECK(simt::launch(add, {1, 32, 0, stream}, a.get(), 1.0f) == cudaSuccess);
    CHECK(cudaEventRecord(fork.event, stream) == cudaSuccess);
    CHECK(state_of(helper.stream) == cudaStreamCaptureStatusNone);
    CHECK(cudaStreamWaitEvent(helper.stream, fork.event, 0) == cudaSuccess);
    CHECK(state_of(helper.stream) == cudaStreamCaptureStatusActive);
    CHECK(simt::launch(copy, {1, 32, 0, helper.stream}, static_cast<const float*>(a.get()), b.get()) == cudaSuccess);
    CHECK(cudaEventRecord(join.event, helper.stream) == cudaSuccess);
    CHECK(cudaStreamWaitEvent(stream, join.event, 0) == cudaSuccess);
  });
  CHECK(state_of(helper.stream) == cudaStreamCaptureStatusNone);
  CHECK(graph.types() == std::vector<cudaGraphNodeType>(2, cudaGraphNodeTypeKernel));
  CHECK(a.values()[0] == 0.0f);
  const simt::Tally tally;
  for (int k = 0; k < 5; ++k) graph.launch(own.stream);
  CHECK(tally.launches("add") == 5);
  CHECK(tally.launches("copy") == 5);
  CHECK(tally.replays() == 5);
  CHECK(tally.calls("cudaLaunchKernel") == 0);
  CHECK(cudaStreamSynchronize(own.stream) == cudaSuccess);
  CHECK(a.values()[31] == 5.0f);
  CHECK(b.values()[31] == 5.0f);
}

TEST_CASE("arguments are those of the capture, host memory is read and written at every launch") {
  const OwnStream own;
  const DeviceArray<float> a(32);
  float *pinned = nullptr, argument = 10;
  std::vector<float> pageable(32, 1.0f), result(32, -1.0f);
  REQUIRE(cudaMallocHost(reinterpret_cast<void**>(&pinned), 128) == cudaSuccess);
  std::fill(pinned, pinned + 32, 7.0f);
  {
    const Graph graph(own.stream, [&](cudaStream_t stream) {
      CHECK(cudaMemcpyAsync(a.get(), pageable.data(), 64, cudaMemcpyHostToDevice, stream) == cudaSuccess);
      CHECK(cudaMemcpyAsync(a.get() + 16, pinned, 64, cudaMemcpyHostToDevice, stream) == cudaSuccess);
      CHECK(cudaMemsetAsync(a.get() + 31, 0, 4, stream) == cudaSuccess);
      CHECK(simt::launch(add, {1, 32, 0, stream}, a.get(), argument) == cudaSuccess);
      CHECK(cudaMemcpyAsync(result.data(), a.get(), 128, cudaMemcpyDeviceToHost, stream) == cudaSuccess);
    });
    CHECK(graph.types() == std::vector<cudaGraphNodeType>{cudaGraphNodeTypeMemcpy, cudaGraphNodeTypeMemcpy,
                                                          cudaGraphNodeTypeMemset, cudaGraphNodeTypeKernel,
                                                          cudaGraphNodeTypeMemcpy});
    argument = 1000;
    for (const float first : {2.0f, 3.0f}) {
      pageable[0] = first;
      pinned[0] = 10 * first;
      graph.launch(own.stream);
      CHECK(result[0] != first + 10);
      CHECK(cudaStreamSynchronize(own.stream) == cudaSuccess);
      CHECK(result[0] == first + 10);
      CHECK(result[1] == 11.0f);
      CHECK(result[16] == 10 * first + 10);
      CHECK(result[30] == 17.0f);
      CHECK(result[31] == 10.0f);
    }
  }
  CHECK(cudaFreeHost(pinned) == cudaSuccess);
}

TEST_CASE("products of cuBLASLt are captured, with their host scalars") {
  const OwnStream own;
  cublasLtHandle_t handle = nullptr;
  cublasLtMatmulDesc_t description = nullptr;
  cublasLtMatrixLayout_t layout = nullptr;
  REQUIRE(cublasLtCreate(&handle) == CUBLAS_STATUS_SUCCESS);
  REQUIRE(cublasLtMatmulDescCreate(&description, CUBLAS_COMPUTE_32F, CUDA_R_32F) == CUBLAS_STATUS_SUCCESS);
  REQUIRE(cublasLtMatrixLayoutCreate(&layout, CUDA_R_32F, 4, 4, 4) == CUBLAS_STATUS_SUCCESS);
  const DeviceArray<float> a(std::vector<float>(16, 1.0f)), out(std::vector<float>(16, 0.0f));
  float alpha = 1, beta = 1;
  {
    const Graph graph(own.stream, [&](cudaStream_t stream) {
      CHECK(cublasLtMatmul(handle, description, &alpha, a.get(), layout, a.get(), layout, &beta, out.get(), layout,
                           out.get(), layout, nullptr, nullptr, 0, stream) == CUBLAS_STATUS_SUCCESS);
    });
    alpha = beta = 100;
    cublasLtMatmulDescDestroy(description);
    cublasLtMatrixLayoutDestroy(layout);
    CHECK(graph.nodes() == 1);
    for (int k = 0; k < 3; ++k) graph.launch(own.stream);
    CHECK(cudaStreamSynchronize(own.stream) == cudaSuccess);
  }
  CHECK(out.values()[5] == 12.0f);
  cublasLtDestroy(handle);
}

TEST_CASE("nodes without a dependency run in any order") {
  const OwnStream own, helper;
  const OwnEvent fork, join;
  const DeviceArray<float> a(std::vector<float>(32, 0.0f)), b(32);
  const Graph graph(own.stream, [&](cudaStream_t stream) {
    CHECK(cudaEventRecord(fork.event, stream) == cudaSuccess);
    CHECK(cudaStreamWaitEvent(helper.stream, fork.event, 0) == cudaSuccess);
    CHECK(simt::launch(add, {1, 32, 0, stream}, a.get(), 1.0f) == cudaSuccess);
#if !defined(TYPEFORMER_SIMT_RACECHECK)  // which would report it
    CHECK(simt::launch(copy, {1, 32, 0, helper.stream}, static_cast<const float*>(a.get()), b.get()) == cudaSuccess);
#else
    CHECK(simt::launch(add, {1, 32, 0, helper.stream}, b.get(), 1.0f) == cudaSuccess);
#endif
    CHECK(cudaEventRecord(join.event, helper.stream) == cudaSuccess);
    CHECK(cudaStreamWaitEvent(stream, join.event, 0) == cudaSuccess);
  });
  int stale = 0;
  for (int k = 1; k <= 20; ++k) {
    graph.launch(own.stream);
    REQUIRE(cudaStreamSynchronize(own.stream) == cudaSuccess);
    stale += b.values()[3] != static_cast<float>(k);
  }
  CHECK(stale > 0);
  CHECK(stale < 21);
}

TEST_CASE("the state of a capture") {
  const OwnStream own(cudaStreamNonBlocking);
  const DeviceArray<float> a(std::vector<float>(32, 0.0f));
  cudaStreamCaptureStatus state{};
  unsigned long long id = 0, other_id = 0;
  std::size_t count = 9;
  const auto info = [&](unsigned long long* which) {
    return cudaStreamGetCaptureInfo(own.stream, &state, which, nullptr, nullptr, nullptr, &count);
  };
  CHECK(info(&id) == cudaSuccess);
  CHECK(state == cudaStreamCaptureStatusNone);
  const Graph first(own.stream, [&](cudaStream_t stream) {
    CHECK(info(&id) == cudaSuccess);
    CHECK(count == 0);
    CHECK(simt::launch(add, {1, 32, 0, stream}, a.get(), 1.0f) == cudaSuccess);
    CHECK(info(&id) == cudaSuccess);
    CHECK(count == 1);
    CHECK(state == cudaStreamCaptureStatusActive);
  });
  const Graph second(own.stream, [&](cudaStream_t) { CHECK(info(&other_id) == cudaSuccess); });
  CHECK(id != other_id);
}

TEST_CASE("a graph that outlives its memory, and one whose kernel breaks a rule") {
  const OwnStream own(cudaStreamNonBlocking);
  void* memory = nullptr;
  REQUIRE(cudaMalloc(&memory, 128) == cudaSuccess);
  const Graph graph(own.stream, [&](cudaStream_t stream) {
    CHECK(simt::launch(add, {1, 32, 0, stream}, static_cast<float*>(memory), 1.0f) == cudaSuccess);  // @captured
  });
  graph.launch(own.stream);
  CHECK(fault_at(own.stream).empty());
  REQUIRE(cudaFree(memory) == cudaSuccess);
  REQUIRE(cudaMalloc(&memory, 128) == cudaSuccess);  // perhaps the same address
  graph.launch(own.stream);
  CHECK(mentions(fault_at(own.stream), at("captured"), "freed before"));
  REQUIRE(cudaFree(memory) == cudaSuccess);

  const DeviceArray<float> a(std::vector<float>(64, 0.0f));
  const Graph wrong(own.stream, [&](cudaStream_t stream) {
    CHECK(simt::launch(broken, {1, 64, 0, stream}, a.get()) == cudaSuccess);
  });
  wrong.launch(own.stream);
  CHECK(mentions(fault_at(own.stream), at("graph barrier")));
  cudaGetLastError();
}

TEST_CASE("an executable graph takes the parameters of a graph of the same form") {
  const OwnStream own(cudaStreamNonBlocking);
  const DeviceArray<float> a(std::vector<float>(32, 0.0f));
  const auto captured = [&](float value, int kernels) {
    return std::make_unique<Graph>(own.stream, [&, value, kernels](cudaStream_t stream) {
      for (int k = 0; k < kernels; ++k) CHECK(simt::launch(add, {1, 32, 0, stream}, a.get(), value) == cudaSuccess);
    });
  };
  const auto one = captured(1, 2), ten = captured(10, 2), longer = captured(1, 3);
  const Graph filled(own.stream, [&](cudaStream_t stream) {
    CHECK(cudaMemsetAsync(a.get(), 0, 128, stream) == cudaSuccess);
    CHECK(simt::launch(add, {1, 32, 0, stream}, a.get(), 1.0f) == cudaSuccess);
  });
  cudaGraphExecUpdateResultInfo info{};
  one->launch(own.stream);
  CHECK(cudaGraphExecUpdate(one->executable, ten->graph, &info) == cudaSuccess);
  CHECK(info.result == cudaGraphExecUpdateSuccess);
  one->launch(own.stream);
  CHECK(cudaStreamSynchronize(own.stream) == cudaSuccess);
  CHECK(a.values()[0] == 22.0f);
  CHECK(cudaGraphExecUpdate(one->executable, longer->graph, &info) == cudaErrorGraphExecUpdateFailure);
  CHECK(info.result == cudaGraphExecUpdateErrorTopologyChanged);
  CHECK(cudaGraphExecUpdate(one->executable, filled.graph, &info) == cudaErrorGraphExecUpdateFailure);
  CHECK(info.result == cudaGraphExecUpdateErrorNodeTypeChanged);
  one->launch(own.stream);
  CHECK(cudaStreamSynchronize(own.stream) == cudaSuccess);
  CHECK(a.values()[0] == 42.0f);
  cudaGetLastError();
}

TEST_CASE("a graph in a graph, and one graph on two streams") {
  const OwnStream own(cudaStreamNonBlocking), other(cudaStreamNonBlocking);
  const DeviceArray<float> a(std::vector<float>(32, 0.0f));
  const Graph inner(own.stream, [&](cudaStream_t stream) {
    CHECK(simt::launch(add, {1, 32, 0, stream}, a.get(), 1.0f) == cudaSuccess);
  });
  const Graph outer(own.stream, [&](cudaStream_t stream) {
    inner.launch(stream);
    inner.launch(stream);
  });
  CHECK(outer.types() == std::vector<cudaGraphNodeType>(2, cudaGraphNodeTypeGraph));
  outer.launch(own.stream);
  outer.launch(other.stream);  // launches of one executable graph follow each other
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  CHECK(a.values()[0] == 4.0f);
}

TEST_CASE("memory that a graph allocates and frees") {
  const auto before = simt::live_objects();
  {
    const OwnStream own(cudaStreamNonBlocking);
    const DeviceArray<float> a(std::vector<float>(32, 3.0f)), b(std::vector<float>(32, 0.0f));
    const Graph graph(own.stream, [&](cudaStream_t stream) {
      void* memory = nullptr;
      CHECK(cudaMallocAsync(&memory, 128, stream) == cudaSuccess);
      CHECK(cudaMemcpyAsync(memory, a.get(), 128, cudaMemcpyDeviceToDevice, stream) == cudaSuccess);
      CHECK(cudaMemcpyAsync(b.get(), memory, 128, cudaMemcpyDeviceToDevice, stream) == cudaSuccess);
      CHECK(cudaFreeAsync(memory, stream) == cudaSuccess);
    });
    CHECK(graph.types() == std::vector<cudaGraphNodeType>{cudaGraphNodeTypeMemAlloc, cudaGraphNodeTypeMemcpy,
                                                          cudaGraphNodeTypeMemcpy, cudaGraphNodeTypeMemFree});
    for (int k = 0; k < 2; ++k) graph.launch(own.stream);
    CHECK(cudaStreamSynchronize(own.stream) == cudaSuccess);
    CHECK(b.values()[31] == 3.0f);
  }
  CHECK_MESSAGE(simt::live_objects() == before, simt::live_objects().text());
}

TEST_CASE("graph functions fail on purpose and leave nothing") {
  const auto before = simt::live_objects();
  const DeviceArray<float> a(std::vector<float>(32, 0.0f));
  const auto program = [&] {
    const OwnStream own(cudaStreamNonBlocking);
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    cudaError_t first = cudaStreamBeginCapture(own.stream, cudaStreamCaptureModeGlobal);
    const auto keep = [&](cudaError_t error) { first = first ? first : error; };
    if (!first) {
      keep(simt::launch(add, {1, 32, 0, own.stream}, a.get(), 1.0f));
      keep(cudaStreamEndCapture(own.stream, &graph));
    }
    if (graph) keep(cudaGraphInstantiate(&executable, graph, 0));
    if (executable) {
      keep(cudaGraphLaunch(executable, own.stream));
      keep(cudaGraphExecDestroy(executable));
    }
    if (graph) keep(cudaGraphDestroy(graph));
    keep(cudaStreamSynchronize(own.stream));
    return first;
  };
  for (const char* name : {"cudaStreamBegin", "cudaLaunch", "cudaStreamEnd", "cudaGraphInst", "cudaGraphLaunch",
                           "cudaGraphExecD", "cudaGraphDestroy", "cudaStreamSync"}) {
    const simt::FailCall fail(1, cudaErrorUnknown, name);
    CHECK(program() == cudaErrorUnknown);
    CHECK(fail.fired());
  }
  CHECK(program() == cudaSuccess);
  CHECK(simt::live_objects().graphs == before.graphs);
  CHECK(simt::live_objects().executables == before.executables);
  CHECK(simt::live_objects().streams == before.streams);
  CHECK(cudaGraphLaunch(nullptr, nullptr) == cudaErrorInvalidResourceHandle);
  CHECK(cudaGraphDestroy(nullptr) == cudaErrorInvalidValue);
  cudaGetLastError();
}
