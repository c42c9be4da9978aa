// The matrix instructions of AMD's, done for a whole wave: layouts as the ISA's documents have them
// (MI200, MI300, RDNA3, RDNA4: where lanes hold the elements), written down once more, beside those
// of the sources (matrix.h), and sums in double. All lanes take part, whatever EXEC says.
#include <math.h>
#include "../emulator/block.h"
#include "amd_wave.h"
#include "ptx_matrix.h"

namespace amd {

void Wave::matrix(const Instruction& i) {
  const Operand &to = i.to[0], &a = i.of[0], &b = i.of[1], &c = i.of[2];
  const bool scaled = i.name == "v_mfma_scale_f32_16x16x128_f8f6f4", wide = lanes_ == 64;
  const bool bf16 = i.name == "v_mfma_f32_16x16x16_bf16" || i.name == "v_wmma_f32_16x16x16_bf16" ||
                    i.name == "v_mfma_f32_16x16x16bf16_1k";
  if ((!bf16 && !scaled) || (scaled && i.table != 3)) wrong(i, "a product that is not known");
  if (exec() != all_) wrong(i, "a product of some lanes");
  const int held = scaled || p_->generation == 12 ? 4 : wide ? 2 : 8;
  if (a.words != held || b.words != held || to.words != 256 / lanes_)
    wrong(i, "a product of another size");
  const int depth = scaled ? 128 : 16;
  float left[16][128], right[16][128];
  uint32_t sums[8][64];
  // Each row of A, each column of B, lies in the lanes of its number modulo 16, cut along k: CDNA
  // in four, GFX12 in two, GFX11 whole and twice.
  const auto element = [&](const Operand& o, int row, int k, size_t scale) {
    const int cut = scaled ? 32 : wide ? 4 : p_->generation == 12 ? 8 : 16;
    const int lane = row + k / cut * 16, in = k % cut;
    if (scaled) {
      const uint32_t scales = vector_[i.of[scale].at][lane];
      return ptx::e2m1(vector_[o.at + in / 8][lane] >> in % 8 * 4, scales & 0xff);
    }
    const uint32_t word = vector_[o.at + in / 2][lane];
    if (p_->generation == 11 && word != vector_[o.at + in / 2][lane + 16])
      wrong(i, "the halves of the wave have other rows");
    return ptx::from_bf16(word >> in % 2 * 16 & 0xffff);
  };
  for (int r = 0; r < 16; r++)
    for (int k = 0; k < depth; k++) {
      left[r][k] = element(a, r, k, 3);
      right[r][k] = element(b, r, k, 4);
    }
  for (int w = 0; w < to.words; w++)
    for (int l = 0; l < lanes_; l++) {
      const int column = l % 16, row = wide                   ? l / 16 * 4 + w
                                       : p_->generation == 12 ? l / 16 * 8 + w
                                                              : w * 2 + l / 16;
      double sum = 0;
      for (int k = 0; k < depth; k++) sum += double{left[row][k]} * right[column][k];
      const float before =
          c.kind == Operand::kConstant ? ptx::f32(c.value[0]) : ptx::f32(vector_[c.at + w][l]);
      sums[w][l] = static_cast<uint32_t>(ptx::bits(static_cast<float>(before + sum)));
    }
  for (int w = 0; w < to.words; w++)
    for (int l = 0; l < lanes_; l++) vector_[to.at + w][l] = sums[w][l];
}

}  // namespace amd
