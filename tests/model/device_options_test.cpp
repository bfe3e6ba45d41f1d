// test: sanitize
// A CPU device in the caller's memory: everything comes from it and goes back; what it cannot give is an Error.
#include <doctest/doctest.h>

#include <array>
#include <cstdlib>
#include <new>
#include <set>

#include "model/tiny_models.hpp"
#include "typeformer/cpu.hpp"
#include "typeformer/model/transformer.hpp"

namespace tf = typeformer;

namespace {

/// Counts blocks; gives none after the first `most`, and moves every address by `shift`.
struct Pool {
  std::set<void*> held{};
  int given = 0, most = 1 << 30, shift = 0;
  static void* allocate(std::size_t bytes, void* user) {
    auto& pool = *static_cast<Pool*>(user);
    if (pool.given == pool.most) return nullptr;
    ++pool.given;
    void* memory = static_cast<char*>(std::aligned_alloc(64, bytes + 64)) + pool.shift;
    pool.held.insert(memory);
    return memory;
  }
  static void release(void* memory, void* user) {
    auto& pool = *static_cast<Pool*>(user);
    CHECK(pool.held.erase(memory) == 1);
    std::free(static_cast<char*>(memory) - pool.shift);
  }
  tf::cpu::DeviceOptions options() { return {.threads = 1, .allocate = allocate, .release = release, .user = this}; }
};

std::vector<float> run(tf::cpu::Device& device) {
  tf::Model<tiny::Llama, tf::cpu::Device> model(device);
  initialize(model, 1);
  tf::State state(model);
  return tf::extend(model, state, std::array{1, 2, 3});
}

}  // namespace

TEST_CASE("weights, caches and activations lie in the caller's memory, and all of it comes back") {
  Pool pool;
  tf::cpu::Device own(pool.options()), usual(1);
  CHECK(run(own) == run(usual));
  CHECK(pool.given > 5);
  CHECK(pool.held.empty());
}

TEST_CASE("memory that ends is an Error, wherever it ends, and nothing is lost") {
  Pool all;
  tf::cpu::Device device(all.options());
  run(device);
  for (int most = 0; most < all.given; ++most) {
    Pool pool{.most = most};
    tf::cpu::Device short_of_memory(pool.options());
    CHECK_THROWS_AS(run(short_of_memory), tf::Error);
    CHECK(pool.held.empty());
  }
}

TEST_CASE("an address that operations cannot use, or half of the functions, is refused") {
  Pool pool{.shift = 16};
  tf::cpu::Device device(pool.options());
  CHECK_THROWS_WITH_AS(run(device),
                       "cpu::Device::allocate: memory: expected an address that is a multiple of 64, got another one",
                       tf::Error);
  CHECK(pool.held.empty());
  const auto make = [](const tf::cpu::DeviceOptions& options) { tf::cpu::Device refused(options); };
  CHECK_THROWS_WITH_AS(make({.allocate = Pool::allocate}),
                       "cpu::Device: release: expected a function, as the other one is given, got none", tf::Error);
  CHECK_THROWS_AS(make({.release = Pool::release}), tf::Error);
  CHECK_THROWS_AS(make({.threads = -1}), tf::Error);
}
