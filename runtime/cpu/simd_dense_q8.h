// 12-bit activations: quantisation, and their product with dense weights in 8 bits; that of 8-bit
// activations, which quantize_q8 made.
//
// The weights lie as the vectors want them (kernels.h), so nothing is turned: a vector has four
// columns of kLanes rows, and each token multiplies it with four of its own values in all lanes.
// Where an instruction takes more, S::kDenseColumns are eight and S::Dense is two vectors.
// S::DenseQ is the type of the activations, S::kDenseNumbers how many numbers d has for a block.
// There are three ways through, with the same bits:
//   a tile    as many tokens as registers hold sums for, or fewer: one pass along the rows; the
//             fewer tokens, the more vectors of rows share them
//   more      the same in tiles, a few blocks at a time, so that those stay in the nearest cache
//   a batch   the same, and what S::load_dense makes of the weights is kept for all tokens, where
//             S::kDenseReady: where making it is not hidden behind the products
//
// What must stay true, for batch invariance: the sum of (row, token) is one lane that takes the
// blocks in ascending order, one fused multiply-add each, of an exact integer.
#ifndef OSSRUN_CPU_SIMD_DENSE_Q8_H_
#define OSSRUN_CPU_SIMD_DENSE_Q8_H_

namespace {

constexpr int64_t kDenseBlockBytes = kQ8GroupRows * (2 + kMxBlock);
constexpr int kDenseFew = 3;      // tokens for which more rows at a time are better
constexpr int kDenseInPlace = 8;  // tokens for which it does not pay to keep prepared weights

template <class S>
void quantize_q12(int16_t* q, float* d, const float* x, int64_t k) {
  typedef typename S::F F;
  constexpr int kVectors = kMxBlock / S::kLanes;
  for (int64_t b = 0; b < k / kMxBlock; b++, x += kMxBlock, q += kMxBlock) {
    F v[kVectors];
    F largest = S::zero();
    SIMD_UNROLL
    for (int i = 0; i < kVectors; i++) {
      v[i] = S::load(x + i * S::kLanes);
      largest = S::max(largest, S::abs(v[i]));
    }
    const float scale = S::max_lane(largest) / 2047.0f;
    if (!(scale >= 0x1p-118f)) {  // kDenseUnit of it would not be normal: the block counts as zero
      d[b] = 0;
      memset(q, 0, kMxBlock * sizeof *q);
      continue;
    }
    SIMD_UNROLL
    for (int i = 0; i < kVectors; i++) {
      v[i] = S::nearest(S::div(v[i], S::set1(scale)));
      v[i] = S::max(S::min(v[i], S::set1(2047.0f)), S::set1(-2047.0f));
    }
    d[b] = scale * S::kDenseUnit;
    S::store_q12(q, v);
  }
}

// R vectors of rows of dense weights where the copy has them: for each, where the next block of its
// first row is, and of the group behind that one (the same group again where there is none), for
// vectors of two groups.
template <class S, int R>
struct DenseRows {
  static constexpr bool kPrepared = false;
  const uint8_t* first[R];
  const uint8_t* second[R];
  int64_t in_group;  // of the first row

  // The i-th S::kDenseColumns columns of the block.
  SIMD_INLINE typename S::Dense load(const DenseRows& m, int r, int i) {
    const int64_t at = 2 * kQ8GroupRows + 4 * m.in_group + i * S::kDenseColumns * kQ8GroupRows;
    return S::load_dense(m.first[r] + at, m.second[r] + at);
  }
  SIMD_INLINE typename S::F scales(const DenseRows& m, int r) {
    return S::dense_scales(m.first[r] + 2 * m.in_group, m.second[r] + 2 * m.in_group);
  }
  SIMD_INLINE void advance(DenseRows& m, int64_t blocks) {
    SIMD_UNROLL
    for (int r = 0; r < R; r++) {
      m.first[r] += blocks * kDenseBlockBytes;
      m.second[r] += blocks * kDenseBlockBytes;
    }
  }
};

// A few blocks of the same, made ready for the products once for many tokens.
template <class S, int R>
struct DenseReady {
  static constexpr bool kPrepared = true;
  struct alignas(64) Block {
    typename S::Dense w[kMxBlock / S::kDenseColumns][R];
    typename S::F scales[R];
  };
  const Block* block;

  SIMD_INLINE typename S::Dense load(const DenseReady& m, int r, int i) { return m.block->w[i][r]; }
  SIMD_INLINE typename S::F scales(const DenseReady& m, int r) { return m.block->scales[r]; }
  SIMD_INLINE void advance(DenseReady& m, int64_t blocks) { m.block += blocks; }
};

// Memory that is fetched while a tile is computed: so many lines of it with each block. Products of
// prepared weights have no register left to count with: they get all of it before they begin.
struct DenseAhead {
  const uint8_t* from;
  int64_t lines;

  SIMD_INLINE void fetch(DenseAhead& a, int64_t lines) {
    for (; lines > 0; lines--, a.from += 64) prefetch(a.from);
  }
};

// Adds `blocks` blocks to the sums of R vectors of rows and T tokens. q, d: T pointers each to the
// first block. sums: [T, R] vectors, in registers meanwhile where S has enough of them. A function
// of its own: among its callers' values GCC finds no registers for the products.
template <class S, int R, int T, class Weights>
__attribute__((noinline)) void tile_dense_q8(float* sums, Weights weights,
                                             const typename S::DenseQ* const* q,
                                             const float* const* d, int64_t blocks,
                                             DenseAhead ahead) {
  typedef typename S::F F;
  const typename S::DenseQ* qt[T];
  const float* dt[T];
  F sum[T][R];
  if constexpr (Weights::kPrepared) DenseAhead::fetch(ahead, ahead.lines * blocks);
  SIMD_UNROLL
  for (int t = 0; t < T; t++) {
    qt[t] = q[t];
    dt[t] = d[t];
    if constexpr (S::kDenseSumsStay) {
      SIMD_UNROLL
      for (int r = 0; r < R; r++) sum[t][r] = S::load(sums + (t * R + r) * S::kLanes);
    }
  }
  for (int64_t b = 0; b < blocks; b++) {
    if constexpr (!Weights::kPrepared) DenseAhead::fetch(ahead, ahead.lines);
    typename S::DenseSum products[T][R];
    SIMD_UNROLL
    for (int t = 0; t < T; t++) {
      SIMD_UNROLL
      for (int r = 0; r < R; r++) products[t][r] = S::dense_start(dt[t] + b * S::kDenseNumbers);
    }
    SIMD_UNROLL
    for (int i = 0; i < kMxBlock / S::kDenseColumns; i++) {
      typename S::Dense w[R];
      SIMD_UNROLL
      for (int r = 0; r < R; r++) w[r] = Weights::load(weights, r, i);
      SIMD_UNROLL
      for (int t = 0; t < T; t++) {
        const typename S::DenseInput some =
            S::dense_input(qt[t] + kMxBlock * b + S::kDenseColumns * i);
        SIMD_UNROLL
        for (int r = 0; r < R; r++) products[t][r] = S::dense_dot(products[t][r], w[r], some);
      }
    }
    F scale[R];
    SIMD_UNROLL
    for (int r = 0; r < R; r++) scale[r] = Weights::scales(weights, r);
    Weights::advance(weights, 1);
    SIMD_UNROLL
    for (int t = 0; t < T; t++) {
      const F size = S::set1(dt[t][b * S::kDenseNumbers]);
      SIMD_UNROLL
      for (int r = 0; r < R; r++) {
        const F whole = S::dense_end(products[t][r]), unit = S::mul(scale[r], size);
        if constexpr (S::kDenseSumsStay) {
          sum[t][r] = S::fma(whole, unit, sum[t][r]);
        } else {
          float* at = sums + (t * R + r) * S::kLanes;
          S::store(at, S::fma(whole, unit, S::load(at)));
        }
      }
    }
  }
  if constexpr (S::kDenseSumsStay) {
    SIMD_UNROLL
    for (int t = 0; t < T; t++) {
      SIMD_UNROLL
      for (int r = 0; r < R; r++) S::store(sums + (t * R + r) * S::kLanes, sum[t][r]);
    }
  }
}

// tile_dense_q8 for a number of tokens known only at run time, 1 <= n <= T.
template <class S, int R, int T>
struct TileDenseQ8Of {
  template <class Weights>
  static void run(int64_t n, float* sums, const Weights& weights,
                  const typename S::DenseQ* const* q, const float* const* d, int64_t blocks,
                  DenseAhead ahead) {
    if (n == T) return tile_dense_q8<S, R, T>(sums, weights, q, d, blocks, ahead);
    TileDenseQ8Of<S, R, T - 1>::run(n, sums, weights, q, d, blocks, ahead);
  }
};
template <class S, int R>
struct TileDenseQ8Of<S, R, 0> {
  template <class Weights>
  static void run(int64_t, float*, const Weights&, const typename S::DenseQ* const*,
                  const float* const*, int64_t, DenseAhead) {}
};

// `blocks` blocks from b0 on for n tokens in tiles of up to T. As much as R vectors of rows have in
// them is fetched from `ahead` on, a little with every block of every tile.
template <class S, int R, int T, class Weights>
void tiles_dense_q8(float* sums, const Weights& weights, const typename S::DenseQ* const* q,
                    const float* const* d, int64_t n, int64_t b0, int64_t blocks,
                    const uint8_t* ahead) {
  constexpr int64_t kLines = (kDenseBlockBytes * R * S::kLanes / kQ8GroupRows + 63) / 64;
  const int64_t tiles = (n + T - 1) / T, lines = (kLines + tiles - 1) / tiles;
  for (int64_t i = 0, t = 0; i < tiles; i++) {
    const int64_t next = (i + 1) * n / tiles;
    const typename S::DenseQ* qt[T];
    const float* dt[T];
    for (int64_t u = t; u < next; u++) {
      qt[u - t] = q[u] + b0 * kMxBlock;
      dt[u - t] = d[u] + b0 * S::kDenseNumbers;
    }
    const bool more = i * lines < kLines;
    TileDenseQ8Of<S, R, T>::run(next - t, sums + t * R * S::kLanes, weights, qt, dt, blocks,
                                {ahead + i * lines * blocks * 64, more ? lines : 0});
    t = next;
  }
}

// R vectors of rows for n <= kQ8Tokens tokens: sums [n, R, kLanes], zero at first. What lies in
// [ahead, ahead + the size of the rows) is fetched meanwhile.
template <class S, int R>
void panel_dense_q8(float* sums, DenseRows<S, R> rows, const typename S::DenseQ* const* q,
                    const float* const* d, int64_t n, int64_t nb, const uint8_t* ahead) {
  constexpr bool kReady = S::kDenseReady && R <= S::kRowVectorsDenseQ8;
  constexpr int kTile = R > S::kRowVectorsDenseQ8 ? kDenseFew : S::kTileTokensDenseQ8;
  constexpr int kInPlace = kReady ? kTile - 1 : kTile;  // weights in the making take registers too
  if (n <= kInPlace) return tiles_dense_q8<S, R, kInPlace>(sums, rows, q, d, n, 0, nb, ahead);
  for (int64_t b0 = 0; b0 < nb; b0 += kQ8Blocks) {
    const int64_t length = smaller(kQ8Blocks, nb - b0);
    if (!kReady || n <= kDenseInPlace) {
      tiles_dense_q8<S, R, kInPlace>(sums, rows, q, d, n, b0, length, ahead);
      DenseRows<S, R>::advance(rows, length);
    } else if constexpr (kReady) {
      typename DenseReady<S, R>::Block ready[kQ8Blocks];
      for (int64_t b = 0; b < length; b++, DenseRows<S, R>::advance(rows, 1)) {
        for (int r = 0; r < R; r++) {
          SIMD_UNROLL
          for (int i = 0; i < kMxBlock / S::kDenseColumns; i++) {
            ready[b].w[i][r] = DenseRows<S, R>::load(rows, r, i);
          }
          ready[b].scales[r] = DenseRows<S, R>::scales(rows, r);
        }
      }
      tiles_dense_q8<S, R, kTile>(sums, DenseReady<S, R>{ready}, q, d, n, b0, length, ahead);
    }
    ahead += length * kDenseBlockBytes * R * S::kLanes / kQ8GroupRows;
  }
}

// Rows [r, r + rows) with rows <= R * kLanes, for all n tokens.
template <class S, int R>
void rows_dense_q8(float* y, int64_t ldy, const typename S::DenseQ* const* q, const float* const* d,
                   int64_t n, const uint8_t* w, int64_t nb, int64_t r, int64_t rows,
                   const uint16_t* bias) {
  constexpr int64_t kTokens = R > S::kRowVectorsDenseQ8 ? kDenseFew : kQ8Tokens;
  alignas(64) float sums[kTokens * R * S::kLanes];
  const int64_t group_bytes = nb * kDenseBlockBytes;
  DenseRows<S, R> at;
  at.in_group = r % kQ8GroupRows;
  for (int v = 0; v < R; v++) {
    const int64_t first = r + smaller(v * S::kLanes, (rows - 1) / kQ8GroupRows * kQ8GroupRows);
    at.first[v] = w + first / kQ8GroupRows * group_bytes;
    at.second[v] = at.first[v] + (r + rows - first <= kQ8GroupRows ? 0 : group_bytes);
  }
  const uint8_t* ahead =
      at.first[0] + (R * S::kLanes * group_bytes + kQ8GroupRows - 1) / kQ8GroupRows;
  for (int64_t t = 0; t < n; t += kTokens) {
    const int64_t tokens = smaller(kTokens, n - t);
    memset(sums, 0, tokens * R * S::kLanes * sizeof *sums);
    panel_dense_q8<S, R>(sums, at, q + t, d + t, tokens, nb, ahead);
    for (int64_t u = 0; u < tokens; u++) {
      const float* from = sums + u * R * S::kLanes;
      float* to = y + (t + u) * ldy + r;
      int64_t j = 0;
      for (; bias == nullptr && j + S::kLanes <= rows; j += S::kLanes) {
        S::store(to + j, S::load(from + j));
      }
      for (; bias != nullptr && j + S::kLanes <= rows; j += S::kLanes) {
        S::store(to + j, S::add(S::load(from + j), S::load_bf16(bias + r + j)));
      }
      for (; j < rows; j++) to[j] = with_bias(from[j], bias, r + j);
    }
  }
}

template <class S>
void matmul_q8(float* y, int64_t ldy, const typename S::DenseQ* const* q, const float* const* d,
               int64_t n, const uint8_t* w, int64_t k, int64_t r0, int64_t r1,
               const uint16_t* bias) {
  constexpr int kBatch = S::kRowVectorsDenseQ8;
  // Vectors that are less than a group begin at different rows of it, so they go one by one.
  constexpr int kMany = S::kLanes < kQ8GroupRows ? kBatch : 2 * kBatch;
  const int64_t nb = k / kMxBlock;
  for (int64_t r = r0, rows; r < r1; r += rows) {
    if (r1 - r <= S::kLanes) {
      rows = r1 - r;
      rows_dense_q8<S, 1>(y, ldy, q, d, n, w, nb, r, rows, bias);
    } else if (n <= kDenseFew) {
      rows = smaller(kMany * S::kLanes, r1 - r);
      rows_dense_q8<S, kMany>(y, ldy, q, d, n, w, nb, r, rows, bias);
    } else {
      rows = smaller(kBatch * S::kLanes, r1 - r);
      rows_dense_q8<S, kBatch>(y, ldy, q, d, n, w, nb, r, rows, bias);
    }
  }
}

}  // namespace

#endif  // OSSRUN_CPU_SIMD_DENSE_Q8_H_
