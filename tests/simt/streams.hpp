// Streams, events and graphs that tests own.
#pragma once
#include "support.hpp"

struct OwnStream {
  cudaStream_t stream = nullptr;
  explicit OwnStream(unsigned flags = cudaStreamDefault) {
    REQUIRE(cudaStreamCreateWithFlags(&stream, flags) == cudaSuccess);
  }
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;
  ~OwnStream() { cudaStreamDestroy(stream); }
};
struct OwnEvent {
  cudaEvent_t event = nullptr;
  explicit OwnEvent(unsigned flags = cudaEventDefault) {
    REQUIRE(cudaEventCreateWithFlags(&event, flags) == cudaSuccess);
  }
  OwnEvent(const OwnEvent&) = delete;
  OwnEvent& operator=(const OwnEvent&) = delete;
  ~OwnEvent() { cudaEventDestroy(event); }
};

// Captures what code(stream) queues.
class Graph {
 public:
  template <class Code>
  Graph(cudaStream_t stream, Code code, cudaStreamCaptureMode mode = cudaStreamCaptureModeThreadLocal) {
    REQUIRE(cudaStreamBeginCapture(stream, mode) == cudaSuccess);
    code(stream);
    REQUIRE(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
    REQUIRE(cudaGraphInstantiate(&executable, graph, 0) == cudaSuccess);
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  ~Graph() {
    cudaGraphExecDestroy(executable);
    cudaGraphDestroy(graph);
  }
  void launch(cudaStream_t stream) const { CHECK(cudaGraphLaunch(executable, stream) == cudaSuccess); }
  std::size_t nodes() const {
    std::size_t count = 0;
    CHECK(cudaGraphGetNodes(graph, nullptr, &count) == cudaSuccess);
    return count;
  }
  std::vector<cudaGraphNodeType> types() const {
    std::size_t count = nodes();
    std::vector<cudaGraphNode_t> nodes(count);
    CHECK(cudaGraphGetNodes(graph, nodes.data(), &count) == cudaSuccess);
    std::vector<cudaGraphNodeType> result(count);
    for (std::size_t i = 0; i < count; ++i) CHECK(cudaGraphNodeGetType(nodes[i], &result[i]) == cudaSuccess);
    return result;
  }

  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
};

inline cudaStreamCaptureStatus state_of(cudaStream_t stream) {
  cudaStreamCaptureStatus state{};
  CHECK(cudaStreamIsCapturing(stream, &state) == cudaSuccess);
  return state;
}
