// What the decode kernels share: activations staged in shared memory, and products of a lane with
// weights that stream past it.
//
// Decode reads every weight once and computes little with it, so a lane asks for several 16-byte
// pieces before it uses the first, and for the first ones before the activations are there.
// Activations are read from shared memory 16 bytes at a time, in an order in which neighbouring
// lanes meet different banks: see staged_at.
//
// What must stay true: k is a multiple of 32, weights begin at multiples of 16.
#ifndef OSSRUN_GPU_DECODE_H_
#define OSSRUN_GPU_DECODE_H_

#include "expert.h"
#include "grid.h"
#include "warp.h"

constexpr int kDecodeThreads = 256;
constexpr int kDecodeWarps = kDecodeThreads / WARP;
// 16-byte loads of a row of weights that a lane has under way. The published models' rows of 2,880
// are 11.25 a lane of 32 in bf16 and 5.6 of 64: rounds that are nearly full.
constexpr int kInFlight = WARP == 32 ? 4 : 3;
constexpr int kInFlightOfMany = 2;                 // the same where several rows share them
constexpr int kInFlightMx = WARP == 32 ? 6 : 3;    // MXFP4's gate and up in one round
constexpr int kInFlightDown = WARP == 32 ? 4 : 3;  // four experts' rows in three; on 64 in two

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

// A value that is the same in all lanes, such that the compiler sees it: loops over it keep the
// warp together, and what follows from it takes no register of every lane. All lanes.
__device__ __forceinline__ int same_in_warp(int v) {
#if defined(GPU_AMD)
  return __builtin_amdgcn_readfirstlane(v);
#else
  return __shfl_sync(FULL, v, 0);
#endif
}
__device__ __forceinline__ int warp_of(int thread) { return same_in_warp(thread / WARP); }

// Where the i-th four activations of a staged row lie. Lanes read pieces 2 or 8 apart; unmoved,
// they would share banks.
__device__ __forceinline__ int staged_at(int i) { return i ^ ((i >> 3) & 7); }

__device__ __forceinline__ float dot4(float a, float b, float c, float d, float4 x, float sum) {
  return fmaf(a, x.x, fmaf(b, x.y, fmaf(c, x.z, fmaf(d, x.w, sum))));
}

// Stages ROWS rows of k floats, times `factor` and RMSNorm's w if it is not null; rows from `live`
// on are zero. x is the first of them, not read before earlier grids are complete. The rows are
// asked for together, since a block can do nothing before it has them. All threads; a barrier must
// follow. `part` is shared, ROWS * kDecodeWarps floats, and gets what norm_scale reads. AWAITED:
// they are complete.
template <int ROWS, bool AWAITED = false>
__device__ __forceinline__ void stage_rows(int thread, float4* staged, const float* x,
                                           const bf16* w, int k, int live, float* part,
                                           float factor = 1) {
  constexpr int kAtOnce = ROWS > 1 ? 3 : 4;  // of four floats; or registers are too few
  const int count = k / 4;
  uint2 g[kAtOnce] = {};
  const auto ask_weights = [&](int first) {
#pragma unroll
    for (int u = 0; u < kAtOnce; u++) {
      const int i = first + u * kDecodeThreads;
      if (w && i < count) g[u] = reinterpret_cast<const uint2*>(w)[i];
    }
  };
  ask_weights(thread);
  if (!AWAITED) await_grids();
  float squares[ROWS] = {};
  for (int base = 0; base < count; base += kAtOnce * kDecodeThreads) {
    const int first = base + thread;
    float4 v[ROWS][kAtOnce];
#pragma unroll
    for (int r = 0; r < ROWS; r++)
#pragma unroll
      for (int u = 0; u < kAtOnce; u++) {
        const int i = first + u * kDecodeThreads;
        const float4* from = reinterpret_cast<const float4*>(x + static_cast<int64_t>(r) * k);
        v[r][u] = i < count && r < live ? from[i] : float4{0, 0, 0, 0};
      }
    if (base > 0) ask_weights(first);
    asked();
#pragma unroll
    for (int r = 0; r < ROWS; r++)
#pragma unroll
      for (int u = 0; u < kAtOnce; u++) {
        const int i = first + u * kDecodeThreads;
        float4 a = v[r][u];
        squares[r] = dot4(a.x, a.y, a.z, a.w, a, squares[r]);
        if (w) {
          a.x *= low_bf16(g[u].x);
          a.y *= high_bf16(g[u].x);
          a.z *= low_bf16(g[u].y);
          a.w *= high_bf16(g[u].y);
        }
        if (i < count)
          staged[r * count + staged_at(i)] =
              float4{a.x * factor, a.y * factor, a.z * factor, a.w * factor};
      }
  }
  if (!w) return;
#pragma unroll
  for (int r = 0; r < ROWS; r++) {
    const float sum = warp_sum(squares[r]);
    if (thread % WARP == 0) part[r * kDecodeWarps + thread / WARP] = sum;
  }
}

// What RMSNorm multiplies staged row r by.
__device__ __forceinline__ float norm_scale(const float* part, int r, int k, float eps) {
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kDecodeWarps; i++) sum += part[r * kDecodeWarps + i];
  return 1.0f / sqrt_of(sum / static_cast<float>(k) + eps);
}

// Whether a round of loads that begins at `first` has nothing but the zeros past the end. A card
// multiplies those rather than to ask; the emulation, whose rows are short, passes over them.
__device__ __forceinline__ constexpr bool only_zeros([[maybe_unused]] int first,
                                                     [[maybe_unused]] int end) {
#if defined(GPU_HOST)
  return first >= end;
#else
  return false;
#endif
}

// Pieces of COLUMNS bf16 rows of weights on their way to a lane: every WARP-th from first + lane
// on. What is past the row's end is zero.
template <int COLUMNS, int AT_ONCE>
struct Pieces {
  uint4 v[AT_ONCE][COLUMNS];

  __device__ __forceinline__ void ask(const bf16* const (&w)[COLUMNS], int first, int pieces,
                                      int lane) {
#pragma unroll
    for (int u = 0; u < AT_ONCE; u++) {
      const int i = first + u * WARP + lane;
#pragma unroll
      for (int c = 0; c < COLUMNS; c++)
        v[u][c] = i < pieces ? stream16(w[c] + i * 8) : uint4{0, 0, 0, 0};
    }
    asked();
  }

  // sum[r][c] += the products with staged row r, which are 2 * pieces apart.
  template <int ROWS>
  __device__ __forceinline__ void add(float (&sum)[ROWS][COLUMNS], const float4* staged, int first,
                                      int pieces, int lane) const {
#pragma unroll
    for (int u = 0; u < AT_ONCE; u++) {
      if (only_zeros(first + u * WARP, pieces)) break;
      const int at = first + u * WARP + lane, i = at < pieces ? at : 0;
#pragma unroll
      for (int r = 0; r < ROWS; r++) {
        const float4 a = staged[r * (2 * pieces) + staged_at(2 * i)];
        const float4 b = staged[r * (2 * pieces) + staged_at(2 * i + 1)];
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
};

// sum[r][c] += this lane's share of staged row r · bf16 row w[c] of k. Of `ahead` the first pieces
// have been asked for.
template <int ROWS, int COLUMNS, int AT_ONCE>
__device__ __forceinline__ void dot_bf16(float (&sum)[ROWS][COLUMNS],
                                         Pieces<COLUMNS, AT_ONCE>& ahead, const float4* staged,
                                         const bf16* const (&w)[COLUMNS], int k, int lane) {
  const int pieces = k / 8;
  int first = 0;
#pragma unroll 1  // or the compiler moves loads of one round among the products of the next
  do {
    ahead.add(sum, staged, first, pieces, lane);
#pragma unroll
    for (int r = 0; r < ROWS; r++)
#pragma unroll
      for (int c = 0; c < COLUMNS; c++) summed(sum[r][c]);
    first += AT_ONCE * WARP;
    if (first < pieces) ahead.ask(w, first, pieces, lane);
  } while (first < pieces);
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

#endif  // OSSRUN_GPU_DECODE_H_
