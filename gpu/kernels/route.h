// Routing: the choice of a row's experts, and the slots sorted by expert (route.cu says how they
// are laid out), for kernels of their own and for the end of decode_route.
#ifndef OSSRUN_GPU_ROUTE_H_
#define OSSRUN_GPU_ROUTE_H_

#include "number.h"
#include "warp.h"

// Logits of which a lane keeps the ranks.
constexpr int kRanks = 4;

// The choice of one row by one warp: as route_choose. A rank is a logit's key and, of equal ones,
// higher for the lower expert; key 0 is NaN's: below everything. top is at most WARP.
__device__ __forceinline__ void choose_by_warp(int* experts, float* weights, const float* logits,
                                               int count, int top, int lane) {
  const auto rank_at = [&](int e) {
    const float v = logits[e];
    return v != v ? uint64_t{0xffffffffu - static_cast<unsigned>(e)} : rank_of(e, v);
  };
  uint64_t ranks[kRanks], last = ~uint64_t{0};
#pragma unroll
  for (int i = 0; i < kRanks; i++)
    ranks[i] = lane + i * WARP < count ? rank_at(lane + i * WARP) : 0;
  float largest = 0, sum = 0, own = 0;  // own: of the lane's own choice
  for (int j = 0; j < top; j++) {
    uint64_t best = 0;
    const auto try_rank = [&](uint64_t rank) {
      if (rank < last && rank > best) best = rank;
    };
#pragma unroll
    for (int i = 0; i < kRanks; i++) try_rank(ranks[i]);
    for (int e = lane + kRanks * WARP; e < count; e += WARP) try_rank(rank_at(e));
    last = warp_max(best);
    const float logit = of_key(static_cast<unsigned>(last >> 32));
    if (j == 0) largest = logit;
    sum += exp_of(logit - largest);
    if (lane != j) continue;
    own = logit;
    experts[j] = id_of(last);
  }
  if (lane < top) weights[lane] = exp_of(own - largest) / sum;
}

// order and groups of as many slots as a warp has lanes, or fewer.
__device__ __forceinline__ void group_by_warp(int* order, int* groups, const int* experts,
                                              int slots, int count, int lane) {
  const int e = lane < slots ? experts[lane] : count;
  int before = 0, same = 0, lower = 0;  // slots in front of it with its expert, with its, below it
  for (int l = 0; l < slots; l++) {
    const int other = __shfl_sync(FULL, e, l);
    before += other == e && l < lane;
    same += other == e;
    lower += other < e;
  }
  const int first = before == 0 ? e : count;
  int active = 0;  // experts below it
  for (int l = 0; l < slots; l++) active += __shfl_sync(FULL, first, l) < e;
  if (lane >= slots) return;
  order[lower + before] = lane;
  if (before > 0) return;
  groups[1 + 2 * active] = e;
  groups[2 + 2 * active] = lower + same;
  if (lower + same == slots) groups[0] = active + 1;
}

// Slots that a lane asks for at once: all of its own in a step of 2,048 rows.
constexpr int kSlotsAtOnce = WARP == 32 ? 8 : 4;

// order and groups of so many slots, by one block. The warps have runs of slots behind each other:
// they count, the counts become places, and each warp puts its slots there, as many at once as it
// has lanes. places and seen are shared, of (threads / WARP + 1) * count and of threads.
__device__ __forceinline__ void group_slots(int* order, int* groups, const int* experts, int slots,
                                            int count, int* places, int* seen) {
  if (slots <= WARP) {
    if (threadIdx.x < WARP) group_by_warp(order, groups, experts, slots, count, threadIdx.x);
    return;
  }
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
