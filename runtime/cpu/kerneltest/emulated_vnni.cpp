// simd_avxvnni.h with the two instructions that AVX2 lacks computed in plain C++: a table for the
// test only, so that everything around them runs on any machine with AVX2.
#include "check.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include "../simd_detect.h"
#include "../simd_e2m1.h"
#include "../simd_target.h"

static const Kernels* table();

const Kernels* kernels_emulated_vnni() { return cpu_has_avx2_fma() ? table() : nullptr; }

SIMD_TARGET_BEGIN("avx2,fma,f16c")

// sums + four products of an unsigned byte of w and a signed one of a, in each of eight lanes.
static __attribute__((noinline)) __m256i emulated_dpbusd(__m256i sums, __m256i w, __m256i a) {
  int32_t s[8];
  uint8_t u[32];
  int8_t v[32];
  memcpy(s, &sums, sizeof s);
  memcpy(u, &w, sizeof u);
  memcpy(v, &a, sizeof v);
  for (int i = 0; i < 32; i++) s[i / 4] += u[i] * v[i];
  memcpy(&sums, s, sizeof s);
  return sums;
}

// sums + two products of int16, in each of eight lanes.
static __attribute__((noinline)) __m256i emulated_dpwssd(__m256i sums, __m256i w, __m256i a) {
  int32_t s[8];
  int16_t u[16], v[16];
  memcpy(s, &sums, sizeof s);
  memcpy(u, &w, sizeof u);
  memcpy(v, &a, sizeof v);
  for (int i = 0; i < 16; i++) s[i / 2] += u[i] * v[i];
  memcpy(&sums, s, sizeof s);
  return sums;
}

#define _mm256_dpbusd_avx_epi32 emulated_dpbusd
#define _mm256_dpwssd_avx_epi32 emulated_dpwssd
#include "../simd_avxvnni.h"
#include "../simd_table.h"

static const Kernels* table() {
  static constexpr Kernels kTable = kernels_of<AvxVnni, AvxVnniDense8>("emulated vnni");
  return &kTable;
}
SIMD_TARGET_END

#else

const Kernels* kernels_emulated_vnni() { return nullptr; }

#endif
