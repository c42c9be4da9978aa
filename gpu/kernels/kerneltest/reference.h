// What every operation computes, said as plainly as possible: loops in double over float inputs.
// The kernels are held to this; this is held to the published goldens through the engine's own
// suite.
#ifndef OSSRUN_GPU_KERNELTEST_REFERENCE_H_
#define OSSRUN_GPU_KERNELTEST_REFERENCE_H_

#include <algorithm>
#include "check.h"

namespace reference {

typedef std::vector<double> Row;

inline Row wide(const float* x, int n) { return Row(x, x + n); }

// RMSNorm(x) * w.
inline Row norm(const Row& x, const bf16* w, double eps) {
  double squares = 0;
  for (double v : x) squares += v * v;
  Row y;
  for (size_t i = 0; i < x.size(); i++)
    y.push_back(x[i] / sqrt(squares / double(x.size()) + eps) * from_bf16(w[i]));
  return y;
}

// x · wᵀ + bias, w [n, x.size()].
inline Row linear(const Row& x, const bf16* w, const bf16* bias, int n) {
  Row y;
  for (int r = 0; r < n; r++) {
    double sum = bias ? from_bf16(bias[r]) : 0;
    for (size_t i = 0; i < x.size(); i++) sum += from_bf16(w[r * x.size() + i]) * x[i];
    y.push_back(sum);
  }
  return y;
}

// cos then sin of position * frequencies, in float as the models have it, times scale.
inline Row angles(int position, const std::vector<float>& frequencies, double scale) {
  Row a;
  for (float f : frequencies) a.push_back(cos(double(float(position) * f)) * scale);
  for (float f : frequencies) a.push_back(sin(double(float(position) * f)) * scale);
  return a;
}

// Turns the pairs (i, i + dim/2) of the first `heads` heads.
inline void rope(Row& x, const Row& a, int heads, int dim) {
  for (int h = 0; h < heads; h++) {
    for (int i = 0; i < dim / 2; i++) {
      double &u = x[h * dim + i], &v = x[h * dim + i + dim / 2];
      const double c = a[i], s = a[i + dim / 2], u0 = u;
      u = u0 * c - v * s;
      v = v * c + u0 * s;
    }
  }
}

// One query head over keys [n][dim] and values [n][dim] and a sink.
inline Row attend(const double* q, const std::vector<Row>& keys, const std::vector<Row>& values,
                  double sink, double scale) {
  const size_t dim = values[0].size();
  Row logits;
  double largest = sink;
  for (const Row& k : keys) {
    double dot = 0;
    for (size_t i = 0; i < dim; i++) dot += q[i] * k[i];
    logits.push_back(dot * scale);
    largest = std::max(largest, logits.back());
  }
  double sum = exp(sink - largest);
  Row y(dim);
  for (size_t t = 0; t < keys.size(); t++) {
    const double p = exp(logits[t] - largest);
    sum += p;
    for (size_t i = 0; i < dim; i++) y[i] += p * values[t][i];
  }
  for (double& v : y) v /= sum;
  return y;
}

// The `top` largest, largest first, of equal ones the lower.
inline std::vector<int> choose(const Row& logits, int top) {
  std::vector<int> order(logits.size());
  for (size_t i = 0; i < order.size(); i++) order[i] = int(i);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return logits[a] > logits[b]; });
  order.resize(top);
  return order;
}

inline Row softmax(const Row& x) {
  const double largest = *std::max_element(x.begin(), x.end());
  double sum = 0;
  Row y;
  for (double v : x) y.push_back(exp(v - largest)), sum += y.back();
  for (double& v : y) v /= sum;
  return y;
}

inline double swiglu(double gate, double up, double limit) {
  gate = std::min(gate, limit);
  up = std::min(std::max(up, -limit), limit);
  return gate / (1 + exp(-1.702 * gate)) * (up + 1);
}

// An MXFP4 matrix of several experts, [experts][n][k].
struct Experts {
  int experts, n, k;
  std::vector<uint8_t> blocks, scales;
  std::vector<bf16> bias;

  // Random codes; scales around `exponent`.
  Experts(int experts, int n, int k, int exponent) : experts(experts), n(n), k(k) {
    blocks.resize(size_t(experts) * n * k / 2);
    scales.resize(size_t(experts) * n * k / 32);
    for (uint8_t& b : blocks) b = uint8_t(rng()());
    for (uint8_t& s : scales) s = uint8_t(exponent - below(4));
    bias = halves(size_t(experts) * n);
  }
  double weight(int e, int r, int i) const {
    static const double values[8] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    const size_t row = size_t(e) * n + r;
    const int code = blocks[row * k / 2 + i / 2] >> (i % 2 * 4) & 15;
    return ldexp(code & 8 ? -values[code & 7] : values[code & 7],
                 scales[row * k / 32 + i / 32] - 127);
  }
  double product(int e, int r, const Row& x) const {
    double sum = from_bf16(bias[size_t(e) * n + r]);
    for (int i = 0; i < k; i++) sum += weight(e, r, i) * x[i];
    return sum;
  }
};

// SwiGLU of rows 2i and 2i + 1.
inline Row gate_up(const Experts& w, int e, const Row& x, double limit) {
  Row h;
  for (int i = 0; i < w.n / 2; i++)
    h.push_back(swiglu(w.product(e, 2 * i, x), w.product(e, 2 * i + 1, x), limit));
  return h;
}

inline Row down(const Experts& w, int e, const Row& h) {
  Row y;
  for (int i = 0; i < w.n; i++) y.push_back(w.product(e, i, h));
  return y;
}

// 8-bit activations, given back as the values they stand for.
inline Row quantized(const Row& x) {
  Row y;
  for (size_t b = 0; b < x.size(); b += 32) {
    float largest = 0;
    for (int i = 0; i < 32; i++) largest = std::max(largest, fabsf(float(x[b + i])));
    const float scale = largest / 127;
    for (int i = 0; i < 32; i++)
      y.push_back(scale == 0 ? 0 : double(scale) * rintf(float(x[b + i]) / scale));
  }
  return y;
}

}  // namespace reference

// Holds order and groups to the experts that slots chose.
inline void check_groups(const Memory<int>& chosen, const Memory<int>& order,
                         const Memory<int>& groups, int slots, int experts) {
  int at = 0, active = 0;
  for (int e = 0; e < experts; e++) {
    const int begin = at;
    for (int s = 0; s < slots; s++) {
      if (chosen[s] != e) continue;
      if (order[at] != s) fail("order[%d] is %d, not %d", at, order[at], s);
      at++;
    }
    if (at == begin) continue;
    if (groups[1 + 2 * active] != e || groups[2 + 2 * active] != at)
      fail("pair %d of groups is (%d, %d), not (%d, %d)", active, groups[1 + 2 * active],
           groups[2 + 2 * active], e, at);
    active++;
  }
  if (groups[0] != active) fail("%d experts are active, not %d", groups[0], active);
}

// A copy as package models/q8 lays it out, of random weights: its bytes, and what they stand for,
// rounded to bf16.
struct CopyQ8 {
  int n, k;
  std::vector<uint8_t> bytes;
  std::vector<bf16> rounded;  // [n][k]

  CopyQ8(int n, int k)
      : n(n), k(k), bytes(size_t(divide_up(n, 8)) * (k / 32) * 272), rounded(n * k) {
    static const int order[8] = {0, 2, 4, 6, 1, 3, 5, 7};  // of the columns
    for (int r = 0; r < n; r++)
      for (int b = 0; b < k / 32; b++) {
        uint8_t* block = &bytes[(size_t(r / 8) * (k / 32) + b) * 272];
        const bf16 scale = to_bf16(0.005f + 0.005f * fabsf(uniform()));
        memcpy(block + r % 8 * 2, &scale, 2);
        for (int place = 0; place < 32; place++) {
          const int q = below(255) - 127;
          block[16 + place / 4 * 32 + r % 8 * 4 + place % 4] = uint8_t(q);
          const size_t at = size_t(r) * k + b * 32 + place / 8 * 8 + order[place % 8];
          rounded[at] = to_bf16(from_bf16(scale) * float(q));
        }
      }
  }
};

// Scratch of a matrix whose k is cut into pieces: of each tile's so many floats.
struct PieceScratch {
  Memory<float> partial;
  Memory<int> arrived;
  const bool used;
  PieceScratch(unsigned tiles, unsigned floats, unsigned pieces)
      : partial(tiles * pieces * floats), arrived(std::vector<int>(tiles)), used(pieces > 1) {}
  float* sums() { return used ? partial.data() : nullptr; }
  int* counts() { return used ? arrived.data() : nullptr; }
  void check() const {
    for (size_t i = 0; i < arrived.size(); i++)
      if (arrived[i]) fail("arrived[%zu] is %d", i, arrived[i]);
  }
};

#endif  // OSSRUN_GPU_KERNELTEST_REFERENCE_H_
