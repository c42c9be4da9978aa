// Numbers: bf16, E4M3, E2M1, E8M0, and the few functions that a kernel needs of a math library.
//
// What must stay true: bf16 rounds to nearest, ties to even, and keeps NaN; E4M3 rounds as
// runtime/cpu does, bit for bit; an E4M3 or E2M1 value and its scale are exact in float32.
// Functions called fast_ are one instruction of the GPU, good to about 1e-6 relative; the others
// are good to the last bit or two.
#ifndef OSSRUN_GPU_NUMBER_H_
#define OSSRUN_GPU_NUMBER_H_

#include "gpu.h"

typedef uint16_t bf16;
typedef uint8_t e4m3;

__device__ __forceinline__ float from_bf16(unsigned v) { return __uint_as_float(v << 16); }
// The four words of v.
__device__ __forceinline__ void put_words(unsigned* w, uint4 v) {
  w[0] = v.x, w[1] = v.y, w[2] = v.z, w[3] = v.w;
}

// The two bf16 of a 32-bit word.
__device__ __forceinline__ float low_bf16(unsigned v) { return __uint_as_float(v << 16); }
__device__ __forceinline__ float high_bf16(unsigned v) { return __uint_as_float(v & 0xffff0000u); }

__device__ __forceinline__ bf16 to_bf16(float f) {
  const unsigned u = __float_as_uint(f);
  const bool nan = (u & 0x7fffffffu) > 0x7f800000u;
  return static_cast<bf16>((nan ? u | 0x00400000u : u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}

// Two values as one word, the first in the low half.
__device__ __forceinline__ unsigned to_bf16x2(float low, float high) {
#if defined(GPU_NVIDIA)
  unsigned r;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
  return r;
#else
  return static_cast<unsigned>(to_bf16(low)) | static_cast<unsigned>(to_bf16(high)) << 16;
#endif
}

#if defined(GPU_NVIDIA)
// a * b + c, of the halves of words.
__device__ __forceinline__ unsigned fma_bf16x2(unsigned a, unsigned b, unsigned c) {
  unsigned r;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c));
  return r;
}
#endif

// The value of an E4M3 code in the low eight bits of v: its four bits of exponent and three of
// mantissa become a float32's lowest exponent bits and highest mantissa bits. The codes 0x7f and
// 0xff, NaN in the format, are never stored and count as +-480.
__device__ __forceinline__ float from_e4m3(unsigned v) {
  return __uint_as_float((v & 0x80u) << 24 | (v & 0x7fu) << 20) * 0x1p120f;
}

// Nearest, ties to even, ends at +-448, which infinities and NaN become too. From 2^-6 up a code is
// the upper bits of the float32, rounded and moved to the bias of 7; below, a multiple of 2^-9.
__device__ __forceinline__ e4m3 to_e4m3(float f) {
  const unsigned u = __float_as_uint(f);
  unsigned size = u & 0x7fffffffu;
  if (size > 0x43e00000u) size = 0x43e00000u;  // 448; as an integer a NaN is larger
  const unsigned normal = ((size + 0x7ffffu + (size >> 20 & 1u)) >> 20) - (120u << 3);
  const unsigned small = __float_as_uint(__uint_as_float(size) + 0x1p14f) - 0x46800000u;
  return static_cast<e4m3>((size < 0x3c800000u ? small : normal) | (u >> 24 & 0x80u));
}

// The value of an E2M1 code in the low four bits of v. The code's three bits of size become the
// lowest exponent bits and the highest mantissa bit of a float32, so 0.5 is a subnormal there.
__device__ __forceinline__ float from_e2m1(unsigned v) {
  return __uint_as_float((v & 8u) << 28 | (v & 7u) << 22) * 0x1p126f;
}

// 2^(v - 127): the exponent field itself, except that 0 is the subnormal 2^-127.
__device__ __forceinline__ float from_e8m0(unsigned v) {
  return __uint_as_float(v == 0 ? 0x00400000u : v << 23);
}

__device__ __forceinline__ float fast_exp2(float x) {
#if defined(GPU_NVIDIA)
  float r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
#elif defined(GPU_AMD)
  return __builtin_amdgcn_exp2f(x);
#else
  return exp2f(x);
#endif
}

constexpr float kLog2E = 1.4426950408889634f;

__device__ __forceinline__ float fast_exp(float x) { return fast_exp2(x * kLog2E); }

// e^x for any x, to two units in the last place: 2^n times a polynomial on [-ln2/2, ln2/2].
// Coefficients are the Taylor series; its ninth term is below 2^-31 there.
__device__ __forceinline__ float exp_of(float x) {
  if (x < -104.0f) return 0.0f;
  if (x > 88.8f) return __uint_as_float(0x7f800000u);
  const float shifted = fmaf(x, kLog2E, 0x1.8p23f);  // the nearest integer in the low bits
  const float n = shifted - 0x1.8p23f;
  const float r = fmaf(n, -1.42860677e-6f, fmaf(n, -0.693145751953125f, x));
  constexpr float kSeries[] = {1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f, 1.0f, 1.0f};
  float p = 1.0f / 5040;
#pragma unroll
  for (int i = 0; i < 7; i++) p = fmaf(p, r, kSeries[i]);
  // In two factors, since 2^n alone leaves float32's range before e^x does.
  const int exponent = static_cast<int>(n), half = exponent / 2;
  return p * __uint_as_float(static_cast<unsigned>(127 + half) << 23) *
         __uint_as_float(static_cast<unsigned>(127 + exponent - half) << 23);
}

__device__ __forceinline__ float sqrt_of(float x) {
#if defined(GPU_HOST)
  return sqrtf(x);
#else
  return __builtin_sqrtf(x);
#endif
}

// Larger floats have larger keys; both zeros have one.
__device__ __forceinline__ unsigned key_of(float v) {
  const unsigned u = __float_as_uint(v + 0.0f);
  return u & 0x80000000u ? ~u : u | 0x80000000u;
}

// A place in the order of falling values, of equal ones by rising id: larger before smaller.
__device__ __forceinline__ uint64_t rank_of(int id, float v) {
  return static_cast<uint64_t>(key_of(v)) << 32 | (0xffffffffu - static_cast<unsigned>(id));
}
__device__ __forceinline__ int id_of(uint64_t rank) {
  return static_cast<int>(0xffffffffu - static_cast<unsigned>(rank));
}

// The float that has a key; of 0 NaN.
__device__ __forceinline__ float of_key(unsigned key) {
  return __uint_as_float(key & 0x80000000u ? key & 0x7fffffffu : ~key);
}

// gate * sigmoid(1.702 gate) * (up + 1), gate and up clamped as gpt-oss has it.
__device__ __forceinline__ float clamped_swiglu(float gate, float up, float limit) {
  gate = fminf(gate, limit);
  up = fminf(fmaxf(up, -limit), limit);
  return gate / (1.0f + exp_of(-1.702f * gate)) * (up + 1.0f);
}

// clamped_swiglu to about 2^-20, by the unit for such functions: more than bf16 keeps.
__device__ __forceinline__ float quick_swiglu(float gate, float up, float limit) {
  gate = fminf(gate, limit);
  up = fminf(fmaxf(up, -limit), limit);
  float v = 1.0f + fast_exp(-1.702f * gate);
#if defined(GPU_NVIDIA)
  asm("rcp.approx.ftz.f32 %0, %0;" : "+f"(v));
#else
  v = 1.0f / v;
#endif
  return gate * v * (up + 1.0f);
}

#endif  // OSSRUN_GPU_NUMBER_H_
