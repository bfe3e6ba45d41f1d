// The library inside a program of one's own: own token ids, own memory, a cache as large as one says, and two threads
// that read one const model, each with a state of its own.
//
//   embed [tokens]
//
// test: 24
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <thread>
#include <typeformer/cpu.hpp>
#include <vector>

namespace tf = typeformer;

using Tiny =
    tf::Transformer<tf::Dims{.vocab = 97, .d_model = 64, .n_layers = 4, .d_ff = 172, .max_seq = 256}, tf::RMSNorm{},
                    tf::SwiGLU{}, tf::RoPE{}, tf::GQA{.heads = 4, .kv_heads = 2}, tf::PreNorm{}>;

/// Memory that the program answers for; here it only counts what is asked for.
struct Pool {
  std::atomic<std::size_t> blocks = 0, bytes = 0;
  static void* allocate(std::size_t bytes, void* user) {
    auto& pool = *static_cast<Pool*>(user);
    ++pool.blocks;
    pool.bytes += bytes;
    return std::aligned_alloc(64, bytes);
  }
  static void release(void* memory, void* user) {
    --static_cast<Pool*>(user)->blocks;
    std::free(memory);
  }
};

/// The likeliest `count` ids after a prompt.
std::vector<std::int32_t> continued(const tf::Model<Tiny, tf::cpu::Device>& model, std::vector<std::int32_t> prompt,
                                    int count) {
  tf::State state(model, {.capacity = static_cast<int>(prompt.size()) + count});
  std::vector<std::int32_t> ids;
  while (static_cast<int>(ids.size()) < count) {
    ids.push_back(tf::extend_and_sample(model, state, prompt, {.temperature = 0.f}));
    prompt = {ids.back()};
  }
  return ids;
}

int main(int argc, char** argv) try {
  const int count = argc > 1 ? std::atoi(argv[1]) : 16;
  if (count < 1) return std::fputs("usage: embed [tokens]\n", stderr), 2;
  Pool pool;
  std::vector<std::int32_t> first, second;
  {
    tf::cpu::Device device({.threads = 2, .allocate = Pool::allocate, .release = Pool::release, .user = &pool});
    tf::Model<Tiny, tf::cpu::Device> weights(device);
    tf::initialize(weights, 1);
    const auto& model = weights;
    std::thread other([&] { second = continued(model, {5, 3, 1}, count); });
    first = continued(model, {2, 7, 1, 8}, count);
    other.join();
    std::printf("%zu blocks and %zu bytes of the program's memory\n", pool.blocks.load(), pool.bytes.load());
    if (first != continued(model, {2, 7, 1, 8}, count)) return std::puts("two threads disturbed each other"), 1;
  }
  for (const auto& ids : {first, second}) {
    for (const std::int32_t id : ids) std::printf("%d ", id);
    std::puts("");
  }
  return pool.blocks == 0 && static_cast<int>(first.size()) == count ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
