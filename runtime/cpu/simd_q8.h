// 8-bit activations: quantisation, and their product with MXFP4 weights in integers.
//
// A lane is a row: kLanes rows of a block are turned around on the stack so that one vector holds
// four elements of each of them, as unsigned bytes 2 e2m1 + 12, and every token multiplies the same
// vectors with four of its own bytes in all lanes. The 12 comes off as 12 * sum(q) of the block, a
// number that quantize_q8 leaves beside the scale:
//   d[2b] = scale of block b, d[2b+1] = 12 * sum of its q (whole, below 2^24)
// What must stay true, for batch invariance: the sum of (row, token) is one lane that takes the
// blocks in ascending order, one fused multiply-add each, of an exact integer.
#ifndef OSSRUN_CPU_SIMD_Q8_H_
#define OSSRUN_CPU_SIMD_Q8_H_

namespace {

constexpr int64_t kQ8Blocks = 16;      // blocks of a row group that are turned around at a time
constexpr int64_t kQ8BlockBytes = 32;  // of one row: one byte an element

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
    const float scale = S::max_lane(largest) / 127.0f;
    if (!(scale >= 1.17549435e-38f)) {  // no normal reciprocal: the block counts as zero
      d[0] = d[1] = 0;
      memset(q, 0, kMxBlock);
      continue;
    }
    F sum = S::zero();
    SIMD_UNROLL
    for (int i = 0; i < kVectors; i++) {
      v[i] = S::nearest(S::div(v[i], S::set1(scale)));
      v[i] = S::max(S::min(v[i], S::set1(127.0f)), S::set1(-127.0f));
      sum = S::add(sum, v[i]);
    }
    d[0] = scale;
    d[1] = 12.0f * S::sum(sum);
    S::store_q8(q, v);
  }
}

// Adds `blocks` blocks to the sums of kLanes rows and T tokens. w: [blocks, 8, kLanes, 4] bytes.
// scales: [blocks, kLanes], halved. q, d: T pointers each to the first block. sums: T vectors.
template <class S, int T>
void tile_q8(float* sums, const uint8_t* w, const float* scales, const int8_t* const* q,
             const float* const* d, int64_t blocks) {
  typedef typename S::F F;
  typedef typename S::I I;
  F s[T];
  const int8_t* qt[T];
  const float* dt[T];
  SIMD_UNROLL
  for (int t = 0; t < T; t++) {
    s[t] = S::load(sums + t * S::kLanes);
    qt[t] = q[t];
    dt[t] = d[t];
  }
  for (int64_t b = 0; b < blocks; b++, w += kQ8BlockBytes * S::kLanes, scales += S::kLanes) {
    I products[T];
    SIMD_UNROLL
    for (int t = 0; t < T; t++) products[t] = S::zero_ints();
    SIMD_UNROLL
    for (int half = 0; half < 2; half++) {
      I wv[4];
      SIMD_UNROLL
      for (int i = 0; i < 4; i++) wv[i] = S::load_bytes(w + (4 * half + i) * 4 * S::kLanes);
      SIMD_UNROLL
      for (int t = 0; t < T; t++) {
        products[t] = S::dot16(products[t], wv, qt[t] + kMxBlock * b + 16 * half);
      }
    }
    const F scale = S::load(scales);
    SIMD_UNROLL
    for (int t = 0; t < T; t++) {
      const F whole = S::sub(S::to_float(products[t]), S::set1(dt[t][2 * b + 1]));
      s[t] = S::fma(whole, S::mul(scale, S::set1(dt[t][2 * b])), s[t]);
    }
  }
  SIMD_UNROLL
  for (int t = 0; t < T; t++) S::store(sums + t * S::kLanes, s[t]);
}

// tile_q8 for a number of tokens known only at run time, 1 <= n <= T.
template <class S, int T>
struct TileQ8Of {
  static void run(int64_t n, float* sums, const uint8_t* w, const float* scales,
                  const int8_t* const* q, const float* const* d, int64_t blocks) {
    if (n == T) return tile_q8<S, T>(sums, w, scales, q, d, blocks);
    TileQ8Of<S, T - 1>::run(n, sums, w, scales, q, d, blocks);
  }
};
template <class S>
struct TileQ8Of<S, 0> {
  static void run(int64_t, float*, const uint8_t*, const float*, const int8_t* const*,
                  const float* const*, int64_t) {}
};

// The rows of a panel: kLanes of them, the last one repeated where there are fewer.
template <class S>
struct PanelRows {
  const uint8_t* blocks[S::kLanes];
  const uint8_t* scales[S::kLanes];
};

// The scales of blocks [b0, b0 + length) of the rows, halved (weights are doubled): out[b][lane].
template <class S>
void turn_scales(float* out, const PanelRows<S>& rows, int64_t b0, int64_t length) {
  uint8_t bytes[kQ8Blocks * S::kLanes];
  int64_t b = 0;
  for (; b + 8 <= length; b += 8) S::turn8(bytes + b * S::kLanes, rows.scales, b0 + b);
  for (; b < length; b++) {
    for (int j = 0; j < S::kLanes; j++) bytes[b * S::kLanes + j] = rows.scales[j][b0 + b];
  }
  for (b = 0; b < length; b++) {
    const typename S::F powers = S::scales(bytes + b * S::kLanes);
    S::store(out + b * S::kLanes, S::mul(powers, S::set1(0.5f)));
  }
}

// One token: the turned weights stay in registers. `ahead`: where the next rows are.
template <class S>
void stream_q8(float* sums, const PanelRows<S>& rows, const float* scales, const int8_t* q,
               const float* d, int64_t b0, int64_t length, const uint8_t* ahead) {
  typedef typename S::F F;
  F sum = S::load(sums);
  for (int64_t b = 0; b < length; b++, q += kMxBlock, d += 2, scales += S::kLanes) {
    SIMD_UNROLL
    for (int line = 0; line < S::kLanes * 16; line += 64) prefetch(ahead + line);
    ahead += S::kLanes * 16;
    typename S::I w[8];
    S::q8_weights(w, rows.blocks, (b0 + b) * 16);
    const typename S::I products = S::dot16(S::dot16(S::zero_ints(), w, q), w + 4, q + 16);
    const F whole = S::sub(S::to_float(products), S::set1(d[1]));
    sum = S::fma(whole, S::mul(S::load(scales), S::set1(d[0])), sum);
  }
  S::store(sums, sum);
}

// A batch: the turned weights of `length` blocks serve all n tokens.
template <class S>
void batch_q8(float* sums, const PanelRows<S>& rows, const float* scales, const int8_t* const* q,
              const float* const* d, int64_t n, int64_t b0, int64_t length) {
  alignas(64) uint8_t turned[kQ8Blocks * kQ8BlockBytes * S::kLanes];
  for (int64_t b = 0; b < length; b++) {
    typename S::I w[8];
    S::q8_weights(w, rows.blocks, (b0 + b) * 16);
    SIMD_UNROLL
    for (int i = 0; i < 8; i++) S::store_bytes(turned + (8 * b + i) * 4 * S::kLanes, w[i]);
  }
  const int64_t tiles = (n + S::kTileTokensQ8 - 1) / S::kTileTokensQ8;
  for (int64_t i = 0, t = 0; i < tiles; i++) {
    const int64_t next = (i + 1) * n / tiles;
    const int8_t* qt[S::kTileTokensQ8];
    const float* dt[S::kTileTokensQ8];
    for (int64_t u = t; u < next; u++) {
      qt[u - t] = q[u] + b0 * kMxBlock;
      dt[u - t] = d[u] + b0 * 2;
    }
    TileQ8Of<S, S::kTileTokensQ8>::run(next - t, sums + t * S::kLanes, turned, scales, qt, dt,
                                       length);
    t = next;
  }
}

// Rows [r0, r0 + rows) with rows <= kLanes, for n <= kPanelTokens tokens; y, q and d are at the
// first of them.
template <class S>
void panel_q8(float* y, int64_t ldy, const int8_t* const* q, const float* const* d, int64_t n,
              const uint8_t* blocks, const uint8_t* scales, int64_t nb, int64_t r0, int64_t rows,
              const uint16_t* bias) {
  alignas(64) float powers[kQ8Blocks * S::kLanes];
  alignas(64) float sums[kPanelTokens * S::kLanes];
  PanelRows<S> at;
  for (int64_t j = 0; j < S::kLanes; j++) {
    const int64_t r = r0 + smaller(j, rows - 1);
    at.blocks[j] = blocks + r * nb * 16;
    at.scales[j] = scales + r * nb;
  }
  memset(sums, 0, n * S::kLanes * sizeof *sums);
  const uint8_t* ahead = blocks + (r0 + S::kLanes) * nb * 16;
  for (int64_t b0 = 0; b0 < nb; b0 += kQ8Blocks) {
    const int64_t length = smaller(kQ8Blocks, nb - b0);
    turn_scales<S>(powers, at, b0, length);
    if (n == 1) {
      stream_q8<S>(sums, at, powers, q[0] + b0 * kMxBlock, d[0] + b0 * 2, b0, length,
                   ahead + b0 * S::kLanes * 16);
    } else {
      batch_q8<S>(sums, at, powers, q, d, n, b0, length);
    }
  }
  for (int64_t t = 0; t < n; t++) {
    for (int64_t j = 0; j < rows; j++) {
      y[t * ldy + r0 + j] = with_bias(sums[t * S::kLanes + j], bias, r0 + j);
    }
  }
}

template <class S>
void matmul_mxfp4_q8(float* y, int64_t ldy, const int8_t* const* q, const float* const* d,
                     int64_t n, const uint8_t* blocks, const uint8_t* scales, int64_t k, int64_t r0,
                     int64_t r1, const uint16_t* bias) {
  for (int64_t r = r0; r < r1; r += S::kLanes) {
    const int64_t rows = smaller(S::kLanes, r1 - r);
    for (int64_t t = 0; t < n; t += kPanelTokens) {
      panel_q8<S>(y + t * ldy, ldy, q + t, d + t, smaller(kPanelTokens, n - t), blocks, scales,
                  k / kMxBlock, r, rows, bias);
    }
  }
}

}  // namespace

#endif  // OSSRUN_CPU_SIMD_Q8_H_
