// The kernels of the rotary embedding: rope.h has the angles.
#include "rope.h"

// a[row] = cosines then sines of positions[row] * frequencies, times scale. a f32 [rows, 2 * half].
// grid (bucket rows)
KERNEL(256)
angles(const int* rows, float* a, const int* positions, const float* frequencies, int half,
       float scale) {
  await_grids();
  const int row = blockIdx.x;
  if (row >= *rows) return;
  float* to = a + static_cast<int64_t>(row) * 2 * half;
  for (int i = threadIdx.x; i < half; i += blockDim.x) {
    const float angle = static_cast<float>(positions[row]) * frequencies[i];
    float cosine, sine;
    cos_sin(static_cast<double>(angle), &cosine, &sine);
    to[i] = cosine * scale;
    to[half + i] = sine * scale;
  }
}
EMULATE(angles, 256)

// Rotates the first `heads` heads of every row in place: the pairs (i, i + dim/2) turn, a thread a
// pair. x f32 [rows, stride], a f32 [rows, dim] of angles.
// grid (ceil(heads * dim / 2 / 256), bucket rows)
KERNEL(256)
rope(const int* rows, float* x, const float* a, int heads, int dim, int stride) {
  await_grids();
  const int row = blockIdx.y, half = dim / 2, i = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= *rows || i >= heads * half) return;
  const float* cosine = a + static_cast<int64_t>(row) * dim + i % half;
  float* pair = x + static_cast<int64_t>(row) * stride + i / half * dim + i % half;
  const float c = cosine[0], s = cosine[half], u = pair[0], v = pair[half];
  pair[0] = u * c - v * s;
  pair[half] = v * c + u * s;
}
EMULATE(rope, 256)
