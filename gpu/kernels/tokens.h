// The tokens of experts in tiles: which expert and which of its tokens a tile has, and how their
// activations are staged, in the order of unpacked weights.
#ifndef OSSRUN_GPU_TOKENS_H_
#define OSSRUN_GPU_TOKENS_H_

#include "stream.h"

// take_term in the order of unpacked weights.
__device__ __forceinline__ uint4 take_paired(float4& a, float4& b) {
  float4 u = {a.x, b.x, a.y, b.y}, v = {a.z, b.z, a.w, b.w};
  const uint4 t = take_term(u, v);
  a = {u.x, u.z, v.x, v.z};
  b = {u.y, u.w, v.y, v.w};
  return t;
}

__device__ __forceinline__ void next_tile(const int* groups, TokenTile& t, int most) {
  t.begin += most;
  if (t.begin < t.end) return;
  t.group++;
  t.begin = t.end;
  t.expert = groups[1 + 2 * t.group];
  t.end = groups[2 + 2 * t.group];
}

// How many tiles there are. All lanes of a warp.
__device__ __forceinline__ int count_tiles(const int* groups, int most, int lane) {
  float tiles = 0;  // exact: there are fewer than 2^24
  for (int g = lane; g < groups[0]; g += WARP) {
    const int start = g == 0 ? 0 : groups[2 * g];
    tiles += static_cast<float>((groups[2 + 2 * g] - start + most - 1) / most);
  }
  return static_cast<int>(warp_sum(tiles));
}

// Stages `live` rows of x, row order[i] / top the i-th: of each TERMS columns of bf16, `tokens`
// apart, with zeros from k on. Warps without a row of their own take part of another's.
template <int TERMS, int WARPS>
__device__ __forceinline__ void stage_tokens(uint4* staged, const float* x, const int* order,
                                             int live, int tokens, int top, int k, int pieces,
                                             int lane, int warp) {
  constexpr int kAtOnce = 2;
  const int pitch = pieces + kPitchMore;
  int shift = 0;
  while (shift < 3 && 1 << shift < live && WARPS % (2 << shift) == 0) shift++;
  const int parts = WARPS >> shift;  // of a row
  for (int i = warp & ((1 << shift) - 1); i < live; i += 1 << shift) {
    const float4* from =
        reinterpret_cast<const float4*>(x + static_cast<int64_t>(order[i] / top) * k);
    for (int base = (warp >> shift) * WARP + lane; base < pieces; base += kAtOnce * parts * WARP) {
      float4 v[kAtOnce][2];
#pragma unroll
      for (int u = 0; u < kAtOnce; u++) {
        const int p = base + u * parts * WARP;
        v[u][0] = p < k / 8 ? from[2 * p] : float4{0, 0, 0, 0};
        v[u][1] = p < k / 8 ? from[2 * p + 1] : float4{0, 0, 0, 0};
      }
#pragma unroll
      for (int u = 0; u < kAtOnce; u++) {
        const int p = base + u * parts * WARP;
        if (p >= pieces) continue;
#pragma unroll
        for (int t = 0; t < TERMS; t++) {
          const int column = t * tokens + i;
          staged[column * pitch + stream_at(p)] = take_paired(v[u][0], v[u][1]);
        }
      }
    }
  }
}

#endif  // OSSRUN_GPU_TOKENS_H_
