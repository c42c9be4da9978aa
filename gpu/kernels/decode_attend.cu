// The kernels of decode's attention: decode_attend.h as launches of their own.
#include "decode_attend.h"

// attend for head dim 64 and at most 8 query heads a KV head; list i32 [rows] names the rows of the
// step that are meant, null: all. most_runs is the most runs a context is cut in; many: 1 in steps
// of some rows, 2 of many. With more than one block along z: partial f32 [step's rows, kv_heads,
// most_runs, 8, 66], arrived i32 [step's rows, kv_heads], 0 before and after; else both may be
// null. grid (kv_heads, any, up to most_runs), shared 64 * WARP + 8 * 66 * 4 a warp
KERNEL(256)
decode_attend_f32(const int* rows, const int* list, float* o, float* partial, int* arrived,
                  const float* qkv, const float* cache, const bf16* sinks, const int* positions,
                  const int* tables, const int* table_at, int64_t page_elements, int heads,
                  int kv_heads, int window, int most_runs, int many, float scale) {
  attend_run(own_place(), rows, list, o, partial, arrived, qkv, cache, sinks, positions, tables,
             table_at, page_elements, heads, kv_heads, window, most_runs, many, scale);
}
EMULATE(decode_attend_f32, 256)

KERNEL(256)
decode_attend_bf16(const int* rows, const int* list, float* o, float* partial, int* arrived,
                   const float* qkv, const bf16* cache, const bf16* sinks, const int* positions,
                   const int* tables, const int* table_at, int64_t page_elements, int heads,
                   int kv_heads, int window, int most_runs, int many, float scale) {
  attend_run(own_place(), rows, list, o, partial, arrived, qkv, cache, sinks, positions, tables,
             table_at, page_elements, heads, kv_heads, window, most_runs, many, scale);
}
EMULATE(decode_attend_bf16, 256)

KERNEL(256)
decode_attend_f8(const int* rows, const int* list, float* o, float* partial, int* arrived,
                 const float* qkv, const e4m3* cache, const bf16* sinks, const int* positions,
                 const int* tables, const int* table_at, int64_t page_elements, int heads,
                 int kv_heads, int window, int most_runs, int many, float scale) {
  attend_run(own_place(), rows, list, o, partial, arrived, qkv, cache, sinks, positions, tables,
             table_at, page_elements, heads, kv_heads, window, most_runs, many, scale);
}
EMULATE(decode_attend_f8, 256)
