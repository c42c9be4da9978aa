// Prefill's matrices on the matrix unit of sm_90a: prefill.cu's results by warpgroup products.
//
// A block makes 128 rows by 128 columns, two warpgroups below each other, 64 of k at a time. While
// the matrix unit works on one step, the rows of bf16 that two steps later need are copied into
// shared memory by the copies' own hardware, and the threads unpack MXFP4 weights of the next one
// to bf16, where it is exact; those were asked for three steps before. Two blocks are on a
// multiprocessor, so that one unpacks while the other multiplies. Activations come rounded to bf16
// (round_rows); prefill.cu with three terms is there for all of float32.
//
// What must stay true: k is a multiple of 32; weights and rows of x begin at multiples of 16.
// Within a piece of eight, MXFP4 weights and their activations lie in the order 0 4 1 5 2 6 3 7:
// two codes four apart are unpacked at once, and a sum does not mind.
#include "expert.h"
#include "pieces.h"
#include "wgmma.h"

#if defined(MATRIX_WGMMA)

constexpr int kWgTileRows = 128, kWgThreads = 256;
constexpr int kWgResultStride = kWgColumns + 4;
constexpr int kWgStages = 3;  // of rows that are copied: one is read, two are under way
constexpr int kWgOperand = kWgTileRows * kWgStep;  // bf16 of one stage of one

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

// 128 rows of bf16, copied: a thread has piece threadIdx.x % 8 of rows threadIdx.x / 8 + 32 n.
// Zeros where there is no row, and past k.
struct WgRows {
  const bf16* x;
  int row[4];  // where they begin, or -1; far below 2^31
  int k;
  __device__ __forceinline__ void copy(Copies& copies, bf16* stage, int k0) const {
    const int at = k0 + threadIdx.x % 8 * 8;
#pragma unroll
    for (int n = 0; n < 4; n++)
      copy_ahead(copies, stage + operand_at(threadIdx.x / 8 + n * 32, threadIdx.x % 8 * 8),
                 row[n] < 0 ? x : x + row[n] + at, row[n] >= 0 && at < k);
  }
};

// A dense matrix's rows: they are copied as the activations are.
struct WgDense {
  static constexpr int kAhead = 1, kStages = kWgStages;
  WgRows rows;
  __device__ __forceinline__ void copy(Copies& copies, bf16* stage, int k0) const {
    rows.copy(copies, stage, k0);
  }
  __device__ __forceinline__ void fetch(int) {}
  __device__ __forceinline__ void put(bf16*) const {}
};

// MXFP4: a block of 32 weights a thread, block threadIdx.x % 2 of row threadIdx.x / 2.
struct WgMx {
  static constexpr int kAhead = 3;  // steps that are asked for before they are needed
  static constexpr int kStages = 2;
  const uint8_t* blocks;
  const uint8_t* scales;
  int row;  // its first block, or -1 past the last row
  int k;
  uint4 q;
  unsigned scale;
  __device__ __forceinline__ void copy(Copies&, bf16*, int) const {}
  __device__ __forceinline__ void fetch(int k0) {
    const int b = k0 / kBlock + threadIdx.x % 2;
    q = uint4{0, 0, 0, 0};
    scale = 0;
    if (row < 0 || b * kBlock >= k) return;
    q = from_gpu_memory<uint4>(blocks + static_cast<int64_t>(row + b) * (kBlock / 2));
    scale = from_gpu_memory<uint8_t>(scales + row + b);
  }
  __device__ __forceinline__ void put(bf16* to) const {
    const unsigned half = scale == 0 ? 0x0040u : scale << 7, s = half | half << 16;
    const int own = threadIdx.x / 2, k = threadIdx.x % 2 * kBlock;
    *reinterpret_cast<uint4*>(to + operand_at(own, k)) = unpack8_wg(q.x, s);
    *reinterpret_cast<uint4*>(to + operand_at(own, k + 8)) = unpack8_wg(q.y, s);
    *reinterpret_cast<uint4*>(to + operand_at(own, k + 16)) = unpack8_wg(q.z, s);
    *reinterpret_cast<uint4*>(to + operand_at(own, k + 24)) = unpack8_wg(q.w, s);
  }
};

// The product of the tile into `result`, rows kWgResultStride apart; it lies where the stages were:
// kWgStages of activations, then the weights'.
template <class Weights>
__device__ __forceinline__ void wg_product(float* result, const WgRows& rows,
                                           const Weights& columns, int k) {
  constexpr int kAhead = Weights::kAhead, kStages = Weights::kStages;
  constexpr int kTurn = kAhead > 1 ? kAhead : 2;
  bf16* const xs = operands_in(result);
  bf16* const ws = xs + kWgStages * kWgOperand;
  float sum[kWgSums];
#pragma unroll
  for (int i = 0; i < kWgSums; i++) sum[i] = 0;
  Pending pending = {};
  Copies copies = {};
  Weights w[kAhead];
#pragma unroll
  for (int u = 0; u < kAhead; u++) (w[u] = columns).fetch(u * kWgStep);
#pragma unroll
  for (int u = 0; u < 2; u++) {
    rows.copy(copies, xs + u * kWgOperand, u * kWgStep);
    columns.copy(copies, ws + u * kWgOperand, u * kWgStep);
    commit_copies(copies);
  }
  w[0].put(ws);
  int x_stage = 0, w_stage = 0;  // of the step that is multiplied
  for (int turn = 0; turn < k; turn += kTurn * kWgStep) {
#pragma unroll
    for (int u = 0; u < kTurn; u++) {
      const int k0 = turn + u * kWgStep;
      if (k0 >= k) break;
      arrive(copies);  // this step's; the next one's may be under way
      publish();
      __syncthreads();  // this stage is filled, and both warpgroups have read the last one
      const int x_free = x_stage == 0 ? kWgStages - 1 : x_stage - 1;
      const int w_next = w_stage + 1 == kStages ? 0 : w_stage + 1;
      rows.copy(copies, xs + x_free * kWgOperand, k0 + 2 * kWgStep);
      columns.copy(copies, ws + x_free * kWgOperand, k0 + 2 * kWgStep);
      commit_copies(copies);
      w[u % kAhead].fetch(k0 + kAhead * kWgStep);  // where this stage came from
      begin_products(sum);
      const bf16* const own = xs + x_stage * kWgOperand + threadIdx.x / 128 * kWgRows * kWgStep;
      const bf16* const weights = ws + w_stage * kWgOperand;
#pragma unroll
      for (int kk = 0; kk < kWgStep; kk += 16)
        issue(pending, sum, descriptor(own + kk), descriptor(weights + kk));
      commit(pending);
      if (k0 + kWgStep < k) w[(u + 1) % kAhead].put(ws + w_next * kWgOperand);
      // In the same turn of the loop: the assembler gives up overlap where accumulators of a
      // running product go round.
      wait(pending, sum);
      x_stage = x_stage + 1 == kWgStages ? 0 : x_stage + 1;
      w_stage = w_next;
    }
  }
  arrive_all(copies);
  __syncthreads();  // both warpgroups have read the last stage: the result takes its place
  const int row = threadIdx.x / 128 * kWgRows + wg_row(threadIdx.x, 0);
  float* const own = result + row * kWgResultStride + wg_column(threadIdx.x, 0);
#pragma unroll
  for (int i = 0; i < kWgSums; i++)
    own[(i >> 1 & 1) * 8 * kWgResultStride + (i >> 2) * 8 + (i & 1)] = sum[i];
  __syncthreads();
}

// linear for many rows of x bf16 [rows, k], of up to three matrices side by side: n0, n1 and n2
// columns of y; those that there are not have 0. Blocks along z divide k, with partial and arrived
// as in add_pieces.
// grid (ceil(n0 / 128) + ceil(n1 / 128) + ceil(n2 / 128), ceil(bucket rows / 128), any),
// shared 99328
KERNEL(256, 2)
prefill_linear_wgmma(const int* rows, float* y, float* partial, int* arrived, const bf16* x,
                     const bf16* w0, const bf16* bias0, const bf16* w1, const bf16* bias1,
                     const bf16* w2, const bf16* bias2, int n0, int n1, int n2, int k, int stride,
                     int add) {
  DYNAMIC_SHARED(float, result);
  const int live = *rows, row0 = blockIdx.y * kWgTileRows;
  if (row0 >= live) return;  // the whole block
  const OwnColumns<bf16> own =
      own_columns<kWgColumns>(blockIdx.x, w0, bias0, w1, bias1, w2, bias2, n0, n1, n2);
  const Piece piece = own_piece((k + kWgStep - 1) / kWgStep);
  const int first = piece.first * kWgStep, end = piece.end * kWgStep;
  WgDense weights = {};
  WgRows activations = {};
  weights.rows.x = own.w + first;
  activations.x = x + first;
  weights.rows.k = activations.k = (end < k ? end : k) - first;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const int row = row0 + threadIdx.x / 8 + i * 32, c = own.first + threadIdx.x / 8 + i * 32;
    activations.row[i] = row < live ? row * k : -1;
    weights.rows.row[i] = c < own.n ? c * k : -1;
  }
  wg_product(result, activations, weights, activations.k);
  leave_tile<kWgTileRows, kWgColumns>(y, result, kWgResultStride, row0, live, own, stride, add,
                                      partial, arrived);
}
EMULATE(prefill_linear_wgmma, 256)

template <bool GATED>
__device__ __forceinline__ void expert_tile_wg(float* y, const int* order, const int* groups,
                                               const bf16* x, const uint8_t* blocks,
                                               const uint8_t* scales, const bf16* bias, int n,
                                               int k, int top, float limit) {
  DYNAMIC_SHARED(float, result);
  int expert, begin, end;
  if (!find_tile(groups, blockIdx.y, kWgTileRows, &expert, &begin, &end))
    return;  // the whole block
  const int column0 = blockIdx.x * kWgColumns, own_column = column0 + threadIdx.x / 2;
  WgMx weights = {};
  weights.blocks = blocks;
  weights.scales = scales;
  weights.row = own_column < n ? (expert * n + own_column) * (k / kBlock) : -1;
  weights.k = k;
  WgRows activations = {};
  activations.x = x;
  activations.k = k;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const int place = begin + threadIdx.x / 8 + i * 32;
    activations.row[i] = place < end ? order[place] / top * k : -1;
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

// gate_up for many rows: n is the width of h; x bf16 [rows, k] in the order above.
// grid (ceil(2n / 128), ceil(bucket slots / 128) + experts), shared 82944
KERNEL(256, 2)
prefill_gate_up_wgmma(float* h, const int* order, const int* groups, const bf16* x,
                      const uint8_t* blocks, const uint8_t* scales, const bf16* bias, int n, int k,
                      int top, float limit) {
  expert_tile_wg<true>(h, order, groups, x, blocks, scales, bias, 2 * n, k, top, limit);
}
EMULATE(prefill_gate_up_wgmma, 256)

// down for many rows: h bf16 [slots, k] in the order above.
// grid (ceil(n / 128), ceil(bucket slots / 128) + experts), shared 82944
KERNEL(256, 2)
prefill_down_wgmma(float* y, const int* order, const int* groups, const bf16* h,
                   const uint8_t* blocks, const uint8_t* scales, const bf16* bias, int n, int k) {
  expert_tile_wg<false>(y, order, groups, h, blocks, scales, bias, n, k, 1, 0);
}
EMULATE(prefill_down_wgmma, 256)

// One product of integers, exact in bf16: c[i][j] = sum over k of a[i][k] * b[j][k], a bf16
// [64][16], b bf16 [128][16], c f32 [64][128]. As matrix_proof. grid (1), shared 25600
KERNEL(128)
matrix_proof_wgmma(float* c, const bf16* a, const bf16* b) {
  DYNAMIC_SHARED(bf16, dynamic);
  bf16 *const as = operands_in(dynamic), *const bs = as + kWgRows * kWgStep;
  for (int i = threadIdx.x; i < kWgRows * 16; i += 128) as[operand_at(i / 16, i % 16)] = a[i];
  for (int i = threadIdx.x; i < kWgColumns * 16; i += 128) bs[operand_at(i / 16, i % 16)] = b[i];
  publish();
  __syncthreads();
  float sum[kWgSums];
#pragma unroll
  for (int i = 0; i < kWgSums; i++) sum[i] = 0;
  Pending pending = {};
  begin_products(sum);
  issue(pending, sum, descriptor(as), descriptor(bs));
  commit(pending);
  wait(pending, sum);
#pragma unroll
  for (int i = 0; i < kWgSums; i++)
    c[wg_row(threadIdx.x, i) * kWgColumns + wg_column(threadIdx.x, i)] = sum[i];
}
EMULATE(matrix_proof_wgmma, 128)

#endif
