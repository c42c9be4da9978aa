// Eight float32 lanes on AVX2 and FMA: the vocabulary that the kernel templates are written in.
//
// simd_avx512.h says the same with sixteen lanes, kerneltest/simd_portable16.h with plain arrays. A
// vector is F, a vector of int32 is I. Nothing here needs an aligned pointer.
#ifndef OSSRUN_CPU_SIMD_AVX2_H_
#define OSSRUN_CPU_SIMD_AVX2_H_

namespace {

constexpr E2m1Bytes kE2m1Bytes;

// Eight bytes of eight rows turned around: pairs[i] has bytes 2i and then 2i+1 of every row.
SIMD_INLINE void turn8x8(__m128i pairs[4], const uint8_t* const rows[8], int64_t offset) {
  __m128i r[8], p[4];
  SIMD_UNROLL
  for (int i = 0; i < 8; i++) {
    r[i] = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(rows[i] + offset));
  }
  SIMD_UNROLL
  for (int i = 0; i < 4; i++) p[i] = _mm_unpacklo_epi8(r[2 * i], r[2 * i + 1]);
  const __m128i a = _mm_unpacklo_epi16(p[0], p[1]), b = _mm_unpackhi_epi16(p[0], p[1]);
  const __m128i c = _mm_unpacklo_epi16(p[2], p[3]), d = _mm_unpackhi_epi16(p[2], p[3]);
  pairs[0] = _mm_unpacklo_epi32(a, c);
  pairs[1] = _mm_unpackhi_epi32(a, c);
  pairs[2] = _mm_unpacklo_epi32(b, d);
  pairs[3] = _mm_unpackhi_epi32(b, d);
}

// For weights whose scales may be any.
struct Avx2AnyScales {
  typedef __m256 F;
  typedef __m256i I;
  static constexpr int kLanes = 8;
  static constexpr int kTileTokens = 3;  // 4 rows x 3 tokens of sums + 3 + 1: all 16 registers
  static constexpr bool kTokenPairs = false;
  typedef int16_t DenseQ;
  static constexpr int kDenseNumbers = 1;
  static constexpr int kDenseColumns = 4;
  static constexpr int kRowVectorsDenseQ8 = 2;
  static constexpr int kTileTokensDenseQ8 = 5;  // 10 sums + 4 weights + 1; one more in the making
  static constexpr bool kDenseSumsStay = false;
  static constexpr bool kDenseReady = true;
  static constexpr int kTileHeads = 4;  // of attention: 4 heads x 2 vectors of sums + 2 + 4
  static constexpr int kRowVectors = 1;
  static constexpr int kTileTokensQ8 = 1;
  static constexpr int kRowTokens = 0;  // neither of simd_q8_rows.h
  static constexpr bool kTwoRows = false;
  static constexpr bool kUsualScales = false;

  SIMD_INLINE F zero() { return _mm256_setzero_ps(); }
  SIMD_INLINE F set1(float a) { return _mm256_set1_ps(a); }
  SIMD_INLINE F load(const float* p) { return _mm256_loadu_ps(p); }
  SIMD_INLINE void store(float* p, F a) { _mm256_storeu_ps(p, a); }
  SIMD_INLINE F add(F a, F b) { return _mm256_add_ps(a, b); }
  SIMD_INLINE F sub(F a, F b) { return _mm256_sub_ps(a, b); }
  SIMD_INLINE F mul(F a, F b) { return _mm256_mul_ps(a, b); }
  SIMD_INLINE F div(F a, F b) { return _mm256_div_ps(a, b); }
  SIMD_INLINE F fma(F a, F b, F c) { return _mm256_fmadd_ps(a, b, c); }  // a*b + c
  // Where one is not a number these give the second.
  SIMD_INLINE F min(F a, F b) { return _mm256_min_ps(a, b); }
  SIMD_INLINE F max(F a, F b) { return _mm256_max_ps(a, b); }
  SIMD_INLINE F abs(F a) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a); }

  // The first n lanes (1 <= n < kLanes): the others load as zero and are not stored.
  SIMD_INLINE I first(int n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
  SIMD_INLINE F load_part(const float* p, int n) { return _mm256_maskload_ps(p, first(n)); }
  SIMD_INLINE void store_part(float* p, F a, int n) { _mm256_maskstore_ps(p, first(n), a); }

  SIMD_INLINE float sum(F a) {
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
  }
  SIMD_INLINE float max_lane(F a) {
    __m128 s = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    s = _mm_max_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_max_ss(s, _mm_movehdup_ps(s)));
  }
  // out[i] = the sum of the lanes of the i-th vector.
  SIMD_INLINE void sum4(float out[4], F a, F b, F c, F d) {
    const F s = _mm256_hadd_ps(_mm256_hadd_ps(a, b), _mm256_hadd_ps(c, d));
    _mm_storeu_ps(out, _mm_add_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1)));
  }

  SIMD_INLINE F nearest(F a) {
    return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
  // 2^a for whole numbers a in -126..127.
  SIMD_INLINE F power_of_2(F a) {
    const I biased = _mm256_add_epi32(_mm256_cvtps_epi32(a), _mm256_set1_epi32(127));
    return _mm256_castsi256_ps(_mm256_slli_epi32(biased, 23));
  }
  // a * 2^n for whole numbers n: only where the result is a normal number.
  SIMD_INLINE F times_power_of_2(F a, F n) {
    const I moved = _mm256_slli_epi32(_mm256_cvtps_epi32(n), 23);
    return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(a), moved));
  }
  // a where x is not below the limit (or not a number), zero elsewhere.
  SIMD_INLINE F zero_below(F a, F x, float limit) {
    return _mm256_and_ps(a, _mm256_cmp_ps(x, _mm256_set1_ps(limit), _CMP_NLT_UQ));
  }

  SIMD_INLINE F load_bf16(const void* p) {
    const __m128i half = _mm_loadu_si128(static_cast<const __m128i*>(p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
  }
  // kLanes e4m3 codes. As the upper bits of a half a code is its value / 256.
  SIMD_INLINE F load_f8(const uint8_t* p) {
    const __m128i codes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
    const __m128i moved = _mm_srai_epi16(_mm_unpacklo_epi8(_mm_setzero_si128(), codes), 1);
    const __m128i half = _mm_and_si128(moved, _mm_set1_epi16(static_cast<int16_t>(0xbfff)));
    return _mm256_mul_ps(_mm256_cvtph_ps(half), _mm256_set1_ps(256.0f));
  }
  // Rounded to nearest, ties to even; not-a-number stays one.
  SIMD_INLINE void store_bf16(void* p, F a) {
    const I bits = _mm256_castps_si256(a);
    const I odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const I rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    const I quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x00400000));
    const I nan = _mm256_castps_si256(_mm256_cmp_ps(a, a, _CMP_UNORD_Q));
    const I half = _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, nan), 16);
    const I packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(half, half), 0x08);
    _mm_storeu_si128(static_cast<__m128i*>(p), _mm256_castsi256_si128(packed));
  }

  // Lanes 0, 2, 4... (1, 3, 5...) of the 2*kLanes floats in a and b.
  SIMD_INLINE F evens(F a, F b) { return in_order(_mm256_shuffle_ps(a, b, 0x88)); }
  SIMD_INLINE F odds(F a, F b) { return in_order(_mm256_shuffle_ps(a, b, 0xdd)); }
  SIMD_INLINE F in_order(F a) {
    return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(a), 0xd8));
  }

  // The 32 weights of a block in natural order. Two byte shuffles make bf16 values; the bytes are
  // laid out first so that each dword holds elements j and j + 8, which a shift and a mask part.
  SIMD_INLINE void mx_weights(F w[4], const uint8_t* block, uint8_t scale) {
    const I spread = _mm256_setr_epi8(0, 4, 0, 4, 1, 5, 1, 5, 8, 12, 8, 12, 9, 13, 9, 13,  //
                                      2, 6, 2, 6, 3, 7, 3, 7, 10, 14, 10, 14, 11, 15, 11, 15);
    const I pairs = _mm256_shuffle_epi8(both(block), spread);
    const I nibbles = _mm256_blend_epi16(pairs, _mm256_srli_epi32(pairs, 4), 0xaa);
    const I codes = _mm256_and_si256(nibbles, _mm256_set1_epi8(15));
    const I low = _mm256_shuffle_epi8(both(kE2m1Bytes.of[scale].low), codes);
    const I high = _mm256_shuffle_epi8(both(kE2m1Bytes.of[scale].high), codes);
    const I upper = _mm256_set1_epi32(static_cast<int>(0xffff0000u));
    const I a = _mm256_unpacklo_epi8(low, high), b = _mm256_unpackhi_epi8(low, high);
    w[0] = _mm256_castsi256_ps(_mm256_slli_epi32(a, 16));
    w[1] = _mm256_castsi256_ps(_mm256_and_si256(a, upper));
    w[2] = _mm256_castsi256_ps(_mm256_slli_epi32(b, 16));
    w[3] = _mm256_castsi256_ps(_mm256_and_si256(b, upper));
  }
  SIMD_INLINE I both(const uint8_t* p) {
    return _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }

  // One block of kLanes rows turned around: four bytes 2 * e2m1 + 12 a lane. w[2j] has elements
  // 8j + 0, 2, 4, 6 of every row, w[2j+1] elements 8j + 1, 3, 5, 7.
  SIMD_INLINE void q8_weights(I w[8], const uint8_t* const rows[8], int64_t offset) {
    I d[4];
    turn4(d, rows, offset);
    SIMD_UNROLL
    for (int j = 0; j < 4; j++) weights_of(w + 2 * j, d[j]);
  }
  // Bytes 2 * e2m1 + 12 of the lower nibbles, and of the upper ones.
  SIMD_INLINE void weights_of(I w[2], I bytes) {
    const I table = both(kE2m1Plus12), nibble = _mm256_set1_epi8(15);
    w[0] = _mm256_shuffle_epi8(table, _mm256_and_si256(bytes, nibble));
    w[1] = _mm256_shuffle_epi8(table, _mm256_and_si256(_mm256_srli_epi32(bytes, 4), nibble));
  }
  // 16 bytes of each of kLanes rows turned around: d[j] has bytes 4j to 4j + 3 of every row.
  SIMD_INLINE void turn4(I d[4], const uint8_t* const rows[8], int64_t offset) {
    I a[4];
    SIMD_UNROLL
    for (int i = 0; i < 4; i++) a[i] = halves(rows[i] + offset, rows[4 + i] + offset);
    turn_dwords(d, a);
  }
  // The same of rows that are `stride` bytes apart.
  SIMD_INLINE void turn4(I d[4], const uint8_t* p, int64_t stride) {
    I a[4];
    SIMD_UNROLL
    for (int i = 0; i < 4; i++) a[i] = halves(p + i * stride, p + (4 + i) * stride);
    turn_dwords(d, a);
  }
  SIMD_INLINE I halves(const uint8_t* low, const uint8_t* high) {
    return _mm256_inserti128_si256(
        _mm256_castsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(low))),
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(high)), 1);
  }
  // Dword j of every row's four, of four rows after one another in every four lanes, as d[j].
  SIMD_INLINE void turn_dwords(I d[4], const I a[4]) {
    const I t0 = _mm256_unpacklo_epi32(a[0], a[1]), t1 = _mm256_unpackhi_epi32(a[0], a[1]);
    const I t2 = _mm256_unpacklo_epi32(a[2], a[3]), t3 = _mm256_unpackhi_epi32(a[2], a[3]);
    d[0] = _mm256_unpacklo_epi64(t0, t2);
    d[1] = _mm256_unpackhi_epi64(t0, t2);
    d[2] = _mm256_unpacklo_epi64(t1, t3);
    d[3] = _mm256_unpackhi_epi64(t1, t3);
  }
  // What the dwords of a are: float32, or two bf16 each, the first in the lower half.
  SIMD_INLINE F as_float(I a) { return _mm256_castsi256_ps(a); }
  SIMD_INLINE F first_bf16(I a) { return as_float(_mm256_slli_epi32(a, 16)); }
  SIMD_INLINE F second_bf16(I a) {
    return as_float(_mm256_and_si256(a, _mm256_set1_epi32(static_cast<int>(0xffff0000u))));
  }
  SIMD_INLINE void store_bytes(uint8_t* p, I a) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), a);
  }
  SIMD_INLINE I load_bytes(const uint8_t* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }
  // a in a register, and now: GCC would load it again for each use, and turn a chain of additions
  // into a tree that needs three times the registers there are.
  SIMD_INLINE I kept(I a) {
    __asm__("" : "+x"(a));
    return a;
  }
  SIMD_INLINE I zero_ints() { return _mm256_setzero_si256(); }
  SIMD_INLINE I mix(I a, I b) { return _mm256_xor_si256(a, b); }
  SIMD_INLINE F to_float(I a) { return _mm256_cvtepi32_ps(a); }

  // The 8-bit sums of a block, without VNNI: two int16 a lane, for bytes 0, 1 and 2, 3 of the
  // fours. They begin with -12 * sum(q) of their bytes and end within 16 * 12 * 127 = 24384; in
  // between they may wrap, which takes nothing from an exact end. One vpmaddubsw is at most 2 * 24
  // * 127.
  SIMD_INLINE void store_block_start(float* to, const int8_t* q) {
    const I bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(q));
    const I sums = _mm256_maddubs_epi16(_mm256_set1_epi8(12), bytes);
    __m128i s = _mm_add_epi16(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
    s = _mm_add_epi16(s, _mm_shuffle_epi32(s, 0x4e));
    s = _mm_add_epi16(s, _mm_shuffle_epi32(s, 0xb1));
    const int32_t pair = _mm_cvtsi128_si32(_mm_sub_epi16(_mm_setzero_si128(), s));
    memcpy(to, &pair, sizeof pair);
  }
  SIMD_INLINE I block_start(const float* p) {
    int32_t pair;
    memcpy(&pair, p, sizeof pair);
    return _mm256_set1_epi32(pair);
  }
  SIMD_INLINE I dot4(I sums, I w, I four) {
    return kept(_mm256_add_epi16(sums, _mm256_maddubs_epi16(w, four)));
  }
  SIMD_INLINE I block_end(I sums) { return _mm256_madd_epi16(sums, _mm256_set1_epi16(1)); }

  // Of every four lanes of sums the sum, a's first, then b's, c's and d's, after block_end; for
  // rows that dot4 added up from nothing, 8 bytes a lane: within 8 * 24 * 127 = 24384, an int16.
  SIMD_INLINE I sum_fours(I a, I b, I c, I d) {
    return fours_of(block_end(a), block_end(b), block_end(c), block_end(d));
  }
  SIMD_INLINE I fours_of(I a, I b, I c, I d) {
    const I one = _mm256_set1_epi16(1);
    const F ab = as_float(_mm256_madd_epi16(_mm256_packs_epi32(a, b), one));
    const F cd = as_float(_mm256_madd_epi16(_mm256_packs_epi32(c, d), one));
    return _mm256_add_epi32(_mm256_castps_si256(_mm256_shuffle_ps(ab, cd, 0x88)),
                            _mm256_castps_si256(_mm256_shuffle_ps(ab, cd, 0xdd)));
  }
  // to[i] has the i-th four lanes of every vector.
  SIMD_INLINE void turn_fours(I to[2], const I from[2]) {
    to[0] = _mm256_permute2x128_si256(from[0], from[1], 0x20);
    to[1] = _mm256_permute2x128_si256(from[0], from[1], 0x31);
  }
  SIMD_INLINE I even_ints(I a, I b) { return _mm256_castps_si256(evens(as_float(a), as_float(b))); }
  SIMD_INLINE I odd_ints(I a, I b) { return _mm256_castps_si256(odds(as_float(a), as_float(b))); }
  SIMD_INLINE I add_ints(I a, I b) { return _mm256_add_epi32(a, b); }

  // Dense weights: of four bytes a lane the first and third, and the second and fourth, as int16
  // that are 256 times the weight, which one operation makes. kDenseUnit takes the 256 off again. A
  // block's sum is at most 256 * 128 * 2047 * 32, just within int32.
  static constexpr float kDenseUnit = 1.0f / 256;
  struct Dense {
    I evens, odds;
  };
  SIMD_INLINE Dense load_dense(const uint8_t* p, const uint8_t*) {
    const I w = load_bytes(p);
    return {kept(_mm256_slli_epi16(w, 8)), kept(_mm256_and_si256(w, _mm256_set1_epi16(-256)))};
  }
  SIMD_INLINE F dense_scales(const uint8_t* p, const uint8_t*) { return load_bf16(p); }
  // Four 12-bit activations in all lanes, paired like the weights.
  typedef Dense DenseInput;
  SIMD_INLINE DenseInput dense_input(const int16_t* q) { return {pair(q), pair(q + 2)}; }
  SIMD_INLINE I pair(const int16_t* q) {
    int32_t both;
    memcpy(&both, q, sizeof both);
    return _mm256_set1_epi32(both);
  }
  typedef I DenseSum;
  SIMD_INLINE DenseSum dense_start(const float*) { return zero_ints(); }
  SIMD_INLINE DenseSum dense_dot(DenseSum sum, const Dense& w, const DenseInput& q) {
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(w.evens, q.evens));
    __asm__("" : "+x"(sum));  // in this order, as above
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(w.odds, q.odds));
    __asm__("" : "+x"(sum));
    return sum;
  }
  SIMD_INLINE F dense_end(DenseSum sum) { return to_float(sum); }
  // 32 whole numbers within -2047..2047 as dense_input reads them: 0 4 2 6 1 5 3 7 of every eight.
  SIMD_INLINE void store_q12(int16_t* q, const F v[4]) {
    const I order = _mm256_setr_epi32(0, 4, 2, 6, 1, 5, 3, 7);
    SIMD_UNROLL
    for (int i = 0; i < 4; i += 2) {
      const I a = _mm256_permutevar8x32_epi32(_mm256_cvtps_epi32(v[i]), order);
      const I b = _mm256_permutevar8x32_epi32(_mm256_cvtps_epi32(v[i + 1]), order);
      const I both = _mm256_permute4x64_epi64(_mm256_packs_epi32(a, b), 0xd8);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(q + 8 * i), both);
    }
  }

  SIMD_INLINE I four(const int8_t* q) {
    int32_t bytes;
    memcpy(&bytes, q, sizeof bytes);
    return _mm256_set1_epi32(bytes);
  }

  // One round of eight vpmaddubsw whose results are added up, which is what stands for one vpdpbusd
  // each where there is no VNNI. In assembly, so that the compiler neither merges nor spills them.
  static constexpr int64_t kPeakOperations = 8 * 32 * 2;
  SIMD_INLINE void peak_round(I a[8]) {
    const I one = _mm256_set1_epi32(0x01020304);
    I product;
#define PEAK_PAIR(sum) "vpmaddubsw %9, %9, %8\n\tvpaddw %8, " sum ", " sum "\n\t"
    __asm__ volatile(PEAK_PAIR("%0") PEAK_PAIR("%1") PEAK_PAIR("%2") PEAK_PAIR("%3") PEAK_PAIR("%4")
                         PEAK_PAIR("%5") PEAK_PAIR("%6") PEAK_PAIR("%7")
                     : "+x"(a[0]), "+x"(a[1]), "+x"(a[2]), "+x"(a[3]), "+x"(a[4]), "+x"(a[5]),
                       "+x"(a[6]), "+x"(a[7]), "=&x"(product)
                     : "x"(one));
#undef PEAK_PAIR
  }

  // Eight bytes of kLanes rows turned around: out[8][kLanes].
  SIMD_INLINE void turn8(uint8_t* out, const uint8_t* const rows[8], int64_t offset) {
    __m128i pairs[4];
    turn8x8(pairs, rows, offset);
    SIMD_UNROLL
    for (int i = 0; i < 4; i++) _mm_storeu_si128(reinterpret_cast<__m128i*>(out) + i, pairs[i]);
  }

  // Of kLanes scale bytes what unit takes; unit is 2^(byte - 128) * size: half the scale, since
  // weights are doubled. Byte 0 is subnormal.
  SIMD_INLINE F scales(const uint8_t* p) {
    const I powers = _mm256_max_epu32(exponents(p), _mm256_set1_epi32(0x00400000));
    return _mm256_mul_ps(as_float(powers), _mm256_set1_ps(0.5f));
  }
  SIMD_INLINE I exponents(const uint8_t* p) {
    const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
    return _mm256_slli_epi32(_mm256_cvtepu8_epi32(bytes), 23);
  }
  SIMD_INLINE F unit(F scale, F size) { return _mm256_mul_ps(scale, size); }

  // 32 whole numbers within -127..127 as bytes, in the order that q8_weights gives the weights.
  SIMD_INLINE void store_q8(int8_t* q, const F v[4]) {
    const I ab = _mm256_packs_epi32(_mm256_cvtps_epi32(v[0]), _mm256_cvtps_epi32(v[1]));
    const I cd = _mm256_packs_epi32(_mm256_cvtps_epi32(v[2]), _mm256_cvtps_epi32(v[3]));
    // Dwords of elements 0-3, 8-11, 16-19, 24-27 | 4-7, 12-15, 20-23, 28-31.
    const I bytes = _mm256_packs_epi16(ab, cd);
    const I order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    const I natural = _mm256_permutevar8x32_epi32(bytes, order);
    const I apart = _mm256_setr_epi8(0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15,  //
                                     0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(q), _mm256_shuffle_epi8(natural, apart));
  }
};

// For weights whose scales are 2^-63 to 2^7. A product of one with an activation's scale is then a
// normal number, so it is the sum of exponents, for which more units are free than for products.
struct Avx2 : Avx2AnyScales {
  typedef Avx2AnyScales AnyScales;
  static constexpr bool kUsualScales = true;
  static constexpr int kRowVectors = 2;    // of 8-bit tiles
  static constexpr int kTileTokensQ8 = 4;  // 8 integer sums + 2 weights + 2; sums partly in memory
  static constexpr int kRowTokens = 1;     // up to here rows_q8 is faster than blocks_q8
  static constexpr bool kTwoRows = true;   // two_rows_q8 is faster than blocks_q8

  SIMD_INLINE bool usual_scales(const uint8_t* p, int64_t n) {
    const I least = _mm256_set1_epi8(64), span = _mm256_set1_epi8(134 - 64);
    I others = zero_ints();
    int64_t i = 0;
    for (; i + 32 <= n; i += 32) {
      const I above = _mm256_sub_epi8(load_bytes(p + i), least);
      others = _mm256_or_si256(others, _mm256_subs_epu8(above, span));
    }
    for (; i < n; i++) {
      if (p[i] < 64 || p[i] > 134) return false;
    }
    return _mm256_testz_si256(others, others);
  }
  SIMD_INLINE F scales(const uint8_t* p) {
    return as_float(_mm256_sub_epi32(exponents(p), _mm256_set1_epi32(0x40000000)));
  }
  SIMD_INLINE F unit(F scale, F size) {
    return as_float(_mm256_add_epi32(_mm256_castps_si256(scale), _mm256_castps_si256(size)));
  }
};

// Dense weights with 8-bit inputs: vpmaddubsw multiplies the sizes of weights with inputs that took
// their signs. A pair is at most 2 * 128 * 127, an int16.
struct Avx2Dense8 : Avx2AnyScales {
  typedef int8_t DenseQ;
  static constexpr int kDenseNumbers = 2;
  struct Dense {
    I size, sign;
  };
  SIMD_INLINE Dense load_dense(const uint8_t* p, const uint8_t*) {
    const I w = kept(load_bytes(p));
    return {kept(_mm256_abs_epi8(w)), w};
  }
  typedef I DenseInput;
  SIMD_INLINE DenseInput dense_input(const int8_t* q) { return four(q); }
  SIMD_INLINE DenseSum dense_dot(DenseSum sum, const Dense& w, DenseInput q) {
    const I pairs = _mm256_maddubs_epi16(w.size, _mm256_sign_epi8(q, w.sign));
    return kept(_mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1))));
  }
};

}  // namespace

#endif  // OSSRUN_CPU_SIMD_AVX2_H_
