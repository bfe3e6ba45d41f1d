// Device code that nobody here wrote, in three orders, as nvcc makes it for two architectures and with -G: other
// instructions, the same results, and no false complaint.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <random>

#include "module.hpp"
#include "numbers.hpp"

namespace {

using namespace ptx;

struct Numbers {
  int all[40];
};

struct Kernels {
  Module module{read_file(std::getenv("TYPEFORMER_PTX"))};
  std::mt19937 random{1};

  Kernels() {
    // -O0 copies whole structures, padding and all
    module.options.check_undefined = !std::getenv("TYPEFORMER_PTX_UNOPTIMIZED");
  }
  /// Memory that kernels may touch; it lives as long as the case.
  template <class T>
  std::vector<T>& memory(std::vector<T>& values) {
    module.buffers.add(values.data(), values.size() * sizeof(T), "memory");
    return values;
  }
  template <class Case>
  void in_three_orders(Case run) {
    for (u64 seed = 0; seed < 3; ++seed) {
      module.options.seed = seed;
      module.options.max_steps = module.statistics.warp_instructions + 20'000'000;
      module.buffers.clear();
      run();
    }
  }
  std::vector<float> numbers(std::size_t count) {
    std::vector<float> all(count);
    for (float& value : all) value = static_cast<float>(static_cast<int>(random() % 100) - 50);
    return all;
  }
  std::vector<int> integers(std::size_t count) {
    std::vector<int> all(count);
    for (int& value : all) value = static_cast<int>(random() % 100);
    return all;
  }
};

TEST_CASE("CUB") {
  Kernels k;
  k.in_three_orders([&] {
    auto x = k.numbers(4096), y = std::vector<float>(4);
    k.memory(x), k.memory(y);
    k.module.launch("block_reduce", {4}, {256}, 0, x.data(), y.data());
    for (int b = 0; b < 4; ++b)
      CHECK(y[static_cast<std::size_t>(b)] == std::accumulate(x.begin() + b * 1024, x.begin() + b * 1024 + 1024, 0.f));
    auto i = k.integers(512), sums = std::vector<int>(512), expected = sums;
    k.memory(i), k.memory(sums);
    k.module.launch("block_scan", {1}, {128}, 0, i.data(), sums.data());
    std::exclusive_scan(i.begin(), i.end(), expected.begin(), 0);
    CHECK(sums == expected);
    std::vector<u32> words(512), sorted(512);
    for (u32& word : words) word = static_cast<u32>(k.random());
    k.memory(words), k.memory(sorted);
    k.module.launch("radix_sort", {1}, {128}, 0, words.data(), sorted.data());
    std::sort(words.begin(), words.end());
    CHECK(sorted == words);
  });
}
TEST_CASE("cooperative groups") {
  Kernels k;
  k.in_three_orders([&] {
    auto x = k.numbers(1000), y = std::vector<float>(2);
    k.memory(x), k.memory(y);
    k.module.launch("group_reduce", {1}, {128}, 0, x.data(), y.data(), 1000);
    CHECK(y[0] == std::accumulate(x.begin(), x.end(), 0.f));
    std::vector<int> i(32), o(32);
    std::iota(i.begin(), i.end(), 0);
    k.memory(i), k.memory(o);
    k.module.launch("group_scan", {1}, {32}, 0, i.data(), o.data());
    for (int n = 0; n < 32; ++n) CHECK(o[static_cast<std::size_t>(n)] == (n & 1 ? -16 : n * (n - 1) / 2));
  });
}
TEST_CASE("asynchronous copies of libcu++ and cooperative groups") {
  Kernels k;
  k.in_three_orders([&] {
    for (const auto& [name, threads, piece] :
         {std::tuple("barrier_copy", 256u, 1), {"pipeline_copy", 256u, 1}, {"group_copy", 64u, 4}}) {
      CAPTURE(name);
      std::vector<float> x(256), expected(256);
      std::iota(x.begin(), x.end(), 0.f);
      const int pieces = 256 / piece;
      for (int i = 0; i < 256; ++i)
        expected[static_cast<std::size_t>(i)] = static_cast<float>((pieces - 1 - i / piece) * piece + i % piece);
      k.memory(x);
      k.module.launch(name, {1}, {threads}, 0, x.data());
      CHECK(x == expected);
    }
  });
}
TEST_CASE("number types") {
  Kernels k;
  k.in_three_orders([&] {
    std::vector<u16> a(64), b(64), c(64), d(64);
    for (u32 i = 0; i < 64; ++i) {
      a[i] = float_to_bf16(static_cast<float>(i) * 0.01f);
      b[i] = float_to_bf16(0.3f - static_cast<float>(i) * 0.001f);
    }
    k.memory(a), k.memory(b), k.memory(c), k.memory(d);
    k.module.launch("halves", {1}, {64}, 0, a.data(), b.data(), c.data(), d.data(), 32);
    for (u32 i = 0; i < 64; ++i) {
      const float x = from_bf16(a[i]), y = from_bf16(b[i]);
      const float expected = i % 2 == 0 && x > y ? std::sqrt(x) : x * y + std::max(x, y);
      CHECK(std::fabs(from_bf16(c[i]) - expected) < 3e-3f);
      CHECK(std::fabs(from_half(d[i]) - std::exp2(x + 0.5f)) < 3e-3f);
    }
    std::vector<u8> narrow(128);
    std::vector<float> in(128), back(128);
    for (u32 i = 0; i < 128; ++i) in[i] = (static_cast<float>(i) - 64) * 7.3f * (i % 3 ? 0.01f : 1.f);
    k.memory(narrow), k.memory(in), k.memory(back);
    k.module.launch("fp8", {1}, {128}, 0, in.data(), narrow.data(), back.data(), 128);
    for (u32 i = 0; i < 128; ++i)
      CHECK(std::fabs(back[i] - std::clamp(in[i], -448.f, 448.f)) <= std::max(std::fabs(in[i]) / 16, 1e-3f));
  });
}
TEST_CASE("atomics, tickets and locks") {
  Kernels k;
  k.in_three_orders([&] {
    auto x = k.integers(1000), h = std::vector<int>(65), expected = h;
    for (const int value : x) expected[static_cast<std::size_t>(value & 63)] += 3;
    expected[64] = 10;
    k.memory(x), k.memory(h);
    k.module.launch("histogram", {3}, {100}, 0, x.data(), h.data(), 1000);
    CHECK(h == expected);
    std::vector<int> ids{1, 0, 1};
    std::vector<u16> rows(96, float_to_bf16(1.5f)), table(64, float_to_bf16(0.25f));
    std::vector<float> counts(16);
    k.memory(ids), k.memory(rows), k.memory(table), k.memory(counts);
    k.module.launch("add_rows", {3}, {32}, 0, ids.data(), rows.data(), table.data(), counts.data(), 16);
    CHECK((from_bf16(table[0]) == 1.75f && from_bf16(table[32]) == 3.25f && counts[3] == 3));
    auto numbers = k.numbers(8), parts = std::vector<float>(8), out = std::vector<float>(1);
    std::vector<u32> ticket(1);
    k.memory(numbers), k.memory(parts), k.memory(out), k.memory(ticket);
    k.module.launch("last_block", {8}, {32}, 0, numbers.data(), parts.data(), out.data(), ticket.data());
    CHECK(out[0] == 2 * std::accumulate(numbers.begin(), numbers.end(), 0.f));
    std::vector<int> lock(1), n(1);
    k.memory(lock), k.memory(n);
    k.module.launch("spin_lock", {2}, {64}, 0, lock.data(), n.data());
    CHECK(n[0] == 128);
  });
}
TEST_CASE("mathematics") {
  Kernels k;
  k.in_three_orders([&] {
    auto x = k.numbers(200), y = std::vector<float>(200);
    k.memory(x), k.memory(y);
    k.module.launch("mathematics", {2}, {128}, 0, x.data(), y.data(), 200);
    for (std::size_t i = 0; i < 200; ++i) {
      const double v = double{x[i]};
      const double expected = v * 0.5 * std::erfc(-v / std::sqrt(2.0)) + std::erf(v) + std::tanh(v) +
                              std::pow(std::fabs(v), double{1.7f}) + std::log1p(std::fabs(v)) + std::expm1(v) + v / 3 +
                              std::cos(v * 1000);
      CHECK(std::fabs(double{y[i]} - expected) / (1 + std::fabs(expected)) < 3e-6);
    }
  });
}
TEST_CASE("calls, switches, constants, assertions, printf") {
  Kernels k;
  k.in_three_orders([&] {
    std::vector<float> y(32);
    k.memory(y);
    k.module.launch("call", {1}, {32}, 0, y.data());
    for (int i = 0; i < 32; ++i)
      CHECK(y[static_cast<std::size_t>(i)] == static_cast<float>((i & 7) > 3 ? i * (i & 7) : i + (i & 7)));
    Numbers numbers{};
    std::iota(std::begin(numbers.all), std::end(numbers.all), 0);
    k.module.launch("parameters", {1}, {32}, 0, y.data(), numbers);
    for (int i = 0; i < 32; ++i)
      CHECK(y[static_cast<std::size_t>(i)] == 1.5f + static_cast<float>((i & 3) + 2 * (i * 7 & 31)));
    std::vector<int> x(32), o(32);
    for (int i = 0; i < 32; ++i) {
      x[static_cast<std::size_t>(i)] = i % 9;
      o[static_cast<std::size_t>(i)] = 1000 + i;
    }
    k.memory(x), k.memory(o);
    k.module.launch("switched", {1}, {32}, 0, x.data(), o.data());
    for (int i = 0; i < 32; ++i) {
      const int all[] = {5, 17 * i, 1000 + i, -1, 99, __builtin_popcount(static_cast<u32>(i)), __builtin_ffs(i), 0, 0};
      CHECK(o[static_cast<std::size_t>(i)] == all[i % 9]);
    }
    x[5] = 1000;
    k.module.launch("assertion", {1}, {32}, 0, x.data());  // prints
    x[6] = -1;
    CHECK_THROWS_WITH_AS(k.module.launch("assertion", {1}, {32}, 0, x.data()), doctest::Contains("x[threadIdx.x] >= 0"),
                         Error);
  });
}

}  // namespace
