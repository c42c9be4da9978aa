// The kernel table for AVX2 with AVX-VNNI: Intel's client CPUs from 2021 on and AMD's Zen 5 have
// it.
#include "kernels.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <math.h>
#include <string.h>

#include "simd_detect.h"
#include "simd_e2m1.h"
#include "simd_target.h"

static const Kernels* table();  // compiled for AVX-VNNI: called only where that is

extern "C" const Kernels* kernels_avxvnni(void) { return cpu_has_avx_vnni() ? table() : nullptr; }

SIMD_TARGET_BEGIN("avx2,fma,f16c,avxvnni")
#include "simd_avxvnni.h"
#include "simd_table.h"

static const Kernels* table() {
  static constexpr Kernels kTable = kernels_of<AvxVnni, AvxVnniDense8>("avxvnni");
  return &kTable;
}
SIMD_TARGET_END

#else

extern "C" const Kernels* kernels_avxvnni(void) { return nullptr; }

#endif
