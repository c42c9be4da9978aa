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

// One lane's share of a row's product with x: every WARP-th block of 32.
__device__ __forceinline__ float mxfp4_part(const uint8_t* blocks, const uint8_t* scales,
                                            const float* x, int k, int lane) {
  float sum = 0;
  for (int b = lane; b < k / kBlock; b += WARP) {
    const uint8_t* block = blocks + static_cast<int64_t>(b) * (kBlock / 2);
    const float scale = from_e8m0(scales[b]);
    for (int i = 0; i < kBlock / 2; i++) {
      sum = fmaf(from_e2m1(block[i]) * scale, x[b * kBlock + 2 * i], sum);
      sum = fmaf(from_e2m1(block[i] >> 4) * scale, x[b * kBlock + 2 * i + 1], sum);
    }
  }
  return sum;
}

// The same with 8-bit activations, integer within a block; d holds a scale for each block at 2b.
__device__ __forceinline__ float mxfp4_part_q8(const uint8_t* blocks, const uint8_t* scales,
                                               const int8_t* q, const float* d, int k, int lane) {
  float sum = 0;
  for (int b = lane; b < k / kBlock; b += WARP) {
    const uint8_t* block = blocks + static_cast<int64_t>(b) * (kBlock / 2);
    int twice = 0;  // of the sum: twice an E2M1 value is an integer
    for (int i = 0; i < kBlock / 2; i++) {
      twice += static_cast<int>(2 * from_e2m1(block[i])) * q[b * kBlock + 2 * i];
      twice += static_cast<int>(2 * from_e2m1(block[i] >> 4)) * q[b * kBlock + 2 * i + 1];
    }
    sum = fmaf(from_e8m0(scales[b]) * (0.5f * d[2 * b]), static_cast<float>(twice), sum);
  }
  return sum;
}

#endif  // OSSRUN_GPU_EXPERT_H_
