// Dense matrices whose weights are kept in 8 bits: linear and decode_linear on the copy that
// package models/q8 makes, with activations as quantize leaves them.
//
// Sums within a block of 32 columns are integers; a block adds scale times scale times its sum.
#include "pieces.h"
#include "weights_q8.h"

// y[row, column] of x · wᵀ, the activations q i8 [rows, k] with d f32 [rows, k/16] as quantize left
// them; w u8 [ceil(n/8), k/32, 272], bias bf16 [n] or null; y, stride and add as in linear. One
// warp a result. grid (ceil(n / (256 / WARP)), bucket rows)
KERNEL(256)
linear_q8(const int* rows, float* y, const int8_t* q, const float* d, const uint8_t* w,
          const bf16* bias, int k, int n, int stride, int add) {
  await_grids();
  const int lane = threadIdx.x % WARP, row = blockIdx.y;
  const int column = blockIdx.x * (blockDim.x / WARP) + threadIdx.x / WARP;
  if (row >= *rows || column >= n) return;  // whole warps
  const int own = column % kGroupRows;
  const uint8_t* group = w + static_cast<int64_t>(column / kGroupRows) * (k / kBlock) * kGroupBlock;
  float sum = 0;
  for (int b = lane; b < k / kBlock; b += WARP) {
    const uint8_t* block = group + static_cast<int64_t>(b) * kGroupBlock;
    const int8_t* x = q + static_cast<int64_t>(row) * k + b * kBlock;
    int whole = 0;
    for (int i = 0; i < kBlock; i++) {
      const int at = i / 8 * 8 + q8_place(i % 8);
      const uint8_t v = block[kGroupRows * 2 + at / 4 * (4 * kGroupRows) + own * 4 + at % 4];
      whole += static_cast<int>(static_cast<int8_t>(v)) * x[i];
    }
    const float scale = from_bf16(reinterpret_cast<const bf16*>(block)[own]);
    sum = fmaf(scale * d[static_cast<int64_t>(row) * (k / 16) + 2 * b], static_cast<float>(whole),
               sum);
  }
  sum = warp_sum(sum);
  if (lane != 0) return;
  if (bias) sum += from_bf16(bias[column]);
  float* to = y + static_cast<int64_t>(row) * stride + column;
  *to = add ? *to + sum : sum;
}
EMULATE(linear_q8, 256)

// The sum of four products of bytes.
__device__ __forceinline__ int dot4_i8(unsigned a, unsigned b) {
#if defined(GPU_NVIDIA)
  int r;
  asm("dp4a.s32.s32 %0, %1, %2, 0;" : "=r"(r) : "r"(a), "r"(b));
  return r;
#elif defined(GPU_AMD) && defined(__GFX9__)
  return __builtin_amdgcn_sdot4(static_cast<int>(a), static_cast<int>(b), 0, false);
#elif defined(GPU_AMD)
  return __builtin_amdgcn_sudot4(true, static_cast<int>(a), true, static_cast<int>(b), 0, false);
#else
  int sum = 0;
  for (int i = 0; i < 32; i += 8)
    sum += static_cast<int>(static_cast<int8_t>(a >> i)) * static_cast<int8_t>(b >> i);
  return sum;
#endif
}

// A block makes the eight results of a group of columns for ROWS rows; its warps divide k between
// them, so that a matrix of few columns has work for all processors, and their sums meet in shared
// memory. A lane reads 16 bytes at a time, four rows of weights by four columns: lane % 16 says
// which of a block, lane / 16 which of the warp's blocks.
template <int ROWS>
__device__ __forceinline__ void linear_q8_rows(const int* rows, float* y, const int8_t* q,
                                               const float* d, const uint8_t* w0, const bf16* bias0,
                                               const uint8_t* w1, const bf16* bias1,
                                               const uint8_t* w2, const bf16* bias2, int n0, int n1,
                                               int n2, int k, int stride, int add) {
  constexpr int kPieces = 16, kBlocksAtOnce = WARP / kPieces, kAtOnce = 3;
  constexpr int kResults = ROWS * kGroupRows, kRound = kAtOnce * kBlocksAtOnce;
  SHARED(float, part, 2 * kDecodeWarps * kResults);
  DYNAMIC_SHARED(unsigned, staged);  // ROWS times k bytes, then ROWS times k/32 scales
  const int live = *rows, row0 = blockIdx.x * ROWS;
  const int lane = threadIdx.x % WARP, warp = warp_of(threadIdx.x), blocks = k / kBlock;
  const int piece = lane % kPieces, quad = piece / 2, half = piece % 2;
  const int groups = (n0 + kGroupRows - 1) / kGroupRows + (n1 + kGroupRows - 1) / kGroupRows +
                     (n2 + kGroupRows - 1) / kGroupRows;
  uint4 v[kAtOnce];
  uint2 s[kAtOnce];
  const uint8_t* group = nullptr;
  const auto ask = [&](int base) {
#pragma unroll
    for (int u = 0; u < kAtOnce; u++) {
      const int b = base + lane / kPieces + u * kBlocksAtOnce;
      const uint8_t* const block = group + static_cast<int64_t>(b) * kGroupBlock;
      const bool in = b < blocks;
      v[u] = in ? stream16(block + kGroupRows * 2 + piece * 16) : uint4{0, 0, 0, 0};
      s[u] = in ? from_gpu_memory<uint2>(block + half * 8) : uint2{0, 0};
    }
    asked();
  };
  const auto aim = [&](int g) {
    const auto own = own_columns<kGroupRows>(g, w0, bias0, w1, bias1, w2, bias2, n0, n1, n2);
    group = own.w + static_cast<int64_t>(own.first / kGroupRows) * blocks * kGroupBlock;
    ask(warp * kRound);
  };
  if (static_cast<int>(blockIdx.y) < groups) aim(blockIdx.y);
  if (row0 >= live) return;  // the whole block
  await_grids();
  float* const scales = reinterpret_cast<float*>(staged + ROWS * (k / 4));
#pragma unroll
  for (int r = 0; r < ROWS; r++) {
    const int64_t row = row0 + r;
    for (int i = threadIdx.x; i < k / 8; i += kDecodeThreads) {
      uint2 v = {0, 0};
      if (row < live) v = deal(reinterpret_cast<const uint2*>(q + row * k)[i]);
      staged[r * (k / 4) + 2 * i] = v.x;
      staged[r * (k / 4) + 2 * i + 1] = v.y;
    }
    for (int b = threadIdx.x; b < k / kBlock; b += kDecodeThreads)
      scales[r * (k / kBlock) + b] = row < live ? d[row * (k / 16) + 2 * b] : 0.0f;
  }
  __syncthreads();
  int turn = 0;
  for (int g = blockIdx.y; g < groups; g += gridDim.y) {
    float sum[ROWS][4] = {};
    for (int base = warp * kRound; base < blocks; base += kDecodeWarps * kRound) {
#pragma unroll
      for (int u = 0; u < kAtOnce; u++) {
        const int at = base + lane / kPieces + u * kBlocksAtOnce, b = at < blocks ? at : 0;
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
          const unsigned x = staged[r * (k / 4) + b * (kBlock / 4) + quad];
          const float scale = scales[r * blocks + b];
          sum[r][0] =
              fmaf(low_bf16(s[u].x) * scale, static_cast<float>(dot4_i8(v[u].x, x)), sum[r][0]);
          sum[r][1] =
              fmaf(high_bf16(s[u].x) * scale, static_cast<float>(dot4_i8(v[u].y, x)), sum[r][1]);
          sum[r][2] =
              fmaf(low_bf16(s[u].y) * scale, static_cast<float>(dot4_i8(v[u].z, x)), sum[r][2]);
          sum[r][3] =
              fmaf(high_bf16(s[u].y) * scale, static_cast<float>(dot4_i8(v[u].w, x)), sum[r][3]);
        }
      }
      if (base + kDecodeWarps * kRound < blocks) ask(base + kDecodeWarps * kRound);
    }
    if (g + static_cast<int>(gridDim.y) < groups) aim(g + gridDim.y);
    float value = 0;  // of the lane's own row and column: lane 8r + i has row r, column i
#pragma unroll
    for (int r = 0; r < ROWS; r++)
#pragma unroll
      for (int i = 0; i < 4; i++) {
        float all = sum[r][i];  // over the lanes of the same half
#pragma unroll
        for (int e = 2; e < WARP; e <<= 1) all += __shfl_xor_sync(FULL, all, e);
        const float other = __shfl_xor_sync(FULL, all, 1);
        if (lane == 8 * r + i) value = half == 0 ? all : other;
        if (lane == 8 * r + 4 + i) value = half == 1 ? all : other;
      }
    float* const sums = part + turn * kDecodeWarps * kResults;
    turn ^= 1;  // the next group's go to the other half: one barrier is enough
    if (lane < kResults) sums[warp * kResults + lane] = value;
    __syncthreads();
    const auto done = own_columns<kGroupRows>(g, w0, bias0, w1, bias1, w2, bias2, n0, n1, n2);
    const int row = row0 + threadIdx.x / kGroupRows, c = done.first + threadIdx.x % kGroupRows;
    if (threadIdx.x >= kResults || row >= live || c >= done.n) continue;
    float total = 0;
#pragma unroll
    for (int i = 0; i < kDecodeWarps; i++) total += sums[i * kResults + threadIdx.x];
    if (done.bias) total += from_bf16(done.bias[c]);
    float* const to = y + static_cast<int64_t>(row) * stride + done.begin + c;
    *to = add ? *to + total : total;
  }
}

// linear_q8 for few rows of up to three matrices side by side, as in prefill_linear; q at multiples
// of 8, w at multiples of 16.
// grid (ceil(bucket rows / ROWS), any), shared ROWS * (k + k/8); ROWS ends the name
#define DECODE_LINEAR_Q8(ROWS, BLOCKS)                                                             \
  KERNEL(256, BLOCKS)                                                                              \
  decode_linear_q8_##ROWS(const int* rows, float* y, const int8_t* q, const float* d,              \
                          const uint8_t* w0, const bf16* bias0, const uint8_t* w1,                 \
                          const bf16* bias1, const uint8_t* w2, const bf16* bias2, int n0, int n1, \
                          int n2, int k, int stride, int add) {                                    \
    linear_q8_rows<ROWS>(rows, y, q, d, w0, bias0, w1, bias1, w2, bias2, n0, n1, n2, k, stride,    \
                         add);                                                                     \
  }                                                                                                \
  EMULATE(decode_linear_q8_##ROWS, 256)
DECODE_LINEAR_Q8(1, 3)
DECODE_LINEAR_Q8(4, 2)
