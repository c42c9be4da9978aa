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

// EVEN: tiles of an expert have about as many places each, a multiple of eight.
template <bool EVEN = false>
__device__ __forceinline__ TokenTile tile_at(const int* groups, int tile, int most) {
  int group = 0;
  for (int start = 0; group < groups[0]; group++) {
    const int end = groups[2 + 2 * group], tiles = (end - start + most - 1) / most;
    if (tile < tiles) {
      const int each = EVEN ? ((end - start + tiles - 1) / tiles + 7) / 8 * 8 : most;
      const int begin = start + tile * each, next = begin + each;
      return {group, groups[1 + 2 * group], begin, EVEN && next < end ? next : end};
    }
    tile -= tiles;
    start = end;
  }
  return {group, 0, 0, 0};
}

// The result of one column, v with its bias, or, if GATED, of a gate's and an up's: their SwiGLU,
// as exactly as float32 has it unless it is ROUNDED afterwards.
template <bool GATED, bool ROUNDED = false>
__device__ __forceinline__ float expert_result(const float* v, const bf16* bias, float limit) {
  const float first = v[0] + from_bf16(bias[0]);
  if (!GATED) return first;
  const float up = v[GATED] + from_bf16(bias[GATED]);
  return ROUNDED ? quick_swiglu(first, up, limit) : clamped_swiglu(first, up, limit);
}

// How rows lie that are rounded to bf16 for MXFP4's products: a piece of eight elements is words of
// 0 and 4, 1 and 5, 2 and 6, 3 and 7, as codes are unpacked. Pieces are in order, in one term or,
// a row behind the other, in two; or in shares.
constexpr int kOneTerm = 1, kTwoTerms = 2, kInShares = 3;

// Where word i of a piece lies in a row in shares: of 128 elements, four pieces are the share of
// each of the four lanes that have a row of the unit's first operand, and each product of 16 takes
// two words of each lane. Of a last 64, a share is two pieces.
__device__ __forceinline__ int share_word(int piece, int i, int wide) {
  const int own = piece / 16 * 128 + 128 > wide ? 2 : 4;
  return piece / (4 * own) * (16 * own) + piece % own * 16 + i * 4 + piece % (4 * own) / own;
}

// How many elements such a row has; in shares the last ones are zero.
__device__ __forceinline__ int rounded_width(int k, int form) {
  return form == kInShares ? (k + 63) / 64 * 64 : k;
}

// Leaves a piece's elements, u and v, of a row of k.
__device__ __forceinline__ void leave_rounded(bf16* rows, int64_t row, int piece, int k, int form,
                                              float4 u, float4 v) {
  const int wide = rounded_width(k, form), terms = form == kTwoTerms ? 2 : 1;
  unsigned* words = reinterpret_cast<unsigned*>(rows) + row * terms * (wide / 2);
  float low[4] = {u.x, u.y, u.z, u.w}, high[4] = {v.x, v.y, v.z, v.w};
  for (int t = 0; t < terms; t++, words += wide / 2)
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const unsigned two = to_bf16x2(low[i], high[i]);
      words[form == kInShares ? share_word(piece, i, wide) : piece * 4 + i] = two;
      low[i] -= low_bf16(two);
      high[i] -= high_bf16(two);
    }
}

#endif  // OSSRUN_GPU_EXPERT_H_
