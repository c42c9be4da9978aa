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

// Tells the last of `blocks` blocks to arrive here that it is the last, and sees to it that it
// reads what the others wrote before. `arrived` is 0 before and after: its low 16 bits are for
// counting by 1, the others by a `unit` of 2^16. All threads; has barriers.
constexpr int kOtherUnit = 1 << 16;
__device__ __forceinline__ bool last_to_arrive(int* arrived, int blocks, int* flag, int unit = 1) {
#if defined(GPU_AMD)
  fence_block();
#endif
  __syncthreads();
  if (threadIdx.x == 0) {
    // Behind the barrier and in front of the count: a fence of NVIDIA's covers what its own thread
    // has seen, and what the others fenced before the barrier would not be ordered by theirs.
    fence_gpu();
    const bool last = (atomic_add(arrived, unit) / unit & (kOtherUnit - 1)) == blocks - 1;
    if (last) atomic_add(arrived, -unit * blocks);
    *flag = last;
  }
#if defined(GPU_AMD)
  __syncthreads();
  fence_block();
#else
  fence_block();
  __syncthreads();
#endif
  return *flag != 0;
}

#endif  // OSSRUN_GPU_GRID_H_
