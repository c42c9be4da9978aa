// A dense matrix on rows: y = x · wᵀ + bias, or y += it. One warp an element of the result.
#include "number.h"
#include "warp.h"

// x f32 [rows, k], w bf16 [n, k], bias bf16 [n] or null. y f32: column c of row r is
// y[r * stride + c], so that the parts of a matrix lie side by side.
// grid (ceil(n / (256 / WARP)), bucket rows)
KERNEL(256)
linear(const int* rows, float* y, const float* x, const bf16* w, const bf16* bias, int k, int n,
       int stride, int add) {
  await_grids();
  const int lane = threadIdx.x % WARP, row = blockIdx.y;
  const int column = blockIdx.x * (blockDim.x / WARP) + threadIdx.x / WARP;
  if (row >= *rows || column >= n) return;  // whole warps
  const float* from = x + static_cast<int64_t>(row) * k;
  const bf16* weight = w + static_cast<int64_t>(column) * k;
  float sum = 0;
  for (int i = lane; i < k; i += WARP) sum = fmaf(from_bf16(weight[i]), from[i], sum);
  sum = warp_sum(sum);
  if (lane != 0) return;
  if (bias) sum += from_bf16(bias[column]);
  float* to = y + static_cast<int64_t>(row) * stride + column;
  *to = add ? *to + sum : sum;
}
EMULATE(linear, 256)
