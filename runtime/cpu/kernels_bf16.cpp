// The kernel table for ARM with both matrix products, of bytes and of bf16: that of
// kernels_i8mm.cpp with one product more.
#include "kernels.h"

#if defined(__aarch64__)

#include <arm_neon.h>
#include <math.h>
#include <string.h>

#include "simd_detect_arm.h"
#include "simd_e2m1.h"
#include "simd_target.h"

static Kernels with_halves(const Kernels& others);

extern "C" const Kernels* kernels_bf16(void) {
  if (kernels_i8mm() == nullptr || !cpu_has(kArmBf16)) return nullptr;
  static const Kernels kTable = with_halves(*kernels_i8mm());
  return &kTable;
}

SIMD_TARGET_BEGIN("arch=armv8.2-a+dotprod+i8mm+bf16")
#include "simd_neon.h"
#include "simd_matmul.h"
#include "simd_bf16.h"

static Kernels with_halves(const Kernels& others) {
  Kernels table = others;
  table.name = "bf16";
  table.matmul_bf16_halves = matmul_bf16_halves;
  return table;
}
SIMD_TARGET_END

#else

extern "C" const Kernels* kernels_bf16(void) { return nullptr; }

#endif
