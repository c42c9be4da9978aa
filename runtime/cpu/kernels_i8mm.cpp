// The kernel table for ARM with the 8-bit matrix product beside the dot product: Graviton 3, Apple
// M2, Grace and later.
#include "kernels.h"

#if defined(__aarch64__)

#include <arm_neon.h>
#include <math.h>
#include <string.h>

#include "simd_detect_arm.h"
#include "simd_e2m1.h"
#include "simd_target.h"

static const Kernels* table();  // compiled for the matrix product: called only where that is

extern "C" const Kernels* kernels_i8mm(void) {
  return cpu_has(kArmDotProduct) && cpu_has(kArmI8mm) ? table() : nullptr;
}

SIMD_TARGET_BEGIN("arch=armv8.2-a+dotprod+i8mm")
#include "simd_i8mm.h"
#include "simd_table.h"

static const Kernels* table() {
  static constexpr Kernels kTable = kernels_of<I8mm, NeonDense8>("i8mm");
  return &kTable;
}
SIMD_TARGET_END

#else

extern "C" const Kernels* kernels_i8mm(void) { return nullptr; }

#endif
