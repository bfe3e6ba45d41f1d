// The CUDA device itself.
#include "device.hpp"

#include "arrays.hpp"

namespace device {
namespace {

using namespace typeformer;
namespace kernels = typeformer::cuda::detail;

template <class T, int depth>
void add_shared_memory(const std::string& number, std::vector<SharedMemory>& list) {
  const std::string tail = " " + number + " " + std::to_string(depth);
  using Forward = typename kernels::TileOf<T, depth, kernels::AttentionPass::forward>::type;
  using Queries = typename kernels::TileOf<T, depth, kernels::AttentionPass::queries>::type;
  using Keys = typename kernels::TileOf<T, depth, kernels::AttentionPass::keys>::type;
  list.push_back({"forward" + tail, kernels::TileMemory<Forward>::bytes(1)});
  list.push_back({"queries" + tail, kernels::TileMemory<Queries>::bytes(2)});
  list.push_back({"keys" + tail, kernels::TileMemory<Keys>::bytes(2) + 4 * Keys::columns * sizeof(float)});
}

}  // namespace

std::vector<double> round_trip(const std::vector<double>& numbers, bool own_stream) {
  if (own_stream) {
    cuda::Device on;
    return support::Array<bf16>(on, numbers).download();
  }
  cuda::Device on(static_cast<cudaStream_t>(nullptr));
  return support::Array<bf16>(on, numbers).download();
}

std::string complaint(const std::string& what) {
  try {
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
  const std::byte* first = on.list(2, bytes("abcd"), "test");
  const std::byte* same = on.list(2, bytes("abcd"), "test");
  const std::byte* other = on.list(2, bytes("efgh"), "test");
  Lists lists;
  lists.contents.resize(4);
  on.download(lists.contents.data(), other, 4);
  lists.kept = first == same;
  return lists;
}

std::string list_after_failure() {
  cuda::Device on;
  const auto abcd = std::as_bytes(std::span("abcd", 4));
  on.list(2, abcd, "test");
  try {
    on.list(2, std::span(abcd.data(), std::size_t{1} << 50), "test");  // no GPU has room for it, and nobody reads it
    return "no failure";
  } catch (const Error&) {
  }
  const std::byte* list = on.list(2, abcd, "test");
  std::string contents(4, ' ');
  on.download(contents.data(), list, 4);
  return contents;
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
