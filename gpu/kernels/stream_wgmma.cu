// The experts of steps of some ten to 256 rows on sm_90a: streams (stream_experts.cu) whose weights
// are the first operand of a warpgroup's products, out of registers.
//
// A tile of an expert's tokens is staged once, all of k, as the unit's second operand. A unit of
// work is 64 rows a warpgroup by all of k, so no warp waits for another in the loop over weights.
// Units of a tile are neighbours, and a block takes a run of them, all blocks of one length. The
// first weights of the next unit are asked for before the sums of the last one are stored.
//
// What must stay true: n and k are multiples of 32; a token's sums do not depend on the others, and
// are added up in one order of k. Columns without a token hold anything. Loads reach up to 512
// bytes past blocks and scales, which must be readable. Loads under way need room in the first
// cache: with more than 32 columns shared memory leaves too little.
#include "grid.h"
#include "tokens.h"

#if defined(MATRIX_WGMMA)

constexpr int kWideWarpgroups = 4, kWideThreads = kWideWarpgroups * 128;
constexpr int kWideRows = kWideWarpgroups * kWgRows;
constexpr int kWideShare = kShares * kBlock;  // of k: a lane has a block of each of its two rows
constexpr int kWideDepth = 3;                 // shares that a warp has under way

// Half a share, of which a lane has half a block of each row.
__device__ __forceinline__ void ask_half(StreamChunk& c, const StreamRows& rows, int after) {
  const int lane = threadIdx.x % 4;
#pragma unroll
  for (int r = 0; r < 2; r++) {
    const uint2 q = from_gpu_memory<uint2>(rows.blocks[r] + after * (kWideShare / 2) - lane * 8);
    c.q[r] = uint4{q.x, q.y, 0, 0};
    c.scale[r] = from_gpu_memory<uint8_t>(rows.scales[r] + after * kShares - (lane + 1) / 2);
  }
}

// The products of half a share, whose codes are in words I and I + 1 of each row.
template <int N, int I>
__device__ __forceinline__ void multiply_half(Pending& pending, float (&sum)[N / 2],
                                              unsigned (&a)[2][2][4], const StreamChunk& w,
                                              unsigned b) {
  unpack_wg(a[0], w, I);
  multiply_wg<N>(pending, sum, a[0], a[1], b);
  unpack_wg(a[1], w, I + 1);
  multiply_wg<N>(pending, sum, a[1], a[0], b + 4);
}

// Copies `live` rows of x, row order[i] / top the i-th, as the unit's second operand.
template <int N>
__device__ __forceinline__ void stage_wide(bf16* staged, const bf16* x, const int* order, int live,
                                           int top, int steps) {
  constexpr int kRows = N > 16 ? 32 : 16, kApart = kWideThreads / 8 / kRows;
  const int thread = thread_again(), row = thread / 8 % kRows, piece = thread % 8 * 8;
  Copies copies = {};
  if (row < live) {
    const bf16* const from = x + static_cast<int64_t>(order[row] / top) * (steps * kWgStep) + piece;
    for (int s = thread / 8 / kRows; s < steps; s += kApart)
      copy_ahead(copies, staged + s * (N * kWgStep) + operand_at(row, piece), from + s * kWgStep,
                 true);
  }
  commit_copies(copies);
  arrive<true>(copies);
}

template <int N, bool GATED, class Y>
__device__ __forceinline__ void wide_experts(const WgExperts<Y>& e) {
  await_grids();
  DYNAMIC_SHARED(bf16, dynamic);
  bf16* const staged = operands_in(dynamic);
  SHARED(TokenTile, tiles, 2);             // this one and the next
  constexpr int kShare = N * kWgStep / 4;  // between the operands of shares, as descriptors have it
  const int steps = (e.k + kWgStep - 1) / kWgStep, whole = steps / 2;
  const int units = (e.n + kWideRows - 1) / kWideRows;
  const unsigned all = same_in_warp(count_tiles(e.groups, N, threadIdx.x % WARP)) * units;
  const int begin = all * blockIdx.x / gridDim.x;  // far below 2^31
  int remaining = all * (blockIdx.x + 1) / gridDim.x - begin;
  if (remaining == 0) return;  // the whole block
  int unit = begin % units;
  if (threadIdx.x == 0) tiles[1] = tile_at(e.groups, begin / units, N);
  __syncthreads();
  const auto own_row = [&](int thread) {
    return unit * kWideRows + thread / WARP * 16 + thread % WARP / 4 * (GATED ? 2 : 1);
  };
  StreamRows rows;
  StreamChunk ahead[kWideDepth], half;
  const auto aim = [&](int expert) {
    const int thread = thread_again(), own = own_row(thread);
#pragma unroll
    for (int r = 0; r < 2; r++) {
      const int row = own + r * kWgNext<GATED> < e.n ? own + r * kWgNext<GATED> : e.n - 1;
      const int at = (expert * e.n + row) * (e.k / kBlock) + thread % 4;  // far below 2^31
      rows.blocks[r] = e.blocks + static_cast<int64_t>(at) * (kBlock / 2);
      rows.scales[r] = e.scales + at;
    }
    ask_half(half, rows, whole);  // of rows without one it is not used
#pragma unroll
    for (int d = 0; d < kWideDepth; d++) rows.ask(ahead[d], d);
  };
  aim(tiles[1].expert);
  const unsigned operands = static_cast<unsigned>(descriptor(staged));
  bool fresh = true;
#pragma unroll 1
  for (; remaining > 0; remaining--) {
    if (fresh) {
      __syncthreads();  // all have multiplied the tile before
      if (threadIdx.x == 0) {
        tiles[0] = tiles[1];
        if (remaining > units - unit) next_tile(e.groups, tiles[1], N);
      }
      __syncthreads();
      stage_wide<N>(staged, e.x, e.order + tiles[0].begin, tiles[0].live(N), e.top, steps);
      publish();
      __syncthreads();
    }
    float sum[N / 2] = {};
    unsigned a[2][2][4] = {};
    Pending pending = {};
    if (steps % 2) multiply_half<N, 0>(pending, sum, a, half, operands + whole * kShare);
    unsigned b = operands;
#pragma unroll 1
    for (int c = 0; c < whole; c += kWideDepth) {
#pragma unroll
      for (int d = 0; d < kWideDepth; d++) {
        if (c + d >= whole) break;
        multiply_half<N, 0>(pending, sum, a, ahead[d], b);
        multiply_half<N, 2>(pending, sum, a, ahead[d], b + kShare / 2);
        if (c + d + kWideDepth < whole) rows.ask(ahead[d], d + kWideDepth);
        b += kShare;
      }
      rows.advance(kWideDepth);
    }
    wait(pending, sum);
    const int thread = thread_again(), row = own_row(thread);
    const TokenTile tile = tiles[0];
    fresh = ++unit == units;
    if (fresh) unit = 0;
    if (remaining > 1) aim(tiles[fresh].expert);
    leave_wg<N, GATED>(e, sum, thread, row, tile);
  }
}

// gate_up and down; names end in the most tokens of a tile. n is the width of h, bf16 in shares
// like x, or of y.
// grid (any), shared 1024 + 128 * columns * ceil(k / 64)
#define STREAM_WGMMA(COLUMNS)                                                                     \
  KERNEL(512)                                                                                     \
  stream_gate_up_wgmma_##COLUMNS(bf16* h, const int* order, const int* groups, const bf16* x,     \
                                 const uint8_t* blocks, const uint8_t* scales, const bf16* bias,  \
                                 int n, int k, int top, float limit) {                            \
    wide_experts<COLUMNS, true, bf16>(                                                            \
        {h, order, groups, x, blocks, scales, bias, 2 * n, k, top, limit});                       \
  }                                                                                               \
  EMULATE(stream_gate_up_wgmma_##COLUMNS, 512)                                                    \
  KERNEL(512)                                                                                     \
  stream_down_wgmma_##COLUMNS(float* y, const int* order, const int* groups, const bf16* h,       \
                              const uint8_t* blocks, const uint8_t* scales, const bf16* bias,     \
                              int n, int k) {                                                     \
    wide_experts<COLUMNS, false, float>({y, order, groups, h, blocks, scales, bias, n, k, 1, 0}); \
  }                                                                                               \
  EMULATE(stream_down_wgmma_##COLUMNS, 512)
STREAM_WGMMA(16)
STREAM_WGMMA(24)
STREAM_WGMMA(32)

#endif
