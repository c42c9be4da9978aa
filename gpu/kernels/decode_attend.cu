// Decode's attention: the query heads of a KV head together, long contexts split over blocks.
//
// A block has one row at a time, one KV head and runs of pages; each of its warps takes a page at a
// time. A page's keys of a head lie in one piece, and so do its values: a warp reads them side by
// side, so that K and V are read once for all query heads of the group and every line whole.
// Without NVIDIA's matrix unit eight lanes share a position of K and sixteen one of V; a lane has
// positions apart. The logits' sums meet by shuffles and then in shared memory, where each head's
// softmax is done by the lanes that have it; the values' sums stay in registers until the run is
// over.
//
// What a run found (largest logit, sum, values) is merged with the runs before it, beginning with
// the sink: by the block that has all of them; where several blocks share them they lie in
// `partial`, and the last block of a row and KV head to arrive merges. Runs are cut by the length,
// most_runs and many, and merged in their order: with these a row has the same bits in any batch
// and any grid.
#include "attend_unit.h"

constexpr int kRunPages = 8;      // least pages in a run
constexpr int kState = kDim + 2;  // floats of a run and head: values, largest logit, sum
constexpr int kManyPages = 32;    // with many rows, which fill a card without their runs
// Pages of each run, so that there are at most `runs`.
__device__ __forceinline__ int pages_of_run(int pages, int runs, int least) {
  const int n = (pages + runs - 1) / runs;
  return n < least ? least : n;
}

// What a lane has of a page's keys or values, on its way: N dimensions of every kApart-th position.
// Ask for it, go on with other work, then read.
template <class T, int N>
struct Share {
  static constexpr int kSharers = kDim / N;       // lanes of a position, side by side
  static constexpr int kApart = WARP / kSharers;  // positions from one of a lane to its next
  static constexpr int kPositions = kPageTokens / kApart;  // of a lane
  Values<T, N> own[kPositions];

  __device__ __forceinline__ void ask(const T* from, int lane) {
#pragma unroll
    for (int j = 0; j < kPositions; j++) own[j].ask(from + (j * WARP + lane) * N);
  }
  // Positions outside of [begin, end) become 0: what lies there may be NaN.
  __device__ __forceinline__ void keep(int begin, int end, int lane) {
#pragma unroll
    for (int j = 0; j < kPositions; j++) {
      const int t = lane / kSharers + j * kApart;
      if (t < begin || t >= end) own[j] = Values<T, N>{};
    }
  }
};
constexpr int kLogits = kPageTokens + 4;  // between heads: no two lanes in one bank
constexpr int kOfKey = 8, kOfValue = 4;   // dimensions of a lane: values' sums stay in registers

// By value: a choice between two places in an array would put the array into memory.
__device__ __forceinline__ float pick(bool first, float a, float b) { return first ? a : b; }

// The sums over eight lanes of four values: a lane is left with that of number lane % 8 / 2, two
// lanes with the same.
__device__ __forceinline__ float sum_of_sharers(const float (&s)[4], int lane) {
  float two[2];
#pragma unroll
  for (int i = 0; i < 2; i++)
    two[i] =
        pick(lane & 4, s[2 + i], s[i]) + __shfl_xor_sync(FULL, pick(lane & 4, s[i], s[2 + i]), 4);
  const float one =
      pick(lane & 2, two[1], two[0]) + __shfl_xor_sync(FULL, pick(lane & 2, two[0], two[1]), 2);
  return one + __shfl_xor_sync(FULL, one, 1);
}

// The state of a softmax over runs that are merged in their order.
struct Merged {
  float largest, sum, value;

  __device__ __forceinline__ void add(float other_largest, float other_sum, float other_value) {
    const float next = fmaxf(largest, other_largest);
    const float keep = fast_exp(largest - next), weight = fast_exp(other_largest - next);
    largest = next;
    sum = fmaf(sum, keep, other_sum * weight);
    value = fmaf(value, keep, other_value * weight);
  }
};

// What a warp finds in its pages of a run (all warps call, and meet before they read q), `page` and
// every kDecodeWarps-th up to `last`: into `state`. table, begin and end are counted from the first
// page that the row sees.
//
// All of a page's values are asked for before its keys are used up, the next page's keys before its
// values are.
template <class T>
__device__ __forceinline__ void attend_pages(const int* table, int page, int last, int begin,
                                             int end, const T* cache, int64_t page_elements,
                                             int kv_head, const float4* q, float* weights,
                                             float* state, float scale) {
  const int lane = thread_again() % WARP;
  typedef Share<T, kOfKey> Keys;
  typedef Share<T, kOfValue> Sums;
  static_assert(Keys::kSharers == 8 && Keys::kPositions % 4 == 0, "sum_of_sharers");
  static_assert(kGroup * kLogits + kGroup <= kGroup * kState, "they lie in state till the end");
  float* const logits = state;                    // [kGroup][kLogits]
  float* const keeps = state + kGroup * kLogits;  // [kGroup]
  const int head = lane / 4 % kGroup;             // whose softmax the lane has a share of:
  const int first = lane % 4 + lane / 32 * 4;     // positions from here on,
  constexpr int kStep = WARP / kGroup, kSome = kPageTokens / kStep;  // so far apart, so many
  float m = -3.0e38f, l = 0, acc[kGroup][kOfValue];
#pragma unroll
  for (int g = 0; g < kGroup; g++)
#pragma unroll
    for (int d = 0; d < kOfValue; d++) acc[g][d] = 0;
  Keys keys = {};
  Sums values = {};
  const T* from = nullptr;
  int next = 0;  // the page behind this one
  if (page < last) {
    from = key_at(cache, page_elements, same_in_warp(table[page]), kv_head, 0, kDim);
    keys.ask(from, lane);
    if (page + kDecodeWarps < last) next = table[page + kDecodeWarps];
  }
  __syncthreads();  // q is there; the first keys are under way with it
  for (; page < last; page += kDecodeWarps) {
    const T* const behind = from + kPageTokens * kDim;
    const int t0 = begin - page * kPageTokens, t1 = end - page * kPageTokens;
#pragma unroll
    for (int f = 0; f < Keys::kPositions; f += 4) {
      float k[4][8];
#pragma unroll
      for (int j = 0; j < 4; j++) keys.own[f + j].get(k[j]);
      if (f + 4 == Keys::kPositions) values.ask(behind, lane);
      asked();
#pragma unroll 2
      for (int g = 0; g < kGroup; g++) {
        const float4 a = q[g * (kDim / 4) + lane % 8], b = q[g * (kDim / 4) + 8 + lane % 8];
        float s[4];
#pragma unroll
        for (int j = 0; j < 4; j++)
          s[j] = dot4(k[j][0], k[j][1], k[j][2], k[j][3], a,
                      dot4(k[j][4], k[j][5], k[j][6], k[j][7], b, 0));
        const float sum = sum_of_sharers(s, lane);
        if (lane % 2 == 0) logits[g * kLogits + lane / 8 + (f + lane % 8 / 2) * Keys::kApart] = sum;
      }
    }
    if (page + kDecodeWarps < last) {
      from = key_at(cache, page_elements, same_in_warp(next), kv_head, 0, kDim);
      keys.ask(from, lane);
      if (page + 2 * kDecodeWarps < last) next = table[page + 2 * kDecodeWarps];
    }
    asked();
    __syncwarp();
    float v[kSome], largest = m;
#pragma unroll
    for (int i = 0; i < kSome; i++) {
      const int t = first + i * kStep;
      v[i] = t >= t0 && t < t1 ? logits[head * kLogits + t] * scale : -3.0e38f;
      largest = fmaxf(largest, v[i]);
    }
    largest = fmaxf(largest, __shfl_xor_sync(FULL, largest, 1));
    largest = fmaxf(largest, __shfl_xor_sync(FULL, largest, 2));
    if (WARP == 64) largest = fmaxf(largest, __shfl_xor_sync(FULL, largest, 32));
    const float own_keep = fast_exp(m - largest);
    m = largest;
    l *= own_keep;
    if (lane % 4 == 0) keeps[head] = own_keep;
#pragma unroll
    for (int i = 0; i < kSome; i++) {
      const int t = first + i * kStep;
      const float weight = t >= t0 && t < t1 ? fast_exp(v[i] - largest) : 0.0f;
      weights[t * kGroup + head] = weight;
      l += weight;
    }
    __syncwarp();
    bool same = true;
    float keep[kGroup];
#pragma unroll
    for (int g = 0; g < kGroup; g++) {
      keep[g] = keeps[g];
      same = same && keep[g] == 1;
    }
    if (!same) {  // the whole warp
#pragma unroll
      for (int g = 0; g < kGroup; g++)
#pragma unroll
        for (int d = 0; d < kOfValue; d++) acc[g][d] *= keep[g];
    }
    if (t0 > 0 || t1 < kPageTokens) values.keep(t0, t1, thread_again() % WARP);
#pragma unroll
    for (int j = 0; j < Sums::kPositions; j++) {
      float v[kOfValue];
      values.own[j].get(v);
      const int t = lane / Sums::kSharers + j * Sums::kApart;
      const float4* const all = reinterpret_cast<const float4*>(weights + t * kGroup);
      const float4 low = all[0], high = all[1];
      const float w[kGroup] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
      for (int g = 0; g < kGroup; g++)
#pragma unroll
        for (int d = 0; d < kOfValue; d++) acc[g][d] = fmaf(w[g], v[d], acc[g][d]);
    }
  }
  __syncwarp();  // the last page's state has been read
  // Lanes of the same dimensions add up what they have, each for its half of the heads, or quarter.
  float four[4][kOfValue], two[2][kOfValue];
  const int own = lane / Sums::kSharers;
  const bool upper = own & 1, odd = own & 2;
  float* to = state + (upper ? 4 : 0) * kState + lane % Sums::kSharers * kOfValue;
#pragma unroll
  for (int g = 0; g < 4; g++)
#pragma unroll
    for (int d = 0; d < kOfValue; d++) {
      four[g][d] = pick(upper, acc[4 + g][d], acc[g][d]) +
                   __shfl_xor_sync(FULL, pick(upper, acc[g][d], acc[4 + g][d]), Sums::kSharers);
      if (Sums::kApart == 2) to[g * kState + d] = four[g][d];
    }
  if (Sums::kApart == 4) {
    to += (odd ? 2 : 0) * kState;
#pragma unroll
    for (int g = 0; g < 2; g++)
#pragma unroll
      for (int d = 0; d < kOfValue; d++) {
        two[g][d] =
            pick(odd, four[2 + g][d], four[g][d]) +
            __shfl_xor_sync(FULL, pick(odd, four[g][d], four[2 + g][d]), 2 * Sums::kSharers);
        to[g * kState + d] = two[g][d];
      }
  }
  l += __shfl_xor_sync(FULL, l, 1);
  l += __shfl_xor_sync(FULL, l, 2);
  if (WARP == 64) l += __shfl_xor_sync(FULL, l, 32);
  if (lane % 4 == 0 && lane < 32) {
    state[head * kState + kDim] = m;
    state[head * kState + kDim + 1] = l;
  }
}

#if defined(MATRIX_NV)
// What a warp finds on the matrix unit, as attend_pages leaves it.
template <class T>
__device__ __forceinline__ void leave_state(float* state, const UnitState<T>& own, int lane) {
  float* const to = state + lane / 4 * kState;
#pragma unroll
  for (int i = 0; i < 16; i++) to[lane % 4 * 16 + i] = own.value_of(i);
  if (lane % 4 == 0) {
    to[kDim] = own.largest;
    to[kDim + 1] = own.sum;
  }
}

// A row that sees few pages, as one warp found it for a KV head: into o, of the first of its heads.
template <class T>
__device__ __forceinline__ void leave_alone(float* o, const bf16* sinks, const UnitState<T>& own,
                                            int group, int lane) {
  const int head = lane / 4;
  if (head >= group) return;
  Merged all = {from_bf16(sinks[head]), 1, 0};
  all.add(own.largest, own.sum, 0);
  const float factor = fast_exp(own.largest - all.largest) / all.sum;
#pragma unroll
  for (int i = 0; i < 16; i += 4)
    *reinterpret_cast<float4*>(o + lane * 16 + i) =
        float4{own.value_of(i) * factor, own.value_of(i + 1) * factor, own.value_of(i + 2) * factor,
               own.value_of(i + 3) * factor};
}
#endif

// list, where it is not null, has the rows of the step that this launch is for, `rows` of them;
// else it is for all rows.
//
// many: 1 makes runs longer, 2 also leaves a row that sees few pages to one block, whose warps have
// a KV head each: a warp by itself takes as long as eight with nothing to share, so a processor
// does eight times as many rows.
template <class T>
__device__ __forceinline__ void attend_run(const int* rows, const int* list, float* o,
                                           float* partial, int* arrived, const float* qkv,
                                           const T* cache, const bf16* sinks, const int* positions,
                                           const int* tables, const int* table_at,
                                           int64_t page_elements, int heads, int kv_heads,
                                           int window, int most_runs, int many, float scale) {
  await_grids();
  DYNAMIC_SHARED(float4, q);                                   // [kGroup * kDim / 4]
  float* p = reinterpret_cast<float*>(q + kGroup * kDim / 4);  // weights of each warp's page
  float* state = p + kDecodeWarps * kPageTokens * kGroup;      // [kDecodeWarps * kGroup * kState]
  constexpr bool kUnit = kOperandRows == 2 && sizeof(T) < sizeof(float);  // of NVIDIA
  if (kUnit) state = reinterpret_cast<float*>(q + 4 * kDecodeThreads);
  SHARED(int, flag, 1);
  constexpr int kMine = kGroup * kDim / kDecodeThreads;  // results of a thread, its own:
  SHARED(Merged, merged, kMine * kDecodeThreads);        // a run needs the registers
  const int kv_head = blockIdx.x, group = heads / kv_heads;
  const int high = gridDim.y, z = blockIdx.z, deep = gridDim.z;
  const int64_t head0 = static_cast<int64_t>(kv_head) * group;
  for (int at = blockIdx.y; at < *rows; at += high) {
    const int row = list ? list[at] : at;
    const int end = positions[row] + 1;
    const int begin = window > 0 && end > window ? end - window : 0;
    const int first = begin / kPageTokens, pages = (end + kPageTokens - 1) / kPageTokens - first;
    const int per_run = pages_of_run(pages, most_runs, many ? kManyPages : kRunPages);
    const int runs = (pages + per_run - 1) / per_run;
    const int sharing = runs < deep ? runs : deep;  // blocks
    if (z >= sharing) continue;                     // the whole block
    const int* const table = tables + table_at[row] + first;
    // again where they are needed: few registers are free meanwhile
    const auto own_counter = [&] { return static_cast<int64_t>(row) * kv_heads + kv_head; };
    const auto queries_of = [&](int kv_head) {
      return qkv + (static_cast<int64_t>(row) * (heads + 2 * kv_heads) + kv_head * group) * kDim;
    };
#if defined(MATRIX_NV)
    const auto attend = [&](auto kv_head, int page, int count,
                            int step) __attribute__((always_inline)) {
      const int thread = thread_again(), at = (first + page) * kPageTokens;
      uint4* const own_queries =
          reinterpret_cast<uint4*>(q) + thread / WARP * 4 * WARP + thread % WARP;
      load_queries<T>(own_queries, queries_of(kv_head), group, scale, thread % WARP);
      return attend_unit(own_queries, table + page, count, step, begin - at, end - at, cache,
                         page_elements, kv_head, thread % WARP);
    };
    if constexpr (kUnit)
      if (many > 1 && pages <= kRunPages) {
        if (at / high % static_cast<int>(gridDim.x) == kv_head)
          for (int h = warp_of(thread_again()); h < kv_heads; h += kDecodeWarps)
            leave_alone(o + (static_cast<int64_t>(row) * heads + h * group) * kDim,
                        sinks + h * group, attend(h, 0, pages, 1), group, thread_again() % WARP);
        continue;
      }
#endif
    // Low and high halves of every eight apart: lanes that read eight in a row meet all banks.
    for (int i = thread_again(); !kUnit && i < kGroup * kDim / 4; i += kDecodeThreads)
      q[i / 16 * 16 + i % 2 * 8 + i % 16 / 2] =
          i < group * kDim / 4 ? reinterpret_cast<const float4*>(queries_of(kv_head))[i]
                               : float4{0, 0, 0, 0};
#pragma unroll
    for (int n = 0; n < kMine; n++) {
      const int i = thread_again() + n * kDecodeThreads, g = i / kDim;
      merged[i] = {g < group ? from_bf16(sinks[head0 + g]) : 0.0f, 1, 0};
    }
    for (int run = z; run < runs; run += deep) {
      const int warp = warp_of(thread_again());
      const int last = (run + 1) * per_run < pages ? (run + 1) * per_run : pages;
#if defined(MATRIX_NV)
      if constexpr (kUnit) {
        const int page = run * per_run + warp;
        const auto own =
            attend(kv_head, page, (last - page + kDecodeWarps - 1) / kDecodeWarps, kDecodeWarps);
        leave_state(state + warp * kGroup * kState, own, thread_again() % WARP);
      } else
#endif
        attend_pages(table, run * per_run + warp, last, begin - first * kPageTokens,
                     end - first * kPageTokens, cache, page_elements, kv_head, q,
                     p + warp * kPageTokens * kGroup, state + warp * kGroup * kState, scale);
      __syncthreads();
      const int thread = thread_again();
      // The warps' findings, thread by thread, become the run's.
#pragma unroll
      for (int n = 0; n < kMine; n++) {
        const int i = thread + n * kDecodeThreads, g = i / kDim, d = i % kDim;
        float largest = -3.0e38f, sum = 0, value = 0;
        for (int w = 0; w < kDecodeWarps; w++)
          largest = fmaxf(largest, state[(w * kGroup + g) * kState + kDim]);
        for (int w = 0; w < kDecodeWarps; w++) {
          const float* s = state + (w * kGroup + g) * kState;
          const float keep = fast_exp(s[kDim] - largest);
          sum = fmaf(s[kDim + 1], keep, sum);
          value = fmaf(s[d], keep, value);
        }
        if (sharing == 1) {
          merged[i].add(largest, sum, value);
          continue;
        }
        float* mine = partial + ((own_counter() * most_runs + run) * kGroup + g) * kState;
        mine[d] = value;
        if (d == 0) {
          mine[kDim] = largest;
          mine[kDim + 1] = sum;
        }
      }
      __syncthreads();
    }
    const int thread = thread_again();
    if (sharing > 1) {
      if (!last_to_arrive(arrived + own_counter(), sharing, flag)) continue;
      for (int run = 0; run < runs; run++)
#pragma unroll
        for (int n = 0; n < kMine; n++) {
          const int i = thread + n * kDecodeThreads, g = i / kDim, d = i % kDim;
          const float* s = partial + ((own_counter() * most_runs + run) * kGroup + g) * kState;
          merged[i].add(s[kDim], s[kDim + 1], s[d]);
        }
    }
#pragma unroll
    for (int n = 0; n < kMine; n++) {
      const int i = thread + n * kDecodeThreads;
      if (i < group * kDim)
        o[(static_cast<int64_t>(row) * heads + head0) * kDim + i] = merged[i].value / merged[i].sum;
    }
  }
}

// attend for head dim 64 and at most 8 query heads a KV head; list i32 [rows] names the rows of the
// step that are meant, null: all. most_runs is the most runs a context is cut in; many: 1 in steps
// of some rows, 2 of many. With more than one block along z: partial f32 [step's rows, kv_heads,
// most_runs, 8, 66], arrived i32 [step's rows, kv_heads], 0 before and after; else both may be
// null. grid (kv_heads, any, up to most_runs), shared 64 * WARP + 8 * 66 * 4 a warp
#define DECODE_ATTEND(NAME, T, BLOCKS)                                                            \
  KERNEL(256, BLOCKS)                                                                             \
  decode_attend_##NAME(const int* rows, const int* list, float* o, float* partial, int* arrived,  \
                       const float* qkv, const T* cache, const bf16* sinks, const int* positions, \
                       const int* tables, const int* table_at, int64_t page_elements, int heads,  \
                       int kv_heads, int window, int most_runs, int many, float scale) {          \
    attend_run(rows, list, o, partial, arrived, qkv, cache, sinks, positions, tables, table_at,   \
               page_elements, heads, kv_heads, window, most_runs, many, scale);                   \
  }                                                                                               \
  EMULATE(decode_attend_##NAME, 256)
DECODE_ATTEND(f32, float, 1)
DECODE_ATTEND(bf16, bf16, 1)
DECODE_ATTEND(f8, e4m3, 2)
