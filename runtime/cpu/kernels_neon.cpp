// The kernel table for ARMv8.2 with the dot product: Graviton 2, Ampere, Apple M1, Grace and later.
#include "kernels.h"

#if defined(__aarch64__)

#include <arm_neon.h>
#include <math.h>
#include <string.h>
#if defined(__linux__)
#include <sys/auxv.h>
#endif

#include "simd_e2m1.h"
#include "simd_target.h"

static const Kernels* table();  // compiled for the dot product: called only where that is

// Whether this CPU has it. Every Apple core that runs 64-bit programs on a Mac does.
static bool cpu_has_dot_product() {
#if defined(__linux__)
  return (getauxval(AT_HWCAP) & (1ul << 20)) != 0;  // HWCAP_ASIMDDP
#elif defined(__APPLE__)
  return true;
#else
  return false;
#endif
}

extern "C" const Kernels* kernels_neon(void) { return cpu_has_dot_product() ? table() : nullptr; }

SIMD_TARGET_BEGIN("arch=armv8.2-a+dotprod")
#include "simd_neon.h"
#include "simd_table.h"

static const Kernels* table() {
  static constexpr Kernels kTable = kernels_of<Neon>("neon");
  return &kTable;
}
SIMD_TARGET_END

#else

extern "C" const Kernels* kernels_neon(void) { return nullptr; }

#endif
