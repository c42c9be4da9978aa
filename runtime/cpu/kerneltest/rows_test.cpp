// The kernels over one row against the same formulas in double, at every length with a tail.
#include <algorithm>
#include <vector>

#include "check.h"
#include "guard.h"

namespace {

const int64_t kLengths[] = {1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 96, 180, 2880};

void test_rmsnorm(const Kernels& k, Checker& check, Random& random) {
  check.start("rmsnorm");
  for (int64_t n : kLengths) {
    for (float size : {1e-4f, 1.0f, 1e4f}) {
      Guarded<float> x(n), y(n);
      Guarded<uint16_t> w(n, n % 2);
      x.fill([&] { return size * random.normal(); });
      w.fill([&] { return bf16_of(random.normal()); });
      double squares = 0;
      for (int64_t i = 0; i < n; i++) squares += static_cast<double>(x.get(i)) * x.get(i);
      const double scale = 1 / sqrt(squares / static_cast<double>(n) + 1e-5);
      k.rmsnorm(y.data(), x.data(), w.data(), n, 1e-5f);
      for (int64_t i = 0; i < n; i++) {
        const double want = x.get(i) * scale * bf16_double(w.get(i));
        check.near(y.get(i), want, fabs(want) * 1e-6, n, i);
      }
      k.rmsnorm(x.data(), x.data(), w.data(), n, 1e-5f);  // in place
      for (int64_t i = 0; i < n; i++) check.same(x.get(i), y.get(i), "in place", n, i);
    }
  }
}

// The exponent is rounded to float32, so the result loses as many bits as the gate has before the
// point; below exp(-88) it is anything near zero.
double swiglu_bound(double gate, double want) {
  return fabs(want) * (1e-6 + 2.5e-7 * fmin(fabs(gate), 60)) + 1e-31;
}

double swiglu_double(double gate, double up, double limit) {
  gate = fmin(gate, limit);
  up = fmin(fmax(up, -limit), limit);
  return gate / (1 + exp(-1.702 * gate)) * (up + 1);
}

void test_swiglu(const Kernels& k, Checker& check, Random& random) {
  check.start("swiglu");
  for (int64_t n : kLengths) {
    Guarded<float> x(2 * n), y(n);
    x.fill([&] { return random.below(9) ? 5 * random.normal() : 1e5f * random.normal(); });
    k.swiglu(y.data(), x.data(), n, 7);
    for (int64_t i = 0; i < n; i++) {
      const double want = swiglu_double(x.get(2 * i), x.get(2 * i + 1), 7);
      check.near(y.get(i), want, swiglu_bound(x.get(2 * i), want), n, i);
    }
    k.swiglu(x.data(), x.data(), n, 7);  // in place
    for (int64_t i = 0; i < n; i++) check.same(x.get(i), y.get(i), "in place", n, i);
  }
  // The whole range of the gate in small steps: the exponential inside.
  const int64_t n = 4001;
  Guarded<float> x(2 * n), y(n);
  for (int64_t i = 0; i < n; i++) {
    x.set(2 * i, static_cast<float>(i - 3500) / 64.0f);
    x.set(2 * i + 1, 0);
  }
  k.swiglu(y.data(), x.data(), n, 7);
  for (int64_t i = 0; i < n; i++) {
    const double want = swiglu_double(x.get(2 * i), 0, 7);
    check.near(y.get(i), want, swiglu_bound(x.get(2 * i), want), n, i);
  }
}

void test_rope(const Kernels& k, Checker& check, Random& random) {
  check.start("rope");
  for (int64_t dim = 2; dim <= 256; dim += dim < 40 ? 2 : 24) {
    const int64_t heads = random.between(1, 5), half = dim / 2;
    Guarded<float> x(heads * dim), cosine(half), sine(half);
    x.fill([&] { return random.normal(); });
    cosine.fill([&] { return random.normal(); });
    sine.fill([&] { return random.normal(); });
    std::vector<float> before(x.data(), x.data() + x.size());
    k.rope(x.data(), heads, dim, cosine.data(), sine.data());
    for (int64_t h = 0; h < heads; h++) {
      for (int64_t i = 0; i < half; i++) {
        const double a = before[h * dim + i], b = before[h * dim + i + half];
        const double c = cosine.get(i), s = sine.get(i);
        const double bound = (fabs(a) + fabs(b)) * (fabs(c) + fabs(s)) * 3e-7;
        check.near(x.get(h * dim + i), a * c - b * s, bound, dim, i);
        check.near(x.get(h * dim + i + half), b * c + a * s, bound, dim, i + half);
      }
    }
  }
}

void test_conversions(const Kernels& k, Checker& check, Random& random) {
  check.start("bf16 conversions");
  const int64_t all = 65536;
  Guarded<uint16_t> half(all, 1), back(all, 1);
  Guarded<float> wide(all);
  for (int64_t i = 0; i < all; i++) half.set(i, static_cast<uint16_t>(i));
  k.bf16_to_f32(wide.data(), half.data(), all);
  k.f32_to_bf16(back.data(), wide.data(), all);
  for (int64_t i = 0; i < all; i++) {
    check.same(wide.get(i), bits_float(static_cast<uint32_t>(i) << 16), "widened", i);
    const bool nan = isnan(wide.get(i));
    const bool held = nan ? isnan(bf16_double(back.get(i))) : back.get(i) == i;
    check.that(held, "there and back", back.get(i), static_cast<double>(i));
  }
  for (int64_t n : kLengths) {
    Guarded<float> x(n), y(n);
    Guarded<uint16_t> rounded(n, n % 2);
    x.fill([&] {  // any finite bits, and exact ties
      uint32_t bits = static_cast<uint32_t>(random.bits());
      if (random.below(3) == 0) bits = (bits & 0xffff0000u) | 0x8000u;
      return isfinite(bits_float(bits)) ? bits_float(bits) : 1.0f;
    });
    k.f32_to_bf16(rounded.data(), x.data(), n);
    k.bf16_to_f32(y.data(), rounded.data(), n);
    for (int64_t i = 0; i < n; i++) {
      const uint32_t bits = float_bits(x.get(i)), low = bits & 0xffffu;
      const bool up = low > 0x8000u || (low == 0x8000u && (bits >> 16 & 1));
      const float want = bits_float((bits & 0xffff0000u) + (up ? 0x10000u : 0));
      check.same(y.get(i), want, "rounded", n, i);
    }
  }
}

// Every code is read through attention: one key of zeros and one value row that holds them all.
void test_f8(const Kernels& k, Checker& check, Random& random) {
  check.start("e4m3 codes read");
  Guarded<uint8_t> keys(256), values(256);
  Guarded<float> q(256), acc(256), m(1), l(1), y(256);
  for (int64_t i = 0; i < 256; i++) {
    keys.set(i, 0);
    values.set(i, static_cast<uint8_t>(i));
    q.set(i, 1);
  }
  k.attention_begin(m.data(), l.data(), acc.data(), 1, 256, nullptr);
  const AttentionRow row = {q.data(), m.data(), l.data(), acc.data(), 0, 1};
  k.attention_page_f8(&row, 1, 1, 256, 1, keys.data(), values.data(), 256, nullptr, 0);
  k.attention_end(y.data(), l.data(), acc.data(), 1, 256);
  for (int i = 0; i < 256; i++) {
    const double want = f8_double(static_cast<uint8_t>(i));
    check.that(y.get(i) == want, "code", y.get(i), want, i);
  }

  check.start("e4m3 codes written");
  std::vector<float> numbers = {INFINITY, -INFINITY, NAN, 448, 449, 464, 1e30f, -1e-30f, 0.0f};
  for (int code = 0; code < 0x7f; code++) {  // each, its middle with the next, and both neighbours
    const float a = static_cast<float>(f8_double(static_cast<uint8_t>(code)));
    const float b = static_cast<float>(f8_double(static_cast<uint8_t>(code + 1)));
    for (float x : {a, a / 2 + b / 2}) {
      for (float y : {x, nextafterf(x, -1e9f), nextafterf(x, 1e9f)}) {
        numbers.push_back(y);
        numbers.push_back(-y);
      }
    }
  }
  for (int i = 0; i < 2000; i++) {
    numbers.push_back(ldexpf(random.normal(), static_cast<int>(random.between(-14, 10))));
  }
  for (size_t begin = 0; begin < numbers.size();) {  // in pieces of any length
    const size_t n = std::min<size_t>(numbers.size() - begin, random.between(1, 70));
    Guarded<float> x(n);
    Guarded<uint8_t> got(n), want(n);
    for (size_t i = 0; i < n; i++) x.set(i, numbers[begin + i]);
    k.f32_to_f8(got.data(), x.data(), n);
    kernels_scalar()->f32_to_f8(want.data(), x.data(), n);
    for (size_t i = 0; i < n; i++) {
      check.that(got.get(i) == want.get(i), "code", got.get(i), want.get(i), begin + i);
      const double size = fabs(x.get(i)) < 448 ? fabs(x.get(i)) : 448;
      // Half a step of the last place: 2^-4 of the number, 2^-10 where it is subnormal.
      check.near(fabs(f8_double(got.get(i))), size, fmax(size / 16, 0x1p-10), begin + i);
    }
    begin += n;
  }
}

void test_sums(const Kernels& k, Checker& check, Random& random) {
  check.start("add and axpy");
  for (int64_t n : kLengths) {
    Guarded<float> y(n), x(n);
    y.fill([&] { return random.normal(); });
    x.fill([&] { return random.normal(); });
    std::vector<float> before(y.data(), y.data() + n);
    k.add(y.data(), x.data(), n);
    for (int64_t i = 0; i < n; i++) check.same(y.get(i), before[i] + x.get(i), "sum", n, i);
    before.assign(y.data(), y.data() + n);
    k.axpy(y.data(), 0.37f, x.data(), n);
    for (int64_t i = 0; i < n; i++) {
      const double want = before[i] + static_cast<double>(0.37f) * x.get(i);
      check.near(y.get(i), want, 1e-6 * (fabs(before[i]) + fabs(x.get(i))), n, i);
    }
    k.add(x.data(), x.data(), n);  // doubled in place
  }
  check.start("softmax");
  for (int64_t n : {1, 2, 4, 5, 32}) {
    Guarded<float> x(n);
    x.fill([&] { return 20 * random.normal(); });
    double largest = x.get(0), sum = 0;
    for (int64_t i = 0; i < n; i++) largest = fmax(largest, x.get(i));
    for (int64_t i = 0; i < n; i++) sum += exp(x.get(i) - largest);
    std::vector<double> want;
    for (int64_t i = 0; i < n; i++) want.push_back(exp(x.get(i) - largest) / sum);
    k.softmax(x.data(), n);
    for (int64_t i = 0; i < n; i++) {
      // The difference to the largest logit is rounded to float32 before its exponential.
      const double bound = want[i] * (1e-6 + 6e-8 * fabs(log(want[i]))) + 1e-37;
      check.near(x.get(i), want[i], bound, n, i);
    }
  }
}

}  // namespace

void test_rows(const Kernels& k, Checker& check) {
  Random random(2);
  test_rmsnorm(k, check, random);
  test_swiglu(k, check, random);
  test_rope(k, check, random);
  test_conversions(k, check, random);
  test_f8(k, check, random);
  test_sums(k, check, random);
}
