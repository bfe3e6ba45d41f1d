// Every expression twice: on constants, which nvcc folds when it compiles, and on the same numbers from memory, which
// the interpreter computes. table_test.cpp compares them. An entry's name is <folded or opaque>__<operands'
// types>__<result's type>__<name>; inputs__<type> writes the numbers.
#include <cstdint>

using s16 = std::int16_t;
using u16 = std::uint16_t;
using s32 = std::int32_t;
using u32 = std::uint32_t;
using s64 = std::int64_t;
using u64 = std::uint64_t;
using f32 = float;
using f64 = double;

constexpr int count = 10;

#define VALUES(type, ...)                                    \
  __device__ constexpr type value_##type(int index) {        \
    constexpr type all[count] = {__VA_ARGS__};               \
    return all[index];                                       \
  }                                                          \
  extern "C" __global__ void inputs__##type(type* to) {      \
    for (int i = 0; i < count; ++i) to[i] = value_##type(i); \
  }
VALUES(s16, 0, 1, -1, 2, -7, 100, 0x7fff, -0x8000, 0x1234, -300)
VALUES(u16, 0, 1, 2, 7, 15, 100, 0x7fff, 0x8000, 0xffff, 0x1234)
VALUES(s32, 0, 1, -1, 3, -7, 31, 0x7fffffff, -0x7fffffff - 1, 0x12345678, -1000000)
VALUES(u32, 0, 1, 2, 7, 31, 32, 0x7fffffff, 0x80000000, 0xffffffff, 0x12345678)
VALUES(s64, 0, 1, -1, 3, -7, 63, 0x7fffffffffffffff, -0x7fffffffffffffff - 1, 0x123456789abcdef, -10000000000)
VALUES(u64, 0, 1, 2, 7, 63, 64, 0x7fffffffffffffff, 0x8000000000000000, 0xffffffffffffffff, 0x123456789abcdef)
VALUES(f32, 0.f, -0.f, 1.f, -2.5f, 3.14159274f, 1e-39f, 3e38f, -1e10f, 0.3333333432674408f, 1000.5f)
VALUES(f64, 0., -0., 1., -2.5, 3.141592653589793, 1e-310, 1e308, -1e10, 0.3333333333333333, 1000.5)

#define CASE(type, result, name, ...)                                                                     \
  extern "C" __global__ void folded__##type##__##result##__##name(result* to) {                           \
    _Pragma("unroll") for (int i = 0; i < count; ++i) _Pragma("unroll") for (int j = 0; j < count; ++j) { \
      const type a = value_##type(i), b = value_##type(j);                                                \
      to[i * count + j] = static_cast<result>(__VA_ARGS__);                                               \
    }                                                                                                     \
  }                                                                                                       \
  extern "C" __global__ void opaque__##type##__##result##__##name(result* to, const type* from) {         \
    const type a = from[threadIdx.x / count], b = from[threadIdx.x % count];                              \
    to[threadIdx.x] = static_cast<result>(__VA_ARGS__);                                                   \
  }

#define INTEGERS(type, u, bits)                              \
  CASE(type, type, add, u(a) + u(b))                         \
  CASE(type, type, sub, u(a) - u(b))                         \
  CASE(type, type, mul, u64(u(a)) * u64(u(b)))               \
  CASE(type, type, mad, u64(u(a)) * u64(u(b)) + 17)          \
  CASE(type, type, div, b == 0 || u(b) == u(-1) ? 5 : a / b) \
  CASE(type, type, rem, b == 0 || u(b) == u(-1) ? 5 : a % b) \
  CASE(type, type, min, a < b ? a : b)                       \
  CASE(type, type, max, a > b ? a : b)                       \
  CASE(type, type, shl, u(a) << (b & (bits - 1)))            \
  CASE(type, type, shr, a >> (b & (bits - 1)))               \
  CASE(type, type, logic, (a & b) ^ ~(a | u(b)))             \
  CASE(type, s32, eq, a == b)                                \
  CASE(type, s32, lt, a < b)                                 \
  CASE(type, s32, ge, a >= b)                                \
  CASE(type, s32, both, a < b && b != 1)                     \
  CASE(type, s32, either, a > b || b == 1)                   \
  CASE(type, type, select, a < b ? u(a) + 1 : u(b) - 1)      \
  CASE(type, f32, to_f32, f32(a) + f32(b))                   \
  CASE(type, f64, to_f64, f64(a) - f64(b))                   \
  CASE(type, s16, to_s16, u(a) + u(b))                       \
  CASE(type, u16, to_u16, u(a) + u(b))                       \
  CASE(type, s32, to_s32, u(a) - u(b))                       \
  CASE(type, u32, to_u32, u(a) - u(b))                       \
  CASE(type, s64, to_s64, u64(s64(a)) - u64(s64(b)))         \
  CASE(type, u64, to_u64, u64(a) + u64(b))

INTEGERS(s16, u16, 16)
INTEGERS(u16, u16, 16)
INTEGERS(s32, u32, 32)
INTEGERS(u32, u32, 32)
INTEGERS(s64, u64, 64)
INTEGERS(u64, u64, 64)

CASE(s32, s32, neg, -u32(a) + u32(b))
CASE(s64, s64, neg, -u64(a) + u64(b))
CASE(s32, s32, abs, u32(a < 0 ? 0 - u32(a) : u32(a)) + u32(b))
CASE(u32, u64, wide, u64(a) * b)
CASE(s32, s64, wide, s64(a) * b)
CASE(u16, u32, wide, u32(a) * u32(b))
CASE(s16, s32, wide, s32(a) * s32(b))
CASE(s32, s32, high, __mulhi(a, b))
CASE(u32, u32, high, __umulhi(a, b))
CASE(s64, s64, high, __mul64hi(a, b))
CASE(u64, u64, high, __umul64hi(a, b))
CASE(u32, u32, popc, __popc(a) * 64 + __popc(b))
CASE(u64, u32, popc, __popcll(a) * 64 + __popcll(b))
CASE(u32, u32, clz, __clz(a) * 64 + __clz(b))
CASE(u64, u32, clz, __clzll(a) * 64 + __clzll(b))
CASE(u32, u32, brev, __brev(a) - __brev(b))
CASE(u64, u64, brev, __brevll(a) - __brevll(b))
CASE(u32, u32, ffs, __ffs(a) * 64 + __ffs(b))
CASE(u32, u32, byte_perm, __byte_perm(a, b, 0x5140))
CASE(u32, u32, funnel_left, __funnelshift_l(a, b, b & 31))
CASE(u32, u32, funnel_right, __funnelshift_r(a, b, b & 31))
CASE(u32, u32, rotate, (a << 7 | a >> 25) + (b << 20 | b >> 12))
CASE(u32, u32, field, (a >> 5 & 0x1ff) + (b >> 11 & 7))
CASE(s32, s32, signed_field, (s32(u32(a) << 9) >> 20) + (s32(u32(b) << 3) >> 25))
CASE(u32, u32, sad, __usad(a, b, 3))

#define FLOATS(type, s)                                                   \
  CASE(type, type, add, a + b)                                            \
  CASE(type, type, sub, a - b)                                            \
  CASE(type, type, mul, a* b)                                             \
  CASE(type, type, div, a / b)                                            \
  CASE(type, type, fma, fma(a, b, type(0.7)))                             \
  CASE(type, type, neg, -a + b)                                           \
  CASE(type, s32, lt, a < b)                                              \
  CASE(type, s32, le, a <= b)                                             \
  CASE(type, s32, eq, a == b)                                             \
  CASE(type, s32, ne, a != b)                                             \
  CASE(type, s32, not_less, !(a < b))                                     \
  CASE(type, s32, unordered, !(a * b < b) && !(a >= b))                   \
  CASE(type, type, select, a < b ? a : b)                                 \
  CASE(type, type, abs, (a < 0 ? -a : a) + b)                             \
  CASE(type, type, min, fmin(a, b))                                       \
  CASE(type, type, max, fmax(a, b))                                       \
  CASE(type, type, fabs, fabs(a) + b)                                     \
  CASE(type, type, sqrt, sqrt(a) + b)                                     \
  CASE(type, type, copysign, copysign(a, b))                              \
  CASE(type, type, floor, floor(a) + b)                                   \
  CASE(type, type, ceil, ceil(a) + b)                                     \
  CASE(type, type, trunc, trunc(a) + b)                                   \
  CASE(type, type, rint, rint(a) + b)                                     \
  CASE(type, s32, to_s32, (a > -1e9 && a < 1e9 ? s32(a) : 4) + (b > 0))   \
  CASE(type, u32, to_u32, (a > 0 && a < 1e9 ? u32(a) : 4) + (b > 0))      \
  CASE(type, s64, to_s64, (a > -1e18 && a < 1e18 ? s64(a) : 4) + (b > 0)) \
  CASE(type, u64, to_u64, (a > 0 && a < 1e18 ? u64(a) : 4) + (b > 0))     \
  CASE(type, s32, nearest, __##s##2int_rn(a) + (b > 0))                   \
  CASE(type, s32, down, __##s##2int_rd(a) + (b > 0))                      \
  CASE(type, u32, up, __##s##2uint_ru(a) + (b > 0))

FLOATS(f32, float)
FLOATS(f64, double)
CASE(f32, f64, widen, f64(a) * b)
CASE(f64, f32, narrow, f32(a) + f32(b))
CASE(f32, f32, add_zero, __fadd_rz(a, b))
CASE(f32, f32, mul_down, __fmul_rd(a, b))
CASE(f32, f32, fma_up, __fmaf_ru(a, b, 0.7f))
CASE(f64, f32, narrow_zero, __double2float_rz(a) + f32(b))
CASE(s64, f32, zero, __ll2float_rn(a) + f32(b))
CASE(s32, f32, down, __int2float_rd(a) + f32(b))
CASE(u32, f32, bits, __uint_as_float(a & 0x3fffffff) + __uint_as_float(b & 0x3fffffff))
CASE(f64, u64, bits, __double_as_longlong(a) + __double_as_longlong(b))
