// Prefill's attention: flash attention on the matrix unit, over the paged cache, with sinks and
// window.
//
// A block has one KV head and ROWS rows of the step. The query heads of the KV head are packed
// below each other, so that a row of the step is eight rows of the product; a warp's 16 (32 on
// warps of 64) go through the context a page at a time: logits of 32 positions, the running maximum
// and sum, and the values' share. What the next page needs is under way in registers meanwhile. The
// softmax begins with the sink as its maximum and 1 as its sum; a page of which a row sees nothing
// leaves its bits as they were, so a row gives the same bits in any batch.
//
// Rows of the step that follow each other in one sequence form a run and share the pages; a block
// goes through the runs among its rows one by one, or shares them with the gridDim.z - 1 others. A
// row that stands alone in its sequence has pages of its own, which decode_attend reads faster:
// where `singles` says how many they are, they are left to it.
//
// K and V are exact as bf16, those of 8 bits too. Queries and weights are cut into TERMS bf16 that
// add up to them, as in prefill.cu: with one term a result is off by at most 2^-8 of the largest
// visible |v| plus what rounding the queries changes in the logits; three terms are all of float32.
#include "cache.h"
#include "grid.h"
#include "matrix.h"
#include "warp.h"

constexpr int kHeadStride = kDim + 8;  // bf16 between rows of q and of K
constexpr int kPositionStride =
    kPageTokens + 8;  // between dimensions of V, and between rows of weights
constexpr int kPositionTiles = kPageTokens / 16;
constexpr int kDimTiles = kDim / 16;
constexpr int kMine = WARP / 32;  // tiles of 16 rows that a warp has

// The run of rows from `first` on: consecutive positions of one sequence, up to `stop`.
__device__ __forceinline__ int run_end(const int* positions, const int* table_at, int first,
                                       int stop) {
  int next = first + 1;
  while (next < stop && table_at[next] == table_at[first] &&
         positions[next] == positions[next - 1] + 1)
    next++;
  return next;
}

// Whether a row has no neighbour among the step's `live` rows that it follows or that follows it.
__device__ __forceinline__ bool stands_alone(const int* positions, const int* table_at, int row,
                                             int live) {
  const int before = row > 0 ? row - 1 : row, behind = row + 1 < live ? row + 1 : row;
  const int position = positions[row], table = table_at[row];
  return (table_at[before] != table || positions[before] != position - 1) &&
         (table_at[behind] != table || positions[behind] != position + 1);
}

// How eight and four elements of the cache travel in registers, and what they are as bf16.
template <class T>
struct Packed {
  typedef uint2 Eight;
  typedef unsigned Four;
};
template <>
struct Packed<bf16> {
  typedef uint4 Eight;
  typedef uint2 Four;
};
__device__ __forceinline__ uint2 half(uint2 v) { return v; }
__device__ __forceinline__ uint2 half(unsigned v) {
#if defined(MATRIX_NV)
  const auto two = [&](unsigned at) {
    return times_bf16x2(permute_bytes(v, 0, at) << 4 & 0x87f087f0u, 0x7b807b80u);
  };
  return uint2{two(0x9180), two(0xb3a2)};
#else
  const auto at = [&](int i) { return __float_as_uint(from_e4m3(v >> 8 * i)); };
  return uint2{at(0) >> 16 | (at(1) & 0xffff0000u), at(2) >> 16 | (at(3) & 0xffff0000u)};
#endif
}
__device__ __forceinline__ uint4 wide(uint4 v) { return v; }
__device__ __forceinline__ uint4 wide(uint2 v) {
  const uint2 low = half(v.x), high = half(v.y);
  return uint4{low.x, low.y, high.x, high.y};
}

// A page of K and V on its way to shared memory: K as it lies, V with positions side by side, both
// as bf16.
template <int THREADS, class T>
struct Page {
  typedef typename Packed<T>::Eight Eight;
  typedef typename Packed<T>::Four Four;
  static constexpr int kKeys = kPageTokens * kDim / 8 / THREADS;  // 8 elements each
  static constexpr int kValues =
      kPageTokens / 2 * kDim / 4 / THREADS;  // 4 elements of two positions each
  Eight key[kKeys];
  Four value[kValues][2];

  // Positions outside of [begin, end) are zero: nobody sees them, and what lies there may be NaN.
  __device__ __forceinline__ void fetch(const T* keys, int at, int begin, int end) {
    const T* values = keys + kPageTokens * kDim;
#pragma unroll
    for (int n = 0; n < kKeys; n++) {
      const int i = threadIdx.x + n * THREADS, t = i / (kDim / 8);
      key[n] = Eight{};
      if (at + t >= begin && at + t < end) key[n] = reinterpret_cast<const Eight*>(keys)[i];
    }
#pragma unroll
    for (int n = 0; n < kValues; n++)
#pragma unroll
      for (int h = 0; h < 2; h++) {
        const int i = threadIdx.x + n * THREADS;
        const int t = i % (kPageTokens / 2) * 2 + h, d = i / (kPageTokens / 2) * 4;
        value[n][h] = Four{};
        if (at + t >= begin && at + t < end)
          value[n][h] = *reinterpret_cast<const Four*>(values + t * kDim + d);
      }
  }
  __device__ __forceinline__ void put(bf16* keys, bf16* values) const {
#pragma unroll
    for (int n = 0; n < kKeys; n++) {
      const int i = threadIdx.x + n * THREADS;
      *reinterpret_cast<uint4*>(keys + i / (kDim / 8) * kHeadStride + i % (kDim / 8) * 8) =
          wide(key[n]);
    }
#pragma unroll
    for (int n = 0; n < kValues; n++) {
      const int i = threadIdx.x + n * THREADS;
      const uint2 a = half(value[n][0]), b = half(value[n][1]);
      unsigned* to = reinterpret_cast<unsigned*>(
          values + i / (kPageTokens / 2) * 4 * kPositionStride + i % (kPageTokens / 2) * 2);
      to[0] = (a.x & 0xffff) | b.x << 16;
      to[kPositionStride / 2] = a.x >> 16 | (b.x & 0xffff0000u);
      to[kPositionStride] = (a.y & 0xffff) | b.y << 16;
      to[kPositionStride / 2 * 3] = a.y >> 16 | (b.y & 0xffff0000u);
    }
  }
};

template <int TERMS, int ROWS, class T>
__device__ __forceinline__ void attend_rows(const int* rows, float* o, const float* qkv,
                                            const T* cache, const bf16* sinks, const int* positions,
                                            const int* tables, const int* table_at,
                                            int64_t page_elements, int heads, int kv_heads,
                                            int window, const int* singles, float scale) {
  await_grids();
  constexpr int kPacked = ROWS * kGroup, kThreads = kPacked * 2;
  SHARED(bf16, q, TERMS * kPacked * kHeadStride);
  SHARED(bf16, keys, kPageTokens * kHeadStride);
  SHARED(bf16, values, kDim * kPositionStride);
#if !defined(MATRIX_NV)
  SHARED(bf16, weights, kThreads / WARP * 16 * kPositionStride);
#endif
  // the last rows, which see most, go first
  const int kv_head = blockIdx.x, row0 = static_cast<int>(gridDim.y - 1 - blockIdx.y) * ROWS;
  const int live = *rows, left_out = singles ? *singles : 0;
  if (row0 >= live || left_out == live) return;  // the whole block
  const int stop = row0 + ROWS < live ? row0 + ROWS : live;
  const int group = heads / kv_heads, head0 = kv_head * group;
  const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, tile0 = warp * kMine * 16;
  if (singles) {
    const int row = row0 + lane % ROWS;
    const bool ours = row < stop && !stands_alone(positions, table_at, row, live);
    if (warp_max(ours ? 1.0f : 0.0f) == 0) return;  // the whole block
  }

  // Queries: packed row r * kGroup + g, zero where there is no such row or head.
  for (int i = threadIdx.x; i < kPacked * (kDim / 4); i += kThreads) {
    const int packed = i / (kDim / 4), d = i % (kDim / 4) * 4;
    const int row = row0 + packed / kGroup, g = packed % kGroup;
    float4 v = {0, 0, 0, 0};
    if (row < stop && g < group)
      v = *reinterpret_cast<const float4*>(
          qkv + (static_cast<int64_t>(row) * (heads + 2 * kv_heads) + head0 + g) * kDim + d);
#pragma unroll
    for (int t = 0; t < TERMS; t++) {
      const uint2 w = {to_bf16x2(v.x, v.y), to_bf16x2(v.z, v.w)};
      *reinterpret_cast<uint2*>(q + (t * kPacked + packed) * kHeadStride + d) = w;
      v.x -= low_bf16(w.x);
      v.y -= high_bf16(w.x);
      v.z -= low_bf16(w.y);
      v.w -= high_bf16(w.y);
    }
  }

  int next = row0;
  for (unsigned n = 0; next < row0 + ROWS && next < *rows;) {
    const int first = next, live = *rows;
    next = run_end(positions, table_at, first, row0 + ROWS < live ? row0 + ROWS : live);
    if (singles && next == first + 1 && stands_alone(positions, table_at, first, live)) continue;
    if (n++ % gridDim.z != blockIdx.z) continue;
    const int position0 = positions[first], end = position0 + next - first;
    const int begin = window > 0 && position0 >= window ? position0 + 1 - window : 0;
    const int* table = tables + table_at[first];
    const bool busy =
        row0 + (tile0 + kMine * 16 - 1) / kGroup >= first && row0 + tile0 / kGroup < next;

    Sums acc[kMine][kDimTiles];
    float m[kMine][kSumRows], l[kMine][kSumRows];
    int sees[kMine][kSumRows];  // the last position that a packed row sees; -1: none
#pragma unroll
    for (int i = 0; i < kMine; i++) {
#pragma unroll
      for (int d = 0; d < kDimTiles; d++) acc[i][d] = Sums{};
      const int lane = thread_again() % WARP;
#pragma unroll
      for (int r = 0; r < kSumRows; r++) {
        const int packed = tile0 + i * 16 + sum_row(lane, first_of_row(r));
        const int row = row0 + packed / kGroup, g = packed % kGroup;
        sees[i][r] = row >= first && row < next && g < group ? position0 + row - first : -1;
        m[i][r] = sees[i][r] < 0 ? 0.0f : from_bf16(sinks[head0 + g]) * kLog2E;
        l[i][r] = lane % kRowLanes == 0 ? 1.0f : 0.0f;  // the sink, once a row
      }
    }
    Page<kThreads, T> page;
    const auto fetch = [&](int p) {
      page.fetch(key_at(cache, page_elements, table[p], kv_head, 0, kDim), p * kPageTokens, begin,
                 end);
    };
    fetch(begin / kPageTokens);
    for (int p = begin / kPageTokens; p * kPageTokens < end; p++) {
      __syncthreads();  // the page before has been read; the queries are there
      page.put(keys, values);
      __syncthreads();
      if ((p + 1) * kPageTokens < end) fetch(p + 1);
      if (!busy) continue;
#pragma unroll
      for (int i = 0; i < kMine; i++) {
        Sums s[kPositionTiles];
#pragma unroll
        for (int j = 0; j < kPositionTiles; j++) s[j] = Sums{};
#pragma unroll 1
        for (int t = 0; t < TERMS; t++)
#pragma unroll
          for (int k = 0; k < kDim; k += 16) {
            const Fragment fa =
                load_a(q + (t * kPacked + tile0 + i * 16) * kHeadStride + k, kHeadStride, lane);
#pragma unroll
            for (int j = 0; j < kPositionTiles; j++)
              multiply(s[j], fa, load_b(keys + j * 16 * kHeadStride + k, kHeadStride, lane));
          }
        float largest[kSumRows];
#pragma unroll
        for (int r = 0; r < kSumRows; r++) largest[r] = m[i][r];
#pragma unroll
        for (int j = 0; j < kPositionTiles; j++)
#pragma unroll
          for (int e = 0; e < kFragmentSums; e++) {
            const int at = p * kPageTokens + j * 16 + sum_column(lane, e), r = row_of_sum(e);
            const bool seen = at <= sees[i][r] && (window == 0 || at > sees[i][r] - window);
            s[j].v[e] = seen ? s[j].v[e] * (scale * kLog2E) : -3.0e38f;
            largest[r] = fmaxf(largest[r], s[j].v[e]);
          }
#pragma unroll
        for (int r = 0; r < kSumRows; r++) {
#pragma unroll
          for (int d = 1; d < kRowLanes; d <<= 1)
            largest[r] = fmaxf(largest[r], __shfl_xor_sync(FULL, largest[r], d));
          const float keep = fast_exp2(m[i][r] - largest[r]);
          m[i][r] = largest[r];
          l[i][r] *= keep;
#pragma unroll
          for (int d = 0; d < kDimTiles; d++)
#pragma unroll
            for (int e = 0; e < kFragmentSums; e++)
              if (row_of_sum(e) == r) acc[i][d].v[e] *= keep;
        }
#pragma unroll
        for (int j = 0; j < kPositionTiles; j++)
#pragma unroll
          for (int e = 0; e < kFragmentSums; e++) {
            const int r = row_of_sum(e);
            s[j].v[e] = fast_exp2(s[j].v[e] - m[i][r]);
            l[i][r] += s[j].v[e];
          }
#pragma unroll 1
        for (int t = 0; t < TERMS; t++) {
#if defined(MATRIX_NV)
          const Fragment fp[kPositionTiles] = {take_a(s[0]), take_a(s[1])};
#else
          bf16* const own = weights + warp * 16 * kPositionStride;
          __syncwarp();  // the term before has been read
#pragma unroll
          for (int j = 0; j < kPositionTiles; j++)
#pragma unroll
            for (int e = 0; e < kFragmentSums; e++) {
              const bf16 w = to_bf16(s[j].v[e]);
              own[sum_row(lane, e) * kPositionStride + j * 16 + sum_column(lane, e)] = w;
              s[j].v[e] -= from_bf16(w);
            }
          __syncwarp();
          const Fragment fp[kPositionTiles] = {load_a(own, kPositionStride, lane),
                                               load_a(own + 16, kPositionStride, lane)};
#endif
#pragma unroll
          for (int d = 0; d < kDimTiles; d++)
#pragma unroll
            for (int j = 0; j < kPositionTiles; j++)
              multiply(acc[i][d], fp[j],
                       load_b(values + d * 16 * kPositionStride + j * 16, kPositionStride, lane));
        }
      }
    }
    if (!busy) continue;
    const int lane = thread_again() % WARP, tile0 = thread_again() / WARP * kMine * 16;
#pragma unroll
    for (int i = 0; i < kMine; i++) {
#pragma unroll
      for (int r = 0; r < kSumRows; r++)
#pragma unroll
        for (int d = 1; d < kRowLanes; d <<= 1) l[i][r] += __shfl_xor_sync(FULL, l[i][r], d);
#pragma unroll
      for (int d = 0; d < kDimTiles; d++)
#pragma unroll
        for (int e = 0; e < kFragmentSums; e++) {
          const int r = row_of_sum(e), packed = tile0 + i * 16 + sum_row(lane, e);
          if (sees[i][r] < 0) continue;
          o[(static_cast<int64_t>(row0 + packed / kGroup) * heads + head0 + packed % kGroup) *
                kDim +
            d * 16 + sum_column(lane, e)] = acc[i][d].v[e] / l[i][r];
        }
    }
  }
}

// attend for many rows, head dim 64, at most 8 query heads a KV head, a cache of bf16, or of e4m3
// where the name has f8; TERMS ends it. singles: how many rows stand alone in their sequence,
// which are left out; null: none is. qkv and cache lie at multiples of 16. grid (kv_heads,
// ceil(bucket rows / 16) or with three terms / 8, any)
#define PREFILL_ATTEND(NAME, T, TERMS, ROWS, THREADS, BLOCKS)                                \
  KERNEL(THREADS, BLOCKS)                                                                    \
  prefill_attend_##NAME(const int* rows, float* o, const float* qkv, const T* cache,         \
                        const bf16* sinks, const int* positions, const int* tables,          \
                        const int* table_at, int64_t page_elements, int heads, int kv_heads, \
                        int window, const int* singles, float scale) {                       \
    attend_rows<TERMS, ROWS>(rows, o, qkv, cache, sinks, positions, tables, table_at,        \
                             page_elements, heads, kv_heads, window, singles, scale);        \
  }                                                                                          \
  EMULATE(prefill_attend_##NAME, THREADS)
PREFILL_ATTEND(1, bf16, 1, 16, 256, 2)
PREFILL_ATTEND(f8_1, e4m3, 1, 16, 256, 2)
PREFILL_ATTEND(3, bf16, 3, 8, 128, 1)
PREFILL_ATTEND(f8_3, e4m3, 3, 8, 128, 1)
