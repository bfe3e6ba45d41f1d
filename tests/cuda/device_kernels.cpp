// The CUDA device itself.
#include "device.hpp"

#include <algorithm>
#include <cstring>

#include "arrays.hpp"

namespace device {
namespace {

using namespace typeformer;
namespace kernels = typeformer::cuda::detail;

/// Needs more shared memory than a launch has unasked.
template <class T>
__global__ void write_from_shared(std::int64_t, T* to) {
  T* const shared = simt::dynamic_shared<T>();
  if (threadIdx.x != 0) return;
  shared[(64 << 10) / sizeof(T) - 1] = T(7);
  *to = shared[(64 << 10) / sizeof(T) - 1];
}

/// Memory of a caller's own.
struct Pieces {
  int alive = 0;
  cudaStream_t on = nullptr;
  static void* allocate(std::size_t bytes, cudaStream_t stream, void* user) {
    auto& pieces = *static_cast<Pieces*>(user);
    void* memory = nullptr;
    if (cudaMalloc(&memory, bytes) != cudaSuccess) return nullptr;
    ++pieces.alive;
    pieces.on = stream;
    return memory;
  }
  static void release(void* memory, cudaStream_t, void* user) {
    --static_cast<Pieces*>(user)->alive;
    (void)cudaFree(memory);
  }
};

/// Memory, copies, lists, a product, kernels: what is wrong with them.
std::string work(cuda::Device& on) {
  std::string wrong;
  support::Array<bf16> x(on, std::vector<double>(64, 2)), y(on, 64);
  support::Array<float> bias(on, std::vector<double>(8, 1)), written(on, 1);
  cudaPointerAttributes attributes{};
  if (cudaPointerGetAttributes(&attributes, x.data()) != cudaSuccess || attributes.device != on.gpu())
    wrong += "memory, ";
  LinearArgs<bf16, bf16> a;  // a product and a kernel, with scratch memory
  a.y = y.data();
  a.x = a.w = x.data();
  a.bias = bias.data();
  a.rows = a.in = a.out = 8;
  linear(on, a);
  if (y.download() != std::vector<double>(64, 33)) wrong += "product, ";
  kernels::launch(on, "test", write_from_shared<float>, 1, {dim3(32), std::size_t{64} << 10}, written.data());
  if (written.download()[0] != 7) wrong += "kernel, ";
  const std::byte* list = on.list(std::as_bytes(std::span("abcd", 4)), "test");
  std::string contents(4, ' ');
  on.download(contents.data(), list, 4);
  if (contents != "abcd") wrong += "list, ";
  on.synchronize();
  return wrong;
}

template <class T, int depth>
void add_shared_memory(const std::string& number, std::vector<SharedMemory>& list) {
  const std::string tail = " " + number + " " + std::to_string(depth);
  using Forward = typename kernels::TileOf<T, depth, kernels::AttentionPass::forward>::type;
  using Queries = typename kernels::TileOf<T, depth, kernels::AttentionPass::queries>::type;
  using Keys = typename kernels::TileOf<T, depth, kernels::AttentionPass::keys>::type;
  list.push_back({"forward" + tail, kernels::TileMemory<Forward>::bytes(1)});
  list.push_back({"queries" + tail, kernels::TileMemory<Queries>::bytes(2)});
  list.push_back({"queries with a trained bias" + tail,
                  kernels::TileMemory<Queries>::bytes(2) + kernels::DistanceSums<Queries>::bytes});
  list.push_back({"keys" + tail, kernels::TileMemory<Keys>::bytes(2) + 4 * Keys::columns * sizeof(float)});
}

}  // namespace

std::vector<double> round_trip(const std::vector<double>& numbers, bool own_stream) {
  if (own_stream) {
    cuda::Device on;
    return support::Array<bf16>(on, numbers).download();
  }
  cuda::Device on({.stream = nullptr});
  return support::Array<bf16>(on, numbers).download();
}

double reused_after_upload(bool pinned) {
  constexpr std::size_t bytes = 4 << 20;  // long enough for a GPU not to be done
  cuda::Device on;
  Buffer<cuda::Device, char> on_gpu(on, bytes);
  std::vector<char> pageable;
  void* host = nullptr;
  if (pinned && cudaMallocHost(&host, bytes) != cudaSuccess) return -1;
  if (!pinned) {
    pageable.resize(bytes);
    host = pageable.data();
  }
  std::memset(host, 1, bytes);
  on.upload(on_gpu.data(), host, bytes);
  std::memset(host, 2, bytes);
  std::vector<char> arrived(bytes);
  on_gpu.download(arrived);
  if (pinned) (void)cudaFreeHost(host);
  return *std::max_element(arrived.begin(), arrived.end());
}

std::string complaint(const std::string& what) {
  try {
    if (what == "half of the functions") cuda::Device({.memory = {.allocate = Pieces::allocate}});
    if (what.find("of the caller's") != std::string::npos) {
      const auto allocate = [](std::size_t, cudaStream_t, void* memory) { return memory; };
      void* const memory = what.starts_with("odd") ? reinterpret_cast<void*>(std::uintptr_t{24}) : nullptr;
      cuda::Device({.memory = {allocate, [](void*, cudaStream_t, void*) {}, memory}}).allocate(5);
    }
    cuda::Device on;
    if (what == "grid limit") on.set_grid_limit(0);
    if (what == "memory") on.release(on.allocate(std::size_t{1} << 50));
    if (what == "copy") on.upload(nullptr, "bytes", 5);
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

Lists upload_lists() {
  cuda::Device on;
  const auto bytes = [](const char* text) { return std::as_bytes(std::span(text, 4)); };
  const std::byte* first = on.list(bytes("abcd"), "test");
  const std::byte* same = on.list(bytes("abcd"), "test");
  const std::byte* other = on.list(bytes("efgh"), "test");
  Lists lists;
  lists.contents.resize(4);
  on.download(lists.contents.data(), other, 4);
  lists.kept = first == same;
  return lists;
}

std::string list_after_failure() {
  cuda::Device on;
  const auto abcd = std::as_bytes(std::span("abcd", 4));
  on.list(abcd, "test");
  try {
    on.list(std::span(abcd.data(), std::size_t{1} << 50), "test");  // no GPU has room for it, and nobody reads it
    return "no failure";
  } catch (const Error&) {
  }
  const std::byte* list = on.list(abcd, "test");
  std::string contents(4, ' ');
  on.download(contents.data(), list, 4);
  return contents;
}

std::string callers_memory() {
  Pieces pieces;
  std::string wrong;
  {
    cuda::Device on({.memory = {Pieces::allocate, Pieces::release, &pieces}});
    if (pieces.on != nullptr) wrong += "memory before it is needed, ";
    wrong += work(on);
    if (pieces.alive < 3) wrong += "too few pieces: scratch, a list, cuBLASLt's, ";
    if (pieces.on != on.stream()) wrong += "the stream, ";
  }
  if (pieces.alive != 0) wrong += "a leak, ";
  return wrong;
}

std::string kept_memory() {
  cuda::Device on;
  std::string wrong;
  void* const first = on.allocate(1000);
  on.release(first);
  if (on.allocate(900) != first) wrong += "as large, ";
  void* const other = on.allocate(1000);
  if (other == first) wrong += "given twice, ";
  on.release(first);
  void* const small = on.allocate(10);
  if (small == first) wrong += "much smaller, ";
  on.release(small);
  on.release(other);
  on.trim();
  on.trim();
  return wrong;
}

std::string replayed() {
  cuda::Device on;
  cuda::Device::Recording recording;
  support::Array<bf16> x(on, std::vector<double>(64, 1)), y(on, 64);
  support::Array<float> bias(on, std::vector<double>(8, 1)), copied(on, 4);
  int calls = 0;
  std::string wrong;
  const auto bytes = [](const char* text) { return std::as_bytes(std::span(text, 4)); };
  const auto work = [&] {  // a product and a kernel with scratch memory, and a list
    ++calls;
    LinearArgs<bf16, bf16> a;
    a.y = y.data();
    a.x = a.w = x.data();
    a.bias = bias.data();
    a.rows = a.in = a.out = 8;
    linear(on, a);
    const auto* list = reinterpret_cast<const float*>(on.list(bytes("abcd"), "test"));
    add(on, AddArgs<float>{.y = copied.data(), .a = list, .b = copied.data() + 1, .count = 1});
  };
  const auto run = [&](double number, std::int64_t key, int expected_calls, const char* what) {
    const std::vector<bf16> numbers(64, from_float<bf16>(static_cast<float>(number)));
    const float zeros[2]{};
    on.upload(x.data(), numbers.data(), numbers.size() * sizeof(bf16));
    on.upload(copied.data(), zeros, sizeof zeros);
    on.run(recording, std::span(&key, 1), work);
    float list = 0;
    on.download(&list, copied.data(), sizeof list);
    if (y.download() != std::vector<double>(64, 8 * number * number + 1) || std::memcmp(&list, "abcd", 4) != 0 ||
        calls != expected_calls)
      wrong += std::string(what) + ", ";
  };
  run(1, 7, 1, "first");
  const auto other_lists = [&on] {
    for (char i = 0; i < 40; ++i) on.list(std::as_bytes(std::span(&i, 1)), "test");
  };
  other_lists();
  run(2, 7, 2, "recorded");
  if (!recording) wrong += "no recording, ";
  run(3, 7, 2, "replayed");
  run(1, 8, 3, "another key");
  run(2, 8, 4, "recorded again");
  other_lists();
  run(1, 8, 4, "replayed with a forgotten list");
  on.scratch<float>(std::size_t{1} << 20, "test");
  run(2, 8, 5, "with other scratch memory");
  const auto fails = [&]() -> void { throw Error("work", "nothing", "success", "failure"); };
  const std::int64_t key = 8;
  try {
    on.run(recording, std::span(&key, 1), fails);
    wrong += "no error, ";
  } catch (const Error&) {
  }
  run(3, 8, 6, "after a failure");
  run(1, 8, 7, "recorded after a failure");
  run(2, 8, 7, "replayed after a failure");
  return wrong;
}

std::string not_recorded() {
  std::string wrong;
  for (const cudaStream_t stream : {cudaStream_t{nullptr}, cudaStreamLegacy}) {
    cuda::Device on({.stream = stream});
    cuda::Device::Recording recording;
    support::Array<float> x(on, std::vector<double>(64, 1));
    const std::int64_t key = 1;
    for (int i = 0; i < 3; ++i)
      on.run(recording, std::span(&key, 1),
             [&] { add(on, AddArgs<float>{.y = x.data(), .a = x.data(), .b = x.data(), .count = 64}); });
    if (recording || x.download() != std::vector<double>(64, 8)) wrong += stream ? "legacy, " : "null, ";
  }
  return wrong;
}

std::string captured_by_the_caller() {
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t captured = nullptr;
  std::string wrong;
  if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess) return "no stream";
  {
    cuda::Device on({.stream = stream});
    support::Array<float> x(on, std::vector<double>(64, 3.)), y(on, 64);
    const auto complaint = [&](const auto& call) -> std::string {
      (void)cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
      std::string text = "none";
      try {
        call();
      } catch (const Error& error) {
        text = error.what();
      }
      if (cudaStreamEndCapture(stream, &graph) != cudaSuccess) text += ", and the capture failed";
      if (text != "none" && graph) (void)cudaGraphDestroy(std::exchange(graph, nullptr));
      return text;
    };
    const std::string no_capture =
        ": stream: expected no capture: run the same operations once before, got a capture of the stream";
    float number = 0;
    if (complaint([&] { on.upload(x.data(), &number, sizeof number); }) != "cuda::Device::upload" + no_capture)
      wrong += "upload, ";
    if (complaint([&] { on.download(&number, x.data(), sizeof number); }) != "cuda::Device::download" + no_capture)
      wrong += "download, ";
    if (complaint([&] { on.scratch<float>(64, "some operation"); }) != "some operation" + no_capture)
      wrong += "scratch, ";
    if (complaint([&] { support::Array<float>(on, 64); }) != "cuda::Device::allocate" + no_capture) wrong += "memory, ";
    if (complaint([&] { on.list(std::as_bytes(std::span("abcd")), "some operation"); }) !=
        "some operation" + no_capture)
      wrong += "a list, ";
    const auto product = [&](std::int64_t rows) {
      LinearArgs<float, float> a;
      a.y = y.data();
      a.x = a.w = x.data();
      a.rows = rows;
      a.in = a.out = 4;
      linear(on, a);
    };
    if (complaint([&] { product(1); }) != "linear" + no_capture) wrong += "the first product, ";
    product(1);
    if (complaint([&] { product(2); }) != "none") wrong += "a product whose workspace is there, ";
    on.scratch<float>(64, "some operation");
    const auto sum = [&] {
      on.scratch<float>(64, "some operation");
      add(on, AddArgs<float>{.y = y.data(), .a = x.data(), .b = x.data(), .count = 64});
    };
    if (complaint(sum) != "none") wrong += "an operation whose memory is there, ";
    if (cudaGraphInstantiate(&captured, graph, 0) != cudaSuccess || cudaGraphLaunch(captured, stream) != cudaSuccess)
      wrong += "the graph, ";
    if (y.download() != std::vector<double>(64, 6.)) wrong += "its result, ";
    if (captured) (void)cudaGraphExecDestroy(captured);
    if (graph) (void)cudaGraphDestroy(graph);
  }
  (void)cudaStreamDestroy(stream);
  return wrong;
}

std::string with_another_gpu_current() {
  int count = 0, gpu = -1;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count < 2) return "one GPU";
  std::string wrong;
  try {
    (void)cudaSetDevice(1);
    cuda::Device on;
    (void)cudaSetDevice(0);
    wrong = work(on);
  } catch (const Error& error) {
    wrong = error.what();
  }
  if (cudaGetDevice(&gpu) != cudaSuccess || gpu != 0) wrong += "the current GPU, ";
  (void)cudaSetDevice(0);
  if (cudaGetLastError() != cudaSuccess) wrong += "an error that nobody looked at";
  return wrong;
}

std::vector<SharedMemory> shared_memory() {
  std::vector<SharedMemory> list;
  add_shared_memory<float, 32>("f32", list);
  add_shared_memory<float, 64>("f32", list);
  add_shared_memory<float, 128>("f32", list);
  add_shared_memory<float, 256>("f32", list);
  add_shared_memory<bf16, 32>("bf16", list);
  add_shared_memory<bf16, 64>("bf16", list);
  add_shared_memory<bf16, 128>("bf16", list);
  add_shared_memory<bf16, 256>("bf16", list);
  return list;
}

}  // namespace device
