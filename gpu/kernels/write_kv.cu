// K and V of every row into its page, with the rotation of q and k before it or without.
#include "cache.h"

template <class T>
__device__ __forceinline__ void write_row(const int* rows, T* cache, float* qkv,
                                          const float* angles, const int* positions,
                                          const int* tables, const int* table_at,
                                          int64_t page_elements, int heads, int kv_heads, int dim) {
  await_grids();
  const int row = blockIdx.y, half = dim / 2, width = heads + 2 * kv_heads;
  const int at = blockIdx.x * blockDim.x + threadIdx.x, head = at / half, i = at % half;
  if (row >= *rows || head >= width || (!angles && head < heads)) return;
  const int position = positions[row], page = tables[table_at[row] + position / kPageTokens];
  float* const pair = qkv + (static_cast<int64_t>(row) * width + head) * dim + i;
  float u = pair[0], v = pair[half];
  if (angles && head < heads + kv_heads) {
    const float c = angles[static_cast<int64_t>(row) * dim + i];
    const float s = angles[static_cast<int64_t>(row) * dim + half + i];
    const float turned = u * c - v * s;
    pair[half] = v = v * c + u * s;
    pair[0] = u = turned;
  }
  if (head < heads) return;
  T* to = key_at(cache, page_elements, page, (head - heads) % kv_heads, position, dim) + i;
  if (head >= heads + kv_heads) to += kPageTokens * dim;
  store(to, u);
  store(to + half, v);
}

// qkv f32 [rows, (heads + 2 kv_heads) * dim]; angles f32 [rows, dim] or null: as they are; cache as
// in cache.h, page_elements apart. A thread a pair (i, i + dim/2), as in rope.
// grid (ceil((heads + 2 kv_heads) * dim / 2 / 256), bucket rows)
#define WRITE_KV(NAME, T)                                                                  \
  KERNEL(256)                                                                              \
  write_kv_##NAME(const int* rows, T* cache, float* qkv, const float* angles,              \
                  const int* positions, const int* tables, const int* table_at,            \
                  int64_t page_elements, int heads, int kv_heads, int dim) {               \
    write_row(rows, cache, qkv, angles, positions, tables, table_at, page_elements, heads, \
              kv_heads, dim);                                                              \
  }                                                                                        \
  EMULATE(write_kv_##NAME, 256)
WRITE_KV(f32, float)
WRITE_KV(bf16, bf16)
WRITE_KV(f8, e4m3)
