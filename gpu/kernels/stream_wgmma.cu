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

// Stages `live` rows of x, row order[i] / top the i-th, rounded: a warp takes eight by a share of
// k, of which a lane has eight of each lane's weights.
template <int N>
__device__ __forceinline__ void stage_wide(bf16* staged, const float* x, const int* order, int live,
                                           int top, int k) {
  const int thread = thread_again(), lane = thread % WARP, words = lane / 8;
  const int steps = (k + kWgStep - 1) / kWgStep, eights = (live + 7) / 8;
#pragma unroll 1
  for (int i = thread / WARP; i < eights * ((steps + 1) / 2); i += kWideThreads / WARP) {
    const int share = i / eights, token = i % eights * 8 + lane % 8;
    const bool whole = 2 * share + 1 < steps;
    if (token >= live || (!whole && words > 1)) continue;
    const int apart = whole ? 32 : 16, first = share * kWideShare + words * 8;
    const float* const from = x + static_cast<int64_t>(order[token] / top) * k + first;
    float4 v[4][2];
#pragma unroll
    for (int s = 0; s < 4; s++)
#pragma unroll
      for (int u = 0; u < 2; u++)
        v[s][u] = first + s * apart < k ? reinterpret_cast<const float4*>(from + s * apart)[u]
                                        : float4{0, 0, 0, 0};
    unsigned word[4][4];  // of a piece, of a lane of the operand
#pragma unroll
    for (int s = 0; s < 4; s++) {
      word[0][s] = to_bf16x2(v[s][0].x, v[s][1].x);
      word[1][s] = to_bf16x2(v[s][0].y, v[s][1].y);
      word[2][s] = to_bf16x2(v[s][0].z, v[s][1].z);
      word[3][s] = to_bf16x2(v[s][0].w, v[s][1].w);
    }
    bf16* const step = staged + (2 * share + words / 2) * (N * kWgStep);
#pragma unroll
    for (int p = 0; p < 4; p++)
      *reinterpret_cast<uint4*>(step + operand_at(token, (words % 2 * 4 + p) * 8)) =
          uint4{word[p][0], word[p][1], word[p][2], word[p][3]};
  }
}

template <int N, bool GATED>
__device__ __forceinline__ void wide_experts(const WgExperts<float, float>& e) {
  await_grids();
  DYNAMIC_SHARED(bf16, dynamic);
  bf16* const staged = operands_in(dynamic);
  SHARED(TokenTile, tiles, 2);             // this one and the next
  constexpr int kShare = N * kWgStep / 4;  // between the operands of shares, as descriptors have it
  constexpr int kNext = GATED ? 1 : 8;     // from a lane's row to its other one
  const int steps = (e.k + kWgStep - 1) / kWgStep, whole = steps / 2;
  const int units = (e.n + kWideRows - 1) / kWideRows;
  const int all = same_in_warp(count_tiles(e.groups, N, threadIdx.x % WARP)) * units;
  const int grid = gridDim.x, block = blockIdx.x, longer = all % grid;
  const int begin = all / grid * block + (block < longer ? block : longer);
  int remaining = all / grid + (block < longer);
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
      const int row = own + r * kNext < e.n ? own + r * kNext : e.n - 1;
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
      stage_wide<N>(staged, e.x, e.order + tiles[0].begin, tiles[0].live(N), e.top, e.k);
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
    const int live = tiles[0].live(N);
    const int* const order = e.order + tiles[0].begin;
    const bf16* const add = e.bias + static_cast<int64_t>(tiles[0].expert) * e.n;
    fresh = ++unit == units;
    if (fresh) unit = 0;
    if (remaining > 1) aim(tiles[fresh].expert);
    if (row >= e.n) continue;
    const bool both = row + kNext < e.n;
    const float bias0 = from_bf16(add[row]), bias1 = both ? from_bf16(add[row + kNext]) : 0;
#pragma unroll
    for (int i = 0; i < N / 2; i += i % 2 ? 3 : 1) {  // row 0; row 1 has its sums two behind
      const int token = wg_column(thread, i);
      if (token >= live) continue;
      float* const to = e.y + static_cast<int64_t>(order[token]) * (GATED ? e.n / 2 : e.n);
      const float v0 = fmaf(sum[i], kStreamUnscale, bias0);
      const float v1 = fmaf(sum[i + 2], kStreamUnscale, bias1);
      if (GATED) {
        to[row / 2] = clamped_swiglu(v0, v1, e.limit);
      } else {
        to[row] = v0;
        if (both) to[row + kNext] = v1;
      }
    }
  }
}

// gate_up of float32, rounded; the name ends in the most tokens of a tile. n is the width of h.
// grid (any), shared 1024 + 128 * columns * ceil(k / 64)
#define STREAM_GATE_UP_WGMMA(COLUMNS)                                                            \
  KERNEL(512)                                                                                    \
  stream_gate_up_wgmma_##COLUMNS(float* h, const int* order, const int* groups, const float* x,  \
                                 const uint8_t* blocks, const uint8_t* scales, const bf16* bias, \
                                 int n, int k, int top, float limit) {                           \
    wide_experts<COLUMNS, true>(                                                                 \
        {h, order, groups, x, blocks, scales, bias, 2 * n, k, top, limit});                      \
  }                                                                                              \
  EMULATE(stream_gate_up_wgmma_##COLUMNS, 512)
STREAM_GATE_UP_WGMMA(16)
STREAM_GATE_UP_WGMMA(24)
STREAM_GATE_UP_WGMMA(32)

// down of float32, likewise.
// grid (any), shared as above
#define STREAM_DOWN_WGMMA(COLUMNS)                                                            \
  KERNEL(512)                                                                                 \
  stream_down_wgmma_##COLUMNS(float* y, const int* order, const int* groups, const float* h,  \
                              const uint8_t* blocks, const uint8_t* scales, const bf16* bias, \
                              int n, int k) {                                                 \
    wide_experts<COLUMNS, false>({y, order, groups, h, blocks, scales, bias, n, k, 1, 0});    \
  }                                                                                           \
  EMULATE(stream_down_wgmma_##COLUMNS, 512)
STREAM_DOWN_WGMMA(16)
STREAM_DOWN_WGMMA(24)
STREAM_DOWN_WGMMA(32)

#endif
