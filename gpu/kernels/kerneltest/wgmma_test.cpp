// The matrix unit of sm_90a: exact integers, then all that prefill's other matrices pass. Its
// kernels are emulated with NVIDIA's layout only.
#include "tiles.h"

namespace {

const Tiles kWgmma = {"_wgmma", 1, 128, 73728};

bool there() { return strcmp(emulator_layout(), "nv") == 0; }

TEST(wgmma_proof) {
  if (!there()) return;
  std::vector<bf16> a(64 * 16), b(128 * 16);
  for (bf16& v : a) v = to_bf16(float(below(33) - 16));
  for (bf16& v : b) v = to_bf16(float(below(33) - 16));
  Memory<bf16> ma(a), mb(b);
  Memory<float> c(64 * 128);
  launch("matrix_proof_wgmma", {1}, 128, 6912, c, ma, mb);
  for (int i = 0; i < 64; i++)
    for (int j = 0; j < 128; j++) {
      float want = 0;
      for (int k = 0; k < 16; k++) want += from_bf16(a[i * 16 + k]) * from_bf16(b[j * 16 + k]);
      if (c[i * 128 + j] != want) fail("c[%d][%d] is %g, not %g", i, j, c[i * 128 + j], want);
    }
}

// Both warpgroups leave their product, three times over.
TEST(wgmma_rate) {
  if (!there()) return;
  const int k = 64, rounds = 3;
  std::vector<bf16> a(64 * k), b(128 * k);
  for (bf16& v : a) v = to_bf16(float(below(33) - 16));
  for (bf16& v : b) v = to_bf16(float(below(33) - 16));
  Memory<bf16> ma(a), mb(b);
  Memory<float> c(3 * 64 * 128);
  launch("matrix_rate_wgmma", {1}, 256, 27648, c, ma, mb, rounds);
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

TEST(wgmma_linear) {
  if (there()) linear_of(kWgmma, 130, 160, 150, true, true);
}
TEST(wgmma_linear_no_bias) {
  if (there()) linear_of(kWgmma, 5, 32, 129, false, false);
}
TEST(wgmma_experts) {
  if (there()) experts_of(kWgmma, 100, 96, 64, 5, 2, 3);
}
// Rows of more steps than are asked for ahead, and a last turn of the loop that is not whole.
TEST(wgmma_linear_long) {
  if (there()) linear_of(kWgmma, 9, 352, 40, true, false);
}
TEST(wgmma_experts_long) {
  if (there()) experts_of(kWgmma, 7, 608, 352, 3, 2, 1);
}
TEST(wgmma_experts_one_slot) {
  if (there()) experts_of(kWgmma, 1, 64, 96, 9, 1, 8);
}

}  // namespace
