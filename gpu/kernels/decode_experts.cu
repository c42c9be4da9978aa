// Decode's experts: norm, router and choice; gate and up with SwiGLU; down with the weighted sum
// and the residual. A slot reads its expert's weights by itself: a step of few rows rarely meets an
// expert twice, and then finds it in the second cache, since the slots' blocks of the same columns
// are neighbours along x and run together.
#include "decode.h"
#include "route.h"

// t[row] = RMSNorm(x[row]) by norm, router[row] = t · w + bias, then the choice. t f32 [rows, k],
// or if it is null rounded as by round_rows; router f32 [rows, count], w bf16 [count, k];
// arrived i32 [rows], 0 before and after.
// Then, if order is not null, order and groups as by route_group, with which shared memory must do.
// grid (bucket rows, ceil(count / (256 / WARP))), shared 4 * k
KERNEL(256, 2)
decode_route(const int* rows, int* experts, float* weights, int* order, int* groups, float* t,
             bf16* rounded, int form, float* router, int* arrived, const float* x, const bf16* norm,
             const bf16* w, const bf16* bias, int k, int count, int top, float eps) {
  DYNAMIC_SHARED(float4, staged);
  SHARED(float, part, kDecodeWarps);
  SHARED(int, flag, 1);
  const int row = blockIdx.x, live = *rows, blocks = gridDim.y;  // of a row
  const int lane = threadIdx.x % WARP, warp = warp_of(threadIdx.x);
  const int e = blockIdx.y * kDecodeWarps + warp;
  const bf16* const columns[1] = {w + static_cast<int64_t>(e) * k};
  Pieces<1, 3 * kInFlight> ahead = {};  // all of a row of 2,880, or most
  if (e < count) ahead.ask(columns, 0, k / 8, lane);
  if (row >= live) return;  // the whole block
  stage_rows<1>(threadIdx.x, staged, x + static_cast<int64_t>(row) * k, norm, k, 1, part);
  __syncthreads();
  const float scale = norm_scale(part, 0, k, eps);
  if (e < count) {
    float sum[1][1] = {};
    dot_bf16(sum, ahead, staged, columns, k, lane);
    const float v = warp_sum(sum[0][0]) * scale;
    if (lane == 0)
      router[static_cast<int64_t>(row) * count + e] = bias ? v + from_bf16(bias[e]) : v;
  }
  const auto normed = [&](int i) {
    const float4 v = staged[staged_at(i)];
    return float4{v.x * scale, v.y * scale, v.z * scale, v.w * scale};
  };
  const int pieces = blockIdx.y > 0 ? 0 : t ? k / 4 : rounded_width(k, form) / 8;
  for (int i = threadIdx.x; i < pieces; i += kDecodeThreads)
    if (t)
      reinterpret_cast<float4*>(t + static_cast<int64_t>(row) * k)[i] = normed(i);
    else
      leave_rounded(rounded, row, i, k, form, i < k / 8 ? normed(2 * i) : float4{},
                    i < k / 8 ? normed(2 * i + 1) : float4{});
  const auto choose = [&](int64_t row) {
    choose_by_warp(experts + row * top, weights + row * top, router + row * count, count, top,
                   lane);
  };
  if (live <= kDecodeWarps) {  // the last block of all has a warp for each row
    if (!last_to_arrive(arrived, live * blocks, flag)) return;
    if (warp < live) choose(warp);
    if (!order) return;
    fence_block();  // a barrier of AMD's does not wait for the warps' stores
    __syncthreads();
  } else {
    if (!last_to_arrive(arrived + row, blocks, flag)) return;
    if (warp == 0) choose(row);
    // Row 0's counter has room for the count of rows.
    if (!order || !last_to_arrive(arrived, live, flag, kOtherUnit)) return;
  }
  SHARED(int, seen, kDecodeThreads);
  group_slots(order, groups, experts, live * top, count, reinterpret_cast<int*>(staged), seen);
}
EMULATE(decode_route, 256)

// Blocks of 32 of MXFP4 rows on their way to a lane, every WARP-th, with their scales.
template <int AT_ONCE>
struct MxPieces {
  uint4 v[AT_ONCE];
  unsigned scale[AT_ONCE];
};

// h[slot] = clamped SwiGLU of gate and up of t[slot / top]: as gate_up, by experts i32 [rows, top].
// grid (bucket slots, any), shared 4 * k
KERNEL(256, 2)
decode_gate_up(const int* rows, float* h, const int* experts, const float* t, const uint8_t* blocks,
               const uint8_t* scales, const bf16* bias, int n, int k, int top, float limit) {
  await_grids();
  DYNAMIC_SHARED(float4, staged);
  const int slot = blockIdx.x;
  if (slot >= *rows * top) return;  // the whole block
  const int lane = threadIdx.x % WARP, warp = warp_of(threadIdx.x), nb = k / kBlock;
  const int64_t expert = static_cast<int64_t>(experts[slot]) * n;
  int i = blockIdx.y * kDecodeWarps + warp;
  MxPieces<kInFlightMx> ahead = {};
  // Gate i and up i are rows 2i and 2i + 1: 2 nb blocks in a run, here from `first` on.
  const auto ask = [&](int first) {
    const int64_t run = (expert + i) * 2 * nb;
#pragma unroll
    for (int u = 0; u < kInFlightMx; u++) {
      const int at = first + u * WARP + lane;
      const bool in = at < 2 * nb;
      ahead.v[u] = in ? stream16(blocks + (run + at) * (kBlock / 2)) : uint4{0, 0, 0, 0};
      ahead.scale[u] = in ? scales[run + at] : 0;
    }
    asked();
  };
  if (i < n) ask(0);
  stage_rows<1, true>(threadIdx.x, staged, t + static_cast<int64_t>(slot / top) * k, nullptr, k, 1,
                      nullptr, kMxStage);
  __syncthreads();
  while (i < n) {
    float gate = 0, up = 0;
    int first = 0;
#pragma unroll 1  // as in dot_bf16
    do {
#pragma unroll
      for (int u = 0; u < kInFlightMx; u++) {
        if (only_zeros(first + u * WARP, 2 * nb)) break;
        const int own = first + u * WARP + lane, at = own < 2 * nb ? own : 0;
        const float part = dot_block(ahead.v[u], ahead.scale[u], staged, at < nb ? at : at - nb);
        gate += at < nb ? part : 0.0f;
        up += at < nb ? 0.0f : part;
      }
      summed(gate);
      summed(up);
      first += kInFlightMx * WARP;
      if (first < 2 * nb) ask(first);
    } while (first < 2 * nb);
    const int own = i;
    i += gridDim.y * kDecodeWarps;
    if (i < n) ask(0);
    const int64_t row = (expert + own) * 2;
    gate = warp_sum(gate) + from_bf16(bias[row]);
    up = warp_sum(up) + from_bf16(bias[row + 1]);
    if (lane == 0) h[static_cast<int64_t>(slot) * n + own] = clamped_swiglu(gate, up, limit);
  }
}
EMULATE(decode_gate_up, 256)

constexpr int kMostTop = 16;

// x[row] += the sum over the row's slots of weight * (down of h[slot] + bias): as down and combine.
// h f32 [slots, k], x f32 [rows, n]; top <= 16.
// grid (bucket rows, any), shared 4 * k * top
//
// The chosen experts' rows of one result are a sequence of top * nb blocks.
KERNEL(256, 2)
decode_down(const int* rows, float* x, const int* experts, const float* weights, const float* h,
            const uint8_t* blocks, const uint8_t* scales, const bf16* bias, int n, int k, int top) {
  await_grids();
  DYNAMIC_SHARED(float4, staged);
  SHARED(int64_t, block_of,
         kMostTop);  // where each one's row 0 begins, less its place in the sequence
  SHARED(int, expert, kMostTop);
  SHARED(float, weight, kMostTop);
  const int row = blockIdx.x;
  if (row >= *rows) return;  // the whole block
  const int64_t slot = static_cast<int64_t>(row) * top;
  const int lane = threadIdx.x % WARP, warp = warp_of(threadIdx.x), nb = k / kBlock;
  if (threadIdx.x < static_cast<unsigned>(top)) {
    const int j = threadIdx.x;
    expert[j] = experts[slot + j];
    weight[j] = weights[slot + j];
    block_of[j] = (static_cast<int64_t>(expert[j]) * n - j) * nb;
  }
  __syncthreads();
  // at / nb as a product: exact, since at and nb are far below 2^16.
  const unsigned inverse = (0xffffffffu / static_cast<unsigned>(nb)) + 1;
  const auto expert_at = [=](int at) {
    return nb == 1 ? at : static_cast<int>(static_cast<uint64_t>(at) * inverse >> 32);
  };
  int i = blockIdx.y * kDecodeWarps + warp;
  MxPieces<kInFlightDown> ahead = {};
  const auto ask = [&](int first) {
#pragma unroll
    for (int u = 0; u < kInFlightDown; u++) {
      const int at = first + u * WARP + lane;
      const bool in = at < top * nb;
      const int64_t block = block_of[in ? expert_at(at) : 0] + static_cast<int64_t>(i) * nb + at;
      ahead.v[u] = in ? stream16(blocks + block * (kBlock / 2)) : uint4{0, 0, 0, 0};
      ahead.scale[u] = in ? scales[block] : 0;
    }
    asked();
  };
  if (i < n) ask(0);
  stage_rows<1, true>(threadIdx.x, staged, h + slot * k, nullptr, top * k, 1, nullptr, kMxStage);
  __syncthreads();
  while (i < n) {
    float sum = 0;
    int first = 0;
#pragma unroll 1  // as in dot_bf16
    do {
#pragma unroll
      for (int u = 0; u < kInFlightDown; u++) {
        if (only_zeros(first + u * WARP, top * nb)) break;
        const int own = first + u * WARP + lane, at = own < top * nb ? own : 0;
        const float part = dot_block(ahead.v[u], ahead.scale[u], staged, at);
        sum = fmaf(weight[expert_at(at)], part, sum);
      }
      summed(sum);
      first += kInFlightDown * WARP;
      if (first < top * nb) ask(first);
    } while (first < top * nb);
    const int own = i;
    i += gridDim.y * kDecodeWarps;
    if (i < n) ask(0);
    sum = warp_sum(sum);
    if (lane != 0) continue;
    for (int j = 0; j < top; j++)
      sum = fmaf(weight[j], from_bf16(bias[static_cast<int64_t>(expert[j]) * n + own]), sum);
    x[static_cast<int64_t>(row) * n + own] += sum;
  }
}
EMULATE(decode_down, 256)
