// One product of bf16 tiles in plain C++, as Intel's manual describes TDPBF16PS.
//
// A tile of inputs is 16 tokens x 32 columns. A tile of weights is turned: 16 pairs of columns x 16
// rows x 2. Their product adds, for each token and row, first the even columns in ascending order
// from zero and the odd ones likewise, then the two sums, then that to what the tile of sums has.
// Each addition rounds to nearest, ties to even, and subnormal inputs and results count as zero,
// whatever MXCSR says. A product of two bf16 is a float32 as it is, so whether the multiplication
// is fused with the addition makes no difference.
//
// The kernels of simd_matmul_tiles.h hand in whole numbers only, whose sums float32 holds in any
// order; so of all this they rely on nothing but exact products and sums.
#ifndef OSSRUN_CPU_SIMD_TILE_H_
#define OSSRUN_CPU_SIMD_TILE_H_

#include <math.h>
#include <stdint.h>
#include <string.h>

namespace {

constexpr int kTileSide = 16;       // tokens or rows of a tile
constexpr int kTileBf16 = 32 * 16;  // elements of a tile of inputs or of weights
constexpr int kTileSums = 16 * 16;  // of a tile of sums
constexpr int kTileTokens32 = 32;   // tokens of a product: two tiles; and so many rows

struct PortableTile {
  static void begin() {}
  static void end() {}

  // sums = the products of two tiles of inputs, `apart` elements behind each other, with two of
  // weights, over `terms` pairs of inputs that are `next` elements apart. sums: [2 of tokens, 2 of
  // rows, 16, 16].
  static void products(float* sums, const uint16_t* inputs, int terms, int64_t next,
                       const uint16_t* weights) {
    memset(sums, 0, 4 * kTileSums * sizeof *sums);
    for (int term = 0; term < terms; term++, inputs += next) {
      for (int tile = 0; tile < 4; tile++) {
        add_product(sums + tile * kTileSums, inputs + tile / 2 * kTileBf16,
                    weights + tile % 2 * kTileBf16);
      }
    }
  }

  // sums [16 tokens, 16 rows] += inputs [16 tokens, 16, 2] x weights [16, 16 rows, 2].
  static void add_product(float* sums, const uint16_t* inputs, const uint16_t* weights) {
    for (int t = 0; t < kTileSide; t++) {
      for (int r = 0; r < kTileSide; r++) {
        float apart[2] = {0, 0};
        for (int i = 0; i < kTileBf16 / kTileSide; i++) {
          const float w = value(weights[(i / 2 * kTileSide + r) * 2 + i % 2]);
          apart[i % 2] = normal(apart[i % 2] + normal(value(inputs[t * 32 + i]) * w));
        }
        float& sum = sums[t * kTileSide + r];
        sum = normal(normal(sum) + normal(apart[0] + apart[1]));
      }
    }
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
