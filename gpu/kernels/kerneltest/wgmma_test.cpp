// The matrix unit of sm_90a: exact integers, then all that prefill's other matrices pass. Its
// kernels are emulated with NVIDIA's layout only.
#include "tiles.h"

namespace {

const Tiles kWgmma = {"_wgmma", 1, 128, 66560};
const Tiles kWgmmaLinear = {"_wgmma", 1, 128, 99328};
const Tiles kDirectLinear = {"_direct_wgmma", 1, 64, 1024 + 64 * 528, 512};
const Tiles kDirectLinearQ8 = {"_direct_wgmma_q8", 1, 64, 1024 + 64 * 528, 512, true};

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
  RoundedExperts e(kInShares, rows, hidden, inter, experts, top, favourite);
  e.run(
      "prefill", "_wgmma", 256,
      [&](int n) { return Grid{divide_up(n, 128), e.tiles(kWgmma.rows)}; },
      [](int) { return kWgmma.shared; });
  e.check();
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
TEST(wgmma_direct_linear_q8) {
  if (there()) linears_of(kDirectLinearQ8, 20, 224, {150, 60, 7}, true, true, 2);
}
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
  if (!there()) return;
  wgmma_experts_of(7, 608, 320, 3, 2, 1);
  wgmma_experts_of(2, 160, 416, 2, 1, 1);
}
TEST(wgmma_experts_one_slot) {
  if (there()) wgmma_experts_of(1, 64, 96, 9, 1, 8);
}

}  // namespace
