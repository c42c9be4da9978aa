// The arithmetic of the forward pass on a CPU: one table of functions for each instruction set.
//
// A kernel works on the calling thread, allocates nothing, keeps no state, and uses at most
// kKernelStackBytes of stack. Threads divide the work by rows: the pool gives every thread its own
// [r0, r1), so no two calls write the same element. Ranges of at least 64 rows keep the cost of
// setting up a call (reordering the activations, a few hundred nanoseconds) below a few percent.
//
// What must stay true:
//   - Batch invariance. Within one table the result for (row r, token t) is the same bit for bit
//     whatever n, r0 and r1 are and wherever the token stands in the batch: one accumulation order
//     in every tile and every tail. The order differs between tables.
//   - Weights are read where the checkpoint has them. Weight, scale and bias pointers need no
//     alignment at all, and no byte outside the rows asked for is read (prefetches excepted).
//   - Weights pass from memory once for all n tokens of a call.
//   - Subnormals count: callers leave the rounding mode, FTZ and DAZ as the system sets them.
//
// Activations are float32 at their natural alignment (4 bytes); 64 is faster. bf16 values are the
// upper halves of float32 values, little endian. Buffers do not overlap unless a comment allows it.
// Lengths are in elements. n may be 0 and r0 may equal r1: nothing is written then.
#ifndef OSSRUN_CPU_KERNELS_H_
#define OSSRUN_CPU_KERNELS_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
  kMxBlock = 32,      // elements along k that share one scale (MXFP4 weights, activations)
  kQ8GroupRows = 8,   // rows of dense 8-bit weights that lie together
  kQ8Scales = 8,      // that are tried for a block of 8-bit activations
  kMaxHeadDim = 256,  // largest head dimension the attention kernels take
  kKernelStackBytes = 80 * 1024  // no kernel needs more stack than this
};

// With it and MXFP4 scales of 2^-63 to 2^7 the product of both is a normal number.
static const float kLeastQ8Scale = 0x1p-62f;

static const float kQ8ScaleStep = 0.01f;  // from one scale that is tried to the next

// A row of attention: its queries, its state, and which tokens of the page at hand it sees.
typedef struct AttentionRow {
  const float* q;      // [group, dim], after rope
  float *m, *l, *acc;  // what Kernels.attention_begin describes
  int64_t t0, t1;      // tokens [t0, t1); none where t0 >= t1, and the state stays as it is
} AttentionRow;

typedef struct Kernels {
  const char* name;  // "scalar", "avx2", "avxvnni", "avx512", "vbmi", "amx", "neon", "i8mm", "bf16"

  // y[t*ldy + r] = sum_i w[r*k + i] * x[t*ldx + i] (+ bias[r]) for r in [r0, r1), t in [0, n).
  //   y     float32 [n, ldy]: only columns r0..r1-1 are written
  //   x     float32 [n, ldx], ldx >= k
  //   w     bf16 [rows, k], from row 0 (not from r0); any k >= 1
  //   bias  bf16 [rows], from row 0, or null
  // Bytes of weights: 2 k (r1 - r0).
  void (*matmul_bf16)(float* y, int64_t ldy, const float* x, int64_t ldx, int64_t n,
                      const uint16_t* w, int64_t k, int64_t r0, int64_t r1, const uint16_t* bias);

  // The same product with x as the sum of two bf16 (within 2^-17 of each x), where the CPU has an
  // instruction for bf16 that makes it pay; null in most tables. x finite, subnormals may count as
  // zero. Its sums are batch invariant too, but not those of matmul_bf16.
  void (*matmul_bf16_halves)(float* y, int64_t ldy, const float* x, int64_t ldx, int64_t n,
                             const uint16_t* w, int64_t k, int64_t r0, int64_t r1,
                             const uint16_t* bias);

  // The same product with MXFP4 weights, exact: a weight is the float32 e2m1 * 2^(scale - 127),
  // also where that is subnormal (scale 0), infinite where it is 2^128 or more. Scale 255, NaN in
  // the OCP format, counts as 2^128.
  //   y       float32 [n, ldy]: row t belongs to x[t]
  //   x       n pointers to float32 [k]: the tokens that chose this expert, in any order
  //   blocks  [rows, k/32, 16] bytes: byte b of a block holds element 2b low, 2b+1 high
  //   scales  [rows, k/32] bytes
  //   k       a multiple of 32
  //   bias    bf16 [rows] or null
  // All weight pointers are those of the expert's row 0. Bytes of weights: 17 k/32 (r1 - r0).
  void (*matmul_mxfp4)(float* y, int64_t ldy, const float* const* x, int64_t n,
                       const uint8_t* blocks, const uint8_t* scales, int64_t k, int64_t r0,
                       int64_t r1, const uint16_t* bias);

  // 8-bit activations in blocks of 32: q = x / scale rounded to nearest, ties to even, with the
  // scale of max|x| / 127 (1 + kQ8ScaleStep i), i < kQ8Scales, that has the least squared error; a
  // block of zeros (or whose max|x| / 127 is below kLeastQ8Scale) counts as zero.
  //   q  int8 [k]        columns 0 2 4 6 1 3 5 7 of every eight
  //   d  float32 [k/16]  two numbers a block, the scale and one that only the same table reads
  //   x  float32 [k], finite; k a multiple of 32
  void (*quantize_q8)(int8_t* q, float* d, const float* x, int64_t k);

  // matmul_mxfp4 on quantised activations: integer products within a block (exact), then
  // float32: y = sum over blocks of 2^(scale-127) * d * (sum of e2m1 * q).
  //   q, d  n pointers each, as quantize_q8 of this table wrote them: int8 [k], float32 [k/16]
  void (*matmul_mxfp4_q8)(float* y, int64_t ldy, const int8_t* const* q, const float* const* d,
                          int64_t n, const uint8_t* blocks, const uint8_t* scales, int64_t k,
                          int64_t r0, int64_t r1, const uint16_t* bias);

  // 12-bit activations in blocks of 32, for dense weights: scale = max|x| / 2047, q = x / scale
  // rounded to nearest, ties to even; a block whose scale is below 2^-118 counts as zero. Twelve
  // bits, since a block's sum with 8-bit weights is then a whole number that float32 still holds.
  //   q  int16 [k], d float32 [k/32]: in the table's own form, only the same table reads them
  //   x  float32 [k], finite; k a multiple of 32
  void (*quantize_q12)(int16_t* q, float* d, const float* x, int64_t k);

  // 12-bit activations times dense weights in 8 bits, products exact within a block:
  // y = sum over blocks of scale(row, block) * d * (sum of weight * q).
  //   q, d  n pointers each, as quantize_q12 of this table wrote them
  //   w     groups of eight rows, one after another: for each block of 32 columns the rows' scales
  //         (bf16 [8]) and their weights, int8 [8][8 rows][4], columns 0 2 4 6 1 3 5 7 of every
  //         eight
  //   bias  bf16 [rows], from row 0, or null
  //   r0    a multiple of 8; r1 too, unless it is the last row
  // Bytes of weights: 34 k/32 (r1 - r0).
  void (*matmul_q8)(float* y, int64_t ldy, const int16_t* const* q, const float* const* d,
                    int64_t n, const uint8_t* w, int64_t k, int64_t r0, int64_t r1,
                    const uint16_t* bias);

  // matmul_q8 on 8-bit activations: half the products, and coarser.
  //   q, d  n pointers each, as quantize_q8 of this table wrote them: int8 [k], float32 [k/16]
  void (*matmul_q8_q8)(float* y, int64_t ldy, const int8_t* const* q, const float* const* d,
                       int64_t n, const uint8_t* w, int64_t k, int64_t r0, int64_t r1,
                       const uint16_t* bias);

  // Products on tiles, for rows of prompts; null in tables without tiles.
  // y[t*ldy + r] += sum_i w[r*k + i] * x[t*ldx + i] (+ bias[r]) for r in [r0, r1), t in [0, n).
  //   y  float32 [n, ldy]
  //   x  bf16 [n, ldx], ldx >= k; subnormals count as zero, in sums too
  //   k  a multiple of 32
  // The weights are those of matmul_mxfp4 and matmul_bf16, exact.
  void (*matmul_mxfp4_tiles)(float* y, int64_t ldy, const uint16_t* x, int64_t ldx, int64_t n,
                             const uint8_t* blocks, const uint8_t* scales, int64_t k, int64_t r0,
                             int64_t r1, const uint16_t* bias);
  void (*matmul_bf16_tiles)(float* y, int64_t ldy, const uint16_t* x, int64_t ldx, int64_t n,
                            const uint16_t* w, int64_t k, int64_t r0, int64_t r1,
                            const uint16_t* bias);

  // y = x / sqrt(mean(x^2) + eps) * w. x, y float32 [k], w bf16 [k]; y may be x.
  void (*rmsnorm)(float* y, const float* x, const uint16_t* w, int64_t k, float eps);

  // Clamped SwiGLU on interleaved columns: gate = min(gate_up[2i], limit),
  // up = clamp(gate_up[2i+1], -limit, limit), y[i] = gate * sigmoid(1.702 gate) * (up + 1).
  //   gate_up float32 [2n], y float32 [n]; y may be gate_up (the first half is overwritten)
  void (*swiglu)(float* y, const float* gate_up, int64_t n, float limit);

  // Rotary embedding in place: for every head the pairs (i, i + dim/2) turn by the angle whose
  // cosine and sine (already times the YaRN factor) are cosine[i], sine[i].
  //   x float32 [heads, dim], cosine and sine float32 [dim/2] of this token's position, dim even
  void (*rope)(float* x, int64_t heads, int64_t dim, const float* cosine, const float* sine);

  // y = x as float32: one embedding row, or keys out of a bf16 page. n elements.
  void (*bf16_to_f32)(float* y, const uint16_t* x, int64_t n);
  // y = x rounded to bf16, nearest, ties to even; NaN stays NaN. n elements.
  void (*f32_to_bf16)(uint16_t* y, const float* x, int64_t n);

  // y = x as e4m3: nearest, ties to even, ends at +-448, which infinities and NaN become too. The
  // codes 0x7f and 0xff, NaN in the format, are never written and count as +-480. n elements.
  void (*f32_to_f8)(uint8_t* y, const float* x, int64_t n);

  void (*add)(float* y, const float* x, int64_t n);            // y += x; x may be y
  void (*axpy)(float* y, float a, const float* x, int64_t n);  // y += a x, the weighted expert sum
  void (*softmax)(float* x, int64_t n);  // in place; n finite logits (the experts chosen), n >= 1

  // Attention of rows of one sequence: the `group` query heads that share a KV head, one page after
  // another, with the softmax kept as running state:
  //   m    float32 [group]       largest logit so far
  //   l    float32 [group]       sum of exp(logit - m)
  //   acc  float32 [group, dim]  sum of exp(logit - m) * value
  // dim is a multiple of 32 up to kMaxHeadDim. A row's state is the same bit for bit whichever rows
  // share the call, so long as its tokens stand at the same places of the same pages.

  // Sets the state of a row to "nothing seen but the sink": m = sink, l = 1, acc = 0. The sink is
  // one more logit, without scale and without a value. sinks bf16 [group], or null for no sink
  // (m = -inf, l = 0).
  void (*attention_begin)(float* m, float* l, float* acc, int64_t group, int64_t dim,
                          const uint16_t* sinks);

  // Adds the tokens that each of n rows sees of one page: logit = scale * dot(q, key).
  //   keys   element [token, 0] is keys + token*stride, of this KV head: for a page
  //          [tokens, kv heads, dim] pass page + kv_head*dim and stride = kv_heads*dim
  //   values the same layout and stride; no token that no row sees is read
  //   next   next_bytes of memory that a call soon will read, fetched meanwhile, or null and 0
  void (*attention_page_f32)(const AttentionRow* rows, int64_t n, int64_t group, int64_t dim,
                             float scale, const float* keys, const float* values, int64_t stride,
                             const void* next, int64_t next_bytes);
  void (*attention_page_bf16)(const AttentionRow* rows, int64_t n, int64_t group, int64_t dim,
                              float scale, const uint16_t* keys, const uint16_t* values,
                              int64_t stride, const void* next, int64_t next_bytes);
  void (*attention_page_f8)(const AttentionRow* rows, int64_t n, int64_t group, int64_t dim,
                            float scale, const uint8_t* keys, const uint8_t* values, int64_t stride,
                            const void* next, int64_t next_bytes);

  // y = acc / l, float32 [group, dim]; y may be acc. Zeros where nothing was seen (l = 0).
  void (*attention_end)(float* y, const float* l, const float* acc, int64_t group, int64_t dim);

  // Gauges: what the other kernels are measured against.

  // Reads `bytes` bytes at p once, in order, and returns a sum that keeps the loads alive.
  uint64_t (*read_all)(const uint8_t* p, int64_t bytes);
  // `rounds` rounds of nothing but this table's widest 8-bit products of registers, added up in
  // registers; returns the operations done, a multiplication and an addition being two.
  int64_t (*multiply_peak)(int64_t rounds);
} Kernels;

// Plain loops: the reference that the others are tested against, and what any machine can run.
const Kernels* kernels_scalar(void);
// AVX2, FMA and F16C; null where the CPU or the operating system cannot.
const Kernels* kernels_avx2(void);
// AVX2, FMA, F16C and AVX-VNNI; null where the CPU or the operating system cannot.
const Kernels* kernels_avxvnni(void);
// AVX-512 F, BW, DQ, VL and VNNI; null where the CPU or the operating system cannot.
const Kernels* kernels_avx512(void);
// That with VBMI, and the same bits; null where the CPU or the operating system cannot.
const Kernels* kernels_vbmi(void);
// That with products on AMX's bf16 tiles; null where the CPU or the operating system cannot, or
// where a product of tiles at the first call was not what it must be.
const Kernels* kernels_amx(void);
// ARMv8.2 NEON with the dot product; null where the CPU cannot.
const Kernels* kernels_neon(void);
// The same with the 8-bit matrix product, and the same bits; null where the CPU cannot.
const Kernels* kernels_i8mm(void);
// That with the bf16 matrix product; null where the CPU cannot.
const Kernels* kernels_bf16(void);

#ifdef __cplusplus
}
#endif

#endif  // OSSRUN_CPU_KERNELS_H_
