// 8-bit activations in blocks of 32: scale = max|x| / 127, q = x / scale rounded to nearest, ties
// to even. A block of zeros, or one whose scale is below float32's normal range, counts as zero.
#include "expert.h"

// q i8 [rows, width], d f32 [rows, width/16]: the block's scale, then the scale times the sum of
// its q, which a kernel with unsigned weights needs. x f32 [rows, width], width a multiple of 32.
// One thread a block. grid (ceil(width / 32 / 64), bucket rows)
KERNEL(64)
quantize(const int* rows, int8_t* q, float* d, const float* x, int width) {
  await_grids();
  const int row = blockIdx.y, b = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= *rows || b >= width / kBlock) return;
  const int64_t at = static_cast<int64_t>(row) * width + b * kBlock;
  float v[kBlock], largest = 0;  // all are asked for before the first is used, or q is written
#pragma unroll
  for (int i = 0; i < kBlock; i++) v[i] = x[at + i];
#pragma unroll
  for (int i = 0; i < kBlock; i++) largest = fmaxf(largest, fabsf(v[i]));
  float scale = largest / 127.0f;
  if (scale < 1.17549435e-38f) scale = 0;
  unsigned codes[kBlock / 4] = {};
  int sum = 0;
#pragma unroll
  for (int i = 0; i < kBlock; i++) {
    const float rounded = scale == 0 ? 0.0f : v[i] / scale + 0x1.8p23f - 0x1.8p23f;
    const int code = static_cast<int>(fminf(fmaxf(rounded, -127.0f), 127.0f));
    codes[i / 4] |= (static_cast<unsigned>(code) & 255) << (i % 4 * 8);
    sum += code;
  }
  uint4* const to = reinterpret_cast<uint4*>(q + at);
  to[0] = uint4{codes[0], codes[1], codes[2], codes[3]};
  to[1] = uint4{codes[4], codes[5], codes[6], codes[7]};
  d[at / 16] = scale;
  d[at / 16 + 1] = scale * static_cast<float>(sum);
}
EMULATE(quantize, 64)
