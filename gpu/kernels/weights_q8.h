// Dense weights in 8 bits as package models/q8 lays them out.
//
// Rows go in groups of eight; a group is, for each block of 32 columns, the eight rows' scales
// (bf16) and then eight times four bytes of every row. Rows beyond the last are zero. Every eight
// columns stand in the order 0 2 4 6 1 3 5 7.
#ifndef OSSRUN_GPU_WEIGHTS_Q8_H_
#define OSSRUN_GPU_WEIGHTS_Q8_H_

#include "expert.h"

constexpr int kGroupRows = 8;                                      // rows of weights in a group
constexpr int kGroupBlock = kGroupRows * 2 + kGroupRows * kBlock;  // bytes of a group's block

// Where column i of eight stands.
__device__ __forceinline__ int q8_place(int i) { return i / 2 + i % 2 * 4; }

// Even bytes of two words, then odd ones: eight activations in the order of the weights.
__device__ __forceinline__ uint2 deal(uint2 v) {
  const unsigned even =
      (v.x & 0xff) | (v.x >> 8 & 0xff00) | (v.y & 0xff) << 16 | (v.y & 0x00ff0000) << 8;
  const unsigned odd =
      (v.x >> 8 & 0xff) | (v.x >> 16 & 0xff00) | (v.y & 0xff00) << 8 | (v.y & 0xff000000);
  return uint2{even, odd};
}

#endif  // OSSRUN_GPU_WEIGHTS_Q8_H_
