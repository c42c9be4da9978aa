// Tiles of matrix products: of up to three matrices side by side, as q, k and v are, and with a k
// that several blocks divide between them, where what each found meets in memory.
//
// What must stay true: the pieces are added in their order, whichever came last, so a tile has the
// same bits each time; rows that are not live are neither written nor read.
#ifndef OSSRUN_GPU_PIECES_H_
#define OSSRUN_GPU_PIECES_H_

#include "cache.h"
#include "decode.h"

// The matrix that a tile of COLUMNS columns is of, its first column there, how many columns the
// matrix has, and where they begin in a row of y. A matrix begins a tile of its own; one that there
// is not has no columns.
template <class W>
struct OwnColumns {
  const W* w;
  const bf16* bias;
  int first, n, begin;
};
template <int COLUMNS, class W>
__device__ __forceinline__ OwnColumns<W> own_columns(int tile, const W* w0, const bf16* bias0,
                                                     const W* w1, const bf16* bias1, const W* w2,
                                                     const bf16* bias2, int n0, int n1, int n2) {
  const int tiles0 = (n0 + COLUMNS - 1) / COLUMNS, tiles1 = (n1 + COLUMNS - 1) / COLUMNS;
  if (tile < tiles0) return {w0, bias0, tile * COLUMNS, n0, 0};
  if (tile < tiles0 + tiles1) return {w1, bias1, (tile - tiles0) * COLUMNS, n1, n0};
  return {w2, bias2, (tile - tiles0 - tiles1) * COLUMNS, n2, n0 + n1};
}

// This block's steps of k: [first, end), of those that the blocks along z divide.
struct Piece {
  int first, end;
};
__device__ __forceinline__ Piece own_piece(int steps) {
  const int n = gridDim.z, z = blockIdx.z;
  return {steps * z / n, steps * (z + 1) / n};
}

// Adds `result` f32 [ROWS, COLUMNS], rows `stride` apart in shared memory, to what the other blocks
// along z found of its first `live` rows. False to all blocks but the last to arrive, which has the
// sum in its place. partial f32 [tiles, blocks along z, ROWS, COLUMNS]; arrived i32 [tiles], 0
// before and after; with one block along z both may be null. All THREADS; begins behind a barrier
// and ends with one. The last block waits for memory once for many loads: alone, it has no other
// warps to fill the time.
template <int ROWS, int COLUMNS, int THREADS>
__device__ __forceinline__ bool add_pieces(float* result, int stride, int live, int tile,
                                           float* partial, int* arrived, int* flag) {
  constexpr int kFours = COLUMNS / 4, kPiece = ROWS * kFours;
  const int pieces = gridDim.z, count = (live < ROWS ? live : ROWS) * kFours;
  if (pieces == 1) return true;
  float4* const all =
      reinterpret_cast<float4*>(partial) + static_cast<int64_t>(tile) * pieces * kPiece;
  const auto here = [=](int i) {
    return reinterpret_cast<float4*>(result + i / kFours * stride + i % kFours * 4);
  };
  for (int i = threadIdx.x; i < count; i += THREADS) all[blockIdx.z * kPiece + i] = *here(i);
  if (!last_to_arrive(arrived + tile, pieces, flag)) return false;
  constexpr int kAtOnce = 3, kWide = 4;  // pieces, and places in each
  for (int first = threadIdx.x; first < count; first += kWide * THREADS) {
    float4 sum[kWide] = {};
    for (int p = 0; p < pieces; p += kAtOnce) {
      float4 v[kAtOnce][kWide];
#pragma unroll
      for (int u = 0; u < kAtOnce; u++)
#pragma unroll
        for (int w = 0; w < kWide; w++) {
          const int i = first + w * THREADS;
          v[u][w] = p + u < pieces && i < count ? all[(p + u) * kPiece + i] : float4{0, 0, 0, 0};
        }
#pragma unroll
      for (int u = 0; u < kAtOnce; u++)
#pragma unroll
        for (int w = 0; w < kWide; w++) {
          sum[w].x += v[u][w].x;
          sum[w].y += v[u][w].y;
          sum[w].z += v[u][w].z;
          sum[w].w += v[u][w].w;
        }
    }
#pragma unroll
    for (int w = 0; w < kWide; w++)
      if (first + w * THREADS < count) *here(first + w * THREADS) = sum[w];
  }
  __syncthreads();
  return true;
}

// y = the sums of a tile of ROWS by COLUMNS from row0 on, with bias; add: +=. Rows of y are
// `stride` apart; the rest as in add_pieces.
template <int ROWS, int COLUMNS, int THREADS = kDecodeThreads, class W>
__device__ __forceinline__ void leave_tile(float* y, float* result, int result_stride, int row0,
                                           int live, const OwnColumns<W>& own, int stride, int add,
                                           float* partial, int* arrived) {
  static_assert(THREADS % COLUMNS == 0, "a thread has one column");
  constexpr int kApart = THREADS / COLUMNS, kAtOnce = 8;  // rows of y that a thread asks for
  SHARED(int, flag, 1);
  if (!add_pieces<ROWS, COLUMNS, THREADS>(result, result_stride, live - row0,
                                          blockIdx.y * gridDim.x + blockIdx.x, partial, arrived,
                                          flag))
    return;
  const int column = threadIdx.x % COLUMNS, c = own.first + column;
  if (c >= own.n) return;
  const int rows = live - row0 < ROWS ? live - row0 : ROWS;
  const float bias = own.bias ? from_bf16(own.bias[c]) : 0.0f;
  float* const to = y + static_cast<int64_t>(row0) * stride + own.begin + c;
  for (int first = threadIdx.x / COLUMNS; first < rows; first += kAtOnce * kApart) {
    float v[kAtOnce];
#pragma unroll
    for (int u = 0; u < kAtOnce; u++) {
      const int row = first + u * kApart;
      v[u] = add && row < rows ? to[static_cast<int64_t>(row) * stride] : 0.0f;
    }
#pragma unroll
    for (int u = 0; u < kAtOnce; u++) {
      const int row = first + u * kApart;
      if (row < rows)
        to[static_cast<int64_t>(row) * stride] =
            v[u] + (result[row * result_stride + column] + bias);
    }
  }
}

// A tile of q, k and v as leave_tile, its heads as HeadRows has them. NORMED: the products come
// before RMSNorm's scale, and behind a row's columns is its sum of squares.
template <int ROWS, int COLUMNS, int THREADS, bool NORMED, class W>
__device__ __forceinline__ void leave_heads(const HeadRows<bf16>& heads, float* result, int stride,
                                            int row0, int live, const OwnColumns<W>& own, int k,
                                            float eps, float* partial, int* arrived) {
  SHARED(int, flag, 1);
  if (!add_pieces<ROWS, COLUMNS + 4 * NORMED, THREADS>(
          result, stride, live - row0, blockIdx.y * gridDim.x + blockIdx.x, partial, arrived, flag))
    return;
  constexpr int kHalf = kDim / 2, kPairs = COLUMNS / 2, kApart = THREADS / kPairs, kAtOnce = 4;
  const int i = threadIdx.x % kHalf, column = threadIdx.x % kPairs / kHalf * kDim + i;
  const int c = own.first + column, head = (own.begin + c) / kDim;
  if (c >= own.n) return;
  const int rows = live - row0 < ROWS ? live - row0 : ROWS;
  const float bias0 = own.bias ? from_bf16(own.bias[c]) : 0.0f;
  const float bias1 = own.bias ? from_bf16(own.bias[c + kHalf]) : 0.0f;
  for (int first = threadIdx.x / kPairs; first < rows; first += kAtOnce * kApart) {
    HeadRows<bf16>::Pair to[kAtOnce];
#pragma unroll
    for (int u = 0; u < kAtOnce; u++)
      if (first + u * kApart < rows) to[u] = heads.ask(row0 + first + u * kApart, head, i);
#pragma unroll
    for (int u = 0; u < kAtOnce; u++) {
      if (first + u * kApart >= rows) break;
      const float* const sums = result + (first + u * kApart) * stride;
      const float scale =
          NORMED ? 1.0f / sqrt_of(sums[COLUMNS] / static_cast<float>(k) + eps) : 1.0f;
      heads.leave(to[u], head, fmaf(sums[column], scale, bias0),
                  fmaf(sums[column + kHalf], scale, bias1));
    }
  }
}

#endif  // OSSRUN_GPU_PIECES_H_
