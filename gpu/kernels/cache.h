// The paged KV cache as a kernel sees it, and the step's block tables.
//
//   page = [layers of a kind][kv heads]{ K [kPageTokens][dim], V [kPageTokens][dim] }
//
// `cache` below is the pool advanced to the layer: cache + layer * kv_heads * 2 * kPageTokens *
// dim. The row's table begins at tables + table_at[row]; its entry i is the page of positions [i *
// kPageTokens, (i + 1) * kPageTokens).
#ifndef OSSRUN_GPU_CACHE_H_
#define OSSRUN_GPU_CACHE_H_

#include "number.h"

constexpr int kPageTokens = 32;
// The shape that the decode and prefill kernels of attention are made for.
constexpr int kGroup = 8;  // most query heads of a KV head
constexpr int kDim = 64;   // head dim

__device__ __forceinline__ float load(const float* p) { return *p; }
__device__ __forceinline__ float load(const bf16* p) { return from_bf16(*p); }
__device__ __forceinline__ void store(float* p, float v) { *p = v; }
__device__ __forceinline__ void store(bf16* p, float v) { *p = to_bf16(v); }

// Where K of a position of one KV head begins; V is kPageTokens * dim further.
template <class T>
__device__ __forceinline__ T* key_at(T* cache, int64_t page_elements, int page, int kv_head,
                                     int position, int dim) {
  return cache + page * page_elements + static_cast<int64_t>(kv_head) * 2 * kPageTokens * dim +
         position % kPageTokens * dim;
}

#endif  // OSSRUN_GPU_CACHE_H_
