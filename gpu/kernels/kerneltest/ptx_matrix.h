// The matrix instructions of PTX, each done by the last lane of a warp for all of them: layouts as
// the PTX ISA has them, written down once more, beside those of the sources (matrix.h), and sums in
// double.
#ifndef OSSRUN_GPU_KERNELTEST_PTX_MATRIX_H_
#define OSSRUN_GPU_KERNELTEST_PTX_MATRIX_H_

#include "ptx.h"
#include "../emulator/block.h"
#include <math.h>
#include <string.h>

namespace ptx {
inline float f32(uint64_t v) {
  const uint32_t bits = static_cast<uint32_t>(v);
  float f;
  memcpy(&f, &bits, 4);
  return f;
}
inline double f64(uint64_t v) {
  double d;
  memcpy(&d, &v, 8);
  return d;
}
inline uint64_t bits(float f) {
  uint32_t v;
  memcpy(&v, &f, 4);
  return v;
}
inline uint64_t bits(double d) {
  uint64_t v;
  memcpy(&v, &d, 8);
  return v;
}
inline uint32_t bf16(float f) {  // to nearest, ties to even
  if (f != f) return 0x7fff;
  const uint32_t v = static_cast<uint32_t>(bits(f));
  return (v + 0x7fff + (v >> 16 & 1)) >> 16;
}
inline float from_bf16(uint32_t v) { return f32(v << 16); }

inline uint32_t f16(float f) {  // to nearest, ties to even; a subnormal is a multiple of 2^-24
  const uint32_t sign = static_cast<uint32_t>(bits(f)) >> 16 & 0x8000;
  if (f != f) return 0x7fff;
  int exponent;
  if (frexp(f, &exponent) == 0) return sign;
  const int step = exponent > -14 ? exponent - 11 : -24;
  const double whole = nearbyint(ldexp(fabs(double{f}), -step));  // below 2^11, or 2^11 itself
  if (ldexp(whole, step) > 65504) return sign | 0x7c00;
  return sign | (static_cast<uint32_t>(step + 24) * 1024 + static_cast<uint32_t>(whole));
}
inline float from_f16(uint32_t v) {
  const int exponent = v >> 10 & 31, part = v & 1023;
  const double size = exponent == 31  ? part ? NAN : INFINITY
                      : exponent == 0 ? ldexp(part, -24)
                                      : ldexp(1024 + part, exponent - 25);
  return static_cast<float>(v & 0x8000 ? -size : size);
}
inline float from_e4m3(uint32_t v) {
  const int exponent = v >> 3 & 15, part = v & 7;
  const double size = (v & 127) == 127 ? NAN
                      : exponent == 0  ? ldexp(part, -9)
                                       : ldexp(8 + part, exponent - 10);
  return static_cast<float>(v & 0x80 ? -size : size);
}

// What the lanes of a warp bring to a matrix instruction: their registers.
struct Product {
  float c[4];
  uint32_t a[4], b[2], scale_a, scale_b;
};
inline const Product& of_lane(const uint64_t* all, int lane) {
  return *reinterpret_cast<const Product*>(all[lane]);
}

// PTX ISA, fragments of mma.m16n8k16: A by rows lane/4 and eight below, B by columns lane/4.
template <int K, class A, class B>
inline void multiply(uint64_t* all, A a_at, B b_at) {
  float sums[32][4];
  for (int lane = 0; lane < 32; lane++)
    for (int i = 0; i < 4; i++) {
      const int row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
      double sum = 0;
      for (int k = 0; k < K; k++) sum += double{a_at(all, row, k)} * b_at(all, column, k);
      sums[lane][i] = static_cast<float>(of_lane(all, lane).c[i] + sum);
    }
  for (int lane = 0; lane < 32; lane++)
    memcpy(reinterpret_cast<Product*>(all[lane])->c, sums[lane], sizeof sums[lane]);
}
template <float number(uint32_t)>
inline void multiply_halves(uint64_t* all) {
  multiply<16>(
      all,
      [](const uint64_t* from, int row, int k) {
        const uint32_t word = of_lane(from, row % 8 * 4 + k % 8 / 2).a[row / 8 + k / 8 * 2];
        return number(word >> k % 2 * 16 & 0xffff);
      },
      [](const uint64_t* from, int column, int k) {
        return number(of_lane(from, column * 4 + k % 8 / 2).b[k / 8] >> k % 2 * 16 & 0xffff);
      });
}
inline float e2m1(uint32_t code, uint32_t scale) {
  static const float values[8] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
  const float v = values[code & 7];
  return (code & 8 ? -v : v) *
         (scale == 255 ? NAN : static_cast<float>(ldexp(1, int(scale) - 127)));
}
// mxf4.m16n8k64, scale_vec::2X: two scales a row, of A from lanes 0 and 1 of four, of B from lane
// 0.
inline void multiply_mx(uint64_t* all) {
  multiply<64>(
      all,
      [](const uint64_t* from, int row, int k) {
        const uint32_t word = of_lane(from, row % 8 * 4 + k % 32 / 8).a[row / 8 + k / 32 * 2];
        const uint32_t scales = of_lane(from, row % 8 * 4 + row / 8).scale_a;
        return e2m1(word >> k % 8 * 4, scales >> k / 32 * 8 & 0xff);
      },
      [](const uint64_t* from, int column, int k) {
        const uint32_t word = of_lane(from, column * 4 + k % 32 / 8).b[k / 32];
        return e2m1(word >> k % 8 * 4, of_lane(from, column * 4).scale_b >> k / 32 * 8 & 0xff);
      });
}

struct Rows {
  const char* row;
  uint32_t words[4];
};
inline void load_matrices(uint64_t* all) {
  for (int lane = 0; lane < 32; lane++)
    for (int m = 0; m < 4; m++)
      memcpy(&reinterpret_cast<Rows*>(all[lane])->words[m],
             reinterpret_cast<const Rows*>(all[m * 8 + lane / 4])->row + lane % 4 * 4, 4);
}

// A product of a warpgroup that was asked for: this lane's sums, descriptors of the operands, and A
// where registers have it.
struct Asked {
  float c[64];
  uint64_t a, b;
  uint32_t own[4];
  bool registers;
  int columns;
};
inline void multiply_wgmma(uint64_t* all) {
  const char* base = static_cast<const char*>(simt::dynamic_shared());
  const auto element = [&](uint64_t d, int row, int k) {
    if (d >> 62 != 1) simt::fail("wgmma without the swizzle of 128 bytes");
    uint64_t at = (d & 0x3fff) * 16 + row / 8 * ((d >> 32 & 0x3fff) * 16) + row % 8 * 128 + k * 2;
    at ^= (at >> 7 & 7) << 4;
    if (at + 2 > simt::block->dynamic_bytes) simt::fail("wgmma reads behind shared memory");
    uint16_t v;
    memcpy(&v, base + at, 2);
    return from_bf16(v);
  };
  const auto of = [&](int lane) { return reinterpret_cast<Asked*>(all[lane]); };
  const Asked& first = *of(0);
  float a[16][16], b[128][16];
  for (int k = 0; k < 16; k++) {
    for (int row = 0; row < 16; row++)
      a[row][k] =
          first.registers
              ? from_bf16(of(row % 8 * 4 + k % 8 / 2)->own[row / 8 + k / 8 * 2] >> k % 2 * 16 &
                          0xffff)
              : element(first.a, simt::self->warp % 4 * 16 + row, k);
    for (int column = 0; column < first.columns; column++)
      b[column][k] = element(first.b, column, k);
  }
  for (int lane = 0; lane < 32; lane++) {
    Asked& own = *of(lane);
    if (own.a != first.a || own.b != first.b || own.columns != first.columns)
      simt::fail("lanes want different products");
    for (int i = 0; i < own.columns / 2; i++) {
      const int row = lane / 4 + (i / 2 & 1) * 8, column = i / 4 * 8 + lane % 4 * 2 + i % 2;
      double sum = 0;
      for (int k = 0; k < 16; k++) sum += double{a[row][k]} * b[column][k];
      own.c[i] = static_cast<float>(own.c[i] + sum);
    }
  }
}

}  // namespace ptx

#endif  // OSSRUN_GPU_KERNELTEST_PTX_MATRIX_H_
