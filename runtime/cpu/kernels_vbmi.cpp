// The kernel table for AVX-512 with VBMI: Intel servers since Ice Lake, AMD since Zen 4. That of
// kernels_avx512.cpp, the same bits, with the experts' product of its own: vpermb looks up by the
// lower six bits of a byte and need not be told to forget the others.
#include "kernels.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <math.h>
#include <string.h>

#include "simd_detect.h"
#include "simd_e2m1.h"
#include "simd_target.h"

static Kernels table(const Kernels* below);  // compiled for VBMI: called only where that is

extern "C" const Kernels* kernels_vbmi(void) {
  static const bool there = kernels_avx512() != nullptr && cpu_has_avx512_vbmi();
  if (!there) return nullptr;
  static const Kernels kTable = table(kernels_avx512());
  return &kTable;
}

SIMD_TARGET_BEGIN("avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512vbmi")
#include "simd_avx512.h"
#include "simd_matmul.h"
#include "simd_q8.h"

namespace {

struct Vbmi : Avx512 {
  SIMD_INLINE void q8_weights(I w[8], const uint8_t* const rows[16], int64_t offset) {
    I d[4];
    turn4(d, rows, offset);
    SIMD_UNROLL
    for (int j = 0; j < 4; j++) weights_of(w + 2 * j, d[j]);
  }
  SIMD_INLINE void weights_of(I w[2], I bytes) {
    const I table = _mm512_maskz_broadcast_i32x4(0xffff, load16(kE2m1Plus12));
    const I upper = _mm512_maskz_srli_epi32(0xffff, bytes, 4);
    w[0] = _mm512_maskz_permutexvar_epi8(~0ull, bytes, table);
    w[1] = _mm512_maskz_permutexvar_epi8(~0ull, upper, table);
  }
};

}  // namespace

static Kernels table(const Kernels* below) {
  Kernels table = *below;
  table.name = "vbmi";
  table.matmul_mxfp4_q8 = matmul_mxfp4_q8<Vbmi>;
  return table;
}
SIMD_TARGET_END

#else

extern "C" const Kernels* kernels_vbmi(void) { return nullptr; }

#endif
