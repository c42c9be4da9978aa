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

// How many slots the step has.
__device__ __forceinline__ int slots_of(const int* groups) {
  return groups[0] == 0 ? 0 : groups[2 * groups[0]];
}

// The expert of the slot order[at].
__device__ __forceinline__ int expert_of(const int* groups, int at) {
  int a = 0;
  while (groups[2 + 2 * a] <= at) a++;
  return groups[1 + 2 * a];
}

// The expert and the places in order of tile number `tile`, of at most `most` places; false past
// the last one.
__device__ __forceinline__ bool find_tile(const int* groups, int tile, int most, int* expert,
                                          int* begin, int* end) {
  int start = 0;
  for (int a = 0; a < groups[0]; a++) {
    const int stop = groups[2 + 2 * a], tiles = (stop - start + most - 1) / most;
    if (tile < tiles) {
      *expert = groups[1 + 2 * a];
      *begin = start + tile * most;
      *end = stop;
      return true;
    }
    tile -= tiles;
    start = stop;
  }
  return false;
}

// The same where the tiles of an expert have about as many places each, a multiple of eight.
__device__ __forceinline__ bool find_even_tile(const int* groups, int tile, int most, int* expert,
                                               int* begin, int* end) {
  if (!find_tile(groups, tile, most, expert, begin, end)) return false;
  int start = 0;
  for (int a = 0; groups[1 + 2 * a] != *expert; a++) start = groups[2 + 2 * a];
  const int tiles = (*end - start + most - 1) / most;
  const int each = ((*end - start + tiles - 1) / tiles + 7) / 8 * 8;
  *begin = start + (*begin - start) / most * each;
  *end = *begin + each < *end ? *begin + each : *end;
  return true;
}

// Where word i of a piece lies in a row in shares: of 128 elements, four pieces are the share of
// each of the four lanes that have a row of the unit's first operand, and each product of 16 takes
// two words of each lane. Of a last 64, a share is two pieces.
__device__ __forceinline__ int share_word(int piece, int i, int wide) {
  const int own = piece / 16 * 128 + 128 > wide ? 2 : 4;
  return piece / (4 * own) * (16 * own) + piece % own * 16 + i * 4 + piece % (4 * own) / own;
}

#endif  // OSSRUN_GPU_EXPERT_H_
