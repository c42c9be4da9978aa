// RMSNorm: y = x / sqrt(mean(x^2) + eps) * w, one block a row.
#include "number.h"
#include "warp.h"

// Columns that a block reads in one go, four a load: the published models' rows are under way at
// once, with their weights, and are read once.
constexpr int kNormThreads = 256, kNormAtOnce = 3;

// x, y f32 [rows, width], w bf16 [width], width a multiple of 4; y may be x. With y null rounded
// bf16 [rows, width] gets it. grid (bucket rows)
KERNEL(256)
norm(const int* rows, float* y, bf16* rounded, const float* x, const bf16* w, int width,
     float eps) {
  await_grids();
  SHARED(float, part, kNormThreads / WARP);
  constexpr int kStep = kNormAtOnce * kNormThreads;
  const int row = blockIdx.x, count = width / 4;
  if (row >= *rows) return;
  const int64_t first = static_cast<int64_t>(row) * count;
  const float4* from = reinterpret_cast<const float4*>(x) + first;
  float4 v[kNormAtOnce];
  uint2 g[kNormAtOnce];
  const auto load = [&](int base) {
#pragma unroll
    for (int u = 0; u < kNormAtOnce; u++) {
      const int i = base + u * kNormThreads + static_cast<int>(threadIdx.x);
      v[u] = i < count ? from[i] : float4{0, 0, 0, 0};
      g[u] = i < count ? reinterpret_cast<const uint2*>(w)[i] : uint2{0, 0};
    }
  };
  float squares = 0;
  for (int base = 0; base < count; base += kStep) {
    load(base);
#pragma unroll
    for (int u = 0; u < kNormAtOnce; u++)
      squares = fmaf(v[u].x, v[u].x,
                     fmaf(v[u].y, v[u].y, fmaf(v[u].z, v[u].z, fmaf(v[u].w, v[u].w, squares))));
  }
  const float scale = 1.0f / sqrt_of(block_sum(squares, part) / static_cast<float>(width) + eps);
  for (int base = 0; base < count; base += kStep) {
    if (count > kStep) load(base);
#pragma unroll
    for (int u = 0; u < kNormAtOnce; u++) {
      const int i = base + u * kNormThreads + static_cast<int>(threadIdx.x);
      if (i >= count) continue;
      const float4 t = {v[u].x * scale * low_bf16(g[u].x), v[u].y * scale * high_bf16(g[u].x),
                        v[u].z * scale * low_bf16(g[u].y), v[u].w * scale * high_bf16(g[u].y)};
      if (y)
        reinterpret_cast<float4*>(y)[first + i] = t;
      else
        reinterpret_cast<uint2*>(rounded)[first + i] =
            uint2{to_bf16x2(t.x, t.y), to_bf16x2(t.z, t.w)};
    }
  }
}
EMULATE(norm, 256)
