// Work that is cut into blocks, and the barrier over all blocks of a launch.
//
// A phase is written for a grid of blocks, each of which has a Place. As a kernel of its own the
// places are the launch's; in a launch that lives for a whole step (decode_step.cu) a block takes
// one place after another.
//
// What must stay true of the barrier: all blocks of the launch are there at once (a cooperative
// launch, or no more of them than fit), all threads of all blocks come to it, and its state is left
// as the next barrier and the next launch need it.
#ifndef OSSRUN_GPU_GRID_H_
#define OSSRUN_GPU_GRID_H_

#include "gpu.h"

struct Place {
  int x, y, z;
  int nx, ny, nz;  // of how many
  int thread;      // of the block
};

__device__ __forceinline__ Place own_place() {
  return {static_cast<int>(blockIdx.x), static_cast<int>(blockIdx.y), static_cast<int>(blockIdx.z),
          static_cast<int>(gridDim.x),  static_cast<int>(gridDim.y),  static_cast<int>(gridDim.z),
          static_cast<int>(threadIdx.x)};
}

// The number of this thread, known anew: nothing that is made from it is kept in registers from one
// phase to the next. On NVIDIA by a shuffle, through which the assembler does not see either. All
// lanes of a warp.
__device__ __forceinline__ int thread_again() {
  int thread = static_cast<int>(threadIdx.x);
#if defined(GPU_NVIDIA)
  asm volatile("shfl.sync.bfly.b32 %0, %0, 0, 31, -1;" : "+r"(thread));
#elif defined(GPU_AMD)
  asm volatile("" : "+v"(thread));
#endif
  return thread & 1023;
}

// The state, in lines of 128 bytes, so that blocks that look at one do not hold up others that
// count in another: which barrier it is; how many groups have arrived at it; of every group of
// `fan` blocks how many have. The counts are 0 between barriers. A fan of all blocks is one count
// for all.
constexpr int kLine = 32;  // ints

// Before what this block wrote is said to be there, and before what others wrote is read. Of a
// block of NVIDIA's one thread is enough: its fence covers what it has seen through __syncthreads.
// AMD's covers the stores of its own warp, and the loads of its own warp alone are behind what it
// throws out of the caches: a block of RDNA has two first caches. So there it is in front of the
// barrier before something is said, and behind the barrier where something was seen.
__device__ __forceinline__ void fence_block() {
#if defined(GPU_AMD)
  fence_gpu();
#else
  if (threadIdx.x == 0) fence_gpu();
#endif
}

// The number behind a barrier's, which goes round: after hours of steps.
__device__ __forceinline__ int next_barrier(int barrier) {
  return static_cast<int>(static_cast<unsigned>(barrier) + 1);
}

// This block is at barrier number `barrier`, as peek_gpu(state) gave it at the first one of the
// launch and the next one at each after. Does not wait.
__device__ __forceinline__ void grid_arrive(int* state, int barrier, int fan) {
#if defined(GPU_AMD)
  fence_block();
#endif
  __syncthreads();
  if (threadIdx.x != 0) return;
  fence_gpu();
  const int blocks = static_cast<int>(gridDim.x), own = static_cast<int>(blockIdx.x) / fan;
  const int members = blocks - own * fan < fan ? blocks - own * fan : fan;
  const int groups = (blocks + fan - 1) / fan;
  int* const count = state + kLine * (2 + own);
  if (atomic_add(count, 1) != members - 1) return;
  poke_gpu(count, 0);
  if (groups > 1) {
    fence_gpu();
    if (atomic_add(state + kLine, 1) != groups - 1) return;
    poke_gpu(state + kLine, 0);
  }
  fence_gpu();
  poke_gpu(state, next_barrier(barrier));
}

// Waits until all blocks are at the barrier; what they wrote before can be read then.
__device__ __forceinline__ void grid_wait(const int* state, int barrier) {
  if (threadIdx.x == 0)
    while (peek_gpu(state) == barrier) wait_gpu();
#if defined(GPU_AMD)
  __syncthreads();
  fence_block();
#else
  fence_block();
  __syncthreads();
#endif
}

// A piece of weights that is read soon: its lines are asked for, `lane` of a warp taking every
// WARP-th. Nothing waits for them, but that AMD has no such instruction: there a load is one.
__device__ __forceinline__ void prefetch(const void* from, int64_t bytes, int lane) {
  constexpr int kLineBytes = 128;
  const char* p = static_cast<const char*>(from);
  for (int64_t at = lane * kLineBytes; at < bytes; at += WARP * kLineBytes) {
#if defined(GPU_NVIDIA)
    asm volatile("prefetch.global.L2 [%0];" : : "l"(p + at));
#elif defined(GPU_AMD)
    const unsigned v = static_cast<unsigned char>(p[at]);
    asm volatile("" : : "v"(v));
#else
    (void)*static_cast<const volatile char*>(p + at);
#endif
  }
}

#endif  // OSSRUN_GPU_GRID_H_
