// The matrix unit and what is built on it, in every layout of fragments. Names begin with matrix:
// the layouts that differ in nothing else run these cases alone.
#include "reference.h"

namespace {

using reference::Row;

constexpr size_t kShared = 64 * 132 * 4;

TEST(matrix_proof) {
  std::vector<bf16> a(256), b(256);
  for (bf16& v : a) v = to_bf16(float(below(33) - 16));
  for (bf16& v : b) v = to_bf16(float(below(33) - 16));
  Memory<bf16> ma(a), mb(b);
  Memory<float> c(256);
  launch("matrix_proof", {1}, unsigned(emulator_warp()), 0, c, ma, mb);
  for (int i = 0; i < 16; i++)
    for (int j = 0; j < 16; j++) {
      float want = 0;
      for (int k = 0; k < 16; k++) want += from_bf16(a[i * 16 + k]) * from_bf16(b[j * 16 + k]);
      if (c[i * 16 + j] != want) fail("c[%d][%d] is %g, not %g", i, j, c[i * 16 + j], want);
    }
}

// Activations as one bf16 keeps them.
Row rounded(Row x, int terms) {
  if (terms == 1)
    for (double& v : x) v = from_bf16(to_bf16(float(v)));
  return x;
}

void linear_of(int terms, int rows, int k, int n, bool bias, bool add) {
  const int bucket = rows + 3, stride = n + 2;
  Memory<int> count(std::vector<int>{rows});
  Memory<float> x(floats(rows * k)), y(bucket * stride);
  if (add)
    for (int r = 0; r < rows; r++)
      for (int i = 0; i < n; i++) y[r * stride + i] = uniform();
  const std::vector<float> before = y.values();
  Memory<bf16> w(halves(n * k)), b(halves(n));
  launch(terms == 1 ? "prefill_linear_1" : "prefill_linear_3",
         {divide_up(n, 128), divide_up(bucket, 64)}, 256, kShared, count, y, x, w,
         bias ? b.data() : nullptr, k, n, stride, int(add));
  Comparison c("y", 4e-6);
  for (int r = 0; r < rows; r++) {
    const Row want = reference::linear(rounded(reference::wide(&x[r * k], k), terms), w.data(),
                                       bias ? b.data() : nullptr, n);
    for (int i = 0; i < n; i++)
      c.add(y[r * stride + i], want[i] + (add ? before[r * stride + i] : 0), 1 + fabs(want[i]),
            r * stride + i);
    for (int i = n; i < stride; i++)
      if (memcmp(&y[r * stride + i], &before[r * stride + i], 4)) fail("wrote behind the columns");
  }
  c.check();
  untouched("y", y, rows * stride);
}

TEST(matrix_linear) { linear_of(1, 67, 96, 150, true, false); }
TEST(matrix_linear_whole) { linear_of(3, 33, 160, 70, true, true); }
TEST(matrix_linear_no_bias) { linear_of(1, 5, 32, 129, false, false); }

void experts_of(int terms, int rows, int hidden, int inter, int experts, int top, int favourite) {
  const int slots = rows * top, bucket = slots + 5;
  const float limit = 7;
  // A routing of its own: some experts have nothing, one has many.
  std::vector<int> chosen, order, groups = {0};
  for (int s = 0; s < slots; s++) chosen.push_back(s % 3 ? favourite : below(experts));
  for (int e = 0; e < experts; e++) {
    const size_t start = order.size();
    for (int s = 0; s < slots; s++)
      if (chosen[s] == e) order.push_back(s);
    if (order.size() == start) continue;
    groups[0]++;
    groups.push_back(e);
    groups.push_back(int(order.size()));
  }
  Memory<int> o(order), g(groups);
  const reference::Experts gu(experts, 2 * inter, hidden, 124), d(experts, hidden, inter, 122);
  Memory<uint8_t> gb(gu.blocks), gs(gu.scales), db(d.blocks), ds(d.scales);
  Memory<bf16> gbias(gu.bias), dbias(d.bias);
  Memory<float> x(floats(rows * hidden)), h(bucket * inter), y(bucket * hidden);
  const unsigned tiles = divide_up(bucket, 64) + unsigned(experts);
  launch(terms == 1 ? "prefill_gate_up_1" : "prefill_gate_up_3", {divide_up(2 * inter, 128), tiles},
         256, kShared, h, o, g, x, gb, gs, gbias, inter, hidden, top, limit);
  launch(terms == 1 ? "prefill_down_1" : "prefill_down_3", {divide_up(hidden, 128), tiles}, 256,
         kShared, y, o, g, h, db, ds, dbias, hidden, inter);
  std::vector<double> mid, out;
  for (int s = 0; s < slots; s++) {
    const Row in = rounded(reference::wide(&x[s / top * hidden], hidden), terms);
    for (double v : reference::gate_up(gu, chosen[s], in, limit)) mid.push_back(v);
    const Row from = rounded(reference::wide(&h[s * inter], inter), terms);
    for (double v : reference::down(d, chosen[s], from)) out.push_back(v);
  }
  near("h", h, mid, 6e-6, 1);
  near("y", y, out, 6e-6, 1);
  untouched("h", h, slots * inter);
  untouched("y", y, slots * hidden);
}

TEST(matrix_experts) { experts_of(1, 52, 64, 96, 5, 2, 3); }
TEST(matrix_experts_whole) { experts_of(3, 4, 64, 96, 3, 4, 0); }
TEST(matrix_experts_one_slot) { experts_of(1, 1, 32, 32, 9, 1, 8); }

}  // namespace
