// The paged KV cache as a kernel sees it, and the step's block tables.
//
//   page = [layers of a kind][kv heads]{ K [kPageTokens][dim], V [kPageTokens][dim] }
//
// `cache` below is the pool advanced to the layer: cache + layer * kv_heads * 2 * kPageTokens *
// dim. With 8 bits the full layers' elements are e4m3 and the window layers' bf16, whichever the
// kernel's T is; page_elements counts in T. The row's table begins at tables + table_at[row]; its
// entry i is the page of positions [i * kPageTokens, (i + 1) * kPageTokens).
#ifndef OSSRUN_GPU_CACHE_H_
#define OSSRUN_GPU_CACHE_H_

#include "number.h"

constexpr int kPageTokens = 32;
// The shape that the decode and prefill kernels of attention are made for.
constexpr int kGroup = 8;  // most query heads of a KV head
constexpr int kDim = 64;   // head dim

// Words of the cache that this block reads once: past the first cache. Unlike weights they may have
// been written by the launch that reads them. `wanted` is a predicate: a branch would have ptxas
// move the loads that follow, and wait for them.
template <int N>
__device__ __forceinline__ void ask_words(const void* p, unsigned (&w)[N], bool wanted = true) {
#if defined(GPU_NVIDIA)
  static_assert(N == 1 || N == 2 || N % 4 == 0);
  if constexpr (N == 1)
    asm volatile("ld.global.L1::no_allocate.u32 %0, [%1];" : "=r"(w[0]) : "l"(p) : "memory");
  else if constexpr (N == 2)
    asm volatile("ld.global.L1::no_allocate.v2.u32 {%0, %1}, [%2];"
                 : "=r"(w[0]), "=r"(w[1])
                 : "l"(p)
                 : "memory");
  else
#pragma unroll
    for (int i = 0; i < N; i += 4)
      asm volatile(
          "{ .reg .pred q; setp.ne.u32 q, %5, 0;\n\t"
          "@q ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4]; }"
          : "+r"(w[i]), "+r"(w[i + 1]), "+r"(w[i + 2]), "+r"(w[i + 3])
          : "l"(static_cast<const char*>(p) + 4 * i), "r"(static_cast<unsigned>(wanted))
          : "memory");
#elif defined(GPU_AMD)
  typedef unsigned Words __attribute__((ext_vector_type(N)));
  const Words v = __builtin_nontemporal_load(static_cast<const Words*>(p));
#pragma unroll
  for (int i = 0; i < N; i++) w[i] = v[i];
#else
  if (wanted) memcpy(w, p, sizeof w);
#endif
}

// The numbers in a word of the cache; the last argument says which type it has.
__device__ __forceinline__ void numbers_of(float* to, unsigned w, const float*) {
  to[0] = __uint_as_float(w);
}
__device__ __forceinline__ void numbers_of(float* to, unsigned w, const bf16*) {
  to[0] = low_bf16(w);
  to[1] = high_bf16(w);
}
__device__ __forceinline__ void numbers_of(float* to, unsigned w, const e4m3*) {
#pragma unroll
  for (int i = 0; i < 4; i++) to[i] = from_e4m3(w >> 8 * i);
}

__device__ __forceinline__ float load(const float* p) { return *p; }
__device__ __forceinline__ float load(const bf16* p) { return from_bf16(*p); }
__device__ __forceinline__ float load(const e4m3* p) { return from_e4m3(*p); }
__device__ __forceinline__ void store(float* p, float v) { *p = v; }
__device__ __forceinline__ void store(bf16* p, float v) { *p = to_bf16(v); }
__device__ __forceinline__ void store(e4m3* p, float v) { *p = to_e4m3(v); }

// N values of one position as they lie in the cache: asked for first, made numbers when they are
// needed. What a type of the cache needs for it: numbers_of.
template <class T, int N>
struct Values {
  static constexpr int kWords = N * static_cast<int>(sizeof(T)) / 4, kPerWord = N / kWords;
  unsigned w[kWords];

  // p lies at a multiple of what is read, 16 bytes at the most.
  __device__ __forceinline__ void ask(const T* p) { ask_words(p, w); }
  __device__ __forceinline__ void get(float (&to)[N]) const {
#pragma unroll
    for (int i = 0; i < kWords; i++)
      numbers_of(to + i * kPerWord, w[i], static_cast<const T*>(nullptr));
  }
};

// Where K of a position of one KV head begins; V is kPageTokens * dim further.
template <class T>
__device__ __forceinline__ T* key_at(T* cache, int64_t page_elements, int page, int kv_head,
                                     int position, int dim) {
  return cache + page * page_elements + static_cast<int64_t>(kv_head) * 2 * kPageTokens * dim +
         position % kPageTokens * dim;
}

// q, k and v of a step's rows behind their products: RoPE turns q and k by angles f32 [rows, dim],
// all go to qkv f32 [rows, (heads + 2 kv_heads) * dim], and k and v into their pages. With angles
// or cache null that step is left out.
template <class T>
struct HeadRows {
  float* qkv;
  T* cache;
  const float* angles;
  const int* positions;
  const int* tables;
  const int* table_at;
  int64_t page_elements;
  int heads, kv_heads, dim;

  // Where the pair (i, i + dim / 2) of a head goes, and its angle.
  struct Pair {
    float c, s;
    float* to;
    T* at;
  };
  __device__ __forceinline__ bool turns(int head) const {
    return angles && head < heads + kv_heads;
  }
  __device__ __forceinline__ Pair ask(int64_t row, int head, int i) const {
    Pair p = {1, 0, qkv + (row * (heads + 2 * kv_heads) + head) * dim + i, nullptr};
    if (turns(head)) {
      p.c = angles[row * dim + i];
      p.s = angles[row * dim + dim / 2 + i];
    }
    if (head < heads || !cache) return p;
    const int position = positions[row], page = tables[table_at[row] + position / kPageTokens];
    p.at = key_at(cache, page_elements, page, (head - heads) % kv_heads, position, dim) + i;
    if (head >= heads + kv_heads) p.at += kPageTokens * dim;
    return p;
  }
  __device__ __forceinline__ void leave(const Pair& p, int head, float u, float v) const {
    if (turns(head)) {
      const float turned = u * p.c - v * p.s;
      v = v * p.c + u * p.s;
      u = turned;
    }
    p.to[0] = u;
    p.to[dim / 2] = v;
    if (!p.at) return;
    store(p.at, u);
    store(p.at + dim / 2, v);
  }
};

#endif  // OSSRUN_GPU_CACHE_H_
