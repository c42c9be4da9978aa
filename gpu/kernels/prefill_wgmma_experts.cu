// Prefill's experts on the matrix unit of sm_90a, with weights as its first operand. They go from
// memory through registers, where they are unpacked to bf16; an expert's tokens are the columns of
// the second operand, in shared memory.
//
// A block has kWgUp warpgroups below each other, 64 rows of weights each, by up to 128 tokens. A
// step is 64 of k: while the unit multiplies the last one, a warpgroup unpacks this one's weights,
// which were asked for a step or two before, and the copies' own hardware fetches the tokens of
// later ones. An expert's tokens are divided evenly, and a tile has the least columns that hold
// them.
//
// What must stay true: k is a multiple of 32; weights begin at multiples of 16, and 512 bytes
// behind them are readable; rows of x are in shares (round_rows), with zeros from k on. Columns
// without a token hold another's. Weights are left times 2^-32, and their scales are stream.h's.
#include "expert.h"
#include "grid.h"
#include "stream.h"

#if defined(MATRIX_WGMMA)

constexpr int kWgUp = 2, kWgUpThreads = kWgUp * 128;
constexpr int kWgTokens = 128, kWgTokenStages = 4;

// A tile of an expert's rows by its tokens, at most N.
template <int N, bool GATED, class Y>
__device__ __forceinline__ void direct_tile(const WgExperts<Y>& e, bf16* stages,
                                            const TokenTile* tile) {
  constexpr int kStages = kWgTokenStages, kStage = N * kWgStep, kApart = kWgUpThreads / 8;
  const int n = e.n, k = e.k, steps = (k + kWgStep - 1) / kWgStep;
  const auto own_row = [](int thread) {
    return static_cast<int>(blockIdx.x) * (kWgUp * kWgRows) + thread / WARP * 16 +
           thread % WARP / 4 * (GATED ? 2 : 1);
  };
  unsigned first[2];  // blocks of a lane's rows; in bytes far below 2^32
#pragma unroll
  for (int r = 0; r < 2; r++) {
    const int row = own_row(threadIdx.x) + r * kWgNext<GATED>;
    first[r] = (tile->expert * n + (row < n ? row : n - 1)) * (k / kBlock) + threadIdx.x % 4;
  }
  StreamChunk share[2];
  const auto fetch = [&](StreamChunk& w, int step) {  // of two steps, or a last single one
    const unsigned lane = threadIdx.x % 4;
    const bool whole = step + 1 != steps;
    const unsigned back = whole ? 0 : lane * 8, scales_back = whole ? 0 : (lane + 1) / 2;
#pragma unroll
    for (int r = 0; r < 2; r++) {
      const unsigned at = first[r] + step * (kWgStep / kBlock);
      const uint8_t* const b = e.blocks + (at * (kBlock / 2) - back);
      if (whole) {
        w.q[r] = from_gpu_memory<uint4>(b);
      } else {
        const uint2 q = from_gpu_memory<uint2>(b);
        w.q[r] = uint4{q.x, q.y, 0, 0};
      }
      w.scale[r] = from_gpu_memory<uint8_t>(e.scales + (at - scales_back));
    }
  };
  fetch(share[0], 0);
  // A thread copies a piece of every kApart-th of the tokens' rows, which begin far below 2^31.
  const bf16* const x = e.x + threadIdx.x % 8 * 8;
  int row[N / kApart];
#pragma unroll
  for (int i = 0; i < N / kApart; i++) {
    const int place = tile->begin + threadIdx.x / 8 + i * kApart, last = tile->end - 1;
    row[i] = e.order[place < last ? place : last] / e.top * (steps * kWgStep);
  }
  Copies copies = {};
  const auto copy = [&](int stage, int step) {
    if (step < steps)
#pragma unroll
      for (int i = 0; i < N / kApart; i++)
        copy_ahead(
            copies,
            stages + stage * kStage + operand_at(threadIdx.x / 8 + i * kApart, threadIdx.x % 8 * 8),
            x + (row[i] + step * kWgStep), true);
    commit_copies(copies);
  };
#pragma unroll
  for (int i = 0; i < kStages - 2; i++) copy(i, i);
  float sum[N / 2] = {};
  unsigned a[2][2][4] = {};
  Pending pending = {};
  const unsigned operands = static_cast<unsigned>(descriptor(stages));
#pragma unroll 1
  for (int turn = 0; turn < steps; turn += kStages) {
#pragma unroll
    for (int u = 0; u < kStages; u++) {  // of step and stage
      const int step = turn + u;
      if (step >= steps) break;
      const StreamChunk& w = share[u / 2];
      unpack_wg(a[0], w, u % 2 * 2);
      arrive(copies);  // this step's tokens; the next one's may be under way
      publish();
      __syncthreads();  // this stage is filled, and all have multiplied the one before the last
      copy(u ^ 2, step + kStages - 2);
      if (u % 2 == 0 && step + 2 < steps) fetch(share[1 - u / 2], step + 2);
      const unsigned b = operands + u * (kStage / 8);
      multiply_wg<N>(pending, sum, a[0], a[1], b);
      unpack_wg(a[1], w, u % 2 * 2 + 1);
      multiply_wg<N>(pending, sum, a[1], a[0], b + 4);
    }
  }
  wait(pending, sum);
  arrive<true>(copies);
  const int thread = thread_again();
  leave_wg<N, GATED>(e, sum, thread, own_row(thread), *tile);
}

template <bool GATED, class Y>
__device__ __forceinline__ void direct_experts(const WgExperts<Y>& e) {
  await_grids();
  DYNAMIC_SHARED(bf16, dynamic);
  bf16* const stages = operands_in(dynamic);
  // In shared memory: it is read again after the loop, which has no registers for it.
  SHARED(TokenTile, tile, 1);
  const TokenTile t = tile_at<true>(e.groups, blockIdx.y, kWgTokens);
  if (t.end == 0) return;  // the whole block
  if (threadIdx.x == 0) *tile = t;
  __syncthreads();
  const int live = t.end - t.begin;
  if (live > 96)
    direct_tile<128, GATED>(e, stages, tile);
  else if (live > 64)
    direct_tile<96, GATED>(e, stages, tile);
  else if (live > 32)
    direct_tile<64, GATED>(e, stages, tile);
  else
    direct_tile<32, GATED>(e, stages, tile);
}

// gate_up for many rows: n is the width of h, bf16 [slots, n] in shares; x bf16 [rows, k] in shares
// (round_rows). grid (ceil(2n / 128), ceil(bucket slots / 128) + experts), shared 66560
KERNEL(256, 2)
prefill_gate_up_wgmma(bf16* h, const int* order, const int* groups, const bf16* x,
                      const uint8_t* blocks, const uint8_t* scales, const bf16* bias, int n, int k,
                      int top, float limit) {
  direct_experts<true, bf16>({h, order, groups, x, blocks, scales, bias, 2 * n, k, top, limit});
}
EMULATE(prefill_gate_up_wgmma, 256)

// down for many rows: h bf16 [slots, k] in shares.
// grid (ceil(n / 128), ceil(bucket slots / 128) + experts), shared 66560
KERNEL(256, 2)
prefill_down_wgmma(float* y, const int* order, const int* groups, const bf16* h,
                   const uint8_t* blocks, const uint8_t* scales, const bf16* bias, int n, int k) {
  direct_experts<false, float>({y, order, groups, h, blocks, scales, bias, n, k, 1, 0});
}
EMULATE(prefill_down_wgmma, 256)

#endif
