/// A CUDA GPU as a device: one stream, memory, and the workspaces that operations share on it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "typeformer/core/error.hpp"
#include "typeformer/kernel/cuda/blas.cuh"
#include "typeformer/kernel/cuda/current_gpu.cuh"
#include "typeformer/kernel/cuda/recording.cuh"
#include "typeformer/kernel/cuda/staging.cuh"
#include "typeformer/kernel/cuda/status.cuh"
#include "typeformer/kernel/cuda/tuning.hpp"
#include "typeformer/kernel/cuda/uploaded_lists.cuh"
#include "typeformer/kernel/cuda/workspace.cuh"
#include "typeformer/simt/simt.hpp"

namespace typeformer::inline TYPEFORMER_ABI::cuda {
namespace detail {

/// What the operations of one device share.
struct SharedByOperations {
  SharedByOperations(const MemoryFunctions& functions, cudaStream_t stream)
      : memory(functions, stream), scratch(memory), blas(memory) {}
  Memory memory;
  Staging staging;
  Workspace scratch;
  UploadedLists lists;
  Blas blas;
};

}  // namespace detail

/// On which stream a CUDA device works, and in whose memory.
struct DeviceOptions {
  /// The caller's stream, which belongs to the current GPU and must outlive the device; not set: one of its own, which
  /// does not wait for the legacy default stream: order the work of other streams by events.
  std::optional<cudaStream_t> stream{};
  /// The caller's memory, for all that the device and what is made on it needs; not set: cudaMalloc's.
  MemoryFunctions memory{};
};

/// Runs operations on one stream of one GPU, in the order of the calls, without waiting for them. An object serves one
/// thread at a time; several objects may share a GPU. The GPU is the one that was current when the object was made:
/// calls go there whatever is current later, and leave that as it is. What lies in a device's memory - a model, a state
/// - is used through it alone: threads that run at the same time have a device and a model each.
class Device {
 public:
  static constexpr std::string_view name = "cuda";
  /// Activations are of the type of the weights: products on tensor cores take both alike.
  template <class Weight>
  using Activation = Weight;

  static constexpr int largest_head_dim = detail::largest_head_dim;
  /// Numbers of the logits that a loss makes at a time: a thousand rows of a vocabulary of 128 Ki. With fewer, reading
  /// the head's matrix and its gradient anew for each piece takes longer than the products.
  static constexpr std::int64_t loss_logits = std::int64_t{128} << 20;

  /// On the current GPU. Throws Error when CUDA fails, or when only one of two functions for memory is given.
  explicit Device(const DeviceOptions& options = {}) : Device(Nothing{}) {  // whole already: what follows may throw
    detail::check(cudaGetDevice(&gpu_), "cuda::Device", "current GPU");
    if (options.stream)
      stream_ = *options.stream;
    else
      detail::check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cuda::Device", "stream");
    owns_stream_ = !options.stream;
    shared_.emplace(options.memory, stream_);
  }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  ~Device() {
    shared_.reset();
    if (owns_stream_) (void)cudaStreamDestroy(stream_);
  }

  cudaStream_t stream() const { return stream_; }
  /// The GPU's ordinal.
  int gpu() const { return gpu_; }

  /// GPU memory, aligned to 256 bytes. Throws Error when it is short, and while the stream is captured.
  void* allocate(std::size_t bytes) {
    constexpr std::string_view operation = "cuda::Device::allocate";
    const detail::OnGpu current(gpu_, operation);
    check_not_capturing(operation);
    return shared_->memory.allocate(bytes, operation);
  }
  /// The memory serves the next who asks; work that is queued still uses it. trim gives it back to CUDA.
  void release(void* memory) noexcept { shared_->memory.release(memory); }
  /// Gives memory that nothing on this device uses any more back to CUDA.
  void trim() noexcept { shared_->memory.trim(); }
  /// Host memory to GPU memory, in the order of the stream; `from` may be reused at once.
  void upload(void* to, const void* from, std::size_t bytes) {
    constexpr std::string_view operation = "cuda::Device::upload";
    const detail::OnGpu current(gpu_, operation);
    check_not_capturing(operation);
    shared_->staging.upload(stream_, to, from, bytes, operation);
  }
  /// GPU memory to host memory; waits for everything queued before.
  void download(void* to, const void* from, std::size_t bytes) {
    constexpr std::string_view operation = "cuda::Device::download";
    const detail::OnGpu current(gpu_, operation);
    check_not_capturing(operation);
    shared_->staging.download(stream_, to, from, bytes, operation);
  }
  void zero(void* memory, std::size_t bytes) {
    const detail::OnGpu current(gpu_, "cuda::Device::zero");
    detail::check(cudaMemsetAsync(memory, 0, bytes, stream_), "cuda::Device::zero", "memset");
  }
  /// Waits until all operations are done. Throws Error when one of them failed on the GPU.
  void synchronize() {
    const detail::OnGpu current(gpu_, "cuda::Device::synchronize");
    detail::check(cudaStreamSynchronize(stream_), "cuda::Device::synchronize", "stream");
  }

  /// Most blocks of one launch; larger grids are launched in pieces.
  std::int64_t grid_limit() const { return grid_limit_; }
  void set_grid_limit(std::int64_t blocks) {
    if (blocks < 1 || blocks > largest_grid)
      throw Error("cuda::Device", "grid limit", "1 to 2147483647 blocks", std::to_string(blocks));
    grid_limit_ = blocks;
  }

  /// Memory for the operation that asks, until the next one asks.
  template <class T>
  T* scratch(std::size_t count, std::string_view operation) {
    const detail::OnGpu current(gpu_, operation);
    detail::require(count <= std::numeric_limits<std::size_t>::max() / 2 / sizeof(T), operation, "scratch memory",
                    "bytes that can be counted", std::to_string(count) + " elements");
    if (count * sizeof(T) > shared_->scratch.bytes()) check_not_capturing(operation);
    return static_cast<T*>(shared_->scratch.reserve(count * sizeof(T), operation));
  }

  /// The GPU's copy of a host list, until 31 others were asked for.
  const std::byte* list(std::span<const std::byte> contents, std::string_view operation) {
    const detail::OnGpu current(gpu_, operation);
    std::shared_ptr<const detail::UploadedList> found = shared_->lists.find(contents);
    if (!found && recording_) found = detail::find_list(recording_->lists_, contents);
    if (!found) {
      check_not_capturing(operation);
      const auto made = detail::UploadedLists::make(shared_->memory, contents, operation);
      upload(const_cast<std::byte*>(made->on_gpu), contents.data(), contents.size());
      shared_->lists.keep(made);
      found = made;
    }
    if (recording_) recording_->lists_.push_back(found);
    return found->on_gpu;
  }

  /// A matrix product on this stream.
  void multiply(std::string_view operation, const detail::BlasProduct& product) {
    const detail::OnGpu current(gpu_, operation);
    shared_->blas.multiply(stream_, operation, product, [&] { check_not_capturing(operation); });
  }
  const detail::Blas& blas() const { return shared_->blas; }

  using Recording = cuda::Recording;
  /// Runs the operations that work() calls. The first time with a key directly, which makes room for all they need; the
  /// second time they are captured as a CUDA graph, and from then on it is launched instead of calling work(). The
  /// key says which operations they are: equal keys, equal operations on equal pointers. What lies in the memory is
  /// read anew each time. On the legacy default stream, and while the caller captures the stream, work() is just
  /// called. (A caller's graph reads the device's scratch memory and lists. Run the same operations once before: what
  /// would need more of either throws Error while the stream is captured. Launch the graph before other operations run,
  /// which take both over.) Throws what work() throws, and Error when the graph can't be made.
  template <class Work>
  void run(Recording& recording, std::span<const std::int64_t> key, Work&& work) {
    const detail::OnGpu current(gpu_, "cuda::Device::run");
    if (is_legacy() || is_capturing("cuda::Device::run")) return work();
    std::vector<std::int64_t> whole_key(key.begin(), key.end());
    if (recording.key_.empty() || recording.key_ != with_memory(whole_key)) {
      recording.forget();
      note(recording, work);  // its lists stay: nothing is uploaded while the graph is made
      recording.key_ = with_memory(std::move(whole_key));
      return;
    }
    if (!recording.graph_) capture(recording, work);
    detail::check(cudaGraphLaunch(recording.graph_, stream_), "cuda::Device::run", "graph");
  }

 private:
  struct Nothing {};
  explicit Device(Nothing) {}

  /// The key with what operations share now: a graph made with other memory must not run.
  std::vector<std::int64_t> with_memory(std::vector<std::int64_t> key) const {
    for (const void* memory : {shared_->scratch.data(), shared_->blas.workspace()})
      key.push_back(static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(memory)));
    key.push_back(grid_limit_);
    return key;
  }
  /// CUDA cannot capture it.
  bool is_legacy() const { return !stream_ || stream_ == cudaStreamLegacy; }
  bool is_capturing(std::string_view operation) const {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    if (!is_legacy()) detail::check(cudaStreamIsCapturing(stream_, &status), operation, "stream");
    return status != cudaStreamCaptureStatusNone;
  }
  /// What waits for the GPU, copies the host's memory or makes room has no place in a graph.
  void check_not_capturing(std::string_view operation) const {
    detail::require(!is_capturing(operation), operation, "stream", "no capture: run the same operations once before",
                    "a capture of the stream");
  }
  /// Calls work(); the lists that it uses live as long as the recording, which forgets everything when work() throws.
  template <class Work>
  void note(Recording& recording, Work& work) {
    recording_ = &recording;
    try {
      work();
    } catch (...) {
      recording_ = nullptr;
      recording.forget();
      throw;
    }
    recording_ = nullptr;
  }
  template <class Work>
  void capture(Recording& recording, Work& work) {
    constexpr std::string_view operation = "cuda::Device::run";
    detail::check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), operation, "capture");
    cudaGraph_t graph = nullptr;
    try {
      note(recording, work);
    } catch (...) {
      (void)cudaStreamEndCapture(stream_, &graph);
      if (graph) (void)cudaGraphDestroy(graph);
      throw;
    }
    cudaError_t status = cudaStreamEndCapture(stream_, &graph);
    if (status == cudaSuccess) status = cudaGraphInstantiate(&recording.graph_, graph, 0);
    if (graph) (void)cudaGraphDestroy(graph);
    if (status != cudaSuccess) recording.forget();
    detail::check(status, operation, "graph");
  }

  static constexpr std::int64_t largest_grid = 2147483647;
  int gpu_ = 0;
  cudaStream_t stream_ = nullptr;
  bool owns_stream_ = false;
  std::int64_t grid_limit_ = largest_grid;
  Recording* recording_ = nullptr;                    // while one is made
  std::optional<detail::SharedByOperations> shared_;  // freed before the stream
};

}  // namespace typeformer::inline TYPEFORMER_ABI::cuda
