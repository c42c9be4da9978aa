// The C face of this folder: what Go calls. Nothing here throws; a function that can fail says how.
//
// Shapes are in elements, row-major. Weights are bf16 (uint16_t) at any alignment, or MXFP4 blocks
// and scales. R rows of the step, L rows whose logits are asked, k experts per token, S = R*k
// slots (slot row*k + j is the row's j-th choice).
#ifndef OSSRUN_CPU_CPU_H_
#define OSSRUN_CPU_CPU_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum { OSSRUN_PER_ROW, OSSRUN_PER_SLOT, OSSRUN_PER_LOGIT } ossrun_extent;

// The third: e4m3 in full layers, bf16 in window layers, half of which lie in the pages' twins.
typedef enum { OSSRUN_KV_F32, OSSRUN_KV_BF16, OSSRUN_KV_F8 } ossrun_kv;

typedef struct {
  int64_t hidden, intermediate, heads, kv_heads, head_dim, experts, experts_per_token;
  int64_t page_tokens;  // positions in a KV page
  int64_t page_bytes;   // of a KV page: [layers of a kind][kv heads]{K, V} [page_tokens, head_dim]
  int32_t kv;           // elements of the cache: ossrun_kv
  int32_t rounding;     // 0: float32 rows of dense products stay whole
} ossrun_shape;

// One step. Arrays are the caller's and are only read, but for logits.
typedef struct {
  int64_t rows, logit_rows;
  const int32_t* tokens;     // [rows]
  const int32_t* positions;  // [rows]
  const int32_t* tables;     // all block tables, one after another
  const int32_t* full_at;    // [rows]: where the table of the row's sequence begins in tables
  const int32_t* window_at;  // [rows]
  const int32_t* twins;      // [pages of the pool]: the second page of a window page, or null
  const int32_t* logit_row;  // [logit_rows]
  float* logits;             // [logit_rows, vocab]
  // [vocab / 64, rounded up]: a bit for each token whose logit is read, others may be zero; or null
  const uint64_t* wanted;
  // [models + 1]: where each model's rows begin, and its rows of logits; null: there is one model
  const int32_t* adapter_rows;
  const int32_t* adapter_logits;
  // [rows]: 1 for a row of a prompt, whose products go by tiles; null: all go by vectors
  const uint8_t* prompts;
} ossrun_batch;

// What of a tape runs: all, all but the last operations, which give the logits, or those.
typedef enum { OSSRUN_WHOLE, OSSRUN_BODY, OSSRUN_LOGITS } ossrun_part;

typedef struct ossrun_pool ossrun_pool;
typedef struct ossrun_tape ossrun_tape;

// Null when the system refuses threads or memory.
ossrun_pool* ossrun_pool_new(int threads);
void ossrun_pool_free(ossrun_pool* pool);
// Keeps a thread of the pool on n processors; 0 where the system does not, and it runs anywhere.
int ossrun_pool_settle(ossrun_pool* pool, int thread, const int32_t* cpus, int n);

// isa: "scalar", "avx2", "avxvnni", "avx512", "vbmi", "amx", "neon", "i8mm", "bf16". Null when this
// machine
// does not have it.
const char* ossrun_isa(const char* isa);

// A tape for one instruction set; null when the machine has not got it, or no memory.
ossrun_tape* ossrun_tape_new(const char* isa, const ossrun_shape* shape);
void ossrun_tape_free(ossrun_tape* tape);

// The operations, appended in the order in which they will run; 0 when there was no memory.
// runtime/engine/program.go says what each computes.
typedef struct {
  const uint16_t* weight;  // [n, k]
  const uint16_t* bias;    // [n] or null
  int64_t n;
} ossrun_matrix;
typedef struct {
  const uint8_t* weight;  // groups of eight rows in 8 bits: kernels.h, matmul_q8
  const uint16_t* bias;   // [n] or null
  int64_t n;
} ossrun_q8_matrix;
typedef struct {
  const uint8_t* blocks;  // [experts, n, k/2]
  const uint8_t* scales;  // [experts, n, k/32]
  const uint16_t* bias;   // [experts, n]
} ossrun_expert_matrix;
typedef struct {
  const uint16_t* rows;  // of ossrun_round; null: the operation has no tiles
  int64_t stride;
} ossrun_rounded;
enum {
  OSSRUN_MAX_PARTS = 3,   // of ossrun_linear
  OSSRUN_MAX_GROUP = 16,  // query heads of one KV head
  OSSRUN_MAX_HEAD_DIM = 256,
};

// Operations appended after this compute the rows of this adapter only; -1: all rows.
void ossrun_tape_adapter(ossrun_tape* t, int adapter);

int ossrun_embed(ossrun_tape* t, float* x, const uint16_t* embedding);
int ossrun_angles(ossrun_tape* t, float* a, const float* frequencies, float scale);
int ossrun_norm(ossrun_tape* t, ossrun_extent rows, float* y, const float* x, const uint16_t* w,
                int64_t width, float eps);
// y null: the caller's logits.
int ossrun_linear(ossrun_tape* t, ossrun_extent rows, float* y, const float* x, ossrun_rounded bf16,
                  int64_t k, const ossrun_matrix* parts, int count, int add);
// q, d: of ossrun_quantize_q12.
int ossrun_linear_q8(ossrun_tape* t, ossrun_extent rows, float* y, const int16_t* q, const float* d,
                     int64_t k, const ossrun_q8_matrix* parts, int count, int add);
// q, d: of ossrun_quantize.
int ossrun_linear_q8_q8(ossrun_tape* t, ossrun_extent rows, float* y, const int8_t* q,
                        const float* d, int64_t k, const ossrun_q8_matrix* parts, int count,
                        int add);
int ossrun_rope(ossrun_tape* t, float* qkv, const float* angles);
// twin: the layer lies in the twins of the pages that the table names.
int ossrun_write_kv(ossrun_tape* t, void* cache, const float* qkv, int64_t layer, int windowed,
                    int twin);
// sinks: [adapters], one for all models or one for each.
int ossrun_attend(ossrun_tape* t, float* o, const float* qkv, const void* cache,
                  const uint16_t* const* sinks, int adapters, int64_t layer, int64_t window,
                  int twin, float scale);
int ossrun_route(ossrun_tape* t, int32_t* experts, float* weights, int32_t* order, int32_t* groups,
                 const float* router);
// Right after ossrun_route: the matrices of the layer lie in mapped files and may have no room in
// memory, so those of the chosen experts are asked of the disk.
void ossrun_on_disk(ossrun_tape* t, const ossrun_expert_matrix* gate_up,
                    const ossrun_expert_matrix* down);
int ossrun_quantize(ossrun_tape* t, ossrun_extent rows, int8_t* q, float* d, const float* x,
                    int64_t width);
int ossrun_quantize_q12(ossrun_tape* t, ossrun_extent rows, int16_t* q, float* d, const float* x,
                        int64_t width);
// Rows of prompts as bf16: those of x [rows, width]; with order, those of the slots in that order,
// whose x is [rows, width] or, per_slot, [slots, width].
int ossrun_round(ossrun_tape* t, uint16_t* y, int64_t stride, const float* x, int per_slot,
                 int64_t width, const int32_t* order);
// x, or q and d: the other is null.
int ossrun_gate_up(ossrun_tape* t, float* h, const int32_t* order, const int32_t* groups,
                   const float* x, const int8_t* q, const float* d, ossrun_rounded bf16,
                   const ossrun_expert_matrix* w, float limit);
int ossrun_down(ossrun_tape* t, float* y, const int32_t* order, const int32_t* groups,
                const float* h, const int8_t* q, const float* d, ossrun_rounded bf16,
                const ossrun_expert_matrix* w);
int ossrun_combine(ossrun_tape* t, float* x, const float* y, const float* weights);
int ossrun_gather(ossrun_tape* t, float* y, const float* x);
int ossrun_copy(ossrun_tape* t, ossrun_extent rows, void* y, const void* x, int64_t row_bytes);

// After the last operation, for walks on up to so many threads. 0 when there was no memory.
int ossrun_tape_seal(ossrun_tape* t, int threads);

// Runs a part of the tape on the first `threads` threads. One step of a pool at a time.
void ossrun_step(ossrun_pool* pool, ossrun_tape* t, int threads, ossrun_part part, int64_t rows,
                 int64_t logit_rows, const int32_t* tokens, const int32_t* positions,
                 const int32_t* tables, const int32_t* full_at, const int32_t* window_at,
                 const int32_t* twins, const int32_t* logit_row, float* logits,
                 const uint64_t* wanted, const int32_t* adapter_rows, const int32_t* adapter_logits,
                 const uint8_t* prompts);

// Timing of every operation, off at first; ns [operations] receives the last step's.
void ossrun_profile(ossrun_tape* t, int on);
void ossrun_profile_read(const ossrun_tape* t, int64_t* ns);

// Reads `bytes` of memory with the first `threads` threads, once; returns nanoseconds.
int64_t ossrun_read_memory(ossrun_pool* pool, const char* isa, int threads, const void* data,
                           int64_t bytes);
// Whether products of tiles are faster than those of vectors, measured for some milliseconds; 0
// without tiles.
int ossrun_tiles_pay(void);
// 8-bit multiply-adds and nothing else on the first `threads` threads; returns nanoseconds and, in
// operations, how many there were.
int64_t ossrun_multiply(ossrun_pool* pool, const char* isa, int threads, int64_t rounds,
                        int64_t* operations);

#ifdef __cplusplus
}
#endif

#endif  // OSSRUN_CPU_CPU_H_
