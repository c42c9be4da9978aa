// Prefill's dense matrix with weights and activations in 8 bits, on the matrix unit.
//
// Bytes are exact in bf16, and so is the sum of 32 of their products in float32: a block of 32
// columns is multiplied as integers, and its sums are added times the scales of row and column. A
// block of threads makes 64 rows by 128 columns, a block of columns at a time.
//
// What must stay true: k is a multiple of 32; q begins at a multiple of 8, w at one of 16.
#include "tile.h"
#include "weights_q8.h"

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
  bf16* const bs = as + kTileRows * kTileStride;
  SHARED(float, row_scales, kTileRows);
  SHARED(float, column_scales, kTileColumns);
  const int live = *rows, row0 = blockIdx.x * kTileRows;
  if (row0 >= live) return;  // the whole block
  const OwnColumns<uint8_t> own =
      own_columns<kTileColumns>(blockIdx.y, w0, bias0, w1, bias1, w2, bias2, n0, n1, n2);
  const Piece piece = own_piece(k / kBlock);
  const TilePlace place = tile_place();
  // A thread brings a quarter of a row of activations and half a row of weights.
  const int64_t own_row = row0 + threadIdx.x / 4;
  const int own_column = own.first + threadIdx.x / 2;
  const int quarter = threadIdx.x % 4, half = threadIdx.x % 2;
  const uint8_t* group =
      own.w + static_cast<int64_t>(own_column / kGroupRows) * (k / kBlock) * kGroupBlock;
  TileSums sum = {};
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
    uint2* const to_a = reinterpret_cast<uint2*>(as + threadIdx.x / 4 * kTileStride + quarter * 8);
    to_a[0] = widen(dealt.x);
    to_a[1] = widen(dealt.y);
    uint2* const to_b = reinterpret_cast<uint2*>(bs + threadIdx.x / 2 * kTileStride + half * 16);
#pragma unroll
    for (int i = 0; i < 4; i++) to_b[i] = widen(b[i]);
    row_scales[threadIdx.x / 4] = row_scale;
    column_scales[threadIdx.x / 2] = column_scale;
    __syncthreads();
    if (block + 1 < piece.end) fetch(block + 1);
    TileSums step = {};
    place.multiply_staged<1>(step, as, bs);
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
      for (int j = 0; j < kAcross; j++)
#pragma unroll
        for (int e = 0; e < kFragmentSums; e++)
          sum[i][j].v[e] = fmaf(column_scales[place.across + j * 16 + sum_column(place.lane, e)] *
                                    row_scales[place.down + i * 16 + sum_row(place.lane, e)],
                                step[i][j].v[e], sum[i][j].v[e]);
  }
  place.leave(result, sum);
  leave_tile<kTileRows, kTileColumns>(y, result, kResultStride, row0, live, own, stride, add,
                                      partial, arrived);
}
EMULATE(prefill_linear_q8, 256)
