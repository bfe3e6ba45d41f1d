// Vector accesses, asynchronous copies, ldmatrix, mma, conversions and arithmetic against scalar expectations. Fragment
// layouts are written down as the PTX manual gives them, element by element.
#include <bit>
#include <cmath>
#include <limits>

#include "support.hpp"

namespace {

template <class Vector>
__global__ void copy_vectors(const void* from, void* to) {
  const auto* in = static_cast<const unsigned char*>(from) + threadIdx.x * sizeof(Vector);
  auto* out = static_cast<unsigned char*>(to) + threadIdx.x * sizeof(Vector);
  simt::store_vector(out, simt::load_vector<Vector>(in));
}

__global__ void hints(const float* from, float* to) {
  const unsigned i = threadIdx.x;
  const float a = __ldg(from + i), b = __ldcs(from + i), c = __ldcg(from + i);
  __stcs(to + i, a + b);
  __stcg(to + 32 + i, c);
}

// Three groups; the first two must have arrived after wait<1>.
template <int Bytes>
__global__ void copy_groups(const unsigned* from, unsigned* to, unsigned keep) {
  constexpr unsigned words = Bytes / 4;
  unsigned* buffer = simt::dynamic_shared<unsigned>();
  const unsigned t = threadIdx.x, n = blockDim.x * words;
  for (unsigned group = 0; group < 3; ++group) {
    simt::cp_async<Bytes>(buffer + group * n + t * words, from + group * n + t * words, (keep >> (t % 32) & 1u) != 0);
    simt::cp_async_commit();
  }
  simt::cp_async_wait<1>();
  __syncthreads();
  const unsigned other = blockDim.x - 1 - t;
  for (unsigned i = 0; i < words; ++i)
    for (unsigned group = 0; group < 2; ++group)
      to[group * n + other * words + i] = buffer[group * n + other * words + i];
  simt::cp_async_wait<0>();
  __syncthreads();
  for (unsigned i = 0; i < words; ++i) to[2 * n + other * words + i] = buffer[2 * n + other * words + i];
}

__global__ void copy_partly(const unsigned char* from, unsigned char* to) {
  unsigned char* buffer = simt::dynamic_shared<unsigned char>();
  const unsigned t = threadIdx.x;
  simt::cp_async_bytes<16>(buffer + 16 * t, from + 16 * t, t % 17);
  simt::cp_async_wait_all();
  __syncwarp();
  for (unsigned i = 0; i < 16; ++i) to[16 * t + i] = buffer[16 * t + i];
}

template <int Matrices, bool Transposed>
__global__ void load_fragments(unsigned* out) {
  auto* tile = simt::dynamic_shared<std::uint16_t>();
  const unsigned lane = threadIdx.x;
  for (unsigned i = lane; i < 256; i += 32) tile[i] = static_cast<std::uint16_t>(i);
  __syncthreads();
  unsigned r[Matrices];
  const std::uint16_t* row = tile + 8 * ((lane * 5) & 31u);  // rows in another order than memory's
  if constexpr (Matrices == 1 && !Transposed) simt::ldmatrix_x1(r, row);
  if constexpr (Matrices == 2 && !Transposed) simt::ldmatrix_x2(r, row);
  if constexpr (Matrices == 4 && !Transposed) simt::ldmatrix_x4(r, row);
  if constexpr (Matrices == 1 && Transposed) simt::ldmatrix_x1_trans(r, row);
  if constexpr (Matrices == 2 && Transposed) simt::ldmatrix_x2_trans(r, row);
  if constexpr (Matrices == 4 && Transposed) simt::ldmatrix_x4_trans(r, row);
  for (int k = 0; k < Matrices; ++k) out[32 * k + static_cast<int>(lane)] = r[k];
}

template <int Matrices, bool Transposed>
void check_fragments() {
  const DeviceArray<unsigned> out(32 * Matrices);
  run(load_fragments<Matrices, Transposed>, {1, 32, 512}, out.get());
  const auto got = out.values();
  for (unsigned k = 0; k < Matrices; ++k)
    for (unsigned lane = 0; lane < 32; ++lane)
      for (unsigned half = 0; half < 2; ++half) {
        // PTX: thread i holds row i / 4, elements 2 (i % 4) and the next; transposed: column and row exchanged
        unsigned row = lane / 4, column = 2 * (lane % 4) + half;
        if (Transposed) std::swap(row, column);
        const unsigned expected = 8 * (((8 * k + row) * 5) & 31u) + column;
        REQUIRE((got[32 * k + lane] >> 16 * half & 0xffffu) == expected);
      }
}

template <class T>
__global__ void multiply_tile(const T* a, const T* b, float* c) {
  const unsigned lane = threadIdx.x, group = lane >> 2, pair = lane % 4;
  unsigned af[4], bf[2];
  float d[4];
  const auto word = [](T low, T high) { return low.bits | static_cast<unsigned>(high.bits) << 16; };
  for (unsigned i = 0; i < 8;
       i += 2) {  // a_i: row group (+ 8 for i in 2, 3, 6, 7), column 2 pair + (i & 1) (+ 8 for i >= 4)
    const unsigned row = group + ((i & 2u) ? 8 : 0), column = pair * 2 + (i >= 4 ? 8 : 0);
    af[i / 2] = word(a[16 * row + column], a[16 * row + column + 1]);
  }
  for (unsigned i = 0; i < 4; i += 2) {  // b_i: row 2 pair + (i & 1) (+ 8 for i >= 2), column group
    const unsigned row = pair * 2 + (i >= 2 ? 8 : 0);
    bf[i / 2] = word(b[8 * row + group], b[8 * (row + 1) + group]);
  }
  for (unsigned i = 0; i < 4; ++i) d[i] = c[8 * (group + (i >= 2 ? 8 : 0)) + pair * 2 + (i & 1u)];
  simt::mma_m16n8k16<T>(d, af, bf[0], bf[1]);
  for (unsigned i = 0; i < 4; ++i) c[8 * (group + (i >= 2 ? 8 : 0)) + pair * 2 + (i & 1u)] = d[i];
}

template <class T>
void check_product() {
  std::vector<T> a(256), b(128);
  std::vector<float> c(128);
  const auto value = [](unsigned i) { return static_cast<float>(static_cast<int>(scramble(i) % 257) - 128) / 64.0f; };
  for (unsigned i = 0; i < 256; ++i) a[i] = typeformer::from_float<T>(value(i));
  for (unsigned i = 0; i < 128; ++i) b[i] = typeformer::from_float<T>(value(i + 1000)), c[i] = value(i + 2000);
  const DeviceArray<T> da(a), db(b);
  const DeviceArray<float> dc(c);
  run(multiply_tile<T>, {1, 32}, static_cast<const T*>(da.get()), static_cast<const T*>(db.get()), dc.get());
  const auto got = dc.values();
  for (std::size_t i = 0; i < 16; ++i)
    for (std::size_t j = 0; j < 8; ++j) {
      double sum = c[8 * i + j], size = std::fabs(sum);
      for (std::size_t k = 0; k < 16; ++k) {
        const double product =
            static_cast<double>(typeformer::to_float(a[16 * i + k])) * typeformer::to_float(b[8 * k + j]);
        sum += product;
        size += std::fabs(product);
      }
      CHECK(std::fabs(got[8 * i + j] - sum) <= 17 * 0x1p-24 * size);  // one rounding for each addition
    }
}

template <class T>
__global__ void convert(const float* in, unsigned* packed, float* widened, std::uint16_t* narrowed) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned pair = simt::pack<T>(in[i], -in[i]);
  packed[i] = pair;
  widened[2 * i] = simt::unpack_low<T>(pair);
  widened[2 * i + 1] = simt::unpack_high<T>(pair);
  narrowed[i] = simt::narrow<T>(in[i]).bits;
}

template <class T>
void check_conversion(int mantissa, int least_exponent, float largest) {
  std::vector<float> in;
  for (unsigned i = 0; i < 4096; ++i) in.push_back(std::bit_cast<float>(scramble(i)));
  for (const float x :
       {0.0f, 1.0f, largest, INFINITY, -INFINITY, NAN, 0x1p-24f, 0x1p-25f, 0x1.8p-25f, 65519.0f, 65520.0f})
    in.push_back(x);
  in.resize(4224, 1.5f);
  const DeviceArray<float> from(in), widened(2 * in.size());
  const DeviceArray<unsigned> packed(in.size());
  const DeviceArray<std::uint16_t> narrowed(in.size());
  run(convert<T>, {33, 128}, static_cast<const float*>(from.get()), packed.get(), widened.get(), narrowed.get());
  const auto words = packed.values();
  const auto wide = widened.values();
  const auto narrow = narrowed.values();
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (std::isnan(in[i])) {
      CHECK(words[i] == 0x7fff7fffu);  // the device's NaN has no sign
      continue;
    }
    // nearest multiple of the last place, ties to even, by the C library's nearbyint in double
    int exponent = 0;
    std::frexp(static_cast<double>(in[i]), &exponent);
    const double place = std::ldexp(1.0, std::max(exponent - 1, least_exponent) - mantissa);
    double expected = std::isinf(in[i]) || in[i] == 0 ? in[i] : std::nearbyint(in[i] / place) * place;
    if (std::fabs(expected) > largest) expected = std::copysign(INFINITY, expected);
    REQUIRE(wide[2 * i] == static_cast<float>(expected));
    REQUIRE(wide[2 * i + 1] == -static_cast<float>(expected));
    REQUIRE(narrow[i] == (words[i] & 0xffffu));
  }
}

__global__ void read_fresh_shared(float* out) {
  TYPEFORMER_SHARED_ARRAY(float, one, 32);
  TYPEFORMER_SHARED_ARRAY(bf16, two, 32);
  TYPEFORMER_SHARED_ARRAY(f16, three, 32);
  const unsigned i = threadIdx.x;
  out[i] = one[i];
  out[32 + i] = simt::widen(two[i]);
  out[64 + i] = simt::widen(three[i]);
}

__global__ void several_arrays(unsigned* out) {
  TYPEFORMER_SHARED_ARRAY(unsigned char, bytes, 33);
  TYPEFORMER_SHARED_ARRAY(double, wide, 3);
  auto* dynamic = simt::dynamic_shared<unsigned>();
  out += 34 * blockIdx.x;
  bytes[threadIdx.x] = static_cast<unsigned char>(threadIdx.x);
  if (threadIdx.x < 3) wide[threadIdx.x] = threadIdx.x;
  dynamic[threadIdx.x] = 2 * threadIdx.x;
  __syncthreads();
  const auto address = [](const void* p) { return static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(p) & 1023u); };
  const unsigned other = 31 - threadIdx.x;
  out[threadIdx.x] = bytes[other] + dynamic[other] + static_cast<unsigned>(wide[other % 3]);
  if (threadIdx.x == 0) out[32] = (address(bytes) | address(wide)) & 15u, out[33] = address(dynamic);
}

__global__ void arithmetic(float* out, unsigned* words) {
  out[0] = __expf(1.0f);
  out[1] = __logf(3.0f);
  out[2] = __log2f(8.0f);
  out[3] = __sinf(0.5f);
  out[4] = __cosf(0.5f);
  out[5] = __powf(2.0f, 0.5f);
  out[6] = rsqrtf(16.0f);
  out[7] = __fdividef(3.0f, 4.0f);
  out[8] = __fdividef(1.0f, 0x1.8p126f);
  out[9] = __saturatef(1.5f) + __saturatef(-1.0f) + __saturatef(NAN);
  out[10] = __fmaf_rn(3.0f, 4.0f, 5.0f);
  out[11] = max(1.0f, NAN) + min(2.0f, 3.0f);
  out[12] = exp2f(3.0f) + tanhf(0.0f) + erff(0.0f) + fmaxf(1.0f, 2.0f);
  words[0] = static_cast<unsigned>(__popc(0xf0f0u) + __clz(1) + __ffs(8) + min(3, 4) + max(5, 6));
  words[1] = __brev(1u);
  words[2] = __byte_perm(0x03020100u, 0x07060504u, 0x7531u);
  words[3] = __umulhi(0x80000000u, 6u);
  words[4] = __float_as_uint(1.0f);
  words[5] = static_cast<unsigned>(__float2int_rn(2.5f) + 10 * __float2int_rz(2.9f) + 100 * __float2int_rd(2.9f));
}

}  // namespace

TEST_CASE("vector loads and stores move 1 to 16 bytes") {
  std::vector<unsigned char> in(64 * 16);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<unsigned char>(scramble(static_cast<unsigned>(i)));
  const DeviceArray<unsigned char> from(in);
  const auto check = [&](auto kernel, std::size_t bytes) {
    const DeviceArray<unsigned char> to(64 * bytes);
    run(kernel, {1, 64}, static_cast<const void*>(from.get()), static_cast<void*>(to.get()));
    const auto got = to.values();
    CHECK(std::equal(got.begin(), got.end(), in.begin()));
  };
  check(copy_vectors<unsigned char>, 1);
  check(copy_vectors<bf16>, 2);
  check(copy_vectors<float>, 4);
  check(copy_vectors<uint2>, 8);
  check(copy_vectors<ushort4>, 8);
  check(copy_vectors<float4>, 16);
  const DeviceArray<float> to(64);
  run(hints, {1, 32}, static_cast<const float*>(DeviceArray<float>(std::vector<float>(32, 1.5f)).get()), to.get());
  CHECK(to.values() == [] {
    std::vector<float> v(64, 3.0f);
    std::fill(v.begin() + 32, v.end(), 1.5f);
    return v;
  }());
}

TEST_CASE_TEMPLATE("cp.async of 4, 8 and 16 bytes: groups arrive in order, invalid ones as zeros", Size,
                   std::integral_constant<int, 4>, std::integral_constant<int, 8>, std::integral_constant<int, 16>) {
  constexpr std::size_t words = 3 * 64 * Size::value / 4;
  std::vector<unsigned> in(words);
  for (unsigned i = 0; i < words; ++i) in[i] = scramble(i) | 1u;
  const DeviceArray<unsigned> from(in), to(words);
  const unsigned keep = 0xfffe7bdfu;
  run(copy_groups<Size::value>, {1, 64, words * 4}, static_cast<const unsigned*>(from.get()), to.get(), keep);
  const auto got = to.values();
  for (std::size_t i = 0; i < words; ++i) {
    const std::size_t thread = i / (Size::value / 4) % 64;
    CHECK(got[i] == (keep >> thread % 32 & 1u ? in[i] : 0u));
  }
}

TEST_CASE("cp.async fills with zeros behind the bytes that it reads") {
  std::vector<unsigned char> in(512, 7);
  const DeviceArray<unsigned char> from(in), to(512);
  run(copy_partly, {1, 32, 512}, static_cast<const unsigned char*>(from.get()), to.get());
  const auto got = to.values();
  for (std::size_t i = 0; i < 512; ++i) CHECK(got[i] == (i % 16 < i / 16 % 17 ? 7 : 0));
}

TEST_CASE("ldmatrix of one, two and four matrices, straight and transposed") {
  check_fragments<1, false>();
  check_fragments<2, false>();
  check_fragments<4, false>();
  check_fragments<1, true>();
  check_fragments<2, true>();
  check_fragments<4, true>();
}

TEST_CASE_TEMPLATE("mma.m16n8k16 multiplies tiles laid out as PTX says", T, bf16, f16) { check_product<T>(); }

TEST_CASE("packing rounds to nearest even and makes one NaN") {
  check_conversion<bf16>(7, -126, 0x1.fep127f);
  check_conversion<f16>(10, -14, 65504.0f);
}

TEST_CASE("shared memory starts as NaN, and reading it is a finding of the race checker") {
  const DeviceArray<float> out(96);
#if defined(TYPEFORMER_SIMT_RACECHECK)
  CHECK(mentions(fault_of(read_fresh_shared, {2, 32}, out.get()), "memory_test.cpp:", "uninitialized read"));
#else
  run(read_fresh_shared, {2, 32}, out.get());
  for (const float x : out.values()) CHECK(std::isnan(x));
#endif
}

TEST_CASE("static and dynamic shared arrays lie apart and aligned") {
  const DeviceArray<unsigned> out(3 * 34);
  run(several_arrays, {3, 32, 128}, out.get());
  const auto got = out.values();
  for (unsigned i = 0; i < 32; ++i) CHECK(got[i] == 3 * (31 - i) + (31 - i) % 3);
  CHECK(got[32] == 0);
  CHECK(got[33] == 0);
}

TEST_CASE("device arithmetic") {
  const DeviceArray<float> out(13);
  const DeviceArray<unsigned> words(6);
  run(arithmetic, {1, 1}, out.get(), words.get());
  const auto x = out.values();
  const double expected[13] = {
      std::exp(1.0), std::log(3.0), 3, std::sin(0.5), std::cos(0.5), std::sqrt(2.0), 0.25, 0.75, 0, 1, 17, 3, 10};
  for (std::size_t i = 0; i < 13; ++i) CHECK(x[i] == doctest::Approx(expected[i]).epsilon(1e-6));
  CHECK(words.values() ==
        std::vector<unsigned>{8 + 31 + 4 + 3 + 6, 0x80000000u, 0x07050301u, 3u, 0x3f800000u, 2 + 20 + 200});
}
