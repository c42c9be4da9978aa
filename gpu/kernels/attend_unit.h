// Decode's attention over 16 or 8 bits on NVIDIA's matrix unit: a warp has a KV head's query heads
// as eight rows of the unit's first operand, and the other eight rows are what rounding left of the
// same numbers. Keys and values go from memory into the second operand through registers; results
// stay with the lanes that need them next. A cache of bf16 is multiplied as it is, and queries and
// weights keep 16 bits; e4m3 becomes f16, which holds all of it, and they keep 22.
//
// Lane 4g + i has query head g. Of positions it sums the logits of 2i and 2i + 1 in every eight,
// and reads those values at dimensions 8g to 8g + 7; in the end it has dimensions 16i to 16i + 15.
//
// What must stay true: a page has at least one position that the row sees; what lies at others may
// be NaN. With 8 bits a query times its scale is below 65,536, f16's largest.
#ifndef OSSRUN_GPU_ATTEND_UNIT_H_
#define OSSRUN_GPU_ATTEND_UNIT_H_

#include "cache.h"
#include "decode.h"
#include "matrix.h"

#if defined(MATRIX_NV)

// Keys and values of type T are divided by this in the unit's operand.
template <class T>
constexpr float kUnscale = 1;

// Four e4m3 as two words of f16, divided by kUnscale.
#if defined(GPU_NVIDIA) && __CUDA_ARCH__ >= 890
__device__ __forceinline__ uint2 e4m3x4_to_f16x4(unsigned v) {
  uint2 r;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(r.x) : "h"(static_cast<uint16_t>(v)));
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(r.y) : "h"(static_cast<uint16_t>(v >> 16)));
  return r;
}
#else
template <>
constexpr float kUnscale<e4m3> = 256;  // f16's bias is 15, e4m3's is 7
__device__ __forceinline__ uint2 e4m3x4_to_f16x4(unsigned v) {
  return uint2{permute_bytes(v, 0, 0x9180) << 7 & 0xbf80bf80u,
               permute_bytes(v, 0, 0xb3a2) << 7 & 0xbf80bf80u};
}
#endif

// The softmax of a warp's pages: of the lane's head the largest logit, and the lane's shares.
template <class T>
struct UnitState {
  float largest, sum;
  Sums value[4];  // number p: dimensions 2p and 2p + 1 of eight

  // The lane's value of dimension 16 * (lane % 4) + i of its head, not yet divided by the sum.
  __device__ __forceinline__ float value_of(int i) const {
    const float* const v = value[i % 8 / 2].v + i % 2 * 4 + i / 8;
    return (v[0] + v[2]) * kUnscale<T>;
  }
};

// Rounds a and b to a word of T's operand type, bf16 or f16; the second word is what rounding left.
template <class T>
__device__ __forceinline__ uint2 two_terms(float a, float b) {
  if (sizeof(T) == sizeof(bf16)) {
    const unsigned first = to_bf16x2(a, b);
    return uint2{first, to_bf16x2(a - low_bf16(first), b - high_bf16(first))};
  }
  const auto kept = [](float f) { return __uint_as_float(__float_as_uint(f) & 0xffffe000u); };
  return uint2{to_f16x2(kept(a), kept(b)), to_f16x2(a - kept(a), b - kept(b))};
}

// Four of a lane's dimensions of a key, as two words of the second operand.
template <class T>
__device__ __forceinline__ uint2 key_words(const unsigned* key, int i) {
  return sizeof(T) == 1 ? e4m3x4_to_f16x4(key[i]) : uint2{key[2 * i], key[2 * i + 1]};
}
// Dimensions 2i and 2i + 1 of two positions' values, each as a word of both positions.
template <class T>
__device__ __forceinline__ uint2 value_words(const unsigned* a, const unsigned* b, int i) {
  if (sizeof(T) == 1)
    return e4m3x4_to_f16x4(permute_bytes(a[i / 2], b[i / 2], i % 2 ? 0x7362 : 0x5140));
  return uint2{permute_bytes(a[i], b[i], 0x5410), permute_bytes(a[i], b[i], 0x7632)};
}

// A row's queries of `group` heads, times `scale`, into the lane's own place of shared memory:
// words for each of four products, WARP apart. A lane has them where it has keys of a T.
template <class T>
__device__ __forceinline__ void load_queries(uint4* q, const float* from, int group, float scale,
                                             int lane) {
  constexpr int kOfLoad = 16 / sizeof(T);
  scale *= kLog2E;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    float4 v = {0, 0, 0, 0};
    if (lane / 4 < group)
      v = *reinterpret_cast<const float4*>(from + lane / 4 * kDim + i * 4 / kOfLoad * 4 * kOfLoad +
                                           lane % 4 * kOfLoad + i * 4 % kOfLoad);
    const uint2 a = two_terms<T>(v.x * scale, v.y * scale);
    const uint2 b = two_terms<T>(v.z * scale, v.w * scale);
    q[i * WARP] = uint4{a.x, a.y, b.x, b.y};
  }
}

// Attends to `pages` pages, every `step`-th of table; begin and end, of what the row sees, are
// counted from the first of them. All lanes.
template <class T>
__device__ __forceinline__ UnitState<T> attend_unit(const uint4* q, const int* table, int pages,
                                                    int step, int begin, int end, const T* cache,
                                                    int64_t page_elements, int kv_head, int lane) {
  const int head = lane / 4, share = lane % 4;
  UnitState<T> own = {-3.0e38f, 0, {}};
  begin -= share * 2;
  end -= share * 2;
  // Of four keys, eight positions apart, a lane has a quarter each, and an eighth of eight values.
  constexpr int kLoads = sizeof(T), kOfLoad = 16 / kLoads;
  unsigned keys[4 * kLoads][4] = {}, values[8][2 * kLoads];
  const T* from = cache;
  const auto ask_keys = [&](bool wanted) {
#pragma unroll
    for (int i = 0; i < 4 * kLoads; i++)
      ask_words(from + (head + i / kLoads * 8) * kDim + (i % kLoads * 4 + share) * kOfLoad, keys[i],
                wanted);
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
        const uint2 a = key_words<T>(keys[t * 2 * kLoads], i);
        const uint2 b = key_words<T>(keys[(t * 2 + 1) * kLoads], i);
        const uint4 w = q[i * WARP];
        multiply<16, T>(logits[t], Fragment{{w.x, w.y, w.z, w.w}}, Fragment{{a.x, a.y, b.x, b.y}});
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
    const float keep = fast_exp2((own.largest - largest) * kUnscale<T>);
    own.largest = largest;
    own.sum *= keep;
#pragma unroll
    for (int i = 0; i < 8; i++) {
      v[i] = fast_exp2((v[i] - largest) * kUnscale<T>);
      own.sum += v[i];
    }
#pragma unroll
    for (int p = 0; p < 4; p++)
#pragma unroll
      for (int i = 0; i < 8; i++) own.value[p].v[i] *= keep;
#pragma unroll
    for (int t = 0; t < 2; t++) {
      unsigned(*const x)[2 * kLoads] = values + t * 4;
#pragma unroll
      for (int i = 0; i < 4; i++)
        if (begin > position(t * 4 + i) || end <= position(t * 4 + i))
#pragma unroll
          for (int w = 0; w < 2 * kLoads; w++) x[i][w] = 0;
      const uint2 low = two_terms<T>(v[t * 4], v[t * 4 + 1]);
      const uint2 high = two_terms<T>(v[t * 4 + 2], v[t * 4 + 3]);
#pragma unroll
      for (int p = 0; p < 4; p++) {
        const uint2 a = value_words<T>(x[0], x[1], p), b = value_words<T>(x[2], x[3], p);
        multiply<16, T>(own.value[p], Fragment{{low.x, low.y, high.x, high.y}},
                        Fragment{{a.x, b.x, a.y, b.y}});
      }
      if (t == 0) {
        from = key_at(cache, page_elements, next, kv_head, 0, kDim);
        ask_keys(pages > 1);
      }
    }
    begin -= step * kPageTokens;
    end -= step * kPageTokens;
  }
  own.largest *= kUnscale<T> / kLog2E;
  own.sum += __shfl_xor_sync(FULL, own.sum, 1);
  own.sum += __shfl_xor_sync(FULL, own.sum, 2);
  return own;
}

#endif

#endif  // OSSRUN_GPU_ATTEND_UNIT_H_
