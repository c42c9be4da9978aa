// Decode's attention: the query heads of a KV head together, long contexts split over blocks.
//
// A block has one row, one KV head and one run of pages; each of its warps takes a page at a time.
// For the logits a lane has a position, for the values it has dimensions; both halves read K and V
// once for all query heads of the group. What a run found (largest logit, sum, values) goes to
// `partial`; the last block of a row and KV head to arrive merges the runs, begins with the sink
// and writes the result. Runs are cut by the length alone, so the same row gives the same bits in
// any batch.
#ifndef OSSRUN_GPU_DECODE_ATTEND_H_
#define OSSRUN_GPU_DECODE_ATTEND_H_

#include "cache.h"
#include "decode.h"
#include "grid.h"

constexpr int kRunPages = 8;      // least pages in a run
constexpr int kState = kDim + 2;  // floats of a run and head: values, largest logit, sum

// Pages of each run, so that there are at most `runs`.
__device__ __forceinline__ int pages_of_run(int pages, int runs) {
  const int n = (pages + runs - 1) / runs;
  return n < kRunPages ? kRunPages : n;
}

__device__ __forceinline__ float4 load4(const float* p) {
  return *reinterpret_cast<const float4*>(p);
}
__device__ __forceinline__ float4 load4(const bf16* p) {
  const uint2 u = *reinterpret_cast<const uint2*>(p);
  return float4{low_bf16(u.x), high_bf16(u.x), low_bf16(u.y), high_bf16(u.y)};
}

template <class T>
__device__ __forceinline__ void attend_run(const Place& place, const int* rows, float* o,
                                           float* partial, int* arrived, const float* qkv,
                                           const T* cache, const bf16* sinks, const int* positions,
                                           const int* tables, const int* table_at,
                                           int64_t page_elements, int heads, int kv_heads,
                                           int window, float scale) {
  DYNAMIC_SHARED(float4, q);                                   // [kGroup * kDim / 4]
  float* p = reinterpret_cast<float*>(q + kGroup * kDim / 4);  // weights of each warp's page
  float* state = p + kDecodeWarps * kPageTokens * kGroup;      // [kDecodeWarps * kGroup * kState]
  SHARED(int, flag, 1);
  const int kv_head = place.x, row = place.y, run = place.z;
  if (row >= *rows) return;  // the whole block
  const int group = heads / kv_heads, end = positions[row] + 1;
  const int begin = window > 0 && end > window ? end - window : 0;
  const int first = begin / kPageTokens, pages = (end + kPageTokens - 1) / kPageTokens - first;
  const int per_run = pages_of_run(pages, place.nz), runs = (pages + per_run - 1) / per_run;
  if (run >= runs) return;  // the whole block
  const int lane = place.thread % WARP, warp = place.thread / WARP;
  const int64_t head0 = static_cast<int64_t>(kv_head) * group;
  const float* from = qkv + (static_cast<int64_t>(row) * (heads + 2 * kv_heads) + head0) * kDim;
  for (int i = place.thread; i < kGroup * kDim / 4; i += kDecodeThreads)
    q[i] = i < group * kDim / 4 ? reinterpret_cast<const float4*>(from)[i] : float4{0, 0, 0, 0};
  __syncthreads();

  constexpr int kOwn = kDim / 32;  // dimensions of a lane; lanes past 31 have none
  float m[kGroup], l[kGroup], acc[kGroup][kOwn];
#pragma unroll
  for (int g = 0; g < kGroup; g++) {
    m[g] = -3.0e38f;
    l[g] = 0;
#pragma unroll
    for (int d = 0; d < kOwn; d++) acc[g][d] = 0;
  }
  float* own_p = p + warp * kPageTokens * kGroup;
  const int last = (run + 1) * per_run < pages ? (run + 1) * per_run : pages;
  for (int page = run * per_run + warp; page < last; page += kDecodeWarps) {
    const int at = (first + page) * kPageTokens;
    const T* keys =
        key_at(cache, page_elements, tables[table_at[row] + first + page], kv_head, 0, kDim);
    const T* values = keys + kPageTokens * kDim;
    const bool seen = lane < kPageTokens && at + lane >= begin && at + lane < end;
    float logit[kGroup] = {};
    if (seen) {
#pragma unroll 1
      for (int i = 0; i < kDim / 4; i++) {
        const float4 k = load4(keys + lane * kDim + 4 * i);
#pragma unroll
        for (int g = 0; g < kGroup; g++) {
          const float4 a = q[g * (kDim / 4) + i];
          logit[g] = dot4(k.x, k.y, k.z, k.w, a, logit[g]);
        }
      }
    }
    __syncwarp();  // the page before has been read
#pragma unroll
    for (int g = 0; g < kGroup; g++) {
      const float v = seen ? logit[g] * scale : -3.0e38f;
      const float largest = fmaxf(m[g], warp_max(v));
      const float keep = fast_exp(m[g] - largest), weight = seen ? fast_exp(v - largest) : 0.0f;
      m[g] = largest;
      l[g] = l[g] * keep + weight;  // of this lane's positions
#pragma unroll
      for (int d = 0; d < kOwn; d++) acc[g][d] *= keep;
      if (lane < kPageTokens) own_p[lane * kGroup + g] = weight;
    }
    __syncwarp();
    const int t0 = begin > at ? begin - at : 0;
    const int t1 = end - at < kPageTokens ? end - at : kPageTokens;
    if (lane < 32) {
#pragma unroll 2
      for (int t = t0; t < t1; t++) {
        const float v0 = load(values + t * kDim + 2 * lane);
        const float v1 = load(values + t * kDim + 2 * lane + 1);
#pragma unroll
        for (int g = 0; g < kGroup; g++) {
          const float weight = own_p[t * kGroup + g];
          acc[g][0] = fmaf(weight, v0, acc[g][0]);
          acc[g][1] = fmaf(weight, v1, acc[g][1]);
        }
      }
    }
  }
  // The warps' findings meet in shared memory, and thread by thread become the run's.
#pragma unroll
  for (int g = 0; g < kGroup; g++) {
    float* to = state + (warp * kGroup + g) * kState;
    const float sum = warp_sum(l[g]);
    if (lane < 32) {
      to[2 * lane] = acc[g][0];
      to[2 * lane + 1] = acc[g][1];
    }
    if (lane == 0) {
      to[kDim] = m[g];
      to[kDim + 1] = sum;
    }
  }
  __syncthreads();
  const int64_t own = static_cast<int64_t>(row) * kv_heads + kv_head;
  float* mine = partial + (own * place.nz + run) * kGroup * kState;
  for (int i = place.thread; i < kGroup * kDim; i += kDecodeThreads) {
    const int g = i / kDim, d = i % kDim;
    float largest = -3.0e38f, sum = 0, value = 0;
    for (int w = 0; w < kDecodeWarps; w++)
      largest = fmaxf(largest, state[(w * kGroup + g) * kState + kDim]);
    for (int w = 0; w < kDecodeWarps; w++) {
      const float* s = state + (w * kGroup + g) * kState;
      const float keep = fast_exp(s[kDim] - largest);
      sum = fmaf(s[kDim + 1], keep, sum);
      value = fmaf(s[d], keep, value);
    }
    mine[g * kState + d] = value;
    if (d == 0) {
      mine[g * kState + kDim] = largest;
      mine[g * kState + kDim + 1] = sum;
    }
  }
  if (!last_to_arrive(arrived + own, runs, flag)) return;
  const float* all = partial + own * place.nz * kGroup * kState;
  for (int i = place.thread; i < group * kDim; i += kDecodeThreads) {
    const int g = i / kDim, d = i % kDim;
    float largest = from_bf16(sinks[head0 + g]), sum = 1, value = 0;
    for (int n = 0; n < runs; n++) {
      const float* s = all + (n * kGroup + g) * kState;
      const float next = fmaxf(largest, s[kDim]);
      const float keep = fast_exp(largest - next), weight = fast_exp(s[kDim] - next);
      largest = next;
      sum = sum * keep + s[kDim + 1] * weight;
      value = value * keep + s[d] * weight;
    }
    o[(static_cast<int64_t>(row) * heads + head0) * kDim + i] = value / sum;
  }
}

#endif  // OSSRUN_GPU_DECODE_ATTEND_H_
