// What this ARM CPU can execute, as the operating system tells.
#ifndef OSSRUN_CPU_SIMD_DETECT_ARM_H_
#define OSSRUN_CPU_SIMD_DETECT_ARM_H_

#if defined(__aarch64__)
#if defined(__linux__)
#include <sys/auxv.h>
#elif defined(__APPLE__)
#include <sys/sysctl.h>
#elif defined(_WIN32)
#include <windows.h>
#endif

namespace {

// A feature under the name that each system has for it.
struct ArmFeature {
  bool second;       // Linux: of AT_HWCAP2, not AT_HWCAP
  int bit;           // of it
  const char* name;  // macOS: of hw.optional.arm
  unsigned number;   // Windows: PF_ARM_..., which older headers lack
};
constexpr ArmFeature kArmDotProduct = {false, 20, "hw.optional.arm.FEAT_DotProd", 43};
constexpr ArmFeature kArmI8mm = {true, 13, "hw.optional.arm.FEAT_I8MM", 66};
constexpr ArmFeature kArmBf16 = {true, 14, "hw.optional.arm.FEAT_BF16", 68};

inline bool cpu_has(const ArmFeature& feature) {
#if defined(__linux__)
  return (getauxval(feature.second ? AT_HWCAP2 : AT_HWCAP) >> feature.bit & 1) != 0;
#elif defined(__APPLE__)
  int has = 0;
  size_t size = sizeof has;
  // macOS 11 does not know the names yet; every Mac's cores have the dot product.
  if (sysctlbyname(feature.name, &has, &size, nullptr, 0) == 0) return has != 0;
  return feature.bit == kArmDotProduct.bit;
#elif defined(_WIN32)
  return IsProcessorFeaturePresent(feature.number) != 0;
#else
  return false;
#endif
}

}  // namespace

#endif  // __aarch64__
#endif  // OSSRUN_CPU_SIMD_DETECT_ARM_H_
