// Matrix products with what they should give, and every way of cutting them.
#ifndef OSSRUN_KERNELTEST_PRODUCT_H_
#define OSSRUN_KERNELTEST_PRODUCT_H_

#include <algorithm>
#include <memory>
#include <vector>

#include "check.h"
#include "guard.h"

// A matrix with activations, and the product in double. Weights, scales and bias end where reading
// further crashes, at odd addresses where `slack` is odd.
struct Problem {
  int64_t rows, tokens, k;
  std::vector<double> want, magnitude;  // [tokens, rows]: the sum, and the sum of |terms|
  std::vector<std::unique_ptr<Guarded<float>>> x;
  std::vector<const float*> x_at;
  Guarded<uint16_t> bias;

  Problem(int64_t rows_, int64_t tokens_, int64_t k_, int64_t slack)
      : rows(rows_), tokens(tokens_), k(k_), bias(rows_, slack) {}

  void fill_activations(Random& random, float size) {
    for (int64_t t = 0; t < tokens; t++) {
      x.emplace_back(new Guarded<float>(k));
      x.back()->fill([&] { return size * random.normal(); });
      x_at.push_back(x.back()->data());
    }
    bias.fill([&] { return bf16_of(random.normal()); });
  }
  template <class Weight>
  void multiply(const Weight& weight, const uint16_t* with_bias) {
    want.assign(static_cast<size_t>(tokens * rows), 0);
    magnitude = want;
    for (int64_t t = 0; t < tokens; t++) {
      for (int64_t r = 0; r < rows; r++) {
        double sum = with_bias ? bf16_double(bias.get(r)) : 0, size = fabs(sum);
        for (int64_t i = 0; i < k; i++) {
          const double term = weight(r, i) * static_cast<double>(x_at[t][i]);
          sum += term;
          size += fabs(term);
        }
        want[t * rows + r] = sum;
        magnitude[t * rows + r] = size;
      }
    }
  }
};

// Runs the product for tokens [t0, t1), rows [r0, r1) into a guarded y full of a mark, and
// compares: with the double where want_bits is empty (it is filled then), bit for bit where it is
// not.
template <class Run>
void compare(Checker& check, const Problem& p, int64_t t0, int64_t t1, int64_t r0, int64_t r1,
             std::vector<float>& want_bits, double bound, Run run) {
  const float mark = 12345.678f;
  const int64_t ldy = p.rows;
  Guarded<float> y((t1 - t0) * ldy);
  y.fill([&] { return mark; });
  run(y.data(), ldy, t0, t1 - t0, r0, r1);
  const bool first = want_bits.empty();
  if (first) want_bits.assign(static_cast<size_t>(p.tokens * p.rows), 0);
  for (int64_t t = t0; t < t1; t++) {
    for (int64_t r = 0; r < p.rows; r++) {
      const float got = y.data()[(t - t0) * ldy + r];
      if (r < r0 || r >= r1) {
        check.same(got, mark, "written outside its rows", t, r);
      } else if (first) {
        const double size = p.magnitude[t * p.rows + r];
        check.near(got, p.want[t * p.rows + r], bound * size + 1e-37, t, r);
        want_bits[t * p.rows + r] = got;
      } else {
        check.same(got, want_bits[t * p.rows + r], "not batch invariant", t, r);
      }
    }
  }
}

// All tokens and rows at once against the double, then every way of cutting the batch (all of them
// where that is few, a sample where it is many).
template <class Run>
void all_cuts(Checker& check, Random& random, const Problem& p, double bound, Run run) {
  std::vector<float> bits;
  compare(check, p, 0, p.tokens, 0, p.rows, bits, bound, run);
  const bool exhaustive = p.tokens <= 9 && p.rows <= 9;
  if (exhaustive) {
    for (int64_t n = 0; n <= p.tokens; n++) {
      for (int64_t r0 = 0; r0 <= p.rows; r0++) {
        const int64_t t0 = random.between(0, p.tokens - n);
        for (int64_t r1 = r0; r1 <= p.rows; r1++) {
          compare(check, p, t0, t0 + n, r0, r1, bits, bound, run);
        }
      }
    }
    return;
  }
  for (int i = 0; i < 12; i++) {
    const int64_t t0 = random.between(0, p.tokens - 1);
    const int64_t r0 = random.between(0, p.rows - 1);
    const int64_t t1 = i < 4 ? t0 + 1 : random.between(t0, p.tokens);
    const int64_t r1 = random.between(r0, p.rows);
    compare(check, p, t0, t1, r0, r1, bits, bound, run);
  }
}

// MXFP4 weights [rows, k] with scales from `low` to `high`; a call returns the weight at a place.
struct Mxfp4 {
  Guarded<uint8_t> blocks, scales;
  int64_t k;
  Mxfp4(Random& random, int64_t rows, int64_t k_, int64_t slack, int64_t low, int64_t high)
      : blocks(rows * k_ / 2, slack), scales(rows * k_ / 32, slack), k(k_) {
    blocks.fill([&] { return random.below(256); });
    scales.fill([&] { return random.between(low, high); });
  }
  double operator()(int64_t r, int64_t i) const {
    const uint8_t pair = blocks.get(r * k / 2 + i / 2);
    return ldexp(e2m1_double(i % 2 == 0 ? pair & 15 : pair >> 4),
                 scales.get(r * k / 32 + i / 32) - 127);
  }
};

// float32 sums over k, in lanes: far below the size of one wrong term.
inline double rounding(int64_t k) { return (static_cast<double>(k) + 16) * 0x1p-24; }

// A shape at random; drawn in this order, which that of function arguments is not.
struct Ragged {
  int64_t rows, tokens, steps, slack;
  bool with_bias;
  explicit Ragged(Random& random, int64_t longest) {
    rows = random.between(1, 70);
    tokens = random.between(1, 110);
    steps = random.between(1, longest);
    slack = random.below(4);
    with_bias = random.below(2);
  }
};

// What quantize_q8 (whole numbers to 127) and quantize_q12 (to 2047) mean, element by element:
// scale times whole number. A scale below `least` counts as zero.
inline void quantise(std::vector<double>& out, const float* x, int64_t k, float most = 127,
                     float least = 0x1p-126f) {
  out.resize(static_cast<size_t>(k));
  for (int64_t b = 0; b < k; b += 32) {
    float largest = 0;
    for (int64_t i = 0; i < 32; i++) largest = std::max(largest, fabsf(x[b + i]));
    const float scale = largest / most;
    for (int64_t i = 0; i < 32; i++) {
      const float whole = scale < least ? 0 : rintf(x[b + i] / scale);
      out[b + i] = static_cast<double>(scale) * std::min(most, std::max(-most, whole));
    }
  }
}

// The same of what quantize_q8 wrote, where the scale is the first number of a block.
inline void as_written(float* out, const int8_t* q, const float* d, int64_t k) {
  for (int64_t i = 0; i < k; i++) {
    const int64_t in = i % 32, place = i - in + in / 8 * 8 + in % 2 * 4 + in % 8 / 2;
    out[i] = d[i / 32 * 2] * static_cast<float>(q[place]);
  }
}

#endif  // OSSRUN_KERNELTEST_PRODUCT_H_
