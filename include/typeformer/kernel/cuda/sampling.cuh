/// The next token of rows of logits, on CUDA.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "typeformer/kernel/contract.hpp"
#include "typeformer/kernel/cuda/device.cuh"
#include "typeformer/kernel/cuda/launch.cuh"
#include "typeformer/kernel/cuda/status.cuh"
#include "typeformer/kernel/cuda/threads.cuh"
#include "typeformer/kernel/cuda/tuning.hpp"
#include "typeformer/kernel/token_choice.hpp"

namespace typeformer::inline TYPEFORMER_ABI::cuda {
namespace detail {

using typeformer::detail::Amount;
using typeformer::detail::choice_bins;
using typeformer::detail::FoundIndex;

/// The threads of a block as a team; see TeamOfOne. All of them call everything, and get the same answers.
class TeamOfBlock {
 public:
  /// `bins`: [choice_bins], `partials`: [2, warps of a block at most]; both shared.
  __device__ TeamOfBlock(Amount* bins, Amount* partials) : bins_(bins), partials_(partials) {}

  template <class Rank>
  __device__ Amount highest(int count, const Rank& rank) {
    Amount highest = 0;
    TYPEFORMER_UNROLL_BY(4)
    for (int i = thread_index(); i < count; i += threads()) highest = larger(highest, rank(i));
    TYPEFORMER_UNROLL
    for (int distance = 16; distance > 0; distance /= 2)
      highest = larger(highest, __shfl_xor_sync(whole_warp, highest, distance));
    const Amount* of_warps = exchange(highest);
    for (int warp = 0; warp < warps(); ++warp) highest = larger(highest, of_warps[warp]);
    return highest;
  }

  /// Amounts for one bin that a thread meets in a row are added up before they go to shared memory: else equal logits
  /// would all wait for one bin.
  template <class Bin, class AmountOf>
  __device__ void tally(int count, const Bin& bin_of, const AmountOf& amount) {
    __syncthreads();  // all have read what was tallied before
    for (int bin = thread_index(); bin < choice_bins; bin += threads()) bins_[bin] = 0;
    __syncthreads();
    int bin = 0;
    Amount gathered = 0;
    TYPEFORMER_UNROLL_BY(4)
    for (int i = thread_index(); i < count; i += threads()) {
      const Amount more = amount(i);
      if (more == 0) continue;
      const int next = bin_of(i);
      if (next != bin && gathered > 0) {
        atomicAdd(&bins_[bin], gathered);
        gathered = 0;
      }
      bin = next;
      gathered += more;
    }
    if (gathered > 0) atomicAdd(&bins_[bin], gathered);
    __syncthreads();
  }
  __device__ Amount tallied(int bin) const { return bins_[bin]; }

  /// Each warp adds up a piece; the piece that has the target is divided again, until a warp sees all that is left.
  template <class AmountOf, class Target>
  __device__ FoundIndex find(int count, const AmountOf& amount, const Target& target) {
    int begin = 0, end = count;
    Amount rest = 0;
    for (bool whole = true; whole || end - begin > 32; whole = false) {
      const int length = (end - begin + warps() * 32 - 1) / (warps() * 32) * 32;
      const Amount* sums = exchange(sum_of_piece(begin + warp_index() * length, length, end, amount));
      if (whole) {
        Amount total = 0;
        for (int warp = 0; warp < warps(); ++warp) total += sums[warp];
        rest = target(total);
      }
      for (int warp = 0; rest >= sums[warp]; ++warp) {
        rest -= sums[warp];
        begin += length;
      }
      end = begin + length < end ? begin + length : end;
    }
    return find_in_warp(begin, end, amount, rest);
  }

 private:
  static __device__ int threads() { return static_cast<int>(blockDim.x); }
  static __device__ int warps() { return threads() / 32; }
  static __device__ Amount larger(Amount a, Amount b) { return a < b ? b : a; }

  /// The numbers of all warps, whose lanes have one each. Two arrays in turn: when one is written again, the barrier of
  /// the other has seen all its readers.
  const __device__ Amount* exchange(Amount of_warp) {
    turn_ = 1 - turn_;
    Amount* to = partials_ + turn_ * warps();
    if (lane_index() == 0) to[warp_index()] = of_warp;
    __syncthreads();
    return to;
  }
  template <class AmountOf>
  static __device__ Amount sum_of_piece(int from, int length, int end, const AmountOf& amount) {
    Amount sum = 0;
    TYPEFORMER_UNROLL_BY(4)
    for (int i = from + lane_index(); i < end && i < from + length; i += 32) sum += amount(i);
    return lane_sum(sum);
  }
  template <class AmountOf>
  static __device__ FoundIndex find_in_warp(int begin, int end, const AmountOf& amount, Amount rest) {
    const int index = begin + lane_index();
    const Amount own = index < end ? amount(index) : 0;
    Amount up_to_own = own;
    TYPEFORMER_UNROLL
    for (int distance = 1; distance < 32; distance *= 2) {
      const Amount before = __shfl_up_sync(whole_warp, up_to_own, static_cast<unsigned>(distance));
      if (lane_index() >= distance) up_to_own += before;
    }
    const unsigned beyond = __ballot_sync(whole_warp, up_to_own > rest);
    const int lane = __ffs(static_cast<int>(beyond)) - 1;
    const Amount amount_found = __shfl_sync(whole_warp, own, lane);
    const Amount up_to_found = __shfl_sync(whole_warp, up_to_own, lane);
    return {begin + lane, rest - (up_to_found - amount_found), amount_found};
  }

  Amount* bins_;
  Amount* partials_;
  int turn_ = 0;
};

/// One block for each row. (A template, as nvcc has no inline kernels.)
template <int most_threads>
__global__ void __launch_bounds__(most_threads) sample_rows(std::int64_t first, SampleArgs a) {
  TYPEFORMER_SHARED_ARRAY(Amount, bins, choice_bins);
  TYPEFORMER_SHARED_ARRAY(Amount, partials, 2 * (most_threads / 32));
  const std::int64_t row = first + blockIdx.x;
  TeamOfBlock team(bins, partials);
  const std::int32_t id = typeformer::detail::choose_token(team, a.logits + row * a.vocab, a.vocab, a.rules[row]);
  if (thread_index() == 0) a.ids[row] = id;
}

}  // namespace detail

/// ids[r] = the token that rules[r] chooses from logits[r], or a NoToken; see SampleArgs. Asynchronous on the device's
/// stream, deterministic.
inline void sample_rows(Device& on, const SampleArgs& a) {
  constexpr std::string_view operation = "sample_rows";
  detail::require(a.rows >= 0, operation, "rows", "0 or more", std::to_string(a.rows));
  detail::require(a.vocab > 0 && a.vocab <= typeformer::detail::largest_vocab, operation, "vocab", "1 to 2^23",
                  std::to_string(a.vocab));
  if (a.rows == 0) return;
  detail::require(a.ids && a.logits && a.rules, operation, "ids, logits, rules", "arrays", "null");
  const auto threads = static_cast<unsigned>(detail::sample_threads(a.vocab));
  detail::launch(on, operation, detail::sample_rows<detail::sample_most_threads>, a.rows, {dim3(threads)}, a);
}

}  // namespace typeformer::inline TYPEFORMER_ABI::cuda
