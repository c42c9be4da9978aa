// The experts of steps of up to some hundred rows, as stream_experts.cu has them, but a warp takes
// strips of 16 or 32 rows and all of k: warps meet only where a tile of tokens begins, whose
// activations the block stages, and a processor has 24 of them.
//
// Strips of a tile are neighbours, and a block takes a run of them, all blocks of one length. The
// first weights of the next strip are asked for before the sums of the last one are stored.
//
// What must stay true: as there; a token's sums do not depend on the others, so with the same TERMS
// a row has the same bits in any step.
#include "tokens.h"

// Chunks that a warp has under way, 1 KB each, and blocks of 8 and of 16 columns that a processor
// has: those with 227 KB of shared memory have room for 24 warps.
#if defined(MATRIX_NV)
constexpr int kStripDepth = 2;
#else
constexpr int kStripDepth = kStreamDepth;
#endif
#if defined(GPU_NVIDIA) && __CUDA_ARCH__ >= 900 && __CUDA_ARCH__ < 1200
#define STRIP_BLOCKS 3
#define STRIP_WIDE 2
#else
#define STRIP_BLOCKS 2
#define STRIP_WIDE 1
#endif
// Tiles of 16 rows that a warp has with 32 columns, for which a workstation's card has no room.
#if defined(MATRIX_NV) && !(defined(GPU_NVIDIA) && __CUDA_ARCH__ >= 1200)
constexpr int kStripTall = 2;
#else
constexpr int kStripTall = 1;
#endif

__device__ __forceinline__ unsigned word_of(const uint4& v, int i) {
  return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w;
}

// sum += a chunk of TALL times 16 rows times COLUMNS staged columns, `pitch` pieces apart. `staged`
// is the chunk in the lane's first column, with its share.
template <int COLUMNS, int TALL>
__device__ __forceinline__ void multiply_strip(Sums (&sum)[TALL][(COLUMNS + 15) / 16],
                                               const StreamChunk<TALL>& c, const uint4* staged,
                                               int pitch) {
  constexpr int kTiles = (COLUMNS + 15) / 16, kWide = COLUMNS < 16 ? COLUMNS : 16;
  constexpr int kHalves = kWide == 8 ? 1 : kOperandRows;  // of NVIDIA's columns
  // Words of eight codes, or pieces, that one product takes at least; each is four words of bf16.
  constexpr int kTaken = kShareWords < 4 ? 1 : kShareWords / 4;
#pragma unroll
  for (int from = 0; from < 4; from += kTaken) {
    unsigned a[TALL][kOperandRows][4 * kTaken];
#pragma unroll
    for (int d = 0; d < TALL; d++)
#pragma unroll
      for (int r = 0; r < kOperandRows; r++)
#pragma unroll
        for (int i = 0; i < kTaken; i++)
          Unpacker(c.scale[d * kOperandRows + r])
              .unpack(a[d][r] + 4 * i, word_of(c.q[d * kOperandRows + r], from + i));
#pragma unroll
    for (int t = 0; t < kTiles; t++) {
      unsigned b[kOperandRows][4 * kTaken] = {};
#pragma unroll
      for (int r = 0; r < kHalves; r++)
#pragma unroll
        for (int i = 0; i < kTaken; i++) {
          const uint4 v = staged[(t * 16 + r * kRowsApart) * pitch + (from + i) * kShares];
#pragma unroll
          for (int w = 0; w < 4; w++) b[r][4 * i + w] = word_of(v, w);
        }
#pragma unroll
      for (int w = 0; w < 4 * kTaken; w += kShareWords) {
        unsigned wa[TALL][kOperandRows][kShareWords], wb[kOperandRows][kShareWords];
#pragma unroll
        for (int r = 0; r < kOperandRows; r++)
#pragma unroll
          for (int i = 0; i < kShareWords; i++) {
            wb[r][i] = b[r][w + i];
#pragma unroll
            for (int d = 0; d < TALL; d++) wa[d][r][i] = a[d][r][w + i];
          }
#pragma unroll
        for (int d = 0; d < TALL; d++)
          multiply<kWide>(sum[d][t], fragment_a(wa[d]), fragment_b(wb));
      }
    }
  }
}

// Threads of a block, so that a processor has 24 warps, or 12 of 32 columns, each of which has
// twice the rows: that saves half of the reads of columns.
__device__ __forceinline__ constexpr int strip_threads(int columns) {
  return columns == 8 ? 256 : 384;
}
constexpr int kStripStride = 16 + 1;

// As stream_experts.
template <int COLUMNS, int TERMS, bool GATED>
__device__ __forceinline__ void strip_experts(float* y, const int* order, const int* groups,
                                              const float* x, const uint8_t* blocks,
                                              const uint8_t* scales, const bf16* bias, int n, int k,
                                              int top, float limit) {
  constexpr int kTokens = COLUMNS / TERMS, kTiles = (COLUMNS + 15) / 16;
  constexpr int kThreads = strip_threads(COLUMNS), kWarps = kThreads / WARP;
  constexpr int kTall = COLUMNS == 32 ? kStripTall : 1, kRows = 16 * kTall;
  DYNAMIC_SHARED(uint4, staged);
  SHARED(float, part, kWarps* COLUMNS* kStripStride);
  const int lane = threadIdx.x % WARP, warp = warp_of(threadIdx.x);
  const int nb = k / kBlock, chunks = (nb + kShares - 1) / kShares;
  const int pieces = chunks * kChunkPieces, pitch = pieces + kPitchMore, units = n / kRows;
  const int all = count_tiles(groups, kTokens, lane) * units;
  const int run = all / static_cast<int>(gridDim.x), longer = all % static_cast<int>(gridDim.x);
  const int block = blockIdx.x, begin = block * run + (block < longer ? block : longer);
  int remaining = run + (block < longer);
  if (remaining == 0) return;  // the whole block
  TokenTile tile = tile_at(groups, begin / units, kTokens);
  int unit = begin % units;
  StreamRows<kTall> rows;
  StreamChunk<kTall> ahead[kStripDepth];
  const auto aim = [&](int expert, int unit) {
#pragma unroll
    for (int r = 0; r < kTall * kOperandRows; r++) {
      const int row = unit * kRows + operand_row(lane) + r * kRowsApart;
      const int at = (expert * n + row) * nb + operand_share(lane);  // far below 2^31
      rows.blocks[r] = blocks + static_cast<int64_t>(at) * (kBlock / 2);
      rows.scales[r] = scales + at;
    }
#pragma unroll
    for (int d = 0; d < kStripDepth; d++) rows.ask(ahead[d], d);
    asked();
  };
  const uint4* const column =
      staged + operand_row(lane) % (COLUMNS < 16 ? COLUMNS : 16) * pitch + operand_share(lane);
  float* const own = part + warp * COLUMNS * kStripStride;
  while (remaining > 0) {
    const int end = unit + (remaining < units - unit ? remaining : units - unit);
    const int live = tile.end - tile.begin < kTokens ? tile.end - tile.begin : kTokens;
    int u = unit + warp;
    if (u < end) aim(tile.expert, u);
    stage_tokens<TERMS, kWarps>(staged, x, order + tile.begin, live, kTokens, top, k, pieces, lane,
                                warp);
    __syncthreads();
    while (u < end) {
      Sums sum[kTall][kTiles];
#pragma unroll
      for (int d = 0; d < kTall; d++)
#pragma unroll
        for (int t = 0; t < kTiles; t++)
#pragma unroll
          for (int i = 0; i < kFragmentSums; i++) sum[d][t].v[i] = 0;
      const uint4* at = column;
#pragma unroll 1
      for (int c = 0; c < chunks; c += kStripDepth) {
#pragma unroll
        for (int d = 0; d < kStripDepth; d++) {
          if (c + d >= chunks) break;
          multiply_strip<COLUMNS, kTall>(sum, ahead[d], at + d * kChunkPieces, pitch);
          if (c + d + kStripDepth < chunks) rows.ask(ahead[d], d + kStripDepth);
#if defined(GPU_AMD)  // NVIDIA's assembler leaves loads where they are
          asked();
#endif
        }
        rows.advance(kStripDepth);
        at += kStripDepth * kChunkPieces;
      }
      const int row0 = u * kRows;
      u += kWarps;
      if (u < end) aim(tile.expert, u);
#pragma unroll
      for (int d = 0; d < kTall; d++) {
        __syncwarp();  // what lay there has been read
#pragma unroll
        for (int t = 0; t < kTiles; t++)
#pragma unroll
          for (int i = 0; i < kFragmentSums; i++) {
            const int column = t * 16 + sum_column(lane, i);
            if (column < COLUMNS) own[column * kStripStride + sum_row(lane, i)] = sum[d][t].v[i];
          }
        __syncwarp();
        constexpr int kStep = GATED ? 2 : 1, kResults = 16 / kStep;
        for (int i = lane; i < live * kResults; i += WARP) {
          const int token = i / kResults, at = i % kResults * kStep, row = row0 + d * 16 + at;
          float v[kStep] = {};
#pragma unroll
          for (int t = 0; t < TERMS; t++)
#pragma unroll
            for (int g = 0; g < kStep; g++)
              v[g] += own[(t * kTokens + token) * kStripStride + at + g];
          const bf16* const add = bias + static_cast<int64_t>(tile.expert) * n + row;
#pragma unroll
          for (int g = 0; g < kStep; g++) v[g] = fmaf(v[g], kStreamUnscale, from_bf16(add[g]));
          float* const to =
              y + static_cast<int64_t>(order[tile.begin + token]) * (n / kStep) + row / kStep;
          *to = GATED ? clamped_swiglu(v[0], v[kStep - 1], limit) : v[0];
        }
      }
    }
    remaining -= end - unit;
    if (remaining == 0) break;
    unit = 0;
    next_tile(groups, tile, kTokens);
    __syncthreads();  // all warps have multiplied the tile before
  }
}

// gate_up of float32; the name ends in the columns of a tile, and in 2 with two terms of half as
// many tokens. n is the width of h. Behind blocks and scales 512 bytes can be read.
// grid (any), shared 16 * columns * (16 * ceil(k / 128) + 4)
KERNEL(256, STRIP_BLOCKS)
strip_gate_up_8(float* h, const int* order, const int* groups, const float* x,
                const uint8_t* blocks, const uint8_t* scales, const bf16* bias, int n, int k,
                int top, float limit) {
  strip_experts<8, 1, true>(h, order, groups, x, blocks, scales, bias, 2 * n, k, top, limit);
}
EMULATE(strip_gate_up_8, 256)

KERNEL(384, STRIP_WIDE)
strip_gate_up_16(float* h, const int* order, const int* groups, const float* x,
                 const uint8_t* blocks, const uint8_t* scales, const bf16* bias, int n, int k,
                 int top, float limit) {
  strip_experts<16, 1, true>(h, order, groups, x, blocks, scales, bias, 2 * n, k, top, limit);
}
EMULATE(strip_gate_up_16, 384)

KERNEL(384, 1)
strip_gate_up_32(float* h, const int* order, const int* groups, const float* x,
                 const uint8_t* blocks, const uint8_t* scales, const bf16* bias, int n, int k,
                 int top, float limit) {
  strip_experts<32, 1, true>(h, order, groups, x, blocks, scales, bias, 2 * n, k, top, limit);
}
EMULATE(strip_gate_up_32, 384)

KERNEL(256, STRIP_BLOCKS)
strip_gate_up_8_2(float* h, const int* order, const int* groups, const float* x,
                  const uint8_t* blocks, const uint8_t* scales, const bf16* bias, int n, int k,
                  int top, float limit) {
  strip_experts<8, 2, true>(h, order, groups, x, blocks, scales, bias, 2 * n, k, top, limit);
}
EMULATE(strip_gate_up_8_2, 256)

// down of float32, likewise.
// grid (any), shared as above
KERNEL(256, STRIP_BLOCKS)
strip_down_8(float* y, const int* order, const int* groups, const float* h, const uint8_t* blocks,
             const uint8_t* scales, const bf16* bias, int n, int k) {
  strip_experts<8, 1, false>(y, order, groups, h, blocks, scales, bias, n, k, 1, 0);
}
EMULATE(strip_down_8, 256)

KERNEL(384, STRIP_WIDE)
strip_down_16(float* y, const int* order, const int* groups, const float* h, const uint8_t* blocks,
              const uint8_t* scales, const bf16* bias, int n, int k) {
  strip_experts<16, 1, false>(y, order, groups, h, blocks, scales, bias, n, k, 1, 0);
}
EMULATE(strip_down_16, 384)

KERNEL(384, 1)
strip_down_32(float* y, const int* order, const int* groups, const float* h, const uint8_t* blocks,
              const uint8_t* scales, const bf16* bias, int n, int k) {
  strip_experts<32, 1, false>(y, order, groups, h, blocks, scales, bias, n, k, 1, 0);
}
EMULATE(strip_down_32, 384)

KERNEL(256, STRIP_BLOCKS)
strip_down_8_2(float* y, const int* order, const int* groups, const float* h, const uint8_t* blocks,
               const uint8_t* scales, const bf16* bias, int n, int k) {
  strip_experts<8, 2, false>(y, order, groups, h, blocks, scales, bias, n, k, 1, 0);
}
EMULATE(strip_down_8_2, 256)
