// Prefill's dense matrices on the matrix unit of sm_90a: prefill.cu's results by warpgroup
// products.
//
// A block makes 128 rows by 128 columns, two warpgroups below each other, 64 of k at a time. While
// the matrix unit works on one step, what two steps later need is copied into shared memory by the
// copies' own hardware. Two blocks are on a multiprocessor. Activations come rounded to bf16
// (round_rows); prefill.cu with three terms is there for all of float32.
//
// What must stay true: k is a multiple of 32; weights and rows of x begin at multiples of 16.
#include "pieces.h"
#include "wgmma.h"

#if defined(MATRIX_WGMMA)

constexpr int kWgTileRows = 128;
constexpr int kWgResultStride = kWgColumns + 4;
constexpr int kWgStages = 3;                       // one is read, two are under way
constexpr int kWgOperand = kWgTileRows * kWgStep;  // bf16 of one stage of one

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

// The product of the tile into `result`, rows kWgResultStride apart; it lies where the stages were:
// those of activations, then the weights'.
__device__ __forceinline__ void wg_product(float* result, const WgRows& rows, const WgRows& columns,
                                           int k) {
  bf16* const xs = operands_in(result);
  bf16* const ws = xs + kWgStages * kWgOperand;
  float sum[kWgSums] = {};
  Pending pending = {};
  Copies copies = {};
#pragma unroll
  for (int u = 0; u < 2; u++) {
    rows.copy(copies, xs + u * kWgOperand, u * kWgStep);
    columns.copy(copies, ws + u * kWgOperand, u * kWgStep);
    commit_copies(copies);
  }
  int stage = 0;  // of the step that is multiplied
  for (int turn = 0; turn < k; turn += 2 * kWgStep) {
#pragma unroll
    for (int u = 0; u < 2; u++) {
      const int k0 = turn + u * kWgStep;
      if (k0 >= k) break;
      arrive(copies);  // this step's; the next one's may be under way
      publish();
      __syncthreads();  // this stage is filled, and both warpgroups have read the last one
      const int free = stage == 0 ? kWgStages - 1 : stage - 1;
      rows.copy(copies, xs + free * kWgOperand, k0 + 2 * kWgStep);
      columns.copy(copies, ws + free * kWgOperand, k0 + 2 * kWgStep);
      commit_copies(copies);
      begin_products(sum);
      const bf16* const own = xs + stage * kWgOperand + threadIdx.x / 128 * kWgRows * kWgStep;
      const bf16* const weights = ws + stage * kWgOperand;
#pragma unroll
      for (int kk = 0; kk < kWgStep; kk += 16)
        issue(pending, sum, descriptor(own + kk), descriptor(weights + kk));
      commit(pending);
      // In the same turn of the loop: the assembler gives up overlap where accumulators of a
      // running product go round.
      wait(pending, sum);
      stage = stage + 1 == kWgStages ? 0 : stage + 1;
    }
  }
  arrive<true>(copies);
  __syncthreads();  // both warpgroups have read the last stage: the result takes its place
  const int row = threadIdx.x / 128 * kWgRows + wg_row(threadIdx.x, 0);
  float* const own = result + row * kWgResultStride + wg_column(threadIdx.x, 0);
#pragma unroll
  for (int i = 0; i < kWgSums; i++)
    own[(i >> 1 & 1) * 8 * kWgResultStride + (i >> 2) * 8 + (i & 1)] = sum[i];
  __syncthreads();
}

// A tile of y, or of q, k and v where they go.
template <bool HEADS>
__device__ __forceinline__ void wg_linear(const int* rows, float* y, float* partial, int* arrived,
                                          const bf16* x, const OwnColumns<bf16>& own, int k,
                                          int stride, int add, const HeadRows<bf16>& heads) {
  DYNAMIC_SHARED(float, result);
  const int live = *rows, row0 = blockIdx.x * kWgTileRows;
  if (row0 >= live) return;  // the whole block
  const Piece piece = own_piece((k + kWgStep - 1) / kWgStep);
  const int first = piece.first * kWgStep, end = piece.end * kWgStep;
  WgRows weights = {}, activations = {};
  weights.x = own.w + first;
  activations.x = x + first;
  weights.k = activations.k = (end < k ? end : k) - first;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const int row = row0 + threadIdx.x / 8 + i * 32, c = own.first + threadIdx.x / 8 + i * 32;
    activations.row[i] = row < live ? row * k : -1;
    weights.row[i] = c < own.n ? c * k : -1;
  }
  wg_product(result, activations, weights, activations.k);
  if constexpr (HEADS)
    leave_heads<kWgTileRows, kWgColumns, 256, false>(heads, result, kWgResultStride, row0, live,
                                                     own, k, 0, partial, arrived);
  else
    leave_tile<kWgTileRows, kWgColumns>(y, result, kWgResultStride, row0, live, own, stride, add,
                                        partial, arrived);
}

// linear for many rows of x bf16 [rows, k], of up to three matrices side by side: n0, n1 and n2
// columns of y; those that there are not have 0. Blocks along z divide k, with partial and arrived
// as in add_pieces.
// grid (ceil(bucket rows / 128), ceil(n0 / 128) + ceil(n1 / 128) + ceil(n2 / 128), any),
// shared 99328
KERNEL(256, 2)
prefill_linear_wgmma(const int* rows, float* y, float* partial, int* arrived, const bf16* x,
                     const bf16* w0, const bf16* bias0, const bf16* w1, const bf16* bias1,
                     const bf16* w2, const bf16* bias2, int n0, int n1, int n2, int k, int stride,
                     int add) {
  await_grids();
  wg_linear<false>(rows, y, partial, arrived, x,
                   own_columns<kWgColumns>(blockIdx.y, w0, bias0, w1, bias1, w2, bias2, n0, n1, n2),
                   k, stride, add, {});
}
EMULATE(prefill_linear_wgmma, 256)

// The same for q, k and v with heads of 64, rope and write_kv on a bf16 cache.
KERNEL(256, 2)
prefill_qkv_wgmma(const int* rows, float* qkv, float* partial, int* arrived, const bf16* x,
                  const bf16* wq, const bf16* bq, const bf16* wk, const bf16* bk, const bf16* wv,
                  const bf16* bv, int n0, int n1, int n2, int k, int stride, int add, bf16* cache,
                  const float* angles, const int* positions, const int* tables, const int* table_at,
                  int64_t page_elements) {
  await_grids();
  wg_linear<true>(
      rows, qkv, partial, arrived, x,
      own_columns<kWgColumns>(blockIdx.y, wq, bq, wk, bk, wv, bv, n0, n1, n2), k, stride, add,
      {qkv, cache, angles, positions, tables, table_at, page_elements, n0 / kDim, n1 / kDim, kDim});
}
EMULATE(prefill_qkv_wgmma, 256)

#endif
