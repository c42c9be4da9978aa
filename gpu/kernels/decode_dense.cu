// Decode's dense matrices: norm, projection, bias and what follows in one phase.
//
// ROWS rows of the step share one pass over the weights; a step of more rows has more blocks. Those
// of the same columns are neighbours along x, so they run together and the weights come out of the
// second cache. Two columns a warp, so that a staged activation serves twice.
#include "cache.h"
#include "decode.h"

template <int ROWS>
__device__ __forceinline__ void linear_rows(const int* rows, float* y, const float* x,
                                            const bf16* norm, const bf16* w, const bf16* bias,
                                            int k, int n, int stride, int add, float eps) {
  DYNAMIC_SHARED(float4, staged);
  SHARED(float, part, ROWS* kDecodeWarps);
  const int live = *rows, row0 = blockIdx.x * ROWS;
  const int lane = threadIdx.x % WARP, warp = warp_of(threadIdx.x);
  int c = (blockIdx.y * kDecodeWarps + warp) * 2;
  Pieces<2, (ROWS > 1 ? kInFlightOfMany : kInFlight)> ahead = {};
  bf16 next_bias = 0;  // of the lane's column
  const auto ask = [&] {
    const bf16* const first = w + static_cast<int64_t>(c) * k;
    if (bias && c + lane % 2 < n) next_bias = bias[c + lane % 2];
    ahead.ask({first, c + 1 < n ? first + k : first}, 0, k / 8, lane);
  };
  if (c < n) ask();
  if (row0 >= live) return;  // the whole block
  stage_rows<ROWS>(threadIdx.x, staged, x + static_cast<int64_t>(row0) * k, norm, k, live - row0,
                   part);
  __syncthreads();
  const float scale = norm ? norm_scale(part, lane / 2 % ROWS, k, eps) : 1.0f;  // of the lane's row
  while (c < n) {
    const int own = c;
    const bool two = own + 1 < n;
    const bf16* const first = w + static_cast<int64_t>(own) * k;
    float sum[ROWS][2] = {};
    dot_bf16(sum, ahead, staged, {first, two ? first + k : first}, k, lane);
    const float own_bias = from_bf16(next_bias);
    c += gridDim.y * kDecodeWarps * 2;
    if (c < n) ask();
    float v = 0;  // of the lane's own row and column: lane 2r + j has sum[r][j]
#pragma unroll
    for (int r = 0; r < ROWS; r++)
#pragma unroll
      for (int j = 0; j < 2; j++) {
        const float all = warp_sum(sum[r][j]);
        if (lane == 2 * r + j) v = all;
      }
    const int row = row0 + lane / 2, j = lane % 2;
    if (lane >= 2 * ROWS || row >= live || (j == 1 && !two)) continue;
    float* to = y + static_cast<int64_t>(row) * stride + own + j;
    v = fmaf(v, scale, own_bias);
    *to = add ? *to + v : v;
  }
}

// linear, with RMSNorm by norm bf16 [k] before it where norm is not null. x f32 [rows, k] at
// multiples of 16, w bf16 [n, k], bias bf16 [n] or null, y f32 with rows `stride` apart.
// grid (ceil(bucket rows / ROWS), any), shared ROWS * 4 * k; ROWS ends the name
#define DECODE_LINEAR(ROWS, BLOCKS)                                                                \
  KERNEL(256, BLOCKS)                                                                              \
  decode_linear_##ROWS(const int* rows, float* y, const float* x, const bf16* norm, const bf16* w, \
                       const bf16* bias, int k, int n, int stride, int add, float eps) {           \
    linear_rows<ROWS>(rows, y, x, norm, w, bias, k, n, stride, add, eps);                          \
  }                                                                                                \
  EMULATE(decode_linear_##ROWS, 256)
DECODE_LINEAR(1, 3)
DECODE_LINEAR(4, 2)

// A pair of columns at a time that turn together: i and i + dim / 2 of a head. heads says what
// becomes of them.
template <int ROWS, class T>
__device__ __forceinline__ void qkv_rows(const int* rows, const HeadRows<T>& heads, const float* x,
                                         const bf16* norm, const bf16* wq, const bf16* bq,
                                         const bf16* wk, const bf16* bk, const bf16* wv,
                                         const bf16* bv, int k, float eps) {
  DYNAMIC_SHARED(float4, staged);
  SHARED(float, part, ROWS* kDecodeWarps);
  const int live = *rows, row0 = blockIdx.x * ROWS;
  const int lane = threadIdx.x % WARP, warp = warp_of(threadIdx.x);
  const int half = heads.dim / 2, query = heads.heads, keys = query + heads.kv_heads;
  const int pairs = (keys + heads.kv_heads) * half;
  int p = blockIdx.y * kDecodeWarps + warp;
  Pieces<2, (ROWS > 1 ? kInFlightOfMany : kInFlight)> ahead = {};
  const bf16* low_row = nullptr;
  bf16 next_bias[2] = {};
  const int64_t apart = static_cast<int64_t>(half) * k;
  // inline, or AMD's compiler keeps the pieces in memory
  const auto ask = [&]() __attribute__((always_inline)) {
    const int head = p / half;
    const bf16* const w = head < query ? wq : head < keys ? wk : wv;
    const bf16* const bias = head < query ? bq : head < keys ? bk : bv;
    const int own = head < query ? head : (head - query) % heads.kv_heads;
    const int low = own * heads.dim + p % half;
    if (bias) next_bias[0] = bias[low], next_bias[1] = bias[low + half];
    low_row = w + static_cast<int64_t>(low) * k;
    ahead.ask({low_row, low_row + apart}, 0, k / 8, lane);
  };
  if (p < pairs) ask();
  if (row0 >= live) return;  // the whole block
  stage_rows<ROWS>(threadIdx.x, staged, x + static_cast<int64_t>(row0) * k, norm, k, live - row0,
                   part);
  __syncthreads();
  const float scale = norm_scale(part, lane % ROWS, k, eps);  // of the lane's row
  while (p < pairs) {
    const int head = p / half, i = p % half;
    float sum[ROWS][2] = {};
    dot_bf16(sum, ahead, staged, {low_row, low_row + apart}, k, lane);
    const float low_bias = from_bf16(next_bias[0]), high_bias = from_bf16(next_bias[1]);
    p += gridDim.y * kDecodeWarps;
    if (p < pairs) ask();
    float u = 0, v = 0;  // of the lane's own row
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
      const float all_u = warp_sum(sum[r][0]), all_v = warp_sum(sum[r][1]);
      if (lane == r) {
        u = all_u;
        v = all_v;
      }
    }
    const int row = row0 + lane;
    if (lane >= ROWS || row >= live) continue;
    heads.leave(heads.ask(row, head, i), head, fmaf(u, scale, low_bias), fmaf(v, scale, high_bias));
  }
}

// Norm, the three projections with bias, RoPE, and k and v into their pages; qkv as the plain
// kernels leave it. angles f32 [rows, dim]; the rest as in write_kv and decode_linear. A bias may
// be null. grid (ceil(bucket rows / ROWS), any), shared ROWS * 4 * k; ROWS ends the name
#define DECODE_QKV(NAME, T, ROWS, BLOCKS)                                                      \
  KERNEL(256, BLOCKS)                                                                          \
  decode_qkv_##NAME(const int* rows, float* qkv, T* cache, const float* x, const bf16* norm,   \
                    const bf16* wq, const bf16* bq, const bf16* wk, const bf16* bk,            \
                    const bf16* wv, const bf16* bv, const float* angles, const int* positions, \
                    const int* tables, const int* table_at, int64_t page_elements, int k,      \
                    int heads, int kv_heads, int dim, float eps) {                             \
    const HeadRows<T> to = {qkv,      cache,         angles, positions, tables,                \
                            table_at, page_elements, heads,  kv_heads,  dim};                  \
    qkv_rows<ROWS>(rows, to, x, norm, wq, bq, wk, bk, wv, bv, k, eps);                         \
  }                                                                                            \
  EMULATE(decode_qkv_##NAME, 256)
DECODE_QKV(f32_1, float, 1, 3)
DECODE_QKV(f32_4, float, 4, 2)
DECODE_QKV(bf16_1, bf16, 1, 3)
DECODE_QKV(bf16_4, bf16, 4, 2)
DECODE_QKV(f8_1, e4m3, 1, 3)
DECODE_QKV(f8_4, e4m3, 4, 2)
