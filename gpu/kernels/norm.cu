// RMSNorm: y = x / sqrt(mean(x^2) + eps) * w, one block a row.
#include "number.h"
#include "warp.h"

// x, y f32 [rows, width], w bf16 [width]; y may be x.
// grid (bucket rows)
KERNEL(256)
norm(const int* rows, float* y, const float* x, const bf16* w, int width, float eps) {
  SHARED(float, part, 256 / WARP);
  const int row = blockIdx.x;
  if (row >= *rows) return;
  const float* from = x + static_cast<int64_t>(row) * width;
  float* to = y + static_cast<int64_t>(row) * width;
  float squares = 0;
  for (int i = threadIdx.x; i < width; i += blockDim.x) squares = fmaf(from[i], from[i], squares);
  squares = block_sum(squares, part);
  const float scale = 1.0f / sqrt_of(squares / static_cast<float>(width) + eps);
  for (int i = threadIdx.x; i < width; i += blockDim.x) to[i] = from[i] * scale * from_bf16(w[i]);
}
EMULATE(norm, 256)
