// Prefill's dense matrix with weights and activations in 8 bits, on the matrix unit.
//
// Bytes are exact in bf16, and so is the sum of 32 of their products in float32: a block of 32
// columns is multiplied as integers, and its sums are added times the scales of row and column. A
// block of threads makes 64 rows by 128 columns, a block of columns at a time.
//
// What must stay true: k is a multiple of 32; q begins at a multiple of 8, w at one of 16.
#include "matrix.h"
#include "pieces.h"
#include "weights_q8.h"

constexpr int kQRows = 64, kQColumns = 128, kQThreads = 256;
constexpr int kQResultStride = kQColumns + 4;
constexpr int kQStride = kBlock + 8;  // bf16 between rows: eight rows meet 32 different banks
// Warps stand 2 by kQWarpsAcross over the tile; each has 32 rows by kQAcross * 16 columns.
constexpr int kQWarpsAcross = kQThreads / WARP / 2;
constexpr int kQAcross = kQColumns / kQWarpsAcross / 16;

// Four signed bytes as bf16.
__device__ __forceinline__ uint2 widen(unsigned v) {
  const auto byte = [&](int i) {
    return static_cast<float>(static_cast<int>(static_cast<int8_t>(v >> 8 * i & 0xff)));
  };
  return uint2{to_bf16x2(byte(0), byte(1)), to_bf16x2(byte(2), byte(3))};
}

// linear_q8 for many rows of up to three matrices side by side, as in prefill_linear. Blocks along
// z divide k, with partial and arrived as in add_pieces.
// grid (ceil(bucket rows / 64), ceil(n0 / 128) + ceil(n1 / 128) + ceil(n2 / 128), any),
// shared 33792
KERNEL(256, 2)
prefill_linear_q8(const int* rows, float* y, float* partial, int* arrived, const int8_t* q,
                  const float* d, const uint8_t* w0, const bf16* bias0, const uint8_t* w1,
                  const bf16* bias1, const uint8_t* w2, const bf16* bias2, int n0, int n1, int n2,
                  int k, int stride, int add) {
  await_grids();
  DYNAMIC_SHARED(float, result);  // where the operands were
  bf16* const as = reinterpret_cast<bf16*>(result);
  bf16* const bs = as + kQRows * kQStride;
  SHARED(float, row_scales, kQRows);
  SHARED(float, column_scales, kQColumns);
  const int live = *rows, row0 = blockIdx.x * kQRows;
  if (row0 >= live) return;  // the whole block
  const OwnColumns<uint8_t> own =
      own_columns<kQColumns>(blockIdx.y, w0, bias0, w1, bias1, w2, bias2, n0, n1, n2);
  const Piece piece = own_piece(k / kBlock);
  const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
  const int down = warp / kQWarpsAcross * 32, across = warp % kQWarpsAcross * kQAcross * 16;
  // A thread brings a quarter of a row of activations and half a row of weights.
  const int64_t own_row = row0 + threadIdx.x / 4;
  const int own_column = own.first + threadIdx.x / 2;
  const int quarter = threadIdx.x % 4, half = threadIdx.x % 2;
  const uint8_t* group =
      own.w + static_cast<int64_t>(own_column / kGroupRows) * (k / kBlock) * kGroupBlock;
  Sums sum[2][kQAcross];
#pragma unroll
  for (int i = 0; i < 2; i++)
#pragma unroll
    for (int j = 0; j < kQAcross; j++) sum[i][j] = Sums{};
  uint2 a = {0, 0};
  unsigned b[4] = {0, 0, 0, 0};
  float row_scale = 0, column_scale = 0;
  const auto fetch = [&](int block) {
    if (own_row < live) {
      a = *reinterpret_cast<const uint2*>(q + own_row * k + block * kBlock + quarter * 8);
      row_scale = d[own_row * (k / 16) + 2 * block];
    }
    if (own_column < own.n) {
      const uint8_t* from = group + static_cast<int64_t>(block) * kGroupBlock;
      column_scale = from_bf16(reinterpret_cast<const bf16*>(from)[own_column % kGroupRows]);
      from += kGroupRows * 2 + half * (4 * 4 * kGroupRows) + own_column % kGroupRows * 4;
#pragma unroll
      for (int i = 0; i < 4; i++)
        b[i] = *reinterpret_cast<const unsigned*>(from + i * (4 * kGroupRows));
    }
  };
  if (piece.first < piece.end) fetch(piece.first);
  for (int block = piece.first; block < piece.end; block++) {
    __syncthreads();  // the block before has been multiplied
    const uint2 dealt = deal(a);
    uint2* const to_a = reinterpret_cast<uint2*>(as + threadIdx.x / 4 * kQStride + quarter * 8);
    to_a[0] = widen(dealt.x);
    to_a[1] = widen(dealt.y);
    uint2* const to_b = reinterpret_cast<uint2*>(bs + threadIdx.x / 2 * kQStride + half * 16);
#pragma unroll
    for (int i = 0; i < 4; i++) to_b[i] = widen(b[i]);
    row_scales[threadIdx.x / 4] = row_scale;
    column_scales[threadIdx.x / 2] = column_scale;
    __syncthreads();
    if (block + 1 < piece.end) fetch(block + 1);
    Sums step[2][kQAcross];
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
      for (int j = 0; j < kQAcross; j++) step[i][j] = Sums{};
#pragma unroll
    for (int kk = 0; kk < kBlock; kk += 16) {
      Fragment fb[kQAcross];
#pragma unroll
      for (int j = 0; j < kQAcross; j++)
        fb[j] = load_b(bs + (across + j * 16) * kQStride + kk, kQStride, lane);
#pragma unroll
      for (int i = 0; i < 2; i++) {
        const Fragment fa = load_a(as + (down + i * 16) * kQStride + kk, kQStride, lane);
#pragma unroll
        for (int j = 0; j < kQAcross; j++) multiply(step[i][j], fa, fb[j]);
      }
    }
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
      for (int j = 0; j < kQAcross; j++)
#pragma unroll
        for (int e = 0; e < kFragmentSums; e++)
          sum[i][j].v[e] = fmaf(column_scales[across + j * 16 + sum_column(lane, e)] *
                                    row_scales[down + i * 16 + sum_row(lane, e)],
                                step[i][j].v[e], sum[i][j].v[e]);
  }
  __syncthreads();  // the operands have been read: the result takes their place
#pragma unroll
  for (int i = 0; i < 2; i++)
#pragma unroll
    for (int j = 0; j < kQAcross; j++)
#pragma unroll
      for (int e = 0; e < kFragmentSums; e++)
        result[(down + i * 16 + sum_row(lane, e)) * kQResultStride + across + j * 16 +
               sum_column(lane, e)] = sum[i][j].v[e];
  __syncthreads();
  leave_tile<kQRows, kQColumns>(y, result, kQResultStride, row0, live, own, stride, add, partial,
                                arrived);
}
EMULATE(prefill_linear_q8, 256)
