// The dense matrices in 8 bits, against the bytes times their scales as the matrix unit gets them.
#include <deque>

#include "tiles.h"

namespace {

void linear_of(int rows, int k, int n, bool bias, bool add) {
  const int bucket = rows + 1, stride = n + 3;
  const CopyQ8 copy(n, k);
  Memory<uint8_t> w(copy.bytes);
  Memory<bf16> b(halves(n));
  Memory<int> count(std::vector<int>{rows});
  Memory<float> x(floats(rows * k)), y(bucket * stride);
  if (add)
    for (int r = 0; r < rows; r++)
      for (int i = 0; i < n; i++) y[r * stride + i] = uniform();
  const std::vector<float> before = y.values();
  launch("linear_q8", {divide_up(n, 256 / emulator_warp()), unsigned(bucket)}, 256, 0, count, y, x,
         w, bias ? b.data() : nullptr, k, n, stride, int(add));
  Comparison c("y", 3e-6);
  for (int r = 0; r < rows; r++) {
    for (int i = 0, at = r * stride; i < n; i++, at++) {
      double want = (bias ? from_bf16(b[i]) : 0) + (add ? double(before[at]) : 0);
      for (int j = 0; j < k; j++)
        want += double(from_bf16(copy.rounded[size_t(i) * k + j])) * x[r * k + j];
      c.add(y[at], want, 1 + fabs(want), at);
    }
    for (int i = n; i < stride; i++)
      if (memcmp(&y[r * stride + i], &before[r * stride + i], 4)) fail("wrote behind the columns");
  }
  c.check();
  untouched("y", y, rows * stride);
}

TEST(linear_q8) { linear_of(3, 96, 21, true, true); }
TEST(linear_q8_no_bias) { linear_of(1, 64, 8, false, false); }

const Tiles kRoundedQ8 = {"_q8_1", 1, 64, 33792, 256, true},
            kWholeQ8 = {"_q8_3", 3, 64, 33792, 256, true};

TEST(matrix_linear_q8) { linears_of(kRoundedQ8, 70, 96, {150, 0, 0}, true, true); }
TEST(matrix_linear_q8_pieces) { linears_of(kRoundedQ8, 66, 160, {130, 60, 7}, true, true, 3); }
TEST(matrix_linear_q8_whole) { linears_of(kWholeQ8, 33, 96, {70, 0, 0}, true, false, 2); }

}  // namespace
