// A tile of a matrix product by a block: 64 rows by 128 columns, 32 of k at a time, whose operands
// are bf16 in shared memory. The result takes their place.
#ifndef OSSRUN_GPU_TILE_H_
#define OSSRUN_GPU_TILE_H_

#include "matrix.h"
#include "pieces.h"

constexpr int kTileRows = 64, kTileColumns = 128, kTileK = 32;
constexpr int kTileStride = kTileK + 8;  // bf16 between rows: eight rows meet 32 different banks
constexpr int kResultStride = kTileColumns + 4;
constexpr int kTileThreads = 256;
// Warps stand 2 by kWarpsAcross over the tile; each has 32 rows by kAcross * 16 columns.
constexpr int kWarpsAcross = kTileThreads / WARP / 2;
constexpr int kAcross = kTileColumns / kWarpsAcross / 16;

// A warp's sums.
typedef Sums TileSums[2][kAcross];

// Where a lane's warp is in the tile.
struct TilePlace {
  int lane, down, across;

  // sum += the staged rows in TERMS terms, kTileRows apart, times the staged columns.
  template <int TERMS>
  __device__ __forceinline__ void multiply_staged(TileSums& sum, const bf16* as,
                                                  const bf16* bs) const {
#pragma unroll
    for (int kk = 0; kk < kTileK; kk += 16) {
      Fragment fb[kAcross];
#pragma unroll
      for (int j = 0; j < kAcross; j++)
        fb[j] = load_b(bs + (across + j * 16) * kTileStride + kk, kTileStride, lane);
#pragma unroll
      for (int t = 0; t < TERMS; t++)
#pragma unroll
        for (int i = 0; i < 2; i++) {
          const Fragment fa =
              load_a(as + (t * kTileRows + down + i * 16) * kTileStride + kk, kTileStride, lane);
#pragma unroll
          for (int j = 0; j < kAcross; j++) multiply(sum[i][j], fa, fb[j]);
        }
    }
  }

  // All sums into `result`, rows kResultStride apart.
  __device__ __forceinline__ void leave(float* result, const TileSums& sum) const {
    __syncthreads();  // the operands have been read: the result takes their place
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
      for (int j = 0; j < kAcross; j++)
#pragma unroll
        for (int n = 0; n < kFragmentSums; n++)
          result[(down + i * 16 + sum_row(lane, n)) * kResultStride + across + j * 16 +
                 sum_column(lane, n)] = sum[i][j].v[n];
    __syncthreads();
  }
};

__device__ __forceinline__ TilePlace tile_place() {
  const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
  return {lane, warp / kWarpsAcross * 32, warp % kWarpsAcross * kAcross * 16};
}

#endif  // OSSRUN_GPU_TILE_H_
