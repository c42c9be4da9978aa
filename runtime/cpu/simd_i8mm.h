// NEON with the 8-bit matrix product (FEAT_I8MM): simd_neon.h, but for batches of 8-bit products.
//
// smmla takes eight elements of two vectors of either side and adds the four products of the pairs
// to four int32. With two rows of weights on one side there are two ways to fill the other: two
// tokens, or, where inputs have 12 bits, the high and the low bytes of one. Whole numbers stay what
// they are and float32 sums are those of simd_neon.h, so both tables give the same bits; one token
// times MXFP4 has nothing to pair and stays with the dot product.
#ifndef OSSRUN_CPU_SIMD_I8MM_H_
#define OSSRUN_CPU_SIMD_I8MM_H_

#include "simd_neon.h"

namespace {

struct I8mm : Neon {
  static constexpr bool kTokenPairs = true;
  static constexpr int kDenseColumns = 8;
  static constexpr int kTileTokensDenseQ8 = 12;  // 24 integer sums + 2 weights + 1; sums in memory
  static constexpr int kTileTokensQ8 = 6;        // 12 integer sums + 12 sums + 4 weights + 1

  // a + the products of two rows (eight bytes each) with two others: row, row, then the second row.
  SIMD_INLINE I multiply_pairs(I a, I rows, I others) {
    return vmmlaq_s32(a, vreinterpretq_s8_s32(rows), vreinterpretq_s8_s32(others));
  }
  // Of two such sums, of rows 0 and 1 and of rows 2 and 3: what the four rows have with the first,
  // and with the second of the others.
  SIMD_INLINE I first_of_pairs(I a, I b) { return vuzp1q_s32(a, b); }
  SIMD_INLINE I second_of_pairs(I a, I b) { return vuzp2q_s32(a, b); }
  // Eight bytes of each of two rows from four of each of four: those of rows 0 and 1.
  SIMD_INLINE I upper_rows(I first, I last) { return vzip1q_s32(first, last); }
  SIMD_INLINE I lower_rows(I first, I last) { return vzip2q_s32(first, last); }

  // What q8_weights made, for multiply_pairs.
  SIMD_INLINE void pair_rows(I w[8]) {
    SIMD_UNROLL
    for (int i = 0; i < 8; i += 2) {
      const I first = w[i], last = w[i + 1];
      w[i] = upper_rows(first, last);
      w[i + 1] = lower_rows(first, last);
    }
  }
  SIMD_INLINE I two_tokens(const int8_t* a, const int8_t* b) {
    int64_t eight[2];
    memcpy(&eight[0], a, 8);
    memcpy(&eight[1], b, 8);
    return vreinterpretq_s32_s64(vcombine_s64(vcreate_s64(eight[0]), vcreate_s64(eight[1])));
  }

  struct Dense {
    I upper, lower;
  };
  SIMD_INLINE Dense load_dense(const uint8_t* p, const uint8_t*) {
    const I first = load_bytes(p), last = load_bytes(p + 4 * kQ8GroupRows);
    return {kept(upper_rows(first, last)), kept(lower_rows(first, last))};
  }
  typedef I DenseInput;
  SIMD_INLINE DenseInput dense_input(const int16_t* q) {
    return load_bytes(reinterpret_cast<const uint8_t*>(q));
  }
  struct DenseSum {
    I upper, lower;
  };
  SIMD_INLINE DenseSum dense_start(const float*) { return {zero_ints(), zero_ints()}; }
  SIMD_INLINE DenseSum dense_dot(const DenseSum& sum, const Dense& w, const DenseInput& q) {
    return {multiply_pairs(sum.upper, w.upper, q), multiply_pairs(sum.lower, w.lower, q)};
  }
  SIMD_INLINE F dense_end(const DenseSum& sum) {
    const I high = first_of_pairs(sum.upper, sum.lower),
            low = second_of_pairs(sum.upper, sum.lower);
    return to_float(vaddq_s32(vshlq_n_s32(high, 7), low));
  }
  // 32 whole numbers within -2047..2047: of every eight columns the high bytes, then the low ones.
  SIMD_INLINE void store_q12(int16_t* q, const F v[8]) {
    SIMD_UNROLL
    for (int i = 0; i < 8; i += 2, q += 8) {
      const Halves h = halves(v[i], v[i + 1]);
      memcpy(q, &h, sizeof h);
    }
  }

  // One round of eight independent products.
  static constexpr int64_t kPeakOperations = 8 * 32 * 2;
  SIMD_INLINE void peak_round(I a[8]) {
    const I one = vdupq_n_s32(0x01020304);
    SIMD_UNROLL
    for (int i = 0; i < 8; i++) a[i] = kept(multiply_pairs(a[i], one, one));
  }
};

}  // namespace

#endif  // OSSRUN_CPU_SIMD_I8MM_H_
