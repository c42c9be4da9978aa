// Prefill's experts on the matrix unit of sm_90a: prefill_wgmma.cu's results with weights as the
// unit's first operand. They go from memory through registers, where they are unpacked to bf16; an
// expert's tokens are the columns of the second operand, in shared memory.
//
// A block has kWgUp warpgroups below each other, 64 rows of weights each, by up to 128 tokens. A
// step is 64 of k: while the unit multiplies the last one, a warpgroup unpacks this one's weights,
// which were asked for two steps before, and the copies' own hardware fetches the tokens of later
// ones. An expert's tokens are divided evenly, and a tile has the least columns that hold them.
//
// What must stay true: k is a multiple of 32; weights begin at multiples of 16, and 512 bytes
// behind them are readable; rows of x are in shares (round_rows), with zeros from k on. Columns
// without a token hold another's. Weights are left times 2^-32, and their scales are stream.h's.
#include "expert.h"
#include "stream.h"
#include "wgmma.h"

#if defined(MATRIX_WGMMA)

constexpr int kWgUp = 2, kWgUpThreads = kWgUp * 128;
constexpr int kWgTokens = 128, kWgTokenStages = 4;

// A lane's weights of a step: 16 each of its two rows.
struct WgWeights {
  uint2 q[2];
  unsigned scale[2];
};

// Where a lane's weights lie: its share of row 0, and how far row 1 is.
struct WgShare {
  const uint8_t* blocks;
  const uint8_t* scales;
  int blocks_apart, scales_apart;
  __device__ __forceinline__ WgWeights fetch(int step) const {
    WgWeights w;
    w.q[0] = from_gpu_memory<uint2>(blocks + step * (kWgStep / 2));
    w.q[1] = from_gpu_memory<uint2>(blocks + blocks_apart + step * (kWgStep / 2));
    w.scale[0] = from_gpu_memory<uint8_t>(scales + step * (kWgStep / kBlock));
    w.scale[1] = from_gpu_memory<uint8_t>(scales + scales_apart + step * (kWgStep / kBlock));
    return w;
  }
};

// Two codes of a word that are four apart, by a product in place of shifts: the integer unit has
// half the rate of the others.
__device__ __forceinline__ unsigned unpack_pair(unsigned q, unsigned mask, unsigned by,
                                                unsigned factor) {
  return times_bf16x2(((q & mask) * by) & 0x81c081c0u, factor);
}

// The first operands of two of a step's four products: word i of each is row i % 2.
template <int HALF>
__device__ __forceinline__ void unpack_wg(unsigned (&a)[2][4], const WgWeights& w) {
#pragma unroll
  for (int r = 0; r < 2; r++) {
    const unsigned f = Unpacker(w.scale[r]).factor, q = HALF ? w.q[r].y : w.q[r].x, upper = q >> 8;
    a[0][r] = unpack_pair(q, 0x000f000fu, 0x1040u, f);
    a[0][2 + r] = unpack_pair(q, 0x00f000f0u, 0x0104u, f);
    a[1][r] = unpack_pair(upper, 0x000f000fu, 0x1040u, f);
    a[1][2 + r] = unpack_pair(upper, 0x00f000f0u, 0x0104u, f);
  }
}

// The rows of a tile's tokens: a thread copies piece threadIdx.x % 8 of every kApart-th.
template <int N>
struct WgTokens {
  static constexpr int kApart = kWgUpThreads / 8;
  const bf16* x;        // at its piece
  int row[N / kApart];  // where they begin; far below 2^31
  __device__ __forceinline__ void copy(Copies& copies, bf16* stage, int step) const {
#pragma unroll
    for (int i = 0; i < N / kApart; i++)
      copy_ahead(copies, stage + operand_at(threadIdx.x / 8 + i * kApart, threadIdx.x % 8 * 8),
                 x + row[i] + step * kWgStep, true);
  }
};

// Asks for two products, and waits for the two before, whose first operands were in `older`.
template <int N>
__device__ __forceinline__ void multiply_wg(Pending& pending, float (&sum)[N / 2],
                                            const unsigned (&a)[2][4], unsigned (&older)[2][4],
                                            uint64_t b) {
  begin_products(sum);
  issue<N>(pending, sum, a[0], b);
  issue<N>(pending, sum, a[1], b + 2);  // 16 further of k are 32 bytes
  commit(pending);
  wait_older(pending, older);
}

struct WgExperts {
  float* y;
  const int* order;
  const bf16* x;
  const uint8_t* blocks;
  const uint8_t* scales;
  const bf16* bias;
  int n, k, top;
  float limit;
};

// A tile of an expert's rows by its tokens at places begin to end of order, at most N.
template <bool GATED, int N>
__device__ __forceinline__ void direct_tile(const WgExperts& e, bf16* stages, int expert, int begin,
                                            int end) {
  constexpr int kStages = kWgTokenStages, kStage = N * kWgStep;
  const int share = threadIdx.x % 4, n = e.n, k = e.k, steps = (k + kWgStep - 1) / kWgStep;
  // The unit's rows lane / 4 and eight below are an expert's gate and up, or eight apart too.
  const int own = blockIdx.x * (kWgUp * kWgRows) + threadIdx.x / WARP * 16 +
                  threadIdx.x % WARP / 4 * (GATED ? 2 : 1);
  const int next = own + (GATED ? 1 : 8);
  WgShare weights;
  {
    const int first = own < n ? own : n - 1, second = next < n ? next : n - 1;
    const int64_t row = static_cast<int64_t>(expert) * n + first;
    weights.blocks = e.blocks + row * (k / 2) + share * 8;
    weights.scales = e.scales + row * (k / kBlock) + share / 2;
    weights.blocks_apart = (second - first) * (k / 2);
    weights.scales_apart = (second - first) * (k / kBlock);
  }
  WgWeights w[2] = {weights.fetch(0), weights.fetch(1)};
  WgTokens<N> tokens;
  tokens.x = e.x + threadIdx.x % 8 * 8;
#pragma unroll
  for (int i = 0; i < N / tokens.kApart; i++) {
    const int place = begin + threadIdx.x / 8 + i * tokens.kApart;
    tokens.row[i] = e.order[place < end ? place : end - 1] / e.top * (steps * kWgStep);
  }
  Copies copies = {};
#pragma unroll
  for (int i = 0; i < kStages - 2; i++) {
    if (i < steps) tokens.copy(copies, stages + i * kStage, i);
    commit_copies(copies);
  }
  float sum[N / 2];
#pragma unroll
  for (int i = 0; i < N / 2; i++) sum[i] = 0;
  unsigned a[2][2][4] = {};
  Pending pending = {};
  unsigned stage = 0;
  for (int turn = 0; turn < steps; turn += 2) {
#pragma unroll
    for (int u = 0; u < 2; u++) {
      const int step = turn + u;
      if (step >= steps) break;
      unpack_wg<0>(a[0], w[u]);
      arrive(copies);  // this step's tokens; the next one's may be under way
      publish();
      __syncthreads();  // this stage is filled, and all have multiplied the one before the last
      if (step + kStages - 2 < steps)
        tokens.copy(copies, stages + (stage ^ 2) * kStage, step + kStages - 2);
      commit_copies(copies);
      const uint64_t b = descriptor(stages + stage * kStage);
      multiply_wg<N>(pending, sum, a[0], a[1], b);
      unpack_wg<1>(a[1], w[u]);
      w[u] = weights.fetch(step + 2);
      multiply_wg<N>(pending, sum, a[1], a[0], b + 4);
      stage = (stage + 1) % kStages;
    }
  }
  wait(pending, sum);
  arrive_all(copies);
  const bf16* const add = e.bias + static_cast<int64_t>(expert) * n;
  const float bias0 = own < n ? from_bf16(add[own]) : 0;
  const float bias1 = next < n ? from_bf16(add[next]) : 0;
#pragma unroll
  for (int i = 0; i < N / 2; i += i % 2 ? 3 : 1) {  // row 0; row 1 has its sums two behind
    const int place = begin + wg_column(threadIdx.x, i);
    if (place >= end || own >= n) continue;
    float* const to = e.y + static_cast<int64_t>(e.order[place]) * (GATED ? n / 2 : n);
    const float v0 = fmaf(sum[i], kStreamUnscale, bias0);
    const float v1 = fmaf(sum[i + 2], kStreamUnscale, bias1);
    if (GATED) {
      to[own / 2] = clamped_swiglu(v0, v1, e.limit);
    } else {
      to[own] = v0;
      if (next < n) to[next] = v1;
    }
  }
}

template <bool GATED>
__device__ __forceinline__ void direct_experts(const WgExperts& e, const int* groups) {
  DYNAMIC_SHARED(bf16, dynamic);
  bf16* const stages = operands_in(dynamic);
  int expert, begin, end;
  if (!find_even_tile(groups, blockIdx.y, kWgTokens, &expert, &begin, &end))
    return;  // the whole block
  const int live = end - begin;
  if (live > 96)
    direct_tile<GATED, 128>(e, stages, expert, begin, end);
  else if (live > 64)
    direct_tile<GATED, 96>(e, stages, expert, begin, end);
  else if (live > 32)
    direct_tile<GATED, 64>(e, stages, expert, begin, end);
  else
    direct_tile<GATED, 32>(e, stages, expert, begin, end);
}

// gate_up for many rows: n is the width of h; x bf16 [rows, k] in shares (round_rows).
// grid (ceil(2n / 128), ceil(bucket slots / 128) + experts), shared 66560
KERNEL(256, 2)
prefill_gate_up_direct_wgmma(float* h, const int* order, const int* groups, const bf16* x,
                             const uint8_t* blocks, const uint8_t* scales, const bf16* bias, int n,
                             int k, int top, float limit) {
  direct_experts<true>({h, order, x, blocks, scales, bias, 2 * n, k, top, limit}, groups);
}
EMULATE(prefill_gate_up_direct_wgmma, 256)

// down for many rows: h bf16 [slots, k] in shares (round_rows).
// grid (ceil(n / 128), ceil(bucket slots / 128) + experts), shared 66560
KERNEL(256, 2)
prefill_down_direct_wgmma(float* y, const int* order, const int* groups, const bf16* h,
                          const uint8_t* blocks, const uint8_t* scales, const bf16* bias, int n,
                          int k) {
  direct_experts<false>({y, order, h, blocks, scales, bias, n, k, 1, 0}, groups);
}
EMULATE(prefill_down_direct_wgmma, 256)

// matrix_proof_wgmma with a in registers. grid (1), shared 25600
KERNEL(128)
matrix_proof_direct_wgmma(float* c, const bf16* a, const bf16* b) {
  DYNAMIC_SHARED(bf16, dynamic);
  bf16* const bs = operands_in(dynamic);
  for (int i = threadIdx.x; i < kWgColumns * 16; i += 128) bs[operand_at(i / 16, i % 16)] = b[i];
  publish();
  __syncthreads();
  unsigned own[4];
  const unsigned* const words = reinterpret_cast<const unsigned*>(a);
  const int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4;
#pragma unroll
  for (int i = 0; i < 4; i++) own[i] = words[(row + i % 2 * 8) * 8 + i / 2 * 4 + threadIdx.x % 4];
  float sum[kWgSums];
#pragma unroll
  for (int i = 0; i < kWgSums; i++) sum[i] = 0;
  Pending pending = {};
  begin_products(sum);
  issue<kWgColumns>(pending, sum, own, descriptor(bs));
  commit(pending);
  wait(pending, sum);
#pragma unroll
  for (int i = 0; i < kWgSums; i++)
    c[wg_row(threadIdx.x, i) * kWgColumns + wg_column(threadIdx.x, i)] = sum[i];
}
EMULATE(matrix_proof_direct_wgmma, 128)

#endif
