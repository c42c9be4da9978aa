// Decode's dense matrices: norm, projection, bias and what follows in one phase.
//
// ROWS rows of the step share one pass over the weights; a step of more rows has more blocks. Those
// of the same columns are neighbours along x, so they run together and the weights come out of the
// second cache. Two columns a warp, so that a staged activation serves
// twice.
#ifndef OSSRUN_GPU_DECODE_DENSE_H_
#define OSSRUN_GPU_DECODE_DENSE_H_

#include "cache.h"
#include "decode.h"
#include "grid.h"

template <int ROWS>
__device__ __forceinline__ void linear_rows(const Place& place, const int* rows, float* y,
                                            const float* x, const bf16* norm, const bf16* w,
                                            const bf16* bias, int k, int n, int stride, int add,
                                            float eps) {
  DYNAMIC_SHARED(float4, staged);
  SHARED(float, part, ROWS* kDecodeWarps);
  const int live = *rows, row0 = place.x * ROWS;
  const int lane = place.thread % WARP, warp = warp_of(place.thread);
  int c = (place.y * kDecodeWarps + warp) * 2;
  Pieces<2, (ROWS > 1 ? kInFlightOfMany : kInFlight)> ahead = {};
  bf16 next_bias = 0;  // of the lane's column
  const auto ask = [&] {
    const bf16* const first = w + static_cast<int64_t>(c) * k;
    if (bias && c + lane % 2 < n) next_bias = bias[c + lane % 2];
    ahead.ask({first, c + 1 < n ? first + k : first}, 0, k / 8, lane);
  };
  if (c < n) ask();
  if (row0 >= live) return;  // the whole block
  stage_rows<ROWS>(place.thread, staged, x + static_cast<int64_t>(row0) * k, norm, k, live - row0,
                   part);
  __syncthreads();
  const float scale = norm ? norm_scale(part, lane / 2 % ROWS, k, eps) : 1.0f;  // of the lane's row
  while (c < n) {
    const int own = c;
    const bool two = own + 1 < n;
    const bf16* const first = w + static_cast<int64_t>(own) * k;
    float sum[ROWS][2] = {};
    dot_bf16(sum, ahead, staged, {first, two ? first + k : first}, k, lane);
    const float own_bias = from_bf16(next_bias);
    c += place.ny * kDecodeWarps * 2;
    if (c < n) ask();
    float v = 0;  // of the lane's own row and column: lane 2r + j has sum[r][j]
#pragma unroll
    for (int r = 0; r < ROWS; r++)
#pragma unroll
      for (int j = 0; j < 2; j++) {
        const float all = warp_sum(sum[r][j]);
        if (lane == 2 * r + j) v = all;
      }
    const int row = row0 + lane / 2, j = lane % 2;
    if (lane >= 2 * ROWS || row >= live || (j == 1 && !two)) continue;
    float* to = y + static_cast<int64_t>(row) * stride + own + j;
    v = fmaf(v, scale, own_bias);
    *to = add ? *to + v : v;
  }
}

// Where the weights of a pair of columns begin that turn together: element i of a head; those of
// i + dim/2 are as many rows further.
__device__ __forceinline__ const bf16* pair_row(int pair, const bf16* wq, const bf16* wk,
                                                const bf16* wv, int k, int heads, int kv_heads,
                                                int dim) {
  const int head = pair / (dim / 2);
  const bf16* w = head < heads ? wq : head < heads + kv_heads ? wk : wv;
  const int own = head < heads ? head : (head - heads) % kv_heads;
  return w + static_cast<int64_t>(own * dim + pair % (dim / 2)) * k;
}

// A pair of columns at a time.
template <int ROWS, class T>
__device__ __forceinline__ void qkv_rows(const Place& place, const int* rows, float* qkv, T* cache,
                                         const float* x, const bf16* norm, const bf16* wq,
                                         const bf16* bq, const bf16* wk, const bf16* bk,
                                         const bf16* wv, const bf16* bv, const float* angles,
                                         const int* positions, const int* tables,
                                         const int* table_at, int64_t page_elements, int k,
                                         int heads, int kv_heads, int dim, float eps) {
  DYNAMIC_SHARED(float4, staged);
  SHARED(float, part, ROWS* kDecodeWarps);
  const int live = *rows, row0 = place.x * ROWS;
  const int lane = place.thread % WARP, warp = warp_of(place.thread);
  const int half = dim / 2, width = (heads + 2 * kv_heads) * dim;
  const int pairs = width / 2;
  int p = place.y * kDecodeWarps + warp;
  Pieces<2, (ROWS > 1 ? kInFlightOfMany : kInFlight)> ahead = {};
  const bf16* low_row = nullptr;
  bf16 next_bias[2] = {};
  const int64_t apart = static_cast<int64_t>(half) * k;
  // inline, or AMD's compiler keeps the pieces in memory
  const auto ask = [&]() __attribute__((always_inline)) {
    const int head = p / half;
    const bf16* const bias = head < heads ? bq : head < heads + kv_heads ? bk : bv;
    const int low = (head < heads ? head : (head - heads) % kv_heads) * dim + p % half;
    if (bias) next_bias[0] = bias[low], next_bias[1] = bias[low + half];
    low_row = pair_row(p, wq, wk, wv, k, heads, kv_heads, dim);
    ahead.ask({low_row, low_row + apart}, 0, k / 8, lane);
  };
  if (p < pairs) ask();
  if (row0 >= live) return;  // the whole block
  stage_rows<ROWS>(place.thread, staged, x + static_cast<int64_t>(row0) * k, norm, k, live - row0,
                   part);
  __syncthreads();
  const float scale = norm_scale(part, lane % ROWS, k, eps);  // of the lane's row
  while (p < pairs) {
    const int head = p / half, i = p % half;
    const bool query = head < heads, key = !query && head < heads + kv_heads;
    const int own = query ? head : key ? head - heads : head - heads - kv_heads;
    float sum[ROWS][2] = {};
    dot_bf16(sum, ahead, staged, {low_row, low_row + apart}, k, lane);
    const float low_bias = from_bf16(next_bias[0]), high_bias = from_bf16(next_bias[1]);
    p += place.ny * kDecodeWarps;
    if (p < pairs) ask();
    float u = 0, v = 0;  // of the lane's own row
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
      const float all_u = warp_sum(sum[r][0]), all_v = warp_sum(sum[r][1]);
      if (lane == r) {
        u = all_u;
        v = all_v;
      }
    }
    const int row = row0 + lane;
    if (lane >= ROWS || row >= live) continue;
    u = fmaf(u, scale, low_bias);
    v = fmaf(v, scale, high_bias);
    if (query || key) {
      const float c = angles[static_cast<int64_t>(row) * dim + i];
      const float s = angles[static_cast<int64_t>(row) * dim + half + i];
      const float turned = u * c - v * s;
      v = v * c + u * s;
      u = turned;
    }
    float* to = qkv + static_cast<int64_t>(row) * width + head * dim + i;
    to[0] = u;
    to[half] = v;
    if (query) continue;
    const int position = positions[row], page = tables[table_at[row] + position / kPageTokens];
    T* at = key_at(cache, page_elements, page, own, position, dim) + i;
    if (!key) at += kPageTokens * dim;
    store(at, u);
    store(at + half, v);
  }
}

#endif  // OSSRUN_GPU_DECODE_DENSE_H_
