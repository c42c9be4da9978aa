// The kernel table for AMX with bf16 tiles, Intel servers since Sapphire Rapids: that of
// kernels_avx512.cpp with two products of batches of its own. Linux gives tiles to those who ask.
#include "kernels.h"

#if defined(__x86_64__) && defined(__linux__)

#include <immintrin.h>
#include <math.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "simd_detect.h"
#include "simd_e2m1.h"
#include "simd_target.h"
#include "simd_tile.h"

static bool proved();  // compiled for AMX: called only where that is
static Kernels table(const Kernels* below);

// Asks for the process: threads that are there and those to come.
static bool tiles_permitted() {
  constexpr int kAskPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kAskPermission, kTileData) == 0;
}

static bool tiles_there() {
  return kernels_avx512() != nullptr && cpu_has_amx_bf16() && tiles_permitted() && proved();
}

extern "C" const Kernels* kernels_amx(void) {
  static const bool there = tiles_there();
  if (!there) return nullptr;
  static const Kernels kTable = table(kernels_vbmi() ? kernels_vbmi() : kernels_avx512());
  return &kTable;
}

SIMD_TARGET_BEGIN("avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,amx-tile,amx-bf16")
#include "simd_avx512.h"
#include "simd_matmul.h"
#include "simd_q8.h"
#include "simd_matmul_tiles.h"
#include "simd_amx.h"

static bool proved() { return tiles_hold<Amx>(); }
static Kernels table(const Kernels* below) { return with_tiles<Amx>("amx", below); }
SIMD_TARGET_END

#else

extern "C" const Kernels* kernels_amx(void) { return nullptr; }

#endif
