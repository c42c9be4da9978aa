// The products on tiles against sums in double, their batch invariance, and the portable model's
// bits.
#include "product.h"

namespace {

// Rows of bf16, `ldx` apart. The problem's activations become the same rounded values.
struct Rounded {
  int64_t ldx;
  Guarded<uint16_t> x;
  Rounded(Problem& p, Random& random)
      : ldx(p.k + 32 * random.below(2)), x((p.tokens - 1) * ldx + p.k) {
    x.fill([] { return 0x7fc0; });  // NaN between the rows
    for (int64_t t = 0; t < p.tokens; t++) {
      for (int64_t i = 0; i < p.k; i++) {
        float& value = p.x[t]->data()[i];
        x.set(t * ldx + i, bf16_of(value));
        value = static_cast<float>(bf16_double(bf16_of(value)));
      }
    }
  }
};

struct Shape {
  int64_t rows, tokens, k, slack;
  bool with_bias;
};

// multiply(kernels, y, ldy, x, ldx, n, r0, r1, bias) adds to y.
template <class Weights, class Multiply>
void product_case(const Kernels& kernels, const Kernels* same, Checker& check, Random& random,
                  const Shape& s, const Weights& weights, Multiply multiply) {
  Problem p(s.rows, s.tokens, s.k, s.slack);
  p.fill_activations(random, 2);
  Rounded in(p, random);
  const uint16_t* bias = s.with_bias ? p.bias.data() : nullptr;
  p.multiply(weights, bias);
  all_cuts(check, random, p, rounding(s.k),
           [&](float* y, int64_t ldy, int64_t t0, int64_t n, int64_t r0, int64_t r1) {
             for (int64_t t = 0; t < n; t++) std::fill(y + t * ldy + r0, y + t * ldy + r1, 0.0F);
             multiply(kernels, y, ldy, in.x.data() + t0 * in.ldx, in.ldx, n, r0, r1, bias);
           });
  std::vector<float> twice(static_cast<size_t>(s.tokens * s.rows)), once = twice;
  const auto run = [&](const Kernels& k, std::vector<float>& y) {
    multiply(k, y.data(), s.rows, in.x.data(), in.ldx, s.tokens, 0, s.rows, bias);
  };
  run(kernels, once);
  if (same != nullptr) {
    std::vector<float> theirs(once.size());
    run(*same, theirs);
    for (size_t i = 0; i < once.size(); i++) {
      check.same(once[i], theirs[i], "other bits than the model's", static_cast<int64_t>(i));
    }
  }
  twice = once;
  run(kernels, twice);
  for (int64_t t = 0; t < s.tokens; t++) {
    for (int64_t r = 0; r < s.rows; r++) {
      const int64_t at = t * s.rows + r;
      check.near(twice[at], 2 * p.want[at], 4 * rounding(s.k) * p.magnitude[at] + 1e-36, t, r);
    }
  }
}

void both_products(const Kernels& kernels, const Kernels* same, Checker& check, Random& random,
                   const Shape& s) {
  Mxfp4 mx(random, s.rows, s.k, s.slack, 118, 130);
  product_case(kernels, same, check, random, s, mx,
               [&](const Kernels& k, float* y, int64_t ldy, const uint16_t* x, int64_t ldx,
                   int64_t n, int64_t r0, int64_t r1, const uint16_t* bias) {
                 k.matmul_mxfp4_tiles(y, ldy, x, ldx, n, mx.blocks.data(), mx.scales.data(), s.k,
                                      r0, r1, bias);
               });
  Guarded<uint16_t> w(s.rows * s.k, s.slack);
  w.fill([&] { return bf16_of(random.normal()); });
  product_case(
      kernels, same, check, random, s,
      [&](int64_t r, int64_t i) { return bf16_double(w.get(r * s.k + i)); },
      [&](const Kernels& k, float* y, int64_t ldy, const uint16_t* x, int64_t ldx, int64_t n,
          int64_t r0, int64_t r1, const uint16_t* bias) {
        k.matmul_bf16_tiles(y, ldy, x, ldx, n, w.data(), s.k, r0, r1, bias);
      });
}

// Every code at every place of a block under every scale whose weights are normal numbers, and
// larger ones: the weight itself, to the bit; of smaller ones zero.
void test_every_weight(const Kernels& kernels, Checker& check) {
  check.start("every weight on tiles");
  Guarded<uint8_t> blocks(16 * 2), scale(2);
  Guarded<uint16_t> x(32);
  Guarded<float> y(2);
  for (int s = 0; s <= 255; s++) {
    for (int i = 0; i < 32; i++) {
      for (int code = 0; code < 16; code++) {
        scale.set(0, static_cast<uint8_t>(s));
        scale.set(1, static_cast<uint8_t>(code % 2 == 0 ? s : 127));  // rows with other scales too
        memset(blocks.data(), 0, 32);
        memset(x.data(), 0, 32 * sizeof(uint16_t));
        blocks.data()[i / 2] = blocks.data()[16 + i / 2] =
            static_cast<uint8_t>(i % 2 == 0 ? code : code << 4);
        x.data()[i] = bf16_of(1);
        memset(y.data(), 0, 2 * sizeof(float));
        kernels.matmul_mxfp4_tiles(y.data(), 2, x.data(), 32, 1, blocks.data(), scale.data(), 32, 0,
                                   2, nullptr);
        const double full = ldexp(e2m1_double(code), s - 127);
        const float want = fabs(full) < 0x1p-126 ? 0 : static_cast<float>(full);
        check.that(y.data()[0] == want, "weight", y.data()[0], want, s, code);
      }
    }
  }
}

}  // namespace

void test_tiles(const Kernels& kernels, const Kernels* same, Checker& check) {
  Random random(11);
  test_every_weight(kernels, check);
  check.start("tiles, every small shape");
  for (int64_t k = 32; k <= 128; k += 32) {
    both_products(kernels, same, check, random, {9, 9, k, k / 32 % 3, k % 64 != 0});
  }
  check.start("tiles, more than one panel");
  for (int64_t k : {480, 512, 992, 1440}) {
    both_products(kernels, same, check, random, {6, 5, k, 1, true});
  }
  check.start("tiles, whole and ragged sides");
  for (int64_t rows : {16, 17, 32, 33}) {
    for (int64_t tokens : {16, 17, 32, 33}) {
      both_products(kernels, same, check, random, {rows, tokens, 64, 0, true});
    }
  }
  check.start("tiles, ragged");
  for (int i = 0; i < 12; i++) {
    const Ragged c(random, 20);
    both_products(kernels, same, check, random,
                  {c.rows, c.tokens, 32 * c.steps, c.slack, c.with_bias});
  }
}
