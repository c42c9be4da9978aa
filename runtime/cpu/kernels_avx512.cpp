// The kernel table for AVX-512 with VNNI: Intel servers since Cascade Lake, AMD since Zen 4.
#include "kernels.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <math.h>
#include <string.h>

#include "simd_detect.h"
#include "simd_e2m1.h"
#include "simd_target.h"

static const Kernels* table();  // compiled for AVX-512: called only where that is

extern "C" const Kernels* kernels_avx512(void) { return cpu_has_avx512_vnni() ? table() : nullptr; }

SIMD_TARGET_BEGIN("avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")
#include "simd_avx512.h"
#include "simd_table.h"

static const Kernels* table() {
  static constexpr Kernels kTable = kernels_of<Avx512, Avx512Dense8>("avx512");
  return &kTable;
}
SIMD_TARGET_END

#else

extern "C" const Kernels* kernels_avx512(void) { return nullptr; }

#endif
