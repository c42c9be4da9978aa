// Products with bf16 weights by the bf16 matrix product (FEAT_BF16), inputs as sums of two bf16.
//
// bfmmla takes four elements of two rows of weights and of two others, which are here the high and
// the low halves of one token's inputs: 16 significant bits, and no weight is widened. It rounds to
// odd and counts subnormals as zero, so this is not the exact mode's product.
//
// Inputs are taken apart once for all rows of a call, as many columns of them as the stack has room
// for. What must stay true, for batch invariance: the two sums of (row, token), of high and of low
// halves, each take k in ascending order in steps of four, the last one padded with zeros; then
// they are added, and the bias. How much lies in a chunk or a tile does not matter.
#ifndef OSSRUN_CPU_SIMD_BF16_H_
#define OSSRUN_CPU_SIMD_BF16_H_

namespace {

constexpr int64_t kHalvesTokens = 32;     // tokens at a time
constexpr int64_t kHalvesInputs = 12288;  // of all of them: 48 KB
constexpr int64_t kHalvesRows = 64;       // rows whose sums wait on the stack
constexpr int kHalvesTile = 8;            // tokens: 16 sums + 4 weights + 2 inputs

// n inputs as high and low halves, four and four; zeros up to a multiple of eight inputs.
SIMD_INLINE void take_apart(uint16_t* to, const float* x, int64_t n) {
  for (int64_t i = 0; i < (n + 7) / 8 * 8; i += 4) {
    const int64_t left = n - i;
    float32x4_t v = left >= 4 ? Neon::load(x + i) : Neon::zero();
    if (left > 0 && left < 4) v = Neon::load_part(x + i, static_cast<int>(left));
    const bfloat16x4_t high = vcvt_bf16_f32(v);
    const bfloat16x4_t low = vcvt_bf16_f32(vsubq_f32(v, vcvt_f32_bf16(high)));
    memcpy(to + 2 * i, &high, sizeof high);
    memcpy(to + 2 * i + 4, &low, sizeof low);
  }
}

// Adds `length` columns to the sums of four rows and T tokens. rows: the columns of four rows of
// weights. halves: T pointers to what take_apart made of the columns. sums: [T] x 2 vectors, two
// rows each. What lies behind the rows is fetched from `ahead` on, unless it is null.
template <int T>
void tile_halves(float* sums, int64_t stride, const uint16_t* const rows[4],
                 const uint16_t* const* halves, int64_t length, const uint16_t* ahead) {
  float32x4_t s[T][2];
  const uint16_t* xt[T];
  SIMD_UNROLL
  for (int t = 0; t < T; t++) {
    xt[t] = halves[t];
    s[t][0] = Neon::load(sums + t * stride);
    s[t][1] = Neon::load(sums + t * stride + 4);
  }
  const auto eight = [&](const uint64x2_t w[4], int64_t i) {
    bfloat16x8_t pairs[2][2];
    SIMD_UNROLL
    for (int p = 0; p < 2; p++) {
      pairs[0][p] = vreinterpretq_bf16_u64(vzip1q_u64(w[2 * p], w[2 * p + 1]));
      pairs[1][p] = vreinterpretq_bf16_u64(vzip2q_u64(w[2 * p], w[2 * p + 1]));
    }
    SIMD_UNROLL
    for (int t = 0; t < T; t++) {
      SIMD_UNROLL
      for (int half = 0; half < 2; half++) {
        uint16x8_t bits;
        memcpy(&bits, xt[t] + 2 * i + 8 * half, sizeof bits);
        const bfloat16x8_t x = vreinterpretq_bf16_u16(bits);
        s[t][0] = vbfmmlaq_f32(s[t][0], pairs[half][0], x);
        s[t][1] = vbfmmlaq_f32(s[t][1], pairs[half][1], x);
      }
    }
  };
  uint64x2_t w[4];
  int64_t i = 0;
  for (; i + 8 <= length; i += 8) {
    if (ahead != nullptr) prefetch(ahead + 4 * i);
    SIMD_UNROLL
    for (int r = 0; r < 4; r++) memcpy(&w[r], rows[r] + i, sizeof w[r]);
    eight(w, i);
  }
  if (i < length) {
    SIMD_UNROLL
    for (int r = 0; r < 4; r++) {
      uint16_t padded[8] = {};
      memcpy(padded, rows[r] + i, static_cast<size_t>(length - i) * sizeof *padded);
      memcpy(&w[r], padded, sizeof w[r]);
    }
    eight(w, i);
  }
  SIMD_UNROLL
  for (int t = 0; t < T; t++) {
    Neon::store(sums + t * stride, s[t][0]);
    Neon::store(sums + t * stride + 4, s[t][1]);
  }
}

// tile_halves for a number of tokens known only at run time, 1 <= n <= T.
template <int T>
struct TileHalvesOf {
  static void run(int64_t n, float* sums, int64_t stride, const uint16_t* const rows[4],
                  const uint16_t* const* halves, int64_t length, const uint16_t* ahead) {
    if (n == T) return tile_halves<T>(sums, stride, rows, halves, length, ahead);
    TileHalvesOf<T - 1>::run(n, sums, stride, rows, halves, length, ahead);
  }
};
template <>
struct TileHalvesOf<0> {
  static void run(int64_t, float*, int64_t, const uint16_t* const[4], const uint16_t* const*,
                  int64_t, const uint16_t*) {}
};

// `rows` <= kHalvesRows rows, whose weights begin at w, for n <= kHalvesTokens tokens; y is at the
// first of both.
void some_halves(float* y, int64_t ldy, const float* x, int64_t ldx, int64_t n, const uint16_t* w,
                 int64_t k, int64_t rows, const uint16_t* bias) {
  constexpr int64_t kStride = 2 * kHalvesRows;  // of a token's sums
  alignas(64) uint16_t halves[2 * kHalvesInputs];
  alignas(64) float sums[kHalvesTokens * kStride];
  memset(sums, 0, n * kStride * sizeof *sums);
  const int64_t columns = smaller((k + 7) / 8 * 8, kHalvesInputs / n / 8 * 8);
  const int64_t tiles = (n + kHalvesTile - 1) / kHalvesTile;
  for (int64_t k0 = 0; k0 < k; k0 += columns) {
    const int64_t length = smaller(columns, k - k0);
    for (int64_t t = 0; t < n; t++) {
      take_apart(halves + 2 * t * columns, x + t * ldx + k0, length);
    }
    for (int64_t r = 0; r < rows; r += 4) {
      const uint16_t* at[4];
      for (int64_t j = 0; j < 4; j++) at[j] = w + smaller(r + j, rows - 1) * k + k0;
      for (int64_t i = 0, t = 0; i < tiles; i++) {
        const int64_t next = (i + 1) * n / tiles;
        const uint16_t* xt[kHalvesTile];
        for (int64_t u = t; u < next; u++) xt[u - t] = halves + 2 * u * columns;
        // Whole rows lie one behind the other, so what comes next is known.
        const uint16_t* ahead = i == 0 && length == k ? w + (r + 4) * k : nullptr;
        TileHalvesOf<kHalvesTile>::run(next - t, sums + t * kStride + 2 * r, kStride, at, xt,
                                       length, ahead);
        t = next;
      }
    }
  }
  for (int64_t t = 0; t < n; t++) {
    for (int64_t r = 0; r < rows; r++) {
      const float* both = sums + t * kStride + 2 * r;
      y[t * ldy + r] = with_bias(both[0] + both[1], bias, r);
    }
  }
}

void matmul_bf16_halves(float* y, int64_t ldy, const float* x, int64_t ldx, int64_t n,
                        const uint16_t* w, int64_t k, int64_t r0, int64_t r1,
                        const uint16_t* bias) {
  for (int64_t r = r0; r < r1; r += kHalvesRows) {
    const int64_t rows = smaller(kHalvesRows, r1 - r);
    for (int64_t t = 0; t < n; t += kHalvesTokens) {
      some_halves(y + t * ldy + r, ldy, x + t * ldx, ldx, smaller(kHalvesTokens, n - t), w + r * k,
                  k, rows, bias == nullptr ? nullptr : bias + r);
    }
  }
}

}  // namespace

#endif  // OSSRUN_CPU_SIMD_BF16_H_
