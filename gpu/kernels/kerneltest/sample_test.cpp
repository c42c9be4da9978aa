// Sampling against a reference that sorts: the same cuts, the same draw, on hundreds of random
// rows.
#include "reference.h"

namespace {

struct SampleRow {  // as sample.cu has it
  float temperature = 1, top_p = 1, min_p = 0;
  int top_k = 0;
  uint64_t seed = 0;
  int64_t position = 0;
  int mask = -1, reserved = 0;
};
struct LogitStats {
  float highest;
  int finite;
  uint64_t mass;
};
struct LogitEdit {
  int row, id;
  float repetition, less, more, was;
};
static_assert(sizeof(SampleRow) == 40 && sizeof(LogitStats) == 16 && sizeof(LogitEdit) == 24,
              "what sampling.go promises");

// The numbers that runtime/sample draws for (seed, position).
struct Draw {
  uint64_t seed;
  int64_t position;
  double u;
};
const Draw kDraws[] = {
    {0x0ull, 0, 0.88052019788861424},       {0x1ull, 2, 0.55650023306892282},
    {0x3039ull, 77, 0.52395343458177679},   {0xdeadbeefcafef00dull, 131071, 0.34336249498415805},
    {0x7ull, 1000000, 0.42882559640122442},
};

bool allowed(const std::vector<unsigned>& mask, int id) {
  return mask.empty() || (mask[id / 32] >> (id % 32) & 1);
}

// The token that u chooses.
int choose(const float* x, int vocab, const SampleRow& p, const std::vector<unsigned>& mask,
           double u) {
  std::vector<int> order;
  for (int i = 0; i < vocab; i++)
    if (allowed(mask, i)) order.push_back(i);
  if (order.empty()) return -2;
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return x[a] > x[b]; });
  if (p.temperature == 0) return order[0];
  const double highest = x[order[0]];
  const auto weight = [&](int id) { return exp((x[id] - highest) / p.temperature); };
  if (p.top_k > 0 && p.top_k < int(order.size())) order.resize(p.top_k);
  if (p.top_p < 1) {
    double whole = 0, sum = 0;
    for (int id : order) whole += weight(id);
    size_t n = 0;
    while (n < order.size() && (n == 0 || sum < p.top_p * whole)) sum += weight(order[n++]);
    order.resize(n);
  }
  if (p.min_p > 0)
    while (weight(order.back()) < p.min_p) order.pop_back();
  std::sort(order.begin(), order.end());
  double whole = 0, sum = 0;
  for (int id : order) whole += weight(id);
  for (int id : order)
    if ((sum += weight(id)) > u * whole) return id;
  return order.back();
}

constexpr size_t kStateBytes = 82192;

// The launches that choose a token of each row.
void sample(Memory<int>& count, Memory<int>& tokens, Memory<uint8_t>& states, Memory<float>& logits,
            Memory<SampleRow>& rows, Memory<unsigned>& masks, int vocab, int words) {
  const unsigned bucket = unsigned(tokens.size());
  for (const char* kernel : {"sample_look", "sample"})
    launch(kernel, {32, bucket}, 512, 0, count, tokens, states, logits, rows, masks, vocab, words);
}
void sample(Memory<int>& count, Memory<int>& tokens, Memory<float>& logits, Memory<SampleRow>& rows,
            Memory<unsigned>& masks, int vocab, int words) {
  Memory<uint8_t> states(std::vector<uint8_t>(tokens.size() * kStateBytes));
  sample(count, tokens, states, logits, rows, masks, vocab, words);
}

// One row a draw, the same parameters for all; `distinct` logit values make ties where it is small.
void sample_of(int vocab, SampleRow p, int distinct, bool masked) {
  const int rows = int(sizeof kDraws / sizeof *kDraws), bucket = rows + 1;
  const int words = int(divide_up(vocab, 32));
  std::vector<float> x = floats(size_t(rows) * vocab, 6);
  if (distinct)
    for (float& v : x) v = floorf(v / 6 * distinct) / 2;
  std::vector<unsigned> mask;
  if (masked)
    for (int i = 0; i < words; i++) mask.push_back(unsigned(rng()()) & unsigned(rng()()));
  std::vector<SampleRow> params;
  for (const Draw& d : kDraws) {
    p.seed = d.seed;
    p.position = d.position;
    p.mask = masked ? 1 : -1;
    params.push_back(p);
  }
  std::vector<unsigned> masks(words, 0);  // mask 0 allows nothing: it must not be taken
  masks.insert(masks.end(), mask.begin(), mask.end());
  Memory<int> count(std::vector<int>{rows}), tokens(bucket);
  Memory<float> logits(x);
  Memory<SampleRow> rows_of(params);
  Memory<unsigned> bits(masks);
  sample(count, tokens, logits, rows_of, bits, vocab, words);
  for (int r = 0; r < rows; r++) {
    const int want = choose(&x[size_t(r) * vocab], vocab, p, mask, kDraws[r].u);
    if (tokens[r] != want) fail("row %d: token %d, not %d", r, tokens[r], want);
  }
  untouched("tokens", tokens, rows);
}

SampleRow with(float temperature, int top_k, float top_p, float min_p) {
  SampleRow p;
  p.temperature = temperature;
  p.top_k = top_k;
  p.top_p = top_p;
  p.min_p = min_p;
  return p;
}

TEST(sample_plain) { sample_of(1000, with(1, 0, 1, 0), 0, false); }
TEST(sample_greedy) { sample_of(777, with(0, 0, 1, 0), 4, true); }
TEST(sample_masked) { sample_of(1003, with(0.7f, 0, 1, 0), 0, true); }
TEST(sample_top_k) {
  for (int k : {1, 2, 17, 400, 5000}) sample_of(600, with(2, k, 1, 0), 0, k % 2);
}
TEST(sample_top_k_ties) {
  for (int k : {1, 3, 40, 299}) sample_of(300, with(3, k, 1, 0), 3, k == 3);
}
TEST(sample_top_p) {
  for (float p : {0.0f, 0.1f, 0.5f, 0.9f, 0.999f}) sample_of(700, with(1.5f, 0, p, 0), 0, false);
}
TEST(sample_top_p_ties) {
  for (float p : {0.05f, 0.33f, 0.8f}) sample_of(400, with(1, 0, p, 0), 5, true);
}
TEST(sample_min_p) {
  for (float p : {0.01f, 0.3f, 1.0f}) sample_of(500, with(1, 0, 1, p), 0, false);
}
TEST(sample_all_cuts) { sample_of(900, with(0.8f, 50, 0.9f, 0.02f), 9, true); }
// Most tokens weigh nothing, and both cuts count.
TEST(sample_cold) {
  for (int k : {3, 60, 800}) sample_of(900, with(0.1f, k, 0.9f, 0), 0, k == 60);
}
// More tokens at the cuts than a row's list has room for.
TEST(sample_ties_beyond_the_list) {
  sample_of(17001, with(1, 0, 0.97f, 0), 1, false);
  sample_of(18001, with(2, 8600, 0.99f, 0), 1, false);
}
// The cut of top-k leaves open in which bin top-p's is.
TEST(sample_cuts_of_large_bins) {
  for (float p : {0.2f, 0.45f, 0.97f}) sample_of(1800, with(80, 1780, p, 0), 0, false);
}
TEST(sample_wide) { sample_of(40000, with(1, 0, 0.95f, 0), 0, true); }

// Tokens where min_p cuts are kept, though they begin a bin: 7 is 64 bins.
TEST(sample_min_p_at_the_end_of_a_bin) {
  const int vocab = 1000, rows = int(sizeof kDraws / sizeof *kDraws);
  std::vector<float> x(size_t(rows) * vocab, 1);
  std::vector<SampleRow> params;
  for (int r = 0; r < rows; r++) {
    x[r * vocab + 3] = 8;
    params.push_back(with(1, 900, 1, expf(-7) * 0.99999f));
    params[r].seed = kDraws[r].seed;
    params[r].position = kDraws[r].position;
  }
  Memory<int> count(std::vector<int>{rows}), tokens(rows);
  Memory<float> logits(x);
  Memory<SampleRow> rows_of(params);
  Memory<unsigned> none(1);
  sample(count, tokens, logits, rows_of, none, vocab, 0);
  for (int r = 0; r < rows; r++) {
    const int want = choose(&x[r * vocab], vocab, params[r], {}, kDraws[r].u);
    if (tokens[r] != want) fail("row %d: token %d, not %d", r, tokens[r], want);
  }
}

// Of both zeros the lower id is chosen; a temperature next to zero is one, and not infinity.
TEST(sample_zeros_and_next_to_zero) {
  for (const float temperature : {0.0f, 1e-39f}) {
    std::vector<float> x(64, -1.0f);
    x[5] = temperature == 0 ? 0.0f : -2.0f;
    x[3] = -0.0f;
    SampleRow p = with(temperature, 0, 1, 0);
    p.seed = 1;
    p.position = 0;
    p.mask = -1;
    Memory<int> count(std::vector<int>{1}), tokens(1);
    Memory<float> logits(x);
    Memory<SampleRow> rows(std::vector<SampleRow>{p});
    Memory<unsigned> bits(std::vector<unsigned>(2, 0));
    sample(count, tokens, logits, rows, bits, 64, 2);
    if (tokens[0] != 3) fail("temperature %g: token %d, not 3", temperature, tokens[0]);
  }
}

// Rows of one launch that each have another setting, on logits of every kind, in a state that the
// launches before have left.
TEST(sample_every_setting) {
  const int vocab = 1003, words = int(divide_up(vocab, 32)), kinds = 6, settings = 72;
  const int rows = settings / kinds;
  Memory<uint8_t> states(std::vector<uint8_t>(rows * kStateBytes));
  Memory<int> count(std::vector<int>{rows}), tokens(rows);
  std::vector<unsigned> mask;
  for (int i = 0; i < words; i++) mask.push_back(unsigned(rng()()) & unsigned(rng()()));
  Memory<unsigned> masks(mask);
  const char* const names[kinds] = {"spread", "flat", "equal", "two highest", "NaN", "infinite"};
  for (int kind = 0; kind < kinds; kind++) {
    std::vector<float> x = floats(size_t(rows) * vocab, kind == 1 ? 0.1f : kind == 2 ? 0 : 6);
    std::vector<SampleRow> params;
    for (int r = 0; r < rows; r++) {
      int n = (kind + kinds * r) * 5 % settings;  // each setting once
      const auto one_of = [&](std::vector<float> list) {
        const float v = list[n % list.size()];
        n /= int(list.size());
        return v;
      };
      SampleRow p;
      p.temperature = one_of({0, 0.3f, 1, 2});
      p.top_k = int(one_of({0, 1, 40}));
      p.top_p = one_of({1, 0.5f, 0.95f});
      p.min_p = one_of({0, 0.05f});
      p.mask = r % 3 == 1 ? 0 : -1;
      p.seed = kDraws[r % 5].seed;
      p.position = kDraws[r % 5].position;
      params.push_back(p);
      float* const own = &x[size_t(r) * vocab];
      if (kind == 3) own[40 + r] = own[900 - r] = 30;
      if (kind == 4) own[31 * r] = NAN;
      if (kind == 5) own[vocab - 1 - r] = r % 2 ? INFINITY : -INFINITY;
    }
    Memory<float> logits(x);
    Memory<SampleRow> rows_of(params);
    sample(count, tokens, states, logits, rows_of, masks, vocab, words);
    for (int r = 0; r < rows; r++) {
      const SampleRow& p = params[r];
      const int want = kind > 3
                           ? -1
                           : choose(&x[size_t(r) * vocab], vocab, p,
                                    p.mask < 0 ? std::vector<unsigned>() : mask, kDraws[r % 5].u);
      if (tokens[r] != want)
        fail("%s, temperature %g, top_k %d, top_p %g, min_p %g: token %d, not %d", names[kind],
             p.temperature, p.top_k, p.top_p, p.min_p, tokens[r], want);
    }
  }
}

TEST(sample_refuses) {
  const int vocab = 100;
  std::vector<float> x = floats(4 * vocab);
  x[17] = NAN;
  x[vocab + 99] = INFINITY;
  std::vector<SampleRow> params(4);
  params[2].mask = 0;
  Memory<int> count(std::vector<int>{4}), tokens(4);
  Memory<float> logits(x);
  Memory<SampleRow> rows(params);
  Memory<unsigned> masks(std::vector<unsigned>(4, 0));
  sample(count, tokens, logits, rows, masks, vocab, 4);
  if (tokens[0] != -1 || tokens[1] != -1) fail("logits that are not finite gave a token");
  if (tokens[2] != -2) fail("a mask that allows nothing gave a token");
  if (tokens[3] < 0 || tokens[3] >= vocab) fail("token %d", tokens[3]);
}

TEST(logit_stats) {
  const int vocab = 3000;
  const std::vector<float> x = floats(vocab, 20);
  Memory<int> count(std::vector<int>{1});
  Memory<float> logits(x);
  Memory<LogitStats> stats(2);
  launch("logit_stats", {2}, 512, 0, count, stats, logits, vocab);
  const double highest = *std::max_element(x.begin(), x.end());
  double mass = 0;
  for (float v : x) mass += exp(v - highest);
  if (stats[0].highest != float(highest) || !stats[0].finite) fail("the highest logit");
  Comparison c("mass", 1e-7);
  c.add(double(stats[0].mass) * 0x1p-40, mass, mass, 0);
  c.check();
  untouched("stats", stats, 1);
}

TEST(edit_logits) {
  const int vocab = 50;
  const std::vector<float> before = {floats(3 * vocab)};
  std::vector<LogitEdit> e = {{0, 3, 1.5f, 0.25f, 0, 0}, {2, 49, 2, 0, -1, 0}, {2, 0, 1, 0, 3, 0}};
  e.push_back({1, 1, 1, 0, 100, 0});  // one more than the count says
  Memory<int> count(std::vector<int>{3});
  Memory<LogitEdit> edits(e);
  Memory<float> logits(before);
  launch("edit_logits", {1}, 256, 0, count, edits, logits, vocab);
  std::vector<double> want(before.begin(), before.end());
  for (int i = 0; i < 3; i++) {
    double& v = want[e[i].row * vocab + e[i].id];
    if (edits[i].was != float(v)) fail("edit %d does not tell what was", i);
    v = (v > 0 ? v / e[i].repetition : v * e[i].repetition) - e[i].less + e[i].more;
  }
  near("logits", logits, want, 1e-6);
}

TEST(top_logits) {
  const int vocab = 900, n = 7;
  std::vector<float> x = floats(2 * vocab, 3);
  for (float& v : x) v = floorf(v * 20) / 20;
  Memory<int> count(std::vector<int>{2}), ids(3 * n);
  Memory<float> logits(x), values(3 * n);
  launch("top_logits", {3}, 512, 0, count, ids, values, logits, vocab, n);
  for (int r = 0; r < 2; r++) {
    const std::vector<int> want = reference::choose(reference::wide(&x[r * vocab], vocab), n);
    for (int i = 0; i < n; i++)
      if (ids[r * n + i] != want[i] || values[r * n + i] != x[r * vocab + want[i]])
        fail("row %d: place %d has token %d, not %d", r, i, ids[r * n + i], want[i]);
  }
  untouched("ids", ids, 2 * n);
}

}  // namespace
