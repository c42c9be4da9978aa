// Decode's attention over a bf16 cache on NVIDIA's matrix unit: a warp has a KV head's query heads
// as eight rows of the unit's first operand, and the other eight rows are what rounding to bf16
// left of the same numbers, so queries and weights keep 16 bits. Keys and values go from memory
// into the second operand through registers; results stay with the lanes that need them next.
//
// Lane 4g + i has query head g. Of positions it sums the logits of 2i and 2i + 1 in every eight,
// and reads those values at dimensions 8g to 8g + 7; in the end it has dimensions 16i to 16i + 15.
//
// What must stay true: a page has at least one position that the row sees; what lies at others may
// be NaN.
#ifndef OSSRUN_GPU_ATTEND_UNIT_H_
#define OSSRUN_GPU_ATTEND_UNIT_H_

#include "cache.h"
#include "decode.h"
#include "matrix.h"

#if defined(MATRIX_NV)

// The softmax of a warp's pages: of the lane's head the largest logit, and the lane's shares.
struct UnitState {
  float largest, sum;
  Sums value[4];  // number p: dimensions 2p and 2p + 1 of eight
};

// Two bf16 of a and b, the lower or the upper ones.
__device__ __forceinline__ unsigned lower_of(unsigned a, unsigned b) {
  return (a & 0xffff) | b << 16;
}
__device__ __forceinline__ unsigned upper_of(unsigned a, unsigned b) {
  return a >> 16 | (b & 0xffff0000u);
}

// a and b as a word of bf16, and what that leaves of them as another.
__device__ __forceinline__ void two_terms(unsigned& first, unsigned& second, float a, float b) {
  first = to_bf16x2(a, b);
  second = to_bf16x2(a - low_bf16(first), b - high_bf16(first));
}

// 16 bytes of the cache if they are wanted. A branch would have the assembler move what came behind
// it, and so wait for it.
__device__ __forceinline__ void ask_if(bool wanted, const void* p, unsigned (&w)[4]) {
#if defined(GPU_NVIDIA)
  asm volatile(
      "{ .reg .pred q; setp.ne.u32 q, %5, 0;\n\t"
      "@q ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4]; }"
      : "+r"(w[0]), "+r"(w[1]), "+r"(w[2]), "+r"(w[3])
      : "l"(p), "r"(static_cast<unsigned>(wanted))
      : "memory");
#else
  if (wanted) ask_words(p, w);
#endif
}

// A row's queries of `group` heads, times `scale`, into the lane's own place of shared memory:
// words for each of four products, WARP apart.
__device__ __forceinline__ void load_queries(uint4* q, const float* from, int group, float scale,
                                             int lane) {
#pragma unroll
  for (int i = 0; i < 4; i++) {
    float4 v = {0, 0, 0, 0};
    if (lane / 4 < group)
      v = *reinterpret_cast<const float4*>(from + lane / 4 * kDim + i / 2 * 32 + lane % 4 * 8 +
                                           i % 2 * 4);
    unsigned w[4];
    two_terms(w[0], w[1], v.x * scale, v.y * scale);
    two_terms(w[2], w[3], v.z * scale, v.w * scale);
    q[i * WARP] = uint4{w[0], w[1], w[2], w[3]};
  }
}

// Attends to `pages` pages, every `step`-th of table; begin and end, of what the row sees, are
// counted from the first of them. All lanes.
template <class T>
__device__ __forceinline__ void attend_unit(UnitState& own, const uint4* q, const int* table,
                                            int pages, int step, int begin, int end, const T* cache,
                                            int64_t page_elements, int kv_head, int lane) {
  const int head = lane / 4, share = lane % 4;
  begin -= share * 2;
  end -= share * 2;
  own.largest = -3.0e38f;
  own.sum = 0;
#pragma unroll
  for (int p = 0; p < 4; p++) own.value[p] = Sums{};
  unsigned keys[8][4] = {}, values[8][4];
  const T* from = cache;
  const auto ask_keys = [&](bool wanted) {
#pragma unroll
    for (int i = 0; i < 8; i++)
      ask_if(wanted, from + head * kDim + share * 8 + i / 2 * 8 * kDim + i % 2 * 32, keys[i]);
  };
  if (pages > 0) from = key_at(cache, page_elements, *table, kv_head, 0, kDim);
  ask_keys(pages > 0);
  for (; pages > 0; pages--) {
    const T* const behind = from + kPageTokens * kDim + share * 2 * kDim + head * 8;
    // the lane's positions in a page, in order, less its first
    const auto position = [](int i) { return i / 4 * 16 + i % 4 / 2 * 8 + i % 2; };
    const auto ask_values = [&](int half) {
#pragma unroll
      for (int i = half * 4; i < half * 4 + 4; i++)
        ask_words(behind + position(i) * kDim, values[i]);
    };
    ask_values(0);
    table += step;
    const int next = pages > 1 ? *table : 0;
    Sums logits[2] = {};
#pragma unroll
    for (int t = 0; t < 2; t++)
#pragma unroll
      for (int i = 0; i < 4; i++) {
        const unsigned *const a = keys[t * 4 + i / 2] + i % 2 * 2, *const b = a + 2 * 4;
        const uint4 w = q[i * WARP];
        multiply(logits[t], Fragment{{w.x, w.y, w.z, w.w}}, Fragment{{a[0], a[1], b[0], b[1]}});
      }
    ask_values(1);
    float v[8], largest = own.largest;
#pragma unroll
    for (int i = 0; i < 8; i++) {
      const float* const s = logits[i / 4].v + i % 4 / 2 * 4 + i % 2;
      v[i] = begin <= position(i) && position(i) < end ? s[0] + s[2] : -3.0e38f;
      largest = fmaxf(largest, v[i]);
    }
    largest = fmaxf(largest, __shfl_xor_sync(FULL, largest, 1));
    largest = fmaxf(largest, __shfl_xor_sync(FULL, largest, 2));
    const float keep = fast_exp(own.largest - largest);
    own.largest = largest;
    own.sum *= keep;
#pragma unroll
    for (int i = 0; i < 8; i++) {
      v[i] = fast_exp(v[i] - largest);
      own.sum += v[i];
    }
#pragma unroll
    for (int p = 0; p < 4; p++)
#pragma unroll
      for (int i = 0; i < 8; i++) own.value[p].v[i] *= keep;
#pragma unroll
    for (int t = 0; t < 2; t++) {
      unsigned(*const x)[4] = values + t * 4;
#pragma unroll
      for (int i = 0; i < 4; i++)
        if (begin > position(t * 4 + i) || end <= position(t * 4 + i))
#pragma unroll
          for (int w = 0; w < 4; w++) x[i][w] = 0;
      Fragment weights;
      two_terms(weights.w[0], weights.w[1], v[t * 4], v[t * 4 + 1]);
      two_terms(weights.w[2], weights.w[3], v[t * 4 + 2], v[t * 4 + 3]);
#pragma unroll
      for (int p = 0; p < 4; p++)
        multiply(own.value[p], weights,
                 Fragment{{lower_of(x[0][p], x[1][p]), lower_of(x[2][p], x[3][p]),
                           upper_of(x[0][p], x[1][p]), upper_of(x[2][p], x[3][p])}});
      if (t == 0) {
        from = key_at(cache, page_elements, next, kv_head, 0, kDim);
        ask_keys(pages > 1);
      }
    }
    begin -= step * kPageTokens;
    end -= step * kPageTokens;
  }
  own.sum += __shfl_xor_sync(FULL, own.sum, 1);
  own.sum += __shfl_xor_sync(FULL, own.sum, 2);
}

// The lane's value of dimension 16 * (lane % 4) + i of its head, not yet divided by the sum.
__device__ __forceinline__ float value_of(const UnitState& own, int i) {
  const float* const v = own.value[i % 8 / 2].v + i % 2 * 4 + i / 8;
  return v[0] + v[2];
}

#endif

#endif  // OSSRUN_GPU_ATTEND_UNIT_H_
