// Sums and maxima over the lanes of a warp and the threads of a block. All lanes receive the
// result; all lanes must call.
#ifndef OSSRUN_GPU_WARP_H_
#define OSSRUN_GPU_WARP_H_

#include "gpu.h"

__device__ __forceinline__ float shuffle_xor(float v, int d) { return __shfl_xor_sync(FULL, v, d); }
__device__ __forceinline__ uint64_t shuffle_xor(uint64_t v, int d) {
  const unsigned low =
      static_cast<unsigned>(__shfl_xor_sync(FULL, static_cast<int>(static_cast<unsigned>(v)), d));
  const unsigned high = static_cast<unsigned>(
      __shfl_xor_sync(FULL, static_cast<int>(static_cast<unsigned>(v >> 32)), d));
  return static_cast<uint64_t>(high) << 32 | low;
}

// Loads above are asked for before anything below is done with what came: compilers move a load
// down to its first use where they may, and then few are under way. All lanes of a warp, as often
// as each other: on NVIDIA they wait for one another here.
__device__ __forceinline__ void asked() {
#if defined(GPU_AMD)
  __builtin_amdgcn_sched_barrier(0);
#else
  __syncwarp();
#endif
}

// What was added up so far is in `sum` here. AMD's compiler would move the products of a round
// behind the loads of the next, and then all activations that they take are in registers at once.
__device__ __forceinline__ void summed([[maybe_unused]] float& sum) {
#if defined(GPU_AMD)
  asm volatile("" : "+v"(sum));
#endif
}

// v of all lanes, combined in pairs.
template <class T, class F>
__device__ __forceinline__ T butterfly(T v, F combine) {
#pragma unroll
  for (int d = WARP / 2; d > 0; d >>= 1) v = combine(v, shuffle_xor(v, d));
  return v;
}

#if defined(GPU_HOST)
#include "emulator/lanes.h"
#else
template <class T, T combine(T, T)>
__device__ __forceinline__ T over_lanes(T v) {
  return butterfly(v, combine);
}
#endif

template <class T>
__device__ __forceinline__ T sum_of(T a, T b) {
  return a + b;
}
__device__ __forceinline__ float larger(float a, float b) { return fmaxf(a, b); }
__device__ __forceinline__ uint64_t larger(uint64_t a, uint64_t b) { return b > a ? b : a; }

__device__ __forceinline__ float warp_sum(float v) { return over_lanes<float, sum_of>(v); }
__device__ __forceinline__ float warp_max(float v) { return over_lanes<float, larger>(v); }
__device__ __forceinline__ uint64_t warp_sum(uint64_t v) { return over_lanes<uint64_t, sum_of>(v); }
__device__ __forceinline__ uint64_t warp_max(uint64_t v) { return over_lanes<uint64_t, larger>(v); }

// The sum over a block of up to 1,024 threads. `part` is a shared array of 1024 / WARP floats; it
// may be used again after the next barrier.
__device__ __forceinline__ float block_sum(float v, float* part) {
  const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
  v = warp_sum(v);
  if (lane == 0) part[warp] = v;
  __syncthreads();
  const int warps = static_cast<int>(blockDim.x) / WARP;
  return warp_sum(lane < warps ? part[lane] : 0.0f);
}

#endif  // OSSRUN_GPU_WARP_H_
