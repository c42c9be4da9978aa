// The number of a thread, read again where registers are few, and what orders a block before
// others.
#ifndef OSSRUN_GPU_GRID_H_
#define OSSRUN_GPU_GRID_H_

#include "gpu.h"

// The number of this thread, read again: no value computed from it stays in registers from one part
// of a kernel to the next. On NVIDIA by a shuffle, which hides it from the assembler too. All lanes
// of a warp must call it.
__device__ __forceinline__ int thread_again() {
  int thread = static_cast<int>(threadIdx.x);
#if defined(GPU_NVIDIA)
  asm volatile("shfl.sync.bfly.b32 %0, %0, 0, 31, -1;" : "+r"(thread));
#elif defined(GPU_AMD)
  asm volatile("" : "+v"(thread));
#endif
  return thread & 1023;
}

// Orders what this block wrote before it announces it, and what it reads after others announced
// theirs. Of a block of NVIDIA's one thread is enough: its fence covers what it has seen through
// __syncthreads. AMD's covers the stores and loads of its own warp alone, and a block of RDNA has
// two first caches.
__device__ __forceinline__ void fence_block() {
#if defined(GPU_AMD)
  fence_gpu();
#else
  if (threadIdx.x == 0) fence_gpu();
#endif
}

#endif  // OSSRUN_GPU_GRID_H_
