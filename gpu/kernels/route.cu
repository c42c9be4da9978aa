// The router: which experts a row chose and how much of each, then the slots sorted by expert.
//
// Slot row * top + j is the row's j-th choice. order lists the slots by expert, ascending within
// one; groups is A, the number of experts chosen at all, then A pairs (expert, end of its slots in
// order), experts ascending.
#include "number.h"
#include "warp.h"

// Largest logits first, of equal ones the lower expert; NaN only where nothing else is left. The
// weights are the softmax over the chosen. One thread a row: this is the statement of what routing
// is, decode has a faster form.
// experts i32 [rows, top], weights f32 [rows, top], router f32 [rows, count].
// grid (ceil(bucket rows / 64))
KERNEL(64)
route_choose(const int* rows, int* experts, float* weights, const float* router, int count,
             int top) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= *rows) return;
  const float* logits = router + static_cast<int64_t>(row) * count;
  int* chosen = experts + static_cast<int64_t>(row) * top;
  float* weight = weights + static_cast<int64_t>(row) * top;
  for (int j = 0; j < top; j++) {
    int best = -1;
    for (int e = 0; e < count; e++) {
      bool taken = false;
      for (int i = 0; i < j; i++) taken = taken || chosen[i] == e;
      if (taken) continue;
      if (best < 0 || logits[e] > logits[best] || logits[best] != logits[best]) best = e;
    }
    chosen[j] = best;
  }
  const float largest = logits[chosen[0]];
  float sum = 0;
  for (int j = 0; j < top; j++) sum += weight[j] = exp_of(logits[chosen[j]] - largest);
  for (int j = 0; j < top; j++) weight[j] /= sum;
}
EMULATE(route_choose, 64)

constexpr int kMostExperts = 1024;

// How many slots of an expert a warp's run of them has, then where the next one goes: a row of
// counts for each warp, [kGroupWarps][count].
constexpr int kGroupThreads = 256, kGroupWarps = kGroupThreads / WARP;

// order i32 [rows * top], groups i32 [1 + 2 * count]; count <= 1024. The warps have runs of slots
// behind each other: they count, the counts become places, and each warp puts its slots there, as
// many at once as it has lanes. grid (1), shared (256 / WARP + 1) * count * 4
KERNEL(256)
route_group(const int* rows, int* order, int* groups, const int* experts, int count, int top) {
  DYNAMIC_SHARED(int, places);
  SHARED(int, seen, kGroupThreads);
  int* const size = places + kGroupWarps * count;  // of each expert, then its first place
  const int slots = *rows * top, lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
  const int run = (slots + kGroupThreads - 1) / kGroupThreads * WARP, begin = warp * run;
  const int end = begin + run < slots ? begin + run : slots;
  int* const own = places + warp * count;
  for (int i = threadIdx.x; i < kGroupWarps * count; i += kGroupThreads) places[i] = 0;
  __syncthreads();
  for (int i = begin + lane; i < end; i += WARP) atomic_add(&own[experts[i]], 1);
  __syncthreads();
  for (int e = threadIdx.x; e < count; e += kGroupThreads) {
    int n = 0;
    for (int w = 0; w < kGroupWarps; w++) n += places[w * count + e];
    size[e] = n;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    int at = 0, active = 0;
    for (int e = 0; e < count; e++) {
      const int n = size[e];
      size[e] = at;
      at += n;
      if (n == 0) continue;
      groups[1 + 2 * active] = e;
      groups[2 + 2 * active] = at;
      active++;
    }
    groups[0] = active;
  }
  __syncthreads();
  for (int e = threadIdx.x; e < count; e += kGroupThreads) {
    int at = size[e];
    for (int w = 0; w < kGroupWarps; w++) {
      const int n = places[w * count + e];
      places[w * count + e] = at;
      at += n;
    }
  }
  __syncthreads();
  for (int base = begin; base < end; base += WARP) {
    const int slot = base + lane, e = slot < end ? experts[slot] : -1;
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
    order[at] = slot;
    if (before + 1 == same) own[e] = at + 1;
  }
}
EMULATE(route_group, 256)
