// 8-bit activations times dense weights in 8 bits, for any vector width.
//
// The weights lie as the vectors want them (kernels.h), so nothing is turned: a vector has four
// columns of kLanes rows, and each token multiplies it with four of its own bytes in all lanes. A
// batch goes over a few blocks of kRowVectorsDenseQ8 vectors of rows at a time, which stay in the
// nearest cache.
//
// What must stay true, for batch invariance: the sum of (row, token) is one lane that takes the
// blocks in ascending order, one fused multiply-add each, of an exact integer.
#ifndef OSSRUN_CPU_SIMD_DENSE_Q8_H_
#define OSSRUN_CPU_SIMD_DENSE_Q8_H_

namespace {

constexpr int64_t kDenseBlockBytes = kQ8GroupRows * (2 + kMxBlock);

// R vectors of rows of dense weights: for each, where the first block of its first row is, and of
// the group behind that one (the same group again where there is none), for vectors of two groups.
template <int R>
struct DenseRows {
  const uint8_t* first[R];
  const uint8_t* second[R];
  int64_t in_group;  // of the first row
};

// Adds `blocks` blocks to the sums of R vectors of rows and T tokens. q, d: T pointers each to the
// first block. sums: [T, R] vectors.
template <class S, int R, int T>
void tile_dense_q8(float* sums, DenseRows<R> rows, const int8_t* const* q, const float* const* d,
                   int64_t blocks, const uint8_t* ahead) {
  typedef typename S::F F;
  typedef typename S::I I;
  const int8_t* qt[T];
  const float* dt[T];
  SIMD_UNROLL
  for (int t = 0; t < T; t++) {
    qt[t] = q[t];
    dt[t] = d[t];
  }
  for (int64_t b = 0; b < blocks; b++) {
    if (T == 1) {  // one token: memory is what it waits for
      for (int64_t line = 0; line < kDenseBlockBytes * S::kLanes / kQ8GroupRows; line += 64) {
        prefetch(ahead + line);
      }
      ahead += kDenseBlockBytes * S::kLanes / kQ8GroupRows;
    }
    I products[T][R];
    SIMD_UNROLL
    for (int t = 0; t < T; t++) {
      SIMD_UNROLL
      for (int r = 0; r < R; r++) products[t][r] = S::dense_start(dt[t] + 2 * b + 1);
    }
    const int64_t at = 2 * kQ8GroupRows + 4 * rows.in_group;
    SIMD_UNROLL
    for (int i = 0; i < 8; i++) {
      const int64_t offset = at + i * 4 * kQ8GroupRows;
      typename S::Dense w[R];
      SIMD_UNROLL
      for (int r = 0; r < R; r++) {
        w[r] = S::load_dense(rows.first[r] + offset, rows.second[r] + offset);
      }
      SIMD_UNROLL
      for (int t = 0; t < T; t++) {
        const I four = S::four(qt[t] + kMxBlock * b + 4 * i);
        SIMD_UNROLL
        for (int r = 0; r < R; r++) products[t][r] = S::dense_dot4(products[t][r], w[r], four);
      }
    }
    F scale[R];
    SIMD_UNROLL
    for (int r = 0; r < R; r++) {
      scale[r] =
          S::dense_scales(rows.first[r] + 2 * rows.in_group, rows.second[r] + 2 * rows.in_group);
      rows.first[r] += kDenseBlockBytes;
      rows.second[r] += kDenseBlockBytes;
    }
    SIMD_UNROLL
    for (int t = 0; t < T; t++) {
      const F size = S::set1(dt[t][2 * b]);
      SIMD_UNROLL
      for (int r = 0; r < R; r++) {
        float* sum = sums + (t * R + r) * S::kLanes;
        S::store(sum, S::fma(S::to_float(products[t][r]), S::mul(scale[r], size), S::load(sum)));
      }
    }
  }
}

// tile_dense_q8 for a number of tokens known only at run time, 1 <= n <= T.
template <class S, int R, int T>
struct TileDenseQ8Of {
  static void run(int64_t n, float* sums, const DenseRows<R>& rows, const int8_t* const* q,
                  const float* const* d, int64_t blocks, const uint8_t* ahead) {
    if (n == T) return tile_dense_q8<S, R, T>(sums, rows, q, d, blocks, ahead);
    TileDenseQ8Of<S, R, T - 1>::run(n, sums, rows, q, d, blocks, ahead);
  }
};
template <class S, int R>
struct TileDenseQ8Of<S, R, 0> {
  static void run(int64_t, float*, const DenseRows<R>&, const int8_t* const*, const float* const*,
                  int64_t, const uint8_t*) {}
};

// R vectors of rows for n <= kQ8Tokens tokens: sums [n, R, kLanes]. What lies in [ahead, ahead +
// the size of the rows) is fetched meanwhile.
template <class S, int R>
void panel_dense_q8(float* sums, const DenseRows<R>& rows, const int8_t* const* q,
                    const float* const* d, int64_t n, int64_t nb, const uint8_t* ahead) {
  constexpr int64_t kBlockOfRows = kDenseBlockBytes * R * S::kLanes / kQ8GroupRows;
  memset(sums, 0, n * R * S::kLanes * sizeof *sums);
  const int64_t tiles = (n + S::kTileTokensDenseQ8 - 1) / S::kTileTokensDenseQ8;
  const int64_t step = n == 1 ? nb : kQ8Blocks;
  for (int64_t b0 = 0; b0 < nb; b0 += step) {
    const int64_t length = smaller(step, nb - b0);
    DenseRows<R> here = rows;
    for (int r = 0; r < R; r++) {
      here.first[r] += b0 * kDenseBlockBytes;
      here.second[r] += b0 * kDenseBlockBytes;
    }
    const uint8_t* next_rows = ahead + b0 * kBlockOfRows;
    const int64_t lines = length * kBlockOfRows / 64;
    for (int64_t i = 0, t = 0; i < tiles; i++) {
      const int64_t next = (i + 1) * n / tiles;
      for (int64_t line = i * lines / tiles; n > 1 && line < (i + 1) * lines / tiles; line++) {
        __builtin_prefetch(next_rows + 64 * line, 0, 2);
      }
      const int8_t* qt[S::kTileTokensDenseQ8];
      const float* dt[S::kTileTokensDenseQ8];
      for (int64_t u = t; u < next; u++) {
        qt[u - t] = q[u] + b0 * kMxBlock;
        dt[u - t] = d[u] + b0 * 2;
      }
      TileDenseQ8Of<S, R, S::kTileTokensDenseQ8>::run(next - t, sums + t * R * S::kLanes, here, qt,
                                                      dt, length, next_rows);
      t = next;
    }
  }
}

// Rows [r, r + rows) with rows <= R * kLanes, for all n tokens.
template <class S, int R>
void rows_dense_q8(float* y, int64_t ldy, const int8_t* const* q, const float* const* d, int64_t n,
                   const uint8_t* w, int64_t nb, int64_t r, int64_t rows, const uint16_t* bias) {
  alignas(64) float sums[kQ8Tokens * R * S::kLanes];
  const int64_t group_bytes = nb * kDenseBlockBytes;
  DenseRows<R> at;
  at.in_group = r % kQ8GroupRows;
  for (int v = 0; v < R; v++) {
    const int64_t first = r + smaller(v * S::kLanes, (rows - 1) / kQ8GroupRows * kQ8GroupRows);
    at.first[v] = w + first / kQ8GroupRows * group_bytes;
    at.second[v] = at.first[v] + (r + rows - first <= kQ8GroupRows ? 0 : group_bytes);
  }
  const uint8_t* ahead =
      at.first[0] + (R * S::kLanes * group_bytes + kQ8GroupRows - 1) / kQ8GroupRows;
  for (int64_t t = 0; t < n; t += kQ8Tokens) {
    const int64_t tokens = smaller(kQ8Tokens, n - t);
    panel_dense_q8<S, R>(sums, at, q + t, d + t, tokens, nb, ahead);
    for (int64_t u = 0; u < tokens; u++) {
      for (int64_t j = 0; j < rows; j++) {
        y[(t + u) * ldy + r + j] = with_bias(sums[u * R * S::kLanes + j], bias, r + j);
      }
    }
  }
}

template <class S>
void matmul_q8(float* y, int64_t ldy, const int8_t* const* q, const float* const* d, int64_t n,
               const uint8_t* w, int64_t k, int64_t r0, int64_t r1, const uint16_t* bias) {
  constexpr int64_t kWide = S::kRowVectorsDenseQ8 * S::kLanes;
  const int64_t nb = k / kMxBlock;
  for (int64_t r = r0; r < r1;) {
    const bool wide = n > 1 && r1 - r > S::kLanes;
    const int64_t rows = smaller(wide ? kWide : S::kLanes, r1 - r);
    if (wide) {
      rows_dense_q8<S, S::kRowVectorsDenseQ8>(y, ldy, q, d, n, w, nb, r, rows, bias);
    } else {
      rows_dense_q8<S, 1>(y, ldy, q, d, n, w, nb, r, rows, bias);
    }
    r += rows;
  }
}

}  // namespace

#endif  // OSSRUN_CPU_SIMD_DENSE_Q8_H_
