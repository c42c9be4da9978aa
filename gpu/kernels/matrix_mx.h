// The matrix unit for MXFP4: C[16x16] += A[16x128] · B[16x128]ᵀ by one warp, E2M1 with a scale of
// 32 on both sides, float32 out. Nothing is unpacked: the unit multiplies by the scales itself.
//
// A is [m][k] and B is [n][k] in shared memory, 64 bytes of codes a row, element 2i in the low half
// of byte i, rows kMxStride bytes apart; beside them a word of four scales a row.
//
//   NVIDIA mxf4 m16n8k64   four instructions: two of k, two of columns. Codes lie as the 16-bit
//   words
//                          of mma.m16n8k16. Scales of A: row lane/4 + 8 (lane%2); of B: column
//                          lane/4; two of a word at a time
//   CDNA mfma_scale        A, B: row lane%16, the block of 32 lane/16, and that block's scale
#ifndef OSSRUN_GPU_MATRIX_MX_H_
#define OSSRUN_GPU_MATRIX_MX_H_

#include "matrix.h"

#if defined(__CUDA_ARCH_FEAT_SM120_ALL) || defined(__CUDA_ARCH_FEAT_SM121_ALL) || \
    (defined(GPU_HOST) && defined(MATRIX_NV))
#define MATRIX_MX_NV 1
#elif defined(__gfx950__) || (defined(GPU_HOST) && defined(MATRIX_CDNA))
#define MATRIX_MX_CDNA 1
#endif
#if defined(MATRIX_MX_NV) || defined(MATRIX_MX_CDNA)
#define MATRIX_MX 1

constexpr int kMxK = 128;
constexpr int kMxStride = kMxK / 2 + 16;  // eight rows meet different banks

struct MxFragment {
#if defined(MATRIX_MX_NV)
  Fragment half[2];   // of k
  unsigned scale[2];  // of A one, of B one for the left and one for the right eight columns
#else
  unsigned w[4];
  unsigned scale;
#endif
};

// The fragment of 16 rows at s, whose scales are at `scales`.
__device__ __forceinline__ MxFragment load_mx_a(const uint8_t* s, const unsigned* scales,
                                                int lane) {
  MxFragment f;
#if defined(MATRIX_MX_NV)
  const bf16* p = reinterpret_cast<const bf16*>(s);
  f.half[0] = load_a(p, kMxStride / 2, lane);
  f.half[1] = load_a(p + 16, kMxStride / 2, lane);
  f.scale[0] = f.scale[1] = scales[lane / 4 + lane % 2 * 8];
#else
  put_words(f.w, *reinterpret_cast<const uint4*>(s + lane % 16 * kMxStride + lane / 16 * 16));
  f.scale = scales[lane % 16] >> lane / 16 * 8 & 0xff;
#endif
  return f;
}

__device__ __forceinline__ MxFragment load_mx_b(const uint8_t* s, const unsigned* scales,
                                                int lane) {
#if defined(MATRIX_MX_NV)
  MxFragment f;
  const bf16* p = reinterpret_cast<const bf16*>(s);
  f.half[0] = load_b(p, kMxStride / 2, lane);
  f.half[1] = load_b(p + 16, kMxStride / 2, lane);
  f.scale[0] = scales[lane / 4];
  f.scale[1] = scales[lane / 4 + 8];
  return f;
#else
  return load_mx_a(s, scales, lane);
#endif
}

#if defined(GPU_HOST)
#include "emulator/matrix_mx.h"
#elif defined(MATRIX_MX_CDNA)
typedef int int8_v __attribute__((ext_vector_type(8)));
#endif

__device__ __forceinline__ void multiply_mx(Sums& c, const MxFragment& a, const MxFragment& b) {
#if defined(GPU_NVIDIA)
#pragma unroll
  for (int kk = 0; kk < 2; kk++)
#pragma unroll
    for (int h = 0; h < 2; h++) {
      const Fragment &fa = a.half[kk], &fb = b.half[kk];
      asm volatile(
          "mma.sync.aligned.kind::mxf4.block_scale.scale_vec::2X.m16n8k64.row.col.f32.e2m1.e2m1.f32"
          ".ue8m0 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3}, {%10}, {0,0}, {%11}, {0,0};"
          : "+f"(c.v[h * 4]), "+f"(c.v[h * 4 + 1]), "+f"(c.v[h * 4 + 2]), "+f"(c.v[h * 4 + 3])
          : "r"(fa.w[0]), "r"(fa.w[1]), "r"(fa.w[2]), "r"(fa.w[3]), "r"(fb.w[h * 2]),
            "r"(fb.w[h * 2 + 1]), "r"(a.scale[0] >> kk * 16), "r"(b.scale[h] >> kk * 16));
    }
#elif defined(GPU_AMD)
  const auto words = [](const MxFragment& f) {
    return int8_v{static_cast<int>(f.w[0]), static_cast<int>(f.w[1]), static_cast<int>(f.w[2]),
                  static_cast<int>(f.w[3])};
  };
  constexpr int kE2M1 = 4;
  c = __builtin_bit_cast(Sums,
                         __builtin_amdgcn_mfma_scale_f32_16x16x128_f8f6f4(
                             words(a), words(b), __builtin_bit_cast(float4_v, c), kE2M1, kE2M1, 0,
                             static_cast<int>(a.scale), 0, static_cast<int>(b.scale)));
#else
  const Operands mine{&c, &a, &b};
  simt::together(simt::kMatrix, reinterpret_cast<uintptr_t>(&mine), [](uint64_t* all) {
    multiply_all<kMxK>(
        all, [](auto lanes, int row, int k) { return mx_a_element(lanes, row, k); },
        [](auto lanes, int row, int k) { return mx_b_element(lanes, row, k); });
  });
#endif
}

#endif

#endif  // OSSRUN_GPU_MATRIX_MX_H_
