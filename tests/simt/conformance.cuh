// One source for a GPU (nvcc) and for the host layer: every primitive on fixed inputs, its output as one line of text
// with a hash. `conformance` prints the lines; `conformance GOLDEN` compares them with a file, whose first line tells
// where its numbers come from. Outputs do not depend on rounding: integers, exact products, canonical NaN.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "typeformer/simt/simt.hpp"

namespace typeformer::inline TYPEFORMER_ABI::conformance {

inline constexpr unsigned all_lanes = 0xffffffffu;

__host__ __device__ inline unsigned scramble(unsigned x) {
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= x >> 15;
  x *= 0x846ca68bu;
  return x ^ (x >> 16);
}

// Writes one word per lane and step.
struct Tape {
  unsigned* out;
  unsigned step = 0;
  __device__ void put(unsigned word) { out[32 * step++ + threadIdx.x] = word; }
};

__global__ void shuffles(unsigned* out) {
  Tape tape{out};
  const unsigned mine = scramble(threadIdx.x + 1);
  for (int width = 1; width <= 32; width *= 2)
    for (int argument = 0; argument < 32; argument += 3) {
      tape.put(__shfl_sync(all_lanes, mine, argument, width));
      tape.put(__shfl_up_sync(all_lanes, mine, static_cast<unsigned>(argument), width));
      tape.put(__shfl_down_sync(all_lanes, mine, static_cast<unsigned>(argument), width));
      tape.put(__shfl_xor_sync(all_lanes, mine, argument, width));
    }
}

__global__ void partial_masks(unsigned* out) {
  Tape tape{out};
  const unsigned mine = scramble(threadIdx.x + 5);
  if (threadIdx.x < 16) {
    tape.put(__shfl_xor_sync(0xffffu, mine, 5));
    tape.put(__ballot_sync(0xffffu, static_cast<int>(mine & 2u)));
    tape.put(__reduce_add_sync(0xffffu, mine));
  } else {
    tape.put(__shfl_down_sync(0xffff0000u, mine, 3u, 16));
    tape.put(__ballot_sync(0xffff0000u, static_cast<int>(mine & 4u)));
    tape.put(__reduce_max_sync(0xffff0000u, mine));
  }
}

__global__ void votes_and_sums(unsigned* out) {
  Tape tape{out};
  const unsigned mine = scramble(threadIdx.x + 9);
  const int signed_value = static_cast<int>(mine);
  tape.put(__ballot_sync(all_lanes, static_cast<int>(mine & 1u)));
  tape.put(static_cast<unsigned>(__any_sync(all_lanes, mine == 7u)));
  tape.put(static_cast<unsigned>(__all_sync(all_lanes, mine != 7u)));
  tape.put(__reduce_add_sync(all_lanes, mine));
  tape.put(__reduce_min_sync(all_lanes, mine));
  tape.put(__reduce_max_sync(all_lanes, mine));
  tape.put(static_cast<unsigned>(__reduce_min_sync(all_lanes, signed_value)));
  tape.put(static_cast<unsigned>(__reduce_max_sync(all_lanes, signed_value)));
  tape.put(__reduce_and_sync(all_lanes, mine | 0xffffu));
  tape.put(__reduce_or_sync(all_lanes, mine & 0xffffu));
  tape.put(__reduce_xor_sync(all_lanes, mine));
}

__global__ void barriers(unsigned* out) {
  const int any = __syncthreads_or(threadIdx.x == 77);
  const int all = __syncthreads_and(threadIdx.x < 96);
  const int count = __syncthreads_count(threadIdx.x % 3 == 0);
  out[threadIdx.x] = static_cast<unsigned>((any != 0) * 2 + (all != 0)) + 4u * static_cast<unsigned>(count);
}

__global__ void atomics(unsigned* out) {
  const unsigned value = scramble(threadIdx.x + blockIdx.x * blockDim.x);
  atomicAdd(&out[0], value);
  atomicMin(&out[1], value);
  atomicMax(&out[2], value);
  atomicAnd(&out[3], value | 0xffffu);
  atomicOr(&out[4], value & 0xffff0000u);
  atomicXor(&out[5], value);
  atomicInc(&out[6], 41u);
  atomicDec(&out[7], 41u);
  auto* integers = reinterpret_cast<int*>(out + 8);
  atomicMin(&integers[0], static_cast<int>(value));
  atomicMax(&integers[1], static_cast<int>(value));
  atomicSub(&integers[2], 3);
  atomicAdd(reinterpret_cast<float*>(out + 11), 0.5f);
  if (atomicCAS(&out[12], 0u, 1u) == 0u) atomicAdd(&out[13], 1u);
  atomicExch(&out[14], 5u);
}

__global__ void matrices(unsigned* out) {
  auto* tile = simt::dynamic_shared<unsigned>();
  Tape tape{out};
  const unsigned lane = threadIdx.x;
  for (unsigned i = 0; i < 4; ++i) tile[32 * i + lane] = scramble(32 * i + lane + 99);
  __syncthreads();
  unsigned one[1], two[2], four[4];
  const unsigned* row = tile + 4 * lane;
  const unsigned* mixed = tile + 4 * ((5 * lane) & 31u);
  simt::ldmatrix_x1(one, row);
  tape.put(one[0]);
  simt::ldmatrix_x1_trans(one, mixed);
  tape.put(one[0]);
  simt::ldmatrix_x2(two, mixed);
  for (const unsigned word : two) tape.put(word);
  simt::ldmatrix_x2_trans(two, row);
  for (const unsigned word : two) tape.put(word);
  simt::ldmatrix_x4(four, row);
  for (const unsigned word : four) tape.put(word);
  simt::ldmatrix_x4_trans(four, mixed);
  for (const unsigned word : four) tape.put(word);
}

// Small integers: the product is exact in any order of additions.
template <class T>
__global__ void products(unsigned* out) {
  Tape tape{out};
  const unsigned lane = threadIdx.x;
  const auto small = [](unsigned x) { return static_cast<float>(static_cast<int>(x % 15) - 7); };
  const auto pair = [&](unsigned x) { return simt::pack<T>(small(x), small(x / 16)); };
  unsigned a[4], b[2];
  float d[4];
  for (unsigned i = 0; i < 4; ++i) a[i] = pair(scramble(4 * lane + i));
  for (unsigned i = 0; i < 2; ++i) b[i] = pair(scramble(1000 + 2 * lane + i));
  for (unsigned i = 0; i < 4; ++i) d[i] = static_cast<float>(static_cast<int>(scramble(7 * lane + i) % 64));
  simt::mma_m16n8k16<T>(d, a, b[0], b[1]);
  for (const float x : d) tape.put(__float_as_uint(x));
}

// Every 16-bit pattern widened, and floats of all sizes narrowed; NaN payloads are one.
template <class T>
__global__ void conversions(unsigned* out) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  const auto canonical = [](float x) { return x != x ? 0x7fc00000u : __float_as_uint(x); };
  out[3 * i] = canonical(simt::unpack_low<T>(i));
  out[3 * i + 1] = canonical(simt::unpack_high<T>(i << 16));
  const float x = __uint_as_float(scramble(i));
  out[3 * i + 2] = simt::pack<T>(x, -x) ^ simt::narrow<T>(x).bits;
}

__global__ void copies(unsigned* out, const unsigned* in) {
  auto* buffer = simt::dynamic_shared<unsigned>();
  const unsigned lane = threadIdx.x;
  simt::cp_async<16>(buffer + 4 * lane, in + 4 * lane, lane % 3 != 0);
  simt::cp_async_commit();
  simt::cp_async<4>(buffer + 128 + lane, in + lane, lane % 2 == 0);
  simt::cp_async<8>(buffer + 160 + 2 * lane, in + 2 * lane, lane % 5 != 0);
  simt::cp_async_commit();
  simt::cp_async_bytes<16>(buffer + 224 + 4 * lane, in + 4 * lane, lane % 17);
  simt::cp_async_commit();
  simt::cp_async_wait<2>();
  __syncthreads();
  for (unsigned i = 0; i < 4; ++i) out[32 * i + lane] = buffer[32 * i + 31 - lane];
  simt::cp_async_wait<0>();
  __syncthreads();
  for (unsigned i = 4; i < 11; ++i) out[32 * i + lane] = buffer[32 * i + 31 - lane];
}

__global__ void vectors(unsigned* out, const unsigned* in) {
  TYPEFORMER_SHARED_ARRAY(uint4, rows, 32);
  const unsigned lane = threadIdx.x;
  rows[lane] = simt::load_vector<uint4>(in + 4 * lane);
  __syncthreads();
  simt::store_vector(out + 4 * lane, rows[31 - lane]);
  simt::store_vector(out + 128 + 2 * lane, simt::load_vector<uint2>(in + 2 * (31 - lane)));
}

// Bit operations, conversions to integers, comparisons with NaN.
__global__ void scalars(unsigned* out) {
  Tape tape{out};
  const unsigned x = scramble(threadIdx.x + 3);
  const float f = static_cast<float>(static_cast<int>(x % 2001) - 1000) / 8.0f;
  tape.put(static_cast<unsigned>(__popc(x) + 64 * __clz(static_cast<int>(x >> threadIdx.x)) +
                                 4096 * __ffs(static_cast<int>(x))));
  tape.put(__brev(x));
  tape.put(__byte_perm(x, ~x, 0x7214u));
  tape.put(__umulhi(x, 0x9E3779B9u));
  tape.put(static_cast<unsigned>(__float2int_rn(f)));
  tape.put(static_cast<unsigned>(__float2int_rz(f)));
  tape.put(static_cast<unsigned>(__float2int_rd(f)));
  tape.put(static_cast<unsigned>(__float2int_ru(f)));
  tape.put(__float_as_uint(__saturatef(f)));
  tape.put(__float_as_uint(fmaxf(f, __uint_as_float(0x7fc00000u))));
  tape.put(__float_as_uint(fminf(f, 1.0f)));
  tape.put(__float_as_uint(__fmaf_rn(f, 3.0f, 1.0f)));
}

/// Runs one kernel on zeroed words and gives the hash (FNV-1a) of what it left there.
class Recorder {
 public:
  template <class... Parameters, class... Arguments>
  void record(const char* name, void (*kernel)(Parameters...), unsigned grid, unsigned block, std::size_t shared,
              std::size_t words, Arguments... arguments) {
    void* memory = nullptr;
    std::vector<unsigned> host(words);
    good_ = cudaMalloc(&memory, 4 * words) == cudaSuccess && cudaMemset(memory, 0, 4 * words) == cudaSuccess && good_;
    good_ = simt::launch(kernel, {grid, block, shared}, static_cast<unsigned*>(memory), arguments...) == cudaSuccess &&
            good_;
    good_ = cudaMemcpy(host.data(), memory, 4 * words, cudaMemcpyDeviceToHost) == cudaSuccess && good_;
    cudaFree(memory);
    std::uint64_t hash = 0xcbf29ce484222325u;
    for (const unsigned word : host)
      for (int i = 0; i < 4; ++i) hash = (hash ^ (word >> 8 * i & 0xffu)) * 0x100000001b3u;
    char line[80];
    std::snprintf(line, sizeof line, "%-20s %016llx", name, static_cast<unsigned long long>(hash));
    lines_.emplace_back(line);
  }
  const std::vector<std::string>& lines() const { return lines_; }
  bool good() const { return good_; }

 private:
  std::vector<std::string> lines_;
  bool good_ = true;
};

inline Recorder record_all() {
  Recorder recorder;
  unsigned host[256];
  for (unsigned i = 0; i < 256; ++i) host[i] = scramble(i + 1) | 1u;
  void* memory = nullptr;
  if (cudaMalloc(&memory, sizeof host) || cudaMemcpy(memory, host, sizeof host, cudaMemcpyHostToDevice))
    return recorder;
  const auto* in = static_cast<const unsigned*>(memory);
  recorder.record("shuffles", shuffles, 1, 32, 0, 32 * 6 * 11 * 4);
  recorder.record("partial_masks", partial_masks, 1, 32, 0, 96);
  recorder.record("votes_and_sums", votes_and_sums, 1, 32, 0, 32 * 11);
  recorder.record("barriers", barriers, 1, 128, 0, 128);
  recorder.record("atomics", atomics, 5, 64, 0, 16);
  recorder.record("ldmatrix", matrices, 1, 32, 512, 32 * 14);
  recorder.record("mma_bf16", products<bf16>, 1, 32, 0, 128);
  recorder.record("mma_f16", products<f16>, 1, 32, 0, 128);
  recorder.record("conversions_bf16", conversions<bf16>, 256, 256, 0, 3 * 65536);
  recorder.record("conversions_f16", conversions<f16>, 256, 256, 0, 3 * 65536);
  recorder.record("cp_async", copies, 1, 32, 1408, 32 * 11, in);
  recorder.record("vectors", vectors, 1, 32, 0, 192, in);
  recorder.record("scalars", scalars, 1, 32, 0, 32 * 12);
  cudaFree(memory);
  return recorder;
}

}  // namespace typeformer

int main(int count, char** arguments) {
  const auto recorder = typeformer::conformance::record_all();
  if (!recorder.good() || recorder.lines().empty()) return std::fprintf(stderr, "a CUDA call failed\n"), 2;
  if (count < 2) {
    for (const auto& line : recorder.lines()) std::puts(line.c_str());
    return 0;
  }
  std::ifstream golden(arguments[1]);
  std::string line;
  if (!std::getline(golden, line)) return std::fprintf(stderr, "no golden file %s\n", arguments[1]), 2;
  std::printf("golden: %s\n", line.c_str());
  int wrong = 0;
  for (const auto& ours : recorder.lines()) {
    const bool same = std::getline(golden, line) && line == ours;
    if (!same) std::printf("expected: %s\ngot:      %s\n", line.c_str(), ours.c_str());
    wrong += !same;
  }
  if (std::getline(golden, line)) std::printf("expected also: %s\n", line.c_str()), ++wrong;
  return wrong != 0;
}
