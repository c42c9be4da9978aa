// The matrix products against sums in double, and their batch invariance bit for bit.
#include "product.h"

namespace {

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
  test_dense(kernels, check);
  check.start("matmul mxfp4 q8, ragged");
  for (int i = 0; i < 25; i++) {
    const Ragged c(random, 24);
    q8_case(kernels, check, random, c.rows, c.tokens, 32 * c.steps, c.slack, c.with_bias, 118, 130);
  }
}
