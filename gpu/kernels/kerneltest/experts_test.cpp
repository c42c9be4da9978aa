// route, quantize, gate_up, down and combine against the reference.
#include "reference.h"

namespace {

using reference::Row;

// A routing made by the kernels, held to the reference.
struct Routing {
  int rows, bucket, experts, top;
  Memory<int> count, chosen, order, groups;
  Memory<float> weights, router;

  Routing(int rows, int bucket, int experts, int top, std::vector<float> logits,
          unsigned block = 1024)
      : rows(rows),
        bucket(bucket),
        experts(experts),
        top(top),
        count(std::vector<int>{rows}),
        chosen(bucket * top),
        order(bucket * top),
        groups(1 + 2 * experts),
        weights(bucket * top),
        router(logits) {
    launch("route_choose", {divide_up(bucket, 256 / emulator_warp())}, 256, 0, count, chosen,
           weights, router, experts, top);
    launch("route_group", {1}, block, 4 * experts * (block / emulator_warp() + 1), count, order,
           groups, chosen, experts, top);
  }

  void check() const {
    for (int r = 0; r < rows; r++) {
      const Row logits = reference::wide(&router[r * experts], experts);
      const std::vector<int> want = reference::choose(logits, top);
      Row picked;
      for (int e : want) picked.push_back(logits[e]);
      const Row softmax = reference::softmax(picked);
      for (int j = 0; j < top; j++) {
        if (chosen[r * top + j] != want[j])
          fail("row %d: choice %d is %d, not %d", r, j, chosen[r * top + j], want[j]);
        Comparison c("weights", 1e-6);
        c.add(weights[r * top + j], softmax[j], 1, r * top + j);
        c.check();
      }
    }
    untouched("experts", chosen, rows * top);
    untouched("weights", weights, rows * top);
    untouched("order", order, rows * top);
    check_groups(chosen, order, groups, rows * top, experts);
  }
};

TEST(route) { Routing(70, 73, 12, 4, floats(73 * 12, 3)).check(); }
// Slots for every warp, in several rounds and the last of them not full; few experts, so that many
// lanes of a warp have the same one.
TEST(route_many_rows) {
  Routing(401, 403, 6, 3, floats(403 * 6, 3)).check();
  Routing(401, 403, 6, 3, floats(403 * 6, 3), 192).check();
}
// More experts than a warp has lanes: warps meet at the barriers.
TEST(route_many) { Routing(20, 22, 150, 4, floats(22 * 150, 3)).check(); }
// More experts than seven warps of a block have threads.
TEST(route_all_warps) { Routing(20, 22, 300, 4, floats(22 * 300, 3), 256).check(); }
TEST(route_one_row) { Routing(1, 1, 5, 2, {0.5f, 2, -1, 2, 1}).check(); }
TEST(route_ties) { Routing(3, 4, 8, 3, std::vector<float>(32, 1.0f)).check(); }

TEST(route_nan) {
  const float n = NAN;
  Routing r(2, 2, 4, 3, {n, 1, n, 2, n, n, n, n});
  const int want[6] = {3, 1, 0, 0, 1, 2};
  for (int i = 0; i < 6; i++) {
    // NaN goes last; which of several is not said, but every choice is an expert of its own.
    if (i < 2 && r.chosen[i] != want[i]) fail("choice %d is %d", i, r.chosen[i]);
    if (r.chosen[i] < 0 || r.chosen[i] > 3) fail("choice %d is %d", i, r.chosen[i]);
  }
  if (r.chosen[3] == r.chosen[4] || r.chosen[4] == r.chosen[5]) fail("an expert twice");
}

// The 8-bit rows, and what they stand for.
TEST(quantize) {
  const int rows = 2, width = 96;
  std::vector<float> in = floats(3 * width, 5);
  for (int i = 32; i < 64; i++) in[i] = 0;
  for (int i = 0; i < 32; i++) in[width + i] = 1e-39f * float(i);
  in[64] = 127, in[65] = 0.5f, in[66] = 1.5f, in[67] = -2.5f;  // ties, the scale being 1
  for (int i = 68; i < 96; i++) in[i] = float(i);
  Memory<int> count(std::vector<int>{rows});
  Memory<float> x(in), d(3 * width / 16);
  Memory<int8_t> q(3 * width);
  launch("quantize", {1, 3}, 64, 0, count, q, d, x, width);
  for (int r = 0; r < rows; r++) {
    const Row want = reference::quantized(reference::wide(&in[r * width], width));
    for (int b = 0; b < width / 32; b++) {
      const float scale = d[(r * width + b * 32) / 16];
      int sum = 0;
      for (int i = 0; i < 32; i++) {
        const int at = r * width + b * 32 + i;
        sum += q[at];
        Comparison c("q", 1e-6);
        c.add(double(scale) * q[at], want[b * 32 + i], 1, at);
        c.check();
      }
      if (d[(r * width + b * 32) / 16 + 1] != scale * float(sum)) fail("the sum of a block");
    }
  }
  untouched("q", q, rows * width);
  untouched("d", d, rows * width / 16);
}

// gate_up and down of a whole step, in either form of the activations.
void experts_of(int rows, int hidden, int inter, int experts, int top, bool q8, int exponent) {
  const int bucket = rows + 1, per_block = 256 / emulator_warp();
  const unsigned slots = bucket * top;
  const float limit = 7;
  Routing r(rows, bucket, experts, top, floats(bucket * experts, 2));
  const reference::Experts g(experts, 2 * inter, hidden, exponent), w(experts, hidden, inter, 122);
  Memory<uint8_t> gb(g.blocks), gs(g.scales), db(w.blocks), ds(w.scales);
  Memory<bf16> gbias(g.bias), dbias(w.bias);
  Memory<float> x(floats(rows * hidden)), h(slots * inter), y(slots * hidden);
  if (!q8) {
    launch("gate_up", {divide_up(inter, per_block), slots}, 256, 0, h, r.order, r.groups, x, gb, gs,
           gbias, inter, hidden, top, limit);
    launch("down", {divide_up(hidden, per_block), slots}, 256, 0, y, r.order, r.groups, h, db, ds,
           dbias, hidden, inter);
  } else {
    Memory<int8_t> xq(rows * hidden), hq(slots * inter);
    Memory<float> xd(rows * hidden / 16), hd(slots * inter / 16);
    Memory<int> live(std::vector<int>{rows * top});
    launch("quantize", {divide_up(hidden / 32, 64), unsigned(rows)}, 64, 0, r.count, xq, xd, x,
           hidden);
    launch("gate_up_q8", {divide_up(inter, per_block), slots}, 256, 0, h, r.order, r.groups, xq, xd,
           gb, gs, gbias, inter, hidden, top, limit);
    launch("quantize", {divide_up(inter / 32, 64), slots}, 64, 0, live, hq, hd, h, inter);
    launch("down_q8", {divide_up(hidden, per_block), slots}, 256, 0, y, r.order, r.groups, hq, hd,
           db, ds, dbias, hidden, inter);
  }
  for (int s = 0; s < rows * top; s++) {
    Row in = reference::wide(&x[s / top * hidden], hidden);
    if (q8) in = reference::quantized(in);
    near("h", std::vector<float>(&h[s * inter], &h[s * inter] + inter),
         reference::gate_up(g, r.chosen[s], in, limit), 3e-6, 1);
    Row mid = reference::wide(&h[s * inter], inter);
    if (q8) mid = reference::quantized(mid);
    near("y", std::vector<float>(&y[s * hidden], &y[s * hidden] + hidden),
         reference::down(w, r.chosen[s], mid), 3e-6, 1);
  }
  untouched("h", h, rows * top * inter);
  untouched("y", y, rows * top * hidden);
}

TEST(experts) { experts_of(5, 96, 64, 6, 2, false, 124); }
TEST(experts_one_row) { experts_of(1, 64, 32, 4, 4, false, 127); }
TEST(experts_clamped) { experts_of(2, 128, 32, 4, 2, false, 128); }
TEST(experts_q8) { experts_of(5, 96, 64, 6, 2, true, 124); }

void combine_of(int width, int top) {
  const int rows = 3, bucket = 4;
  const std::vector<float> before = floats(bucket * width);
  Memory<int> count(std::vector<int>{rows});
  Memory<float> x(before), y(floats(rows * top * width)), weights(floats(rows * top));
  launch("combine", {divide_up(width, 4 * 128), bucket}, 128, 0, count, x, y, weights, width, top);
  std::vector<double> want(before.begin(), before.end());
  for (int r = 0; r < rows; r++)
    for (int j = 0; j < top; j++)
      for (int i = 0; i < width; i++)
        want[r * width + i] += double(weights[r * top + j]) * y[(size_t(r) * top + j) * width + i];
  near("x", x, want, 1e-6);
}
TEST(combine) { combine_of(96, 3); }
TEST(combine_wide) { combine_of(644, 6); }

}  // namespace
