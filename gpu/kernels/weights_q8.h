// Dense weights in 8 bits as package models/q8 lays them out.
//
// Rows go in groups of eight; a group is, for each block of 32 columns, the eight rows' scales
// (bf16) and then eight quads: four bytes of every row. Rows beyond the last are zero. Every eight
// columns stand in the order 0 2 4 6 1 3 5 7, so a quad has even or odd ones.
//
// The matrix unit gets a byte times its scale, rounded to bf16 once, as the released weights are.
#ifndef OSSRUN_GPU_WEIGHTS_Q8_H_
#define OSSRUN_GPU_WEIGHTS_Q8_H_

#include "cache.h"
#include "expert.h"

constexpr int kGroupRows = 8;                                      // rows of weights in a group
constexpr int kGroupBlock = kGroupRows * 2 + kGroupRows * kBlock;  // bytes of a group's block
constexpr int kQuad = kGroupRows * 4;                              // bytes of one

// Where column i of eight stands.
__device__ __forceinline__ int q8_place(int i) { return i / 2 + i % 2 * 4; }

// `blocks` blocks further; block `block` of 32 columns in the group of a row.
__device__ __forceinline__ const uint8_t* q8_step(const uint8_t* block, int blocks) {
  return block + static_cast<int64_t>(blocks) * kGroupBlock;
}
__device__ __forceinline__ const uint8_t* q8_block(const uint8_t* w, int row, int k, int block) {
  return q8_step(w, row / kGroupRows * (k / kBlock) + block);
}

// Activations are staged times 2^64, since weights are unpacked times 2^-64.
constexpr float kStageQ8 = 0x1p64f;

// Unpacks bytes that have one scale. On NVIDIA the bits of a byte plus 128 are a bf16, 2^-133 times
// that number; one fma with the scale makes the weight, rounded once. Scales are below 2^57.
struct UnpackerQ8 {
  unsigned factor, less;
  // Both halves of scale are one.
  __device__ __forceinline__ explicit UnpackerQ8(unsigned scale) {
#if defined(GPU_NVIDIA)
    factor = scale + (69u << 7) * 0x00010001u;
    less = fma_bf16x2(factor, 0x80808080u, 0x80008000u);  // -2^-126
#else
    factor = __float_as_uint(low_bf16(scale) * 0x1p-64f);
#endif
  }
  // Bytes I and J of v, with 128 more, as two bf16.
  template <int I, int J>
  __device__ __forceinline__ unsigned pair(unsigned v) const {
#if defined(GPU_NVIDIA)
    return fma_bf16x2(permute_bytes(v, 0, 0x4040 + I + J * 256), factor, less);
#else
    const float f = __uint_as_float(factor), low = static_cast<float>(v >> 8 * I & 0xff);
    return to_bf16x2(fmaf(low, f, -128 * f),
                     fmaf(static_cast<float>(v >> 8 * J & 0xff), f, -128 * f));
#endif
  }
  // The signed bytes of q, then of r: 0 and I, J and 3.
  template <int I = 2, int J = 1>
  __device__ __forceinline__ uint4 unpack(unsigned q, unsigned r) const {
    q ^= 0x80808080u;
    r ^= 0x80808080u;
    return {pair<0, I>(q), pair<J, 3>(q), pair<0, I>(r), pair<J, 3>(r)};
  }
};

// A lane's share of a block in ROWS neighbouring rows of a group, on its way: quads share and
// share + 4, eight weights of each row.
template <int ROWS>
struct ShareQ8 {
  unsigned q[2][ROWS], scales[ROWS / 2];

  // first: the first of the rows, of its group.
  __device__ __forceinline__ void ask(const uint8_t* block, int first, int share) {
    ask_words(block + first * 2, scales);
#pragma unroll
    for (int j = 0; j < 2; j++)
      ask_words(block + kGroupRows * 2 + (share + 4 * j) * kQuad + first * 4, q[j]);
  }
  // Row i's weights of either quad: bytes 0 and I, J and 3.
  template <int I = 2, int J = 1>
  __device__ __forceinline__ uint4 words(int i) const {
    const unsigned s = scales[i / 2];
    const UnpackerQ8 unpacker(i % 2 ? s >> 16 | (s & 0xffff0000u) : (s & 0xffffu) | s << 16);
    return unpacker.unpack<I, J>(q[0][i], q[1][i]);
  }
};

#endif  // OSSRUN_GPU_WEIGHTS_Q8_H_
