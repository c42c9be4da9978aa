// K and V of every row into its page.
#include "cache.h"

template <class T>
__device__ __forceinline__ void write_row(const int* rows, T* cache, const float* qkv,
                                          const int* positions, const int* tables,
                                          const int* table_at, int64_t page_elements, int heads,
                                          int kv_heads, int dim) {
  const int row = blockIdx.y, i = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= *rows || i >= kv_heads * dim) return;
  const int position = positions[row], page = tables[table_at[row] + position / kPageTokens];
  const float* keys = qkv + (static_cast<int64_t>(row) * (heads + 2 * kv_heads) + heads) * dim;
  const float* values = keys + kv_heads * dim;
  T* to = key_at(cache, page_elements, page, i / dim, position, dim) + i % dim;
  const float key = keys[i], value = values[i];
  store(to, key);
  store(to + kPageTokens * dim, value);
}

// qkv f32 [rows, (heads + 2 kv_heads) * dim]; cache as in cache.h, page_elements apart;
// a thread an element. grid (ceil(kv_heads * dim / 256), bucket rows)
KERNEL(256)
write_kv_f32(const int* rows, float* cache, const float* qkv, const int* positions,
             const int* tables, const int* table_at, int64_t page_elements, int heads, int kv_heads,
             int dim) {
  write_row(rows, cache, qkv, positions, tables, table_at, page_elements, heads, kv_heads, dim);
}
EMULATE(write_kv_f32, 256)

KERNEL(256)
write_kv_bf16(const int* rows, bf16* cache, const float* qkv, const int* positions,
              const int* tables, const int* table_at, int64_t page_elements, int heads,
              int kv_heads, int dim) {
  write_row(rows, cache, qkv, positions, tables, table_at, page_elements, heads, kv_heads, dim);
}
EMULATE(write_kv_bf16, 256)

KERNEL(256)
write_kv_f8(const int* rows, e4m3* cache, const float* qkv, const int* positions, const int* tables,
            const int* table_at, int64_t page_elements, int heads, int kv_heads, int dim) {
  write_row(rows, cache, qkv, positions, tables, table_at, page_elements, heads, kv_heads, dim);
}
EMULATE(write_kv_f8, 256)
