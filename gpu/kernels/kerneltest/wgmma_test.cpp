// The matrix unit of sm_90a: exact integers, then all that prefill's other matrices pass. Its
// kernels are emulated with NVIDIA's layout only.
#include "tiles.h"

namespace {

const Tiles kWgmma = {"_wgmma", 1, 128, 66560};
const Tiles kWgmmaLinear = {"_wgmma", 1, 128, 99328};
const Tiles kDirectLinear = {"_direct_wgmma", 1, 64, 1024 + 64 * 528, 512};

bool there() { return strcmp(emulator_layout(), "nv") == 0; }

// Both warpgroups leave their product, three times over, each with its form of the first operand.
TEST(wgmma_rate) {
  if (!there()) return;
  const int k = 64, rounds = 3;
  std::vector<bf16> a(64 * k), b(128 * k);
  for (bf16& v : a) v = to_bf16(float(below(33) - 16));
  for (bf16& v : b) v = to_bf16(float(below(33) - 16));
  Memory<bf16> ma(a), mb(b);
  Memory<float> c(3 * 64 * 128);
  launch("matrix_rate_wgmma", {1}, 256, 25600, c, ma, mb, rounds);
  for (int i = 0; i < 64; i++)
    for (int j = 0; j < 128; j++) {
      float want = 0;
      for (int n = 0; n < k; n++)
        want += rounds * from_bf16(a[i * k + n]) * from_bf16(b[j * k + n]);
      for (int g = 0; g < 2; g++)
        if (c[(g * 64 + i) * 128 + j] != want)
          fail("c[%d][%d] of %d is %g, not %g", i, j, g, c[(g * 64 + i) * 128 + j], want);
    }
  untouched("c", c, 2 * 64 * 128);
}

void wgmma_experts_of(int rows, int hidden, int inter, int experts, int top, int favourite) {
  const Tiles& tiles = kWgmma;
  Grouped g(rows, hidden, inter, experts, top, favourite);
  Memory<bf16> x((rows + 2) * shared_width(hidden)), h((g.slots + 2) * shared_width(inter));
  const auto behind = [](std::vector<uint8_t> v) {  // loads may reach past a matrix
    v.resize(v.size() + 512, 0x9f);
    return v;
  };
  Memory<uint8_t> up_blocks(behind(g.up.blocks)), up_scales(behind(g.up.scales));
  Memory<uint8_t> down_blocks(behind(g.down.blocks)), down_scales(behind(g.down.scales));
  round_rows(x, g.x, rows, hidden, 1);
  launch(tiles.name("prefill_gate_up").c_str(), {divide_up(2 * inter, 128), g.tiles(tiles.rows)},
         256, tiles.shared, h, g.order, g.groups, x, up_blocks, up_scales, g.up_bias, inter, hidden,
         top, g.limit);
  launch(tiles.name("prefill_down").c_str(), {divide_up(hidden, 128), g.tiles(tiles.rows)}, 256,
         tiles.shared, g.y, g.order, g.groups, h, down_blocks, down_scales, g.down_bias, hidden,
         inter);
  Comparison c("h", 1.0 / 254);  // half a step of bf16
  std::vector<double> out;
  for (int s = 0, wide = shared_width(inter); s < g.slots; s++) {
    const reference::Row in = rounded(reference::wide(&g.x[s / top * hidden], hidden), 1);
    const reference::Row want = reference::gate_up(g.up, g.chosen[s], in, g.limit);
    reference::Row have(inter);
    for (int i = 0; i < wide; i++) {
      const int element = shared_element(i, wide);
      const double v = from_bf16(h[s * wide + i]);
      if (element < inter)
        c.add(have[element] = v, want[element], fabs(want[element]) + 1e-3, s * inter + element);
      else if (v != 0)
        fail("h[%d] past the last element is %g", s * wide + i, v);
    }
    for (double v : reference::down(g.down, g.chosen[s], have)) out.push_back(v);
  }
  c.check();
  near("y", g.y, out, 6e-6, 1);
  untouched("h", h, g.slots * shared_width(inter));
  untouched("y", g.y, g.slots * hidden);
}

TEST(wgmma_linear) {
  if (there()) linears_of(kWgmmaLinear, 130, 160, {150, 0, 0}, true, true);
}
TEST(wgmma_linear_pieces) {
  if (there()) linears_of(kWgmmaLinear, 131, 320, {130, 64, 9}, true, true, 5);
}
TEST(wgmma_linear_pieces_empty) {
  if (there()) linears_of(kWgmmaLinear, 3, 96, {20, 0, 0}, true, false, 3);
}
TEST(wgmma_linear_no_bias) {
  if (there()) linears_of(kWgmmaLinear, 5, 32, {129, 0, 0}, false, false);
}
TEST(wgmma_linear_parts) {
  if (there()) linears_of(kWgmmaLinear, 7, 96, {200, 128, 30}, true, false);
}
// Tiles of 64, 32 and 16 columns; pieces that begin and end in a half of 64.
TEST(wgmma_direct_linear) {
  if (there()) linears_of(kDirectLinear, 70, 224, {150, 0, 0}, true, true);
}
TEST(wgmma_direct_linear_32) {
  if (there()) linears_of(kDirectLinear, 19, 256, {130, 64, 9}, true, false, 3);
}
TEST(wgmma_direct_linear_long) {
  if (there()) linears_of(kDirectLinear, 9, 1056, {40, 0, 0}, false, true, 2);
}
TEST(wgmma_direct_linear_short) {
  if (there()) linears_of(kDirectLinear, 1, 32, {20, 0, 0}, true, false);
}
// Rows of more steps than are asked for ahead, and a last turn of the loop that is not whole.
TEST(wgmma_linear_long) {
  if (there()) linears_of(kWgmmaLinear, 9, 352, {40, 0, 0}, true, false);
}
// Tiles of 128, 96, 64 and 32 columns, two of them of one expert.
TEST(wgmma_experts) {
  if (there()) wgmma_experts_of(100, 96, 64, 5, 2, 3);
}
TEST(wgmma_experts_even) {
  if (there()) wgmma_experts_of(68, 64, 96, 3, 3, 1);
}
TEST(wgmma_experts_long) {
  if (there()) wgmma_experts_of(7, 608, 320, 3, 2, 1);
}
TEST(wgmma_experts_one_slot) {
  if (there()) wgmma_experts_of(1, 64, 96, 9, 1, 8);
}

}  // namespace
