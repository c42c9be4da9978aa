// What this CPU can execute and the operating system will save on a context switch.
#ifndef OSSRUN_CPU_SIMD_DETECT_H_
#define OSSRUN_CPU_SIMD_DETECT_H_

#if defined(__x86_64__)
#include <cpuid.h>
#include <stdint.h>

namespace {

// The register sets that the operating system keeps, one bit each (XCR0); 0 without XSAVE.
inline uint32_t kept_registers() {
  unsigned a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE)) return 0;
  uint32_t low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

inline bool cpu_has_avx2_fma() {
  unsigned a, b, c, d;
  const uint32_t ymm = 0x06;  // SSE and AVX state
  if ((kept_registers() & ymm) != ymm) return false;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_FMA) || !(c & bit_F16C)) return false;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_AVX2);
}

inline bool cpu_has_avx_vnni() {
  unsigned a, b, c, d;
  return cpu_has_avx2_fma() && __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 4 & 1);
}

inline bool cpu_has_avx512_vnni() {
  unsigned a, b, c, d;
  const uint32_t zmm = 0xe6;  // and opmask, upper halves, upper sixteen
  if (!cpu_has_avx2_fma() || (kept_registers() & zmm) != zmm) return false;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
  const unsigned needed = bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL;
  return (b & needed) == needed && (c & bit_AVX512VNNI);
}

inline bool cpu_has_avx512_vbmi() {
  unsigned a, b, c, d;
  return cpu_has_avx512_vnni() && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (c >> 1 & 1);
}

// The system must also be asked before tiles are used: kernels_amx.cpp.
inline bool cpu_has_amx_bf16() {
  unsigned a, b, c, d;
  const uint32_t tiles = 0x60000;  // their shapes and their contents
  if ((kept_registers() & tiles) != tiles) return false;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d >> 22 & 1) && (d >> 24 & 1);
}

}  // namespace

#endif  // __x86_64__
#endif  // OSSRUN_CPU_SIMD_DETECT_H_
