// Decode's dense matrices for up to eight rows at once: norm, projection, bias and what follows, on
// the matrix unit. Each weight is read once for all of them and goes straight from memory into the
// unit's first operand; the rows are columns of the second, as three bf16 terms, which are all of
// float32's 24 bits.
//
// A block makes 64 columns of the matrix, a head of q, k or v, of its piece of k: it stages only
// that much of the rows, and every processor has work. Its warps are two tall; the others divide
// the piece's chunks between them. What a piece found goes to `partial`, with the sums of squares
// that RMSNorm wants, and the last piece of a tile to arrive adds them in their order and finishes.
// A block may take several tiles, one after another.
//
// What must stay true: k is a multiple of 32, weights begin at multiples of 16, and k is cut by the
// grid alone, so a row's sums do not depend on the others.
#include "cache.h"
#include "matrix.h"
#include "pieces.h"
#include "weights_q8.h"

constexpr int kUnitRows = 8, kUnitColumns = 64, kUnitTerms = 3;
constexpr int kUnitLoads = kShares == 1 ? 4 : 2;   // of 16 bytes of a row, in a lane's chunk
constexpr int kUnitPieces = kUnitLoads * kShares;  // of eight weights, in a chunk
constexpr int kUnitAhead = kOperandRows == 2 || kShares == 1 ? 2 : 4;  // chunks under way
// Columns of staged pieces are so much further apart: lanes that read together meet other banks.
constexpr int kUnitPitchMore = kOperandRows == 2 ? 4 : 1;
constexpr int kUnitStride = kUnitColumns + 4;               // of a row's sums
constexpr int kUnitState = kUnitRows * (kUnitColumns + 1);  // floats that a piece of a tile leaves

// How a block of ROWS rows of the step stands: kTall warps below each other, the others divide k.
// With one row it has fewer columns and all of k, so that no pieces must meet.
template <int ROWS>
struct UnitShape {
  static constexpr int kTall = ROWS == 1 ? 1 : 2, kDeep = kDecodeWarps / kTall;
  static constexpr int kTiles = ROWS == 1 ? 2 / kOperandRows : 2;  // of 16 columns, of a warp
  static constexpr int kColumns = kTall * kTiles * 16, kParts = kUnitColumns / kColumns;

  // Column c of part `part` of 64: of fewer one half is 32 further, as pairs of RoPE are.
  static __device__ __forceinline__ int spread([[maybe_unused]] int part, int c) {
    if (kParts == 1) return c;
    return part * (kColumns / 2) + c % (kColumns / 2) + c / (kColumns / 2) * (kUnitColumns / 2);
  }
};

// A lane's rows of its warp's weights: where they begin, and its share of a chunk on its way. A
// tile of the unit has 16 rows, of which a lane has kOperandRows. In 8 bits all its rows are
// neighbours, so that it reads the same bytes of all at once.
template <class W, int ROWS>
struct UnitRows : UnitShape<ROWS> {
  using S = UnitShape<ROWS>;
  static constexpr bool kBytes = sizeof(W) == 1;
  static constexpr int kRows = S::kTiles * kOperandRows, kRowLanes = 16 / kOperandRows;
  const W* at[S::kTiles][kOperandRows];  // in 8 bits the first alone, the group
  int first;                             // in 8 bits of the rows, in the group
  struct Chunk {
    uint4 q[kUnitLoads][S::kTiles][kOperandRows];
    ShareQ8<kRows> share[kUnitLoads];  // one of the two
    __device__ __forceinline__ uint4 words(int l, int m, int r) const {
      return kBytes ? share[l].words(m * kOperandRows + r) : q[l][m][r];
    }
  };

  // Which of the warp's columns row `row` of a tile is.
  static __device__ __forceinline__ int column(int tile, int row) {
    return kBytes ? row % kRowLanes * kRows + tile * kOperandRows + row / kRowLanes
                  : tile * 16 + row;
  }
  __device__ __forceinline__ void aim(const OwnColumns<W>& own, int part, int down, int row,
                                      int k) {
#pragma unroll
    for (int m = 0; m < S::kTiles; m++)
#pragma unroll
      for (int r = 0; r < kOperandRows; r++) {
        const int c = own.first + S::spread(part, down + column(m, row + r * kRowsApart));
        const int to = c < own.n ? c : own.n - 1;
        if constexpr (!kBytes) {
          at[m][r] = own.w + static_cast<int64_t>(to) * k;
        } else if (m + r == 0) {
          at[0][0] = q8_block(own.w, to, k, 0);
          first = to & (kGroupRows - kRows);
        }
      }
  }
  // What is not asked for is multiplied by zeros.
  __device__ __forceinline__ void ask(Chunk& c, int l, int piece, bool in) const {
    if constexpr (kBytes) {
      if (in) c.share[l].ask(q8_step(at[0][0], piece / 4), first, piece % 4);
      return;
    }
#pragma unroll
    for (int m = 0; m < S::kTiles; m++)
#pragma unroll
      for (int r = 0; r < kOperandRows; r++)
        if (!kBytes) c.q[l][m][r] = in ? stream16(at[m][r] + piece * 8) : uint4{0, 0, 0, 0};
  }
};

// Stages pieces [first, end) of the rows, times norm where it is not null, with zeros where there
// is no row and from k on; squares gets each row's sum of squares before that, or each warp's of
// one row. BYTES: as ShareQ8 has the weights: the quads of four pieces in the order 0 4, 1 5, 2 6,
// 3 7.
template <int ROWS, bool BYTES>
__device__ __forceinline__ void stage_terms(uint4* staged, float* squares, const float* x,
                                            const bf16* norm, int live, int k, int first, int end,
                                            int pitch, int lane, int warp) {
  constexpr int kAtOnce = 2, kApart = ROWS == 1 ? kDecodeThreads : WARP;
  if (ROWS == 1) lane += warp * WARP;
  for (int r = ROWS == 1 ? 0 : warp; r < ROWS; r += kDecodeWarps) {
    const float4* const from = reinterpret_cast<const float4*>(x + static_cast<int64_t>(r) * k);
    float sum = 0;
    for (int base = first + lane; base < end; base += kAtOnce * kApart) {
      float4 v[kAtOnce][2];
      uint4 g[kAtOnce];
#pragma unroll
      for (int u = 0; u < kAtOnce; u++) {
        const int p = base + u * kApart;
        const bool in = r < live && p < end && p < k / 8;
        v[u][0] = in ? from[2 * p] : float4{0, 0, 0, 0};
        v[u][1] = in ? from[2 * p + 1] : float4{0, 0, 0, 0};
        g[u] = in && norm ? reinterpret_cast<const uint4*>(norm)[p] : uint4{0, 0, 0, 0};
      }
#pragma unroll
      for (int u = 0; u < kAtOnce; u++) {
        const int p = base + u * kApart;
        float4 a = v[u][0], b = v[u][1];
        sum = dot4(a.x, a.y, a.z, a.w, a, dot4(b.x, b.y, b.z, b.w, b, sum));
        if (norm) {
          a.x *= low_bf16(g[u].x), a.y *= high_bf16(g[u].x);
          a.z *= low_bf16(g[u].y), a.w *= high_bf16(g[u].y);
          b.x *= low_bf16(g[u].z), b.y *= high_bf16(g[u].z);
          b.z *= low_bf16(g[u].w), b.w *= high_bf16(g[u].w);
        }
        if (p >= end) continue;
        if (BYTES) {
          const float4 even = {a.x, b.x, a.z, b.z}, odd = {a.y, b.y, a.w, b.w};
          a = times(even, kStageQ8), b = times(odd, kStageQ8);
        }
#pragma unroll
        for (int t = 0; t < kUnitTerms; t++) {
          uint4* const to = staged + (t * ROWS + r) * pitch - first;
          const uint4 term = take_term(a, b);
          uint2* const quads = reinterpret_cast<uint2*>(to + (p & -4) + p % 2 * 2) + (p >> 1 & 1);
          if (BYTES)
            quads[0] = {term.x, term.y}, quads[2] = {term.z, term.w};
          else
            to[p] = term;
        }
      }
    }
    sum = warp_sum(sum);
    if (lane % WARP == 0) squares[ROWS == 1 ? warp : r] = sum;
  }
}

// sum += a chunk times the staged rows; `staged` is the chunk in the lane's row, with its share.
template <int ROWS, int TILES, class Chunk>
__device__ __forceinline__ void multiply_rows_by(Sums (&sum)[TILES], const Chunk& c,
                                                 const uint4* staged, int pitch) {
  constexpr int kAtOnce = kShareWords > 4 ? kShareWords / 4 : 1;  // loads, of a product
#pragma unroll
  for (int l = 0; l < kUnitLoads; l += kAtOnce) {
    unsigned a[TILES][kOperandRows][4 * kAtOnce];
#pragma unroll
    for (int m = 0; m < TILES; m++)
#pragma unroll
      for (int r = 0; r < kOperandRows; r++)
#pragma unroll
        for (int u = 0; u < kAtOnce; u++) put_words(a[m][r] + 4 * u, c.words(l + u, m, r));
#pragma unroll
    for (int t = 0; t < kUnitTerms; t++) {
      unsigned b[4 * kAtOnce];
#pragma unroll
      for (int u = 0; u < kAtOnce; u++)
        put_words(b + 4 * u, staged[t * ROWS * pitch + (l + u) * kShares]);
#pragma unroll
      for (int m = 0; m < TILES; m++)
#pragma unroll
        for (int w = 0; w < 4 * kAtOnce; w += kShareWords) {
          unsigned wa[kOperandRows][kShareWords], wb[kOperandRows][kShareWords] = {};
#pragma unroll
          for (int i = 0; i < kShareWords; i++) {
#pragma unroll
            for (int r = 0; r < kOperandRows; r++) wa[r][i] = a[m][r][w + i];
            wb[0][i] = b[w + i];
          }
          multiply<kUnitRows>(sum[m], fragment_a(wa), fragment_b(wb));
        }
    }
  }
}

// The product of the step's rows from ROWS * blockIdx.x on with weights, after RMSNorm by norm if
// it is not null. columns(tile) says which weights each of the `tiles` has; finish(row, c, sum,
// other) gets the sums of column c of all and of the one 32 further, which may be past the last.
// partial f32 [rows / 8, tiles, gridDim.z, kUnitState], arrived i32 [rows / 8, tiles], 0 before and
// after; both may be null if gridDim.z is 1, as it must be with one row.
template <class W, int ROWS, class Columns, class Finish>
__device__ __forceinline__ void unit_rows(const int* rows, float* partial, int* arrived,
                                          const float* x, const bf16* norm, Columns columns,
                                          int tiles, int k, float eps, Finish finish) {
  using S = UnitShape<ROWS>;
  DYNAMIC_SHARED(uint4, staged);
  SHARED(float, part, S::kDeep* ROWS* kUnitStride);
  SHARED(float, squares, 8);
  SHARED(int, flag, 1);
  const int row0 = blockIdx.x * ROWS, live = *rows - row0, z = blockIdx.z, pieces = gridDim.z;
  const int lane = threadIdx.x % WARP, warp = warp_of(threadIdx.x);
  const int down = warp % S::kTall * (S::kTiles * 16), share = operand_share(lane);
  const int chunks = (k / 8 + kUnitPieces - 1) / kUnitPieces;
  const int first = chunks * z / pieces, last = chunks * (z + 1) / pieces;
  const int own_first = first + warp / S::kTall;
  const int pitch = (last - first) * kUnitPieces + kUnitPitchMore;
  UnitRows<W, ROWS> weights = {};
  typename UnitRows<W, ROWS>::Chunk ahead[kUnitAhead] = {};
  const auto ask = [&](typename UnitRows<W, ROWS>::Chunk& c, int chunk) {
#pragma unroll
    for (int l = 0; l < kUnitLoads; l++) {
      const int piece = chunk * kUnitPieces + l * kShares + share;
      weights.ask(c, l, piece, piece < k / 8);
    }
  };
  const auto aim = [&](int tile) {
    weights.aim(columns(tile / S::kParts), tile % S::kParts, down, operand_row(lane), k);
#pragma unroll
    for (int d = 0; d < kUnitAhead; d++)
      if (own_first + d * S::kDeep < last) ask(ahead[d], own_first + d * S::kDeep);
    asked();
  };
  int tile = blockIdx.y;
  tiles *= S::kParts;
  if (tile < tiles) aim(tile);
  if (live <= 0) return;  // the whole block
  await_grids();
  stage_terms<ROWS, UnitRows<W, ROWS>::kBytes>(staged, squares, x + static_cast<int64_t>(row0) * k,
                                               norm, live, k, first * kUnitPieces,
                                               last * kUnitPieces, pitch, lane, warp);
  __syncthreads();
  const uint4* const mine = staged + operand_row(lane) % ROWS * pitch + share;
  while (tile < tiles) {
    Sums sum[S::kTiles] = {};
#pragma unroll 1
    for (int c = own_first; c < last; c += kUnitAhead * S::kDeep) {
#pragma unroll
      for (int d = 0; d < kUnitAhead; d++) {
        const int chunk = c + d * S::kDeep;
        if (chunk >= last) break;
        multiply_rows_by<ROWS>(sum, ahead[d], mine + (chunk - first) * kUnitPieces, pitch);
        if (chunk + kUnitAhead * S::kDeep < last) ask(ahead[d], chunk + kUnitAhead * S::kDeep);
#if defined(GPU_AMD)  // NVIDIA's assembler leaves loads where they are
        asked();
#endif
      }
    }
    const int own = tile;
    tile += gridDim.y;
    if (tile < tiles) aim(tile);
    __syncthreads();  // the sums before have been read
#pragma unroll
    for (int m = 0; m < S::kTiles; m++)
#pragma unroll
      for (int i = 0; i < kFragmentSums; i++) {
        const int row = sum_column(lane, i);
        if (row < ROWS)
          part[(warp / S::kTall * ROWS + row) * kUnitStride + down +
               UnitRows<W, ROWS>::column(m, sum_row(lane, i))] = sum[m].v[i];
      }
    __syncthreads();
    const int thread = thread_again(), row = thread / (S::kColumns / 2);
    const int i = thread % (S::kColumns / 2);
    float u = 0, v = 0, square = 0;
    if (ROWS == 1 && row > 0) continue;  // no barrier follows
#pragma unroll
    for (int d = 0; d < S::kDeep; d++) {
      u += part[(d * ROWS + row) * kUnitStride + i];
      v += part[(d * ROWS + row) * kUnitStride + i + S::kColumns / 2];
    }
    if (ROWS > 1 && pieces > 1) {
      const int group = static_cast<int>(blockIdx.x) * tiles + own, at_u = row * kUnitColumns + i;
      float* const all = partial + static_cast<int64_t>(group) * pieces * kUnitState;
      float* const to = all + z * kUnitState;
      to[at_u] = u;
      to[at_u + kUnitColumns / 2] = v;
      if (i == 0) to[kUnitRows * kUnitColumns + row] = squares[row];
      if (!last_to_arrive(arrived + group, pieces, flag)) continue;
      u = v = 0;
#pragma unroll 4
      for (int p = 0; p < pieces; p++) {
        u += all[p * kUnitState + at_u];
        v += all[p * kUnitState + at_u + kUnitColumns / 2];
        square += all[p * kUnitState + kUnitRows * kUnitColumns + row];
      }
    } else if (norm) {
      // only where it is used: clang's waits miss a dead read at a barrier
      for (int d = row; d < (ROWS == 1 ? kDecodeWarps : row + 1); d++) square += squares[d];
    }
    if (norm) {
      const float scale = 1.0f / sqrt_of(square / static_cast<float>(k) + eps);
      u *= scale;
      v *= scale;
    }
    const OwnColumns<W> to = columns(own / S::kParts);
    const int c = to.first + S::spread(own % S::kParts, i), d = c + kUnitColumns / 2;
    if (row >= live || c >= to.n) continue;
    if (to.bias) {
      u += from_bf16(to.bias[c]);
      if (d < to.n) v += from_bf16(to.bias[d]);
    }
    finish(row0 + row, to.begin + c, u, v);
  }
}

// decode_linear_1 for eight rows, on the matrix unit; blocks along z divide k. partial f32 [rows /
// 8, n / 64, blocks along z, 520], arrived i32 [rows / 8, n / 64], 0 before and after; with one
// block along z both may be null. With q8 in the name w is the copy of models/q8.
// grid (ceil(bucket rows / ROWS), any, any), shared 48 * ROWS * (8-element pieces of a block's k +
// 4); ROWS ends the name
#define DECODE_LINEAR_UNIT(NAME, W, ROWS, BLOCKS)                                               \
  KERNEL(256, BLOCKS)                                                                           \
  decode_linear##NAME(const int* rows, float* y, float* partial, int* arrived, const float* x,  \
                      const bf16* norm, const W* w, const bf16* bias, int k, int n, int stride, \
                      int add, float eps) {                                                     \
    unit_rows<W, ROWS>(                                                                         \
        rows, partial, arrived, x, norm,                                                        \
        [&](int tile) { return OwnColumns<W>{w, bias, tile * kUnitColumns, n, 0}; },            \
        (n + kUnitColumns - 1) / kUnitColumns, k, eps,                                          \
        [&](int row, int c, float u, float v) {                                                 \
          float* const to = y + static_cast<int64_t>(row) * stride;                             \
          const int d = c + kUnitColumns / 2;                                                   \
          to[c] = add ? to[c] + u : u;                                                          \
          if (d < n) to[d] = add ? to[d] + v : v;                                               \
        });                                                                                     \
  }                                                                                             \
  EMULATE(decode_linear##NAME, 256)
DECODE_LINEAR_UNIT(_8, bf16, 8, 2)
DECODE_LINEAR_UNIT(_q8_1, uint8_t, 1, 3)
DECODE_LINEAR_UNIT(_q8_8, uint8_t, 8, 2)

// decode_qkv for eight rows and heads of 64, each a tile; with q8 in the name as above.
#define DECODE_QKV_UNIT(NAME, T, W, ROWS, BLOCKS)                                                \
  KERNEL(256, BLOCKS)                                                                            \
  decode_qkv_##NAME(const int* rows, float* qkv, float* partial, int* arrived, T* cache,         \
                    const float* x, const bf16* norm, const W* wq, const bf16* bq, const W* wk,  \
                    const bf16* bk, const W* wv, const bf16* bv, const float* angles,            \
                    const int* positions, const int* tables, const int* table_at,                \
                    int64_t page_elements, int k, int heads, int kv_heads, int dim, float eps) { \
    const int q = heads * dim, kv = kv_heads * dim;                                              \
    const HeadRows<T> to = {qkv,      cache,         angles, positions, tables,                  \
                            table_at, page_elements, heads,  kv_heads,  kUnitColumns};           \
    unit_rows<W, ROWS>(                                                                          \
        rows, partial, arrived, x, norm,                                                         \
        [&](int tile) {                                                                          \
          return own_columns<kUnitColumns>(tile, wq, bq, wk, bk, wv, bv, q, kv, kv);             \
        },                                                                                       \
        heads + 2 * kv_heads, k, eps,                                                            \
        [&](int row, int c, float u, float v) {                                                  \
          const int head = c / kUnitColumns;                                                     \
          to.leave(to.ask(row, head, c % kUnitColumns), head, u, v);                             \
        });                                                                                      \
  }                                                                                              \
  EMULATE(decode_qkv_##NAME, 256)
DECODE_QKV_UNIT(f32_8, float, bf16, 8, 2)
DECODE_QKV_UNIT(bf16_8, bf16, bf16, 8, 2)
DECODE_QKV_UNIT(f8_8, e4m3, bf16, 8, 2)
DECODE_QKV_UNIT(q8_f32_1, float, uint8_t, 1, 3)
DECODE_QKV_UNIT(q8_f32_8, float, uint8_t, 8, 2)
DECODE_QKV_UNIT(q8_bf16_1, bf16, uint8_t, 1, 3)
DECODE_QKV_UNIT(q8_bf16_8, bf16, uint8_t, 8, 2)
DECODE_QKV_UNIT(q8_f8_1, e4m3, uint8_t, 1, 3)
DECODE_QKV_UNIT(q8_f8_8, e4m3, uint8_t, 8, 2)
