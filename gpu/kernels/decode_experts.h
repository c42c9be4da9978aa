// Decode's experts: norm, router and choice; gate and up with SwiGLU; down with the weighted sum
// and the residual. A slot reads its expert's weights by itself: a step of few rows rarely meets an
// expert twice, and then finds it in the second cache.
#ifndef OSSRUN_GPU_DECODE_EXPERTS_H_
#define OSSRUN_GPU_DECODE_EXPERTS_H_

#include "decode.h"
#include "grid.h"

// The choice of one row by one warp: as route_choose. key 0 is NaN's: below everything.
__device__ __forceinline__ void choose_by_warp(int* experts, float* weights, const float* logits,
                                               int count, int top, int lane) {
  uint64_t last = ~uint64_t{0};
  float largest = 0, sum = 0;
  for (int j = 0; j < top; j++) {
    uint64_t best = 0;
    for (int e = lane; e < count; e += WARP) {
      const float v = logits[e];
      const uint64_t key = v != v ? 0 : key_of(v);
      const uint64_t rank = key << 32 | (0xffffffffu - static_cast<unsigned>(e));
      if (rank < last && rank > best) best = rank;
    }
    last = warp_max(best);
    const int expert = static_cast<int>(0xffffffffu - static_cast<unsigned>(last));
    const float logit = logits[expert];
    if (j == 0) largest = logit;
    sum += exp_of(logit - largest);
    if (lane == 0) {
      experts[j] = expert;
      weights[j] = logit;
    }
  }
  if (lane == 0)
    for (int j = 0; j < top; j++) weights[j] = exp_of(weights[j] - largest) / sum;
}

// decode_route.
__device__ __forceinline__ void route_row(const Place& place, const int* rows, int* experts,
                                          float* weights, float* t, float* router, int* arrived,
                                          const float* x, const bf16* norm, const bf16* w,
                                          const bf16* bias, int k, int count, int top, float eps) {
  DYNAMIC_SHARED(float4, staged);
  SHARED(float, part, kDecodeWarps);
  SHARED(int, flag, 1);
  const int row = place.y;
  if (row >= *rows) return;  // the whole block
  stage(place.thread, staged, x + static_cast<int64_t>(row) * k, norm, eps, k, 1.0f, part);
  __syncthreads();
  if (place.x == 0)
    for (int i = place.thread; i < k / 4; i += kDecodeThreads)
      reinterpret_cast<float4*>(t + static_cast<int64_t>(row) * k)[i] = staged[staged_at(i)];
  const int lane = place.thread % WARP, warp = place.thread / WARP;
  const int e = place.x * kDecodeWarps + warp;
  float* logits = router + static_cast<int64_t>(row) * count;
  if (e < count) {
    const bf16* const columns[1] = {w + static_cast<int64_t>(e) * k};
    float sum[1][1] = {};
    dot_bf16(sum, staged, columns, k, lane);
    const float v = warp_sum(sum[0][0]);
    if (lane == 0) logits[e] = bias ? v + from_bf16(bias[e]) : v;
  }
  if (!last_to_arrive(arrived + row, place.nx, flag)) return;
  if (warp == 0)
    choose_by_warp(experts + static_cast<int64_t>(row) * top,
                   weights + static_cast<int64_t>(row) * top, logits, count, top, lane);
}

// decode_gate_up.
__device__ __forceinline__ void gate_up_slot(const Place& place, const int* rows, float* h,
                                             const int* experts, const float* t,
                                             const uint8_t* blocks, const uint8_t* scales,
                                             const bf16* bias, int n, int k, int top, float limit) {
  DYNAMIC_SHARED(float4, staged);
  const int slot = place.y;
  if (slot >= *rows * top) return;  // the whole block
  stage(place.thread, staged, t + static_cast<int64_t>(slot / top) * k, nullptr, 0, k, kMxStage,
        nullptr);
  __syncthreads();
  const int lane = place.thread % WARP, warp = place.thread / WARP, nb = k / kBlock;
  const int64_t first = static_cast<int64_t>(experts[slot]) * n;
  for (int i = place.x * kDecodeWarps + warp; i < n; i += place.nx * kDecodeWarps) {
    // Gate i and up i are rows 2i and 2i + 1: 2 nb blocks in a run.
    const int64_t row = (first + i) * 2;
    const uint8_t* q = blocks + row * nb * (kBlock / 2);
    const uint8_t* s = scales + row * nb;
    float gate = 0, up = 0;
    for (int b = lane; b < 2 * nb; b += kInFlight * WARP) {
      uint4 v[kInFlight];
      unsigned scale[kInFlight];
#pragma unroll
      for (int u = 0; u < kInFlight; u++) {
        const int at = b + u * WARP;
        const bool in = at < 2 * nb;
        v[u] = in ? stream16(q + at * (kBlock / 2)) : uint4{0, 0, 0, 0};
        scale[u] = in ? s[at] : 0;
      }
#pragma unroll
      for (int u = 0; u < kInFlight; u++) {
        const int at = b + u * WARP < 2 * nb ? b + u * WARP : 0;
        const float part = dot_block(v[u], scale[u], staged, at < nb ? at : at - nb);
        gate += at < nb ? part : 0.0f;
        up += at < nb ? 0.0f : part;
      }
    }
    gate = warp_sum(gate) + from_bf16(bias[row]);
    up = warp_sum(up) + from_bf16(bias[row + 1]);
    if (lane == 0) h[static_cast<int64_t>(slot) * n + i] = clamped_swiglu(gate, up, limit);
  }
}

constexpr int kMostTop = 16;

// decode_down.
__device__ __forceinline__ void down_row(const Place& place, const int* rows, float* x,
                                         const int* experts, const float* weights, const float* h,
                                         const uint8_t* blocks, const uint8_t* scales,
                                         const bf16* bias, int n, int k, int top) {
  DYNAMIC_SHARED(float4, staged);
  SHARED(int, expert, kMostTop);
  SHARED(float, weight, kMostTop);
  const int row = place.y;
  if (row >= *rows) return;  // the whole block
  const int64_t slot = static_cast<int64_t>(row) * top;
  for (int j = 0; j < top; j++)
    stage(place.thread, staged + j * (k / 4), h + (slot + j) * k, nullptr, 0, k, kMxStage, nullptr);
  if (place.thread < top) {
    expert[place.thread] = experts[slot + place.thread];
    weight[place.thread] = weights[slot + place.thread];
  }
  __syncthreads();
  const int lane = place.thread % WARP, warp = place.thread / WARP, nb = k / kBlock;
  for (int i = place.x * kDecodeWarps + warp; i < n; i += place.nx * kDecodeWarps) {
    float sum = 0;
    for (int b = lane; b < top * nb; b += kInFlight * WARP) {
      uint4 v[kInFlight];
      unsigned scale[kInFlight];
#pragma unroll
      for (int u = 0; u < kInFlight; u++) {
        const int at = b + u * WARP;
        const bool in = at < top * nb;
        const int j = in ? at / nb : 0;
        const int64_t block =
            (static_cast<int64_t>(expert[j]) * n + i) * nb + (in ? at - j * nb : 0);
        v[u] = in ? stream16(blocks + block * (kBlock / 2)) : uint4{0, 0, 0, 0};
        scale[u] = in ? scales[block] : 0;
      }
#pragma unroll
      for (int u = 0; u < kInFlight; u++) {
        const int at = b + u * WARP < top * nb ? b + u * WARP : 0, j = at / nb;
        sum = fmaf(weight[j], dot_block(v[u], scale[u], staged + j * (k / 4), at - j * nb), sum);
      }
    }
    sum = warp_sum(sum);
    if (lane != 0) continue;
    for (int j = 0; j < top; j++)
      sum = fmaf(weight[j], from_bf16(bias[static_cast<int64_t>(expert[j]) * n + i]), sum);
    x[static_cast<int64_t>(row) * n + i] += sum;
  }
}

// Asks for the rows that each warp reads first; all parameters are those of the phase.
__device__ __forceinline__ void route_ahead(const Place& place, const int* rows, int*, float*,
                                            float*, float*, int*, const float*, const bf16*,
                                            const bf16* w, const bf16*, int k, int count, int,
                                            float) {
  const int lane = place.thread % WARP, e = place.x * kDecodeWarps + place.thread / WARP;
  if (place.y >= *rows || e >= count) return;
  prefetch(w + static_cast<int64_t>(e) * k, int64_t{2} * k, lane);
}

// The experts have been chosen two phases before.
__device__ __forceinline__ void down_ahead(const Place& place, const int* rows, float*,
                                           const int* experts, const float*, const float*,
                                           const uint8_t* blocks, const uint8_t* scales,
                                           const bf16*, int n, int k, int top) {
  const int lane = place.thread % WARP, i = place.x * kDecodeWarps + place.thread / WARP;
  if (place.y >= *rows || i >= n) return;
  const int nb = k / kBlock;
  for (int j = 0; j < top; j++) {
    const int64_t expert = experts[static_cast<int64_t>(place.y) * top + j];
    const int64_t block = (expert * n + i) * nb;
    prefetch(blocks + block * (kBlock / 2), nb * (kBlock / 2), lane);
    prefetch(scales + block, nb, lane);
  }
}

#endif  // OSSRUN_GPU_DECODE_EXPERTS_H_
