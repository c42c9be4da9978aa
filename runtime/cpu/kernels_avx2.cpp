// The kernel table for AVX2, FMA and F16C: every x86-64 server and PC since about 2015.
#include "kernels.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <math.h>
#include <string.h>

#include "simd_detect.h"
#include "simd_e2m1.h"
#include "simd_target.h"

static const Kernels* table();  // compiled for AVX2: called only where that is

extern "C" const Kernels* kernels_avx2(void) { return cpu_has_avx2_fma() ? table() : nullptr; }

SIMD_TARGET_BEGIN("avx2,fma,f16c")
#include "simd_avx2.h"
#include "simd_table.h"

static const Kernels* table() {
  static constexpr Kernels kTable = kernels_of<Avx2, Avx2Dense8>("avx2");
  return &kTable;
}
SIMD_TARGET_END

#else

extern "C" const Kernels* kernels_avx2(void) { return nullptr; }

#endif
