// The router: which experts a row chose and how much of each, then the slots sorted by expert.
//
// Slot row * top + j is the row's j-th choice. order lists the slots by expert, ascending within
// one; groups is A, the number of experts chosen at all, then A pairs (expert, end of its slots in
// order), experts ascending.
#include "decode_experts.h"

// Largest logits first, of equal ones the lower expert; NaN only where nothing else is left. The
// weights are the softmax over the chosen. A warp a row.
// experts i32 [rows, top], weights f32 [rows, top], router f32 [rows, count].
// grid (ceil(bucket rows / (256 / WARP)))
KERNEL(256)
route_choose(const int* rows, int* experts, float* weights, const float* router, int count,
             int top) {
  const int64_t row = blockIdx.x * (blockDim.x / WARP) + threadIdx.x / WARP;
  if (row >= *rows) return;  // the whole warp
  choose_by_warp(experts + row * top, weights + row * top, router + row * count, count, top,
                 threadIdx.x % WARP);
}
EMULATE(route_choose, 256)

// Slots that a lane asks for at once: all of its own in a step of 2,048 rows.
constexpr int kSlotsAtOnce = WARP == 32 ? 8 : 4;

// order i32 [rows * top], groups i32 [1 + 2 * count]. The warps have runs of slots behind each
// other: they count, the counts become places, and each warp puts its slots there, as many at once
// as it has lanes. grid (1), any block, shared (block / WARP + 1) * count * 4
KERNEL(1024)
route_group(const int* rows, int* order, int* groups, const int* experts, int count, int top) {
  DYNAMIC_SHARED(int, places);
  SHARED(int, seen, 1024);
  const int threads = blockDim.x, warps = threads / WARP;
  // How many slots of an expert a warp's run of them has, then where the next one goes: a row of
  // counts for each warp; then how many each expert has.
  int* const size = places + warps * count;
  const int slots = *rows * top, lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
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
EMULATE(route_group, 1024)
