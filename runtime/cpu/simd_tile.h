// A product of bf16 tiles in plain C++, as Intel's manual describes TDPBF16PS.
//
// A tile of inputs is 16 tokens x 32 columns. A tile of weights is turned: 16 pairs of columns x 16
// rows x 2. Their product adds, for each token and row, first the even columns in ascending order
// from zero and the odd ones likewise, then the two sums, then that to what the tile of sums has.
// Each addition rounds to nearest, ties to even, and subnormal inputs and results count as zero,
// whatever MXCSR says. A product of two bf16 is a float32 as it is, so whether the multiplication
// is fused with the addition makes no difference.
#ifndef OSSRUN_CPU_SIMD_TILE_H_
#define OSSRUN_CPU_SIMD_TILE_H_

#include <math.h>
#include <stdint.h>
#include <string.h>

namespace {

constexpr int kTileSide = 16;       // tokens or rows of a tile
constexpr int kTileBf16 = 32 * 16;  // elements of a tile of inputs or of weights
constexpr int kTwoSides = 2 * kTileSide;

struct PortableTile {
  static void shape(int, int) {}
  static void end() {}

  // y[tokens, rows] += x [tokens, 32 blocks] x weights [blocks, 2 of rows, 16 pairs, 16 rows, 2],
  // with at most 32 tokens and rows, those of the last shape(). ldy, ldx: from token to token.
  static void products(float* y, int64_t ldy, const uint16_t* x, int64_t ldx,
                       const uint16_t* weights, int64_t blocks, int tokens, int rows) {
    for (int t = 0; t < tokens; t++) {
      for (int r = 0; r < rows; r++) {
        float& sum = y[t * ldy + r];
        for (int64_t b = 0; b < blocks; b++) {
          const uint16_t* tile = weights + (2 * b + r / kTileSide) * kTileBf16;
          sum = add_product(sum, x + t * ldx + 32 * b, tile + r % kTileSide * 2);
        }
      }
    }
  }

  // sum + inputs[32] x one row of a tile of weights, whose pairs are 32 elements apart.
  static float add_product(float sum, const uint16_t* inputs, const uint16_t* weights) {
    float apart[2] = {0, 0};
    for (int i = 0; i < 32; i++) {
      const float w = value(weights[i / 2 * 2 * kTileSide + i % 2]);
      apart[i % 2] = normal(apart[i % 2] + normal(value(inputs[i]) * w));
    }
    return normal(normal(sum) + normal(apart[0] + apart[1]));
  }

 private:
  static float value(uint16_t half) {
    const uint32_t bits = static_cast<uint32_t>(half) << 16;
    float a;
    memcpy(&a, &bits, sizeof a);
    return normal(a);
  }
  static float normal(float a) { return fabsf(a) < 0x1p-126f ? copysignf(0.0f, a) : a; }
};

}  // namespace

#endif  // OSSRUN_CPU_SIMD_TILE_H_
