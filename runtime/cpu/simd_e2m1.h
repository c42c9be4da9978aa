// MXFP4 weights as tables: for each of the 256 scales the 16 values e2m1 * 2^(scale - 127).
//
// With the scale inside the table a weight costs a shuffle and no multiplication, and is exact:
// an E2M1 value has two significant bits, so its float32 is a bf16, subnormals included.
#ifndef OSSRUN_CPU_SIMD_E2M1_H_
#define OSSRUN_CPU_SIMD_E2M1_H_

#include <stdint.h>

namespace {

// The float32 bits of the value of `code` (0..15) at `scale` (0..255); infinite from 2^128 up.
constexpr uint32_t e2m1_bits(int code, int scale) {
  // In units of 2^(scale - 128) the magnitudes are whole: 0, 1, 2, 3, 4, 6, 8, 12.
  const uint32_t sign = code >= 8 ? 0x80000000u : 0u;
  const int low = code & 7;
  const uint32_t twice = low < 2 ? low : static_cast<uint32_t>(2 + (low & 1)) << (low / 2 - 1);
  int top = 0;  // position of the leading one
  while ((twice >> (top + 1)) != 0) top++;
  const int exponent = scale - 128 + top;
  if (twice == 0) return sign;
  if (exponent >= 128) return sign | 0x7f800000u;
  if (exponent < -126) return sign | twice << (scale - 128 + 149);  // subnormal: units of 2^-149
  return sign | static_cast<uint32_t>(exponent + 127) << 23 | (twice << (23 - top) & 0x7fffffu);
}

// All 32 bits, for a 16-way permutation of floats: 64 bytes a scale.
struct E2m1Floats {
  alignas(64) uint32_t bits[256][16];
  constexpr E2m1Floats() : bits() {
    for (int s = 0; s < 256; s++) {
      for (int c = 0; c < 16; c++) bits[s][c] = e2m1_bits(c, s);
    }
  }
};

// The upper two bytes, apart, for byte shuffles: 32 bytes a scale.
struct E2m1Bytes {
  struct Halves {
    uint8_t low[16], high[16];
  };
  alignas(32) Halves of[256];
  constexpr E2m1Bytes() : of() {
    for (int s = 0; s < 256; s++) {
      for (int c = 0; c < 16; c++) {
        of[s].low[c] = static_cast<uint8_t>(e2m1_bits(c, s) >> 16);
        of[s].high[c] = static_cast<uint8_t>(e2m1_bits(c, s) >> 24);
      }
    }
  }
};

// Twice the value, plus 12: the unsigned form that u8 x s8 products take.
constexpr uint8_t kE2m1Plus12[16] = {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0};

}  // namespace

#endif  // OSSRUN_CPU_SIMD_E2M1_H_
