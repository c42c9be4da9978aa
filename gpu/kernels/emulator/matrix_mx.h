// The elements of matrix_mx.h's operands, which includes this for the host, by the layouts of the
// fragments that lanes give.
#ifndef OSSRUN_GPU_EMULATOR_MATRIX_MX_H_
#define OSSRUN_GPU_EMULATOR_MATRIX_MX_H_

// Element k of a row of the matrix whose fragments the lanes gave, times its scale.
inline float mx_value(unsigned code, unsigned scale) {
  return from_e2m1(code) * (scale == 255 ? NAN : from_e8m0(scale));
}
inline float mx_a_element(const void* const* lanes, int row, int k) {
  const auto fragment = [&](int lane) { return static_cast<const MxFragment*>(lanes[lane]); };
#if defined(MATRIX_MX_NV)
  const int half = k / 64, at = k % 64;
  const unsigned word = fragment(row % 8 * 4 + at % 32 / 8)->half[half].w[row / 8 + at / 32 * 2];
  const unsigned scales = fragment(row % 8 * 4 + row / 8)->scale[0] >> half * 16;
  return mx_value(word >> k % 8 * 4, scales >> at / 32 * 8 & 0xff);
#else
  const MxFragment* f = fragment(row + k / 32 * 16);
  return mx_value(f->w[k % 32 / 8] >> k % 8 * 4, f->scale);
#endif
}
inline float mx_b_element(const void* const* lanes, int row, int k) {
#if defined(MATRIX_MX_NV)
  const auto fragment = [&](int lane) { return static_cast<const MxFragment*>(lanes[lane]); };
  const int half = k / 64, at = k % 64;
  const unsigned word = fragment(row % 8 * 4 + at % 32 / 8)->half[half].w[row / 8 * 2 + at / 32];
  const unsigned scales = fragment(row % 8 * 4)->scale[row / 8] >> half * 16;
  return mx_value(word >> k % 8 * 4, scales >> at / 32 * 8 & 0xff);
#else
  return mx_a_element(lanes, row, k);
#endif
}

#endif  // OSSRUN_GPU_EMULATOR_MATRIX_MX_H_
