// AVX2 with VNNI in 256 bits: simd_avx2.h, but for the 8-bit products.
//
// vpdpbusd adds four products of an unsigned and a signed byte to each int32, so sums need no
// widening and begin at minus what the unsigned form of the weights is too large by. vpdpwssd adds
// two products of int16.
#ifndef OSSRUN_CPU_SIMD_AVXVNNI_H_
#define OSSRUN_CPU_SIMD_AVXVNNI_H_

#include "simd_avx2.h"

namespace {

// Avx2, or Avx2AnyScales, with the two instructions.
template <class Table>
struct OnVnni : Table {
  typedef typename Table::I I;
  typedef typename Table::DenseSum DenseSum;
  typedef typename Table::Dense Dense;
  typedef typename Table::DenseInput DenseInput;

  // -4 * sum(q), which is taken three times: the weights are 12 too large.
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
    return _mm256_set1_epi32(3 * sum);
  }
  SIMD_INLINE I dot4(I sums, I w, I four) { return _mm256_dpbusd_avx_epi32(sums, w, four); }
  SIMD_INLINE I block_end(I sums) { return sums; }
  SIMD_INLINE I sum_fours(I a, I b, I c, I d) { return Table::fours_of(a, b, c, d); }

  SIMD_INLINE DenseSum dense_dot(DenseSum sum, const Dense& w, const DenseInput& q) {
    sum = _mm256_dpwssd_avx_epi32(sum, w.evens, q.evens);
    __asm__("" : "+x"(sum));
    sum = _mm256_dpwssd_avx_epi32(sum, w.odds, q.odds);
    __asm__("" : "+x"(sum));
    return sum;
  }

  SIMD_INLINE void peak_round(I a[8]) {
    const I one = _mm256_set1_epi32(0x01020304);
    SIMD_UNROLL
    for (int i = 0; i < 8; i++) a[i] = Table::kept(dot4(a[i], one, one));
  }
};

struct AvxVnni : OnVnni<Avx2> {
  typedef OnVnni<Avx2AnyScales> AnyScales;
};

// Dense weights with 8-bit inputs: in the unsigned form they are 128 too large.
struct AvxVnniDense8 : OnVnni<Avx2AnyScales> {
  typedef int8_t DenseQ;
  static constexpr int kDenseNumbers = 2;
  typedef I Dense;
  SIMD_INLINE Dense load_dense(const uint8_t* p, const uint8_t*) {
    return kept(_mm256_xor_si256(load_bytes(p), _mm256_set1_epi8(-128)));
  }
  typedef I DenseInput;
  SIMD_INLINE DenseInput dense_input(const int8_t* q) { return four(q); }
  SIMD_INLINE DenseSum dense_start(const float* d) {
    int32_t sum;
    memcpy(&sum, d + 1, sizeof sum);
    return _mm256_set1_epi32(32 * sum);
  }
  SIMD_INLINE DenseSum dense_dot(DenseSum sum, Dense w, DenseInput q) {
    return kept(dot4(sum, w, q));
  }
};

}  // namespace

#endif  // OSSRUN_CPU_SIMD_AVXVNNI_H_
