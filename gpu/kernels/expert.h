// Finding one's way among the experts: the walk over groups, and a row of an MXFP4 matrix.
//
// A matrix of every expert is blocks [experts, n, k/32] of 16 bytes, scales [experts, n, k/32] of
// one and bias bf16 [experts, n]. Byte b of a block holds element 2b in its low half and 2b + 1 in
// its high one; an element is E2M1 times 2^(scale - 127). The address of blocks is a multiple
// of 16.
#ifndef OSSRUN_GPU_EXPERT_H_
#define OSSRUN_GPU_EXPERT_H_

#include "number.h"

constexpr int kBlock = 32;  // elements that share a scale

// A tile of an expert's tokens: places begin to end of order, of which it takes the first `most`.
// Past the last tile there is none.
struct TokenTile {
  int group, expert, begin, end;
  __device__ __forceinline__ int live(int most) const {
    return end - begin < most ? end - begin : most;
  }
};

__device__ __forceinline__ TokenTile tile_at(const int* groups, int tile, int most) {
  TokenTile t = {0, 0, 0, 0};
  for (int start = 0; t.group < groups[0]; t.group++) {
    const int end = groups[2 + 2 * t.group], tiles = (end - start + most - 1) / most;
    if (tile < tiles) return {t.group, groups[1 + 2 * t.group], start + tile * most, end};
    tile -= tiles;
    start = end;
  }
  return t;
}

// The same where the tiles of an expert have about as many places each, a multiple of eight.
__device__ __forceinline__ TokenTile even_tile_at(const int* groups, int tile, int most) {
  TokenTile t = tile_at(groups, tile, most);
  const int start = t.group == 0 ? 0 : groups[2 * t.group];
  if (t.end == 0) return t;
  const int tiles = (t.end - start + most - 1) / most;
  const int each = ((t.end - start + tiles - 1) / tiles + 7) / 8 * 8;
  t.begin = start + (t.begin - start) / most * each;
  t.end = t.begin + t.live(each);
  return t;
}

// What one slot's columns c and, GATED, c + 1 of an expert's n come to: v with bias, bf16 [n] from
// c on, or the SwiGLU of a gate and an up.
template <bool GATED>
__device__ __forceinline__ void leave_expert(float* y, int64_t slot, int c, int n, const float* v,
                                             const bf16* bias, float limit) {
  const float first = v[0] + from_bf16(bias[0]);
  if constexpr (GATED)
    y[slot * (n / 2) + c / 2] = clamped_swiglu(first, v[1] + from_bf16(bias[1]), limit);
  else
    y[slot * n + c] = first;
}

// Where word i of a piece lies in a row in shares: of 128 elements, four pieces are the share of
// each of the four lanes that have a row of the unit's first operand, and each product of 16 takes
// two words of each lane. Of a last 64, a share is two pieces.
__device__ __forceinline__ int share_word(int piece, int i, int wide) {
  const int own = piece / 16 * 128 + 128 > wide ? 2 : 4;
  return piece / (4 * own) * (16 * own) + piece % own * 16 + i * 4 + piece % (4 * own) / own;
}

// How many elements a row in shares has, the last ones zero.
__device__ __forceinline__ int share_width(int k) { return (k + 63) / 64 * 64; }

// A piece's elements, u and v, into its words of a row in shares: 0 and 4, 1 and 5, 2 and 6, 3 and
// 7, as codes of MXFP4 are unpacked.
__device__ __forceinline__ void leave_shares(bf16* row, int piece, int wide, float4 u, float4 v) {
  unsigned* const words = reinterpret_cast<unsigned*>(row);
  words[share_word(piece, 0, wide)] = to_bf16x2(u.x, v.x);
  words[share_word(piece, 1, wide)] = to_bf16x2(u.y, v.y);
  words[share_word(piece, 2, wide)] = to_bf16x2(u.z, v.z);
  words[share_word(piece, 3, wide)] = to_bf16x2(u.w, v.w);
}

#endif  // OSSRUN_GPU_EXPERT_H_
