// The experts' two matrices and the sum of what they gave, one warp a result.
#include "expert.h"
#include "warp.h"

// Rows of activations, as float32 or in 8 bits (quantize): sum += block b of one, times one of
// weights.
struct Floats {
  const float* x;
  __device__ __forceinline__ void add(float& sum, int64_t row, int b, int k, const uint8_t* block,
                                      float scale) const {
    const float* const from = x + row * k + b * kBlock;
    for (int i = 0; i < kBlock / 2; i++) {
      sum = fmaf(from_e2m1(block[i]) * scale, from[2 * i], sum);
      sum = fmaf(from_e2m1(block[i] >> 4) * scale, from[2 * i + 1], sum);
    }
  }
};
// Integer within a block; d holds a scale for each block at 2b.
struct Bytes {
  const int8_t* q;
  const float* d;
  __device__ __forceinline__ void add(float& sum, int64_t row, int b, int k, const uint8_t* block,
                                      float scale) const {
    const int8_t* const from = q + row * k + b * kBlock;
    int twice = 0;  // of the sum: twice an E2M1 value is an integer
    for (int i = 0; i < kBlock / 2; i++) {
      twice += static_cast<int>(2 * from_e2m1(block[i])) * from[2 * i];
      twice += static_cast<int>(2 * from_e2m1(block[i] >> 4)) * from[2 * i + 1];
    }
    sum = fmaf(scale * (0.5f * d[row * (k / 16) + 2 * b]), static_cast<float>(twice), sum);
  }
};

// A warp's results: of one place in order and one row of the expert's n, or of that row's gate and
// up. Slot s is of row s / top of x.
template <bool GATED, class X>
__device__ __forceinline__ void expert_row(float* y, const int* order, const int* groups,
                                           const X& x, const uint8_t* blocks, const uint8_t* scales,
                                           const bf16* bias, int n, int k, int top, float limit) {
  await_grids();
  constexpr int kStep = GATED ? 2 : 1;
  const TokenTile own = tile_at(groups, blockIdx.y, 1);
  const int row = blockIdx.x * (blockDim.x / WARP) + threadIdx.x / WARP;
  if (own.end == 0 || row >= n) return;  // whole warps
  const int slot = order[own.begin], lane = threadIdx.x % WARP;
  const int64_t first = (static_cast<int64_t>(own.expert) * n + row) * kStep;
  float sum[kStep];
  for (int i = 0; i < kStep; i++) {
    const int64_t from = (first + i) * (k / kBlock);
    float part = 0;
    for (int b = lane; b < k / kBlock; b += WARP)
      x.add(part, slot / top, b, k, blocks + (from + b) * (kBlock / 2),
            from_e8m0(scales[from + b]));
    sum[i] = warp_sum(part) + from_bf16(bias[first + i]);
  }
  if (lane == 0)
    y[static_cast<int64_t>(slot) * n + row] =
        GATED ? clamped_swiglu(sum[0], sum[kStep - 1], limit) : sum[0];
}

// h[slot] = clamped SwiGLU of (gate, up) of the slot's row: rows 2i and 2i+1 of the expert's matrix
// are gate i and up i. h f32 [slots, n], x f32 [rows, k], slot s belongs to row s / top.
// grid (ceil(n / (256 / WARP)), bucket slots)
KERNEL(256)
gate_up(float* h, const int* order, const int* groups, const float* x, const uint8_t* blocks,
        const uint8_t* scales, const bf16* bias, int n, int k, int top, float limit) {
  expert_row<true>(h, order, groups, Floats{x}, blocks, scales, bias, n, k, top, limit);
}
EMULATE(gate_up, 256)

// gate_up on 8-bit activations: q i8 [rows, k], d f32 [rows, k/16], as quantize left them.
KERNEL(256)
gate_up_q8(float* h, const int* order, const int* groups, const int8_t* q, const float* d,
           const uint8_t* blocks, const uint8_t* scales, const bf16* bias, int n, int k, int top,
           float limit) {
  expert_row<true>(h, order, groups, Bytes{q, d}, blocks, scales, bias, n, k, top, limit);
}
EMULATE(gate_up_q8, 256)

// y[slot] = down(h[slot]). y f32 [slots, n], h f32 [slots, k].
// grid (ceil(n / (256 / WARP)), bucket slots)
KERNEL(256)
down(float* y, const int* order, const int* groups, const float* h, const uint8_t* blocks,
     const uint8_t* scales, const bf16* bias, int n, int k) {
  expert_row<false>(y, order, groups, Floats{h}, blocks, scales, bias, n, k, 1, 0);
}
EMULATE(down, 256)

// down on 8-bit activations: q i8 [slots, k], d f32 [slots, k/16].
KERNEL(256)
down_q8(float* y, const int* order, const int* groups, const int8_t* q, const float* d,
        const uint8_t* blocks, const uint8_t* scales, const bf16* bias, int n, int k) {
  expert_row<false>(y, order, groups, Bytes{q, d}, blocks, scales, bias, n, k, 1, 0);
}
EMULATE(down_q8, 256)

// x[row] += the sum over j of weights[row][j] * y[row * top + j], in the order of the choices: four
// columns a thread, and a few choices asked for before the first is added. A launch by itself: were
// y read by the 40 to 80 blocks that norm a row for q, k and v, a row would cost 1.8 to 3.7 MB of
// the second cache, 0.3 to 0.7 us of an H200's, and all rows of up to 64 together take 2 us here.
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
