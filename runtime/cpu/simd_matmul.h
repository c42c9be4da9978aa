// Products of float32 activations with bf16 and MXFP4 weights, for any vector width.
//
// There are two ways through, with the same bits:
//   few tokens  four rows at a time stream by; weights become float32 in registers, once for
//               every kStreamTile tokens
//   a batch     16 rows x 320 columns of weights become float32 on the stack (in the caches near
//               the core) once, then tiles of 4 rows x kTileTokens tokens pass over them
// What must stay true, for batch invariance: the sum of (row, token) is one vector of kLanes
// partial sums, taken over k in steps of kLanes in ascending order, each step one fused
// multiply-add, the last step padded with zeros; then S::sum and the bias. Tiles decide only which
// sums are computed together.
#ifndef OSSRUN_CPU_SIMD_MATMUL_H_
#define OSSRUN_CPU_SIMD_MATMUL_H_

namespace {

constexpr int64_t kPanelRows = 16;      // rows whose weights are float32 at a time
constexpr int64_t kPanelColumns = 320;  // of them this much of k: a multiple of 32, 2880 = 9 x 320
constexpr int64_t kPanelTokens = 48;    // tokens whose sums wait on the stack
constexpr int64_t kTileRows = 4;        // four chains of additions hide the latency of one

SIMD_INLINE float bf16_value(const uint16_t* p) {
  uint16_t half;
  memcpy(&half, p, sizeof half);
  const uint32_t bits = static_cast<uint32_t>(half) << 16;
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

SIMD_INLINE float with_bias(float sum, const uint16_t* bias, int64_t r) {
  return bias == nullptr ? sum : sum + bf16_value(bias + r);
}

// Into the second cache: the rows ahead and those at work would not both fit into the first.
SIMD_INLINE void prefetch(const void* p) { __builtin_prefetch(p, 0, 2); }

SIMD_INLINE int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

// The first n (1 <= n < kLanes) of kLanes bf16 values, zeros behind them.
template <class S>
SIMD_INLINE typename S::F load_bf16_part(const uint16_t* p, int64_t n) {
  uint16_t padded[S::kLanes] = {};
  memcpy(padded, p, static_cast<size_t>(n) * sizeof *p);
  return S::load_bf16(padded);
}

// bf16 weights [rows, k].
template <class S>
struct Bf16Weights {
  typedef typename S::F F;
  static constexpr int kStreamTile = S::kTileTokens;  // tokens that share a conversion
  static constexpr int kStreamBatch = 16;             // up to here that is faster than a panel
  const uint16_t* w;
  int64_t k;

  // Adds to the sums of rows r, r + 1... and T tokens.
  template <int R, int T>
  SIMD_INLINE void stream(const Bf16Weights& m, F sums[R][T], const float* const x[T], int64_t r) {
    const uint16_t* row = m.w + r * m.k;
    // The rows behind these are contiguous: they are fetched line by line, in the order they have
    // in memory, while these are computed.
    const uint16_t* ahead = row + R * m.k;
    const int64_t whole = m.k / S::kLanes * S::kLanes;
    for (int64_t i = 0; i < whole; i += S::kLanes, ahead += R * S::kLanes) {
      SIMD_UNROLL
      for (int line = 0; line < R * S::kLanes; line += 32) prefetch(ahead + line);
      F xi[T];
      SIMD_UNROLL
      for (int t = 0; t < T; t++) xi[t] = S::load(x[t] + i);
      SIMD_UNROLL
      for (int j = 0; j < R; j++) {
        const F w = S::load_bf16(row + j * m.k + i);
        SIMD_UNROLL
        for (int t = 0; t < T; t++) sums[j][t] = S::fma(w, xi[t], sums[j][t]);
      }
    }
    if (whole < m.k) {
      const int part = static_cast<int>(m.k - whole);
      SIMD_UNROLL
      for (int j = 0; j < R; j++) {
        const F w = load_bf16_part<S>(row + j * m.k + whole, part);
        SIMD_UNROLL
        for (int t = 0; t < T; t++) {
          sums[j][t] = S::fma(w, S::load_part(x[t] + whole, part), sums[j][t]);
        }
      }
    }
  }

  // Columns [k0, k0 + length) of row r as float32, zeros up to a whole vector.
  SIMD_INLINE void expand(const Bf16Weights& m, float* out, int64_t r, int64_t k0, int64_t length) {
    const uint16_t* p = m.w + r * m.k + k0;
    const int64_t whole = length / S::kLanes * S::kLanes;
    for (int64_t i = 0; i < whole; i += S::kLanes) S::store(out + i, S::load_bf16(p + i));
    if (whole < length) S::store(out + whole, load_bf16_part<S>(p + whole, length - whole));
  }
};

// MXFP4 weights: blocks [rows, k/32, 16], scales [rows, k/32].
template <class S>
struct Mxfp4Weights {
  typedef typename S::F F;
  static constexpr int kStreamTile = 3;
  static constexpr int kStreamBatch = 4;
  static constexpr int kVectors = kMxBlock / S::kLanes;
  const uint8_t* blocks;
  const uint8_t* scales;
  int64_t k;

  template <int R, int T>
  SIMD_INLINE void stream(const Mxfp4Weights& m, F sums[R][T], const float* const x[T], int64_t r) {
    const int64_t nb = m.k / kMxBlock;
    const uint8_t* row = m.blocks + r * nb * 16;
    const uint8_t* scale = m.scales + r * nb;
    const uint8_t* ahead = row + R * nb * 16;
    for (int64_t line = 0; line < R * nb; line += 64) prefetch(scale + R * nb + line);
    for (int64_t b = 0; b < nb; b++, row += 16, scale++, ahead += 16 * R) {
      prefetch(ahead);
      F xb[kVectors];  // one token's activations stay in registers for all R rows
      SIMD_UNROLL
      for (int v = 0; v < kVectors; v++) xb[v] = S::load(x[0] + b * kMxBlock + v * S::kLanes);
      SIMD_UNROLL
      for (int j = 0; j < R; j++) {
        F w[kVectors];
        S::mx_weights(w, row + j * nb * 16, scale[j * nb]);
        SIMD_UNROLL
        for (int v = 0; v < kVectors; v++) {
          SIMD_UNROLL
          for (int t = 0; t < T; t++) {
            const F xv = T == 1 ? xb[v] : S::load(x[t] + b * kMxBlock + v * S::kLanes);
            sums[j][t] = S::fma(w[v], xv, sums[j][t]);
          }
        }
      }
    }
  }

  SIMD_INLINE void expand(const Mxfp4Weights& m, float* out, int64_t r, int64_t k0,
                          int64_t length) {
    const int64_t first = r * (m.k / kMxBlock) + k0 / kMxBlock;
    for (int64_t b = 0; b < length / kMxBlock; b++, out += kMxBlock) {
      F w[kVectors];
      S::mx_weights(w, m.blocks + (first + b) * 16, m.scales[first + b]);
      SIMD_UNROLL
      for (int v = 0; v < kVectors; v++) S::store(out + v * S::kLanes, w[v]);
    }
  }
};

template <class S, class W, int R, int T>
void stream_rows(float* y, int64_t ldy, const float* const x[T], const W& weights, int64_t r,
                 const uint16_t* bias) {
  typename S::F sums[R][T];
  const float* xt[T];
  SIMD_UNROLL
  for (int t = 0; t < T; t++) {
    xt[t] = x[t];
    SIMD_UNROLL
    for (int j = 0; j < R; j++) sums[j][t] = S::zero();
  }
  W::template stream<R, T>(weights, sums, xt, r);
  SIMD_UNROLL
  for (int t = 0; t < T; t++) {
    SIMD_UNROLL
    for (int j = 0; j < R; j++) y[t * ldy + r + j] = with_bias(S::sum(sums[j][t]), bias, r + j);
  }
}

// stream_rows for a number of tokens known only at run time, 1 <= n <= T.
template <class S, class W, int R, int T>
struct StreamOf {
  static void run(int64_t n, float* y, int64_t ldy, const float* const* x, const W& weights,
                  int64_t r, const uint16_t* bias) {
    if (n == T) return stream_rows<S, W, R, T>(y, ldy, x, weights, r, bias);
    StreamOf<S, W, R, T - 1>::run(n, y, ldy, x, weights, r, bias);
  }
};
template <class S, class W, int R>
struct StreamOf<S, W, R, 0> {
  static void run(int64_t, float*, int64_t, const float* const*, const W&, int64_t,
                  const uint16_t*) {}
};

// n <= kStreamBatch tokens.
template <class S, class W>
void few_tokens(float* y, int64_t ldy, const float* const* x, int64_t n, const W& weights,
                int64_t r0, int64_t r1, const uint16_t* bias) {
  const int64_t tiles = (n + W::kStreamTile - 1) / W::kStreamTile;
  for (int64_t r = r0; r < r1;) {
    const bool four = r + kTileRows <= r1;
    for (int64_t i = 0; i < tiles; i++) {
      const int64_t t = i * n / tiles, tokens = (i + 1) * n / tiles - t;
      float* to = y + t * ldy;
      if (four)
        StreamOf<S, W, kTileRows, W::kStreamTile>::run(tokens, to, ldy, x + t, weights, r, bias);
      else
        StreamOf<S, W, 1, W::kStreamTile>::run(tokens, to, ldy, x + t, weights, r, bias);
    }
    r += four ? kTileRows : 1;
  }
}

// Adds `length` columns to the sums of kTileRows rows and T tokens. x: T pointers to the first of
// the columns. w: [kTileRows, kPanelColumns]. sums: vectors [kTileRows, kPanelTokens].
template <class S, int T>
void tile(float* sums, const float* w, const float* const* x, int64_t length) {
  typedef typename S::F F;
  constexpr int64_t kNextRow = kPanelTokens * S::kLanes;
  F s[kTileRows][T];
  const float* xt[T];
  SIMD_UNROLL
  for (int t = 0; t < T; t++) xt[t] = x[t];
  SIMD_UNROLL
  for (int j = 0; j < kTileRows; j++) {
    SIMD_UNROLL
    for (int t = 0; t < T; t++) s[j][t] = S::load(sums + j * kNextRow + t * S::kLanes);
  }
  const int64_t whole = length / S::kLanes * S::kLanes;
  for (int64_t i = 0; i < whole; i += S::kLanes) {
    F xi[T];
    SIMD_UNROLL
    for (int t = 0; t < T; t++) xi[t] = S::load(xt[t] + i);
    SIMD_UNROLL
    for (int j = 0; j < kTileRows; j++) {
      const F wj = S::load(w + j * kPanelColumns + i);
      SIMD_UNROLL
      for (int t = 0; t < T; t++) s[j][t] = S::fma(wj, xi[t], s[j][t]);
    }
  }
  if (whole < length) {
    F xi[T];
    SIMD_UNROLL
    for (int t = 0; t < T; t++) {
      xi[t] = S::load_part(xt[t] + whole, static_cast<int>(length - whole));
    }
    SIMD_UNROLL
    for (int j = 0; j < kTileRows; j++) {
      const F wj = S::load(w + j * kPanelColumns + whole);
      SIMD_UNROLL
      for (int t = 0; t < T; t++) s[j][t] = S::fma(wj, xi[t], s[j][t]);
    }
  }
  SIMD_UNROLL
  for (int j = 0; j < kTileRows; j++) {
    SIMD_UNROLL
    for (int t = 0; t < T; t++) S::store(sums + j * kNextRow + t * S::kLanes, s[j][t]);
  }
}

// tile for a number of tokens known only at run time, 1 <= n <= T.
template <class S, int T>
struct TileOf {
  static void run(int64_t n, float* sums, const float* w, const float* const* x, int64_t length) {
    if (n == T) return tile<S, T>(sums, w, x, length);
    TileOf<S, T - 1>::run(n, sums, w, x, length);
  }
};
template <class S>
struct TileOf<S, 0> {
  static void run(int64_t, float*, const float*, const float* const*, int64_t) {}
};

// Rows [r0, r0 + rows) with rows <= kPanelRows, for n <= kPanelTokens tokens; y and x are at the
// first of them.
template <class S, class W>
void panel(float* y, int64_t ldy, const float* const* x, int64_t n, const W& weights, int64_t r0,
           int64_t rows, const uint16_t* bias) {
  alignas(64) float w[kPanelRows * kPanelColumns];
  alignas(64) float sums[kPanelRows * kPanelTokens * S::kLanes];
  const int64_t tiled = (rows + kTileRows - 1) / kTileRows * kTileRows;
  if (rows < tiled) memset(w + rows * kPanelColumns, 0, (tiled - rows) * kPanelColumns * sizeof *w);
  for (int64_t j = 0; j < tiled; j++) {
    memset(sums + j * kPanelTokens * S::kLanes, 0, n * S::kLanes * sizeof *sums);
  }
  // As even as possible: 4 tokens are 2 + 2, not 3 + 1.
  const int64_t tiles = (n + S::kTileTokens - 1) / S::kTileTokens;
  for (int64_t k0 = 0; k0 < weights.k; k0 += kPanelColumns) {
    const int64_t length = smaller(kPanelColumns, weights.k - k0);
    for (int64_t j = 0; j < rows; j++) {
      W::expand(weights, w + j * kPanelColumns, r0 + j, k0, length);
    }
    for (int64_t i = 0, t = 0; i < tiles; i++) {
      const int64_t next = (i + 1) * n / tiles;
      const float* columns[S::kTileTokens];
      for (int64_t u = t; u < next; u++) columns[u - t] = x[u] + k0;
      for (int64_t j = 0; j < tiled; j += kTileRows) {
        TileOf<S, S::kTileTokens>::run(next - t, sums + (j * kPanelTokens + t) * S::kLanes,
                                       w + j * kPanelColumns, columns, length);
      }
      t = next;
    }
  }
  for (int64_t t = 0; t < n; t++) {
    for (int64_t j = 0; j < rows; j++) {
      const float sum = S::sum(S::load(sums + (j * kPanelTokens + t) * S::kLanes));
      y[t * ldy + r0 + j] = with_bias(sum, bias, r0 + j);
    }
  }
}

// token(t) is the address of token t's activations.
template <class S, class W, class Token>
void matmul(float* y, int64_t ldy, Token token, int64_t n, const W& weights, int64_t r0, int64_t r1,
            const uint16_t* bias) {
  const float* x[kPanelTokens];
  if (n <= W::kStreamBatch) {
    for (int64_t t = 0; t < n; t++) x[t] = token(t);
    return few_tokens<S>(y, ldy, x, n, weights, r0, r1, bias);
  }
  // Rows outside, tokens inside: what a panel reads of the weights stays in the core's cache.
  for (int64_t r = r0; r < r1; r += kPanelRows) {
    for (int64_t t0 = 0; t0 < n; t0 += kPanelTokens) {
      const int64_t tokens = smaller(kPanelTokens, n - t0);
      for (int64_t t = 0; t < tokens; t++) x[t] = token(t0 + t);
      panel<S>(y + t0 * ldy, ldy, x, tokens, weights, r, smaller(kPanelRows, r1 - r), bias);
    }
  }
}

template <class S>
void matmul_bf16(float* y, int64_t ldy, const float* x, int64_t ldx, int64_t n, const uint16_t* w,
                 int64_t k, int64_t r0, int64_t r1, const uint16_t* bias) {
  const Bf16Weights<S> weights = {w, k};
  matmul<S>(y, ldy, [=](int64_t t) { return x + t * ldx; }, n, weights, r0, r1, bias);
}

template <class S>
void matmul_mxfp4(float* y, int64_t ldy, const float* const* x, int64_t n, const uint8_t* blocks,
                  const uint8_t* scales, int64_t k, int64_t r0, int64_t r1, const uint16_t* bias) {
  const Mxfp4Weights<S> weights = {blocks, scales, k};
  matmul<S>(y, ldy, [=](int64_t t) { return x[t]; }, n, weights, r0, r1, bias);
}

}  // namespace

#endif  // OSSRUN_CPU_SIMD_MATMUL_H_
