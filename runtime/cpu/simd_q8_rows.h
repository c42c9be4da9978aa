// 8-bit activations of few tokens with MXFP4 weights, which pass through whole vectors.
//
// A vector has kLanes / 4 blocks of one row, four lanes each. There are three ways through:
//   rows_q8      rows are multiplied as they lie, and the sums turned around instead of the
//                weights: S::sum_fours makes one lane of a block's four, for four rows, and
//                S::turn_fours gives each block a vector with a lane for each of kLanes rows. For
//                one or two tokens that is less to turn.
//   blocks_q8    weights are turned around as in simd_q8.h, but kLanes / 4 blocks at a time, which
//                takes a fourth of the loads
//   two_rows_q8  where S::kTwoRows: two vectors of rows turned around as in simd_q8.h, so that what
//                is loaded of a token meets both. On a Zen 3 two tokens take 0.86 of blocks_q8's
//                time, three and four 0.91.
//
// What must stay true: from there on all is as in simd_q8.h, with the same bits.
#ifndef OSSRUN_CPU_SIMD_Q8_ROWS_H_
#define OSSRUN_CPU_SIMD_Q8_ROWS_H_

namespace {

// Adds blocks [b0, b0 + length) to the sums of kLanes rows and T tokens. rows: the first blocks of
// the rows, all at the same distance from the one before; length: whole vectors of weights. scales:
// [length, kLanes], as turn_scales leaves them. `ahead`: where the next rows are.
template <class S, int T>
void rows_q8(float* sums, const uint8_t* const* rows, const float* scales, const int8_t* const* q,
             const float* const* d, int64_t b0, int64_t length, const uint8_t* ahead) {
  typedef typename S::F F;
  typedef typename S::I I;
  constexpr int kBlocks = S::kLanes / 4;
  const int64_t stride = rows[1] - rows[0];
  F sum[T];
  SIMD_UNROLL
  for (int t = 0; t < T; t++) sum[t] = S::load(sums + t * S::kLanes);
  for (int64_t b = b0; b < b0 + length; b += kBlocks, scales += kBlocks * S::kLanes) {
    SIMD_UNROLL
    for (int line = 0; line < 16 * kBlocks * S::kLanes; line += 64) prefetch(ahead + line);
    ahead += 16 * kBlocks * S::kLanes;
    I low[T], high[T];  // the activations of the bytes' lower and upper nibbles
    SIMD_UNROLL
    for (int t = 0; t < T; t++) {
      const uint8_t* at = reinterpret_cast<const uint8_t*>(q[t]) + b * kMxBlock;
      const I first = S::load_bytes(at), second = S::load_bytes(at + 4 * S::kLanes);
      low[t] = S::even_ints(first, second);
      high[t] = S::odd_ints(first, second);
    }
    I fours[T][kBlocks];
    const uint8_t* p = rows[0] + b * 16;
    SIMD_UNROLL
    for (int f = 0; f < kBlocks; f++, p += 4 * stride) {
      __asm__("" : "+r"(p));  // one pointer: GCC would keep kLanes of them
      I s[T][4];
      SIMD_UNROLL
      for (int r = 0; r < 4; r++) {
        I w[2];
        S::weights_of(w, S::load_bytes(p + r * stride));
        SIMD_UNROLL
        for (int t = 0; t < T; t++) {
          s[t][r] = S::dot4(S::dot4(S::zero_ints(), w[0], low[t]), w[1], high[t]);
        }
      }
      SIMD_UNROLL
      for (int t = 0; t < T; t++) fours[t][f] = S::sum_fours(s[t][0], s[t][1], s[t][2], s[t][3]);
    }
    SIMD_UNROLL
    for (int t = 0; t < T; t++) {
      I products[kBlocks];
      S::turn_fours(products, fours[t]);
      SIMD_UNROLL
      for (int i = 0; i < kBlocks; i++) {
        const float* block = d[t] + 2 * (b + i);
        const I start = S::block_end(S::block_start(block + 1));
        const F unit = S::unit(S::load(scales + i * S::kLanes), S::set1(block[0]));
        sum[t] = S::fma(S::to_float(S::add_ints(products[i], start)), unit, sum[t]);
      }
    }
  }
  SIMD_UNROLL
  for (int t = 0; t < T; t++) S::store(sums + t * S::kLanes, sum[t]);
}

// The same with weights turned around.
template <class S, int T>
void blocks_q8(float* sums, const uint8_t* const* rows, const float* scales, const int8_t* const* q,
               const float* const* d, int64_t b0, int64_t length, const uint8_t* ahead) {
  typedef typename S::F F;
  typedef typename S::I I;
  constexpr int kBlocks = S::kLanes / 4;
  const int64_t stride = rows[1] - rows[0];
  F sum[T];
  const int8_t* qt[T];
  const float* dt[T];
  SIMD_UNROLL
  for (int t = 0; t < T; t++) {
    sum[t] = S::load(sums + t * S::kLanes);
    qt[t] = q[t];
    dt[t] = d[t];
  }
  for (int64_t b = b0; b < b0 + length; b += kBlocks, scales += kBlocks * S::kLanes) {
    SIMD_UNROLL
    for (int line = 0; line < 16 * kBlocks * S::kLanes; line += 64) prefetch(ahead + line);
    ahead += 16 * kBlocks * S::kLanes;
    I dwords[4][kBlocks];
    const uint8_t* p = rows[0] + b * 16;
    SIMD_UNROLL
    for (int f = 0; f < kBlocks; f++, p += 4 * stride) {
      __asm__("" : "+r"(p));
      I four[4], turned[4];
      SIMD_UNROLL
      for (int r = 0; r < 4; r++) four[r] = S::load_bytes(p + r * stride);
      S::turn_dwords(turned, four);
      SIMD_UNROLL
      for (int j = 0; j < 4; j++) dwords[j][f] = turned[j];
    }
    I products[T][kBlocks];
    SIMD_UNROLL
    for (int t = 0; t < T; t++) {
      SIMD_UNROLL
      for (int i = 0; i < kBlocks; i++) products[t][i] = S::block_start(dt[t] + 2 * (b + i) + 1);
    }
    SIMD_UNROLL
    for (int j = 0; j < 4; j++) {
      I of[kBlocks];
      S::turn_fours(of, dwords[j]);
      SIMD_UNROLL
      for (int i = 0; i < kBlocks; i++) {
        I w[2];
        S::weights_of(w, of[i]);
        SIMD_UNROLL
        for (int t = 0; t < T; t++) {
          const int8_t* at = qt[t] + (b + i) * kMxBlock + 8 * j;
          products[t][i] =
              S::dot4(S::dot4(products[t][i], w[0], S::four(at)), w[1], S::four(at + 4));
        }
      }
    }
    SIMD_UNROLL
    for (int i = 0; i < kBlocks; i++) {
      const F scale = S::load(scales + i * S::kLanes);
      SIMD_UNROLL
      for (int t = 0; t < T; t++) {
        const F whole = S::to_float(S::block_end(products[t][i]));
        sum[t] = S::fma(whole, S::unit(scale, S::set1(dt[t][2 * (b + i)])), sum[t]);
      }
    }
  }
  SIMD_UNROLL
  for (int t = 0; t < T; t++) S::store(sums + t * S::kLanes, sum[t]);
}

// The same with two vectors of rows, a block at a time. rows: 2 * kLanes of them. sums: [T, 2]
// vectors. scales: [length, 2, kLanes].
template <class S, int T>
void two_rows_q8(float* sums, const uint8_t* const* rows, const float* scales,
                 const int8_t* const* q, const float* const* d, int64_t b0, int64_t length,
                 const uint8_t* ahead) {
  typedef typename S::F F;
  typedef typename S::I I;
  const int64_t stride = rows[1] - rows[0];
  const uint8_t* first = rows[0] + b0 * 16;
  const uint8_t* second = rows[S::kLanes] + b0 * 16;
  F sum[T][2];
  const int8_t* qt[T];
  const float* dt[T];
  SIMD_UNROLL
  for (int t = 0; t < T; t++) {
    sum[t][0] = S::load(sums + 2 * t * S::kLanes);
    sum[t][1] = S::load(sums + (2 * t + 1) * S::kLanes);
    qt[t] = q[t] + b0 * kMxBlock;
    dt[t] = d[t] + 2 * b0;
  }
  for (int64_t b = 0; b < length; b++, scales += 2 * S::kLanes, first += 16, second += 16) {
    SIMD_UNROLL
    for (int line = 0; line < 2 * S::kLanes * 16; line += 64) prefetch(ahead + line);
    ahead += 2 * S::kLanes * 16;
    I dwords[2][4];
    S::turn4(dwords[0], first, stride);
    S::turn4(dwords[1], second, stride);
    I products[T][2];
    SIMD_UNROLL
    for (int t = 0; t < T; t++) {
      products[t][0] = products[t][1] = S::block_start(dt[t] + 2 * b + 1);
    }
    SIMD_UNROLL
    for (int j = 0; j < 4; j++) {
      I w[2][2];
      S::weights_of(w[0], dwords[0][j]);
      S::weights_of(w[1], dwords[1][j]);
      SIMD_UNROLL
      for (int t = 0; t < T; t++) {
        const int8_t* at = qt[t] + b * kMxBlock + 8 * j;
        SIMD_UNROLL
        for (int half = 0; half < 2; half++) {
          const I four = S::four(at + 4 * half);
          products[t][0] = S::dot4(products[t][0], w[0][half], four);
          products[t][1] = S::dot4(products[t][1], w[1][half], four);
        }
      }
    }
    const F scale0 = S::load(scales), scale1 = S::load(scales + S::kLanes);
    SIMD_UNROLL
    for (int t = 0; t < T; t++) {
      const F size = S::set1(dt[t][2 * b]);
      sum[t][0] =
          S::fma(S::to_float(S::block_end(products[t][0])), S::unit(scale0, size), sum[t][0]);
      sum[t][1] =
          S::fma(S::to_float(S::block_end(products[t][1])), S::unit(scale1, size), sum[t][1]);
    }
  }
  SIMD_UNROLL
  for (int t = 0; t < T; t++) {
    S::store(sums + 2 * t * S::kLanes, sum[t][0]);
    S::store(sums + (2 * t + 1) * S::kLanes, sum[t][1]);
  }
}

// For R vectors of rows the fastest of these for a number of tokens known only at run time,
// 1 <= n <= T.
template <class S, int R, int T>
struct FewQ8Of {
  static void run(int64_t n, float* sums, const uint8_t* const* rows, const float* scales,
                  const int8_t* const* q, const float* const* d, int64_t b0, int64_t length,
                  const uint8_t* ahead) {
    if (n < T) return FewQ8Of<S, R, T - 1>::run(n, sums, rows, scales, q, d, b0, length, ahead);
    if constexpr (R == 2) {
      two_rows_q8<S, T>(sums, rows, scales, q, d, b0, length, ahead);
    } else if constexpr (T <= S::kRowTokens) {
      rows_q8<S, T>(sums, rows, scales, q, d, b0, length, ahead);
    } else {
      blocks_q8<S, T>(sums, rows, scales, q, d, b0, length, ahead);
    }
  }
};
template <class S, int R>
struct FewQ8Of<S, R, 0> {
  static void run(int64_t, float*, const uint8_t* const*, const float*, const int8_t* const*,
                  const float* const*, int64_t, int64_t, const uint8_t*) {}
};

}  // namespace

#endif  // OSSRUN_CPU_SIMD_Q8_ROWS_H_
