// The tokens of experts in tiles: which expert and which of its tokens a tile has, and how their
// activations are staged.
#ifndef OSSRUN_GPU_TOKENS_H_
#define OSSRUN_GPU_TOKENS_H_

#include "stream.h"

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

// Stages `live` rows of x, row order[i] / top the i-th, of k rounded elements in TERMS terms: of
// each term a column, `tokens` apart, with zeros from k on. Warps without a row take part of
// another's.
template <int TERMS, int WARPS>
__device__ __forceinline__ void stage_tokens(uint4* staged, const bf16* x, const int* order,
                                             int live, int tokens, int top, int k, int pieces,
                                             int lane, int warp) {
  constexpr int kAtOnce = 4;
  const int rows = live * TERMS, pitch = pieces + kPitchMore;
  int shift = 0;
  while (shift < 3 && 1 << shift < rows && WARPS % (2 << shift) == 0) shift++;
  const int apart = (WARPS >> shift) * WARP;  // of the parts of a row
  for (int i = warp & ((1 << shift) - 1); i < rows; i += 1 << shift) {
    const int token = i / TERMS, term = i % TERMS;
    const uint4* const from = reinterpret_cast<const uint4*>(x) +
                              static_cast<int64_t>(order[token] / top * TERMS + term) * (k / 8);
    uint4* const to = staged + (term * tokens + token) * pitch;
    for (int base = (warp >> shift) * WARP + lane; base < pieces; base += kAtOnce * apart) {
      uint4 v[kAtOnce];
#pragma unroll
      for (int u = 0; u < kAtOnce; u++)
        v[u] = base + u * apart < k / 8 ? from[base + u * apart] : uint4{0, 0, 0, 0};
#pragma unroll
      for (int u = 0; u < kAtOnce; u++)
        if (base + u * apart < pieces) to[stream_at(base + u * apart)] = v[u];
    }
  }
}

#endif  // OSSRUN_GPU_TOKENS_H_
