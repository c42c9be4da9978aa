// Products of prompts' rows, rounded to bf16, with weights unpacked to bf16, on tiles.
//
// An MXFP4 weight with its scale is a bf16 number, so weights are exact; dense 8-bit ones would
// round once more, which q and k do not bear. 32 rows x 480 columns are unpacked at a time, into
// the first cache; then all tokens pass over them, 32 at a time.
//
// What must stay true, for batch invariance: the sum of (row, token) begins with what y holds and
// takes the blocks of 32 columns in ascending order, as one product of tiles each (simd_tile.h).
// Between panels it waits in y, to the bit.
//
// S is the vocabulary of simd_table.h at sixteen lanes, of which this needs little, and besides:
//   shape(tokens, rows), products, end  as PortableTile's
//   mx_tile(to, rows, offset, scales)   16 rows' block as a tile of weights
//   peak_round, kPeakOperations         products of registers only, and how much they do
#ifndef OSSRUN_CPU_SIMD_MATMUL_TILES_H_
#define OSSRUN_CPU_SIMD_MATMUL_TILES_H_

namespace {

constexpr int64_t kPanelBlocks = 15;  // 2880 = 6 x 480

// Addresses of 32 rows of a weight; the last one again where there are fewer.
struct RowsAt {
  const uint8_t* row[kTwoSides];
  RowsAt(const void* w, int64_t row_bytes, int64_t r0, int64_t rows) {
    for (int64_t j = 0; j < kTwoSides; j++) {
      row[j] = static_cast<const uint8_t*>(w) + (r0 + smaller(j, rows - 1)) * row_bytes;
    }
  }
  // Fetches the columns behind those of a panel.
  void fetch(int64_t offset, int64_t bytes) const {
    for (const uint8_t* p : row) {
      for (int64_t line = 0; line < bytes; line += 64) prefetch(p + offset + line);
    }
  }
};

// 16 rows' block as a tile of weights, whatever their scales are.
inline void any_mx_tile(uint16_t* to, const uint8_t* const rows[16], int64_t offset,
                        const uint8_t scales[16]) {
  for (int r = 0; r < kTileSide; r++) {
    for (int i = 0; i < kMxBlock; i++) {
      const int code = rows[r][offset + i / 2] >> i % 2 * 4 & 15;
      to[i / 2 * kTwoSides + 2 * r + i % 2] =
          static_cast<uint16_t>(e2m1_bits(code, scales[r]) >> 16);
    }
  }
}

// Each has unpack(to, r0, rows, b0, length): `rows` <= 32 rows from r0 on of blocks
// [b0, b0 + length), as [length, 2, 16 pairs, 16 rows, 2].
template <class S>
struct MxPanel {
  const uint8_t* blocks;
  const uint8_t* scales;
  int64_t nb;

  void unpack(uint16_t* to, int64_t r0, int64_t rows, int64_t b0, int64_t length) const {
    const RowsAt block(blocks, nb * 16, r0, rows), scale(scales, nb, r0, rows);
    block.fetch((b0 + length) * 16, length * 16);
    for (int64_t b = 0; b < length; b++) {
      uint8_t s[kTwoSides];
      for (int j = 0; j < kTwoSides; j++) s[j] = scale.row[j][b0 + b];
      for (int side = 0; side < 2; side++, to += kTileBf16) {
        const int first = side * kTileSide;
        S::mx_tile(to, block.row + first, (b0 + b) * 16, s + first);
      }
    }
  }
};

template <class S>
struct Bf16Panel {
  const uint16_t* w;
  int64_t k;

  void unpack(uint16_t* to, int64_t r0, int64_t rows, int64_t b0, int64_t length) const {
    const RowsAt at(w, k * 2, r0, rows);
    at.fetch((b0 + length) * 64, length * 64);
    for (int64_t b = 2 * b0; b < 2 * (b0 + length); b++) {
      for (int64_t offset = b / 2 * 64; offset < (b / 2 + 1) * 64; offset += 16) {
        typename S::I pairs[4];
        S::turn4(pairs, at.row + b % 2 * kTileSide, offset);
        for (int i = 0; i < 4; i++, to += kTwoSides) {
          S::store_bytes(reinterpret_cast<uint8_t*>(to), pairs[i]);
        }
      }
    }
  }
};

// y[t*ldy + r] += x[t] * row r + bias.
template <class S, class W>
void matmul_tiles(float* y, int64_t ldy, const uint16_t* x, int64_t ldx, int64_t n, const W& w,
                  int64_t k, int64_t r0, int64_t r1, const uint16_t* bias) {
  alignas(64) uint16_t panel[kPanelBlocks * 2 * kTileBf16];
  const int64_t nb = k / kMxBlock;
  int64_t shape[2] = {};
  for (int64_t r = r0; r < r1; r += kTwoSides) {
    const int64_t rows = smaller(kTwoSides, r1 - r);
    for (int64_t t = 0; bias != nullptr && t < n; t++) {
      for (int64_t j = r; j < r + rows; j++) y[t * ldy + j] += bf16_value(bias + j);
    }
    for (int64_t b = 0; b < nb; b += kPanelBlocks) {
      const int64_t length = smaller(kPanelBlocks, nb - b);
      w.unpack(panel, r, rows, b, length);
      for (int64_t t = 0; t < n; t += kTwoSides) {
        const int64_t tokens = smaller(kTwoSides, n - t);
        if (shape[0] != tokens || shape[1] != rows) {
          shape[0] = tokens, shape[1] = rows;
          S::shape(static_cast<int>(tokens), static_cast<int>(rows));
        }
        S::products(y + t * ldy + r, ldy, x + t * ldx + b * kMxBlock, ldx, panel, length,
                    static_cast<int>(tokens), static_cast<int>(rows));
      }
    }
  }
  if (shape[0] > 0) S::end();
}

template <class S>
void matmul_mxfp4_tiles(float* y, int64_t ldy, const uint16_t* x, int64_t ldx, int64_t n,
                        const uint8_t* blocks, const uint8_t* scales, int64_t k, int64_t r0,
                        int64_t r1, const uint16_t* bias) {
  const MxPanel<S> w{blocks, scales, k / kMxBlock};
  matmul_tiles<S>(y, ldy, x, ldx, n, w, k, r0, r1, bias);
}

template <class S>
void matmul_bf16_tiles(float* y, int64_t ldy, const uint16_t* x, int64_t ldx, int64_t n,
                       const uint16_t* w, int64_t k, int64_t r0, int64_t r1, const uint16_t* bias) {
  matmul_tiles<S>(y, ldy, x, ldx, n, Bf16Panel<S>{w, k}, k, r0, r1, bias);
}

template <class S>
int64_t multiply_peak_tiles(int64_t rounds) {
  S::shape(kTwoSides, kTwoSides);
  for (int64_t i = 0; i < rounds; i++) S::peak_round();
  S::end();
  return rounds * S::kPeakOperations;
}

// The table of S: the one below it, products of tiles, and the gauge of those.
template <class S>
Kernels with_tiles(const char* name, const Kernels* below) {
  Kernels table = *below;
  table.name = name;
  table.matmul_mxfp4_tiles = matmul_mxfp4_tiles<S>;
  table.matmul_bf16_tiles = matmul_bf16_tiles<S>;
  table.multiply_peak = multiply_peak_tiles<S>;
  return table;
}

// Whether S computes a product of whole numbers as PortableTile does. Sums of whole numbers are
// exact in any order, which Intel's manual leaves to the processor.
template <class S>
bool tiles_hold() {
  alignas(64) uint16_t inputs[2 * kTileBf16], weights[2 * kTileBf16];
  float want[kTwoSides * kTwoSides] = {}, got[kTwoSides * kTwoSides] = {};
  uint32_t random = 1;
  const auto next = [&] {
    random = random * 1664525 + 1013904223;
    const float a = static_cast<float>(static_cast<int>(random >> 8) % 255 - 127);
    uint32_t bits;
    memcpy(&bits, &a, sizeof bits);
    return static_cast<uint16_t>(bits >> 16);  // bf16 has every whole number to 256
  };
  for (uint16_t& a : inputs) a = next();
  for (uint16_t& a : weights) a = next();
  constexpr int kTokens = kTwoSides - 3, kRows = kTwoSides - 5;
  PortableTile::products(want, kTwoSides, inputs, 32, weights, 1, kTokens, kRows);
  S::shape(kTokens, kRows);
  S::products(got, kTwoSides, inputs, 32, weights, 1, kTokens, kRows);
  S::end();
  return memcmp(got, want, sizeof got) == 0;
}

}  // namespace

#endif  // OSSRUN_CPU_SIMD_MATMUL_TILES_H_
