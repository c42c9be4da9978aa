// Rotary embedding: the angles of a step's positions, and the rotation of q and k.
//
// What must stay true: an angle is position * frequency rounded to float32, as every engine has it;
// cos and sin of that float32 are exact to the last bit or two. At position 131,071 the fast
// instructions of a GPU are wrong in the third digit, so the reduction is done in double.
#ifndef OSSRUN_GPU_ROPE_H_
#define OSSRUN_GPU_ROPE_H_

#include "number.h"

// cos and sin of x, |x| < 2^30: x minus the nearest multiple of pi/2 in two steps, then the Taylor
// series on [-pi/4, pi/4], whose next terms are below 2^-53.
__device__ __forceinline__ void cos_sin(double x, float* cosine, float* sine) {
  const double shifted = fma(x, 0.63661977236758134308, 0x1.8p52);
  const double n = shifted - 0x1.8p52;
  const int quadrant = static_cast<int>(__double_as_longlong(shifted)) & 3;
  const double r = fma(n, -6.123233995736766e-17, fma(n, -1.5707963267948966, x)), z = r * r;
  double s = 1.0 / 355687428096000, c = 1.0 / 20922789888000;
  s = fma(s, -z, 1.0 / 1307674368000);
  s = fma(s, -z, 1.0 / 6227020800);
  s = fma(s, -z, 1.0 / 39916800);
  s = fma(s, -z, 1.0 / 362880);
  s = fma(s, -z, 1.0 / 5040);
  s = fma(s, -z, 1.0 / 120);
  s = fma(s, -z, 1.0 / 6);
  s = fma(s, -z, 1.0) * r;
  c = fma(c, -z, 1.0 / 87178291200);
  c = fma(c, -z, 1.0 / 479001600);
  c = fma(c, -z, 1.0 / 3628800);
  c = fma(c, -z, 1.0 / 40320);
  c = fma(c, -z, 1.0 / 720);
  c = fma(c, -z, 1.0 / 24);
  c = fma(c, -z, 0.5);
  c = fma(c, -z, 1.0);
  const double a = quadrant & 1 ? s : c, b = quadrant & 1 ? c : s;
  *cosine = static_cast<float>(quadrant == 1 || quadrant == 2 ? -a : a);
  *sine = static_cast<float>(quadrant >= 2 ? -b : b);
}

#endif  // OSSRUN_GPU_ROPE_H_
