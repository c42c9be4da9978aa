// RoPE and K and V of every row into its page, together or each alone: what HeadRows does.
#include "cache.h"

template <class T>
__device__ __forceinline__ void write_row(const int* rows, const HeadRows<T>& h) {
  await_grids();
  const int row = blockIdx.y, at = blockIdx.x * blockDim.x + threadIdx.x, head = at / (h.dim / 2);
  if (row >= *rows || head >= h.heads + 2 * h.kv_heads) return;
  const auto p = h.ask(row, head, at % (h.dim / 2));
  h.leave(p, head, p.to[0], p.to[h.dim / 2]);
}

// Arguments as in HeadRows, a thread a pair.
// grid (ceil((heads + 2 kv_heads) * dim / 2 / 256), bucket rows)
#define WRITE_KV(NAME, T)                                                                      \
  KERNEL(256)                                                                                  \
  write_kv_##NAME(const int* rows, T* cache, float* qkv, const float* angles,                  \
                  const int* positions, const int* tables, const int* table_at,                \
                  int64_t page_elements, int heads, int kv_heads, int dim) {                   \
    write_row<T>(rows, {qkv, cache, angles, positions, tables, table_at, page_elements, heads, \
                        kv_heads, dim});                                                       \
  }                                                                                            \
  EMULATE(write_kv_##NAME, 256)
WRITE_KV(f32, float)
WRITE_KV(bf16, bf16)
WRITE_KV(f8, e4m3)
