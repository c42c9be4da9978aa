// The angles of a step's positions for the rotary embedding.
//
// What must stay true: an angle is position * frequency rounded to float32, as every engine has it;
// cos and sin of that float32 are exact to the last bit or two. At position 131,071 the fast
// instructions of a GPU are wrong in the third digit, so the reduction is done in double.
#include "number.h"

// cos and sin of x, |x| < 2^30: x minus the nearest multiple of pi/2 in two steps, then the Taylor
// series on [-pi/4, pi/4], whose next terms are below 2^-53.
__device__ __forceinline__ void cos_sin(double x, float* cosine, float* sine) {
  const double shifted = fma(x, 0.63661977236758134308, 0x1.8p52);
  const double n = shifted - 0x1.8p52;
  const int quadrant = static_cast<int>(__double_as_longlong(shifted)) & 3;
  const double r = fma(n, -6.123233995736766e-17, fma(n, -1.5707963267948966, x)), z = r * r;
  constexpr double kSine[] = {1.0 / 1307674368000, 1.0 / 6227020800, 1.0 / 39916800, 1.0 / 362880,
                              1.0 / 5040,          1.0 / 120,        1.0 / 6,        1.0};
  constexpr double kCosine[] = {1.0 / 87178291200, 1.0 / 479001600, 1.0 / 3628800, 1.0 / 40320,
                                1.0 / 720,         1.0 / 24,        0.5,           1.0};
  double s = 1.0 / 355687428096000, c = 1.0 / 20922789888000;
#pragma unroll
  for (int i = 0; i < 8; i++) {
    s = fma(s, -z, kSine[i]);
    c = fma(c, -z, kCosine[i]);
  }
  s *= r;
  const double a = quadrant & 1 ? s : c, b = quadrant & 1 ? c : s;
  *cosine = static_cast<float>(quadrant == 1 || quadrant == 2 ? -a : a);
  *sine = static_cast<float>(quadrant >= 2 ? -b : b);
}

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
