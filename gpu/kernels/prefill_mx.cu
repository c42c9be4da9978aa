// Prefill's experts on a matrix unit that knows MXFP4: weights as released, and activations cut
// into two MXFP4 terms, so that every product is between codes and nothing is unpacked.
//
// A term's scale is the least power of two at which the largest of its block of 32 does not exceed
// 6, so a term leaves at most a fifth of that largest: two terms leave at most a 25th of the
// largest of the block, element by element. prefill.cu with one term is there for bf16's 2^-9.
//
// A block makes 128 rows by 128 columns, 128 of k at a time; what the next step needs is under way
// in registers while this one is multiplied.
//
// What must stay true: k is a multiple of 32; weights and codes begin at multiples of 16.
#include "expert.h"
#include "matrix_mx.h"

constexpr int kMxTerms = 2;

// The code of y >= 0: to nearest, ties to even.
__device__ __forceinline__ unsigned to_e2m1(float y) {
  return (y > 0.25f) + (y >= 0.75f) + (y > 1.25f) + (y >= 1.75f) + (y > 2.5f) + (y >= 3.5f) +
         (y > 5.0f);
}

// q u8 [rows, 2, width/2] and s u8 [rows, 2, width/32]: x f32 [rows, width] in two terms, codes and
// scales as the weights have them. A block with a NaN or an infinity has NaN for a scale; one whose
// largest is below 2^-124 counts as zero. One thread a block of 32.
// grid (ceil(width / 32 / 64), bucket rows)
KERNEL(64)
quantize_mx(const int* rows, uint8_t* q, uint8_t* s, const float* x, int width) {
  await_grids();
  const int row = blockIdx.y, b = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= *rows || b >= width / kBlock) return;
  float v[kBlock];
#pragma unroll
  for (int i = 0; i < kBlock; i++) v[i] = x[static_cast<int64_t>(row) * width + b * kBlock + i];
  for (int t = 0; t < kMxTerms; t++) {
    unsigned largest = 0;  // of the magnitudes' bits, which order as they do
#pragma unroll
    for (int i = 0; i < kBlock; i++) {
      const unsigned u = __float_as_uint(v[i]) & 0x7fffffffu;
      largest = u > largest ? u : largest;
    }
    const bool finite = largest < 0x7f800000u, zero = largest < 3u << 23;
    // 6 is 1.5 times 2^2.
    const unsigned scale = !finite ? 255u
                           : zero  ? 0u
                                   : (largest >> 23) - 2 + ((largest & 0x7fffffu) > 0x400000u);
    const float up = __uint_as_float((254u - scale) << 23), down = __uint_as_float(scale << 23);
    const int64_t at = (static_cast<int64_t>(row) * kMxTerms + t) * width;
    unsigned codes[4] = {};
#pragma unroll
    for (int n = 0; n < 4; n++) {
#pragma unroll
      for (int i = 0; i < 8; i++) {
        float& e = v[n * 8 + i];
        const unsigned code = finite && !zero ? to_e2m1(fabsf(e) * up) : 0;
        const unsigned sign = __float_as_uint(e) >> 31;
        codes[n] |= (sign << 3 | code) << 4 * i;
        if (finite && !zero) e -= from_e2m1(sign << 3 | code) * down;
      }
    }
    *reinterpret_cast<uint4*>(q + at / 2 + b * (kBlock / 2)) =
        uint4{codes[0], codes[1], codes[2], codes[3]};
    s[at / kBlock + b] = static_cast<uint8_t>(scale);
  }
}
EMULATE(quantize_mx, 64)

#if defined(MATRIX_MX)

constexpr int kMxRows = 128, kMxColumns = 128, kMxThreads = 256;
constexpr int kMxResultStride = kMxColumns + 4;
// Warps stand 2 by kMxWarpsAcross over the tile; each has 64 rows by kMxAcross * 16 columns.
constexpr int kMxWarpsAcross = kMxThreads / WARP / 2;
constexpr int kMxAcross = kMxColumns / kMxWarpsAcross / 16;
constexpr int kMxDown = kMxRows / 2 / 16;

// A thread's share of 128 rows of 128 codes: block threadIdx.x % 4 of rows threadIdx.x / 4 + 64 n,
// with its scale.
struct MxRows {
  const uint8_t* codes[2];  // the row, or null
  const uint8_t* scales[2];
  uint4 v[2];
  uint8_t scale[2];
  __device__ __forceinline__ void fetch(int block, int blocks) {
    const int b = block + threadIdx.x % 4;
#pragma unroll
    for (int n = 0; n < 2; n++) {
      v[n] = uint4{0, 0, 0, 0};
      scale[n] = 0;
      if (!codes[n] || b >= blocks) continue;
      v[n] = from_gpu_memory<uint4>(codes[n] + b * (kBlock / 2));
      scale[n] = scales[n][b];
    }
  }
  __device__ __forceinline__ void put(uint8_t* to, unsigned* to_scales) const {
#pragma unroll
    for (int n = 0; n < 2; n++) {
      const int row = threadIdx.x / 4 + n * 64;
      *reinterpret_cast<uint4*>(to + row * kMxStride + threadIdx.x % 4 * 16) = v[n];
      reinterpret_cast<uint8_t*>(to_scales + row)[threadIdx.x % 4] = scale[n];
    }
  }
};

template <bool GATED>
__device__ __forceinline__ void expert_tile_mx(float* y, const int* order, const int* groups,
                                               const uint8_t* q, const uint8_t* s,
                                               const uint8_t* blocks, const uint8_t* scales,
                                               const bf16* bias, int n, int k, int top,
                                               float limit) {
  await_grids();
  DYNAMIC_SHARED(float, result);  // half of the tile at a time, where the operands were
  uint8_t* const as = reinterpret_cast<uint8_t*>(result);
  uint8_t* const bs = as + kMxTerms * kMxRows * kMxStride;
  unsigned* const a_scales = reinterpret_cast<unsigned*>(bs + kMxColumns * kMxStride);
  unsigned* const b_scales = a_scales + kMxTerms * kMxRows;
  const auto [group, expert, begin, end] = tile_at(groups, blockIdx.y, kMxRows);
  if (end == 0) return;  // the whole block
  const int column0 = blockIdx.x * kMxColumns;
  const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
  MxRows a[kMxTerms], b;
#pragma unroll
  for (int i = 0; i < 2; i++) {
    const int place = begin + threadIdx.x / 4 + i * 64, c = column0 + threadIdx.x / 4 + i * 64;
    const int64_t from = place < end ? order[place] / top : 0;
#pragma unroll
    for (int t = 0; t < kMxTerms; t++) {
      a[t].codes[i] = place < end ? q + (from * kMxTerms + t) * (k / 2) : nullptr;
      a[t].scales[i] = s + (from * kMxTerms + t) * (k / kBlock);
    }
    const int64_t weight = static_cast<int64_t>(expert) * n + c;
    b.codes[i] = c < n ? blocks + weight * (k / 2) : nullptr;
    b.scales[i] = scales + weight * (k / kBlock);
  }
  const int down = warp / kMxWarpsAcross * (kMxRows / 2);
  const int across = warp % kMxWarpsAcross * (kMxAcross * 16);
  Sums sum[kMxDown][kMxAcross] = {};
  const int all = k / kBlock;
  const auto fetch = [&](int block) {
#pragma unroll
    for (int t = 0; t < kMxTerms; t++) a[t].fetch(block, all);
    b.fetch(block, all);
  };
  fetch(0);
  for (int block = 0; block < all; block += kMxK / kBlock) {
    __syncthreads();  // the step before has been multiplied
#pragma unroll
    for (int t = 0; t < kMxTerms; t++)
      a[t].put(as + t * kMxRows * kMxStride, a_scales + t * kMxRows);
    b.put(bs, b_scales);
    __syncthreads();
    if (block + kMxK / kBlock < all) fetch(block + kMxK / kBlock);
    MxFragment fb[kMxAcross];
#pragma unroll
    for (int j = 0; j < kMxAcross; j++)
      fb[j] = load_mx_b(bs + (across + j * 16) * kMxStride, b_scales + across + j * 16, lane);
#pragma unroll
    for (int t = 0; t < kMxTerms; t++)
#pragma unroll
      for (int i = 0; i < kMxDown; i++) {
        const int row = t * kMxRows + down + i * 16;
        const MxFragment fa = load_mx_a(as + row * kMxStride, a_scales + row, lane);
#pragma unroll
        for (int j = 0; j < kMxAcross; j++) multiply_mx(sum[i][j], fa, fb[j]);
      }
  }
  constexpr int kStep = GATED ? 2 : 1, kColumns = kMxColumns / kStep;
  for (int first = 0; first < kMxRows; first += kMxRows / 2) {
    __syncthreads();  // what lies here has been read
    if (down == first) {
#pragma unroll
      for (int i = 0; i < kMxDown; i++)
#pragma unroll
        for (int j = 0; j < kMxAcross; j++)
#pragma unroll
          for (int e = 0; e < kFragmentSums; e++)
            result[(i * 16 + sum_row(lane, e)) * kMxResultStride + across + j * 16 +
                   sum_column(lane, e)] = sum[i][j].v[e];
    }
    __syncthreads();
    for (int i = threadIdx.x; i < kMxRows / 2 * kColumns; i += kMxThreads) {
      const int place = begin + first + i / kColumns, c = column0 + i % kColumns * kStep;
      if (place >= end || c >= n) continue;
      const float* v = result + i / kColumns * kMxResultStride + i % kColumns * kStep;
      y[static_cast<int64_t>(order[place]) * (n / kStep) + c / kStep] =
          expert_result<GATED>(v, bias + static_cast<int64_t>(expert) * n + c, limit);
    }
  }
}

// gate_up for many rows: n is the width of h; q and s of x's rows as quantize_mx left them.
// grid (ceil(2n / 128), ceil(bucket slots / 128) + experts), shared 33792
KERNEL(256)
prefill_gate_up_mx(float* h, const int* order, const int* groups, const uint8_t* q,
                   const uint8_t* s, const uint8_t* blocks, const uint8_t* scales, const bf16* bias,
                   int n, int k, int top, float limit) {
  expert_tile_mx<true>(h, order, groups, q, s, blocks, scales, bias, 2 * n, k, top, limit);
}
EMULATE(prefill_gate_up_mx, 256)

// down for many rows; q and s of h's slots.
// grid (ceil(n / 128), ceil(bucket slots / 128) + experts), shared 33792
KERNEL(256)
prefill_down_mx(float* y, const int* order, const int* groups, const uint8_t* q, const uint8_t* s,
                const uint8_t* blocks, const uint8_t* scales, const bf16* bias, int n, int k) {
  expert_tile_mx<false>(y, order, groups, q, s, blocks, scales, bias, n, k, 1, 0);
}
EMULATE(prefill_down_mx, 256)

#endif
