// The dense matrices in 8 bits, plain, for few rows and for many, against the values that their
// bytes stand for.
#include "reference.h"

namespace {

using reference::Row;

// A copy as package models/q8 lays it out, of random weights.
struct Copy {
  int n, k;
  std::vector<uint8_t> bytes;
  std::vector<double> values;  // [n][k]

  Copy(int n, int k) : n(n), k(k), bytes(size_t(divide_up(n, 8)) * (k / 32) * 272), values(n * k) {
    static const int order[8] = {0, 2, 4, 6, 1, 3, 5, 7};  // of the columns
    for (int r = 0; r < n; r++)
      for (int b = 0; b < k / 32; b++) {
        uint8_t* block = &bytes[(size_t(r / 8) * (k / 32) + b) * 272];
        const bf16 scale = to_bf16(0.01f + 0.01f * fabsf(uniform()));
        memcpy(block + r % 8 * 2, &scale, 2);
        for (int place = 0; place < 32; place++) {
          const int q = below(255) - 127;
          block[16 + place / 4 * 32 + r % 8 * 4 + place % 4] = uint8_t(q);
          values[size_t(r) * k + b * 32 + place / 8 * 8 + order[place % 8]] =
              double(from_bf16(scale)) * q;
        }
      }
  }
};

void linear_of(const char* kernel, int at_once, int rows, int k, int n, bool bias, bool add) {
  const int bucket = rows + 1, stride = n + 3;
  const Copy copy(n, k);
  Memory<int> count(std::vector<int>{rows});
  Memory<float> x(floats(rows * k)), d(rows * k / 16), y(bucket * stride);
  Memory<int8_t> q(rows * k);
  Memory<uint8_t> w(copy.bytes);
  Memory<bf16> b(halves(n));
  if (add)
    for (int r = 0; r < rows; r++)
      for (int i = 0; i < n; i++) y[r * stride + i] = uniform();
  const std::vector<float> before = y.values();
  launch("quantize", {divide_up(k / 32, 64), unsigned(rows)}, 64, 0, count, q, d, x, k);
  const bool plain = at_once == 0, tiles = at_once > 4;
  const unsigned groups = divide_up(bucket, std::max(at_once, 1));
  const Grid g = plain   ? Grid{divide_up(n, 256 / emulator_warp()), groups}
                 : tiles ? Grid{divide_up(n, 128), groups}
                         : Grid{groups, 2};
  launch(kernel, g, 256, tiles ? 0 : size_t(at_once) * (k + k / 8), count, y, q, d, w,
         bias ? b.data() : nullptr, k, n, stride, int(add));
  Comparison c("y", 3e-6);
  for (int r = 0; r < rows; r++) {
    const Row in = reference::quantized(reference::wide(&x[r * k], k));
    for (int i = 0; i < n; i++) {
      double want = (bias ? from_bf16(b[i]) : 0) + (add ? double(before[r * stride + i]) : 0);
      for (int j = 0; j < k; j++) want += copy.values[size_t(i) * k + j] * in[j];
      c.add(y[r * stride + i], want, 1 + fabs(want), r * stride + i);
    }
    for (int i = n; i < stride; i++)
      if (memcmp(&y[r * stride + i], &before[r * stride + i], 4)) fail("wrote behind the columns");
  }
  c.check();
  untouched("y", y, rows * stride);
}

TEST(linear_q8) { linear_of("linear_q8", 0, 3, 96, 21, true, true); }
TEST(linear_q8_no_bias) { linear_of("linear_q8", 0, 1, 64, 8, false, false); }
TEST(decode_linear_q8) { linear_of("decode_linear_q8_1", 1, 2, 352, 75, true, false); }
TEST(decode_linear_q8_rows) { linear_of("decode_linear_q8_4", 4, 6, 352, 150, false, true); }

TEST(matrix_linear_q8) { linear_of("prefill_linear_q8", 64, 70, 96, 150, true, true); }

}  // namespace
