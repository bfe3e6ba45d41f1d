// What the race checker finds, and what it must not: planted races with their lines, and correct twins. The same
// program without the checker runs the correct kernels only.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "support.hpp"
#include "typeformer/simt/counters.hpp"

namespace {

enum class Bug { none, read_after_write, write_after_read, write_after_write };

// Reverses 64 numbers twice through one buffer.
template <Bug bug>
__global__ void reverse_twice(const int* in, int* out) {
  TYPEFORMER_SHARED_ARRAY(int, buffer, 64);
  const unsigned i = threadIdx.x;
  buffer[bug == Bug::write_after_write ? i & ~32u : i] = in[i];  // @fill
  if constexpr (bug != Bug::read_after_write) __syncthreads();
  const int once = buffer[bug == Bug::write_after_write ? 0 : 63 - i];  // @once
  if constexpr (bug != Bug::write_after_read) __syncthreads();
  buffer[i] = once;  // @again
  __syncthreads();
  out[i] = buffer[63 - i];
}

// Neighbours in a warp exchange; a shuffle in between orders nothing.
template <bool Ordered>
__global__ void exchange_in_warp(const int* in, int* out) {
  TYPEFORMER_SHARED_ARRAY(int, buffer, 64);
  const unsigned i = threadIdx.x;
  buffer[i] = in[i];  // @give
  const int sum = __shfl_xor_sync(all_lanes, in[i], 1);
  if constexpr (Ordered) __syncwarp();
  out[i] = buffer[i ^ 1u] + 0 * sum;  // @take
}

// Half a warp meets; the other half reads too.
template <bool Ordered>
__global__ void partial_sync(const int* in, int* out) {
  TYPEFORMER_SHARED_ARRAY(int, buffer, 32);
  const unsigned i = threadIdx.x;
  buffer[i] = in[i];  // @half give
  if (i < 16) __syncwarp(0xffffu);
  if constexpr (Ordered) __syncwarp();
  out[i] = buffer[(i + 16) % 32];  // @half take
}

// All lanes read one word, meet, and one of them writes it again.
__global__ void broadcast_then_write(const int* in, int* out, int rounds) {
  TYPEFORMER_SHARED_ARRAY(int, word, 1);
  int sum = 0;
  for (int k = 0; k < rounds; ++k) {
    if (static_cast<int>(threadIdx.x) == k) word[0] = in[k];
    __syncwarp();
    sum += word[0];
    __syncwarp();
  }
  out[threadIdx.x] = sum;
}

#if defined(TYPEFORMER_SIMT_RACECHECK)
__global__ void read_other_block(const int* in, int* out) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = in[i];
  if (i == 40) out[i] += out[3];  // @other block
}
#endif
__global__ void write_same_word(int* out) {
  if (threadIdx.x == 0) out[0] = 1;  // @same word
}
__global__ void read_then_other_block_writes(int* data, int* out) {
  if (blockIdx.x == 0) out[threadIdx.x] = data[threadIdx.x];  // @block reads
  if (blockIdx.x == 1) data[threadIdx.x] = 1;                 // @block writes
}
template <bool Atomic>
__global__ void count(int* counter) {
  if constexpr (Atomic)
    atomicAdd(counter, 1);
  else
    *counter += 1;  // @plain count
}
#if defined(TYPEFORMER_SIMT_RACECHECK)
__global__ void atomic_and_plain(int* counter, int* out) {
  atomicAdd(counter, 1);        // @atomic
  out[threadIdx.x] = *counter;  // @plain
}

#endif
// Each block leaves a partial sum; the last one adds them up.
template <bool Fenced>
__global__ void last_block_sums(const int* in, int* partial, unsigned* ticket, int* out) {
  TYPEFORMER_SHARED_ARRAY(unsigned, turn, 1);
  const int sum = __reduce_add_sync(all_lanes, in[blockIdx.x * 32 + threadIdx.x]);
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = sum;  // @partial
    if constexpr (Fenced) __threadfence();
    turn[0] = atomicAdd(ticket, 1u);
  }
  __syncthreads();
  if (turn[0] + 1 == gridDim.x) {
    const int mine = threadIdx.x < gridDim.x ? partial[threadIdx.x] : 0;  // @collect
    const int total = __reduce_add_sync(all_lanes, mine);
    if (threadIdx.x == 0) *out = total;
  }
}

#if defined(TYPEFORMER_SIMT_RACECHECK)
__global__ void never_written(const int* in, int* out) {
  TYPEFORMER_SHARED_ARRAY(int, buffer, 32);
  if (threadIdx.x != 7) buffer[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = buffer[31 - threadIdx.x];  // @unwritten
}

#endif
enum class Copy { right, no_wait, no_barrier, wrong_count, refill_too_early };
// Two stages of asynchronous copies.
template <Copy bug>
__global__ void staged_copies(const int* in, int* out, int stages) {
  auto* buffer = simt::dynamic_shared<int>();
  const unsigned i = threadIdx.x, n = blockDim.x;
  simt::cp_async<4>(buffer + i, in + i);
  simt::cp_async_commit();
  int sum = 0;
  for (unsigned k = 0; k < static_cast<unsigned>(stages); ++k) {
    if (k + 1 < static_cast<unsigned>(stages))
      simt::cp_async<4>(buffer + (k + 1) % 2 * n + i, in + (k + 1) * n + i);  // @refill
    simt::cp_async_commit();
    if constexpr (bug == Copy::wrong_count) simt::cp_async_wait<2>();
    if constexpr (bug != Copy::no_wait && bug != Copy::wrong_count) simt::cp_async_wait<1>();
    if constexpr (bug != Copy::no_barrier) __syncthreads();
    sum += buffer[k % 2 * n + n - 1 - i];  // @use
    if constexpr (bug != Copy::refill_too_early) __syncthreads();
  }
  simt::cp_async_wait<0>();
  out[i] = sum;
}

#if defined(TYPEFORMER_SIMT_RACECHECK)
__global__ void strided(const float* in, float* out, int stride) {
  const unsigned i = threadIdx.x;
  out[i] = in[i * static_cast<unsigned>(stride)];  // @strided
}
__global__ void banks(float* out, int stride) {
  auto* buffer = simt::dynamic_shared<float>();
  const unsigned i = threadIdx.x * static_cast<unsigned>(stride);
  buffer[i] = 1;
  __syncwarp();
  out[threadIdx.x] = buffer[i];  // @banks
}
__global__ void vectors(float* out) {
  auto* buffer = simt::dynamic_shared<float>();
  simt::store_vector(buffer + 4 * threadIdx.x, make_float4(1, 2, 3, 4));
  __syncwarp();
  out[threadIdx.x] = simt::load_vector<float4>(buffer + 4 * threadIdx.x).x;  // @vectors
}
template <bool Swizzled>
__global__ void matrix_rows(unsigned* out) {
  auto* tile = simt::dynamic_shared<std::uint16_t>();  // 32 rows of 64
  for (unsigned i = threadIdx.x; i < 2048; i += 32) tile[i] = 0;
  __syncwarp();
  const unsigned row = threadIdx.x, chunk = Swizzled ? row & 7u : 0u;
  unsigned r[4];
  simt::ldmatrix_x4(r, tile + 64 * row + 8 * chunk);  // @rows
  out[threadIdx.x] = r[0];
}

#endif
std::vector<int> numbers(int count) {
  std::vector<int> result(static_cast<std::size_t>(count));
  std::iota(result.begin(), result.end(), 1);
  return result;
}

}  // namespace

TEST_CASE("correct kernels run without a finding") {
  const auto values = numbers(512);
  const DeviceArray<int> in(values), out(512), data(values);
  const int* from = in.get();
  run(reverse_twice<Bug::none>, {1, 64}, from, out.get());
  CHECK(out.values()[5] == 6);
  run(exchange_in_warp<true>, {1, 64}, from, out.get());
  CHECK(out.values()[5] == 5);
  run(partial_sync<true>, {1, 32}, from, out.get());
  CHECK(out.values()[5] == 22);
  run(broadcast_then_write, {1, 32}, from, out.get(), 20);
  CHECK(out.values()[31] == 210);
  const DeviceArray<int> counter(std::vector<int>{0});
  run(count<true>, {4, 64}, counter.get());
  CHECK(counter.values()[0] == 256);
  run(read_then_other_block_writes, {1, 64}, data.get(), out.get());     // one block only
  for (int i = 0; i < 2; ++i) run(write_same_word, {1, 64}, out.get());  // two launches are ordered
  const DeviceArray<int> partial(16), total(1);
  const DeviceArray<unsigned> ticket(std::vector<unsigned>{0});
  run(last_block_sums<true>, {16, 32}, from, partial.get(), ticket.get(), total.get());
  CHECK(total.values()[0] == 512 * 513 / 2);
  run(staged_copies<Copy::right>, {1, 64, 512}, from, out.get(), 8);
  int expected = 0;
  for (int k = 0; k < 8; ++k) expected += values[static_cast<std::size_t>(64 * k + 60)];
  CHECK(out.values()[3] == expected);
}

#if defined(TYPEFORMER_SIMT_RACECHECK)
TEST_CASE("races in a block") {
  const DeviceArray<int> in(numbers(64)), out(64);
  const int* from = in.get();
  CHECK(mentions(fault_of(reverse_twice<Bug::read_after_write>, {1, 64}, from, out.get()),
                 "race checker: " + at("once"), "read after write with " + at("fill"), "shared"));
  CHECK(mentions(fault_of(reverse_twice<Bug::write_after_read>, {1, 64}, from, out.get()), at("again"),
                 "write after read with " + at("once")));
  CHECK(mentions(fault_of(reverse_twice<Bug::write_after_write>, {1, 64}, from, out.get()), at("fill"),
                 "write after write with " + at("fill")));
}

TEST_CASE("races in a warp: only __syncwarp of both lanes orders them") {
  const DeviceArray<int> in(numbers(64)), out(64);
  const int* from = in.get();
  CHECK(mentions(fault_of(exchange_in_warp<false>, {1, 64}, from, out.get()), at("take"),
                 "read after write with " + at("give")));
  CHECK(mentions(fault_of(partial_sync<false>, {1, 32}, from, out.get()), at("half take"),
                 "read after write with " + at("half give")));
}

TEST_CASE("races between blocks") {
  const DeviceArray<int> in(numbers(64)), out(64), data(numbers(64));
  const int* from = in.get();
  CHECK(mentions(fault_of(read_other_block, {2, 32}, from, out.get()), at("other block"), "of another block"));
  CHECK(mentions(fault_of(write_same_word, {2, 32}, out.get()), at("same word"), "write after write of another block"));
  CHECK(mentions(fault_of(read_then_other_block_writes, {2, 32}, data.get(), out.get()), "of another block",
                 at("block reads"), at("block writes")));
}

TEST_CASE("atomic operations order nothing else, and do not race with each other") {
  const DeviceArray<int> counter(std::vector<int>{0}), out(64);
  CHECK(mentions(fault_of(count<false>, {1, 64}, counter.get()), at("plain count"), "global"));
  CHECK(mentions(fault_of(count<false>, {2, 1}, counter.get()), at("plain count"), "another block"));
  CHECK(mentions(fault_of(atomic_and_plain, {1, 64}, counter.get(), out.get()), at("plain"), at("atomic")));
  const DeviceArray<int> in(numbers(512)), partial(16), total(1);
  const DeviceArray<unsigned> ticket(std::vector<unsigned>{0});
  CHECK(mentions(fault_of(last_block_sums<false>, {16, 32}, static_cast<const int*>(in.get()), partial.get(),
                          ticket.get(), total.get()),
                 at("collect"), "read after write of another block with " + at("partial")));
}

TEST_CASE("reads of shared memory that nobody wrote") {
  const DeviceArray<int> in(numbers(64)), out(64);
  CHECK(mentions(fault_of(never_written, {3, 32}, static_cast<const int*>(in.get()), out.get()), at("unwritten"),
                 "uninitialized read"));
}

TEST_CASE("asynchronous copies: each missing or wrong wait, barrier or order") {
  const DeviceArray<int> in(numbers(512)), out(64);
  const int* from = in.get();
  const std::string read = at("use"), copy = at("refill");
  CHECK(mentions(fault_of(staged_copies<Copy::no_wait>, {1, 64, 512}, from, out.get(), 8), read,
                 "read of cp.async data in flight"));
  CHECK(mentions(fault_of(staged_copies<Copy::wrong_count>, {1, 64, 512}, from, out.get(), 8), read,
                 "read of cp.async data in flight"));
  CHECK(mentions(fault_of(staged_copies<Copy::no_barrier>, {1, 64, 512}, from, out.get(), 8), read));
  CHECK(mentions(fault_of(staged_copies<Copy::refill_too_early>, {1, 64, 512}, from, out.get(), 8), copy,
                 "write after read with " + read));
}

TEST_CASE("counters: sectors of strided loads, wavefronts of bank conflicts") {
  simt::options().counters = true;
  const auto ratio_at = [](const std::string& name, bool shared) {
    for (const auto& count : simt::line_counts())
      if (count.where.starts_with(name) && count.shared == shared && !count.store) return count.ratio();
    return -1.0;
  };
  const DeviceArray<float> in(std::vector<float>(1024, 1.0f)), out(32);
  const DeviceArray<unsigned> words(32);
  for (const int stride : {1, 2, 8, 16}) {
    simt::reset_line_counts();
    run(strided, {1, 32}, static_cast<const float*>(in.get()), out.get(), stride);
    CHECK(ratio_at(at("strided"), false) == std::min(stride, 8));
    simt::reset_line_counts();
    run(banks, {1, 32, 4096}, out.get(), stride);
    CHECK(ratio_at(at("banks"), true) == stride);
  }
  run(vectors, {1, 32, 512}, out.get());
  CHECK(ratio_at(at("vectors"), true) == 1);
  run(matrix_rows<false>, {1, 32, 4096}, words.get());
  CHECK(ratio_at(at("rows"), true) == 8);
  simt::reset_line_counts();
  run(matrix_rows<true>, {1, 32, 4096}, words.get());
  CHECK(ratio_at(at("rows"), true) == 1);
  simt::options().counters = false;
}
#endif
