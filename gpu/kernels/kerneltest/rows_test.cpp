// embed, copy_rows, norm and linear against the reference. Every case runs fewer rows than
// its grid has and holds the rest to be untouched.
#include "tiles.h"

namespace {

using reference::Row;

constexpr int kBucket = 5;

TEST(embed) {
  const int rows = 3, hidden = 1056, vocab = 7;
  const std::vector<bf16> table = halves(vocab * hidden);
  Memory<int> count(std::vector<int>{rows}), tokens(std::vector<int>{6, 0, 3});
  Memory<bf16> w(table);
  Memory<float> x(kBucket * hidden);
  launch("embed", {divide_up(hidden, 8 * 128), kBucket}, 128, 0, count, x, tokens, w, hidden);
  for (int r = 0; r < rows; r++)
    for (int i = 0; i < hidden; i++)
      if (x[r * hidden + i] != from_bf16(table[tokens[r] * hidden + i]))
        fail("row %d differs at %d", r, i);
  untouched("x", x, rows * hidden);
}

TEST(copy_rows_listed) {
  const int rows = 4, asked = 3, hidden = 544;
  Memory<int> count(std::vector<int>{asked}), which(std::vector<int>{3, 0, 3});
  Memory<float> x(floats(rows * hidden)), y(kBucket * hidden);
  launch("copy_rows", {divide_up(hidden, 256), kBucket}, 256, 0, count, y, x, hidden, which);
  for (int r = 0; r < asked; r++)
    for (int i = 0; i < hidden; i++)
      if (y[r * hidden + i] != x[which[r] * hidden + i]) fail("row %d differs at %d", r, i);
  untouched("y", y, asked * hidden);
}

TEST(copy_rows) {
  const int rows = 3, words = 289;
  Memory<int> count(std::vector<int>{rows});
  Memory<float> x(floats(kBucket * words)), y(kBucket * words);
  launch("copy_rows", {divide_up(words, 256), kBucket}, 256, 0, count, y, x, words, nullptr);
  for (int i = 0; i < rows * words; i++)
    if (y[i] != x[i]) fail("element %d differs", i);
  untouched("y", y, rows * words);
}

void norm_of(int width, float size, bool in_place) {
  const int rows = 3;
  const float eps = 1e-5f;
  Memory<int> count(std::vector<int>{rows});
  std::vector<float> in = floats(rows * width, size);
  in.resize(kBucket * width, NAN);
  memset(in.data() + rows * width, 0xff, (kBucket - rows) * width * sizeof(float));
  Memory<float> x(in), y(kBucket * width);
  Memory<bf16> w(halves(width));
  Memory<float>& out = in_place ? x : y;
  Memory<bf16> rounded(kBucket * width);
  launch("norm", {kBucket}, 256, 0, count, nullptr, rounded, x, w, width, eps);
  launch("norm", {kBucket}, 256, 0, count, out, nullptr, x, w, width, eps);
  for (int i = 0; i < rows * width; i++)
    if (rounded[i] != to_bf16(out[i])) fail("element %d is not rounded", i);
  untouched("rounded", rounded, rows * width);
  std::vector<double> want;
  for (int r = 0; r < rows; r++)
    for (double v : reference::norm(reference::wide(&in[r * width], width), w.data(), eps))
      want.push_back(v);
  near("y", out, want, 2e-6, 1e-6);
  untouched("y", out, rows * width);
}

TEST(norm) { norm_of(2880, 1, false); }
TEST(norm_in_place) { norm_of(96, 1, true); }
TEST(norm_wide) { norm_of(6400, 1, true); }
TEST(norm_small) { norm_of(64, 1e-3f, false); }  // eps counts

void linear_of(int k, int n, int stride, bool bias, bool add) {
  const int rows = 3, column = 2;
  Memory<int> count(std::vector<int>{rows});
  Memory<float> x(floats(rows * k));
  Memory<bf16> w(halves(n * k)), b(halves(n));
  std::vector<float> before(kBucket * stride);
  memset(before.data(), 0xff, before.size() * sizeof(float));
  if (add) before = floats(kBucket * stride);
  Memory<float> y(before);
  launch("linear", {divide_up(n, 256 / emulator_warp()), kBucket}, 256, 0, count, y.data() + column,
         x, w, bias ? b.data() : nullptr, k, n, stride, int(add));
  for (int r = 0; r < kBucket; r++) {
    Row want;
    if (r < rows)
      want =
          reference::linear(reference::wide(&x[r * k], k), w.data(), bias ? b.data() : nullptr, n);
    Comparison c("y", 2e-6);
    for (int i = 0; i < stride; i++) {
      const float got = y[r * stride + i], was = before[r * stride + i];
      const int at = i - column;
      if (r < rows && at >= 0 && at < n)
        c.add(got, want[at] + (add ? was : 0), 1 + fabs(want[at]), r * stride + i);
      else if (memcmp(&got, &was, sizeof got))
        fail("row %d: column %d does not belong to the part", r, i);
    }
    c.check();
  }
}

TEST(linear) { linear_of(96, 19, 23, true, false); }
TEST(linear_no_bias) { linear_of(160, 8, 10, false, false); }
TEST(linear_add) { linear_of(64, 33, 35, true, true); }

TEST(round_rows_plain) {
  Memory<float> x(floats(3 * 1032));
  Memory<bf16> y(5 * 1032);
  round_rows(y, x, 3, 1032, kInOrder);
}
TEST(round_rows_shares) {
  Memory<float> x(floats(4 * 96));
  Memory<bf16> y(6 * 128);
  round_rows(y, x, 4, 96, kInShares);
}
TEST(round_rows_terms) {
  Memory<float> x(floats(4 * 1088));
  Memory<bf16> y(6 * 1088), two(6 * 2 * 1088);
  round_rows(y, x, 4, 1088, kOneTerm);
  round_rows(two, x, 4, 1088, kTwoTerms);
}

}  // namespace
