// Sixteen float32 lanes on AVX-512 (F, BW, DQ, VL, VNNI): the vocabulary of simd_avx2.h, wider.
//
// Includes that file: a few steps are the same on halves. Masks take the place of partial loads and
// a sixteen-way permutation that of the byte tables. Many intrinsics stand in their zero-masked
// form with a full mask: GCC 12 warns about the others, whose headers start from an undefined
// vector; the instruction is the same.
#ifndef OSSRUN_CPU_SIMD_AVX512_H_
#define OSSRUN_CPU_SIMD_AVX512_H_

#include "simd_avx2.h"

namespace {

constexpr E2m1Floats kE2m1Floats;

// For weights whose scales may be any.
struct Avx512AnyScales {
  typedef __m512 F;
  typedef __m512i I;
  static constexpr int kLanes = 16;
  static constexpr int kTileTokens = 6;  // 4 rows x 6 tokens of sums + 6 + 1: 31 of 32 registers
  static constexpr bool kTokenPairs = false;
  typedef int16_t DenseQ;
  static constexpr int kDenseNumbers = 1;
  static constexpr int kDenseColumns = 4;
  static constexpr int kRowVectorsDenseQ8 = 2;
  static constexpr int kTileTokensDenseQ8 = 6;  // 12 sums + 12 integer sums + 4 weights + 1 + 2
  static constexpr bool kDenseSumsStay = true;
  static constexpr bool kDenseReady = false;
  static constexpr int kTileHeads = 8;  // 8 heads x 2 vectors of sums + 2 + 1
  static constexpr int kRowVectors = 1;
  static constexpr int kTileTokensQ8 = 1;
  static constexpr int kRowTokens = 0;
  static constexpr bool kTwoRows = false;
  static constexpr bool kUsualScales = false;

  SIMD_INLINE F zero() { return _mm512_setzero_ps(); }
  SIMD_INLINE F set1(float a) { return _mm512_set1_ps(a); }
  SIMD_INLINE F load(const float* p) { return _mm512_loadu_ps(p); }
  SIMD_INLINE void store(float* p, F a) { _mm512_storeu_ps(p, a); }
  SIMD_INLINE F add(F a, F b) { return _mm512_add_ps(a, b); }
  SIMD_INLINE F sub(F a, F b) { return _mm512_sub_ps(a, b); }
  SIMD_INLINE F mul(F a, F b) { return _mm512_mul_ps(a, b); }
  SIMD_INLINE F div(F a, F b) { return _mm512_div_ps(a, b); }
  SIMD_INLINE F fma(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }
  // Where one is not a number these give the second.
  SIMD_INLINE F min(F a, F b) { return _mm512_maskz_min_ps(0xffff, a, b); }
  SIMD_INLINE F max(F a, F b) { return _mm512_maskz_max_ps(0xffff, a, b); }
  SIMD_INLINE F abs(F a) { return _mm512_andnot_ps(_mm512_set1_ps(-0.0f), a); }

  SIMD_INLINE __mmask16 first(int n) { return static_cast<__mmask16>((1u << n) - 1); }
  SIMD_INLINE F load_part(const float* p, int n) { return _mm512_maskz_loadu_ps(first(n), p); }
  SIMD_INLINE void store_part(float* p, F a, int n) { _mm512_mask_storeu_ps(p, first(n), a); }

  SIMD_INLINE __m256 low(F a) { return _mm512_maskz_extractf32x8_ps(0xff, a, 0); }
  SIMD_INLINE __m256 high(F a) { return _mm512_maskz_extractf32x8_ps(0xff, a, 1); }
  SIMD_INLINE float sum(F a) { return Avx2::sum(_mm256_add_ps(low(a), high(a))); }
  SIMD_INLINE float max_lane(F a) { return Avx2::max_lane(_mm256_max_ps(low(a), high(a))); }
  SIMD_INLINE void sum4(float out[4], F a, F b, F c, F d) {
    Avx2::sum4(out, _mm256_add_ps(low(a), high(a)), _mm256_add_ps(low(b), high(b)),
               _mm256_add_ps(low(c), high(c)), _mm256_add_ps(low(d), high(d)));
  }

  SIMD_INLINE F nearest(F a) {
    return _mm512_maskz_roundscale_ps(0xffff, a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
  SIMD_INLINE F power_of_2(F a) {
    const I whole = _mm512_maskz_cvtps_epi32(0xffff, a);
    const I biased = _mm512_add_epi32(whole, _mm512_set1_epi32(127));
    return _mm512_castsi512_ps(_mm512_maskz_slli_epi32(0xffff, biased, 23));
  }
  SIMD_INLINE F times_power_of_2(F a, F n) {
    const I moved = _mm512_maskz_slli_epi32(0xffff, _mm512_maskz_cvtps_epi32(0xffff, n), 23);
    return _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(a), moved));
  }
  SIMD_INLINE F zero_below(F a, F x, float limit) {
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, _mm512_set1_ps(limit), _CMP_NLT_UQ), a);
  }

  SIMD_INLINE F load_bf16(const void* p) {
    const __m256i half = _mm256_loadu_si256(static_cast<const __m256i*>(p));
    const I wide = _mm512_maskz_cvtepu16_epi32(0xffff, half);
    return _mm512_castsi512_ps(_mm512_maskz_slli_epi32(0xffff, wide, 16));
  }
  // kLanes e4m3 codes. As the upper bits of a half a code is its value / 256.
  SIMD_INLINE F load_f8(const uint8_t* p) {
    const __m256i codes = _mm256_cvtepu8_epi16(load16(p));
    const __m256i moved = _mm256_srai_epi16(_mm256_slli_epi16(codes, 8), 1);
    const __m256i half = _mm256_and_si256(moved, _mm256_set1_epi16(static_cast<int16_t>(0xbfff)));
    return _mm512_mul_ps(_mm512_maskz_cvtph_ps(0xffff, half), _mm512_set1_ps(256.0f));
  }
  SIMD_INLINE void store_bf16(void* p, F a) {
    const I bits = _mm512_castps_si512(a);
    const I odd = _mm512_and_si512(_mm512_maskz_srli_epi32(0xffff, bits, 16), _mm512_set1_epi32(1));
    const I rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    const I quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x00400000));
    const __mmask16 nan = _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q);
    const I chosen = _mm512_mask_mov_epi32(rounded, nan, quiet);
    const I half = _mm512_maskz_srli_epi32(0xffff, chosen, 16);
    _mm256_storeu_si256(static_cast<__m256i*>(p), _mm512_maskz_cvtepi32_epi16(0xffff, half));
  }

  SIMD_INLINE F evens(F a, F b) {
    const I at = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    return _mm512_permutex2var_ps(a, at, b);
  }
  SIMD_INLINE F odds(F a, F b) {
    const I at = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
    return _mm512_permutex2var_ps(a, at, b);
  }

  // The 32 weights of a block in natural order: each dword gets its byte, odd ones their upper
  // nibble, and the low four bits choose among the scale's sixteen values.
  SIMD_INLINE void mx_weights(F w[2], const uint8_t* block, uint8_t scale) {
    const I table = _mm512_load_si512(kE2m1Floats.bits[scale]);
    const I bytes = _mm512_maskz_broadcast_i32x4(
        0xffff, _mm_loadu_si128(reinterpret_cast<const __m128i*>(block)));
    const I lanes = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
    const I upper = _mm512_setr_epi32(0, 4, 0, 4, 0, 4, 0, 4, 0, 4, 0, 4, 0, 4, 0, 4);
    SIMD_UNROLL
    for (int half = 0; half < 2; half++) {
      const I one =
          _mm512_shuffle_epi8(bytes, _mm512_add_epi32(lanes, _mm512_set1_epi32(8 * half)));
      const I code = _mm512_maskz_srlv_epi32(0xffff, one, upper);
      w[half] = _mm512_castsi512_ps(_mm512_maskz_permutexvar_epi32(0xffff, code, table));
    }
  }

  // As in simd_avx2.h, of sixteen rows.
  SIMD_INLINE void q8_weights(I w[8], const uint8_t* const rows[16], int64_t offset) {
    I d[4];
    turn4(d, rows, offset);
    SIMD_UNROLL
    for (int j = 0; j < 4; j++) weights_of(w + 2 * j, d[j]);
  }
  SIMD_INLINE void weights_of(I w[2], I bytes) {
    const I table = _mm512_maskz_broadcast_i32x4(0xffff, load16(kE2m1Plus12));
    const I nibble = _mm512_set1_epi8(15);
    const I upper = _mm512_and_si512(_mm512_maskz_srli_epi32(0xffff, bytes, 4), nibble);
    w[0] = _mm512_shuffle_epi8(table, _mm512_and_si512(bytes, nibble));
    w[1] = _mm512_shuffle_epi8(table, upper);
  }
  SIMD_INLINE void turn4(I d[4], const uint8_t* const rows[16], int64_t offset) {
    I a[4];
    SIMD_UNROLL
    for (int i = 0; i < 4; i++) {
      a[i] = _mm512_castsi128_si512(load16(rows[i] + offset));
      a[i] = _mm512_maskz_inserti32x4(0xffff, a[i], load16(rows[4 + i] + offset), 1);
      a[i] = _mm512_maskz_inserti32x4(0xffff, a[i], load16(rows[8 + i] + offset), 2);
      a[i] = _mm512_maskz_inserti32x4(0xffff, a[i], load16(rows[12 + i] + offset), 3);
    }
    turn_dwords(d, a);
  }
  SIMD_INLINE void turn_dwords(I d[4], const I a[4]) {
    const I t0 = unpack_low32(a[0], a[1]), t1 = unpack_high32(a[0], a[1]);
    const I t2 = unpack_low32(a[2], a[3]), t3 = unpack_high32(a[2], a[3]);
    d[0] = unpack_low64(t0, t2);
    d[1] = unpack_high64(t0, t2);
    d[2] = unpack_low64(t1, t3);
    d[3] = unpack_high64(t1, t3);
  }
  SIMD_INLINE F as_float(I a) { return _mm512_castsi512_ps(a); }
  SIMD_INLINE F first_bf16(I a) { return as_float(_mm512_maskz_slli_epi32(0xffff, a, 16)); }
  SIMD_INLINE F second_bf16(I a) {
    return as_float(_mm512_and_si512(a, _mm512_set1_epi32(static_cast<int>(0xffff0000u))));
  }
  SIMD_INLINE __m128i load16(const uint8_t* p) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  }
  SIMD_INLINE I unpack_low32(I a, I b) { return _mm512_maskz_unpacklo_epi32(0xffff, a, b); }
  SIMD_INLINE I unpack_high32(I a, I b) { return _mm512_maskz_unpackhi_epi32(0xffff, a, b); }
  SIMD_INLINE I unpack_low64(I a, I b) { return _mm512_maskz_unpacklo_epi64(0xff, a, b); }
  SIMD_INLINE I unpack_high64(I a, I b) { return _mm512_maskz_unpackhi_epi64(0xff, a, b); }

  SIMD_INLINE void store_bytes(uint8_t* p, I a) { _mm512_storeu_si512(p, a); }
  SIMD_INLINE I load_bytes(const uint8_t* p) { return _mm512_loadu_si512(p); }
  // a in a register: GCC would load it again for each use.
  SIMD_INLINE I kept(I a) {
    __asm__("" : "+v"(a));
    return a;
  }
  SIMD_INLINE I zero_ints() { return _mm512_setzero_si512(); }
  SIMD_INLINE I mix(I a, I b) { return _mm512_xor_si512(a, b); }
  SIMD_INLINE F to_float(I a) { return _mm512_maskz_cvtepi32_ps(0xffff, a); }

  // The 8-bit sums of a block are int32 and begin with -4 * sum(q), three times: the unsigned form
  // of the weights is 12 too large.
  SIMD_INLINE void store_block_start(float* to, const int8_t* q) {
    Avx2::store_block_start(to, q);
    int16_t pair[2];
    memcpy(pair, to, sizeof pair);
    const int32_t sum = (pair[0] + pair[1]) / 3;
    memcpy(to, &sum, sizeof sum);
  }
  SIMD_INLINE I block_start(const float* p) {
    int32_t sum;
    memcpy(&sum, p, sizeof sum);
    return _mm512_set1_epi32(3 * sum);
  }
  SIMD_INLINE __m256i load32(const uint8_t* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }
  // Dense weights of two groups, times 256, as in simd_avx2.h.
  static constexpr float kDenseUnit = 1.0f / 256;
  struct Dense {
    I evens, odds;
  };
  SIMD_INLINE Dense load_dense(const uint8_t* p, const uint8_t* second) {
    const I both =
        _mm512_maskz_inserti64x4(0xff, _mm512_castsi256_si512(load32(p)), load32(second), 1);
    return {kept(_mm512_slli_epi16(both, 8)),
            kept(_mm512_and_si512(both, _mm512_set1_epi16(-256)))};
  }
  SIMD_INLINE F dense_scales(const uint8_t* p, const uint8_t* second) {
    const __m256i both =
        _mm256_inserti128_si256(_mm256_castsi128_si256(load16(p)), load16(second), 1);
    return as_float(_mm512_maskz_slli_epi32(0xffff, _mm512_maskz_cvtepu16_epi32(0xffff, both), 16));
  }
  typedef Dense DenseInput;
  SIMD_INLINE DenseInput dense_input(const int16_t* q) { return {pair(q), pair(q + 2)}; }
  SIMD_INLINE I pair(const int16_t* q) {
    int32_t both;
    memcpy(&both, q, sizeof both);
    return _mm512_set1_epi32(both);
  }
  typedef I DenseSum;
  SIMD_INLINE DenseSum dense_start(const float*) { return zero_ints(); }
  SIMD_INLINE DenseSum dense_dot(DenseSum sum, const Dense& w, const DenseInput& q) {
    sum = _mm512_dpwssd_epi32(sum, w.evens, q.evens);
    __asm__("" : "+v"(sum));
    sum = _mm512_dpwssd_epi32(sum, w.odds, q.odds);
    __asm__("" : "+v"(sum));
    return sum;
  }
  SIMD_INLINE F dense_end(DenseSum sum) { return to_float(sum); }
  SIMD_INLINE void store_q12(int16_t* q, const F v[2]) {
    const I order = _mm512_setr_epi32(0, 4, 2, 6, 1, 5, 3, 7, 8, 12, 10, 14, 9, 13, 11, 15);
    SIMD_UNROLL
    for (int i = 0; i < 2; i++) {
      const I whole = _mm512_maskz_cvtps_epi32(0xffff, v[i]);
      const I placed = _mm512_maskz_permutexvar_epi32(0xffff, order, whole);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(q) + i,
                          _mm512_maskz_cvtepi32_epi16(0xffff, placed));
    }
  }
  SIMD_INLINE I four(const int8_t* q) {
    int32_t bytes;
    memcpy(&bytes, q, sizeof bytes);
    return _mm512_set1_epi32(bytes);
  }
  SIMD_INLINE I dot4(I sums, I w, I four) { return _mm512_dpbusd_epi32(sums, w, four); }
  SIMD_INLINE I block_end(I sums) { return sums; }

  static constexpr int64_t kPeakOperations = 8 * 64 * 2;
  SIMD_INLINE void peak_round(I a[8]) {
    const I one = _mm512_set1_epi32(0x01020304);
    SIMD_UNROLL
    for (int i = 0; i < 8; i++) {
      __asm__ volatile("vpdpbusd %1, %1, %0" : "+v"(a[i]) : "v"(one));
    }
  }

  SIMD_INLINE void turn8(uint8_t* out, const uint8_t* const rows[16], int64_t offset) {
    __m128i a[4], b[4];
    turn8x8(a, rows, offset);
    turn8x8(b, rows + 8, offset);
    __m128i* to = reinterpret_cast<__m128i*>(out);
    SIMD_UNROLL
    for (int i = 0; i < 4; i++) {
      _mm_storeu_si128(to + 2 * i, _mm_unpacklo_epi64(a[i], b[i]));
      _mm_storeu_si128(to + 2 * i + 1, _mm_unpackhi_epi64(a[i], b[i]));
    }
  }
  SIMD_INLINE F scales(const uint8_t* p) {
    const I powers = _mm512_maskz_max_epu32(0xffff, exponents(p), _mm512_set1_epi32(0x00400000));
    return _mm512_mul_ps(as_float(powers), _mm512_set1_ps(0.5f));
  }
  SIMD_INLINE I exponents(const uint8_t* p) {
    return _mm512_maskz_slli_epi32(0xffff, _mm512_maskz_cvtepu8_epi32(0xffff, load16(p)), 23);
  }
  SIMD_INLINE F unit(F scale, F size) { return _mm512_mul_ps(scale, size); }

  SIMD_INLINE void store_q8(int8_t* q, const F v[2]) {
    const __m128i apart = _mm_setr_epi8(0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15);
    SIMD_UNROLL
    for (int i = 0; i < 2; i++) {
      const I whole = _mm512_maskz_cvtps_epi32(0xffff, v[i]);
      const __m128i bytes = _mm512_maskz_cvtepi32_epi8(0xffff, whole);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(q) + i, _mm_shuffle_epi8(bytes, apart));
    }
  }
};

// For weights whose scales are 2^-63 to 2^7. A product of one with an activation's scale is then a
// normal number, so it is the sum of exponents, for which more units are free than for products.
struct Avx512 : Avx512AnyScales {
  typedef Avx512AnyScales AnyScales;
  static constexpr bool kUsualScales = true;
  static constexpr int kRowVectors = 3;    // of 8-bit tiles
  static constexpr int kTileTokensQ8 = 4;  // 12 sums + 12 integer sums + 3 weights
  static constexpr int kRowTokens = 2;     // up to here rows_q8 is faster than blocks_q8

  SIMD_INLINE bool usual_scales(const uint8_t* p, int64_t n) {
    const I least = _mm512_set1_epi8(64), span = _mm512_set1_epi8(134 - 64);
    __mmask64 others = 0;
    for (int64_t i = 0; i < n; i += 64) {
      const __mmask64 there = n - i >= 64 ? ~0ull : (1ull << (n - i)) - 1;
      const I above = _mm512_sub_epi8(_mm512_maskz_loadu_epi8(there, p + i), least);
      others |= _mm512_mask_cmpgt_epu8_mask(there, above, span);
    }
    return others == 0;
  }
  SIMD_INLINE F scales(const uint8_t* p) {
    return as_float(_mm512_sub_epi32(exponents(p), _mm512_set1_epi32(0x40000000)));
  }
  SIMD_INLINE F unit(F scale, F size) {
    return as_float(_mm512_add_epi32(_mm512_castps_si512(scale), _mm512_castps_si512(size)));
  }

  SIMD_INLINE I sum_fours(I a, I b, I c, I d) {
    const I one = _mm512_set1_epi16(1);
    const F ab = as_float(_mm512_madd_epi16(_mm512_packs_epi32(a, b), one));
    const F cd = as_float(_mm512_madd_epi16(_mm512_packs_epi32(c, d), one));
    return _mm512_add_epi32(_mm512_castps_si512(_mm512_maskz_shuffle_ps(0xffff, ab, cd, 0x88)),
                            _mm512_castps_si512(_mm512_maskz_shuffle_ps(0xffff, ab, cd, 0xdd)));
  }
  template <int kWhich>
  SIMD_INLINE I fours(I a, I b) {
    return _mm512_maskz_shuffle_i32x4(0xffff, a, b, kWhich);
  }
  SIMD_INLINE void turn_fours(I to[4], const I from[4]) {
    const I a = fours<0x44>(from[0], from[1]), b = fours<0xee>(from[0], from[1]);
    const I c = fours<0x44>(from[2], from[3]), d = fours<0xee>(from[2], from[3]);
    to[0] = fours<0x88>(a, c);
    to[1] = fours<0xdd>(a, c);
    to[2] = fours<0x88>(b, d);
    to[3] = fours<0xdd>(b, d);
  }
  SIMD_INLINE I even_ints(I a, I b) { return _mm512_castps_si512(evens(as_float(a), as_float(b))); }
  SIMD_INLINE I odd_ints(I a, I b) { return _mm512_castps_si512(odds(as_float(a), as_float(b))); }
  SIMD_INLINE I add_ints(I a, I b) { return _mm512_add_epi32(a, b); }
};

// Dense weights with 8-bit inputs: in the unsigned form they are 128 too large.
struct Avx512Dense8 : Avx512AnyScales {
  typedef int8_t DenseQ;
  static constexpr int kDenseNumbers = 2;
  static constexpr bool kDenseReady = true;
  typedef I Dense;
  SIMD_INLINE Dense load_dense(const uint8_t* p, const uint8_t* second) {
    const I both =
        _mm512_maskz_inserti64x4(0xff, _mm512_castsi256_si512(load32(p)), load32(second), 1);
    return kept(_mm512_xor_si512(both, _mm512_set1_epi8(-128)));
  }
  typedef I DenseInput;
  SIMD_INLINE DenseInput dense_input(const int8_t* q) { return four(q); }
  SIMD_INLINE DenseSum dense_start(const float* d) {
    int32_t sum;
    memcpy(&sum, d + 1, sizeof sum);
    return _mm512_set1_epi32(32 * sum);
  }
  SIMD_INLINE DenseSum dense_dot(DenseSum sum, Dense w, DenseInput q) {
    return kept(dot4(sum, w, q));
  }
};

}  // namespace

#endif  // OSSRUN_CPU_SIMD_AVX512_H_
