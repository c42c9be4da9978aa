// The matrix unit: C[16x16] += A[16x16] · B[16x16]ᵀ by one warp, bf16 in, float32 out.
//
// A is [m][k] and B is [n][k], as weights are stored, both in shared memory with rows `stride`
// elements apart (a multiple of 8). Which lane holds what differs by vendor and generation; this
// file is the only one that knows. The emulation (emulator/matrix.h) computes each lane's results
// from the other lanes' registers by the same layouts: a wrong index is a wrong product there too.
//
//   NVIDIA mma.m16n8k16   two instructions, for the left and the right eight columns
//   CDNA mfma 16x16x16    A, B: row lane%16, k (lane/16)*4+i;  C: row (lane/16)*4+i, column lane%16
//   gfx12 wmma            A, B: row lane%16, k (lane/16)*8+i;  C: row (lane/16)*8+i, column lane%16
//   gfx11 wmma            A, B: row lane%16, all 16 k, twice;  C: row 2i+lane/16,    column lane%16
#ifndef OSSRUN_GPU_MATRIX_H_
#define OSSRUN_GPU_MATRIX_H_

#include "number.h"

#if defined(GPU_NVIDIA)
#define MATRIX_NV 1
#elif defined(GPU_AMD) && defined(__GFX9__)
#define MATRIX_CDNA 1
#elif defined(GPU_AMD) && defined(__GFX12__)
#define MATRIX_GFX12 1
#elif defined(GPU_AMD)
#define MATRIX_GFX11 1
#endif

#if defined(MATRIX_CDNA)
constexpr int kFragmentWords = 2, kFragmentSums = 4;
#elif defined(MATRIX_GFX11)
constexpr int kFragmentWords = 8, kFragmentSums = 8;
#else
constexpr int kFragmentWords = 4, kFragmentSums = 8;
#endif

struct Fragment {
  unsigned w[kFragmentWords];
};
struct Sums {
  float v[kFragmentSums];
};

// Row and column, in the 16x16 result, of a lane's i-th sum.
__device__ __forceinline__ int sum_row(int lane, int i) {
#if defined(MATRIX_NV)
  return lane / 4 + (i >> 1 & 1) * 8;
#elif defined(MATRIX_CDNA)
  return lane / 16 * 4 + i;
#elif defined(MATRIX_GFX12)
  return lane / 16 * 8 + i;
#else
  return 2 * i + lane / 16;
#endif
}
__device__ __forceinline__ int sum_column(int lane, int i) {
#if defined(MATRIX_NV)
  return lane % 4 * 2 + (i & 1) + (i >> 2) * 8;
#else
  (void)i;
  return lane % 16;
#endif
}

// A lane's sums belong to kSumRows rows; the kRowLanes lanes that share them are neighbours.
#if defined(MATRIX_NV)
constexpr int kSumRows = 2, kRowLanes = 4;
#else
constexpr int kSumRows = kFragmentSums, kRowLanes = 16;
#endif
// Which of the lane's rows its i-th sum belongs to, and the first sum of row r.
__device__ __forceinline__ constexpr int row_of_sum(int i) {
#if defined(MATRIX_NV)
  return i >> 1 & 1;
#else
  return i;
#endif
}
__device__ __forceinline__ constexpr int first_of_row(int r) {
#if defined(MATRIX_NV)
  return r * 2;
#else
  return r;
#endif
}

// Operands that come from memory rather than through shared memory: a lane has kOperandRows rows of
// A, kRowsApart apart, and as many of B. kShares lanes divide a row's k between them; of each lane
// one product takes kShareWords words of a row. Any order of k will do that both operands have.
#if defined(MATRIX_NV)
constexpr int kOperandRows = 2, kShares = 4;
#elif defined(MATRIX_CDNA)
constexpr int kOperandRows = 1, kShares = 4;
#elif defined(MATRIX_GFX12)
constexpr int kOperandRows = 1, kShares = 2;
#else
constexpr int kOperandRows = 1, kShares = 1;
#endif
constexpr int kRowsApart = 8, kShareWords = kFragmentWords / kOperandRows;

__device__ __forceinline__ int operand_row(int lane) {
  return kOperandRows == 2 ? lane / 4 : lane % 16;
}
__device__ __forceinline__ int operand_share(int lane) {
  return kOperandRows == 2 ? lane % 4 : kShares == 1 ? 0 : lane / 16;
}
__device__ __forceinline__ Fragment fragment_a(const unsigned (&w)[kOperandRows][kShareWords]) {
  Fragment f;
#pragma unroll
  for (int i = 0; i < kFragmentWords; i++) f.w[i] = w[i % kOperandRows][i / kOperandRows];
  return f;
}
__device__ __forceinline__ Fragment fragment_b(const unsigned (&w)[kOperandRows][kShareWords]) {
  Fragment f;
#pragma unroll
  for (int i = 0; i < kFragmentWords; i++) f.w[i] = w[i / kShareWords][i % kShareWords];
  return f;
}

#if defined(GPU_NVIDIA)
__device__ __forceinline__ unsigned shared_address(const void* p) {
  return static_cast<unsigned>(
      reinterpret_cast<size_t>((const __attribute__((address_space(3))) void*)p));
}
__device__ __forceinline__ Fragment load_matrices(const bf16* p) {
  Fragment f;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(f.w[0]), "=r"(f.w[1]), "=r"(f.w[2]), "=r"(f.w[3])
               : "r"(shared_address(p))
               : "memory");
  return f;
}
#endif

// The fragment of 16 rows of A at s.
__device__ __forceinline__ Fragment load_a(const bf16* s, int stride, int lane) {
#if defined(GPU_NVIDIA)
  return load_matrices(s + lane % 16 * stride + lane / 16 * 8);
#else
  Fragment f;
#if defined(MATRIX_NV)
  for (int i = 0; i < 4; i++)
    f.w[i] = *reinterpret_cast<const unsigned*>(s + (lane / 4 + (i & 1) * 8) * stride +
                                                lane % 4 * 2 + (i >> 1) * 8);
#elif defined(MATRIX_CDNA)
  const uint2 v = *reinterpret_cast<const uint2*>(s + lane % 16 * stride + lane / 16 * 4);
  f.w[0] = v.x;
  f.w[1] = v.y;
#elif defined(MATRIX_GFX12)
  put_words(f.w, *reinterpret_cast<const uint4*>(s + lane % 16 * stride + lane / 16 * 8));
#else
  put_words(f.w, *reinterpret_cast<const uint4*>(s + lane % 16 * stride));
  put_words(f.w + 4, *reinterpret_cast<const uint4*>(s + lane % 16 * stride + 8));
#endif
  return f;
#endif
}

__device__ __forceinline__ float4 times(float4 v, float by) {
  return {v.x * by, v.y * by, v.z * by, v.w * by};
}

// Eight activations as bf16 words; what they leave out replaces them.
__device__ __forceinline__ uint4 take_term(float4& a, float4& b) {
  uint4 t;
  t.x = to_bf16x2(a.x, a.y);
  t.y = to_bf16x2(a.z, a.w);
  t.z = to_bf16x2(b.x, b.y);
  t.w = to_bf16x2(b.z, b.w);
  a.x -= low_bf16(t.x);
  a.y -= high_bf16(t.x);
  a.z -= low_bf16(t.y);
  a.w -= high_bf16(t.y);
  b.x -= low_bf16(t.z);
  b.y -= high_bf16(t.z);
  b.z -= low_bf16(t.w);
  b.w -= high_bf16(t.w);
  return t;
}

#if defined(MATRIX_NV)
// A result as the A of a next product, rounded to bf16; what the rounding leaves out replaces it.
// The lane already holds the elements it needs.
__device__ __forceinline__ Fragment take_a(Sums& c) {
  Fragment f;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    f.w[i] = to_bf16x2(c.v[2 * i], c.v[2 * i + 1]);
    c.v[2 * i] -= low_bf16(f.w[i]);
    c.v[2 * i + 1] -= high_bf16(f.w[i]);
  }
  return f;
}
#endif

// The fragment of 16 rows of B, which are columns of C, at s.
__device__ __forceinline__ Fragment load_b(const bf16* s, int stride, int lane) {
#if defined(GPU_NVIDIA)
  return load_matrices(s + (lane % 8 + lane / 16 * 8) * stride + (lane / 8 & 1) * 8);
#elif defined(MATRIX_NV)
  Fragment f;  // words 0 and 1: columns 0 to 7, words 2 and 3: columns 8 to 15
  for (int i = 0; i < 4; i++)
    f.w[i] = *reinterpret_cast<const unsigned*>(s + (lane / 4 + (i >> 1) * 8) * stride +
                                                lane % 4 * 2 + (i & 1) * 8);
  return f;
#else
  return load_a(s, stride, lane);  // of one shape on AMD
#endif
}

#if defined(GPU_HOST)
#include "emulator/matrix.h"
#elif defined(GPU_NVIDIA)
// Both bf16 of a word times those of another; exact where it is used.
__device__ __forceinline__ unsigned times_bf16x2(unsigned a, unsigned b) {
  return fma_bf16x2(a, b, 0x80008000u);
}
__device__ __forceinline__ unsigned to_f16x2(float low, float high) {
  unsigned r;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
  return r;
}
#else
typedef short short4_v __attribute__((ext_vector_type(4)));
typedef short short8_v __attribute__((ext_vector_type(8)));
typedef short short16_v __attribute__((ext_vector_type(16)));
typedef float float4_v __attribute__((ext_vector_type(4)));
typedef float float8_v __attribute__((ext_vector_type(8)));
#endif

// With 8 COLUMNS the right half of c is not changed, or of no use. NVIDIA's also multiplies f16:
// where T is e4m3, which f16 holds.
template <int COLUMNS = 16, class T = bf16>
__device__ __forceinline__ void multiply(Sums& c, const Fragment& a, const Fragment& b) {
#if defined(GPU_NVIDIA)
#define MMA(TYPE)                                                                          \
  asm volatile(                                                                            \
      "mma.sync.aligned.m16n8k16.row.col.f32." TYPE "." TYPE                               \
      ".f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"                         \
      : "+f"(c.v[h * 4]), "+f"(c.v[h * 4 + 1]), "+f"(c.v[h * 4 + 2]), "+f"(c.v[h * 4 + 3]) \
      : "r"(a.w[0]), "r"(a.w[1]), "r"(a.w[2]), "r"(a.w[3]), "r"(b.w[h * 2]), "r"(b.w[h * 2 + 1]))
#pragma unroll
  for (int h = 0; h < COLUMNS / 8; h++)
    if (sizeof(T) == sizeof(bf16))
      MMA("bf16");
    else
      MMA("f16");
#elif defined(GPU_AMD) && defined(MATRIX_CDNA)
  c = __builtin_bit_cast(Sums, __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(
                                   __builtin_bit_cast(short4_v, a), __builtin_bit_cast(short4_v, b),
                                   __builtin_bit_cast(float4_v, c), 0, 0, 0));
#elif defined(GPU_AMD) && defined(MATRIX_GFX12)
  c = __builtin_bit_cast(Sums, __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32_gfx12(
                                   __builtin_bit_cast(short8_v, a), __builtin_bit_cast(short8_v, b),
                                   __builtin_bit_cast(float8_v, c)));
#elif defined(GPU_AMD)
  c = __builtin_bit_cast(
      Sums, __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32(__builtin_bit_cast(short16_v, a),
                                                        __builtin_bit_cast(short16_v, b),
                                                        __builtin_bit_cast(float8_v, c)));
#else
  const Operands mine{&c, &a, &b};
  simt::together(simt::kMatrix, reinterpret_cast<uintptr_t>(&mine), [](uint64_t* all) {
    multiply_all<16>(
        all, [](auto lanes, int row, int k) { return a_element<T>(lanes, row, k); },
        [](auto lanes, int row, int k) { return b_element<T>(lanes, row, k); });
  });
#endif
}

#endif  // OSSRUN_GPU_MATRIX_H_
