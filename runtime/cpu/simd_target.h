// Lets one source file be compiled for an instruction set that the rest of the program may not use.
//
// The build has no -march, and cgo gives every file the same flags. So a file that needs AVX2 says
// SIMD_TARGET_BEGIN("avx2,fma") after its last #include of a system header, and SIMD_TARGET_END at
// its end. What must stay true: between the two nothing may have external linkage but the function
// that hands out the table. An inline function of a system header that was emitted there would be
// merged with the same function of other files and crash a machine without the instructions.
#ifndef OSSRUN_CPU_SIMD_TARGET_H_
#define OSSRUN_CPU_SIMD_TARGET_H_

#define SIMD_PRAGMA(text) _Pragma(#text)

#if defined(__clang__)
#define SIMD_TARGET_BEGIN(isa) \
  SIMD_PRAGMA(clang attribute push(__attribute__((target(isa))), apply_to = function))
#define SIMD_TARGET_END SIMD_PRAGMA(clang attribute pop)
#define SIMD_UNROLL SIMD_PRAGMA(unroll)
#else
// GCC compiles templates at the end of the file with the options that are in force there, so they
// stay in force.
#define SIMD_TARGET_BEGIN(isa) SIMD_PRAGMA(GCC target(isa))
#define SIMD_TARGET_END
#define SIMD_UNROLL SIMD_PRAGMA(GCC unroll 32)
#endif

#define SIMD_INLINE static inline __attribute__((always_inline))

#endif  // OSSRUN_CPU_SIMD_TARGET_H_
