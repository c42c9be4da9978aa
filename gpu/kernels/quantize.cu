// 8-bit activations in blocks of 32: scale = max|x| / 127, q = x / scale rounded to nearest, ties
// to even. A block of zeros, or one whose scale is below float32's normal range, counts as zero.
#include "expert.h"

// q i8 [rows, width], d f32 [rows, width/16]: the block's scale, then the scale times the sum of
// its q, which a kernel with unsigned weights needs. x f32 [rows, width], width a multiple of 32.
// One thread a block. grid (ceil(width / 32 / 64), bucket rows)
KERNEL(64)
quantize(const int* rows, int8_t* q, float* d, const float* x, int width) {
  const int row = blockIdx.y, b = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= *rows || b >= width / kBlock) return;
  const int64_t at = static_cast<int64_t>(row) * width + b * kBlock;
  float largest = 0;
  for (int i = 0; i < kBlock; i++) largest = fmaxf(largest, fabsf(x[at + i]));
  float scale = largest / 127.0f;
  if (scale < 1.17549435e-38f) scale = 0;
  int sum = 0;
  for (int i = 0; i < kBlock; i++) {
    const float rounded = scale == 0 ? 0.0f : x[at + i] / scale + 0x1.8p23f - 0x1.8p23f;
    const int v = static_cast<int>(fminf(fmaxf(rounded, -127.0f), 127.0f));
    q[at + i] = static_cast<int8_t>(v);
    sum += v;
  }
  d[at / 16] = scale;
  d[at / 16 + 1] = scale * static_cast<float>(sum);
}
EMULATE(quantize, 64)
