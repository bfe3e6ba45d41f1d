/// Tensor-core operations of sm_80: ldmatrix and mma.sync m16n8k16, with PTX's fragment layouts.
#pragma once
#include "typeformer/simt/convert.hpp"
#include "typeformer/simt/shared_memory.hpp"

namespace typeformer::inline TYPEFORMER_ABI::simt {

struct MatrixSlot {
  unsigned* fragments;
  const void* row;
};

/// Lanes 8k .. 8k+7 give the addresses of matrix k's eight rows of eight 16-bit elements.
template <int Matrices, bool Transposed>
TYPEFORMER_SIMT_UNSEEN __attribute__((noinline)) void resolve_ldmatrix(Block& block, Warp& warp, unsigned) {
  const void* addresses[8 * Matrices];
  std::uint16_t elements[8 * Matrices][8];
  for (int i = 0; i < 8 * Matrices; ++i) {
    const Lane& lane = warp.lanes[i];
    addresses[i] = static_cast<MatrixSlot*>(lane.slot)->row;
    if (reinterpret_cast<std::uintptr_t>(addresses[i]) % 16)
      fail(*current_lane, "ldmatrix", lane.place, "16-byte aligned row addresses",
           message("a misaligned row from lane %d", i));
    if (!is_shared(block, addresses[i], 16))
      fail(*current_lane, "ldmatrix", lane.place, "row addresses in shared memory",
           message("%p from lane %d", addresses[i], i));
    std::memcpy(elements[i], addresses[i], 16);
  }
  checker_rows(warp, addresses, Matrices, warp.lanes[0].place);
  for (int i = 0; i < 32; ++i) {
    unsigned* fragments = static_cast<MatrixSlot*>(warp.lanes[i].slot)->fragments;
    const int row = i >> 2, column = (i & 3) * 2;
    for (int k = 0; k < Matrices; ++k) {
      const unsigned low = Transposed ? elements[8 * k + column][row] : elements[8 * k + row][column];
      const unsigned high = Transposed ? elements[8 * k + column + 1][row] : elements[8 * k + row][column + 1];
      fragments[k] = low | high << 16;
    }
  }
}

template <int Matrices, bool Transposed>
void load_matrices(unsigned (&fragments)[Matrices], const void* row, Place place) {
  MatrixSlot slot{fragments, row};
  collective(0xffffffffu, resolve_ldmatrix<Matrices, Transposed>, &slot, "ldmatrix", place);
}

/// Loads 8x8 matrices of 16-bit elements from shared memory: lane i gets elements (i / 4, 2 (i % 4)) and its right
/// neighbour of each. row: lanes 8k .. 8k+7 point to the rows of matrix k, 16-byte aligned. The whole warp calls.
inline void ldmatrix_x1(unsigned (&fragments)[1], const void* row, Place place = Place::here()) {
  load_matrices<1, false>(fragments, row, place);
}
inline void ldmatrix_x2(unsigned (&fragments)[2], const void* row, Place place = Place::here()) {
  load_matrices<2, false>(fragments, row, place);
}
inline void ldmatrix_x4(unsigned (&fragments)[4], const void* row, Place place = Place::here()) {
  load_matrices<4, false>(fragments, row, place);
}
/// The same with each matrix transposed: lane i gets elements (2 (i % 4), i / 4) and the one below.
inline void ldmatrix_x1_trans(unsigned (&fragments)[1], const void* row, Place place = Place::here()) {
  load_matrices<1, true>(fragments, row, place);
}
inline void ldmatrix_x2_trans(unsigned (&fragments)[2], const void* row, Place place = Place::here()) {
  load_matrices<2, true>(fragments, row, place);
}
inline void ldmatrix_x4_trans(unsigned (&fragments)[4], const void* row, Place place = Place::here()) {
  load_matrices<4, true>(fragments, row, place);
}

struct MmaSlot {
  float* d;
  const unsigned* a;
  unsigned b[2];
};

template <class T>
void gather_fragments(const Warp& warp, float (&a)[16][16], float (&b)[16][8], float (&c)[16][8]) {
  const auto put = [](float* pair, unsigned bits) {
    pair[0] = unpack_low<T>(bits);
    pair[1] = unpack_high<T>(bits);
  };
  for (int i = 0; i < 32; ++i) {
    const auto& slot = *static_cast<const MmaSlot*>(warp.lanes[i].slot);
    const int group = i >> 2, pair = (i & 3) * 2;
    put(&a[group][pair], slot.a[0]);
    put(&a[group + 8][pair], slot.a[1]);
    put(&a[group][pair + 8], slot.a[2]);
    put(&a[group + 8][pair + 8], slot.a[3]);
    for (int half = 0; half < 2; ++half) {
      float column[2];
      put(column, slot.b[half]);
      b[pair + 8 * half][group] = column[0];
      b[pair + 8 * half + 1][group] = column[1];
    }
    for (int k = 0; k < 4; ++k) c[group + 8 * (k >> 1)][pair + (k & 1)] = slot.d[k];
  }
}

template <class T>
TYPEFORMER_SIMT_UNSEEN __attribute__((noinline)) void resolve_mma(Block&, Warp& warp, unsigned) {
  float a[16][16], b[16][8], c[16][8];
  gather_fragments<T>(warp, a, b, c);
  using Vector = float __attribute__((vector_size(32)));
  Vector rows[16];
  for (int k = 0; k < 16; ++k) std::memcpy(&rows[k], b[k], sizeof(Vector));
  for (int i = 0; i < 16; i += 2) {  // two rows at a time: independent chains of additions
    Vector upper, lower;
    std::memcpy(&upper, c[i], sizeof(Vector));
    std::memcpy(&lower, c[i + 1], sizeof(Vector));
    for (int k = 0; k < 16; ++k) {
      upper += a[i][k] * rows[k];
      lower += a[i + 1][k] * rows[k];
    }
    std::memcpy(c[i], &upper, sizeof(Vector));
    std::memcpy(c[i + 1], &lower, sizeof(Vector));
  }
  for (int i = 0; i < 32; ++i) {
    const auto& slot = *static_cast<const MmaSlot*>(warp.lanes[i].slot);
    for (int k = 0; k < 4; ++k) slot.d[k] = c[(i >> 2) + 8 * (k >> 1)][(i & 3) * 2 + (k & 1)];
  }
}

/// d += a b on tensor cores, one 16x8 tile per warp, 16 products per element, float sums. T is bf16 or f16.
/// a: [16, 16] row-major and b: [16, 8] column-major as PTX's mma.m16n8k16 fragments, two elements per word.
template <class T>
void mma_m16n8k16(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1, Place place = Place::here()) {
  static_assert(std::is_same_v<T, bf16> || std::is_same_v<T, f16>, "mma_m16n8k16 multiplies bf16 or f16.");
  MmaSlot slot{d, a, {b0, b1}};
  collective(0xffffffffu, resolve_mma<T>, &slot, "mma_m16n8k16", place);
}

}  // namespace typeformer
