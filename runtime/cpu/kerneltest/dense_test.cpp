// The products with dense weights in 8 bits, for inputs of 12 bits and of 8.
#include "product.h"

namespace {

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

// Weights that are 1 in one column: the product is what the activation of twelve bits says there.
// Then the largest sum there is, of either sign, which is exact.
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

}  // namespace

void test_dense(const Kernels& kernels, Checker& check) {
  Random random(1);
  test_every_12_bits(kernels, check, random);
  test_largest_8_bits(kernels, check);
  test_dense_q8<Dense12>(kernels, check, random);
  test_dense_q8<Dense8>(kernels, check, random);
}
