// The router: which experts a row chose and how much of each, then the slots sorted by expert.
//
// Slot row * top + j is the row's j-th choice. order lists the slots by expert, ascending within
// one; groups is A, the number of experts chosen at all, then A pairs (expert, end of its slots in
// order), experts ascending.
#include "route.h"

// Largest logits first, of equal ones the lower expert; NaN only where nothing else is left. The
// weights are the softmax over the chosen. A warp a row.
// experts i32 [rows, top], weights f32 [rows, top], router f32 [rows, count].
// grid (ceil(bucket rows / (256 / WARP)))
KERNEL(256)
route_choose(const int* rows, int* experts, float* weights, const float* router, int count,
             int top) {
  await_grids();
  const int64_t row = blockIdx.x * (blockDim.x / WARP) + threadIdx.x / WARP;
  if (row >= *rows) return;  // the whole warp
  choose_by_warp(experts + row * top, weights + row * top, router + row * count, count, top,
                 threadIdx.x % WARP);
}
EMULATE(route_choose, 256)

// order i32 [rows * top], groups i32 [1 + 2 * count].
// grid (1), any block, shared (block / WARP + 1) * count * 4
KERNEL(1024)
route_group(const int* rows, int* order, int* groups, const int* experts, int count, int top) {
  await_grids();
  DYNAMIC_SHARED(int, places);
  SHARED(int, seen, 1024);
  group_slots(order, groups, experts, *rows * top, count, places, seen);
}
EMULATE(route_group, 1024)
