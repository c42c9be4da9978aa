// The 8-bit and 12-bit products of batches on tiles of bf16, with the bits of the table below.
//
// A whole number of 8 bits is a bf16 as it is, and one of 12 bits the sum of two: a multiple of 16
// and what is left. Weights without their scale are whole numbers too (MXFP4's once doubled). So a
// tile's 32 columns, which are a block, give the block's sum exactly, and all else is as in
// simd_q8.h: a float32 for each (row, token), which takes the blocks in ascending order with one
// fused multiply-add each. Hence few tokens can go through the vectors' kernels, and nobody sees
// which way a token went.
//
// Folding scales into the weights' exponents would save the multiply-adds, and change bits: sums of
// several blocks round. Then a token's result would depend on how many others are in the step.
//
// S is the vocabulary of simd_table.h at sixteen lanes, of which this needs little, and besides:
//   begin, end, products         a tile type: simd_tile.h
//   bf16_inputs(to, q)           a block of 8-bit inputs; of 12-bit ones their multiples of 16, and
//   bf16_inputs(to, low, q)      what is left
//   mx_tile(to, rows, offset)    16 rows' block as a tile of weights, doubled, in the order of
//                                quantize_q8
//   dense_tile(to, p, second)    two groups' block, times 1 / kDenseUnit, in that of quantize_q12
//   dense_inputs(to, q)          a block of 8-bit inputs in that order, times kDenseUnit
//   peak_round, kPeakOperations  products of registers only, and how much they do
//   below                        the table for few tokens
#ifndef OSSRUN_CPU_SIMD_MATMUL_TILES_H_
#define OSSRUN_CPU_SIMD_MATMUL_TILES_H_

namespace {

constexpr int64_t kTilesFrom = 24;  // tokens: a product computes 32, needed or not

// A whole number that bf16 has.
SIMD_INLINE uint16_t whole_bf16(int value) {
  const float a = static_cast<float>(value);
  uint32_t bits;
  memcpy(&bits, &a, sizeof bits);
  return static_cast<uint16_t>(bits >> 16);
}

// 32 rows of MXFP4 weights with 8-bit inputs.
template <class S>
struct MxTiles {
  typedef int8_t Q;
  static constexpr int kTerms = 1;      // tiles that make up an input
  static constexpr int kScaleStep = 2;  // of d, from block to block
  PanelRows<S, 2> at;

  MxTiles(const uint8_t* blocks, const uint8_t* scales, int64_t nb, int64_t r0, int64_t rows) {
    for (int64_t j = 0; j < 2 * S::kLanes; j++) {
      const int64_t r = r0 + smaller(j, rows - 1);
      at.blocks[j] = blocks + r * nb * 16;
      at.scales[j] = scales + r * nb;
    }
  }
  void weights(uint16_t* to, float* scales, int64_t b0, int64_t length) const {
    for (int r = 0; r < 2; r++) {
      const int64_t first = r * S::kLanes;
      turn_scales<S>(scales + first, 2 * S::kLanes, at.scales + first, b0, length);
      for (int64_t b = 0; b < length; b++) {
        S::mx_tile(to + (2 * b + r) * kTileBf16, at.blocks + first, (b0 + b) * 16);
      }
    }
  }
  static void input(uint16_t* to, int64_t, const int8_t* q) { S::bf16_inputs(to, q); }
};

// 32 rows of dense 8-bit weights with 12-bit inputs, or 8-bit ones.
template <class S, class Input>
struct DenseTiles {
  typedef Input Q;
  static constexpr int kTerms = sizeof(Q);
  static constexpr int kScaleStep = 3 - kTerms;
  const uint8_t* groups[4];  // the last one again where there are fewer

  DenseTiles(const uint8_t* w, int64_t nb, int64_t r0, int64_t rows) {
    for (int64_t i = 0; i < 4; i++) {
      const int64_t group = r0 / kQ8GroupRows + smaller(i, (rows - 1) / kQ8GroupRows);
      groups[i] = w + group * nb * kDenseBlockBytes;
    }
  }
  void weights(uint16_t* to, float* scales, int64_t b0, int64_t length) const {
    for (int64_t i = 0; i < 2 * length; i++, to += kTileBf16, scales += S::kLanes) {
      const int64_t at = (b0 + i / 2) * kDenseBlockBytes;
      const uint8_t *first = groups[i % 2 * 2] + at, *second = groups[i % 2 * 2 + 1] + at;
      S::store(scales, S::dense_scales(first, second));
      S::dense_tile(to, first + 2 * kQ8GroupRows, second + 2 * kQ8GroupRows);
    }
  }
  static void input(uint16_t* to, int64_t next, const int16_t* q) {
    S::bf16_inputs(to, to + next, q);
  }
  static void input(uint16_t* to, int64_t, const int8_t* q) { S::dense_inputs(to, q); }
};

// `rows` <= 32 rows from r0 on for n <= kQ8Tokens tokens; y, q and d are at the first of them.
template <class S, class W>
void panel_tiles(float* y, int64_t ldy, const typename W::Q* const* q, const float* const* d,
                 int64_t n, const W& w, int64_t nb, int64_t r0, int64_t rows,
                 const uint16_t* bias) {
  constexpr int64_t kBlocks = 4 / W::kTerms;
  constexpr int64_t kNext = kQ8Tokens * kMxBlock;  // from an input's term to the next
  constexpr int64_t kRows = 2 * S::kLanes;
  alignas(64) uint16_t inputs[kBlocks * W::kTerms * kNext];
  alignas(64) uint16_t weights[kBlocks * 2 * kTileBf16];
  alignas(64) float scales[kBlocks * kRows];
  alignas(64) float whole[4 * kTileSums];
  alignas(64) float sums[kQ8Tokens * kRows];
  memset(sums, 0, n * kRows * sizeof *sums);
  const int64_t padded = (n + kTileTokens32 - 1) / kTileTokens32 * kTileTokens32;
  for (int64_t i = 0; i < kBlocks * W::kTerms; i++) {
    memset(inputs + i * kNext + n * kMxBlock, 0, (padded - n) * kMxBlock * sizeof *inputs);
  }
  for (int64_t b0 = 0; b0 < nb; b0 += kBlocks) {
    const int64_t length = smaller(kBlocks, nb - b0);
    w.weights(weights, scales, b0, length);
    for (int64_t t = 0; t < n; t++) {
      for (int64_t b = 0; b < length; b++) {
        W::input(inputs + b * W::kTerms * kNext + t * kMxBlock, kNext, q[t] + (b0 + b) * kMxBlock);
      }
    }
    for (int64_t t0 = 0; t0 < n; t0 += kTileTokens32) {
      const int64_t tokens = smaller(kTileTokens32, n - t0);
      for (int64_t b = 0; b < length; b++) {
        S::products(whole, inputs + b * W::kTerms * kNext + t0 * kMxBlock, W::kTerms, kNext,
                    weights + 2 * b * kTileBf16);
        for (int64_t i = 0; i < tokens; i++) {
          const typename S::F size = S::set1(d[t0 + i][(b0 + b) * W::kScaleStep]);
          SIMD_UNROLL
          for (int r = 0; r < 2; r++) {
            const float* from = whole + (i / kTileSide * 2 + r) * kTileSums;
            float* to = sums + (t0 + i) * kRows + r * S::kLanes;
            const typename S::F scale = S::load(scales + b * kRows + r * S::kLanes);
            S::store(to, S::fma(S::load(from + i % kTileSide * S::kLanes), S::mul(scale, size),
                                S::load(to)));
          }
        }
      }
    }
  }
  for (int64_t t = 0; t < n; t++) {
    for (int64_t j = 0; j < rows; j++) {
      y[t * ldy + r0 + j] = with_bias(sums[t * kRows + j], bias, r0 + j);
    }
  }
}

template <class S>
void matmul_mxfp4_q8_tiles(float* y, int64_t ldy, const int8_t* const* q, const float* const* d,
                           int64_t n, const uint8_t* blocks, const uint8_t* scales, int64_t k,
                           int64_t r0, int64_t r1, const uint16_t* bias) {
  if (n < kTilesFrom) {
    return S::below->matmul_mxfp4_q8(y, ldy, q, d, n, blocks, scales, k, r0, r1, bias);
  }
  S::begin();
  for (int64_t r = r0; r < r1; r += 2 * S::kLanes) {
    const int64_t rows = smaller(2 * S::kLanes, r1 - r), nb = k / kMxBlock;
    const MxTiles<S> w(blocks, scales, nb, r, rows);
    for (int64_t t = 0; t < n; t += kQ8Tokens) {
      panel_tiles<S>(y + t * ldy, ldy, q + t, d + t, smaller(kQ8Tokens, n - t), w, nb, r, rows,
                     bias);
    }
  }
  S::end();
}

// Of int16_t or int8_t inputs: Kernels.matmul_q8 and matmul_q8_q8.
template <class S, class Q>
void matmul_dense_tiles(float* y, int64_t ldy, const Q* const* q, const float* const* d, int64_t n,
                        const uint8_t* w, int64_t k, int64_t r0, int64_t r1, const uint16_t* bias) {
  S::begin();
  for (int64_t r = r0; r < r1; r += 2 * S::kLanes) {
    const int64_t rows = smaller(2 * S::kLanes, r1 - r), nb = k / kMxBlock;
    const DenseTiles<S, Q> of(w, nb, r, rows);
    for (int64_t t = 0; t < n; t += kQ8Tokens) {
      panel_tiles<S>(y + t * ldy, ldy, q + t, d + t, smaller(kQ8Tokens, n - t), of, nb, r, rows,
                     bias);
    }
  }
  S::end();
}

template <class S>
void matmul_q8_tiles(float* y, int64_t ldy, const int16_t* const* q, const float* const* d,
                     int64_t n, const uint8_t* w, int64_t k, int64_t r0, int64_t r1,
                     const uint16_t* bias) {
  if (n < kTilesFrom) return S::below->matmul_q8(y, ldy, q, d, n, w, k, r0, r1, bias);
  matmul_dense_tiles<S>(y, ldy, q, d, n, w, k, r0, r1, bias);
}

template <class S>
void matmul_q8_q8_tiles(float* y, int64_t ldy, const int8_t* const* q, const float* const* d,
                        int64_t n, const uint8_t* w, int64_t k, int64_t r0, int64_t r1,
                        const uint16_t* bias) {
  if (n < kTilesFrom) return S::below->matmul_q8_q8(y, ldy, q, d, n, w, k, r0, r1, bias);
  matmul_dense_tiles<S>(y, ldy, q, d, n, w, k, r0, r1, bias);
}

template <class S>
int64_t multiply_peak_tiles(int64_t rounds) {
  S::begin();
  for (int64_t i = 0; i < rounds; i++) S::peak_round();
  S::end();
  return rounds * S::kPeakOperations;
}

// The table of S: the one below it but for three products, and the gauge of those.
template <class S>
Kernels with_tiles(const char* name, const Kernels* below) {
  S::below = below;
  Kernels table = *below;
  table.name = name;
  table.matmul_mxfp4_q8 = matmul_mxfp4_q8_tiles<S>;
  table.matmul_q8 = matmul_q8_tiles<S>;
  table.matmul_q8_q8 = matmul_q8_q8_tiles<S>;
  table.multiply_peak = multiply_peak_tiles<S>;
  return table;
}

// Whether S computes a product of whole numbers, the largest among them, as PortableTile does.
template <class S>
bool tiles_hold() {
  alignas(64) uint16_t inputs[4 * kTileBf16], weights[2 * kTileBf16];
  alignas(64) float want[4 * kTileSums], got[4 * kTileSums];
  uint32_t random = 1;
  const auto next = [&](int most) {
    random = random * 1664525 + 1013904223;
    return static_cast<int>(random >> 8) % (2 * most + 1) - most;
  };
  for (int i = 0; i < 2 * kTileBf16; i++) {
    inputs[i] = whole_bf16(16 * next(127));
    inputs[2 * kTileBf16 + i] = whole_bf16(next(15));
    weights[i] = whole_bf16(256 * next(128));
  }
  PortableTile::products(want, inputs, 2, 2 * kTileBf16, weights);
  memset(got, 0xff, sizeof got);
  S::begin();
  S::products(got, inputs, 2, 2 * kTileBf16, weights);
  S::end();
  return memcmp(got, want, sizeof got) == 0;
}

}  // namespace

#endif  // OSSRUN_CPU_SIMD_MATMUL_TILES_H_
