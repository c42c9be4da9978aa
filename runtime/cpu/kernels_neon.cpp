// The kernel table for ARMv8.2 with the dot product: Graviton 2, Ampere, Apple M1, Grace and later.
#include "kernels.h"

#if defined(__aarch64__)

#include <arm_neon.h>
#include <math.h>
#include <string.h>

#include "simd_detect_arm.h"
#include "simd_e2m1.h"
#include "simd_target.h"

static const Kernels* table();  // compiled for the dot product: called only where that is

extern "C" const Kernels* kernels_neon(void) { return cpu_has(kArmDotProduct) ? table() : nullptr; }

SIMD_TARGET_BEGIN("arch=armv8.2-a+dotprod")
#include "simd_neon.h"
#include "simd_table.h"

static const Kernels* table() {
  static constexpr Kernels kTable = kernels_of<Neon, NeonDense8>("neon");
  return &kTable;
}
SIMD_TARGET_END

#else

extern "C" const Kernels* kernels_neon(void) { return nullptr; }

#endif
