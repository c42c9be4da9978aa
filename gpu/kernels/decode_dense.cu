// The kernels of decode's dense matrices: decode_dense.h as launches of their own.
#include "decode_dense.h"

// linear, with RMSNorm by norm bf16 [k] before it where norm is not null. x f32 [rows, k] at
// multiples of 16, w bf16 [n, k], bias bf16 [n] or null, y f32 with rows `stride` apart.
// grid (bucket rows, any), shared 4 * k
KERNEL(256, 3)
decode_linear_1(const int* rows, float* y, const float* x, const bf16* norm, const bf16* w,
                const bf16* bias, int k, int n, int stride, int add, float eps) {
  linear_rows<1>(own_place(), rows, y, x, norm, w, bias, k, n, stride, add, eps);
}
EMULATE(decode_linear_1, 256)

// grid (ceil(bucket rows / 4), any), shared 16 * k
KERNEL(256, 2)
decode_linear_4(const int* rows, float* y, const float* x, const bf16* norm, const bf16* w,
                const bf16* bias, int k, int n, int stride, int add, float eps) {
  linear_rows<4>(own_place(), rows, y, x, norm, w, bias, k, n, stride, add, eps);
}
EMULATE(decode_linear_4, 256)

// Norm, the three projections with bias, RoPE, and k and v into their pages; qkv as the plain
// kernels leave it. angles f32 [rows, dim]; the rest as in write_kv and decode_linear. A bias may
// be null. grid (ceil(bucket rows / ROWS), any), shared ROWS * 4 * k; ROWS ends the name
KERNEL(256, 3)
decode_qkv_f32_1(const int* rows, float* qkv, float* cache, const float* x, const bf16* norm,
                 const bf16* wq, const bf16* bq, const bf16* wk, const bf16* bk, const bf16* wv,
                 const bf16* bv, const float* angles, const int* positions, const int* tables,
                 const int* table_at, int64_t page_elements, int k, int heads, int kv_heads,
                 int dim, float eps) {
  qkv_rows<1>(own_place(), rows, qkv, cache, x, norm, wq, bq, wk, bk, wv, bv, angles, positions,
              tables, table_at, page_elements, k, heads, kv_heads, dim, eps);
}
EMULATE(decode_qkv_f32_1, 256)

KERNEL(256, 2)
decode_qkv_f32_4(const int* rows, float* qkv, float* cache, const float* x, const bf16* norm,
                 const bf16* wq, const bf16* bq, const bf16* wk, const bf16* bk, const bf16* wv,
                 const bf16* bv, const float* angles, const int* positions, const int* tables,
                 const int* table_at, int64_t page_elements, int k, int heads, int kv_heads,
                 int dim, float eps) {
  qkv_rows<4>(own_place(), rows, qkv, cache, x, norm, wq, bq, wk, bk, wv, bv, angles, positions,
              tables, table_at, page_elements, k, heads, kv_heads, dim, eps);
}
EMULATE(decode_qkv_f32_4, 256)

KERNEL(256, 3)
decode_qkv_bf16_1(const int* rows, float* qkv, bf16* cache, const float* x, const bf16* norm,
                  const bf16* wq, const bf16* bq, const bf16* wk, const bf16* bk, const bf16* wv,
                  const bf16* bv, const float* angles, const int* positions, const int* tables,
                  const int* table_at, int64_t page_elements, int k, int heads, int kv_heads,
                  int dim, float eps) {
  qkv_rows<1>(own_place(), rows, qkv, cache, x, norm, wq, bq, wk, bk, wv, bv, angles, positions,
              tables, table_at, page_elements, k, heads, kv_heads, dim, eps);
}
EMULATE(decode_qkv_bf16_1, 256)

KERNEL(256, 2)
decode_qkv_bf16_4(const int* rows, float* qkv, bf16* cache, const float* x, const bf16* norm,
                  const bf16* wq, const bf16* bq, const bf16* wk, const bf16* bk, const bf16* wv,
                  const bf16* bv, const float* angles, const int* positions, const int* tables,
                  const int* table_at, int64_t page_elements, int k, int heads, int kv_heads,
                  int dim, float eps) {
  qkv_rows<4>(own_place(), rows, qkv, cache, x, norm, wq, bq, wk, bk, wv, bv, angles, positions,
              tables, table_at, page_elements, k, heads, kv_heads, dim, eps);
}
EMULATE(decode_qkv_bf16_4, 256)

KERNEL(256, 3)
decode_qkv_f8_1(const int* rows, float* qkv, e4m3* cache, const float* x, const bf16* norm,
                const bf16* wq, const bf16* bq, const bf16* wk, const bf16* bk, const bf16* wv,
                const bf16* bv, const float* angles, const int* positions, const int* tables,
                const int* table_at, int64_t page_elements, int k, int heads, int kv_heads, int dim,
                float eps) {
  qkv_rows<1>(own_place(), rows, qkv, cache, x, norm, wq, bq, wk, bk, wv, bv, angles, positions,
              tables, table_at, page_elements, k, heads, kv_heads, dim, eps);
}
EMULATE(decode_qkv_f8_1, 256)

KERNEL(256, 2)
decode_qkv_f8_4(const int* rows, float* qkv, e4m3* cache, const float* x, const bf16* norm,
                const bf16* wq, const bf16* bq, const bf16* wk, const bf16* bk, const bf16* wv,
                const bf16* bv, const float* angles, const int* positions, const int* tables,
                const int* table_at, int64_t page_elements, int k, int heads, int kv_heads, int dim,
                float eps) {
  qkv_rows<4>(own_place(), rows, qkv, cache, x, norm, wq, bq, wk, bk, wv, bv, angles, positions,
              tables, table_at, page_elements, k, heads, kv_heads, dim, eps);
}
EMULATE(decode_qkv_f8_4, 256)
