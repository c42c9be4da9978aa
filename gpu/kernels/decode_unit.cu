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

constexpr int kUnitRows = 8, kUnitColumns = 64, kUnitTerms = 3;
constexpr int kUnitTall = 2, kUnitDeep = kDecodeWarps / kUnitTall;  // how the warps stand
constexpr int kUnitTiles = kUnitColumns / kUnitTall / 16;           // of 16 columns, of a warp
constexpr int kUnitLoads = 2;                          // of 16 bytes of a row, in a lane's chunk
constexpr int kUnitPieces = kUnitLoads * kShares;      // of eight weights, in a chunk
constexpr int kUnitAhead = kOperandRows == 2 ? 2 : 4;  // chunks that a warp has under way
// Columns of staged pieces are so much further apart: lanes that read together meet other banks.
constexpr int kUnitPitchMore = kOperandRows == 2 ? 4 : 1;
constexpr int kUnitStride = kUnitColumns + 4;               // of a row's sums
constexpr int kUnitState = kUnitRows * (kUnitColumns + 1);  // floats that a piece of a tile leaves

// A lane's share of a chunk of its warp's rows of weights, on its way.
struct UnitChunk {
  uint4 q[kUnitTiles][kOperandRows][kUnitLoads];
};

// Stages pieces [first, end) of the rows, times norm where it is not null, with zeros where there
// is no row and from k on; squares gets each row's sum of squares before that.
__device__ __forceinline__ void stage_terms(uint4* staged, float* squares, const float* x,
                                            const bf16* norm, int live, int k, int first, int end,
                                            int pitch, int lane, int warp) {
  constexpr int kAtOnce = 2;
  for (int r = warp; r < kUnitRows; r += kDecodeWarps) {
    const float4* const from = reinterpret_cast<const float4*>(x + static_cast<int64_t>(r) * k);
    float sum = 0;
    for (int base = first + lane; base < end; base += kAtOnce * WARP) {
      float4 v[kAtOnce][2];
      uint4 g[kAtOnce];
#pragma unroll
      for (int u = 0; u < kAtOnce; u++) {
        const int p = base + u * WARP;
        const bool in = r < live && p < end && p < k / 8;
        v[u][0] = in ? from[2 * p] : float4{0, 0, 0, 0};
        v[u][1] = in ? from[2 * p + 1] : float4{0, 0, 0, 0};
        g[u] = in && norm ? reinterpret_cast<const uint4*>(norm)[p] : uint4{0, 0, 0, 0};
      }
#pragma unroll
      for (int u = 0; u < kAtOnce; u++) {
        const int p = base + u * WARP;
        float4 a = v[u][0], b = v[u][1];
        sum = dot4(a.x, a.y, a.z, a.w, a, dot4(b.x, b.y, b.z, b.w, b, sum));
        if (norm) {
          a.x *= low_bf16(g[u].x), a.y *= high_bf16(g[u].x);
          a.z *= low_bf16(g[u].y), a.w *= high_bf16(g[u].y);
          b.x *= low_bf16(g[u].z), b.y *= high_bf16(g[u].z);
          b.z *= low_bf16(g[u].w), b.w *= high_bf16(g[u].w);
        }
        if (p >= end) continue;
#pragma unroll
        for (int t = 0; t < kUnitTerms; t++)
          staged[(t * kUnitRows + r) * pitch + p - first] = take_term(a, b);
      }
    }
    sum = warp_sum(sum);
    if (lane == 0) squares[r] = sum;
  }
}

// sum += a chunk times the staged rows; `staged` is the chunk in the lane's row, with its share.
__device__ __forceinline__ void multiply_rows_by(Sums (&sum)[kUnitTiles], const UnitChunk& c,
                                                 const uint4* staged, int pitch) {
#pragma unroll
  for (int t = 0; t < kUnitTerms; t++) {
    unsigned b[4 * kUnitLoads];
#pragma unroll
    for (int l = 0; l < kUnitLoads; l++)
      put_words(b + 4 * l, staged[t * kUnitRows * pitch + l * kShares]);
#pragma unroll
    for (int m = 0; m < kUnitTiles; m++)
#pragma unroll
      for (int w = 0; w < 4 * kUnitLoads; w += kShareWords) {
        unsigned wa[kOperandRows][kShareWords], wb[kOperandRows][kShareWords] = {};
#pragma unroll
        for (int i = 0; i < kShareWords; i++) {
          const int at = (w + i) % 4;
#pragma unroll
          for (int r = 0; r < kOperandRows; r++) {
            const uint4 q = c.q[m][r][(w + i) / 4];
            wa[r][i] = at == 0 ? q.x : at == 1 ? q.y : at == 2 ? q.z : q.w;
          }
          wb[0][i] = b[w + i];
        }
        multiply<kUnitRows>(sum[m], fragment_a(wa), fragment_b(wb));
      }
  }
}

// The product of the step's rows from 8 * blockIdx.x on with weights, after RMSNorm by norm if it
// is not null. columns(tile) says which weights each of the `tiles` has; finish(row, c, sum, other)
// gets the sums of column c of all and of the one 32 further, which may be past the last. partial
// f32 [rows / 8, tiles, gridDim.z, kUnitState], arrived i32 [rows / 8, tiles], 0 before and after;
// both may be null if gridDim.z is 1.
template <class Columns, class Finish>
__device__ __forceinline__ void unit_rows(const int* rows, float* partial, int* arrived,
                                          const float* x, const bf16* norm, Columns columns,
                                          int tiles, int k, float eps, Finish finish) {
  DYNAMIC_SHARED(uint4, staged);
  SHARED(float, part, kUnitDeep* kUnitRows* kUnitStride);
  SHARED(float, squares, kUnitRows);
  SHARED(int, flag, 1);
  const int row0 = blockIdx.x * kUnitRows, live = *rows - row0, z = blockIdx.z, pieces = gridDim.z;
  const int lane = threadIdx.x % WARP, warp = warp_of(threadIdx.x);
  const int down = warp % kUnitTall * (kUnitTiles * 16), share = operand_share(lane);
  const int chunks = (k / 8 + kUnitPieces - 1) / kUnitPieces;
  const int first = chunks * z / pieces, last = chunks * (z + 1) / pieces;
  const int own_first = first + warp / kUnitTall,
            pitch = (last - first) * kUnitPieces + kUnitPitchMore;
  const bf16* at[kUnitTiles][kOperandRows];
  UnitChunk ahead[kUnitAhead] = {};
  const auto ask = [&](UnitChunk& c, int chunk) {
#pragma unroll
    for (int m = 0; m < kUnitTiles; m++)
#pragma unroll
      for (int r = 0; r < kOperandRows; r++)
#pragma unroll
        for (int l = 0; l < kUnitLoads; l++) {
          const int piece = chunk * kUnitPieces + l * kShares + share;
          c.q[m][r][l] = piece < k / 8 ? stream16(at[m][r] + piece * 8) : uint4{0, 0, 0, 0};
        }
  };
  const auto aim = [&](int tile) {
    const OwnColumns<bf16> own = columns(tile);
#pragma unroll
    for (int m = 0; m < kUnitTiles; m++)
#pragma unroll
      for (int r = 0; r < kOperandRows; r++) {
        const int c = own.first + down + m * 16 + operand_row(lane) + r * kRowsApart;
        at[m][r] = own.w + static_cast<int64_t>(c < own.n ? c : own.n - 1) * k;
      }
#pragma unroll
    for (int d = 0; d < kUnitAhead; d++)
      if (own_first + d * kUnitDeep < last) ask(ahead[d], own_first + d * kUnitDeep);
    asked();
  };
  int tile = blockIdx.y;
  if (tile < tiles) aim(tile);
  if (live <= 0) return;  // the whole block
  await_grids();
  stage_terms(staged, squares, x + static_cast<int64_t>(row0) * k, norm, live, k,
              first * kUnitPieces, last * kUnitPieces, pitch, lane, warp);
  __syncthreads();
  const uint4* const mine = staged + operand_row(lane) % kUnitRows * pitch + share;
  while (tile < tiles) {
    Sums sum[kUnitTiles] = {};
#pragma unroll 1
    for (int c = own_first; c < last; c += kUnitAhead * kUnitDeep) {
#pragma unroll
      for (int d = 0; d < kUnitAhead; d++) {
        const int chunk = c + d * kUnitDeep;
        if (chunk >= last) break;
        multiply_rows_by(sum, ahead[d], mine + (chunk - first) * kUnitPieces, pitch);
        if (chunk + kUnitAhead * kUnitDeep < last) ask(ahead[d], chunk + kUnitAhead * kUnitDeep);
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
    for (int m = 0; m < kUnitTiles; m++)
#pragma unroll
      for (int i = 0; i < kFragmentSums; i++) {
        const int row = sum_column(lane, i);
        if (row < kUnitRows)
          part[(warp / kUnitTall * kUnitRows + row) * kUnitStride + down + m * 16 +
               sum_row(lane, i)] = sum[m].v[i];
      }
    __syncthreads();
    const int thread = thread_again(), row = thread / (kUnitColumns / 2);
    const int i = thread % (kUnitColumns / 2);
    float u = 0, v = 0, square = 0;
#pragma unroll
    for (int d = 0; d < kUnitDeep; d++) {
      u += part[(d * kUnitRows + row) * kUnitStride + i];
      v += part[(d * kUnitRows + row) * kUnitStride + i + kUnitColumns / 2];
    }
    if (pieces > 1) {
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
      square = squares[row];  // only where it is used: clang's waits miss a dead read at a barrier
    }
    if (norm) {
      const float scale = 1.0f / sqrt_of(square / static_cast<float>(k) + eps);
      u *= scale;
      v *= scale;
    }
    const OwnColumns<bf16> to = columns(own);
    const int c = to.first + i, d = c + kUnitColumns / 2;
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
// block along z both may be null.
// grid (ceil(bucket rows / 8), any, any), shared 384 * (8-element pieces of a block's k + 4)
KERNEL(256, 2)
decode_linear_8(const int* rows, float* y, float* partial, int* arrived, const float* x,
                const bf16* norm, const bf16* w, const bf16* bias, int k, int n, int stride,
                int add, float eps) {
  unit_rows(
      rows, partial, arrived, x, norm,
      [&](int tile) { return OwnColumns<bf16>{w, bias, tile * kUnitColumns, n, 0}; },
      (n + kUnitColumns - 1) / kUnitColumns, k, eps,
      [&](int row, int c, float u, float v) {
        float* const to = y + static_cast<int64_t>(row) * stride;
        const int d = c + kUnitColumns / 2;
        to[c] = add ? to[c] + u : u;
        if (d < n) to[d] = add ? to[d] + v : v;
      });
}
EMULATE(decode_linear_8, 256)

// decode_qkv for eight rows and heads of 64, each a tile.
#define DECODE_QKV_UNIT(NAME, T)                                                                \
  KERNEL(256, 2)                                                                                \
  decode_qkv_##NAME(const int* rows, float* qkv, float* partial, int* arrived, T* cache,        \
                    const float* x, const bf16* norm, const bf16* wq, const bf16* bq,           \
                    const bf16* wk, const bf16* bk, const bf16* wv, const bf16* bv,             \
                    const float* angles, const int* positions, const int* tables,               \
                    const int* table_at, int64_t page_elements, int k, int heads, int kv_heads, \
                    int dim, float eps) {                                                       \
    const int q = heads * dim, kv = kv_heads * dim;                                             \
    const HeadRows<T> to = {qkv,      cache,         angles, positions, tables,                 \
                            table_at, page_elements, heads,  kv_heads,  kUnitColumns};          \
    unit_rows(                                                                                  \
        rows, partial, arrived, x, norm,                                                        \
        [&](int tile) {                                                                         \
          return own_columns<kUnitColumns>(tile, wq, bq, wk, bk, wv, bv, q, kv, kv);            \
        },                                                                                      \
        heads + 2 * kv_heads, k, eps,                                                           \
        [&](int row, int c, float u, float v) {                                                 \
          const int head = c / kUnitColumns;                                                    \
          to.leave(to.ask(row, head, c % kUnitColumns), head, u, v);                            \
        });                                                                                     \
  }                                                                                             \
  EMULATE(decode_qkv_##NAME, 256)
DECODE_QKV_UNIT(f32_8, float)
DECODE_QKV_UNIT(bf16_8, bf16)
DECODE_QKV_UNIT(f8_8, e4m3)
