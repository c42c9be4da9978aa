// Attention over pages against one softmax in double, however the tokens are cut into calls.
#include <algorithm>
#include <vector>

#include "check.h"
#include "guard.h"

namespace {

struct Case {
  int64_t group, dim, tokens;
  float scale, size;  // of the logits: `size` widens them until weights underflow
  bool sink;
};

struct State {
  Guarded<float> m, l, acc;
  State(int64_t group, int64_t dim) : m(group), l(group), acc(group * dim) {}
};

void page(const Kernels& k, const AttentionRow* rows, int64_t n, const Case& c, const float* keys,
          const float* values, int64_t stride, const void* next, int64_t bytes) {
  k.attention_page_f32(rows, n, c.group, c.dim, c.scale, keys, values, stride, next, bytes);
}
void page(const Kernels& k, const AttentionRow* rows, int64_t n, const Case& c,
          const uint16_t* keys, const uint16_t* values, int64_t stride, const void* next,
          int64_t bytes) {
  k.attention_page_bf16(rows, n, c.group, c.dim, c.scale, keys, values, stride, next, bytes);
}
void page(const Kernels& k, const AttentionRow* rows, int64_t n, const Case& c, const uint8_t* keys,
          const uint8_t* values, int64_t stride, const void* next, int64_t bytes) {
  k.attention_page_f8(rows, n, c.group, c.dim, c.scale, keys, values, stride, next, bytes);
}
template <class T>
void page(const Kernels& k, State& s, float* q, const Case& c, const T* keys, const T* values,
          int64_t stride, int64_t t0, int64_t t1) {
  const AttentionRow row = {q, s.m.data(), s.l.data(), s.acc.data(), t0, t1};
  page(k, &row, 1, c, keys, values, stride, keys, t1 * stride * int64_t{sizeof(T)});
}

double value_of(float a) { return a; }
double value_of(uint16_t a) { return bf16_double(a); }
double value_of(uint8_t a) { return f8_double(a); }
void assign(float a, float* to) { *to = a; }
void assign(float a, uint16_t* to) { *to = bf16_of(a); }
// Any code of a number of that size: signs and mantissas of all kinds, subnormals among them.
void assign(float a, uint8_t* to) { kernels_scalar()->f32_to_f8(to, &a, 1); }

template <class T>
void run(const Kernels& k, Checker& check, Random& random, const Case& c) {
  const int64_t stride = c.dim + 16 * random.below(3);
  const int64_t length = (c.tokens - 1) * stride + c.dim;  // the last row ends the memory
  Guarded<T> keys(length), values(length);
  for (auto* g : {&keys, &values}) {
    g->fill([&] {
      T value;
      assign(c.size * random.normal(), &value);
      return value;
    });
  }
  Guarded<float> q(c.group * c.dim), y(c.group * c.dim);
  q.fill([&] { return random.normal(); });
  Guarded<uint16_t> sinks(c.group, 1);
  sinks.fill([&] { return bf16_of(2 * random.normal()); });
  const uint16_t* sink = c.sink ? sinks.data() : nullptr;

  std::vector<double> want(static_cast<size_t>(c.group * c.dim));
  for (int64_t g = 0; g < c.group; g++) {
    std::vector<double> logit;
    for (int64_t t = 0; t < c.tokens; t++) {
      double sum = 0;
      for (int64_t i = 0; i < c.dim; i++) {
        sum += q.get(g * c.dim + i) * value_of(keys.get(t * stride + i));
      }
      logit.push_back(sum * c.scale);
    }
    double largest = *std::max_element(logit.begin(), logit.end()), total = 0;
    if (sink) largest = std::max(largest, bf16_double(sinks.get(g)));
    for (double& x : logit) total += x = exp(x - largest);
    if (sink) total += exp(bf16_double(sinks.get(g)) - largest);
    for (int64_t t = 0; t < c.tokens; t++) {
      for (int64_t i = 0; i < c.dim; i++) {
        want[g * c.dim + i] += logit[t] / total * value_of(values.get(t * stride + i));
      }
    }
  }

  // The tokens in one call, and in pieces, each starting inside its "page", as the first page of a
  // window does.
  for (int way = 0; way < 2; way++) {
    State s(c.group, c.dim);
    k.attention_begin(s.m.data(), s.l.data(), s.acc.data(), c.group, c.dim, sink);
    for (int64_t t = 0; t < c.tokens;) {
      const int64_t next = way == 0 ? c.tokens : std::min(c.tokens, t + random.between(0, 40));
      const int64_t before = std::min<int64_t>(t, random.below(3));  // rows of the page not asked
      page(k, s, q.data(), c, keys.data() + (t - before) * stride,
           values.data() + (t - before) * stride, stride, before, before + next - t);
      t = next;
    }
    k.attention_end(y.data(), s.l.data(), s.acc.data(), c.group, c.dim);
    for (int64_t i = 0; i < c.group * c.dim; i++) {
      const double bound = 3e-6 * c.size * (1 + c.size);  // a logit's rounding grows with its size
      check.near(y.get(i), want[i], bound, c.tokens, i);
    }
  }
}

// Rows that share a call, each seeing other tokens of the page, as rows of a prompt or of a window
// do: the bits of a call of their own, in which nothing else of the page may be read. What no row
// sees is NaN.
template <class T>
void together(const Kernels& k, Checker& check, Random& random, const Case& c) {
  const int64_t n = random.between(1, 9), size = c.group * c.dim;
  const int64_t stride = c.dim + 8 * random.below(2);
  const int64_t length = (c.tokens - 1) * stride + c.dim;
  std::vector<int64_t> t0, t1;
  int64_t low = c.tokens, high = 0;
  for (int64_t r = 0; r < n; r++) {
    t0.push_back(random.below(3) ? random.below(c.tokens) : 0);
    t1.push_back(random.below(3) ? random.between(t0[r], c.tokens) : t0[r] + 1);
    if (t0[r] == t1[r]) continue;  // sees nothing
    low = std::min(low, t0[r]);
    high = std::max(high, t1[r]);
  }
  Guarded<T> keys(length), values(length);
  for (auto* g : {&keys, &values}) {
    int64_t i = 0;
    g->fill([&] {
      const int64_t token = i++ / stride;
      T value;
      assign(token < low || token >= high ? NAN : c.size * random.normal(), &value);
      return value;
    });
  }
  Guarded<float> q(n * size), m(n * c.group), l(n * c.group), acc(n * size);
  q.fill([&] { return random.normal(); });
  Guarded<uint16_t> sinks(c.group, 1);
  sinks.fill([&] { return bf16_of(2 * random.normal()); });
  std::vector<AttentionRow> rows;
  for (int64_t r = 0; r < n; r++) {
    rows.push_back({q.data() + r * size, m.data() + r * c.group, l.data() + r * c.group,
                    acc.data() + r * size, t0[r], t1[r]});
    k.attention_begin(rows[r].m, rows[r].l, rows[r].acc, c.group, c.dim,
                      c.sink ? sinks.data() : nullptr);
  }
  page(k, rows.data(), n, c, keys.data(), values.data(), stride, nullptr, 0);
  for (int64_t r = 0; r < n; r++) {
    // Alone, the page ends with the row's last token and begins with garbage.
    Guarded<T> own_keys(std::max<int64_t>(0, (t1[r] - 1) * stride + c.dim));
    Guarded<T> own_values(own_keys.size());
    for (int64_t i = 0; i < own_keys.size(); i++) {
      T nan;
      assign(NAN, &nan);
      own_keys.set(i, i / stride < t0[r] ? nan : keys.get(i));
      own_values.set(i, i / stride < t0[r] ? nan : values.get(i));
    }
    State s(c.group, c.dim);
    k.attention_begin(s.m.data(), s.l.data(), s.acc.data(), c.group, c.dim,
                      c.sink ? sinks.data() : nullptr);
    page(k, s, q.data() + r * size, c, own_keys.data(), own_values.data(), stride, t0[r], t1[r]);
    for (int64_t g = 0; g < c.group; g++) {
      check.same(m.get(r * c.group + g), s.m.get(g), "m of rows together", r, g);
      check.same(l.get(r * c.group + g), s.l.get(g), "l of rows together", r, g);
    }
    for (int64_t i = 0; i < size; i++) {
      check.same(acc.get(r * size + i), s.acc.get(i), "acc of rows together", r, i);
    }
  }
}

}  // namespace

void test_attention(const Kernels& k, Checker& check) {
  Random random(3);
  check.start("attention");
  for (int64_t group : {1, 2, 3, 4, 5, 7, 8, 9, 12}) {
    for (int64_t dim : {32, 64, 96, 128, 256}) {
      for (int64_t tokens : {1, 2, 31, 32, 33, 100}) {
        const Case c = {group, dim, tokens, 1 / sqrtf(static_cast<float>(dim)), 1, dim != 96};
        run<float>(k, check, random, c);
        run<uint16_t>(k, check, random, c);
        run<uint8_t>(k, check, random, c);
      }
    }
  }
  check.start("attention, rows together");
  for (int64_t group : {1, 3, 8, 17}) {
    for (int64_t dim : {32, 64, 256}) {
      for (int64_t tokens : {1, 15, 33, 70}) {
        const Case c = {group, dim, tokens, 1 / sqrtf(static_cast<float>(dim)), 1, dim != 32};
        together<float>(k, check, random, c);
        together<uint16_t>(k, check, random, c);
        together<uint8_t>(k, check, random, c);
      }
    }
  }
  check.start("attention, sharp");
  for (int64_t tokens : {5, 64, 129}) run<float>(k, check, random, {8, 64, tokens, 1, 30, true});

  check.start("attention, nothing but a sink");
  State s(2, 32);
  Guarded<float> y(64);
  const uint16_t sinks[2] = {bf16_of(1), bf16_of(-1)};
  k.attention_begin(s.m.data(), s.l.data(), s.acc.data(), 2, 32, sinks);
  k.attention_end(y.data(), s.l.data(), s.acc.data(), 2, 32);
  for (int i = 0; i < 64; i++) check.same(y.get(i), 0, "no value", i);
  k.attention_begin(s.m.data(), s.l.data(), s.acc.data(), 2, 32, nullptr);
  k.attention_end(y.data(), s.l.data(), s.acc.data(), 2, 32);
  for (int i = 0; i < 64; i++) check.same(y.get(i), 0, "nothing seen", i);
}
