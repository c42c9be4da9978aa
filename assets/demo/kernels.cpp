// Attention, rotary embedding, norm, the experts' activation and MXFP4 rounding for training on a
// CPU, float32, one thread. PyTorch's own operators spend most of a step on padding, masks and
// copies; these walk the exact rows of every prefix and branch, skip what the window hides, and
// keep the weights for the backward pass.
//
// kernels.py builds it: g++ -O3 -march=native -ffast-math -shared -fPIC kernels.cpp -o libkernels.so

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

namespace {

constexpr int D = 64;      // head dimension
constexpr int BLOCK = 48;  // query rows handled at once
using vec = float __attribute__((vector_size(32), aligned(4), may_alias));

int padded(int n) { return (n + 15) & ~15; }

template <int R>
void tile(int k, const float* a, long ar, long ak, const float* b, long ldb, float* c, long ldc,
          bool add) {
  vec x[R][2];
  for (int r = 0; r < R; r++)
    for (int j = 0; j < 2; j++) x[r][j] = add ? *(const vec*)(c + r * ldc + 8 * j) : vec{};
  for (int i = 0; i < k; i++, b += ldb, a += ak) {
    const vec b0 = *(const vec*)b, b1 = *(const vec*)(b + 8);
    for (int r = 0; r < R; r++) {
      const float s = a[r * ar];
      x[r][0] += s * b0;
      x[r][1] += s * b1;
    }
  }
  for (int r = 0; r < R; r++)
    for (int j = 0; j < 2; j++) *(vec*)(c + r * ldc + 8 * j) = x[r][j];
}

// C[m,n] = or += A[m,k] B[k,n]; A's element (i,j) lies at a[i*ar + j*ak]; n is rounded up to 16
// columns.
void multiply(int m, int n, int k, const float* a, long ar, long ak, const float* b, long ldb,
              float* c, long ldc, bool add) {
  for (int j = 0; j < n; j += 16)
    for (int i = 0; i < m; i += 6) {
      const float* ai = a + i * ar;
      float* ci = c + i * ldc + j;
      switch (std::min(6, m - i)) {
        case 6:
          tile<6>(k, ai, ar, ak, b + j, ldb, ci, ldc, add);
          break;
        case 5:
          tile<5>(k, ai, ar, ak, b + j, ldb, ci, ldc, add);
          break;
        case 4:
          tile<4>(k, ai, ar, ak, b + j, ldb, ci, ldc, add);
          break;
        case 3:
          tile<3>(k, ai, ar, ak, b + j, ldb, ci, ldc, add);
          break;
        case 2:
          tile<2>(k, ai, ar, ak, b + j, ldb, ci, ldc, add);
          break;
        default:
          tile<1>(k, ai, ar, ak, b + j, ldb, ci, ldc, add);
      }
    }
}

// [n rows of D, `stride` apart] -> [D, padded(n) + 16], zero beyond n
struct Turned {
  std::vector<float> x;
  long ld = 0;
  void of(const float* rows, long stride, int n) {
    ld = padded(n) + 16;
    x.assign(D * ld, 0);
    for (int i = 0; i < n; i += 8)
      for (int d = 0; d < D; d++)
        for (int j = i; j < std::min(n, i + 8); j++) x[d * ld + j] = rows[j * stride + d];
  }
};

// One block of query rows and the keys that it may see: prefix keys [pa, prefix) and own keys [oa,
// ob).
struct Block {
  int rows, first, pa, pn, oa, on, pw,
      width;  // pw: columns of the prefix part, width: of both, padded
  Block(int first, int len, int prefix, int window) : first(first) {
    rows = std::min(BLOCK, len - first);
    const int low = std::max(0, prefix + first - window + 1);  // the first key that any row sees
    pa = std::min(low, prefix), pn = prefix - pa;
    oa = std::max(0, low - prefix), on = first + rows - oa;
    pw = padded(pn), width = pw + padded(on);
  }
};

// segments: per segment begin, length, begin of its prefix, length of its prefix (0 for a prefix
// itself)
template <class F>
void walk(const int* seg, int n, int window, int heads, F f) {
  long at = 0;
  for (int s = 0; s < n; s++)
    for (int first = 0; first < seg[4 * s + 1]; first += BLOCK) {
      Block b(first, seg[4 * s + 1], seg[4 * s + 3], window);
      f(s, b, at);
      at += (long)heads * b.rows * b.width;
    }
}

}  // namespace

extern "C" {

long attention_size(const int* seg, int n, int window, int heads) {
  long size = 0;
  walk(seg, n, window, heads,
       [&](int, const Block& b, long at) { size = at + (long)heads * b.rows * b.width; });
  return size;
}

// q [N,heads,D], k and v [N,kv,D], sinks [heads] -> o [N,heads,D], w: attention weights for the
// backward pass
void attention_forward(const int* seg, int n, int window, int heads, int kv, const float* q,
                       const float* k, const float* v, const float* sinks, float* o, float* w) {
  const int qs = heads * D, ks = kv * D, group = heads / kv;
  std::vector<Turned> prefix(kv), own(kv);
  int p_begin = -1, o_begin = -1;
  walk(seg, n, window, heads, [&](int s, const Block& b, long at) {
    const int begin = seg[4 * s], pb = seg[4 * s + 2], pl = seg[4 * s + 3];
    for (int h = 0; h < kv; h++) {
      if (pl && pb != p_begin) prefix[h].of(k + (long)pb * ks + h * D, ks, pl);
      if (begin != o_begin) own[h].of(k + (long)begin * ks + h * D, ks, seg[4 * s + 1]);
    }
    if (pl) p_begin = pb;
    o_begin = begin;
    for (int h = 0; h < heads; h++, at += (long)b.rows * b.width) {
      const Turned &p = prefix[h / group], &u = own[h / group];
      const float* qb = q + (long)(begin + b.first) * qs + h * D;
      float* x = w + at;
      if (b.pn) multiply(b.rows, b.pn, D, qb, qs, 1, &p.x[b.pa], p.ld, x, b.width, false);
      multiply(b.rows, b.on, D, qb, qs, 1, &u.x[b.oa], u.ld, x + b.pw, b.width, false);
      for (int t = 0; t < b.rows; t++) {
        float* y = x + (long)t * b.width;
        const int low =
            pl + b.first + t - window + 1;  // keys before this one are outside the window
        const int p0 = std::clamp(low - b.pa, 0, b.pn);
        const int o0 = b.pw + std::max(0, low - pl - b.oa), o1 = b.pw + b.first + t + 1 - b.oa;
        float top = sinks[h], sum = 0;
        for (int j = p0; j < b.pn; j++) top = std::max(top, y[j]);
        for (int j = o0; j < o1; j++) top = std::max(top, y[j]);
        std::fill(y, y + p0, 0.f), std::fill(y + b.pn, y + o0, 0.f),
            std::fill(y + o1, y + b.width, 0.f);
        for (int j = p0; j < b.pn; j++) y[j] = std::exp(y[j] - top);
        for (int j = o0; j < o1; j++) y[j] = std::exp(y[j] - top);
        for (int j = p0; j < o1; j++) sum += y[j];
        const float scale = 1 / (sum + std::exp(sinks[h] - top));
        for (int j = p0; j < o1; j++) y[j] *= scale;
      }
      float* ob = o + (long)(begin + b.first) * qs + h * D;
      const float* vh = v + (h / group) * D;
      if (b.pn)
        multiply(b.rows, D, b.pn, x, b.width, 1, vh + (long)(pb + b.pa) * ks, ks, ob, qs, false);
      multiply(b.rows, D, b.on, x + b.pw, b.width, 1, vh + (long)(begin + b.oa) * ks, ks, ob, qs,
               b.pn > 0);
    }
  });
}

// dk, dv and dsinks must be zero at the start; w is as the forward pass left it
void attention_backward(const int* seg, int n, int window, int heads, int kv, const float* q,
                        const float* k, const float* v, const float* w, const float* go, float* dq,
                        float* dk, float* dv, float* dsinks) {
  const int qs = heads * D, ks = kv * D, group = heads / kv;
  std::vector<Turned> prefix(kv), own(kv);
  std::vector<float> ds;
  int p_begin = -1, o_begin = -1;
  walk(seg, n, window, heads, [&](int s, const Block& b, long at) {
    const int begin = seg[4 * s], pb = seg[4 * s + 2], pl = seg[4 * s + 3];
    for (int h = 0; h < kv; h++) {
      if (pl && pb != p_begin) prefix[h].of(v + (long)pb * ks + h * D, ks, pl);
      if (begin != o_begin) own[h].of(v + (long)begin * ks + h * D, ks, seg[4 * s + 1]);
    }
    if (pl) p_begin = pb;
    o_begin = begin;
    ds.resize((long)b.rows * b.width);
    for (int h = 0; h < heads; h++, at += (long)b.rows * b.width) {
      const Turned &p = prefix[h / group], &u = own[h / group];
      const long row = (long)(begin + b.first) * qs + h * D,
                 own_row = (long)(begin + b.oa) * ks + (h / group) * D,
                 prefix_row = (long)(pb + b.pa) * ks + (h / group) * D;
      const float* x = w + at;
      if (b.pn) {
        multiply(b.rows, b.pn, D, go + row, qs, 1, &p.x[b.pa], p.ld, &ds[0], b.width, false);
        multiply(b.pn, D, b.rows, x, 1, b.width, go + row, qs, dv + prefix_row, ks, true);
      }
      multiply(b.rows, b.on, D, go + row, qs, 1, &u.x[b.oa], u.ld, &ds[b.pw], b.width, false);
      multiply(b.on, D, b.rows, x + b.pw, 1, b.width, go + row, qs, dv + own_row, ks, true);
      for (int t = 0; t < b.rows; t++) {
        float* y = &ds[(long)t * b.width];
        const float* wt = x + (long)t * b.width;
        float dot = 0, sum = 0;
        for (int j = 0; j < b.width; j++) dot += y[j] * wt[j], sum += wt[j];
        for (int j = 0; j < b.width; j++) y[j] = wt[j] * (y[j] - dot);
        dsinks[h] -= (1 - sum) * dot;
      }
      if (b.pn) {
        multiply(b.rows, D, b.pn, &ds[0], b.width, 1, k + prefix_row, ks, dq + row, qs, false);
        multiply(b.pn, D, b.rows, &ds[0], 1, b.width, q + row, qs, dk + prefix_row, ks, true);
      }
      multiply(b.rows, D, b.on, &ds[b.pw], b.width, 1, k + own_row, ks, dq + row, qs, b.pn > 0);
      multiply(b.on, D, b.rows, &ds[b.pw], 1, b.width, q + row, qs, dk + own_row, ks, true);
    }
  });
}

// h [n,2m] with gate and up interleaved -> y [n,m] = (up + 1) gate sigmoid(1.702 gate), both
// clamped as gpt-oss does
void gated_forward(long n, const float* h, float* y) {
  for (long i = 0; i < n; i++) {
    const float g = std::min(h[2 * i], 7.f), u = std::clamp(h[2 * i + 1], -7.f, 7.f);
    y[i] = (u + 1) * g / (1 + std::exp(-1.702f * g));
  }
}

void gated_backward(long n, const float* h, const float* gy, float* gh) {
  for (long i = 0; i < n; i++) {
    const float g = std::min(h[2 * i], 7.f), u = std::clamp(h[2 * i + 1], -7.f, 7.f);
    const float s = 1 / (1 + std::exp(-1.702f * g));
    gh[2 * i] = h[2 * i] <= 7 ? gy[i] * (u + 1) * s * (1 + 1.702f * g * (1 - s)) : 0;
    gh[2 * i + 1] = std::fabs(h[2 * i + 1]) <= 7 ? gy[i] * g * s : 0;
  }
}

// x [n,heads,D] turned by the angles whose cos and sin are given per row [n,D/2]; sign -1 turns
// back
void rope(long n, int heads, float sign, const float* x, const float* cos, const float* sin,
          float* y) {
  for (long i = 0; i < n; i++, cos += D / 2, sin += D / 2)
    for (int h = 0; h < heads; h++, x += D, y += D)
      for (int j = 0; j < D / 2; j++) {
        const float a = x[j], b = x[j + D / 2], s = sign * sin[j];
        y[j] = a * cos[j] - b * s;
        y[j + D / 2] = b * cos[j] + a * s;
      }
}

// y = x / rms(x) * weight; scale [n]: 1 / rms
void norm_forward(long n, int m, const float* x, const float* weight, float* y, float* scale) {
  for (long i = 0; i < n; i++, x += m, y += m) {
    float sum = 0;
    for (int j = 0; j < m; j++) sum += x[j] * x[j];
    scale[i] = 1 / std::sqrt(sum / m + 1e-5f);
    for (int j = 0; j < m; j++) y[j] = x[j] * scale[i] * weight[j];
  }
}

// gw must be zero at the start
void norm_backward(long n, int m, const float* x, const float* weight, const float* scale,
                   const float* gy, float* gx, float* gw) {
  for (long i = 0; i < n; i++, x += m, gy += m, gx += m) {
    const float s = scale[i];
    float dot = 0;
    for (int j = 0; j < m; j++) {
      dot += gy[j] * weight[j] * x[j];
      gw[j] += gy[j] * x[j] * s;
    }
    dot *= s * s / m;
    for (int j = 0; j < m; j++) gx[j] = s * (gy[j] * weight[j] - x[j] * dot);
  }
}

// The nearest MXFP4 values of n numbers in blocks of 32, see mxfp4_codes in model.py
void mxfp4_round(long n, const float* w, float* out) {
  for (long i = 0; i < n; i += 32, w += 32, out += 32) {
    float top = 0;
    for (int j = 0; j < 32; j++) top = std::max(top, std::fabs(w[j]));
    int e = -20;
    if (top > 0) std::frexp(top / 7, &e);
    e = std::clamp(e, -20, 20);
    const float down = std::ldexp(1.f, -e), up = std::ldexp(1.f, e);
    for (int j = 0; j < 32; j++) {
      const float a = std::fabs(w[j]) * down;
      const float v = 0.5f * ((a > 0.25f) + (a > 0.75f) + (a > 1.25f) + (a > 1.75f)) + (a > 2.5f) +
                      (a > 3.5f) + 2.f * (a > 5.f);
      out[j] = std::copysign(v * up, w[j]);
    }
  }
}

}  // extern "C"
