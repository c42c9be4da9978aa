// The kernels of the rotary embedding: rope.h has the angles.
#include "rope.h"

// a[row] = cosines then sines of positions[row] * frequencies, times scale. a f32 [rows, 2 * half].
// grid (bucket rows)
KERNEL(256)
angles(const int* rows, float* a, const int* positions, const float* frequencies, int half,
       float scale) {
  angles_row(own_place(), rows, a, positions, frequencies, half, scale);
}
EMULATE(angles, 256)

// Rotates the first `heads` heads of every row in place: the pairs (i, i + dim/2) turn.
// x f32 [rows, stride], a f32 [rows, dim] of angles.
// grid (bucket rows)
KERNEL(256)
rope(const int* rows, float* x, const float* a, int heads, int dim, int stride) {
  const int row = blockIdx.x, half = dim / 2;
  if (row >= *rows) return;
  const float* cosine = a + static_cast<int64_t>(row) * dim;
  const float* sine = cosine + half;
  for (int i = threadIdx.x; i < heads * half; i += blockDim.x) {
    float* pair = x + static_cast<int64_t>(row) * stride + i / half * dim + i % half;
    const float c = cosine[i % half], s = sine[i % half], u = pair[0], v = pair[half];
    pair[0] = u * c - v * s;
    pair[half] = v * c + u * s;
  }
}
EMULATE(rope, 256)
