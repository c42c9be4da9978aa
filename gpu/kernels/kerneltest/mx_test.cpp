// The matrix unit for MXFP4, emulated with the layouts of NVIDIA and of CDNA, and the activations
// that it is given.
#include "tiles.h"

namespace {

using reference::Row;

bool there() {
  return strcmp(emulator_layout(), "nv") == 0 || strcmp(emulator_layout(), "cdna") == 0;
}

const double kValues[8] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};

double value(int code) { return code & 8 ? -kValues[code & 7] : kValues[code & 7]; }

// The nearest code's value for y >= 0; of two as near, the one whose code is even.
double nearest(double y) {
  int best = 0;
  for (int c = 1; c < 8; c++) {
    const double a = fabs(y - kValues[c]), b = fabs(y - kValues[best]);
    if (a < b || (a == b && c % 2 == 0)) best = c;
  }
  return kValues[best];
}

// A row as its first terms of MXFP4 keep it.
Row first_terms(const Row& x, int terms) {
  Row y(x.size()), rest = x;
  for (size_t b = 0; b < x.size(); b += 32)
    for (int t = 0; t < terms; t++) {
      double largest = 0;
      for (size_t i = b; i < b + 32; i++) largest = std::max(largest, fabs(rest[i]));
      if (largest < 0x1p-124) continue;
      double scale = 0x1p-127;
      while (6 * scale < largest) scale *= 2;
      for (size_t i = b; i < b + 32; i++) {
        const double v = copysign(nearest(fabs(rest[i]) / scale), rest[i]) * scale;
        y[i] += v;
        rest[i] -= v;
      }
    }
  return y;
}

Row in_terms(const Row& x) { return first_terms(x, 2); }

TEST(mx_quantize) {
  const int rows = 3, width = 128;
  std::vector<float> in = floats((rows + 1) * width, 5);
  for (int i = 0; i < 32; i++) in[i] = 0;
  for (int i = 32; i < 64; i++) in[i] = 1e-38f * float(i - 32);
  const float ties[] = {6, 0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5, -5, -0.25f, -2.5f, 4.999f};
  for (int i = 0; i < 12; i++) in[64 + i] = ties[i];
  in[96] = 6.0001f;  // twice the scale of 6
  in[width + 3] = INFINITY;
  in[width + 40] = NAN;
  Memory<int> count(std::vector<int>{rows});
  Memory<float> x(in);
  Memory<uint8_t> q((rows + 1) * width), s((rows + 1) * width / 16);
  launch("quantize_mx", {1, rows + 1}, 64, 0, count, q, s, x, width);
  for (int r = 0; r < rows; r++) {
    const Row from = reference::wide(&in[r * width], width);
    const Row want[2] = {first_terms(from, 1), first_terms(from, 2)};
    for (int b = 0; b < width / 32; b++) {
      double largest = 0;
      for (int i = 0; i < 32; i++)
        largest = std::max(largest, fabs(double(in[r * width + b * 32 + i])));
      for (int i = 0; i < 32; i++) {
        const int at = b * 32 + i;
        double have = 0;
        for (int t = 0; t < 2; t++) {
          const int row = r * 2 + t, scale = s[row * (width / 32) + b];
          const int code = q[row * (width / 2) + at / 2] >> at % 2 * 4 & 15;
          have += scale == 255 ? NAN : value(code) * ldexp(1, scale - 127);
          const bool lost = r == 1 && b < 2;  // beside an infinity or a NaN
          if (lost ? have == have : have != want[t][at])
            fail("element %d of row %d is %.9g after term %d, not %.9g", at, r, have, t,
                 lost ? double(NAN) : want[t][at]);
        }
        if (largest >= 0x1p-124 && fabs(have - in[r * width + at]) > largest / 25 + 0x1p-124)
          fail("element %d of row %d: %g for %g, the largest is %g", at, r, have,
               in[r * width + at], largest);
      }
    }
  }
  untouched("q", q, rows * width);
  untouched("s", s, rows * width / 16);
}

// Every warp leaves the sum of its eight products, three times over.
TEST(mx_rate) {
  if (!there()) return;
  const int rounds = 3, warps = 256 / emulator_warp();
  std::vector<uint8_t> a(2 * 16 * 64), b(4 * 16 * 64), as(2 * 64), bs(4 * 64);
  for (auto* v : {&a, &b})
    for (uint8_t& c : *v) c = uint8_t(rng()());
  for (auto* v : {&as, &bs})
    for (uint8_t& e : *v) e = uint8_t(127 + below(3));
  Memory<uint8_t> ma(a), mb(b), mas(as), mbs(bs);
  Memory<float> c((warps + 1) * 256);
  launch("matrix_rate_mx", {1}, 256, 0, c, ma, mas, mb, mbs, rounds);
  const auto at = [](const std::vector<uint8_t>& q, const std::vector<uint8_t>& s, int row, int k) {
    return value(q[row * 64 + k / 2] >> k % 2 * 4 & 15) * ldexp(1, s[row * 4 + k / 32] - 127);
  };
  for (int i = 0; i < 16; i++)
    for (int j = 0; j < 16; j++) {
      double want = 0;
      for (int x = 0; x < 2; x++)
        for (int y = 0; y < 4; y++)
          for (int k = 0; k < 128; k++)
            want += rounds * at(a, as, x * 16 + i, k) * at(b, bs, y * 16 + j, k);
      for (int w = 0; w < warps; w++)
        if (c[w * 256 + i * 16 + j] != want)
          fail("warp %d: c[%d][%d] is %g, not %g", w, i, j, c[w * 256 + i * 16 + j], want);
    }
  untouched("c", c, warps * 256);
}

void experts_mx(int rows, int hidden, int inter, int experts, int top, int favourite) {
  if (!there()) return;
  Grouped g(rows, hidden, inter, experts, top, favourite);
  Memory<int> live(std::vector<int>{rows}), slots(std::vector<int>{g.slots});
  Memory<uint8_t> xq(rows * hidden), xs(rows * hidden / 16), hq(g.slots * inter),
      hs(g.slots * inter / 16);
  launch("quantize_mx", {1, unsigned(rows)}, 64, 0, live, xq, xs, g.x, hidden);
  launch("prefill_gate_up_mx", {divide_up(2 * inter, 128), g.tiles(128)}, 256, 33792, g.h, g.order,
         g.groups, xq, xs, g.up_blocks, g.up_scales, g.up_bias, inter, hidden, top, g.limit);
  launch("quantize_mx", {1, unsigned(g.slots)}, 64, 0, slots, hq, hs, g.h, inter);
  launch("prefill_down_mx", {divide_up(hidden, 128), g.tiles(128)}, 256, 33792, g.y, g.order,
         g.groups, hq, hs, g.down_blocks, g.down_scales, g.down_bias, hidden, inter);
  g.check(in_terms);
}

TEST(mx_experts) { experts_mx(50, 160, 32, 4, 4, 3); }
TEST(mx_experts_one_slot) { experts_mx(1, 64, 96, 9, 1, 8); }

}  // namespace
