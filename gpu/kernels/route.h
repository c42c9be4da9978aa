// Routing: the choice of a row's experts, and the slots sorted by expert (route.cu says how they
// are laid out), for kernels of their own and for the end of decode_route.
#ifndef OSSRUN_GPU_ROUTE_H_
#define OSSRUN_GPU_ROUTE_H_

#include "number.h"
#include "warp.h"

// The choice of one row by one warp: as route_choose. key 0 is NaN's: below everything.
__device__ __forceinline__ void choose_by_warp(int* experts, float* weights, const float* logits,
                                               int count, int top, int lane) {
  uint64_t last = ~uint64_t{0};
  float largest = 0, sum = 0;
  for (int j = 0; j < top; j++) {
    uint64_t best = 0;
    for (int e = lane; e < count; e += WARP) {
      const float v = logits[e];
      const uint64_t key = v != v ? 0 : key_of(v);
      const uint64_t rank = key << 32 | (0xffffffffu - static_cast<unsigned>(e));
      if (rank < last && rank > best) best = rank;
    }
    last = warp_max(best);
    const int expert = static_cast<int>(0xffffffffu - static_cast<unsigned>(last));
    const float logit = logits[expert];
    if (j == 0) largest = logit;
    sum += exp_of(logit - largest);
    if (lane == 0) {
      experts[j] = expert;
      weights[j] = logit;
    }
  }
  if (lane == 0)
    for (int j = 0; j < top; j++) weights[j] = exp_of(weights[j] - largest) / sum;
}

// Slots that a lane asks for at once: all of its own in a step of 2,048 rows.
constexpr int kSlotsAtOnce = WARP == 32 ? 8 : 4;

// order and groups of so many slots, by one block. The warps have runs of slots behind each other:
// they count, the counts become places, and each warp puts its slots there, as many at once as it
// has lanes. places and seen are shared, of (threads / WARP + 1) * count and of threads.
__device__ __forceinline__ void group_slots(int* order, int* groups, const int* experts, int slots,
                                            int count, int* places, int* seen) {
  const int threads = blockDim.x, warps = threads / WARP;
  // How many slots of an expert a warp's run of them has, then where the next one goes: a row of
  // counts for each warp; then how many each expert has.
  int* const size = places + warps * count;
  const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
  const int run = (slots + threads - 1) / threads * WARP, begin = warp * run;
  const int end = begin + run < slots ? begin + run : slots;
  int* const own = places + warp * count;
  int expert[kSlotsAtOnce];  // of the lane's slots; -1: there is none
  const auto load = [&](int base) {
#pragma unroll
    for (int u = 0; u < kSlotsAtOnce; u++) {
      const int slot = base + u * WARP + lane;
      expert[u] = slot < end ? experts[slot] : -1;
    }
  };
  for (int i = threadIdx.x; i < warps * count; i += threads) places[i] = 0;
  __syncthreads();
  for (int base = begin; base < end; base += kSlotsAtOnce * WARP) {
    load(base);
#pragma unroll
    for (int u = 0; u < kSlotsAtOnce; u++)
      if (expert[u] >= 0) atomic_add(&own[expert[u]], 1);
  }
  __syncthreads();
  for (int e = threadIdx.x; e < count; e += threads) {
    int n = 0;
    for (int w = 0; w < warps; w++) n += places[w * count + e];
    size[e] = n;
  }
  __syncthreads();
  for (int e = threadIdx.x; e < count; e += threads) {
    int at = 0, active = 0;
    for (int i = 0; i < e; i++) {
      at += size[i];
      active += size[i] > 0;
    }
    const int stop = at + size[e];
    if (stop > at) {
      groups[1 + 2 * active] = e;
      groups[2 + 2 * active] = stop;
    }
    if (e == count - 1) groups[0] = active + (stop > at);
    for (int w = 0; w < warps; w++) {
      const int n = places[w * count + e];
      places[w * count + e] = at;
      at += n;
    }
  }
  __syncthreads();
  for (int base = begin; base < end; base += kSlotsAtOnce * WARP) {
    load(base);
#pragma unroll
    for (int u = 0; u < kSlotsAtOnce; u++) {
      if (base + u * WARP >= end) break;  // the whole warp
      const int e = expert[u];
      seen[threadIdx.x] = e;
      __syncwarp();
      int before = 0, same = 0;  // lanes of the same expert
      for (int l = 0; l < WARP; l++) {
        const int equal = seen[warp * WARP + l] == e;
        same += equal;
        before += l < lane ? equal : 0;
      }
      const int at = e < 0 ? 0 : own[e] + before;
      __syncwarp();  // all lanes know their places
      if (e < 0) continue;
      order[at] = base + u * WARP + lane;
      if (before + 1 == same) own[e] = at + 1;
    }
  }
}

#endif  // OSSRUN_GPU_ROUTE_H_
