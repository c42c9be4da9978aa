// Sums and maxima over the lanes of a warp and the threads of a block. All lanes receive the
// result; all lanes must call.
#ifndef OSSRUN_GPU_WARP_H_
#define OSSRUN_GPU_WARP_H_

#include "gpu.h"

__device__ __forceinline__ float warp_sum(float v) {
#pragma unroll
  for (int d = WARP / 2; d > 0; d >>= 1) v += __shfl_xor_sync(FULL, v, d);
  return v;
}

__device__ __forceinline__ float warp_max(float v) {
#pragma unroll
  for (int d = WARP / 2; d > 0; d >>= 1) v = fmaxf(v, __shfl_xor_sync(FULL, v, d));
  return v;
}

__device__ __forceinline__ uint64_t shuffle_xor(uint64_t v, int d) {
  const unsigned low =
      static_cast<unsigned>(__shfl_xor_sync(FULL, static_cast<int>(static_cast<unsigned>(v)), d));
  const unsigned high = static_cast<unsigned>(
      __shfl_xor_sync(FULL, static_cast<int>(static_cast<unsigned>(v >> 32)), d));
  return static_cast<uint64_t>(high) << 32 | low;
}

__device__ __forceinline__ uint64_t warp_sum(uint64_t v) {
#pragma unroll
  for (int d = WARP / 2; d > 0; d >>= 1) v += shuffle_xor(v, d);
  return v;
}

__device__ __forceinline__ uint64_t warp_max(uint64_t v) {
#pragma unroll
  for (int d = WARP / 2; d > 0; d >>= 1) {
    const uint64_t other = shuffle_xor(v, d);
    v = other > v ? other : v;
  }
  return v;
}

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
