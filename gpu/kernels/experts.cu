// The experts' two matrices and the sum of what they gave, one warp a result.
#include "expert.h"
#include "warp.h"

// What one warp of gate_up and down works on: a place in order and a row of the expert's matrix.
struct ExpertRow {
  int slot, expert, row;
  bool live;
};

__device__ __forceinline__ ExpertRow expert_row(const int* order, const int* groups, int rows) {
  ExpertRow r = {0, 0, static_cast<int>(blockIdx.x * (blockDim.x / WARP) + threadIdx.x / WARP),
                 false};
  const int at = blockIdx.y;
  if (at >= slots_of(groups) || r.row >= rows) return r;
  r.slot = order[at];
  r.expert = expert_of(groups, at);
  r.live = true;
  return r;
}

// h[slot] = clamped SwiGLU of (gate, up) of the slot's row: rows 2i and 2i+1 of the expert's matrix
// are gate i and up i. h f32 [slots, n], x f32 [rows, k], slot s belongs to row s / top.
// grid (ceil(n / (256 / WARP)), bucket slots)
KERNEL(256)
gate_up(float* h, const int* order, const int* groups, const float* x, const uint8_t* blocks,
        const uint8_t* scales, const bf16* bias, int n, int k, int top, float limit) {
  await_grids();
  const ExpertRow r = expert_row(order, groups, n);
  if (!r.live) return;  // whole warps
  const int lane = threadIdx.x % WARP;
  const int64_t gate = (static_cast<int64_t>(r.expert) * n + r.row) * 2;
  const float* from = x + static_cast<int64_t>(r.slot / top) * k;
  float sum[2];
  for (int i = 0; i < 2; i++)
    sum[i] = warp_sum(mxfp4_part(blocks + (gate + i) * (k / 2), scales + (gate + i) * (k / kBlock),
                                 from, k, lane)) +
             from_bf16(bias[gate + i]);
  if (lane == 0)
    h[static_cast<int64_t>(r.slot) * n + r.row] = clamped_swiglu(sum[0], sum[1], limit);
}
EMULATE(gate_up, 256)

// gate_up on 8-bit activations: q i8 [rows, k], d f32 [rows, k/16], as quantize left them.
KERNEL(256)
gate_up_q8(float* h, const int* order, const int* groups, const int8_t* q, const float* d,
           const uint8_t* blocks, const uint8_t* scales, const bf16* bias, int n, int k, int top,
           float limit) {
  await_grids();
  const ExpertRow r = expert_row(order, groups, n);
  if (!r.live) return;
  const int lane = threadIdx.x % WARP;
  const int64_t gate = (static_cast<int64_t>(r.expert) * n + r.row) * 2, row = r.slot / top;
  float sum[2];
  for (int i = 0; i < 2; i++)
    sum[i] =
        warp_sum(mxfp4_part_q8(blocks + (gate + i) * (k / 2), scales + (gate + i) * (k / kBlock),
                               q + row * k, d + row * (k / 16), k, lane)) +
        from_bf16(bias[gate + i]);
  if (lane == 0)
    h[static_cast<int64_t>(r.slot) * n + r.row] = clamped_swiglu(sum[0], sum[1], limit);
}
EMULATE(gate_up_q8, 256)

// y[slot] = down(h[slot]). y f32 [slots, n], h f32 [slots, k].
// grid (ceil(n / (256 / WARP)), bucket slots)
KERNEL(256)
down(float* y, const int* order, const int* groups, const float* h, const uint8_t* blocks,
     const uint8_t* scales, const bf16* bias, int n, int k) {
  await_grids();
  const ExpertRow r = expert_row(order, groups, n);
  if (!r.live) return;
  const int lane = threadIdx.x % WARP;
  const int64_t row = static_cast<int64_t>(r.expert) * n + r.row;
  const float sum = warp_sum(mxfp4_part(blocks + row * (k / 2), scales + row * (k / kBlock),
                                        h + static_cast<int64_t>(r.slot) * k, k, lane));
  if (lane == 0) y[static_cast<int64_t>(r.slot) * n + r.row] = sum + from_bf16(bias[row]);
}
EMULATE(down, 256)

// down on 8-bit activations: q i8 [slots, k], d f32 [slots, k/16].
KERNEL(256)
down_q8(float* y, const int* order, const int* groups, const int8_t* q, const float* d,
        const uint8_t* blocks, const uint8_t* scales, const bf16* bias, int n, int k) {
  await_grids();
  const ExpertRow r = expert_row(order, groups, n);
  if (!r.live) return;
  const int lane = threadIdx.x % WARP;
  const int64_t row = static_cast<int64_t>(r.expert) * n + r.row, slot = r.slot;
  const float sum = warp_sum(mxfp4_part_q8(blocks + row * (k / 2), scales + row * (k / kBlock),
                                           q + slot * k, d + slot * (k / 16), k, lane));
  if (lane == 0) y[slot * n + r.row] = sum + from_bf16(bias[row]);
}
EMULATE(down_q8, 256)

// x[row] += the sum over j of weights[row][j] * y[row * top + j], in the order of the choices: four
// columns a thread, and a few choices asked for before the first is added.
// x f32 [rows, width], y f32 [rows * top, width], weights f32 [rows, top], width a multiple of 4.
// grid (ceil(width / 4 / 128), bucket rows)
KERNEL(128)
combine(const int* rows, float* x, const float* y, const float* weights, int width, int top) {
  await_grids();
  const int row = blockIdx.y, i = blockIdx.x * blockDim.x + threadIdx.x, count = width / 4;
  if (row >= *rows || i >= count) return;
  constexpr int kAtOnce = 4;
  const float4* from = reinterpret_cast<const float4*>(y) + static_cast<int64_t>(row) * top * count;
  float4* const to = reinterpret_cast<float4*>(x) + static_cast<int64_t>(row) * count + i;
  const float* const w = weights + static_cast<int64_t>(row) * top;
  float4 sum = *to;
  for (int j = 0; j < top; j += kAtOnce) {
    float4 v[kAtOnce];
    float share[kAtOnce];
#pragma unroll
    for (int u = 0; u < kAtOnce; u++) {
      const int choice = j + u < top ? j + u : j;
      v[u] = from[static_cast<int64_t>(choice) * count + i];
      share[u] = w[choice];
    }
#pragma unroll
    for (int u = 0; u < kAtOnce; u++) {
      if (j + u >= top) break;
      sum.x = fmaf(share[u], v[u].x, sum.x);
      sum.y = fmaf(share[u], v[u].y, sum.y);
      sum.z = fmaf(share[u], v[u].z, sum.z);
      sum.w = fmaf(share[u], v[u].w, sum.w);
    }
  }
  *to = sum;
}
EMULATE(combine, 128)
