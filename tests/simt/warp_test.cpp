// Warp and block collectives against scalar expectations, the shuffles by the pseudo-code of the PTX manual's
// shfl.sync.
#include <algorithm>
#include <numeric>

#include "support.hpp"

namespace {

enum Kind { index_of, up, down, butterfly };

__global__ void shuffle_words(int kind, int width, int argument, unsigned mask, unsigned* out) {
  if (!(mask >> threadIdx.x & 1u)) return;
  const unsigned mine = 1000 + threadIdx.x;
  unsigned got = 0;
  if (kind == index_of) got = __shfl_sync(mask, mine, argument, width);
  if (kind == up) got = __shfl_up_sync(mask, mine, static_cast<unsigned>(argument), width);
  if (kind == down) got = __shfl_down_sync(mask, mine, static_cast<unsigned>(argument), width);
  if (kind == butterfly) got = __shfl_xor_sync(mask, mine, argument, width);
  out[threadIdx.x] = got;
}

// PTX ISA, shfl.sync: c holds the segment mask in bits 8-12 and the clamp in bits 0-4.
int ptx_source(int kind, int lane, int b, int width) {
  const int segment = 32 - width, clamp = kind == up ? 0 : 31;
  const int max_lane = (lane & segment) | (clamp & ~segment), min_lane = lane & segment;
  int j = lane;
  bool inside = false;
  switch (kind) {
    case up:
      j = lane - b;
      inside = j >= max_lane;
      break;
    case down:
      j = lane + b;
      inside = j <= max_lane;
      break;
    case butterfly:
      j = lane ^ b;
      inside = j <= max_lane;
      break;
    case index_of:
      j = min_lane | (b & ~segment);
      inside = j <= max_lane;
      break;
  }
  return inside ? j : lane;
}

bool every_source_in(unsigned mask, int kind, int width, int argument) {
  for (int lane = 0; lane < 32; ++lane)
    if (mask >> lane & 1u && !(mask >> ptx_source(kind, lane, argument, width) & 1u)) return false;
  return true;
}

template <class T>
__global__ void shuffle_type(const T* in, T* out) {
  const T value = in[threadIdx.x];
  out[threadIdx.x] = __shfl_xor_sync(all_lanes, value, 5);
}

__global__ void vote(unsigned mask, unsigned pattern, unsigned* out) {
  if (!(mask >> threadIdx.x & 1u)) return;
  const int mine = pattern >> threadIdx.x & 1u;
  const unsigned ballot = __ballot_sync(mask, mine);
  const int any = __any_sync(mask, mine);
  const int all = __all_sync(mask, mine);
  out[threadIdx.x] = ballot;
  out[32 + threadIdx.x] = static_cast<unsigned>(any * 2 + all);
}

__global__ void reduce(unsigned mask, const unsigned* in, unsigned* out) {
  const unsigned lane = threadIdx.x;
  if (!(mask >> lane & 1u)) return;
  const unsigned x = in[lane];
  const int s = static_cast<int>(x);
  unsigned results[9];
  results[0] = __reduce_add_sync(mask, x);
  results[1] = __reduce_min_sync(mask, x);
  results[2] = __reduce_max_sync(mask, x);
  results[3] = __reduce_and_sync(mask, x);
  results[4] = __reduce_or_sync(mask, x);
  results[5] = __reduce_xor_sync(mask, x);
  results[6] = static_cast<unsigned>(__reduce_add_sync(mask, s));
  results[7] = static_cast<unsigned>(__reduce_min_sync(mask, s));
  results[8] = static_cast<unsigned>(__reduce_max_sync(mask, s));
  for (int i = 0; i < 9; ++i) out[32 * i + static_cast<int>(lane)] = results[i];
}

__global__ void barrier_votes(unsigned limit, int* out) {
  const unsigned i = threadIdx.x;
  const int any = __syncthreads_or(i == limit);
  const int all = __syncthreads_and(i < limit);
  const int count = __syncthreads_count(i < limit);
  out[i] = any * 10000 + all * 1000 + count;
}

// Reverses through shared memory many times, in one barrier per step.
__global__ void reverse_often(int* data, int times) {
  TYPEFORMER_SHARED_ARRAY(int, buffer, 2 * 160);
  int value = data[threadIdx.x];
  for (int k = 0; k < times; ++k) {
    int* half = buffer + (k & 1) * 160;
    half[threadIdx.x] = value;
    __syncthreads();
    value = half[159 - threadIdx.x] + 1;
  }
  data[threadIdx.x] = value;
}

__global__ void indices(unsigned* out) {
  const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  out[block * blockDim.x * blockDim.y * blockDim.z + thread] = (threadIdx.x << 0) + (threadIdx.y << 4) +
                                                               (threadIdx.z << 8) + (blockIdx.x << 12) +
                                                               (blockIdx.y << 16) + (blockIdx.z << 20);
}

__global__ void incomplete_warp(unsigned* out) {
  const unsigned lane = threadIdx.x & 31u;
  const unsigned mask = threadIdx.x < 32 ? all_lanes : 0xffu;  // 40 threads
  const unsigned sum = __reduce_add_sync(mask, threadIdx.x);
  __syncwarp();
  out[threadIdx.x] = sum + __shfl_sync(mask, lane, 7);
}

__global__ void atomics(int* words, unsigned* naturals, float* sum, double* wide, unsigned long long* big) {
  const int value = static_cast<int>(threadIdx.x + blockIdx.x * blockDim.x);
  const auto natural = static_cast<unsigned>(value);
  atomicAdd(&words[0], value);
  atomicSub(&words[1], 2);
  atomicMin(&words[2], -value);
  atomicMax(&words[3], value);
  atomicOr(&words[4], 1 << (value % 31));
  atomicAnd(&words[5], ~(1 << (value % 7)));
  atomicXor(&words[6], value);
  atomicAdd(&naturals[0], 1u);
  atomicMax(&naturals[1], natural * 0x9E3779B9u);
  atomicMin(&naturals[2], natural * 0x9E3779B9u);
  atomicInc(&naturals[3], 99u);
  atomicDec(&naturals[4], 99u);
  if (atomicCAS(&naturals[5], natural, natural + 1u) == natural) atomicAdd(&naturals[6], 1u);
  if (atomicExch(&naturals[7], natural) == 0xabcdu) atomicAdd(&naturals[8], 1u);
  atomicAdd(sum, 0.25f);
  atomicAdd(wide, 0.125);
  atomicAdd(big, 1ull << 33);
}

}  // namespace

TEST_CASE("shuffles of every kind, width and argument give what PTX's pseudo-code gives") {
  for (const unsigned mask : {all_lanes, 0x0000ffffu, 0xff00ff00u, 0x00000001u, 0x55555555u, 0xf0f0f0f0u}) {
    DeviceArray<unsigned> out(32);
    for (const int kind : {index_of, up, down, butterfly})
      for (const int width : {1, 2, 4, 8, 16, 32})
        for (int argument = 0; argument < 32; argument += mask == all_lanes ? 1 : 5) {
          if (!every_source_in(mask, kind, width, argument)) continue;
          run(shuffle_words, {1, 32}, kind, width, argument, mask, out.get());
          const auto got = out.values();
          for (int lane = 0; lane < 32; ++lane)
            if (mask >> lane & 1u)
              REQUIRE(got[static_cast<std::size_t>(lane)] ==
                      1000u + static_cast<unsigned>(ptx_source(kind, lane, argument, width)));
        }
  }
}

TEST_CASE_TEMPLATE("shuffles move values of 1 to 8 bytes", T, signed char, bf16, float, int, double, long long) {
  std::vector<T> in(32);
  auto* bytes = reinterpret_cast<unsigned char*>(in.data());
  for (std::size_t i = 0; i < 32 * sizeof(T); ++i)
    bytes[i] = static_cast<unsigned char>(scramble(static_cast<unsigned>(i)) & 0x3fu);
  const DeviceArray<T> from(in);
  const DeviceArray<T> to(32);
  run(shuffle_type<T>, {1, 32}, static_cast<const T*>(from.get()), to.get());
  const auto got = to.values();
  for (std::size_t i = 0; i < 32; ++i) CHECK(std::memcmp(&got[i], &in[i ^ 5], sizeof(T)) == 0);
}

TEST_CASE("votes over full and partial masks") {
  const DeviceArray<unsigned> out(64);
  for (const unsigned mask : {all_lanes, 0x0000ffffu, 0x80000001u, 0x00f0f00fu})
    for (const unsigned pattern : {0u, all_lanes, 0x12345678u, 0x80000000u, mask}) {
      run(vote, {1, 32}, mask, pattern, out.get());
      const auto got = out.values();
      const unsigned any = (pattern & mask) != 0, all = (pattern & mask) == mask;
      for (std::size_t lane = 0; lane < 32; ++lane)
        if (mask >> lane & 1u) {
          CHECK(got[lane] == (pattern & mask));
          CHECK(got[32 + lane] == any * 2 + all);
        }
    }
}

TEST_CASE("integer reductions over full and partial masks, signed and unsigned") {
  std::vector<unsigned> in(32);
  for (unsigned i = 0; i < 32; ++i) in[i] = scramble(i + 7);
  const DeviceArray<unsigned> from(in), out(9 * 32);
  for (const unsigned mask : {all_lanes, 0x0000ffffu, 0x80000001u, 0x00f0f00fu}) {
    run(reduce, {1, 32}, mask, static_cast<const unsigned*>(from.get()), out.get());
    const auto got = out.values();
    std::vector<unsigned> x;
    for (std::size_t lane = 0; lane < 32; ++lane)
      if (mask >> lane & 1u) x.push_back(in[lane]);
    const std::vector<int> s(x.begin(), x.end());
    const unsigned sum = std::accumulate(x.begin(), x.end(), 0u);
    const unsigned expected[9] = {
        sum,
        *std::min_element(x.begin(), x.end()),
        *std::max_element(x.begin(), x.end()),
        std::accumulate(x.begin(), x.end(), ~0u, [](unsigned a, unsigned b) { return a & b; }),
        std::accumulate(x.begin(), x.end(), 0u, [](unsigned a, unsigned b) { return a | b; }),
        std::accumulate(x.begin(), x.end(), 0u, [](unsigned a, unsigned b) { return a ^ b; }),
        sum,
        static_cast<unsigned>(*std::min_element(s.begin(), s.end())),
        static_cast<unsigned>(*std::max_element(s.begin(), s.end()))};
    for (std::size_t lane = 0; lane < 32; ++lane)
      for (std::size_t i = 0; i < 9; ++i)
        if (mask >> lane & 1u) CHECK(got[32 * i + lane] == expected[i]);
  }
}

TEST_CASE("barriers that vote tell every thread the same") {
  const DeviceArray<int> out(96);
  for (const unsigned limit : {0u, 1u, 95u, 96u}) {
    run(barrier_votes, {1, 96}, limit, out.get());
    for (const int got : out.values())
      CHECK(got == (limit < 96 ? 10000 : 0) + (limit == 96 ? 1000 : 0) + static_cast<int>(limit));
  }
}

TEST_CASE("a barrier separates the steps of a loop") {
  std::vector<int> in(160);
  std::iota(in.begin(), in.end(), 0);
  const DeviceArray<int> data(in);
  run(reverse_often, {1, 160}, data.get(), 51);
  const auto got = data.values();
  for (int i = 0; i < 160; ++i) CHECK(got[static_cast<std::size_t>(i)] == 159 - i + 51);
}

TEST_CASE("threads and blocks in three dimensions") {
  const dim3 grid(3, 4, 2), block(5, 3, 4);
  const DeviceArray<unsigned> out(24 * 60);
  run(indices, {grid, block}, out.get());
  const auto got = out.values();
  std::size_t at = 0;
  for (unsigned c = 0; c < 2; ++c)
    for (unsigned b = 0; b < 4; ++b)
      for (unsigned a = 0; a < 3; ++a)
        for (unsigned z = 0; z < 4; ++z)
          for (unsigned y = 0; y < 3; ++y)
            for (unsigned x = 0; x < 5; ++x)
              CHECK(got[at++] == x + (y << 4) + (z << 8) + (a << 12) + (b << 16) + (c << 20));
}

TEST_CASE("a warp that is not full") {
  const DeviceArray<unsigned> out(40);
  run(incomplete_warp, {1, 40}, out.get());
  const auto got = out.values();
  for (std::size_t i = 0; i < 40; ++i) CHECK(got[i] == (i < 32 ? 496u : 32u * 8 + 28) + 7u);
}

TEST_CASE("atomic operations of many blocks") {
  const DeviceArray<int> words(std::vector<int>{0, 0, 0, 0, 0, -1, 0});
  const DeviceArray<unsigned> naturals(std::vector<unsigned>{0, 0, ~0u, 0, 0, 5, 0, 0xabcd, 0});
  const DeviceArray<float> sum(std::vector<float>{0});
  const DeviceArray<double> wide(std::vector<double>{0});
  const DeviceArray<unsigned long long> big(std::vector<unsigned long long>{0});
  const int count = 6 * 64;
  run(atomics, {6, 64}, words.get(), naturals.get(), sum.get(), wide.get(), big.get());
  const auto w = words.values();
  int all = 0;
  unsigned largest = 0, smallest = ~0u;
  for (int i = 0; i < count; ++i) {
    all ^= i;
    largest = std::max(largest, static_cast<unsigned>(i) * 0x9E3779B9u);
    smallest = std::min(smallest, static_cast<unsigned>(i) * 0x9E3779B9u);
  }
  CHECK(w[0] == count * (count - 1) / 2);
  CHECK(w[1] == -2 * count);
  CHECK(w[2] == 1 - count);
  CHECK(w[3] == count - 1);
  CHECK(w[4] == 0x7fffffff);
  CHECK(w[5] == ~0x7f);
  CHECK(w[6] == all);
  const auto n = naturals.values();
  CHECK(n[0] == static_cast<unsigned>(count));
  CHECK(n[1] == largest);
  CHECK(n[2] == smallest);
  CHECK(n[3] == static_cast<unsigned>(count) % 100);
  CHECK(n[4] == (100 - static_cast<unsigned>(count) % 100) % 100);
  CHECK(n[6] == n[5] - 5);  // each success moved it by one
  CHECK(n[6] >= 1);
  CHECK(n[8] == 1);
  CHECK(sum.values()[0] == 0.25f * static_cast<float>(count));
  CHECK(wide.values()[0] == 0.125 * count);
  CHECK(big.values()[0] == static_cast<unsigned long long>(count) << 33);
}
