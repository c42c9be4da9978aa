// Attention of a row over its visible positions and the sink, one warp a query head.
//
// The sink is one more logit, without scale and without a value: the softmax begins with the sink
// as its largest logit and 1 as its sum. A window of w lets a row see itself and the w - 1
// positions before it.
#include "cache.h"
#include "warp.h"

constexpr int kMostHeadDim = 256;

template <class T>
__device__ __forceinline__ void attend_head(const int* rows, float* o, const float* qkv,
                                            const T* cache, const bf16* sinks, const int* positions,
                                            const int* tables, const int* table_at,
                                            int64_t page_elements, int heads, int kv_heads, int dim,
                                            int window, float scale) {
  await_grids();
  const int lane = threadIdx.x % WARP, row = blockIdx.y;
  const int head = blockIdx.x * (blockDim.x / WARP) + threadIdx.x / WARP;
  if (row >= *rows || head >= heads) return;  // whole warps
  const int kv_head = head / (heads / kv_heads), end = positions[row] + 1;
  const int begin = window > 0 && end > window ? end - window : 0;
  const int* table = tables + table_at[row];
  const float* q = qkv + (static_cast<int64_t>(row) * (heads + 2 * kv_heads) + head) * dim;
  float m = from_bf16(sinks[head]), l = 1.0f;
  float acc[kMostHeadDim / WARP];
#pragma unroll
  for (int j = 0; j < kMostHeadDim / WARP; j++) acc[j] = 0;
  for (int at = begin; at < end; at++) {
    const T* key = key_at(cache, page_elements, table[at / kPageTokens], kv_head, at, dim);
    float logit = 0;
    for (int i = lane; i < dim; i += WARP) logit = fmaf(q[i], load(key + i), logit);
    logit = warp_sum(logit) * scale;
    const float largest = fmaxf(m, logit);
    const float keep = exp_of(m - largest), weight = exp_of(logit - largest);
    m = largest;
    l = l * keep + weight;
    const T* value = key + kPageTokens * dim;
#pragma unroll
    for (int j = 0; j < kMostHeadDim / WARP; j++) {
      const int i = lane + j * WARP;
      if (i < dim) acc[j] = acc[j] * keep + weight * load(value + i);
    }
  }
  float* to = o + (static_cast<int64_t>(row) * heads + head) * dim;
#pragma unroll
  for (int j = 0; j < kMostHeadDim / WARP; j++)
    if (lane + j * WARP < dim) to[lane + j * WARP] = acc[j] / l;
}

// o f32 [rows, heads * dim], qkv f32 [rows, (heads + 2 kv_heads) * dim], sinks bf16 [heads]; cache
// as in cache.h, page_elements apart. dim <= 256. window 0: everything is visible.
// grid (ceil(heads / (256 / WARP)), bucket rows)
#define ATTEND(NAME, T)                                                                         \
  KERNEL(256)                                                                                   \
  attend_##NAME(const int* rows, float* o, const float* qkv, const T* cache, const bf16* sinks, \
                const int* positions, const int* tables, const int* table_at,                   \
                int64_t page_elements, int heads, int kv_heads, int dim, int window,            \
                float scale) {                                                                  \
    attend_head(rows, o, qkv, cache, sinks, positions, tables, table_at, page_elements, heads,  \
                kv_heads, dim, window, scale);                                                  \
  }                                                                                             \
  EMULATE(attend_##NAME, 256)
ATTEND(f32, float)
ATTEND(bf16, bf16)
ATTEND(f8, e4m3)
