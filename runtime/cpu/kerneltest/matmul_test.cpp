// The matrix products against sums in double, and their batch invariance bit for bit.
#include <algorithm>
#include <memory>
#include <vector>

#include "check.h"
#include "guard.h"

namespace {

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

// float32 sums over k, in lanes: far below the size of one wrong term.
double rounding(int64_t k) { return (static_cast<double>(k) + 16) * 0x1p-24; }

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

// A product with bf16 weights, and what it may be off by beside the rounding of sums.
struct Bf16Product {
  decltype(Kernels::matmul_bf16) multiply;
  double bound;
};

void bf16_case(const Bf16Product& product, Checker& check, Random& random, int64_t rows,
               int64_t tokens, int64_t k, int64_t slack, bool with_bias) {
  Problem p(rows, tokens, k, slack);
  p.fill_activations(random, 1);
  Guarded<uint16_t> w(rows * k, slack);
  w.fill([&] { return bf16_of(random.normal()); });
  const uint16_t* bias = with_bias ? p.bias.data() : nullptr;
  p.multiply([&](int64_t r, int64_t i) { return bf16_double(w.get(r * k + i)); }, bias);
  const int64_t ldx = k + random.below(5);
  Guarded<float> x((tokens - 1) * ldx + k);
  for (int64_t t = 0; t < tokens; t++) memcpy(x.data() + t * ldx, p.x_at[t], k * sizeof(float));
  all_cuts(check, random, p, rounding(k) + product.bound,
           [&](float* y, int64_t ldy, int64_t t0, int64_t n, int64_t r0, int64_t r1) {
             product.multiply(y, ldy, x.data() + t0 * ldx, ldx, n, w.data(), k, r0, r1, bias);
           });
}

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

void mxfp4_case(const Kernels& kernels, Checker& check, Random& random, int64_t rows,
                int64_t tokens, int64_t k, int64_t slack, bool with_bias, int64_t low,
                int64_t high) {
  Problem p(rows, tokens, k, slack);
  p.fill_activations(random, 1);
  Mxfp4 w(random, rows, k, slack, low, high);
  const uint16_t* bias = with_bias ? p.bias.data() : nullptr;
  p.multiply(w, bias);
  all_cuts(check, random, p, rounding(k),
           [&](float* y, int64_t ldy, int64_t t0, int64_t n, int64_t r0, int64_t r1) {
             kernels.matmul_mxfp4(y, ldy, p.x_at.data() + t0, n, w.blocks.data(), w.scales.data(),
                                  k, r0, r1, bias);
           });
}

// What quantize_q8 (whole numbers to 127) and quantize_q12 (to 2047) mean, element by element:
// scale times whole number. A scale below `least` counts as zero.
void quantise(std::vector<double>& out, const float* x, int64_t k, float most = 127,
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
void as_written(float* out, const int8_t* q, const float* d, int64_t k) {
  for (int64_t i = 0; i < k; i++) {
    const int64_t in = i % 32, place = i - in + in / 8 * 8 + in % 2 * 4 + in % 8 / 2;
    out[i] = d[i / 32 * 2] * static_cast<float>(q[place]);
  }
}

void q8_case(const Kernels& kernels, Checker& check, Random& random, int64_t rows, int64_t tokens,
             int64_t k, int64_t slack, bool with_bias, int64_t low, int64_t high) {
  Problem p(rows, tokens, k, slack);
  p.fill_activations(random, 3);
  std::vector<std::unique_ptr<Guarded<int8_t>>> q;
  std::vector<std::unique_ptr<Guarded<float>>> d;
  std::vector<const int8_t*> q_at;
  std::vector<const float*> d_at;
  for (int64_t t = 0; t < tokens; t++) {
    if (random.below(4) == 0) memset(p.x[t]->data(), 0, 32 * sizeof(float));
    q.emplace_back(new Guarded<int8_t>(k));
    d.emplace_back(new Guarded<float>(k / 16));
    kernels.quantize_q8(q[t]->data(), d[t]->data(), p.x_at[t], k);
    q_at.push_back(q[t]->data());
    d_at.push_back(d[t]->data());
  }
  Mxfp4 w(random, rows, k, slack, low, high);
  const uint16_t* bias = with_bias ? p.bias.data() : nullptr;
  // The double product takes the quantised activations as its x.
  for (int64_t t = 0; t < tokens; t++) as_written(p.x[t]->data(), q_at[t], d_at[t], k);
  p.multiply(w, bias);
  all_cuts(check, random, p, rounding(k),
           [&](float* y, int64_t ldy, int64_t t0, int64_t n, int64_t r0, int64_t r1) {
             kernels.matmul_mxfp4_q8(y, ldy, q_at.data() + t0, d_at.data() + t0, n, w.blocks.data(),
                                     w.scales.data(), k, r0, r1, bias);
           });
}

// Inputs of dense weights and their products; quantize leaves in x what the product sees.
struct Dense12 {
  typedef int16_t Q;
  static constexpr int kNumbers = 1, kMost = 2047;
  static void quantize(const Kernels& k, Q* q, float* d, float* x, int64_t n) {
    k.quantize_q12(q, d, x, n);
    std::vector<double> kept;
    quantise(kept, x, n, 2047, 0x1p-118f);
    for (int64_t i = 0; i < n; i++) x[i] = static_cast<float>(kept[i]);
  }
  static auto product(const Kernels& k) { return k.matmul_q8; }
};
struct Dense8 {
  typedef int8_t Q;
  static constexpr int kNumbers = 2, kMost = 127;
  static void quantize(const Kernels& k, Q* q, float* d, float* x, int64_t n) {
    k.quantize_q8(q, d, x, n);
    as_written(x, q, d, n);
  }
  static auto product(const Kernels& k) { return k.matmul_q8_q8; }
};

// Dense weights in 8 bits, in groups of eight rows.
template <class Input>
void dense_q8_case(const Kernels& kernels, Checker& check, Random& random, int64_t rows,
                   int64_t tokens, int64_t k, int64_t slack, bool with_bias) {
  typedef typename Input::Q Q;
  const auto product = Input::product(kernels);
  Problem p(rows, tokens, k, slack);
  p.fill_activations(random, 3);
  std::vector<std::unique_ptr<Guarded<Q>>> q;
  std::vector<std::unique_ptr<Guarded<float>>> d;
  std::vector<const Q*> q_at;
  std::vector<const float*> d_at;
  for (int64_t t = 0; t < tokens; t++) {
    if (random.below(4) == 0) memset(p.x[t]->data(), 0, 32 * sizeof(float));
    if (random.below(4) == 0) {  // all of a block as large as can be
      const float most = Input::kMost;
      for (int64_t i = k - 32; i < k; i++) p.x[t]->data()[i] = random.below(8) ? most : -most;
    }
    q.emplace_back(new Guarded<Q>(k));
    d.emplace_back(new Guarded<float>(k / 32 * Input::kNumbers));
    Input::quantize(kernels, q[t]->data(), d[t]->data(), p.x[t]->data(), k);
    q_at.push_back(q[t]->data());
    d_at.push_back(d[t]->data());
  }
  const int64_t group_bytes = k / 32 * (8 * 34);
  Guarded<uint8_t> w((rows + 7) / 8 * group_bytes, slack);
  for (int64_t b = 0; b < w.size() / (8 * 34); b++) {
    uint8_t* block = w.data() + b * 8 * 34;
    for (int r = 0; r < 8; r++) {
      const uint16_t scale = bf16_of(0.01f + static_cast<float>(random.uniform()));
      memcpy(block + 2 * r, &scale, sizeof scale);
    }
    for (int i = 16; i < 8 * 34; i++) {  // the ends often, where the integer sums are largest
      const int64_t any = random.between(-160, 160);
      block[i] = static_cast<uint8_t>(std::max<int64_t>(-127, std::min<int64_t>(127, any)));
    }
  }
  const uint16_t* bias = with_bias ? p.bias.data() : nullptr;
  p.multiply(
      [&](int64_t r, int64_t i) {
        const uint8_t* block = w.data() + r / 8 * group_bytes + i / 32 * (8 * 34);
        const int64_t at = i % 32 / 8 * 8 + i % 2 * 4 + i % 8 / 2;
        uint16_t scale;
        memcpy(&scale, block + r % 8 * 2, sizeof scale);
        return bf16_double(scale) *
               static_cast<int8_t>(block[16 + (at / 4 * 8 + r % 8) * 4 + at % 4]);
      },
      bias);
  all_cuts(check, random, p, rounding(k),
           [&](float* y, int64_t ldy, int64_t t0, int64_t n, int64_t r0, int64_t r1) {
             const int64_t from = r0 / 8 * 8, to = std::min(rows, (r1 + 7) / 8 * 8);
             if (from == r0 && to == r1) {
               product(y, ldy, q_at.data() + t0, d_at.data() + t0, n, w.data(), k, r0, r1, bias);
               return;
             }
             std::vector<float> all(static_cast<size_t>(n * ldy) + 1);  // whole groups at a time
             product(all.data(), ldy, q_at.data() + t0, d_at.data() + t0, n, w.data(), k, from, to,
                     bias);
             for (int64_t t = 0; t < n; t++) {
               for (int64_t r = r0; r < r1; r++) y[t * ldy + r] = all[t * ldy + r];
             }
           });
}

// Every code at every place of a block under every scale: the weight itself, to the bit.
void test_every_weight(const Kernels& kernels, Checker& check) {
  check.start("every weight");
  Guarded<uint8_t> blocks(16 * 2), scale(2);
  Guarded<float> x(32), y(4);
  const float* x_at[2] = {x.data(), x.data()};
  for (int s = 0; s <= 254; s++) {
    scale.fill([&] { return s; });
    for (int i = 0; i < 32; i++) {
      for (int code = 0; code < 16; code++) {
        memset(blocks.data(), 0, 32);
        memset(x.data(), 0, 32 * sizeof(float));
        blocks.data()[i / 2] = blocks.data()[16 + i / 2] =
            static_cast<uint8_t>(i % 2 == 0 ? code : code << 4);
        x.data()[i] = 1;
        const float want = static_cast<float>(ldexp(e2m1_double(code), s - 127));
        // Both ways through: one token, and a batch.
        const int64_t n = 1 + (s + i + code) % 2;
        kernels.matmul_mxfp4(y.data(), 2, x_at, n, blocks.data(), scale.data(), 32, 0, 2, nullptr);
        for (int64_t at = 0; at < 2 * n; at++) {
          check.that(y.data()[at] == want, "weight", y.data()[at], want, s, code);
        }
      }
    }
  }
}

// The squared error of a block with a scale.
double error_of(const float* x, double scale) {
  double sum = 0;
  for (int i = 0; i < 32; i++) {
    const double rest = x[i] - scale * std::min(127.0, std::max(-127.0, rint(x[i] / scale)));
    sum += rest * rest;
  }
  return sum;
}

// A block has the best of the scales that are tried.
void check_scale(Checker& check, const float* x, float scale, int round) {
  float largest = 0;
  for (int i = 0; i < 32; i++) largest = std::max(largest, fabsf(x[i]));
  if (largest / 127 < kLeastQ8Scale) return;
  double least = INFINITY, nearest = INFINITY;
  for (int c = 0; c < kQ8Scales; c++) {
    const double tried = static_cast<double>(largest) / 127 * (1 + kQ8ScaleStep * c);
    least = std::min(least, error_of(x, tried));
    nearest = std::min(nearest, fabs(scale / tried - 1));
  }
  check.that(nearest < 1e-6, "a scale that is tried", scale, largest / 127, round, 0);
  const double error = error_of(x, scale), most = static_cast<double>(largest) * largest;
  check.that(error <= 1.001 * least + 1e-10 * most, "the best scale", error, least, round, 0);
}

// Weights that are 1 at one place: the product is what the quantised activation says there.
void test_every_quantised(const Kernels& kernels, Checker& check, Random& random) {
  check.start("every quantised activation");
  Guarded<uint8_t> blocks(16 * 3), scale(3);
  Guarded<float> x(96), d(6), y(1);
  Guarded<int8_t> q(96);
  float want[96];
  scale.fill([] { return 127; });
  for (int round = 0; round < 60; round++) {
    const float size = ldexpf(1, static_cast<int>(random.between(-30, 30)));
    x.fill([&] { return size * random.normal(); });
    if (round % 4 == 1) {  // ties: whole numbers and halves of a scale that is a power of two
      x.fill([&] { return size * static_cast<float>(random.between(-254, 254)) / 2; });
      for (int b = 0; b < 3; b++) x.data()[32 * b + random.below(32)] = -127 * size;
    }
    if (round % 4 == 2) memset(x.data() + 32, 0, 32 * sizeof(float));
    if (round % 4 == 3) {
      for (int i = 64; i < 96; i++) x.data()[i] *= 1e-37f / size;
    }
    kernels.quantize_q8(q.data(), d.data(), x.data(), 96);
    as_written(want, q.data(), d.data(), 96);
    for (int b = 0; b < 3; b++) check_scale(check, x.data() + 32 * b, d.data()[2 * b], round);
    for (int i = 0; i < 96; i++) {
      if (want[i] != 0) {
        check.near(want[i], x.data()[i], 0.501 * d.data()[i / 32 * 2], round, i);
      }
      memset(blocks.data(), 0, 48);
      blocks.data()[i / 2] = i % 2 == 0 ? 2 : 0x20;
      const int8_t* q_at = q.data();
      const float* d_at = d.data();
      kernels.matmul_mxfp4_q8(y.data(), 1, &q_at, &d_at, 1, blocks.data(), scale.data(), 96, 0, 1,
                              nullptr);
      check.near(y.data()[0], want[i], fabs(want[i]) * 0x1p-22, round, i);
    }
  }
}

// The same of dense weights that are 1 in one column: twelve bits, not eight. Then the largest sum
// there is, of either sign, which is exact.
void test_every_12_bits(const Kernels& kernels, Checker& check, Random& random) {
  check.start("every 12-bit activation");
  Guarded<uint8_t> w(8 * 34);
  Guarded<float> x(32), d(1), y(8);
  Guarded<int16_t> q(32);
  const int16_t* q_at = q.data();
  const float* d_at = d.data();
  const auto multiply = [&] {
    kernels.quantize_q12(q.data(), d.data(), x.data(), 32);
    kernels.matmul_q8(y.data(), 8, &q_at, &d_at, 1, w.data(), 32, 0, 8, nullptr);
  };
  const auto set_scales = [&](float scale) {
    const uint16_t half = bf16_of(scale);
    for (int r = 0; r < 8; r++) memcpy(w.data() + 2 * r, &half, sizeof half);
  };
  std::vector<double> want;
  for (int round = 0; round < 60; round++) {
    const float size = ldexpf(1, static_cast<int>(random.between(-30, 30)));
    x.fill([&] { return size * random.normal(); });
    if (round % 4 == 1) {  // ties
      x.fill([&] { return size * static_cast<float>(random.between(-4094, 4094)) / 2; });
      x.data()[random.below(32)] = -2047 * size;
    }
    if (round % 4 == 2) x.fill([&] { return 0x1p-108f * random.normal(); });  // about the least
    quantise(want, x.data(), 32, 2047, 0x1p-118f);
    for (int i = 0; i < 32; i++) {
      memset(w.data(), 0, 8 * 34);
      set_scales(1);
      const int at = i / 8 * 8 + i % 2 * 4 + i % 8 / 2, r = (round + i) % 8;
      w.data()[16 + (at / 4 * 8 + r) * 4 + at % 4] = 1;
      multiply();
      check.near(y.data()[r], want[i], fabs(want[i]) * 0x1p-22, round, i);
      check.near(y.data()[(r + 1) % 8], 0, 0, round, i);
    }
  }
  for (const int weight : {127, -127, -128}) {
    memset(w.data(), weight, 8 * 34);
    set_scales(1);
    x.fill([] { return 2047.0f; });
    multiply();
    check.near(y.data()[3], 32.0 * 2047 * weight, 0, weight);
  }
}

// The largest sums of 8-bit inputs, which are exact.
void test_largest_8_bits(const Kernels& kernels, Checker& check) {
  check.start("the largest 8-bit products");
  Guarded<uint8_t> w(8 * 34);
  Guarded<float> x(32), d(2), y(8);
  Guarded<int8_t> q(32);
  const int8_t* q_at = q.data();
  const float* d_at = d.data();
  const uint16_t one = bf16_of(1);
  for (const int weight : {127, -127, -128}) {
    for (const float input : {127.0f, -127.0f}) {
      memset(w.data(), weight, 8 * 34);
      for (int r = 0; r < 8; r++) memcpy(w.data() + 2 * r, &one, sizeof one);
      x.fill([&] { return input; });
      kernels.quantize_q8(q.data(), d.data(), x.data(), 32);
      kernels.matmul_q8_q8(y.data(), 8, &q_at, &d_at, 1, w.data(), 32, 0, 8, nullptr);
      check.near(y.data()[3], 32.0 * input * weight, 0, weight);
    }
  }
}

template <class Input>
void test_dense_q8(const Kernels& kernels, Checker& check, Random& random) {
  check.start("matmul dense q8, every small shape");
  for (int64_t k = 32; k <= 160; k += 32) {
    dense_q8_case<Input>(kernels, check, random, 9, 9, k, k / 32 % 3, k % 64);
  }
  for (int64_t k : {480, 512, 992, 1440}) {
    dense_q8_case<Input>(kernels, check, random, 30, 5, k, 1, 1);
  }
  check.start("matmul dense q8, ragged");
  for (int i = 0; i < 20; i++) {
    const Ragged c(random, 24);
    dense_q8_case<Input>(kernels, check, random, c.rows, c.tokens, 32 * c.steps, c.slack,
                         c.with_bias);
  }
}

void test_bf16(const Bf16Product& product, Checker& check, Random& random) {
  check.start("matmul bf16, every small shape");
  for (int64_t k = 1; k <= 70; k++) bf16_case(product, check, random, 9, 9, k, k % 3, k % 2);
  for (int64_t k : {180, 479, 480, 481, 512, 961, 1443}) {
    bf16_case(product, check, random, 6, 5, k, k % 2, true);
  }
  check.start("matmul bf16, ragged");
  for (int i = 0; i < 25; i++) {
    const Ragged c(random, 700);
    bf16_case(product, check, random, c.rows, c.tokens, c.steps, c.slack, c.with_bias);
  }
}

}  // namespace

void test_halves(const Kernels& kernels, Checker& check) {
  Random random(1);
  const Bf16Product halves = {kernels.matmul_bf16_halves, 0x1p-17};
  test_bf16(halves, check, random);
  check.start("matmul bf16 in halves, more than one chunk");
  bf16_case(halves, check, random, 67, 40, 385, 1, true);
  bf16_case(halves, check, random, 6, 5, 4100, 1, true);
}

void test_matmul(const Kernels& kernels, Checker& check) {
  Random random(1);
  test_bf16({kernels.matmul_bf16, 0}, check, random);

  check.start("matmul mxfp4, every small shape");
  for (int64_t k = 32; k <= 192; k += 32) {
    mxfp4_case(kernels, check, random, 9, 9, k, k / 32 % 3, k % 64, 120, 130);
  }
  for (int64_t k : {480, 512, 992, 1440})
    mxfp4_case(kernels, check, random, 6, 5, k, 1, 1, 120, 130);
  check.start("matmul mxfp4, scales far apart");
  mxfp4_case(kernels, check, random, 9, 9, 128, 1, false, 0, 3);
  mxfp4_case(kernels, check, random, 9, 9, 128, 1, false, 1, 240);
  check.start("matmul mxfp4, ragged");
  for (int i = 0; i < 25; i++) {
    const Ragged c(random, 24);
    mxfp4_case(kernels, check, random, c.rows, c.tokens, 32 * c.steps, c.slack, c.with_bias, 118,
               130);
  }
  test_every_weight(kernels, check);
  test_matmul_q8(kernels, check);
}

void test_matmul_q8(const Kernels& kernels, Checker& check) {
  Random random(1);
  test_every_quantised(kernels, check, random);
  check.start("matmul mxfp4 q8, every small shape");
  for (int64_t k = 32; k <= 192; k += 32) {
    q8_case(kernels, check, random, 9, 9, k, k / 32 % 3, k % 64, 120, 130);
  }
  for (int64_t k : {480, 512, 992, 1440}) q8_case(kernels, check, random, 6, 5, k, 1, 1, 120, 130);
  check.start("matmul mxfp4 q8, scales far apart");
  q8_case(kernels, check, random, 9, 9, 128, 1, false, 0, 3);
  q8_case(kernels, check, random, 9, 9, 128, 1, false, 1, 240);
  // The scales that AVX-512 adds exponents for, and some of the others among them.
  for (int64_t k : {32, 128, 352}) {
    q8_case(kernels, check, random, 50, 9, k, 1, true, 64, 134);
    q8_case(kernels, check, random, 50, 9, k, 1, true, 63, 135);
  }
  test_every_12_bits(kernels, check, random);
  test_largest_8_bits(kernels, check);
  test_dense_q8<Dense12>(kernels, check, random);
  test_dense_q8<Dense8>(kernels, check, random);
  check.start("matmul mxfp4 q8, ragged");
  for (int i = 0; i < 25; i++) {
    const Ragged c(random, 24);
    q8_case(kernels, check, random, c.rows, c.tokens, 32 * c.steps, c.slack, c.with_bias, 118, 130);
  }
}
