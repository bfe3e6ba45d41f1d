/// Captured graphs of the CUDA runtime's stand-in. Included by runtime.hpp.
///
/// A graph's nodes run when it is launched, in some order that their dependencies allow: streams without an event
/// between them are not ordered. Host memory is read and written anew at every launch; device memory must be what it
/// was: a launch after it has been freed is a Fault. What CUDA forbids during a capture is in calls.hpp.
#pragma once
#include "typeformer/simt/calls.hpp"

namespace typeformer::inline TYPEFORMER_ABI::simt {

/// Runs the nodes, each behind those that it depends on, else in random order. stamps: of the nodes in this launch.
inline void run_nodes(const Nodes& nodes, const std::vector<Stamp>& stamps) {
  std::vector<std::size_t> missing(nodes.size()), ready;
  std::vector<std::vector<std::size_t>> next(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    missing[i] = nodes[i]->after.size();
    for (const std::size_t before : nodes[i]->after) next[before].push_back(i);
    if (missing[i] == 0) ready.push_back(i);
  }
  while (!ready.empty()) {
    std::swap(ready[runtime().draw() % ready.size()], ready.back());
    const std::size_t chosen = ready.back();
    ready.pop_back();
    perform(nodes[chosen]->operation, stamps[chosen]);
    for (const std::size_t i : next[chosen])
      if (--missing[i] == 0) ready.push_back(i);
  }
}

/// When the nodes of a launch run: each captured stream is a sequence of its own behind `start`. Adds all to `end`.
inline std::vector<Stamp> node_stamps(CUgraphExec_st& executable, const Clock& start, Clock& end) {
  Sequences& sequences = runtime().sequences;
  std::vector<Stamp> result;
  for (const auto& node : executable.nodes) {
    Clock clock = start;
    for (const std::size_t before : node->after) clock.join(result[before].clock);
    while (executable.sequences.size() <= node->lane) executable.sequences.push_back(sequences.take());
    result.push_back(sequences.next(executable.sequences[node->lane], std::move(clock)));
    end.join(result.back().clock);
  }
  return result;
}

/// Whether all nodes are before the place where the capture's first stream stands.
inline bool all_joined(const Capture& capture) {
  std::vector<bool> seen(capture.nodes.size());
  std::vector<std::size_t> open = capture.origin->frontier;
  std::size_t count = 0;
  while (!open.empty()) {
    const std::size_t node = open.back();
    open.pop_back();
    if (seen[node]) continue;
    seen[node] = true;
    ++count;
    open.insert(open.end(), capture.nodes[node]->after.begin(), capture.nodes[node]->after.end());
  }
  return count == capture.nodes.size();
}

inline cudaError_t begin_capture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  Runtime& device = runtime();
  const Stream queue = queue_of(stream);
  if (!queue) return cudaErrorInvalidResourceHandle;
  if (queue == device.null_streams[queue->gpu]) return cudaErrorStreamCaptureUnsupported;
  if (mode < cudaStreamCaptureModeGlobal || mode > cudaStreamCaptureModeRelaxed) return cudaErrorInvalidValue;
  if (queue->capture) return cudaErrorIllegalState;
  const auto capture = std::make_shared<Capture>();
  capture->mode = mode;
  capture->origin = queue;
  capture->streams = {queue};
  capture->id = ++device.captures_begun;
  queue->capture = capture;
  queue->frontier.clear();
  queue->lane = 0;
  device.captures.push_back(capture);
  return cudaSuccess;
}

inline cudaError_t finish_capture(cudaStream_t stream, cudaGraph_t* graph) {
  if (!graph) return cudaErrorInvalidValue;
  *graph = nullptr;
  const Stream queue = queue_of(stream);
  if (!queue) return cudaErrorInvalidResourceHandle;
  const std::shared_ptr<Capture> capture = queue->capture;
  if (!capture) return cudaErrorIllegalState;
  if (capture->mode != cudaStreamCaptureModeRelaxed && !capture->local())
    return violation(*capture, cudaErrorStreamCaptureWrongThread);
  if (capture->origin != queue) return violation(*capture, cudaErrorStreamCaptureUnmatched);
  const bool joined = all_joined(*capture);
  end_capture(capture);
  if (capture->invalid) return cudaErrorStreamCaptureInvalidated;
  if (!joined) return cudaErrorStreamCaptureUnjoined;
  *graph = new CUgraph_st{capture->nodes};
  runtime().handles.graphs.insert(*graph);
  return cudaSuccess;
}

inline cudaStreamCaptureStatus capture_status(const StreamQueue& queue) {
  return !queue.capture           ? cudaStreamCaptureStatusNone
         : queue.capture->invalid ? cudaStreamCaptureStatusInvalidated
                                  : cudaStreamCaptureStatusActive;
}

inline cudaGraphNodeType node_type(const CUgraphNode_st& node) {
  switch (node.operation.work) {
    case Work::kernel:
    case Work::product:
      return cudaGraphNodeTypeKernel;
    case Work::copy:
      return cudaGraphNodeTypeMemcpy;
    case Work::fill:
      return cudaGraphNodeTypeMemset;
    case Work::graph:
      return cudaGraphNodeTypeGraph;
    case Work::allocation:
      return cudaGraphNodeTypeMemAlloc;
    case Work::release:
      return cudaGraphNodeTypeMemFree;
    default:
      return cudaGraphNodeTypeEmpty;
  }
}

inline cudaError_t launch_graph(cudaGraphExec_t executable, cudaStream_t stream) {
  Runtime& device = runtime();
  Stream queue;
  if (!device.handles.executables.contains(executable)) return cudaErrorInvalidResourceHandle;
  if (const auto error = find_queue(stream, queue)) return error;
  Operation operation{Work::graph, "cudaGraphLaunch"};
  if (queue->capture) {
    operation.run = [nodes = executable->nodes] {  // one node, whatever is in it
      run_nodes(nodes, std::vector<Stamp>(nodes.size(), *runtime().performed.stamp));
    };
    capture_node(*queue, std::move(operation));
    return cudaSuccess;
  }
  const auto stamps = std::make_shared<std::vector<Stamp>>();
  operation.run = [nodes = executable->nodes, stamps] { run_nodes(nodes, *stamps); };
  if (executable->last_launch.stream) operation.before = {executable->last_launch};  // one launch after the other
  ++device.totals.replays;
  for (const auto& node : executable->nodes) count(node->operation);
  enqueue(queue, std::move(operation));
  *stamps = node_stamps(*executable, Clock(queue->clock), queue->clock);
  executable->last_launch = end_of(queue);
  return cudaSuccess;
}

/// Gives an executable graph the parameters of a graph of the same form.
inline cudaError_t update_graph(cudaGraphExec_t executable, cudaGraph_t graph, cudaGraphExecUpdateResultInfo& info) {
  info = {cudaGraphExecUpdateError, nullptr, nullptr};
  const Handles& handles = runtime().handles;
  if (!handles.executables.contains(executable) || !handles.graphs.contains(graph)) return cudaErrorInvalidValue;
  info.result = cudaGraphExecUpdateErrorTopologyChanged;
  if (executable->nodes.size() != graph->nodes.size()) return cudaErrorGraphExecUpdateFailure;
  for (std::size_t i = 0; i < graph->nodes.size(); ++i) {
    CUgraphNode_st &before = *executable->nodes[i], &after = *graph->nodes[i];
    info.errorNode = &after;
    if (before.after != after.after) return cudaErrorGraphExecUpdateFailure;
    info.result = cudaGraphExecUpdateErrorNodeTypeChanged;
    if (node_type(before) != node_type(after)) return cudaErrorGraphExecUpdateFailure;
    info.result = cudaGraphExecUpdateErrorTopologyChanged;
  }
  executable->nodes = graph->nodes;
  info = {cudaGraphExecUpdateSuccess, nullptr, nullptr};
  return cudaSuccess;
}

}  // namespace typeformer

// ---------------------------------------------------------------- capture

TYPEFORMER_SIMT_C cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  const typeformer::simt::Call call("cudaStreamBeginCapture");
  return call.error ? call.error : typeformer::simt::status(typeformer::simt::begin_capture(stream, mode));
}
TYPEFORMER_SIMT_C cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const typeformer::simt::Call call("cudaStreamEndCapture", typeformer::simt::Effect::releases);
  const cudaError_t result = typeformer::simt::finish_capture(stream, graph);
  if (call.error && !result) {  // a failure on purpose still ends the capture
    typeformer::simt::runtime().handles.graphs.erase(*graph);
    delete std::exchange(*graph, nullptr);
  }
  return call.end(result);
}
TYPEFORMER_SIMT_C cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  const typeformer::simt::Call call("cudaThreadExchangeStreamCaptureMode");
  if (call.error) return call.error;
  if (!mode) return typeformer::simt::status(cudaErrorInvalidValue);
  *mode = std::exchange(typeformer::simt::capture_mode, *mode);
  return cudaSuccess;
}
TYPEFORMER_SIMT_C cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* state) {
  const typeformer::simt::Call call("cudaStreamIsCapturing");
  if (call.error) return call.error;
  const auto queue = typeformer::simt::queue_of(stream);
  if (!queue || !state) return typeformer::simt::status(cudaErrorInvalidValue);
  if (const auto error = typeformer::simt::implicit_dependency(*queue, false)) return typeformer::simt::status(error);
  *state = typeformer::simt::capture_status(*queue);
  return cudaSuccess;
}
/// Tells the state, the sequence's number and how many nodes the stream's next one would depend on; not the nodes.
TYPEFORMER_SIMT_C cudaError_t cudaStreamGetCaptureInfo(
    cudaStream_t stream, cudaStreamCaptureStatus* state, unsigned long long* id TYPEFORMER_SIMT_DEFAULT(nullptr),
    cudaGraph_t* graph TYPEFORMER_SIMT_DEFAULT(nullptr),
    const cudaGraphNode_t** dependencies TYPEFORMER_SIMT_DEFAULT(nullptr),
    const cudaGraphEdgeData** edges TYPEFORMER_SIMT_DEFAULT(nullptr),
    std::size_t* count TYPEFORMER_SIMT_DEFAULT(nullptr)) {
  const typeformer::simt::Call call("cudaStreamGetCaptureInfo");
  if (call.error) return call.error;
  if (graph || dependencies || edges) return typeformer::simt::status(cudaErrorNotSupported);
  if (const auto error = cudaStreamIsCapturing(stream, state)) return error;
  const auto queue = typeformer::simt::queue_of(stream);
  if (*state != cudaStreamCaptureStatusActive) return cudaSuccess;
  if (id) *id = queue->capture->id;
  if (count) *count = queue->frontier.size();
  return cudaSuccess;
}

// ---------------------------------------------------------------- graphs

TYPEFORMER_SIMT_C cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, std::size_t* count) {
  const typeformer::simt::Call call("cudaGraphGetNodes");
  if (call.error) return call.error;
  if (!count || !typeformer::simt::runtime().handles.graphs.contains(graph))
    return typeformer::simt::status(cudaErrorInvalidValue);
  const std::size_t there = graph->nodes.size(), room = *count;
  *count = nodes ? std::min(there, room) : there;
  if (nodes)
    for (std::size_t i = 0; i < room; ++i) nodes[i] = i < there ? graph->nodes[i].get() : nullptr;
  return cudaSuccess;
}
TYPEFORMER_SIMT_C cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type) {
  const typeformer::simt::Call call("cudaGraphNodeGetType");
  if (call.error) return call.error;
  if (!node || !type) return typeformer::simt::status(cudaErrorInvalidValue);
  *type = typeformer::simt::node_type(*node);
  return cudaSuccess;
}
TYPEFORMER_SIMT_C cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                                   unsigned long long flags TYPEFORMER_SIMT_DEFAULT(0)) {
  const typeformer::simt::Call call("cudaGraphInstantiate");
  auto& handles = typeformer::simt::runtime().handles;
  if (call.error) return call.error;
  if (!executable || !handles.graphs.contains(graph)) return typeformer::simt::status(cudaErrorInvalidValue);
  if (flags) return typeformer::simt::status(cudaErrorNotSupported);
  *executable = new CUgraphExec_st{graph->nodes, {}, {}};
  handles.executables.insert(*executable);
  return cudaSuccess;
}
TYPEFORMER_SIMT_C cudaError_t cudaGraphUpload(cudaGraphExec_t executable, cudaStream_t stream) {
  const typeformer::simt::Call call("cudaGraphUpload");
  typeformer::simt::Stream queue;
  if (call.error) return call.error;
  if (!typeformer::simt::runtime().handles.executables.contains(executable))
    return typeformer::simt::status(cudaErrorInvalidResourceHandle);
  return typeformer::simt::status(typeformer::simt::find_queue(stream, queue));
}
TYPEFORMER_SIMT_C cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  const typeformer::simt::Call call("cudaGraphLaunch");
  return call.error ? call.error : typeformer::simt::status(typeformer::simt::launch_graph(executable, stream));
}
TYPEFORMER_SIMT_C cudaError_t cudaGraphExecUpdate(cudaGraphExec_t executable, cudaGraph_t graph,
                                                  cudaGraphExecUpdateResultInfo* info) {
  const typeformer::simt::Call call("cudaGraphExecUpdate");
  if (call.error) return call.error;
  if (!info) return typeformer::simt::status(cudaErrorInvalidValue);
  return typeformer::simt::status(typeformer::simt::update_graph(executable, graph, *info));
}
TYPEFORMER_SIMT_C cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  const typeformer::simt::Call call("cudaGraphExecDestroy", typeformer::simt::Effect::releases);
  auto& device = typeformer::simt::runtime();
  if (!device.handles.executables.erase(executable)) return call.end(cudaErrorInvalidValue);
  for (const unsigned sequence : executable->sequences) device.sequences.give_back(sequence);
  delete executable;
  return call.end(cudaSuccess);
}
TYPEFORMER_SIMT_C cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  const typeformer::simt::Call call("cudaGraphDestroy", typeformer::simt::Effect::releases);
  if (!typeformer::simt::runtime().handles.graphs.erase(graph)) return call.end(cudaErrorInvalidValue);
  delete graph;
  return call.end(cudaSuccess);
}
