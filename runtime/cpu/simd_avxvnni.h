// AVX2 with VNNI in 256 bits: simd_avx2.h, but for the 8-bit products.
//
// vpdpbusd adds four products of an unsigned and a signed byte to each int32, so sums need no
// widening and begin at minus what the unsigned form of the weights is too large by.
#ifndef OSSRUN_CPU_SIMD_AVXVNNI_H_
#define OSSRUN_CPU_SIMD_AVXVNNI_H_

#include "simd_avx2.h"

namespace {

struct AvxVnni : Avx2 {
  // -4 * sum(q): times 3 for MXFP4 (12 too large), times 32 for dense weights (128).
  SIMD_INLINE void store_block_start(float* to, const int8_t* q) {
    Avx2::store_block_start(to, q);
    int16_t pair[2];
    memcpy(pair, to, sizeof pair);
    const int32_t sum = (pair[0] + pair[1]) / 3;
    memcpy(to, &sum, sizeof sum);
  }
  SIMD_INLINE I times(const float* p, int32_t factor) {
    int32_t sum;
    memcpy(&sum, p, sizeof sum);
    return _mm256_set1_epi32(factor * sum);
  }
  SIMD_INLINE I block_start(const float* p) { return times(p, 3); }
  SIMD_INLINE I dot4(I sums, I w, I four) {
    sums = _mm256_dpbusd_avx_epi32(sums, w, four);
    __asm__("" : "+x"(sums));  // in this order, as in simd_avx2.h
    return sums;
  }
  SIMD_INLINE I block_end(I sums) { return sums; }

  typedef I Dense;
  SIMD_INLINE Dense load_dense(const uint8_t* p, const uint8_t*) {
    return kept(_mm256_xor_si256(load_bytes(p), _mm256_set1_epi8(-128)));
  }
  SIMD_INLINE I dense_start(const float* p) { return times(p, 32); }
  SIMD_INLINE I dense_dot4(I sums, I w, I four) { return dot4(sums, w, four); }

  SIMD_INLINE void peak_round(I a[8]) {
    const I one = _mm256_set1_epi32(0x01020304);
    SIMD_UNROLL
    for (int i = 0; i < 8; i++) a[i] = dot4(a[i], one, one);
  }
};

}  // namespace

#endif  // OSSRUN_CPU_SIMD_AVXVNNI_H_
