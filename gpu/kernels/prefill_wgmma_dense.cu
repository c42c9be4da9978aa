// A dense matrix by a step of some dozens of rows on the matrix unit of sm_90a, at the speed of the
// memory: weights are the unit's first operand and go from memory into it through registers alone,
// 16 bytes a load; the rows of the step are the columns of the second, in shared memory.
//
// A block has 128 rows of weights, two warpgroups below each other, and one piece of k, whose
// halves two pairs of warpgroups take. It rounds the step's rows to bf16 once, while the first
// weights are under way, and from there on no warp waits for another until its half is done.
//
// What must stay true: k is a multiple of 32; weights and rows of x begin at multiples of 16. A
// lane's 16 bytes are eight of k in one row of weights, so of 32 of k a product takes the first
// half of each lane's, the next one the other, on both sides. Columns without a row hold anything.
#include "pieces.h"
#include "weights_q8.h"
#include "wgmma.h"

#if defined(MATRIX_WGMMA)

constexpr int kLongThreads = 512, kLongRows = 2 * kWgRows;
constexpr int kLongChunk = 32;  // of k: a lane's two loads, and two products
constexpr int kLongDepth = 4;   // chunks that a lane has under way
constexpr int kLongStride = kLongRows + 4;

// A warpgroup's weights: a lane's two rows from its first chunk on.
template <class W>
struct LongWeights {
  static constexpr bool kBytes = sizeof(W) == 1;
  // Rows to the next lane's, and to a lane's second.
  static constexpr int kApart = kBytes ? 2 : 1, kBelow = kBytes ? 1 : 8;
  const W* w[2];  // in 8 bits the first alone, the group
  int row, chunks;
  uint4 q[kLongDepth][2];        // on their way
  ShareQ8<2> share[kLongDepth];  // or these

  // A lane's first row, of its warpgroup's.
  static __device__ __forceinline__ int first_row() {
    return threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4 * kApart;
  }
  __device__ __forceinline__ void aim(const OwnColumns<W>& own, int c, int k, int chunk) {
#pragma unroll
    for (int r = 1; r >= 0; r--) {
      const int to = c + r * kBelow < own.n ? c + r * kBelow : own.n - 1;
      row = to & (kGroupRows - 2);
      if constexpr (kBytes)
        w[r] = q8_block(own.w, to, k, chunk);
      else
        w[r] = own.w + static_cast<int64_t>(to) * k + chunk * kLongChunk + threadIdx.x % 4 * 8;
    }
  }
  __device__ __forceinline__ void ask(int d, int chunk) {
    if (chunk >= chunks) return;
    if constexpr (kBytes) {
      share[d].ask(q8_step(w[0], chunk), row, threadIdx.x % 4);
    } else {
      q[d][0] = stream16(w[0] + chunk * kLongChunk);
      q[d][1] = stream16(w[1] + chunk * kLongChunk);
    }
  }
  // none is zero, which the assembler does not know: it would move words to where the unit wants
  // them as soon as they are asked for, and so wait for each load.
  __device__ __forceinline__ uint4 words(int d, int row, unsigned none) const {
    if (kBytes) return share[d].words<1, 2>(row);
    const uint4 w = q[d][row];
    return {w.x ^ none, w.y ^ none, w.z ^ none, w.w ^ none};
  }
  // Four elements of a row's chunk, the i-th, where the chunk's begin in an operand.
  static __device__ __forceinline__ void place(unsigned* to, int row, int first, int i, float4 v) {
    const int at =
        first + (kBytes ? i / 4 * 16 + i / 2 % 2 * 4 + i % 2 * 8 : i % 2 * 16 + i / 2 * 2);
    const float4 x = times(v, kBytes ? kStageQ8 : 1.0f);
    to[operand_at(row, at) / 2] = to_bf16x2(x.x, kBytes ? x.z : x.y);
    to[operand_at(row, at + (kBytes ? 2 : 8)) / 2] = to_bf16x2(kBytes ? x.y : x.z, x.w);
  }
};

// Rows of a step, at most N, times RMSNorm's weights if there are any, rounded into stages of 64 of
// k: a warp has rows, a lane four elements. squares gets each row's sum of squares before that.
// Where words lie is as W's weights have them.
template <int N, bool NORMED, class W>
__device__ __forceinline__ void stage_rounded(bf16* stages, float* squares, const float* x,
                                              const bf16* norm, int rows, int k, int count) {
  constexpr int kWarps = kLongThreads / WARP, kAtOnce = NORMED ? 4 : 8;
  constexpr int kRows = N > kWarps ? 2 : 1;
  const int lane = threadIdx.x % WARP, fours = count * (kLongChunk / 4);
  unsigned* const words = reinterpret_cast<unsigned*>(stages);
  for (int row = threadIdx.x / WARP; row < rows; row += kRows * kWarps) {
    const float4* const from = reinterpret_cast<const float4*>(x + static_cast<int64_t>(row) * k);
    float square[kRows] = {};
    for (int first = lane; first < fours; first += kAtOnce * WARP) {
      float4 v[kRows][kAtOnce];
#pragma unroll
      for (int r = 0; r < kRows; r++)
#pragma unroll
        for (int u = 0; u < kAtOnce; u++)
          if (row + r * kWarps < rows && first + u * WARP < fours)
            v[r][u] = from[r * kWarps * (k / 4) + first + u * WARP];
#pragma unroll
      for (int r = 0; r < kRows; r++)
#pragma unroll
        for (int u = 0; u < kAtOnce; u++) {
          const int i = first + u * WARP, chunk = i / 8, to_row = row + r * kWarps;
          if (i >= fours || to_row >= rows) break;
          if (NORMED) {
            const uint2 g = reinterpret_cast<const uint2*>(norm)[i];
            float4& a = v[r][u];
            square[r] = dot4(a.x, a.y, a.z, a.w, a, square[r]);
            a = {a.x * low_bf16(g.x), a.y * high_bf16(g.x), a.z * low_bf16(g.y),
                 a.w * high_bf16(g.y)};
          }
          unsigned* const to = words + chunk / 2 * (N * kWgStep / 2);
          LongWeights<W>::place(to, to_row, chunk % 2 * kLongChunk, i % 8, v[r][u]);
        }
    }
    if (!NORMED) continue;
#pragma unroll
    for (int r = 0; r < kRows; r++) {
      square[r] = warp_sum(square[r]);
      if (lane == 0 && row + r * kWarps < rows) squares[row + r * kWarps] = square[r];
    }
  }
}

struct LongLinear {
  const int* rows;
  float* y;
  float* partial;
  int* arrived;
  const float* x;
  int k, stride, add;
  const bf16* norm;
  HeadRows<bf16> heads;  // with norm and eps: what q, k and v become
  float eps;
};

// A tile of at most N rows of the step.
template <int N, bool HEADS, class W>
__device__ __forceinline__ void long_tile(const LongLinear& l, float* squares,
                                          const OwnColumns<W>& own, LongWeights<W>& weights,
                                          const Piece& piece, int begin, int row0, int live) {
  DYNAMIC_SHARED(float, result);
  bf16* const stages = operands_in(result);
  const int group = threadIdx.x / 128, count = piece.end - piece.first;
  const int rows = live - row0 < N ? live - row0 : N;
  const int first = piece.first * kLongChunk;
  stage_rounded<N, HEADS, W>(stages, squares, l.x + static_cast<int64_t>(row0) * l.k + first,
                             HEADS ? l.norm + first : nullptr, rows, l.k, count);
  publish();
  __syncthreads();
  const unsigned none = static_cast<unsigned>(l.add) >> 1;
  float sum[N / 2] = {};
  Pending pending = {};
  for (int turn = 0; turn < weights.chunks; turn += kLongDepth) {
#pragma unroll
    for (int d = 0; d < kLongDepth; d++) {
      if (turn + d >= weights.chunks) break;
      const int chunk = begin + turn + d;
      const uint4 u = weights.words(d, 0, none), v = weights.words(d, 1, none);
      unsigned a[2][4] = {{u.x, v.x, u.y, v.y}, {u.z, v.z, u.w, v.w}};
      bf16* const from = stages + chunk / 2 * (N * kWgStep) + chunk % 2 * kLongChunk;
      issue_two<N>(pending, sum, a, static_cast<unsigned>(descriptor(from)));
      weights.ask(d, turn + d + kLongDepth);
      wait(pending, sum);
    }
  }
  __syncthreads();  // all have multiplied: the sums take the place of the stages
  float* const to = result + wg_column(threadIdx.x, 0) * kLongStride + group % 2 * kWgRows +
                    LongWeights<W>::first_row();
  const auto place = [=](int i) {
    return to + ((i >> 2) * 8 + (i & 1)) * kLongStride + (i >> 1 & 1) * LongWeights<W>::kBelow;
  };
  if (group / 2) {
#pragma unroll
    for (int i = 0; i < N / 2; i++) *place(i) = sum[i];
  }
  __syncthreads();
  if (group / 2 == 0) {
#pragma unroll
    for (int i = 0; i < N / 2; i++) *place(i) = sum[i] + *place(i);
  }
  if (HEADS && static_cast<int>(threadIdx.x) < rows)
    result[threadIdx.x * kLongStride + kLongRows] = squares[threadIdx.x];
  __syncthreads();
  if constexpr (HEADS)
    leave_heads<N, kLongRows, kLongThreads, true>(l.heads, result, kLongStride, row0, live, own,
                                                  l.k, l.eps, l.partial, l.arrived);
  else
    leave_tile<N, kLongRows, kLongThreads>(l.y, result, kLongStride, row0, live, own, l.stride,
                                           l.add, l.partial, l.arrived);
}

// The block's tile of columns, of three matrices side by side as in prefill_linear_wgmma.
template <bool HEADS, class W>
__device__ __forceinline__ void long_linear(const LongLinear& l, const OwnColumns<W>& own) {
  SHARED(float, squares, 64);
  const Piece piece = own_piece(l.k / kLongChunk);
  const int count = piece.end - piece.first, middle = (count + 1) / 2;
  const int group = threadIdx.x / 128, begin = group / 2 ? middle : 0;
  LongWeights<W> weights = {};
  weights.chunks = group / 2 ? count - middle : middle;
  weights.aim(own, own.first + group % 2 * kWgRows + LongWeights<W>::first_row(), l.k,
              piece.first + begin);
#pragma unroll
  for (int d = 0; d < kLongDepth; d++) weights.ask(d, d);
  const int live = *l.rows, row0 = blockIdx.x * 64;
  if (row0 >= live) return;  // the whole block
  if (live > 32)
    long_tile<64, HEADS>(l, squares, own, weights, piece, begin, row0, live);
  else if (live > 16)
    long_tile<32, HEADS>(l, squares, own, weights, piece, begin, row0, live);
  else
    long_tile<16, HEADS>(l, squares, own, weights, piece, begin, row0, live);
}

// prefill_linear_wgmma of x f32 for steps of few rows: a block's share of k must fit.
// grid (ceil(bucket rows / 64), columns as there, any), shared 1024 and for each of 16, 32 or 64
// rows the greater of 528 and 128 * ceil(ceil(k / 32 / blocks along z) / 2)
// With q8 in the name weights are the copy of models/q8.
#define PREFILL_LINEAR_DIRECT(NAME, W)                                                             \
  KERNEL(512)                                                                                      \
  prefill_linear_##NAME(const int* rows, float* y, float* partial, int* arrived, const float* x,   \
                        const W* w0, const bf16* bias0, const W* w1, const bf16* bias1,            \
                        const W* w2, const bf16* bias2, int n0, int n1, int n2, int k, int stride, \
                        int add) {                                                                 \
    await_grids();                                                                                 \
    long_linear<false>(                                                                            \
        {rows, y, partial, arrived, x, k, stride, add, nullptr, {}, 0},                            \
        own_columns<kLongRows>(blockIdx.y, w0, bias0, w1, bias1, w2, bias2, n0, n1, n2));          \
  }                                                                                                \
  EMULATE(prefill_linear_##NAME, 512)
PREFILL_LINEAR_DIRECT(direct_wgmma, bf16)
PREFILL_LINEAR_DIRECT(direct_wgmma_q8, uint8_t)

// norm, the same for q, k and v with heads of 64, rope and write_kv on a bf16 cache. partial has
// four columns more.
#define PREFILL_QKV_DIRECT(NAME, W)                                                             \
  KERNEL(512)                                                                                   \
  prefill_qkv_##NAME(const int* rows, float* qkv, float* partial, int* arrived, const float* x, \
                     const W* wq, const bf16* bq, const W* wk, const bf16* bk, const W* wv,     \
                     const bf16* bv, int n0, int n1, int n2, int k, int stride, int add,        \
                     const bf16* norm, float eps, bf16* cache, const float* angles,             \
                     const int* positions, const int* tables, const int* table_at,              \
                     int64_t page_elements) {                                                   \
    await_grids();                                                                              \
    const HeadRows<bf16> heads = {qkv,      cache,         angles,    positions, tables,        \
                                  table_at, page_elements, n0 / kDim, n1 / kDim, kDim};         \
    long_linear<true>({rows, qkv, partial, arrived, x, k, stride, add, norm, heads, eps},       \
                      own_columns<kLongRows>(blockIdx.y, wq, bq, wk, bk, wv, bv, n0, n1, n2));  \
  }                                                                                             \
  EMULATE(prefill_qkv_##NAME, 512)
PREFILL_QKV_DIRECT(direct_wgmma, bf16)
PREFILL_QKV_DIRECT(direct_wgmma_q8, uint8_t)

#endif
