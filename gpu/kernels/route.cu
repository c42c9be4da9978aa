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

// order i32 [rows * top], groups i32 [1 + 2 * count]; count <= 1024.
// grid (1), shared 2 * count * 4
KERNEL(256)
route_group(const int* rows, int* order, int* groups, const int* experts, int count, int top) {
  DYNAMIC_SHARED(int, place);  // of each expert's first slot
  int* size = place + count;
  const int slots = *rows * top;
  for (int e = threadIdx.x; e < count; e += blockDim.x) {
    int n = 0;
    for (int i = 0; i < slots; i++) n += experts[i] == e;
    size[e] = n;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    int begin = 0, active = 0;
    for (int e = 0; e < count; e++) {
      place[e] = begin;
      begin += size[e];
      if (size[e] == 0) continue;
      groups[1 + 2 * active] = e;
      groups[2 + 2 * active] = begin;
      active++;
    }
    groups[0] = active;
  }
  __syncthreads();
  for (int e = threadIdx.x; e < count; e += blockDim.x) {
    int at = place[e];
    for (int i = 0; at < place[e] + size[e]; i++)
      if (experts[i] == e) order[at++] = i;
  }
}
EMULATE(route_group, 256)
