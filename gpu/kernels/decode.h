// What the decode kernels share: activations staged in shared memory, and products of a lane with
// weights that stream past it.
//
// Decode reads every weight once and computes little with it, so a lane asks for several 16-byte
// pieces before it uses the first. Activations are read from shared memory 16 bytes at a time, in
// an order in which neighbouring lanes meet different banks: see staged_at.
//
// What must stay true: k is a multiple of 32, weights begin at multiples of 16.
#ifndef OSSRUN_GPU_DECODE_H_
#define OSSRUN_GPU_DECODE_H_

#include "expert.h"
#include "warp.h"

constexpr int kDecodeThreads = 256;
constexpr int kDecodeWarps = kDecodeThreads / WARP;
constexpr int kInFlight = 4;        // 16-byte loads of a row that a lane has under way
constexpr int kInFlightOfMany = 2;  // the same where several rows share them

// 16 bytes that are read once: past the first cache.
__device__ __forceinline__ uint4 stream16(const void* p) {
#if defined(GPU_NVIDIA)
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(p));
  return v;
#elif defined(GPU_AMD)
  return __builtin_nontemporal_load(static_cast<const uint4*>(p));
#else
  return *static_cast<const uint4*>(p);
#endif
}

// The warp of a thread, by a shuffle: so the compiler sees that all lanes have the same, and that a
// loop over it keeps the warp together.
__device__ __forceinline__ int warp_of(int thread) { return __shfl_sync(FULL, thread / WARP, 0); }

// Loads above are asked for before anything below is done with what came: compilers move a load
// down to its first use where they may, and then few are under way.
__device__ __forceinline__ void asked() {
#if defined(GPU_NVIDIA)
  __syncwarp();
#elif defined(GPU_AMD)
  __builtin_amdgcn_sched_barrier(0);
#endif
}

// Where the i-th four activations of a staged row lie. Lanes read pieces 2 or 8 apart; unmoved,
// they would share banks.
__device__ __forceinline__ int staged_at(int i) { return i ^ ((i >> 3) & 7); }

// Stages a row of k floats, times `factor` and, with w, after RMSNorm by w. All threads, each its
// own `thread`; a barrier must follow. `part` is shared, of kDecodeWarps floats for this row alone.
__device__ __forceinline__ void stage(int thread, float4* staged, const float* x, const bf16* w,
                                      float eps, int k, float factor, float* part) {
  const float4* from = reinterpret_cast<const float4*>(x);
  float scale = factor;
  if (w) {
    float squares = 0;
    for (int i = thread; i < k / 4; i += kDecodeThreads) {
      const float4 v = from[i];
      squares = fmaf(v.x, v.x, fmaf(v.y, v.y, fmaf(v.z, v.z, fmaf(v.w, v.w, squares))));
    }
    squares = block_sum(squares, part);
    scale = 1.0f / sqrt_of(squares / static_cast<float>(k) + eps);
  }
  for (int i = thread; i < k / 4; i += kDecodeThreads) {
    float4 v = from[i];
    v.x *= scale;
    v.y *= scale;
    v.z *= scale;
    v.w *= scale;
    if (w) {
      const uint2 u = reinterpret_cast<const uint2*>(w)[i];
      v.x *= low_bf16(u.x);
      v.y *= high_bf16(u.x);
      v.z *= low_bf16(u.y);
      v.w *= high_bf16(u.y);
    }
    staged[staged_at(i)] = v;
  }
}

__device__ __forceinline__ float dot4(float a, float b, float c, float d, float4 x, float sum) {
  return fmaf(a, x.x, fmaf(b, x.y, fmaf(c, x.z, fmaf(d, x.w, sum))));
}

// sum[r][c] += this lane's share of staged row r · bf16 row w[c]. Rows are k / 4 pieces apart.
template <int ROWS, int COLUMNS>
__device__ __forceinline__ void dot_bf16(float (&sum)[ROWS][COLUMNS], const float4* staged,
                                         const bf16* const (&w)[COLUMNS], int k, int lane) {
  constexpr int kAtOnce = ROWS > 1 ? kInFlightOfMany : kInFlight;
  const int pieces = k / 8;
  for (int first = lane; first < pieces; first += kAtOnce * WARP) {
    uint4 v[kAtOnce][COLUMNS];
#pragma unroll
    for (int u = 0; u < kAtOnce; u++)
#pragma unroll
      for (int c = 0; c < COLUMNS; c++) {
        const int i = first + u * WARP;
        v[u][c] = i < pieces ? stream16(w[c] + i * 8) : uint4{0, 0, 0, 0};
      }
#pragma unroll
    for (int u = 0; u < kAtOnce; u++) {
      const int i = first + u * WARP < pieces ? first + u * WARP : 0;
#pragma unroll
      for (int r = 0; r < ROWS; r++) {
        const float4 a = staged[r * (k / 4) + staged_at(2 * i)];
        const float4 b = staged[r * (k / 4) + staged_at(2 * i + 1)];
#pragma unroll
        for (int c = 0; c < COLUMNS; c++) {
          const uint4 q = v[u][c];
          sum[r][c] =
              dot4(low_bf16(q.x), high_bf16(q.x), low_bf16(q.y), high_bf16(q.y), a, sum[r][c]);
          sum[r][c] =
              dot4(low_bf16(q.z), high_bf16(q.z), low_bf16(q.w), high_bf16(q.w), b, sum[r][c]);
        }
      }
    }
  }
}

// Activations for MXFP4 weights are staged times 2^64. The weights are read as subnormal float32,
// 2^-126 of their value (see unpack2), and the products would be subnormal too.
constexpr float kMxStage = 0x1p64f;
constexpr float kMxUnstage = 0x1p62f;

// Elements i and i + 4 of eight packed E2M1, as float32 of 2^-126 their value. Both at once: the
// codes stand 16 bits apart, and their bits are those of a subnormal bf16.
__device__ __forceinline__ void unpack2(unsigned q, int i, float* low, float* high) {
  const unsigned t = q >> (4 * i);
  const unsigned pair = (t << 6 & 0x01c001c0u) | (t << 12 & 0x80008000u);
  *low = low_bf16(pair);
  *high = high_bf16(pair);
}

// Eight packed E2M1 times eight activations.
__device__ __forceinline__ float dot_e2m1(unsigned q, float4 a, float4 b, float sum) {
  float l0, l1, l2, l3, h0, h1, h2, h3;
  unpack2(q, 0, &l0, &h0);
  unpack2(q, 1, &l1, &h1);
  unpack2(q, 2, &l2, &h2);
  unpack2(q, 3, &l3, &h3);
  return dot4(l0, l1, l2, l3, a, dot4(h0, h1, h2, h3, b, sum));
}

// A block of 32 weights times block b of a staged row.
__device__ __forceinline__ float dot_block(uint4 q, unsigned scale, const float4* staged, int b) {
  float sum = dot_e2m1(q.x, staged[staged_at(8 * b)], staged[staged_at(8 * b + 1)], 0);
  sum = dot_e2m1(q.y, staged[staged_at(8 * b + 2)], staged[staged_at(8 * b + 3)], sum);
  sum = dot_e2m1(q.z, staged[staged_at(8 * b + 4)], staged[staged_at(8 * b + 5)], sum);
  sum = dot_e2m1(q.w, staged[staged_at(8 * b + 6)], staged[staged_at(8 * b + 7)], sum);
  return sum * kMxUnstage * from_e8m0(scale);
}

// Tells the last of `blocks` blocks to arrive here that it is the last, and sees to it that it
// reads what the others wrote before. `arrived` is 0 before and after. All threads; has barriers.
__device__ __forceinline__ bool last_to_arrive(int* arrived, int blocks, int* flag) {
  fence_gpu();
  __syncthreads();
  if (threadIdx.x == 0) {
    const bool last = atomic_add(arrived, 1) == blocks - 1;
    if (last) *arrived = 0;
    *flag = last;
  }
  __syncthreads();
  fence_gpu();
  return *flag != 0;
}

#endif  // OSSRUN_GPU_DECODE_H_
