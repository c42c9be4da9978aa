// Decode's dense matrices: norm, projection, bias and what follows in one launch.
//
// ROWS rows of the step share one pass over the weights; a step of more rows runs more blocks,
// whose weights come out of the second cache. Two columns a warp, so that a staged activation
// serves twice.
#include "cache.h"
#include "decode.h"

// Stages ROWS rows from row0 on; rows past the live count stay zero.
template <int ROWS>
__device__ __forceinline__ void stage_rows(float4* staged, const float* x, const bf16* w, float eps,
                                           int k, int row0, int live, float* part) {
#pragma unroll
  for (int r = 0; r < ROWS; r++) {
    if (row0 + r < live) {
      stage(staged + r * (k / 4), x + static_cast<int64_t>(row0 + r) * k, w, eps, k, 1.0f,
            part + r * kDecodeWarps);
    } else {
      for (int i = threadIdx.x; i < k / 4; i += kDecodeThreads)
        staged[r * (k / 4) + i] = float4{0, 0, 0, 0};
    }
  }
  __syncthreads();
}

template <int ROWS>
__device__ __forceinline__ void linear_rows(const int* rows, float* y, const float* x,
                                            const bf16* norm, const bf16* w, const bf16* bias,
                                            int k, int n, int stride, int add, float eps) {
  DYNAMIC_SHARED(float4, staged);
  SHARED(float, part, ROWS* kDecodeWarps);
  const int live = *rows, row0 = blockIdx.y * ROWS;
  if (row0 >= live) return;  // the whole block
  stage_rows<ROWS>(staged, x, norm, eps, k, row0, live, part);
  const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
  for (int c = (blockIdx.x * kDecodeWarps + warp) * 2; c < n; c += gridDim.x * kDecodeWarps * 2) {
    const bool two = c + 1 < n;
    const bf16* const columns[2] = {w + static_cast<int64_t>(c) * k,
                                    w + static_cast<int64_t>(two ? c + 1 : c) * k};
    float sum[ROWS][2] = {};
    dot_bf16(sum, staged, columns, k, lane);
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
    float* to = y + static_cast<int64_t>(row) * stride + c + j;
    if (bias) v += from_bf16(bias[c + j]);
    *to = add ? *to + v : v;
  }
}

// linear, with RMSNorm by norm bf16 [k] before it where norm is not null. x f32 [rows, k] at
// multiples of 16, w bf16 [n, k], bias bf16 [n] or null, y f32 with rows `stride` apart.
// grid (any, bucket rows), shared 4 * k
KERNEL(256)
decode_linear_1(const int* rows, float* y, const float* x, const bf16* norm, const bf16* w,
                const bf16* bias, int k, int n, int stride, int add, float eps) {
  linear_rows<1>(rows, y, x, norm, w, bias, k, n, stride, add, eps);
}
EMULATE(decode_linear_1, 256)

// grid (any, ceil(bucket rows / 4)), shared 16 * k
KERNEL(256)
decode_linear_4(const int* rows, float* y, const float* x, const bf16* norm, const bf16* w,
                const bf16* bias, int k, int n, int stride, int add, float eps) {
  linear_rows<4>(rows, y, x, norm, w, bias, k, n, stride, add, eps);
}
EMULATE(decode_linear_4, 256)

// One pair of columns that turn together: element i and i + dim/2 of a head.
template <int ROWS, class T>
__device__ __forceinline__ void qkv_rows(const int* rows, float* qkv, T* cache, const float* x,
                                         const bf16* norm, const bf16* wq, const bf16* bq,
                                         const bf16* wk, const bf16* bk, const bf16* wv,
                                         const bf16* bv, const float* angles, const int* positions,
                                         const int* tables, const int* table_at,
                                         int64_t page_elements, int k, int heads, int kv_heads,
                                         int dim, float eps) {
  DYNAMIC_SHARED(float4, staged);
  SHARED(float, part, ROWS* kDecodeWarps);
  const int live = *rows, row0 = blockIdx.y * ROWS;
  if (row0 >= live) return;  // the whole block
  stage_rows<ROWS>(staged, x, norm, eps, k, row0, live, part);
  const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
  const int half = dim / 2, width = (heads + 2 * kv_heads) * dim;
  const int pairs = width / 2;
  for (int p = blockIdx.x * kDecodeWarps + warp; p < pairs; p += gridDim.x * kDecodeWarps) {
    const int head = p / half, i = p % half;
    const bool query = head < heads, key = !query && head < heads + kv_heads;
    const int own = query ? head : key ? head - heads : head - heads - kv_heads;
    const bf16* w = query ? wq : key ? wk : wv;
    const bf16* bias = query ? bq : key ? bk : bv;
    const int low = own * dim + i, high = low + half;
    const bf16* const columns[2] = {w + static_cast<int64_t>(low) * k,
                                    w + static_cast<int64_t>(high) * k};
    float sum[ROWS][2] = {};
    dot_bf16(sum, staged, columns, k, lane);
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
    if (bias) {
      u += from_bf16(bias[low]);
      v += from_bf16(bias[high]);
    }
    if (query || key) {
      const float c = angles[static_cast<int64_t>(row) * dim + i];
      const float s = angles[static_cast<int64_t>(row) * dim + half + i];
      const float turned = u * c - v * s;
      v = v * c + u * s;
      u = turned;
    }
    float* to = qkv + static_cast<int64_t>(row) * width + head * dim + i;
    to[0] = u;
    to[half] = v;
    if (query) continue;
    const int position = positions[row], page = tables[table_at[row] + position / kPageTokens];
    T* at = key_at(cache, page_elements, page, own, position, dim) + i;
    if (!key) at += kPageTokens * dim;
    store(at, u);
    store(at + half, v);
  }
}

// Norm, the three projections with bias, RoPE, and k and v into their pages; qkv as the plain
// kernels leave it. angles f32 [rows, dim]; the rest as in write_kv and decode_linear. A bias may
// be null. grid (any, ceil(bucket rows / ROWS)), shared ROWS * 4 * k; ROWS ends the name
KERNEL(256)
decode_qkv_f32_1(const int* rows, float* qkv, float* cache, const float* x, const bf16* norm,
                 const bf16* wq, const bf16* bq, const bf16* wk, const bf16* bk, const bf16* wv,
                 const bf16* bv, const float* angles, const int* positions, const int* tables,
                 const int* table_at, int64_t page_elements, int k, int heads, int kv_heads,
                 int dim, float eps) {
  qkv_rows<1>(rows, qkv, cache, x, norm, wq, bq, wk, bk, wv, bv, angles, positions, tables,
              table_at, page_elements, k, heads, kv_heads, dim, eps);
}
EMULATE(decode_qkv_f32_1, 256)

KERNEL(256)
decode_qkv_f32_4(const int* rows, float* qkv, float* cache, const float* x, const bf16* norm,
                 const bf16* wq, const bf16* bq, const bf16* wk, const bf16* bk, const bf16* wv,
                 const bf16* bv, const float* angles, const int* positions, const int* tables,
                 const int* table_at, int64_t page_elements, int k, int heads, int kv_heads,
                 int dim, float eps) {
  qkv_rows<4>(rows, qkv, cache, x, norm, wq, bq, wk, bk, wv, bv, angles, positions, tables,
              table_at, page_elements, k, heads, kv_heads, dim, eps);
}
EMULATE(decode_qkv_f32_4, 256)

KERNEL(256)
decode_qkv_bf16_1(const int* rows, float* qkv, bf16* cache, const float* x, const bf16* norm,
                  const bf16* wq, const bf16* bq, const bf16* wk, const bf16* bk, const bf16* wv,
                  const bf16* bv, const float* angles, const int* positions, const int* tables,
                  const int* table_at, int64_t page_elements, int k, int heads, int kv_heads,
                  int dim, float eps) {
  qkv_rows<1>(rows, qkv, cache, x, norm, wq, bq, wk, bk, wv, bv, angles, positions, tables,
              table_at, page_elements, k, heads, kv_heads, dim, eps);
}
EMULATE(decode_qkv_bf16_1, 256)

KERNEL(256)
decode_qkv_bf16_4(const int* rows, float* qkv, bf16* cache, const float* x, const bf16* norm,
                  const bf16* wq, const bf16* bq, const bf16* wk, const bf16* bk, const bf16* wv,
                  const bf16* bv, const float* angles, const int* positions, const int* tables,
                  const int* table_at, int64_t page_elements, int k, int heads, int kv_heads,
                  int dim, float eps) {
  qkv_rows<4>(rows, qkv, cache, x, norm, wq, bq, wk, bk, wv, bv, angles, positions, tables,
              table_at, page_elements, k, heads, kv_heads, dim, eps);
}
EMULATE(decode_qkv_bf16_4, 256)
