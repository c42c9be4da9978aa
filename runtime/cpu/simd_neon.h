// Four float32 lanes on ARMv8.2 NEON with the dot product: the vocabulary of simd_avx2.h.
//
// The dot product multiplies signed bytes with signed bytes, so MXFP4 weights stay signed and the
// sums of a block begin at nothing.
#ifndef OSSRUN_CPU_SIMD_NEON_H_
#define OSSRUN_CPU_SIMD_NEON_H_

namespace {

constexpr E2m1Bytes kE2m1Bytes;
constexpr int8_t kTwiceE2m1[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

struct Neon {
  typedef float32x4_t F;
  typedef int32x4_t I;
  static constexpr int kLanes = 4;
  static constexpr int kTileTokens = 5;  // 4 rows x 5 tokens of sums + 5 + 1
  static constexpr bool kTokenPairs = false;
  typedef int16_t DenseQ;
  static constexpr int kDenseNumbers = 1;
  static constexpr int kDenseColumns = 4;
  static constexpr int kRowVectorsDenseQ8 = 1;
  static constexpr int kTileTokensDenseQ8 = 8;  // 8 sums + 8 integer sums + 2
  static constexpr bool kDenseSumsStay = false;
  static constexpr bool kDenseReady = true;
  static constexpr int kRowVectors = 2;    // of 8-bit tiles
  static constexpr int kTileHeads = 8;     // of attention: 8 heads x 2 vectors of sums + 2 + 8
  static constexpr int kTileTokensQ8 = 5;  // 10 sums + 10 integer sums + 2 weights + 1
  static constexpr int kRowTokens = 0;     // simd_q8_rows.h was not tried
  static constexpr bool kTwoRows = false;
  static constexpr bool kUsualScales = false;

  SIMD_INLINE F zero() { return vdupq_n_f32(0); }
  SIMD_INLINE F set1(float a) { return vdupq_n_f32(a); }
  SIMD_INLINE F load(const float* p) {
    F a;
    memcpy(&a, p, sizeof a);  // at any address
    return a;
  }
  SIMD_INLINE void store(float* p, F a) { memcpy(p, &a, sizeof a); }
  SIMD_INLINE F add(F a, F b) { return vaddq_f32(a, b); }
  SIMD_INLINE F sub(F a, F b) { return vsubq_f32(a, b); }
  SIMD_INLINE F mul(F a, F b) { return vmulq_f32(a, b); }
  SIMD_INLINE F div(F a, F b) { return vdivq_f32(a, b); }
  SIMD_INLINE F fma(F a, F b, F c) { return vfmaq_f32(c, a, b); }  // a*b + c
  // Where one is not a number these give the second.
  SIMD_INLINE F min(F a, F b) { return vbslq_f32(vcltq_f32(a, b), a, b); }
  SIMD_INLINE F max(F a, F b) { return vbslq_f32(vcgtq_f32(a, b), a, b); }
  SIMD_INLINE F abs(F a) { return vabsq_f32(a); }

  // The first n lanes (1 <= n < kLanes): the others load as zero and are not stored.
  SIMD_INLINE F load_part(const float* p, int n) {
    float padded[kLanes] = {};
    memcpy(padded, p, n * sizeof *p);
    return load(padded);
  }
  SIMD_INLINE void store_part(float* p, F a, int n) {
    float all[kLanes];
    store(all, a);
    memcpy(p, all, n * sizeof *p);
  }

  SIMD_INLINE float sum(F a) { return vaddvq_f32(a); }
  SIMD_INLINE float max_lane(F a) { return vmaxvq_f32(a); }
  // out[i] = the sum of the lanes of the i-th vector.
  SIMD_INLINE void sum4(float out[4], F a, F b, F c, F d) {
    store(out, vpaddq_f32(vpaddq_f32(a, b), vpaddq_f32(c, d)));
  }

  SIMD_INLINE F nearest(F a) { return vrndnq_f32(a); }
  // 2^a for whole numbers a in -126..127.
  SIMD_INLINE F power_of_2(F a) {
    const I biased = vaddq_s32(vcvtnq_s32_f32(a), vdupq_n_s32(127));
    return vreinterpretq_f32_s32(vshlq_n_s32(biased, 23));
  }
  // a * 2^n for whole numbers n: only where the result is a normal number.
  SIMD_INLINE F times_power_of_2(F a, F n) {
    const I moved = vshlq_n_s32(vcvtnq_s32_f32(n), 23);
    return vreinterpretq_f32_s32(vaddq_s32(vreinterpretq_s32_f32(a), moved));
  }
  // a where x is not below the limit (or not a number), zero elsewhere.
  SIMD_INLINE F zero_below(F a, F x, float limit) {
    const uint32x4_t below = vcltq_f32(x, vdupq_n_f32(limit));
    return vreinterpretq_f32_u32(vbicq_u32(vreinterpretq_u32_f32(a), below));
  }

  SIMD_INLINE F load_bf16(const void* p) {
    uint16x4_t half;
    memcpy(&half, p, sizeof half);
    return vreinterpretq_f32_u32(vshll_n_u16(half, 16));
  }
  // kLanes e4m3 codes. As the upper bits of a half a code is its value / 256.
  SIMD_INLINE F load_f8(const uint8_t* p) {
    uint8_t padded[8] = {};
    memcpy(padded, p, kLanes);
    const int16x8_t moved = vshrq_n_s16(vreinterpretq_s16_u16(vshll_n_u8(vld1_u8(padded), 8)), 1);
    const int16x4_t half = vand_s16(vget_low_s16(moved), vdup_n_s16(static_cast<int16_t>(0xbfff)));
    return vmulq_n_f32(vcvt_f32_f16(vreinterpret_f16_s16(half)), 256.0f);
  }
  // Rounded to nearest, ties to even; not-a-number stays one.
  SIMD_INLINE void store_bf16(void* p, F a) {
    const uint32x4_t bits = vreinterpretq_u32_f32(a);
    const uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
    const uint32x4_t rounded = vaddq_u32(bits, vaddq_u32(odd, vdupq_n_u32(0x7fff)));
    const uint32x4_t quiet = vorrq_u32(bits, vdupq_n_u32(0x00400000));
    const uint16x4_t half = vshrn_n_u32(vbslq_u32(vceqq_f32(a, a), rounded, quiet), 16);
    memcpy(p, &half, sizeof half);
  }

  // Lanes 0, 2, 4... (1, 3, 5...) of the 2*kLanes floats in a and b.
  SIMD_INLINE F evens(F a, F b) { return vuzp1q_f32(a, b); }
  SIMD_INLINE F odds(F a, F b) { return vuzp2q_f32(a, b); }

  SIMD_INLINE uint8x16_t load16(const void* p) {
    uint8x16_t a;
    memcpy(&a, p, sizeof a);
    return a;
  }

  // The 32 weights of a block in natural order: the nibbles side by side, a table for each of the
  // two upper bytes of their float32.
  SIMD_INLINE void mx_weights(F w[8], const uint8_t* block, uint8_t scale) {
    const uint8x16_t bytes = load16(block);
    const uint8x16_t low = vandq_u8(bytes, vdupq_n_u8(15)), high = vshrq_n_u8(bytes, 4);
    const uint8x16_t codes[2] = {vzip1q_u8(low, high), vzip2q_u8(low, high)};
    const uint8x16_t lower = load16(kE2m1Bytes.of[scale].low);
    const uint8x16_t upper = load16(kE2m1Bytes.of[scale].high);
    SIMD_UNROLL
    for (int i = 0; i < 2; i++) {
      const uint8x16_t l = vqtbl1q_u8(lower, codes[i]), u = vqtbl1q_u8(upper, codes[i]);
      const uint16x8_t a = vreinterpretq_u16_u8(vzip1q_u8(l, u));
      const uint16x8_t b = vreinterpretq_u16_u8(vzip2q_u8(l, u));
      w[4 * i] = vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(a), 16));
      w[4 * i + 1] = vreinterpretq_f32_u32(vshll_high_n_u16(a, 16));
      w[4 * i + 2] = vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(b), 16));
      w[4 * i + 3] = vreinterpretq_f32_u32(vshll_high_n_u16(b, 16));
    }
  }

  // One block of kLanes rows turned around: four bytes 2 * e2m1 a lane. w[2j] has elements
  // 8j + 0, 2, 4, 6 of every row, w[2j+1] elements 8j + 1, 3, 5, 7.
  SIMD_INLINE void q8_weights(I w[8], const uint8_t* const rows[4], int64_t offset) {
    I d[4];
    turn4(d, rows, offset);
    const int8x16_t table = vreinterpretq_s8_u8(load16(kTwiceE2m1));
    SIMD_UNROLL
    for (int j = 0; j < 4; j++) {
      const uint8x16_t bytes = vreinterpretq_u8_s32(d[j]);
      const uint8x16_t low = vandq_u8(bytes, vdupq_n_u8(15)), high = vshrq_n_u8(bytes, 4);
      w[2 * j] = vreinterpretq_s32_s8(vqtbl1q_s8(table, low));
      w[2 * j + 1] = vreinterpretq_s32_s8(vqtbl1q_s8(table, high));
    }
  }
  // 16 bytes of each of kLanes rows turned around: d[j] has bytes 4j to 4j + 3 of every row.
  SIMD_INLINE void turn4(I d[4], const uint8_t* const rows[4], int64_t offset) {
    uint32x4_t a[4];
    SIMD_UNROLL
    for (int i = 0; i < 4; i++) a[i] = vreinterpretq_u32_u8(load16(rows[i] + offset));
    const uint64x2_t t0 = vreinterpretq_u64_u32(vtrn1q_u32(a[0], a[1]));
    const uint64x2_t t1 = vreinterpretq_u64_u32(vtrn2q_u32(a[0], a[1]));
    const uint64x2_t t2 = vreinterpretq_u64_u32(vtrn1q_u32(a[2], a[3]));
    const uint64x2_t t3 = vreinterpretq_u64_u32(vtrn2q_u32(a[2], a[3]));
    d[0] = vreinterpretq_s32_u64(vtrn1q_u64(t0, t2));
    d[1] = vreinterpretq_s32_u64(vtrn1q_u64(t1, t3));
    d[2] = vreinterpretq_s32_u64(vtrn2q_u64(t0, t2));
    d[3] = vreinterpretq_s32_u64(vtrn2q_u64(t1, t3));
  }
  // What the dwords of a are: float32, or two bf16 each, the first in the lower half.
  SIMD_INLINE F as_float(I a) { return vreinterpretq_f32_s32(a); }
  SIMD_INLINE F first_bf16(I a) { return as_float(vshlq_n_s32(a, 16)); }
  SIMD_INLINE F second_bf16(I a) {
    return as_float(vandq_s32(a, vdupq_n_s32(static_cast<int32_t>(0xffff0000u))));
  }
  SIMD_INLINE void store_bytes(uint8_t* p, I a) { memcpy(p, &a, sizeof a); }
  SIMD_INLINE I load_bytes(const uint8_t* p) { return vreinterpretq_s32_u8(load16(p)); }
  SIMD_INLINE I mix(I a, I b) { return veorq_s32(a, b); }
  // a in a register: GCC would load it again for each use.
  SIMD_INLINE I kept(I a) {
    __asm__("" : "+w"(a));
    return a;
  }
  SIMD_INLINE I zero_ints() { return vdupq_n_s32(0); }
  SIMD_INLINE F to_float(I a) { return vcvtq_f32_s32(a); }

  // The 8-bit sums of a block are int32; nothing is unsigned, so they begin at zero.
  SIMD_INLINE void store_block_start(float* to, const int8_t*) { *to = 0; }
  SIMD_INLINE I block_start(const float*) { return zero_ints(); }
  SIMD_INLINE I four(const int8_t* q) {
    int32_t bytes;
    memcpy(&bytes, q, sizeof bytes);
    return vdupq_n_s32(bytes);
  }
  SIMD_INLINE I dot4(I sums, I w, I four) {
    return vdotq_s32(sums, vreinterpretq_s8_s32(w), vreinterpretq_s8_s32(four));
  }
  SIMD_INLINE I block_end(I sums) { return sums; }

  // Dense weights stay bytes: a 12-bit activation is 128 * high + low, each a byte, so two dot
  // products do what widened weights would need four multiplications for.
  static constexpr float kDenseUnit = 1;
  typedef I Dense;
  SIMD_INLINE Dense load_dense(const uint8_t* p, const uint8_t*) { return kept(load_bytes(p)); }
  SIMD_INLINE F dense_scales(const uint8_t* p, const uint8_t*) { return load_bf16(p); }
  struct DenseInput {
    I high, low;
  };
  SIMD_INLINE DenseInput dense_input(const int16_t* q) {
    const int8_t* bytes = reinterpret_cast<const int8_t*>(q);
    return {four(bytes), four(bytes + 4)};
  }
  typedef DenseInput DenseSum;
  SIMD_INLINE DenseSum dense_start(const float*) { return {zero_ints(), zero_ints()}; }
  SIMD_INLINE DenseSum dense_dot(const DenseSum& sum, Dense w, const DenseInput& q) {
    return {dot4(sum.high, w, q.high), dot4(sum.low, w, q.low)};
  }
  SIMD_INLINE F dense_end(const DenseSum& sum) {
    return to_float(vaddq_s32(vshlq_n_s32(sum.high, 7), sum.low));
  }
  // Eight whole numbers within -2047..2047 as high bytes and low ones, columns 0 2 4 6 1 3 5 7.
  struct Halves {
    int32x2_t high, low;
  };
  SIMD_INLINE Halves halves(F first, F second) {
    const I a = vcvtnq_s32_f32(first), b = vcvtnq_s32_f32(second);
    const int16x8_t whole = vcombine_s16(vmovn_s32(vuzp1q_s32(a, b)), vmovn_s32(vuzp2q_s32(a, b)));
    const int16x8_t high = vrshrq_n_s16(whole, 7);
    const int16x8_t low = vsubq_s16(whole, vshlq_n_s16(high, 7));
    return {vreinterpret_s32_s8(vmovn_s16(high)), vreinterpret_s32_s8(vmovn_s16(low))};
  }
  // 32 of them: of columns 0 2 4 6 of every eight four high bytes, four low ones, then the same of
  // columns 1 3 5 7.
  SIMD_INLINE void store_q12(int16_t* q, const F v[8]) {
    SIMD_UNROLL
    for (int i = 0; i < 8; i += 2, q += 8) {
      const Halves h = halves(v[i], v[i + 1]);
      const int32x2x2_t turned = vzip_s32(h.high, h.low);
      memcpy(q, &turned, sizeof turned);
    }
  }

  // One round of eight independent dot products.
  static constexpr int64_t kPeakOperations = 8 * 16 * 2;
  SIMD_INLINE void peak_round(I a[8]) {
    const I one = vdupq_n_s32(0x01020304);
    SIMD_UNROLL
    for (int i = 0; i < 8; i++) a[i] = kept(dot4(a[i], one, one));
  }

  // Eight bytes of kLanes rows turned around: out[8][kLanes].
  SIMD_INLINE void turn8(uint8_t* out, const uint8_t* const rows[4], int64_t offset) {
    uint8x8_t r[4];
    SIMD_UNROLL
    for (int i = 0; i < 4; i++) memcpy(&r[i], rows[i] + offset, sizeof r[i]);
    const uint8x8x2_t a = vzip_u8(r[0], r[1]), b = vzip_u8(r[2], r[3]);
    SIMD_UNROLL
    for (int i = 0; i < 2; i++) {
      const uint16x4x2_t four =
          vzip_u16(vreinterpret_u16_u8(a.val[i]), vreinterpret_u16_u8(b.val[i]));
      memcpy(out + 16 * i, &four.val[0], 8);
      memcpy(out + 16 * i + 8, &four.val[1], 8);
    }
  }

  // 2^(scale - 128) of kLanes scale bytes, half the scale, since weights are doubled; byte 0 is
  // subnormal.
  SIMD_INLINE F scales(const uint8_t* p) {
    uint8_t padded[8] = {};
    memcpy(padded, p, kLanes);
    const uint32x4_t wide = vmovl_u16(vget_low_u16(vmovl_u8(vld1_u8(padded))));
    const uint32x4_t bits = vmaxq_u32(vshlq_n_u32(wide, 23), vdupq_n_u32(0x00400000));
    return vmulq_n_f32(vreinterpretq_f32_u32(bits), 0.5f);
  }
  SIMD_INLINE F unit(F scale, F size) { return vmulq_f32(scale, size); }

  // 32 whole numbers within -127..127 as bytes, columns 0 2 4 6 1 3 5 7 of every eight.
  SIMD_INLINE void store_q8(int8_t* q, const F v[8]) {
    static constexpr uint8_t kApart[16] = {0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15};
    SIMD_UNROLL
    for (int i = 0; i < 2; i++) {
      int16x4_t h[4];
      SIMD_UNROLL
      for (int j = 0; j < 4; j++) h[j] = vmovn_s32(vcvtnq_s32_f32(v[4 * i + j]));
      const int8x16_t bytes =
          vcombine_s8(vmovn_s16(vcombine_s16(h[0], h[1])), vmovn_s16(vcombine_s16(h[2], h[3])));
      const int8x16_t apart = vqtbl1q_s8(bytes, load16(kApart));
      memcpy(q + 16 * i, &apart, sizeof apart);
    }
  }
};

// Dense weights with 8-bit inputs.
struct NeonDense8 : Neon {
  typedef int8_t DenseQ;
  static constexpr int kDenseNumbers = 2;
  typedef I DenseInput;
  SIMD_INLINE DenseInput dense_input(const int8_t* q) { return four(q); }
  typedef I DenseSum;
  SIMD_INLINE DenseSum dense_start(const float*) { return zero_ints(); }
  SIMD_INLINE DenseSum dense_dot(DenseSum sum, Dense w, DenseInput q) { return dot4(sum, w, q); }
  SIMD_INLINE F dense_end(DenseSum sum) { return to_float(sum); }
};

}  // namespace

#endif  // OSSRUN_CPU_SIMD_NEON_H_
