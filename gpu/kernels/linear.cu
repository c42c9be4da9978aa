// Dense matrices on rows, the reference of all others: y = x · wᵀ + bias, or y += it, with weights
// in bf16, or in 8 bits as package models/q8 has them. One warp an element of the result.
#include "warp.h"
#include "weights_q8.h"

// product(lane, row, column) is the lane's share of an element.
template <class Product>
__device__ __forceinline__ void linear_of(const int* rows, float* y, const bf16* bias, int n,
                                          int stride, int add, Product product) {
  await_grids();
  const int lane = threadIdx.x % WARP, row = blockIdx.y;
  const int column = blockIdx.x * (blockDim.x / WARP) + threadIdx.x / WARP;
  if (row >= *rows || column >= n) return;  // whole warps
  float sum = warp_sum(product(lane, static_cast<int64_t>(row), column));
  if (lane != 0) return;
  if (bias) sum += from_bf16(bias[column]);
  float* to = y + static_cast<int64_t>(row) * stride + column;
  *to = add ? *to + sum : sum;
}

// x f32 [rows, k], w bf16 [n, k], bias bf16 [n] or null. y f32: column c of row r is
// y[r * stride + c], so that the parts of a matrix lie side by side.
// grid (ceil(n / (256 / WARP)), bucket rows)
KERNEL(256)
linear(const int* rows, float* y, const float* x, const bf16* w, const bf16* bias, int k, int n,
       int stride, int add) {
  linear_of(rows, y, bias, n, stride, add, [=](int lane, int64_t row, int64_t column) {
    float sum = 0;
    for (int i = lane; i < k; i += WARP)
      sum = fmaf(from_bf16(w[column * k + i]), x[row * k + i], sum);
    return sum;
  });
}
EMULATE(linear, 256)

// The same for w u8 [ceil(n/8), k/32, 272]: a byte times its scale is rounded to bf16, as on the
// unit.
KERNEL(256)
linear_q8(const int* rows, float* y, const float* x, const uint8_t* w, const bf16* bias, int k,
          int n, int stride, int add) {
  linear_of(rows, y, bias, n, stride, add, [=](int lane, int64_t row, int column) {
    const int own = column % kGroupRows;
    float sum = 0;
    for (int b = lane; b < k / kBlock; b += WARP) {
      const uint8_t* block = q8_block(w, column, k, b);
      const float scale = from_bf16(reinterpret_cast<const bf16*>(block)[own]);
      for (int i = 0; i < kBlock; i++) {
        const int at = i / 8 * 8 + q8_place(i % 8);
        const uint8_t v = block[kGroupRows * 2 + at / 4 * kQuad + own * 4 + at % 4];
        const bf16 weight = to_bf16(scale * static_cast<float>(static_cast<int8_t>(v)));
        sum = fmaf(from_bf16(weight), x[row * k + b * kBlock + i], sum);
      }
    }
    return sum;
  });
}
EMULATE(linear_q8, 256)
