// Prefill's matrices on the matrix unit of sm_90a: prefill.cu's results by warpgroup products.
//
// A block makes 128 rows by 128 columns, two warpgroups below each other, 64 of k at a time in two
// stages of shared memory: while the matrix unit works on one, the threads fill the other,
// unpacking MXFP4 to bf16, where it is exact. What they fill it with was asked for two or more
// steps before: one block is on a multiprocessor, and with few rows an expert its time is the
// memory's. Activations are rounded to bf16 (prefill.cu with
// three terms is there for all of float32).
//
// What must stay true: k is a multiple of 32; weights and rows of x begin at multiples of 16.
// Within a piece of eight, MXFP4 weights and their activations lie in the order 0 4 1 5 2 6 3 7:
// two codes four apart are unpacked at once, and a sum does not mind.
#include "expert.h"
#include "wgmma.h"

#if defined(MATRIX_WGMMA)

constexpr int kWgTileRows = 128, kWgThreads = 256, kWgStep = 64;
constexpr int kWgResultStride = kWgColumns + 4;
constexpr int kWgOperand =
    kWgTileRows / 8 * (kWgStep / 8 * kCoreApart);  // bf16 of one stage of one

// Both bf16 of a word times those of another.
__device__ __forceinline__ unsigned multiply_bf16x2(unsigned a, unsigned b) {
#if defined(GPU_NVIDIA)
  unsigned r;
  asm("mul.rn.bf16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
  return r;
#else
  return to_bf16x2(low_bf16(a) * low_bf16(b), high_bf16(a) * high_bf16(b));
#endif
}

// Eight packed E2M1 as bf16 in the order above; scale is twice the same bf16. The codes become
// subnormal bf16 of 2^-126 their value.
__device__ __forceinline__ uint4 unpack8_wg(unsigned q, unsigned scale) {
  unsigned w[4];
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const unsigned t = q >> (4 * i);
    const unsigned pair = (t << 6 & 0x01c001c0u) | (t << 12 & 0x80008000u);
    w[i] = multiply_bf16x2(multiply_bf16x2(pair, 0x7e807e80u), scale);
  }
  return uint4{w[0], w[1], w[2], w[3]};
}

// Four pieces of eight of a row of activations or dense weights a thread: piece threadIdx.x % 8 of
// rows threadIdx.x / 8 + 32 n.
struct WgDense {
  static constexpr int kAhead = 2;  // steps that are asked for before they are needed
  const bf16* w;                    // row 0 of the tile
  int rows, k;                      // how many rows there are; their length
  uint4 v[4];
  __device__ __forceinline__ void fetch(int k0) {
    const int at = k0 + threadIdx.x % 8 * 8;
#pragma unroll
    for (int n = 0; n < 4; n++) {
      const int row = threadIdx.x / 8 + n * 32;
      v[n] = uint4{0, 0, 0, 0};
      if (row < rows && at < k)
        v[n] = from_gpu_memory<uint4>(w + static_cast<int64_t>(row) * k + at);
    }
  }
  __device__ __forceinline__ void put(bf16* to) const {
#pragma unroll
    for (int n = 0; n < 4; n++)
      *reinterpret_cast<uint4*>(
          to + core_at(threadIdx.x / 8 + n * 32, threadIdx.x % 8 * 8, kWgStep)) = v[n];
  }
};

// A block of 32 weights a thread: block threadIdx.x % 2 of row threadIdx.x / 2.
struct WgMx {
  static constexpr int kAhead = 4;
  const uint8_t* blocks;  // the row, or null past the last one
  const uint8_t* scales;
  int k;
  uint4 q;
  unsigned scale;
  __device__ __forceinline__ void fetch(int k0) {
    const int b = k0 / kBlock + threadIdx.x % 2;
    q = uint4{0, 0, 0, 0};
    scale = 0;
    if (!blocks || b * kBlock >= k) return;
    q = from_gpu_memory<uint4>(blocks + b * (kBlock / 2));
    scale = scales[b];
  }
  __device__ __forceinline__ void put(bf16* to) const {
    const unsigned half = scale == 0 ? 0x0040u : scale << 7, s = half | half << 16;
    bf16* const own = to + core_at(threadIdx.x / 2, threadIdx.x % 2 * kBlock, kWgStep);
    *reinterpret_cast<uint4*>(own) = unpack8_wg(q.x, s);
    *reinterpret_cast<uint4*>(own + kCoreApart) = unpack8_wg(q.y, s);
    *reinterpret_cast<uint4*>(own + 2 * kCoreApart) = unpack8_wg(q.z, s);
    *reinterpret_cast<uint4*>(own + 3 * kCoreApart) = unpack8_wg(q.w, s);
  }
};

// The activations of a tile: rows as for WgDense, each where row[n] says, or null.
template <bool MX>
struct WgActivations {
  static constexpr int kAhead = 2;
  const float* row[4];
  int k;
  float4 a[4], b[4];
  __device__ __forceinline__ void fetch(int k0) {
    const int at = k0 + threadIdx.x % 8 * 8;
#pragma unroll
    for (int n = 0; n < 4; n++) {
      a[n] = b[n] = float4{0, 0, 0, 0};
      if (!row[n] || at >= k) continue;
      a[n] = from_gpu_memory<float4>(row[n] + at);
      b[n] = from_gpu_memory<float4>(row[n] + at + 4);
    }
  }
  __device__ __forceinline__ void put(bf16* to) const {
#pragma unroll
    for (int n = 0; n < 4; n++) {
      const float4 u = a[n], v = b[n];
      uint4 w;
      if (MX)
        w = uint4{to_bf16x2(u.x, v.x), to_bf16x2(u.y, v.y), to_bf16x2(u.z, v.z),
                  to_bf16x2(u.w, v.w)};
      else
        w = uint4{to_bf16x2(u.x, u.y), to_bf16x2(u.z, u.w), to_bf16x2(v.x, v.y),
                  to_bf16x2(v.z, v.w)};
      *reinterpret_cast<uint4*>(
          to + core_at(threadIdx.x / 8 + n * 32, threadIdx.x % 8 * 8, kWgStep)) = w;
    }
  }
};

// The product of the tile into `result`, rows kWgResultStride apart; it lies where the stages were.
// What is past k is fetched as zeros.
template <class Activations, class Weights>
__device__ __forceinline__ void wg_product(float* result, const Activations& rows,
                                           const Weights& columns, int k) {
  constexpr int kX = Activations::kAhead, kW = Weights::kAhead, kTurn = kX > kW ? kX : kW;
  static_assert(kTurn % 2 == 0 && kTurn % kX == 0 && kTurn % kW == 0, "stages and places repeat");
  bf16* const stages = reinterpret_cast<bf16*>(result);
  float sum[kWgSums];
#pragma unroll
  for (int i = 0; i < kWgSums; i++) sum[i] = 0;
  Pending pending = {};
  Activations x[kX];
  Weights w[kW];
#pragma unroll
  for (int u = 0; u < kW; u++) (w[u] = columns).fetch(u * kWgStep);
#pragma unroll
  for (int u = 0; u < kX; u++) (x[u] = rows).fetch(u * kWgStep);
  x[0].put(stages);
  w[0].put(stages + kWgOperand);
  for (int turn = 0; turn < k; turn += kTurn * kWgStep) {
#pragma unroll
    for (int u = 0; u < kTurn; u++) {
      const int k0 = turn + u * kWgStep;
      if (k0 >= k) break;
      const bf16* as = stages + u % 2 * 2 * kWgOperand;
      bf16* const other = stages + (u + 1) % 2 * 2 * kWgOperand;
      publish();
      __syncthreads();  // this stage is filled, and both warpgroups have read the other
      w[u % kW].fetch(k0 + kW * kWgStep);  // where this stage came from
      x[u % kX].fetch(k0 + kX * kWgStep);
      begin_products(sum);
      const bf16* own = as + core_at(threadIdx.x / 128 * kWgRows, 0, kWgStep);
#pragma unroll
      for (int kk = 0; kk < kWgStep; kk += 16)
        issue(pending, sum, descriptor(own + kk / 8 * kCoreApart, kWgStep),
              descriptor(as + kWgOperand + kk / 8 * kCoreApart, kWgStep));
      commit();
      if (k0 + kWgStep < k) {  // while the unit works
        x[(u + 1) % kX].put(other);
        w[(u + 1) % kW].put(other + kWgOperand);
      }
      // In the same turn of the loop: the assembler gives up overlap where accumulators of a
      // running product go round.
      wait(pending, sum);
    }
  }
  __syncthreads();  // both warpgroups have read the last stage: the result takes its place
  const int row = threadIdx.x / 128 * kWgRows + wg_row(threadIdx.x, 0);
  float* const own = result + row * kWgResultStride + wg_column(threadIdx.x, 0);
#pragma unroll
  for (int i = 0; i < kWgSums; i++)
    own[(i >> 1 & 1) * 8 * kWgResultStride + (i >> 2) * 8 + (i & 1)] = sum[i];
  __syncthreads();
}

// linear for many rows, activations rounded to bf16.
// grid (ceil(n / 128), ceil(bucket rows / 128)), shared 73728
KERNEL(256)
prefill_linear_wgmma(const int* rows, float* y, const float* x, const bf16* w, const bf16* bias,
                     int k, int n, int stride, int add) {
  DYNAMIC_SHARED(float, result);
  const int live = *rows, row0 = blockIdx.y * kWgTileRows, column0 = blockIdx.x * kWgColumns;
  if (row0 >= live) return;  // the whole block
  WgDense weights = {};
  weights.w = w + static_cast<int64_t>(column0) * k;
  weights.rows = n - column0;
  weights.k = k;
  WgActivations<false> activations = {};
  activations.k = k;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const int row = row0 + threadIdx.x / 8 + i * 32;
    activations.row[i] = row < live ? x + static_cast<int64_t>(row) * k : nullptr;
  }
  wg_product(result, activations, weights, k);
  for (int i = threadIdx.x; i < kWgTileRows * kWgColumns; i += kWgThreads) {
    const int row = row0 + i / kWgColumns, c = column0 + i % kWgColumns;
    if (row >= live || c >= n) continue;
    float v = result[i / kWgColumns * kWgResultStride + i % kWgColumns];
    if (bias) v += from_bf16(bias[c]);
    float* to = y + static_cast<int64_t>(row) * stride + c;
    *to = add ? *to + v : v;
  }
}
EMULATE(prefill_linear_wgmma, 256)

template <bool GATED>
__device__ __forceinline__ void expert_tile_wg(float* y, const int* order, const int* groups,
                                               const float* x, const uint8_t* blocks,
                                               const uint8_t* scales, const bf16* bias, int n,
                                               int k, int top, float limit) {
  DYNAMIC_SHARED(float, result);
  int expert, begin, end;
  if (!find_tile(groups, blockIdx.y, kWgTileRows, &expert, &begin, &end))
    return;  // the whole block
  const int column0 = blockIdx.x * kWgColumns, own_column = column0 + threadIdx.x / 2;
  const int64_t own_weight = static_cast<int64_t>(expert) * n + own_column;
  WgMx weights = {};
  weights.blocks = own_column < n ? blocks + own_weight * (k / 2) : nullptr;
  weights.scales = scales + own_weight * (k / kBlock);
  weights.k = k;
  WgActivations<true> activations = {};
  activations.k = k;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const int place = begin + threadIdx.x / 8 + i * 32;
    activations.row[i] = place < end ? x + static_cast<int64_t>(order[place] / top) * k : nullptr;
  }
  wg_product(result, activations, weights, k);
  constexpr int kStep = GATED ? 2 : 1, kColumns = kWgColumns / kStep;
  for (int i = threadIdx.x; i < kWgTileRows * kColumns; i += kWgThreads) {
    const int place = begin + i / kColumns, c = column0 + i % kColumns * kStep;
    if (place >= end || c >= n) continue;
    const float* v = result + i / kColumns * kWgResultStride + i % kColumns * kStep;
    const bf16* add = bias + static_cast<int64_t>(expert) * n + c;
    float* to = y + static_cast<int64_t>(order[place]) * (n / kStep) + c / kStep;
    *to = GATED ? clamped_swiglu(v[0] + from_bf16(add[0]), v[kStep - 1] + from_bf16(add[kStep - 1]),
                                 limit)
                : v[0] + from_bf16(add[0]);
  }
}

// gate_up for many rows: n is the width of h; activations are rounded to bf16.
// grid (ceil(2n / 128), ceil(bucket slots / 128) + experts), shared 73728
KERNEL(256)
prefill_gate_up_wgmma(float* h, const int* order, const int* groups, const float* x,
                      const uint8_t* blocks, const uint8_t* scales, const bf16* bias, int n, int k,
                      int top, float limit) {
  expert_tile_wg<true>(h, order, groups, x, blocks, scales, bias, 2 * n, k, top, limit);
}
EMULATE(prefill_gate_up_wgmma, 256)

// down for many rows.
// grid (ceil(n / 128), ceil(bucket slots / 128) + experts), shared 73728
KERNEL(256)
prefill_down_wgmma(float* y, const int* order, const int* groups, const float* h,
                   const uint8_t* blocks, const uint8_t* scales, const bf16* bias, int n, int k) {
  expert_tile_wg<false>(y, order, groups, h, blocks, scales, bias, n, k, 1, 0);
}
EMULATE(prefill_down_wgmma, 256)

// One product of integers, exact in bf16: c[i][j] = sum over k of a[i][k] * b[j][k], a bf16
// [64][16], b bf16 [128][16], c f32 [64][128]. As matrix_proof. grid (1), shared 6912
KERNEL(128)
matrix_proof_wgmma(float* c, const bf16* a, const bf16* b) {
  DYNAMIC_SHARED(bf16, operands);
  bf16* const bs = operands + kWgRows / 8 * 2 * kCoreApart;
  for (int i = threadIdx.x; i < kWgRows * 16; i += 128)
    operands[core_at(i / 16, i % 16, 16)] = a[i];
  for (int i = threadIdx.x; i < kWgColumns * 16; i += 128) bs[core_at(i / 16, i % 16, 16)] = b[i];
  publish();
  __syncthreads();
  float sum[kWgSums];
#pragma unroll
  for (int i = 0; i < kWgSums; i++) sum[i] = 0;
  Pending pending = {};
  begin_products(sum);
  issue(pending, sum, descriptor(operands, 16), descriptor(bs, 16));
  commit();
  wait(pending, sum);
#pragma unroll
  for (int i = 0; i < kWgSums; i++)
    c[wg_row(threadIdx.x, i) * kWgColumns + wg_column(threadIdx.x, i)] = sum[i];
}
EMULATE(matrix_proof_wgmma, 128)

#endif
