// Dense matrices whose weights are kept in 8 bits: linear and decode_linear on the copy that
// package models/q8 makes, with activations as quantize leaves them.
//
// Sums within a block of 32 columns are integers; a block adds scale times scale times its sum.
#include "decode.h"
#include "weights_q8.h"

// y[row, column] of x · wᵀ, the activations q i8 [rows, k] with d f32 [rows, k/16] as quantize left
// them; w u8 [ceil(n/8), k/32, 272], bias bf16 [n] or null; y, stride and add as in linear. One
// warp a result. grid (ceil(n / (256 / WARP)), bucket rows)
KERNEL(256)
linear_q8(const int* rows, float* y, const int8_t* q, const float* d, const uint8_t* w,
          const bf16* bias, int k, int n, int stride, int add) {
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

// A warp makes the eight results of a group for ROWS rows. A lane reads 16 bytes at a time, four
// rows of weights by four columns: lane % 16 says which of a block, lane / 16 which of the warp's
// blocks.
template <int ROWS>
__device__ __forceinline__ void linear_q8_rows(const int* rows, float* y, const int8_t* q,
                                               const float* d, const uint8_t* w, const bf16* bias,
                                               int k, int n, int stride, int add) {
  DYNAMIC_SHARED(unsigned, staged);  // ROWS times k bytes, then ROWS times k/32 scales
  const int live = *rows, row0 = blockIdx.x * ROWS;
  if (row0 >= live) return;  // the whole block
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
  constexpr int kPieces = 16, kBlocksAtOnce = WARP / kPieces;
  constexpr int kAtOnce = ROWS > 1 ? kInFlightOfMany : kInFlight;
  const int lane = threadIdx.x % WARP, warp = warp_of(threadIdx.x), blocks = k / kBlock;
  const int piece = lane % kPieces, quad = piece / 2, half = piece % 2;
  const int groups = (n + kGroupRows - 1) / kGroupRows;
  for (int g = blockIdx.y * kDecodeWarps + warp; g < groups; g += gridDim.y * kDecodeWarps) {
    const uint8_t* group = w + static_cast<int64_t>(g) * blocks * kGroupBlock;
    float sum[ROWS][4] = {};
    for (int base = 0; base < blocks; base += kAtOnce * kBlocksAtOnce) {
      const int first = base + lane / kPieces;
      uint4 v[kAtOnce];
      uint2 s[kAtOnce];
#pragma unroll
      for (int u = 0; u < kAtOnce; u++) {
        const int b = first + u * kBlocksAtOnce;
        const uint8_t* block = group + static_cast<int64_t>(b) * kGroupBlock;
        const bool in = b < blocks;
        v[u] = in ? stream16(block + kGroupRows * 2 + piece * 16) : uint4{0, 0, 0, 0};
        s[u] = in ? reinterpret_cast<const uint2*>(block)[half] : uint2{0, 0};
      }
      asked();
#pragma unroll
      for (int u = 0; u < kAtOnce; u++) {
        const int b = first + u * kBlocksAtOnce < blocks ? first + u * kBlocksAtOnce : 0;
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
    }
    float v = 0;  // of the lane's own row and column: lane 8r + i has row r, column i of the group
#pragma unroll
    for (int r = 0; r < ROWS; r++)
#pragma unroll
      for (int i = 0; i < 4; i++) {
        float all = sum[r][i];  // over the lanes of the same half
#pragma unroll
        for (int e = 2; e < WARP; e <<= 1) all += __shfl_xor_sync(FULL, all, e);
        const float other = __shfl_xor_sync(FULL, all, 1);
        if (lane == 8 * r + i) v = half == 0 ? all : other;
        if (lane == 8 * r + 4 + i) v = half == 1 ? all : other;
      }
    const int row = row0 + lane / kGroupRows, c = g * kGroupRows + lane % kGroupRows;
    if (lane >= kGroupRows * ROWS || row >= live || c >= n) continue;
    float* to = y + static_cast<int64_t>(row) * stride + c;
    if (bias) v += from_bf16(bias[c]);
    *to = add ? *to + v : v;
  }
}

// linear_q8 for few rows; q at multiples of 8, w at multiples of 16.
// grid (bucket rows, any), shared k + k/8
KERNEL(256, 3)
decode_linear_q8_1(const int* rows, float* y, const int8_t* q, const float* d, const uint8_t* w,
                   const bf16* bias, int k, int n, int stride, int add) {
  linear_q8_rows<1>(rows, y, q, d, w, bias, k, n, stride, add);
}
EMULATE(decode_linear_q8_1, 256)

// grid (ceil(bucket rows / 4), any), shared 4 * (k + k/8)
KERNEL(256, 2)
decode_linear_q8_4(const int* rows, float* y, const int8_t* q, const float* d, const uint8_t* w,
                   const bf16* bias, int k, int n, int stride, int add) {
  linear_q8_rows<4>(rows, y, q, d, w, bias, k, n, stride, add);
}
EMULATE(decode_linear_q8_4, 256)
