// Prefill's matrices on the matrix unit: a dense one, and the experts' grouped by expert, whose
// MXFP4 weights are unpacked to bf16 on their way into shared memory, where they are exact.
//
// A block makes 64 rows by 128 columns, 32 of k at a time; what the next 32 need is under way in
// registers while this one is multiplied. Activations are float32 and are cut into TERMS bf16 that
// add up to them: one term rounds to bf16 (the bf16 mode), three are all of float32's 24 bits
// (exact).
//
// What must stay true: k is a multiple of 32; weights and rows of x begin at multiples of 16.
#include "tile.h"
#include "weights_q8.h"

// Two E2M1 at bits 4i and 4i + 4 of q, times scale, as a word of bf16.
__device__ __forceinline__ unsigned unpack_pair(unsigned q, int i, float scale) {
  const float low = from_e2m1(q >> (4 * i)) * scale, high = from_e2m1(q >> (4 * i + 4)) * scale;
  return __float_as_uint(low) >> 16 | (__float_as_uint(high) & 0xffff0000u);
}

__device__ __forceinline__ uint4 unpack8(unsigned q, float scale) {
  return uint4{unpack_pair(q, 0, scale), unpack_pair(q, 2, scale), unpack_pair(q, 4, scale),
               unpack_pair(q, 6, scale)};
}

// Where a thread's share of the weights of a tile comes from: 16 elements of one row at each step.
// Activations are staged times kStage.
template <class W>
struct DenseWeights {
  static constexpr float kStage = sizeof(W) == 1 ? kStageQ8 : 1;
  const W* w;  // the row, or the block of its group; null past the last row
  int row;     // in the group
  uint4 a, b;
  unsigned scale;
  __device__ __forceinline__ DenseWeights(const OwnColumns<W>& own, int column, int k, int first)
      : w(nullptr), row(column % kGroupRows), a{0, 0, 0, 0}, b{0, 0, 0, 0}, scale(0) {
    if (column >= own.n) return;
    if constexpr (sizeof(W) == 1)
      w = q8_block(own.w, column, k, first / kBlock);
    else
      w = own.w + static_cast<int64_t>(column) * k + first;
  }
  __device__ __forceinline__ void fetch(int k0, int half) {
    if (!w) return;
    if constexpr (sizeof(W) == 1) {
      const uint8_t* const block = q8_step(w, k0 / kBlock);
      const uint8_t* const quads = block + kGroupRows * 2 + half * 4 * kQuad + row * 4;
      const auto quad = [=](int i) { return from_gpu_memory<unsigned>(quads + i * kQuad); };
      scale = from_gpu_memory<bf16>(block + row * 2) * 0x10001u;
      a = {quad(0), quad(1), quad(2), quad(3)};
    } else {
      a = from_gpu_memory<uint4>(w + k0 + half * 16);
      b = from_gpu_memory<uint4>(w + k0 + half * 16 + 8);
    }
  }
  __device__ __forceinline__ void put(uint4* to) const {
    if constexpr (sizeof(W) == 1) {  // quads of even and of odd columns, by turns
      const UnpackerQ8 unpacker(scale);
      to[0] = unpacker.unpack((a.x & 0xffffu) | a.y << 16, a.x >> 16 | (a.y & 0xffff0000u));
      to[1] = unpacker.unpack((a.z & 0xffffu) | a.w << 16, a.z >> 16 | (a.w & 0xffff0000u));
    } else {
      to[0] = a;
      to[1] = b;
    }
  }
};

struct MxWeights {
  static constexpr float kStage = 1;
  const uint8_t* blocks;  // the row, or null past the last one
  const uint8_t* scales;
  uint2 q;
  unsigned scale;
  __device__ __forceinline__ void fetch(int k0, int half) {
    q = uint2{0, 0};
    scale = 0;
    if (!blocks) return;
    q = from_gpu_memory<uint2>(blocks + k0 / 2 + half * 8);
    scale = scales[k0 / kBlock];
  }
  __device__ __forceinline__ void put(uint4* to) const {
    const float s = from_e8m0(scale);
    to[0] = unpack8(q.x, s);
    to[1] = unpack8(q.y, s);
  }
};

// The product of 64 rows and 128 weight rows into `result`, rows kResultStride apart; it lies where
// the operands were. `row` is the activations of this thread's row of the tile (threadIdx.x / 4),
// or null; `weights` those of its weight row (threadIdx.x / 2).
template <int TERMS, class Weights>
__device__ __forceinline__ void tile_product(float* result, const float* row, Weights weights,
                                             int k) {
  bf16* const as = reinterpret_cast<bf16*>(result);
  bf16* const bs = as + TERMS * kTileRows * kTileStride;
  const TilePlace place = tile_place();
  const int quarter = threadIdx.x % 4, half = threadIdx.x % 2;
  bf16* const to_a = as + threadIdx.x / 4 * kTileStride + quarter * 8;
  bf16* const to_b = bs + threadIdx.x / 2 * kTileStride + half * 16;
  TileSums sum = {};
  float4 a = {0, 0, 0, 0}, b = {0, 0, 0, 0};
  const auto fetch = [&](int k0) {
    if (row) {
      a = times(from_gpu_memory<float4>(row + k0 + quarter * 8), Weights::kStage);
      b = times(from_gpu_memory<float4>(row + k0 + quarter * 8 + 4), Weights::kStage);
    }
    weights.fetch(k0, half);
  };
  fetch(0);
  for (int k0 = 0; k0 < k; k0 += kTileK) {
    __syncthreads();  // the tile before has been multiplied
#pragma unroll
    for (int t = 0; t < TERMS; t++)
      *reinterpret_cast<uint4*>(to_a + t * kTileRows * kTileStride) = take_term(a, b);
    weights.put(reinterpret_cast<uint4*>(to_b));
    __syncthreads();
    if (k0 + kTileK < k) fetch(k0 + kTileK);
    place.multiply_staged<TERMS>(sum, as, bs);
  }
  place.leave(result, sum);
}

template <int TERMS, class W>
__device__ __forceinline__ void linear_tile(const int* rows, float* y, float* partial, int* arrived,
                                            const float* x, const OwnColumns<W>& own, int k,
                                            int stride, int add) {
  await_grids();
  DYNAMIC_SHARED(float, result);
  const int live = *rows, row0 = blockIdx.x * kTileRows;
  if (row0 >= live) return;  // the whole block
  const int own_row = row0 + threadIdx.x / 4, column = own.first + threadIdx.x / 2;
  const Piece piece = own_piece(k / kTileK);
  const int first = piece.first * kTileK;
  const DenseWeights<W> weights(own, column, k, first);
  tile_product<TERMS>(result,
                      own_row < live ? x + static_cast<int64_t>(own_row) * k + first : nullptr,
                      weights, piece.end * kTileK - first);
  leave_tile<kTileRows, kTileColumns>(y, result, kResultStride, row0, live, own, stride, add,
                                      partial, arrived);
}

// linear for many rows of up to three matrices side by side, n0, n1 and n2 columns of y; those that
// there are not have 0. TERMS ends the name. Blocks along z divide k, with partial and arrived as
// in add_pieces. Tiles of rows are neighbours: they find their weights in the second cache.
// grid (ceil(bucket rows / 64), ceil(n0 / 128) + ceil(n1 / 128) + ceil(n2 / 128), any),
// shared 33792
#define PREFILL_LINEAR(NAME, TERMS, W)                                                             \
  KERNEL(256)                                                                                      \
  prefill_linear_##NAME(const int* rows, float* y, float* partial, int* arrived, const float* x,   \
                        const W* w0, const bf16* bias0, const W* w1, const bf16* bias1,            \
                        const W* w2, const bf16* bias2, int n0, int n1, int n2, int k, int stride, \
                        int add) {                                                                 \
    linear_tile<TERMS>(                                                                            \
        rows, y, partial, arrived, x,                                                              \
        own_columns<kTileColumns>(blockIdx.y, w0, bias0, w1, bias1, w2, bias2, n0, n1, n2), k,     \
        stride, add);                                                                              \
  }                                                                                                \
  EMULATE(prefill_linear_##NAME, 256)
PREFILL_LINEAR(1, 1, bf16)
PREFILL_LINEAR(3, 3, bf16)
PREFILL_LINEAR(q8_1, 1, uint8_t)
PREFILL_LINEAR(q8_3, 3, uint8_t)

// y[slot] = the expert's matrix [n, k] · x[slot / top], with bias; with `limit` the pairs of
// columns go through the clamped SwiGLU and y has n / 2 columns.
template <int TERMS, bool GATED>
__device__ __forceinline__ void expert_tile(float* y, const int* order, const int* groups,
                                            const float* x, const uint8_t* blocks,
                                            const uint8_t* scales, const bf16* bias, int n, int k,
                                            int top, float limit) {
  await_grids();
  DYNAMIC_SHARED(float, result);
  const auto [group, expert, begin, end] = tile_at(groups, blockIdx.y, kTileRows);
  if (end == 0) return;  // the whole block
  const int column0 = blockIdx.x * kTileColumns;
  const int own_place = begin + threadIdx.x / 4, own_column = column0 + threadIdx.x / 2;
  const int64_t own_weight = static_cast<int64_t>(expert) * n + own_column;
  MxWeights weights = {};
  weights.blocks = own_column < n ? blocks + own_weight * (k / 2) : nullptr;
  weights.scales = scales + own_weight * (k / kBlock);
  const float* row =
      own_place < end ? x + static_cast<int64_t>(order[own_place] / top) * k : nullptr;
  tile_product<TERMS>(result, row, weights, k);
  constexpr int kStep = GATED ? 2 : 1, kColumns = kTileColumns / kStep;
  for (int i = threadIdx.x; i < kTileRows * kColumns; i += kTileThreads) {
    const int place = begin + i / kColumns, c = column0 + i % kColumns * kStep;
    if (place >= end || c >= n) continue;
    const float* v = result + i / kColumns * kResultStride + i % kColumns * kStep;
    y[static_cast<int64_t>(order[place]) * (n / kStep) + c / kStep] =
        expert_result<GATED>(v, bias + static_cast<int64_t>(expert) * n + c, limit);
  }
}

// gate_up and down for many rows: n is the width of h or y, TERMS ends the name.
// grid (ceil(rows of a matrix / 128), ceil(bucket slots / 64) + experts), shared 33792
#define PREFILL_EXPERTS(TERMS)                                                                   \
  KERNEL(256)                                                                                    \
  prefill_gate_up_##TERMS(float* h, const int* order, const int* groups, const float* x,         \
                          const uint8_t* blocks, const uint8_t* scales, const bf16* bias, int n, \
                          int k, int top, float limit) {                                         \
    expert_tile<TERMS, true>(h, order, groups, x, blocks, scales, bias, 2 * n, k, top, limit);   \
  }                                                                                              \
  EMULATE(prefill_gate_up_##TERMS, 256)                                                          \
  KERNEL(256)                                                                                    \
  prefill_down_##TERMS(float* y, const int* order, const int* groups, const float* h,            \
                       const uint8_t* blocks, const uint8_t* scales, const bf16* bias, int n,    \
                       int k) {                                                                  \
    expert_tile<TERMS, false>(y, order, groups, h, blocks, scales, bias, n, k, 1, 0);            \
  }                                                                                              \
  EMULATE(prefill_down_##TERMS, 256)
PREFILL_EXPERTS(1)
PREFILL_EXPERTS(3)
