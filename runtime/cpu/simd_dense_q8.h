// 8-bit activations times dense weights in 8 bits, for any vector width.
//
// The weights lie as the vectors want them (kernels.h), so nothing is turned: a vector has four
// columns of kLanes rows, and each token multiplies it with four of its own bytes in all lanes. A
// batch goes over a few blocks of one vector of rows at a time, which stay in the nearest cache.
//
// What must stay true, for batch invariance: the sum of (row, token) is one lane that takes the
// blocks in ascending order, one fused multiply-add each, of an exact integer.
#ifndef OSSRUN_CPU_SIMD_DENSE_Q8_H_
#define OSSRUN_CPU_SIMD_DENSE_Q8_H_

namespace {

constexpr int64_t kDenseBlockBytes = kQ8GroupRows * (2 + kMxBlock);

// kLanes rows of dense weights: where the first block of the first of them is, and of the group
// behind that one (the same group again where there is none), for vectors of two groups.
struct DenseRows {
  const uint8_t* first;
  const uint8_t* second;
  int64_t in_group;  // of the first row
};

// Adds `blocks` blocks to the sums of kLanes rows and T tokens. q, d: T pointers each to the first
// block. sums: T vectors.
template <class S, int T>
void tile_dense_q8(float* sums, DenseRows rows, const int8_t* const* q, const float* const* d,
                   int64_t blocks, const uint8_t* ahead) {
  typedef typename S::F F;
  typedef typename S::I I;
  F s[T];
  const int8_t* qt[T];
  const float* dt[T];
  SIMD_UNROLL
  for (int t = 0; t < T; t++) {
    qt[t] = q[t];
    dt[t] = d[t];
    s[t] = S::load(sums + t * S::kLanes);
  }
  for (int64_t b = 0; b < blocks; b++) {
    if (T == 1) {  // one token: memory is what it waits for
      for (int64_t line = 0; line < kDenseBlockBytes * S::kLanes / kQ8GroupRows; line += 64) {
        prefetch(ahead + line);
      }
      ahead += kDenseBlockBytes * S::kLanes / kQ8GroupRows;
    }
    I products[T];
    SIMD_UNROLL
    for (int t = 0; t < T; t++) products[t] = S::dense_start(dt[t] + 2 * b + 1);
    const int64_t at = 2 * kQ8GroupRows + 4 * rows.in_group;
    SIMD_UNROLL
    for (int i = 0; i < 8; i++) {
      const int64_t offset = at + i * 4 * kQ8GroupRows;
      const I w = S::kept(S::load_dense(rows.first + offset, rows.second + offset));
      SIMD_UNROLL
      for (int t = 0; t < T; t++) {
        products[t] = S::dense_dot4(products[t], w, S::four(qt[t] + kMxBlock * b + 4 * i));
      }
    }
    const F scale =
        S::dense_scales(rows.first + 2 * rows.in_group, rows.second + 2 * rows.in_group);
    SIMD_UNROLL
    for (int t = 0; t < T; t++) {
      const F whole = S::to_float(products[t]);
      s[t] = S::fma(whole, S::mul(scale, S::set1(dt[t][2 * b])), s[t]);
    }
    rows.first += kDenseBlockBytes;
    rows.second += kDenseBlockBytes;
  }
  SIMD_UNROLL
  for (int t = 0; t < T; t++) S::store(sums + t * S::kLanes, s[t]);
}

// tile_dense_q8 for a number of tokens known only at run time, 1 <= n <= T.
template <class S, int T>
struct TileDenseQ8Of {
  static void run(int64_t n, float* sums, const DenseRows& rows, const int8_t* const* q,
                  const float* const* d, int64_t blocks, const uint8_t* ahead) {
    if (n == T) return tile_dense_q8<S, T>(sums, rows, q, d, blocks, ahead);
    TileDenseQ8Of<S, T - 1>::run(n, sums, rows, q, d, blocks, ahead);
  }
};
template <class S>
struct TileDenseQ8Of<S, 0> {
  static void run(int64_t, float*, const DenseRows&, const int8_t* const*, const float* const*,
                  int64_t, const uint8_t*) {}
};

// kLanes rows for n <= kQ8Tokens tokens: sums [n, kLanes]. What lies in [ahead, ahead + the size of
// the rows) is fetched meanwhile.
template <class S>
void panel_dense_q8(float* sums, const DenseRows& rows, const int8_t* const* q,
                    const float* const* d, int64_t n, int64_t nb, const uint8_t* ahead) {
  memset(sums, 0, n * S::kLanes * sizeof *sums);
  const int64_t tiles = (n + S::kTileTokensDenseQ8 - 1) / S::kTileTokensDenseQ8;
  const int64_t step = n == 1 ? nb : kQ8Blocks;
  for (int64_t b0 = 0; b0 < nb; b0 += step) {
    const int64_t length = smaller(step, nb - b0);
    const DenseRows here = {rows.first + b0 * kDenseBlockBytes, rows.second + b0 * kDenseBlockBytes,
                            rows.in_group};
    const uint8_t* next_rows = ahead + b0 * kDenseBlockBytes * S::kLanes / kQ8GroupRows;
    const int64_t lines = length * kDenseBlockBytes * S::kLanes / kQ8GroupRows / 64;
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
      TileDenseQ8Of<S, S::kTileTokensDenseQ8>::run(next - t, sums + t * S::kLanes, here, qt, dt,
                                                   length, next_rows);
      t = next;
    }
  }
}

template <class S>
void matmul_q8(float* y, int64_t ldy, const int8_t* const* q, const float* const* d, int64_t n,
               const uint8_t* w, int64_t k, int64_t r0, int64_t r1, const uint16_t* bias) {
  alignas(64) float sums[kQ8Tokens * S::kLanes];
  const int64_t nb = k / kMxBlock, group_bytes = nb * kDenseBlockBytes;
  for (int64_t r = r0; r < r1; r += S::kLanes) {
    const int64_t rows = smaller(S::kLanes, r1 - r);
    const uint8_t* group = w + r / kQ8GroupRows * group_bytes;
    const bool one = rows <= kQ8GroupRows;
    const DenseRows at = {group, one ? group : group + group_bytes, r % kQ8GroupRows};
    const uint8_t* ahead = group + (S::kLanes * group_bytes + kQ8GroupRows - 1) / kQ8GroupRows;
    for (int64_t t = 0; t < n; t += kQ8Tokens) {
      const int64_t tokens = smaller(kQ8Tokens, n - t);
      panel_dense_q8<S>(sums, at, q + t, d + t, tokens, nb, ahead);
      for (int64_t u = 0; u < tokens; u++) {
        for (int64_t j = 0; j < rows; j++) {
          y[(t + u) * ldy + r + j] = with_bias(sums[u * S::kLanes + j], bias, r + j);
        }
      }
    }
  }
}

}  // namespace

#endif  // OSSRUN_CPU_SIMD_DENSE_Q8_H_
