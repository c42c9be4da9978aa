// The kernel templates of one instruction set as a table. S is its vocabulary: simd_avx2.h. Dense8
// is that with 8-bit inputs of dense weights.
//
// Included after <immintrin.h>, <math.h>, <string.h>, kernels.h, SIMD_TARGET_BEGIN and the file
// that defines S; everything between them has internal linkage (simd_target.h says why).
#ifndef OSSRUN_CPU_SIMD_TABLE_H_
#define OSSRUN_CPU_SIMD_TABLE_H_

#include "simd_matmul.h"
#include "simd_q8.h"
#include "simd_dense_q8.h"
#include "simd_rows.h"
#include "simd_attention.h"
#include "simd_gauge.h"

namespace {

template <class S, class Dense8>
constexpr Kernels kernels_of(const char* name) {
  return {
      name,
      matmul_bf16<S>,
      nullptr,
      matmul_mxfp4<S>,
      quantize_q8<S>,
      matmul_mxfp4_q8<S>,
      quantize_q12<S>,
      matmul_q8<S>,
      matmul_q8<Dense8>,
      nullptr,
      nullptr,
      rmsnorm<S>,
      swiglu<S>,
      rope<S>,
      bf16_to_f32<S>,
      f32_to_bf16<S>,
      f32_to_f8,
      add<S>,
      axpy<S>,
      softmax_row,
      attention_start,
      attention_page<S, float>,
      attention_page<S, uint16_t>,
      attention_page<S, uint8_t>,
      attention_end<S>,
      read_all<S>,
      multiply_peak<S>,
  };
}

}  // namespace

#endif  // OSSRUN_CPU_SIMD_TABLE_H_
