// The kernels of decode's dense matrices for eight rows at once: decode_unit.h as launches of their
// own.
#include "decode_unit.h"

// decode_linear_1 for eight rows, on the matrix unit; blocks along z divide k. partial f32 [rows /
// 8, n / 64, blocks along z, 520], arrived i32 [rows / 8, n / 64], 0 before and after; with one
// block along z both may be null.
// grid (ceil(bucket rows / 8), any, any), shared 384 * (8-element pieces of a block's k + 4)
KERNEL(256, 2)
decode_linear_8(const int* rows, float* y, float* partial, int* arrived, const float* x,
                const bf16* norm, const bf16* w, const bf16* bias, int k, int n, int stride,
                int add, float eps) {
  linear_unit(own_place(), rows, y, partial, arrived, x, norm, w, bias, k, n, stride, add, eps);
}
EMULATE(decode_linear_8, 256)

// decode_qkv for eight rows and heads of 64, likewise.
KERNEL(256, 2)
decode_qkv_f32_8(const int* rows, float* qkv, float* partial, int* arrived, float* cache,
                 const float* x, const bf16* norm, const bf16* wq, const bf16* bq, const bf16* wk,
                 const bf16* bk, const bf16* wv, const bf16* bv, const float* angles,
                 const int* positions, const int* tables, const int* table_at,
                 int64_t page_elements, int k, int heads, int kv_heads, int dim, float eps) {
  const int q = heads * dim, kv = kv_heads * dim;
  qkv_unit(own_place(), rows, qkv, cache, partial, arrived, x, norm,
           {wq, bq, wk, bk, wv, bv, q, q + kv, q + 2 * kv}, angles, positions, tables, table_at,
           page_elements, k, eps);
}
EMULATE(decode_qkv_f32_8, 256)

KERNEL(256, 2)
decode_qkv_bf16_8(const int* rows, float* qkv, float* partial, int* arrived, bf16* cache,
                  const float* x, const bf16* norm, const bf16* wq, const bf16* bq, const bf16* wk,
                  const bf16* bk, const bf16* wv, const bf16* bv, const float* angles,
                  const int* positions, const int* tables, const int* table_at,
                  int64_t page_elements, int k, int heads, int kv_heads, int dim, float eps) {
  const int q = heads * dim, kv = kv_heads * dim;
  qkv_unit(own_place(), rows, qkv, cache, partial, arrived, x, norm,
           {wq, bq, wk, bk, wv, bv, q, q + kv, q + 2 * kv}, angles, positions, tables, table_at,
           page_elements, k, eps);
}
EMULATE(decode_qkv_bf16_8, 256)

KERNEL(256, 2)
decode_qkv_f8_8(const int* rows, float* qkv, float* partial, int* arrived, e4m3* cache,
                const float* x, const bf16* norm, const bf16* wq, const bf16* bq, const bf16* wk,
                const bf16* bk, const bf16* wv, const bf16* bv, const float* angles,
                const int* positions, const int* tables, const int* table_at, int64_t page_elements,
                int k, int heads, int kv_heads, int dim, float eps) {
  const int q = heads * dim, kv = kv_heads * dim;
  qkv_unit(own_place(), rows, qkv, cache, partial, arrived, x, norm,
           {wq, bq, wk, bk, wv, bv, q, q + kv, q + 2 * kv}, angles, positions, tables, table_at,
           page_elements, k, eps);
}
EMULATE(decode_qkv_f8_8, 256)
