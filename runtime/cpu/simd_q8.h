// 8-bit activations: quantisation, and their product with MXFP4 weights in integers.
//
// A lane is a row: kLanes rows of a block are turned around so that one vector holds four elements
// of each of them, as unsigned bytes 2 e2m1 + 12, and every token multiplies the same vectors with
// four of its own bytes in all lanes. The 12 comes off as 12 * sum(q) of the block, with which the
// sums begin: quantize_q8 leaves it beside the scale, in the form that S::block_start wants.
//   d[2b] = scale of block b, d[2b+1] = S's bits of -12 * sum of its q
//
// Few tokens go another way where S::kRowTokens is not 0: simd_q8_rows.h.
//
// A batch goes in tiles of kRowVectors vectors of rows times kTileTokensQ8 tokens: each weight that
// is loaded meets all tokens of the tile, each activation all its rows. Where an instruction
// multiplies two rows with two tokens (S::kTokenPairs), the vectors hold eight elements of two rows
// and tokens go in pairs; what comes out are the same whole numbers.
//
// What must stay true, for batch invariance: the sum of (row, token) is one lane that takes the
// blocks in ascending order, one fused multiply-add each, of an exact integer.
#ifndef OSSRUN_CPU_SIMD_Q8_H_
#define OSSRUN_CPU_SIMD_Q8_H_

#include "simd_q8_rows.h"

namespace {

constexpr int64_t kQ8Blocks = 16;      // blocks of a row group that are turned around at a time
constexpr int64_t kQ8BlockBytes = 32;  // of one row: one byte an element
constexpr int64_t kQ8Tokens = 128;     // tokens whose sums wait on the stack
constexpr int kQ8Stream = 4;  // up to here tokens are better served without turning on the stack

// The scale with the least squared error of kQ8Scales, from `plain` up. Above it nothing is cut
// off, and most blocks have one that suits their other values better.
template <class S, int V>
SIMD_INLINE float best_q8_scale(const typename S::F v[V], float plain) {
  typedef typename S::F F;
  float best = plain, least = 0;
  SIMD_UNROLL
  for (int c = 0; c < kQ8Scales; c += 4) {
    float scale[4], lost[4];
    F sums[4];
    SIMD_UNROLL
    for (int i = 0; i < 4; i++) {
      scale[i] = plain * (1 + kQ8ScaleStep * static_cast<float>(c + i));
      const F inverse = S::set1(1 / scale[i]);
      sums[i] = S::zero();
      SIMD_UNROLL
      for (int j = 0; j < V; j++) {
        const F whole = S::mul(v[j], inverse);
        const F rest = S::sub(whole, S::nearest(whole));
        sums[i] = S::fma(rest, rest, sums[i]);
      }
    }
    S::sum4(lost, sums[0], sums[1], sums[2], sums[3]);
    SIMD_UNROLL
    for (int i = 0; i < 4; i++) {
      const float of_scale = lost[i] * scale[i] * scale[i];
      if (c + i == 0 || of_scale < least) {
        least = of_scale;
        best = scale[i];
      }
    }
  }
  return best;
}

template <class S>
void quantize_q8(int8_t* q, float* d, const float* x, int64_t k) {
  typedef typename S::F F;
  constexpr int kVectors = kMxBlock / S::kLanes;
  for (int64_t b = 0; b < k / kMxBlock; b++, x += kMxBlock, q += kMxBlock, d += 2) {
    F v[kVectors];
    F largest = S::zero();
    SIMD_UNROLL
    for (int i = 0; i < kVectors; i++) {
      v[i] = S::load(x + i * S::kLanes);
      largest = S::max(largest, S::abs(v[i]));
    }
    const float plain = S::max_lane(largest) / 127.0f;
    if (!(plain >= kLeastQ8Scale)) {
      d[0] = 1;  // a number that S::unit takes
      d[1] = 0;
      memset(q, 0, kMxBlock);
      continue;
    }
    const float scale = best_q8_scale<S, kVectors>(v, plain);
    SIMD_UNROLL
    for (int i = 0; i < kVectors; i++) {
      v[i] = S::nearest(S::div(v[i], S::set1(scale)));
      v[i] = S::max(S::min(v[i], S::set1(127.0f)), S::set1(-127.0f));
    }
    d[0] = scale;
    S::store_q8(q, v);
    S::store_block_start(d + 1, q);
  }
}

// The whole numbers of block b for R vectors of rows and T tokens. w: [8, R, kLanes, 4] bytes.
template <class S, int R, int T>
SIMD_INLINE void block_q8(typename S::I products[T][R], const uint8_t* w, const int8_t* const q[T],
                          const float* const d[T], int64_t b) {
  SIMD_UNROLL
  for (int t = 0; t < T; t++) {
    SIMD_UNROLL
    for (int r = 0; r < R; r++) products[t][r] = S::block_start(d[t] + 2 * b + 1);
  }
  SIMD_UNROLL
  for (int i = 0; i < 8; i++, w += 4 * R * S::kLanes) {
    typename S::I wi[R];
    SIMD_UNROLL
    for (int r = 0; r < R; r++) wi[r] = S::kept(S::load_bytes(w + r * 4 * S::kLanes));
    SIMD_UNROLL
    for (int t = 0; t < T; t++) {
      const typename S::I four = S::four(q[t] + kMxBlock * b + 4 * i);
      SIMD_UNROLL
      for (int r = 0; r < R; r++) products[t][r] = S::kept(S::dot4(products[t][r], wi[r], four));
    }
  }
  SIMD_UNROLL
  for (int t = 0; t < T; t++) {
    SIMD_UNROLL
    for (int r = 0; r < R; r++) products[t][r] = S::block_end(products[t][r]);
  }
}

// The same where an instruction multiplies two rows with two tokens. w: [4, 2, R, kLanes / 2, 8]
// bytes. A token without a neighbour goes with itself.
template <class S, int R, int T>
SIMD_INLINE void block_q8_pairs(typename S::I products[T][R], const uint8_t* w,
                                const int8_t* const q[T], int64_t b) {
  typedef typename S::I I;
  constexpr int kPairs = (T + 1) / 2;
  I sums[kPairs][R][2];
  SIMD_UNROLL
  for (int p = 0; p < kPairs; p++) {
    SIMD_UNROLL
    for (int r = 0; r < R; r++) sums[p][r][0] = sums[p][r][1] = S::zero_ints();
  }
  SIMD_UNROLL
  for (int i = 0; i < 4; i++, w += 8 * R * S::kLanes) {
    I wi[2][R];
    SIMD_UNROLL
    for (int r = 0; r < R; r++) {
      wi[0][r] = S::kept(S::load_bytes(w + r * 4 * S::kLanes));
      wi[1][r] = S::kept(S::load_bytes(w + (R + r) * 4 * S::kLanes));
    }
    SIMD_UNROLL
    for (int p = 0; p < kPairs; p++) {
      const int64_t at = kMxBlock * b + 8 * i;
      const I two = S::two_tokens(q[2 * p] + at, q[2 * p + 1 < T ? 2 * p + 1 : 2 * p] + at);
      SIMD_UNROLL
      for (int r = 0; r < R; r++) {
        sums[p][r][0] = S::multiply_pairs(sums[p][r][0], wi[0][r], two);
        sums[p][r][1] = S::multiply_pairs(sums[p][r][1], wi[1][r], two);
      }
    }
  }
  SIMD_UNROLL
  for (int t = 0; t < T; t++) {
    SIMD_UNROLL
    for (int r = 0; r < R; r++) {
      const I first = sums[t / 2][r][0], last = sums[t / 2][r][1];
      products[t][r] =
          t % 2 == 0 ? S::first_of_pairs(first, last) : S::second_of_pairs(first, last);
    }
  }
}

// Adds `blocks` blocks to the sums of R vectors of rows and T tokens. w: as block_q8 (or
// block_q8_pairs) wants them, block after block. scales: [blocks, R, kLanes], as turn_scales leaves
// them. q, d: T pointers each to the first block. sums: [T, R] vectors.
template <class S, int R, int T>
void tile_q8(float* sums, const uint8_t* w, const float* scales, const int8_t* const* q,
             const float* const* d, int64_t blocks) {
  typedef typename S::F F;
  F s[T][R];
  const int8_t* qt[T];
  const float* dt[T];
  SIMD_UNROLL
  for (int t = 0; t < T; t++) {
    qt[t] = q[t];
    dt[t] = d[t];
    SIMD_UNROLL
    for (int r = 0; r < R; r++) s[t][r] = S::load(sums + (t * R + r) * S::kLanes);
  }
  for (int64_t b = 0; b < blocks; b++, scales += R * S::kLanes) {
    typename S::I products[T][R];
    if constexpr (S::kTokenPairs) {
      block_q8_pairs<S, R, T>(products, w, qt, b);
    } else {
      block_q8<S, R, T>(products, w, qt, dt, b);
    }
    w += kQ8BlockBytes * R * S::kLanes;
    SIMD_UNROLL
    for (int t = 0; t < T; t++) {
      const F size = S::set1(dt[t][2 * b]);
      SIMD_UNROLL
      for (int r = 0; r < R; r++) {
        const F unit = S::unit(S::load(scales + r * S::kLanes), size);
        s[t][r] = S::fma(S::to_float(products[t][r]), unit, s[t][r]);
      }
    }
  }
  SIMD_UNROLL
  for (int t = 0; t < T; t++) {
    SIMD_UNROLL
    for (int r = 0; r < R; r++) S::store(sums + (t * R + r) * S::kLanes, s[t][r]);
  }
}

// tile_q8 for a number of tokens known only at run time, 1 <= n <= T.
template <class S, int R, int T>
struct TileQ8Of {
  static void run(int64_t n, float* sums, const uint8_t* w, const float* scales,
                  const int8_t* const* q, const float* const* d, int64_t blocks) {
    if (n == T) return tile_q8<S, R, T>(sums, w, scales, q, d, blocks);
    TileQ8Of<S, R, T - 1>::run(n, sums, w, scales, q, d, blocks);
  }
};
template <class S, int R>
struct TileQ8Of<S, R, 0> {
  static void run(int64_t, float*, const uint8_t*, const float*, const int8_t* const*,
                  const float* const*, int64_t) {}
};

// The rows of a panel: R vectors of them, the last one repeated where there are fewer.
template <class S, int R>
struct PanelRows {
  const uint8_t* blocks[R * S::kLanes];
  const uint8_t* scales[R * S::kLanes];
};

// The scales of blocks [b0, b0 + length) of kLanes rows as S::unit takes them, each block's
// `stride` floats after the one before.
template <class S>
void turn_scales(float* out, int64_t stride, const uint8_t* const* rows, int64_t b0,
                 int64_t length) {
  uint8_t bytes[kQ8Blocks * S::kLanes];
  int64_t b = 0;
  for (; b + 8 <= length; b += 8) S::turn8(bytes + b * S::kLanes, rows, b0 + b);
  for (; b < length; b++) {
    for (int j = 0; j < S::kLanes; j++) bytes[b * S::kLanes + j] = rows[j][b0 + b];
  }
  for (b = 0; b < length; b++) S::store(out + b * stride, S::scales(bytes + b * S::kLanes));
}

// T tokens, few enough that the turned weights stay in registers. `ahead`: where the next rows are.
template <class S, int T>
void stream_q8(float* sums, const uint8_t* const* rows, const float* scales, const int8_t* const* q,
               const float* const* d, int64_t b0, int64_t length, const uint8_t* ahead) {
  typedef typename S::F F;
  F sum[T];
  const int8_t* qt[T];
  const float* dt[T];
  SIMD_UNROLL
  for (int t = 0; t < T; t++) {
    sum[t] = S::load(sums + t * S::kLanes);
    qt[t] = q[t] + b0 * kMxBlock;
    dt[t] = d[t] + b0 * 2;
  }
  for (int64_t b = 0; b < length; b++, scales += S::kLanes) {
    SIMD_UNROLL
    for (int line = 0; line < S::kLanes * 16; line += 64) prefetch(ahead + line);
    ahead += S::kLanes * 16;
    typename S::I w[8];
    S::q8_weights(w, rows, (b0 + b) * 16);
    const F scale = S::load(scales);
    SIMD_UNROLL
    for (int t = 0; t < T; t++) {
      typename S::I products = S::block_start(dt[t] + 2 * b + 1);
      SIMD_UNROLL
      for (int i = 0; i < 8; i++) {
        products = S::kept(S::dot4(products, w[i], S::four(qt[t] + kMxBlock * b + 4 * i)));
      }
      const F whole = S::to_float(S::block_end(products));
      sum[t] = S::fma(whole, S::unit(scale, S::set1(dt[t][2 * b])), sum[t]);
    }
  }
  SIMD_UNROLL
  for (int t = 0; t < T; t++) S::store(sums + t * S::kLanes, sum[t]);
}

// stream_q8 for a number of tokens known only at run time, 1 <= n <= T.
template <class S, int T>
struct StreamQ8Of {
  static void run(int64_t n, float* sums, const uint8_t* const* rows, const float* scales,
                  const int8_t* const* q, const float* const* d, int64_t b0, int64_t length,
                  const uint8_t* ahead) {
    if (n == T) return stream_q8<S, T>(sums, rows, scales, q, d, b0, length, ahead);
    StreamQ8Of<S, T - 1>::run(n, sums, rows, scales, q, d, b0, length, ahead);
  }
};
template <class S>
struct StreamQ8Of<S, 0> {
  static void run(int64_t, float*, const uint8_t* const*, const float*, const int8_t* const*,
                  const float* const*, int64_t, int64_t, const uint8_t*) {}
};

// A batch: the turned weights of `length` blocks serve all n tokens. What the next rows have in
// [ahead, ahead + length * 16 * rows of a panel) is fetched meanwhile, a little with every tile.
template <class S, int R>
void batch_q8(float* sums, const PanelRows<S, R>& rows, const float* scales, const int8_t* const* q,
              const float* const* d, int64_t n, int64_t b0, int64_t length, const uint8_t* ahead) {
  alignas(64) uint8_t turned[kQ8Blocks * kQ8BlockBytes * R * S::kLanes];
  for (int64_t b = 0; b < length; b++) {
    for (int r = 0; r < R; r++) {
      typename S::I w[8];
      S::q8_weights(w, rows.blocks + r * S::kLanes, (b0 + b) * 16);
      if constexpr (S::kTokenPairs) S::pair_rows(w);
      SIMD_UNROLL
      for (int i = 0; i < 8; i++) {
        S::store_bytes(turned + ((8 * b + i) * R + r) * 4 * S::kLanes, w[i]);
      }
    }
  }
  // As even as possible: 4 tokens are 2 + 2, not 3 + 1.
  const int64_t tiles = (n + S::kTileTokensQ8 - 1) / S::kTileTokensQ8;
  const int64_t lines = length * R * S::kLanes * 16 / 64;
  for (int64_t i = 0, t = 0; i < tiles; i++) {
    for (int64_t line = i * lines / tiles; line < (i + 1) * lines / tiles; line++) {
      prefetch(ahead + 64 * line);
    }
    const int64_t next = (i + 1) * n / tiles;
    const int8_t* qt[S::kTileTokensQ8];
    const float* dt[S::kTileTokensQ8];
    for (int64_t u = t; u < next; u++) {
      qt[u - t] = q[u] + b0 * kMxBlock;
      dt[u - t] = d[u] + b0 * 2;
    }
    TileQ8Of<S, R, S::kTileTokensQ8>::run(next - t, sums + t * R * S::kLanes, turned, scales, qt,
                                          dt, length);
    t = next;
  }
}

// Rows [r0, r0 + rows) with rows <= R * kLanes, for n <= kQ8Tokens tokens; y, q and d are at the
// first of them.
template <class S, int R>
void panel_q8(float* y, int64_t ldy, const int8_t* const* q, const float* const* d, int64_t n,
              const uint8_t* blocks, const uint8_t* scales, int64_t nb, int64_t r0, int64_t rows,
              const uint16_t* bias) {
  alignas(64) float powers[kQ8Blocks * R * S::kLanes];
  alignas(64) float sums[kQ8Tokens * R * S::kLanes];
  PanelRows<S, R> at;
  for (int64_t j = 0; j < R * S::kLanes; j++) {
    const int64_t r = r0 + smaller(j, rows - 1);
    at.blocks[j] = blocks + r * nb * 16;
    at.scales[j] = scales + r * nb;
  }
  memset(sums, 0, n * R * S::kLanes * sizeof *sums);
  const uint8_t* ahead = blocks + (r0 + R * S::kLanes) * nb * 16;
  for (int64_t line = 0; line < R * S::kLanes * nb; line += 64) {
    prefetch(scales + (r0 + R * S::kLanes) * nb + line);
  }
  for (int64_t b0 = 0; b0 < nb; b0 += kQ8Blocks) {
    const int64_t length = smaller(kQ8Blocks, nb - b0);
    for (int r = 0; r < R; r++) {
      turn_scales<S>(powers + r * S::kLanes, R * S::kLanes, at.scales + r * S::kLanes, b0, length);
    }
    constexpr bool kFew = R == 1 || S::kTwoRows;
    if (kFew && n <= kQ8Stream && (R == 1 || rows == R * S::kLanes)) {
      int64_t done = 0;
      if constexpr (kFew && S::kRowTokens > 0) {
        if (rows == R * S::kLanes) {
          done = R == 1 ? length / (S::kLanes / 4) * (S::kLanes / 4) : length;
          FewQ8Of<S, R, kQ8Stream>::run(n, sums, at.blocks, powers, q, d, b0, done,
                                        ahead + b0 * R * S::kLanes * 16);
        }
      }
      if (done < length) {
        StreamQ8Of<S, kQ8Stream>::run(n, sums, at.blocks, powers + done * S::kLanes, q, d,
                                      b0 + done, length - done,
                                      ahead + (b0 + done) * S::kLanes * 16);
      }
    } else {
      batch_q8<S, R>(sums, at, powers, q, d, n, b0, length, ahead + b0 * R * S::kLanes * 16);
    }
  }
  for (int64_t t = 0; t < n; t++) {
    for (int64_t j = 0; j < rows; j++) {
      y[t * ldy + r0 + j] = with_bias(sums[t * R * S::kLanes + j], bias, r0 + j);
    }
  }
}

template <class S>
void matmul_mxfp4_q8(float* y, int64_t ldy, const int8_t* const* q, const float* const* d,
                     int64_t n, const uint8_t* blocks, const uint8_t* scales, int64_t k, int64_t r0,
                     int64_t r1, const uint16_t* bias) {
  const int64_t nb = k / kMxBlock;
  if constexpr (S::kUsualScales) {
    if (!S::usual_scales(scales + r0 * nb, (r1 - r0) * nb)) {
      typedef typename S::AnyScales Any;
      return matmul_mxfp4_q8<Any>(y, ldy, q, d, n, blocks, scales, k, r0, r1, bias);
    }
  }
  for (int64_t r = r0; r < r1;) {
    const bool wide = r1 - r > S::kLanes && n > (S::kTwoRows ? S::kRowTokens : kQ8Stream);
    const int64_t rows = smaller((wide ? S::kRowVectors : 1) * S::kLanes, r1 - r);
    for (int64_t t = 0; t < n; t += kQ8Tokens) {
      const int64_t tokens = smaller(kQ8Tokens, n - t);
      float* to = y + t * ldy;
      if (wide) {
        panel_q8<S, S::kRowVectors>(to, ldy, q + t, d + t, tokens, blocks, scales, nb, r, rows,
                                    bias);
      } else {
        panel_q8<S, 1>(to, ldy, q + t, d + t, tokens, blocks, scales, nb, r, rows, bias);
      }
    }
    r += rows;
  }
}

}  // namespace

#endif  // OSSRUN_CPU_SIMD_Q8_H_
