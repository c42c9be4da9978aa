// What a card multiplies when nothing keeps its matrix unit waiting: loops of products whose
// operands stay where the unit reads them. Measured on a card (gpu/device/rate.go), this is the
// most that any kernel can reach there by the same instruction.
//
// One round of it on integers, exact in bf16, shows that fragments lie where this file's headers
// believe, on the card at hand.
//
// What must stay true: the loop has products alone; those that are under way at once do not wait
// for each other; every sum is part of what is written, so that none can be left out.
#include "matrix_mx.h"
#include "wgmma.h"

constexpr int kRateA = 2, kRateB = 4;  // fragments of each side: eight products at once
constexpr int kRateStride = 16 + 8;    // bf16 between rows: eight rows meet 32 different banks

// A warp's eight products, `rounds` times, of fragments a(i) and b(j); it leaves all sums, added
// up, in c f32 [warps of the grid][16][16].
template <class F, class A, class B, class Multiply>
__device__ __forceinline__ void rate_loop(float* c, int rounds, A a, B b, Multiply multiply) {
  F fa[kRateA], fb[kRateB];
#pragma unroll
  for (int i = 0; i < kRateA; i++) fa[i] = a(i);
#pragma unroll
  for (int j = 0; j < kRateB; j++) fb[j] = b(j);
  Sums sum[kRateA][kRateB] = {};
  for (int r = 0; r < rounds; r++)
#pragma unroll
    for (int i = 0; i < kRateA; i++)
#pragma unroll
      for (int j = 0; j < kRateB; j++) multiply(sum[i][j], fa[i], fb[j]);
  const int lane = threadIdx.x % WARP;
  float* const to =
      c + static_cast<int64_t>(blockIdx.x * (blockDim.x / WARP) + threadIdx.x / WARP) * 256;
#pragma unroll
  for (int n = 0; n < kFragmentSums; n++) {
    float v = 0;
#pragma unroll
    for (int i = 0; i < kRateA; i++)
#pragma unroll
      for (int j = 0; j < kRateB; j++) v += sum[i][j].v[n];
    to[sum_row(lane, n) * 16 + sum_column(lane, n)] = v;
  }
}

// Each warp, `rounds` times: the eight products of a bf16 [2][16][16] by b bf16 [4][16][16],
// transposed. grid (any), block 256
KERNEL(256)
matrix_rate(float* c, const bf16* a, const bf16* b, int rounds) {
  await_grids();
  SHARED(bf16, tile, (kRateA + kRateB) * 16 * kRateStride);
  for (int i = threadIdx.x; i < (kRateA + kRateB) * 256; i += blockDim.x)
    tile[i / 16 * kRateStride + i % 16] = i < kRateA * 256 ? a[i] : b[i - kRateA * 256];
  __syncthreads();
  const int lane = threadIdx.x % WARP;
  rate_loop<Fragment>(
      c, rounds, [&](int i) { return load_a(tile + i * 16 * kRateStride, kRateStride, lane); },
      [&](int j) { return load_b(tile + (kRateA + j) * 16 * kRateStride, kRateStride, lane); },
      [](Sums& sum, const Fragment& a, const Fragment& b) { multiply(sum, a, b); });
}
EMULATE(matrix_rate, 256)

#if defined(MATRIX_MX)
// matrix_rate of MXFP4: a codes u8 [2][16][64] with scales u8 [2][16][4], b codes u8 [4][16][64]
// with scales u8 [4][16][4].
KERNEL(256)
matrix_rate_mx(float* c, const uint8_t* a, const uint8_t* a_scales, const uint8_t* b,
               const uint8_t* b_scales, int rounds) {
  await_grids();
  constexpr int kRows = (kRateA + kRateB) * 16;
  SHARED(uint8_t, codes, kRows* kMxStride);
  SHARED(unsigned, scales, kRows);
  uint8_t* const bytes = reinterpret_cast<uint8_t*>(scales);
  for (int i = threadIdx.x; i < kRows * 64; i += blockDim.x)
    codes[i / 64 * kMxStride + i % 64] = i < kRateA * 1024 ? a[i] : b[i - kRateA * 1024];
  for (int i = threadIdx.x; i < kRows * 4; i += blockDim.x)
    bytes[i] = i < kRateA * 64 ? a_scales[i] : b_scales[i - kRateA * 64];
  __syncthreads();
  const int lane = threadIdx.x % WARP;
  rate_loop<MxFragment>(
      c, rounds,
      [&](int i) { return load_mx_a(codes + i * 16 * kMxStride, scales + i * 16, lane); },
      [&](int j) {
        return load_mx_b(codes + (kRateA + j) * 16 * kMxStride, scales + (kRateA + j) * 16, lane);
      },
      [](Sums& sum, const MxFragment& a, const MxFragment& b) { multiply_mx(sum, a, b); });
}
EMULATE(matrix_rate_mx, 256)
#endif

#if defined(MATRIX_WGMMA)
// Each warpgroup, `rounds` times: a bf16 [64][64] by b bf16 [128][64], transposed, the first one of
// a block with a in shared memory, the other with it in registers. c f32 [warpgroups of the
// grid][64][128]: the sum. While one warpgroup of a multiprocessor waits for its products, the unit
// has those of the others. grid (any), shared 25600
KERNEL(256)
matrix_rate_wgmma(float* c, const bf16* a, const bf16* b, int rounds) {
  await_grids();
  DYNAMIC_SHARED(bf16, dynamic);
  bf16 *const as = operands_in(dynamic), *const bs = as + kWgRows * kWgStep;
  for (int i = threadIdx.x; i < kWgRows * kWgStep; i += blockDim.x)
    as[operand_at(i / kWgStep, i % kWgStep)] = a[i];
  for (int i = threadIdx.x; i < kWgColumns * kWgStep; i += blockDim.x)
    bs[operand_at(i / kWgStep, i % kWgStep)] = b[i];
  publish();
  __syncthreads();
  float sum[kWgSums] = {};
  Pending pending = {};
  unsigned own[kWgStep / 16][4];
#pragma unroll
  for (int i = 0; i < kWgStep / 4; i++)
    own[i / 4][i % 4] =
        reinterpret_cast<const unsigned*>(a)[wg_row(threadIdx.x, i % 2 * 2) * (kWgStep / 2) +
                                             i / 4 * 8 + i % 4 / 2 * 4 + threadIdx.x % 4];
  const auto multiply_all = [&](auto ask) {
    for (int r = 0; r < rounds; r++) {
      begin_products(sum);
#pragma unroll
      for (int k = 0; k < kWgStep; k += 16) ask(k);
      commit(pending);
      wait(pending, sum);
    }
  };
  if (threadIdx.x < 128)
    multiply_all([&](int k) { issue(pending, sum, descriptor(as + k), descriptor(bs + k)); });
  else
    multiply_all([&](int k) { issue<kWgColumns>(pending, sum, own[k / 16], descriptor(bs + k)); });
  float* const to = c + static_cast<int64_t>(blockIdx.x * (blockDim.x / 128) + threadIdx.x / 128) *
                            (kWgRows * kWgColumns);
#pragma unroll
  for (int i = 0; i < kWgSums; i++)
    to[wg_row(threadIdx.x, i) * kWgColumns + wg_column(threadIdx.x, i)] = sum[i];
}
EMULATE(matrix_rate_wgmma, 256)
#endif
