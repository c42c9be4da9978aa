// The experts of steps of up to some hundred rows: weights are the long side of the product, the
// tokens of an expert its 8, 16 or 32 columns, so each weight is unpacked once for all of them.
//
// A unit of work is 32 rows of one expert's matrix by one tile of its tokens. Units of a tile are
// neighbours, and a block takes a run of them, all blocks of one length: it stages a tile's
// activations once. Its warps are two tall; the others divide k between them, and their sums meet
// in shared memory. A unit's last round asks for the next one's first weights.
//
// Activations come rounded to bf16 (round_rows), and gate_up leaves h as down reads it. With two
// TERMS an activation is two bf16 in two columns, and keeps 16 bits.
//
// What must stay true: n and k are multiples of 32; a token's sums do not depend on the others, and
// k is cut by the target alone, so with the same TERMS a row has the same bits in any step. Columns
// without a token hold anything.
#include "tokens.h"

constexpr int kStreamRows = 32, kStreamPieces = kDecodeWarps / 2;  // of k
constexpr int kSumStride = kStreamRows + 1;

// y[slot] = the expert's matrix [n, k] · x[slot / top], with bias; GATED as expert_tile.
template <int COLUMNS, int TERMS, bool GATED, class Y>
__device__ __forceinline__ void stream_experts(Y* y, const int* order, const int* groups,
                                               const bf16* x, const uint8_t* blocks,
                                               const uint8_t* scales, const bf16* bias, int n,
                                               int k, int top, float limit) {
  await_grids();
  constexpr int kTokens = COLUMNS / TERMS, kTiles = (COLUMNS + 15) / 16;
  DYNAMIC_SHARED(uint4, staged);
  SHARED(float, part, 2 * kStreamPieces * COLUMNS * kSumStride);
  const int lane = threadIdx.x % WARP, warp = warp_of(threadIdx.x);
  // Unsigned, since signed division costs instructions in every unit.
  const int down = warp / unsigned{kStreamPieces} * 16, piece = warp % unsigned{kStreamPieces};
  const int nb = k / unsigned{kBlock}, chunks = (nb + kShares - 1) / unsigned{kShares};
  const int pieces = chunks * kChunkPieces, pitch = pieces + kPitchMore;
  const int share = (chunks + kStreamPieces - 1) / unsigned{kStreamPieces}, first = piece * share;
  const int last = first + share < chunks ? first + share : chunks;
  const int units = n / unsigned{kStreamRows};
  const unsigned all = count_tiles(groups, kTokens, lane) * units;  // times blocks far below 2^31
  const int begin = all * blockIdx.x / gridDim.x;
  int remaining = all * (blockIdx.x + 1) / gridDim.x - begin;
  if (remaining == 0) return;  // the whole block
  TokenTile tile = tile_at(groups, begin / units, kTokens);
  int unit = begin % units;
  StreamRows rows, next;
  StreamChunk ahead[kStreamDepth];
  // The lane's block a round before its first in a unit's; all are far below 2^31.
  const int own_block =
      (down + operand_row(lane)) * nb + (first - kStreamDepth) * kShares + operand_share(lane);
  const auto aim = [&](StreamRows& to) {
#pragma unroll
    for (int r = 0; r < kOperandRows; r++) {
      const int at = (tile.expert * n + unit * kStreamRows + r * kRowsApart) * nb + own_block;
      to.blocks[r] = blocks + static_cast<int64_t>(at) * (kBlock / 2);
      to.scales[r] = scales + at;
    }
  };
  aim(rows);
#pragma unroll
  for (int d = 0; d < kStreamDepth; d++) rows.ask(ahead[d], d + kStreamDepth);
  asked();
  rows.advance(kStreamDepth);
  const uint4* const column =
      staged + operand_row(lane) % (COLUMNS < 16 ? COLUMNS : 16) * pitch + operand_share(lane);
  bool fresh = true;
  for (int turn = 0; remaining > 0; remaining--, turn ^= 1) {
    const TokenTile own = tile;
    const int live = own.live(kTokens), row0 = unit * kStreamRows;
    if (fresh) {  // all warps have multiplied the tile before: they met behind it
      stage_tokens<TERMS, kDecodeWarps>(staged, x, order + own.begin, live, kTokens, top, k, pieces,
                                        lane, warp);
      __syncthreads();
    }
    fresh = ++unit == units;
    if (fresh) unit = 0;
    if (fresh && remaining > 1) next_tile(groups, tile, kTokens);
    aim(next);
    Sums sum[kTiles] = {};
    const uint4* from = column + first * kChunkPieces;
#pragma unroll 1
    for (int c = first; c < last; c += kStreamDepth) {
      const bool ends = c + kStreamDepth >= last, asks = !ends || remaining > 1;
      if (ends) rows = next;
#pragma unroll
      for (int d = 0; d < kStreamDepth; d++) {
        if (c + d < last) multiply_chunk<COLUMNS>(sum, ahead[d], from + d * kChunkPieces, pitch);
        if (asks) rows.ask(ahead[d], d + kStreamDepth);
#if defined(GPU_AMD)  // NVIDIA's assembler leaves loads where they are
        asked();
#endif
      }
      rows.advance(kStreamDepth);
      from += kStreamDepth * kChunkPieces;
    }
    constexpr int kStep = GATED ? 2 : 1, kResults = kStreamRows / kStep;
    const int result = threadIdx.x % kResults, at = result * kStep;
    bf16 add[kStep];  // asked for before warps wait for each other
#pragma unroll
    for (int g = 0; g < kStep; g++) add[g] = bias[own.expert * n + row0 + at + g];
    const int left = row0 / kStep + (GATED ? result / 8 * 8 + result % 4 * 2 + result % 8 / 4 : at);
    const int wide = GATED ? TERMS * (n / 2) : n;
    float* const sums = part + turn * kStreamPieces * COLUMNS * kSumStride;
    float* const to =
        sums + (piece * COLUMNS + sum_column(lane, 0)) * kSumStride + down + sum_row(lane, 0);
#pragma unroll
    for (int t = 0; t < kTiles; t++)
#pragma unroll
      for (int i = 0; i < kFragmentSums; i++) {
        if (t * 16 + sum_column(lane, i) < COLUMNS)
          to[(t * 16 + sum_column(0, i)) * kSumStride + sum_row(0, i)] = sum[t].v[i];
      }
    __syncthreads();  // once a unit: the next one's sums go to the other half
    for (int token = threadIdx.x / kResults; token < live; token += kDecodeThreads / kResults) {
      float v[kStep] = {};
#pragma unroll
      for (int p = 0; p < kStreamPieces; p++)
#pragma unroll
        for (int t = 0; t < TERMS; t++)
#pragma unroll
          for (int g = 0; g < kStep; g++)
            v[g] += sums[(p * COLUMNS + t * kTokens + token) * kSumStride + at + g];
#pragma unroll
      for (int g = 0; g < kStep; g++) v[g] *= kStreamUnscale;
      float sum = expert_result<GATED, true>(v, add, limit);
      Y* const row = y + order[own.begin + token] * wide + left;
      if constexpr (GATED) {
#pragma unroll
        for (int t = 0; t < TERMS; t++) {
          const unsigned term = to_bf16x2(sum, 0);
          row[t * (n / 2)] = static_cast<Y>(term);
          sum -= low_bf16(term);
        }
      } else {
        *row = sum;
      }
    }
  }
}

// gate_up, and down of the h that it leaves, of rounded rows; names end in the columns of a tile,
// and in 2 with two terms of half as many tokens. n is the width of h, bf16 [slots, terms, n] like
// x, or of y. Behind blocks and scales 512 bytes can be read.
// grid (any), shared 16 * columns * (16 * ceil(k / 128) + 4)
#define STREAM(NAME, COLUMNS, TERMS, BLOCKS)                                                       \
  KERNEL(256, BLOCKS)                                                                              \
  stream_gate_up_##NAME(bf16* h, const int* order, const int* groups, const bf16* x,               \
                        const uint8_t* blocks, const uint8_t* scales, const bf16* bias, int n,     \
                        int k, int top, float limit) {                                             \
    stream_experts<COLUMNS, TERMS, true>(h, order, groups, x, blocks, scales, bias, 2 * n, k, top, \
                                         limit);                                                   \
  }                                                                                                \
  EMULATE(stream_gate_up_##NAME, 256)                                                              \
  KERNEL(256, BLOCKS)                                                                              \
  stream_down_##NAME(float* y, const int* order, const int* groups, const bf16* h,                 \
                     const uint8_t* blocks, const uint8_t* scales, const bf16* bias, int n,        \
                     int k) {                                                                      \
    stream_experts<COLUMNS, TERMS, false>(y, order, groups, h, blocks, scales, bias, n, k, 1, 0);  \
  }                                                                                                \
  EMULATE(stream_down_##NAME, 256)
STREAM(8, 8, 1, 2)
STREAM(16, 16, 1, 2)
STREAM(32, 32, 1, 1)
STREAM(8_2, 8, 2, 2)
