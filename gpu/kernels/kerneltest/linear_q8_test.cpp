// The dense matrices in 8 bits, plain, for few rows and for many, against the values that their
// bytes stand for.
#include <deque>

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

// Matrices side by side; 0 columns where there is none. The plain kernel has but one.
void linears_of(const char* kernel, int at_once, int rows, int k, std::vector<int> columns,
                bool bias, bool add, unsigned pieces = 1) {
  const int n = columns[0] + columns[1] + columns[2], bucket = rows + 1, stride = n + 3;
  const bool plain = at_once == 0, tiles = at_once > 4;
  std::deque<Copy> copies;
  std::deque<Memory<uint8_t>> w;
  std::deque<Memory<bf16>> b;
  unsigned across = 0;
  for (int part : columns) {
    copies.emplace_back(part, k);
    w.emplace_back(copies.back().bytes);
    b.emplace_back(halves(part));
    across += divide_up(part, 128);
  }
  Memory<int> count(std::vector<int>{rows});
  Memory<float> x(floats(rows * k)), d(rows * k / 16), y(bucket * stride);
  Memory<int8_t> q(rows * k);
  if (add)
    for (int r = 0; r < rows; r++)
      for (int i = 0; i < n; i++) y[r * stride + i] = uniform();
  const std::vector<float> before = y.values();
  launch("quantize", {divide_up(k / 32, 64), unsigned(rows)}, 64, 0, count, q, d, x, k);
  const unsigned groups = divide_up(bucket, std::max(at_once, 1));
  const auto biased = [&](int i) { return bias ? b[i].data() : nullptr; };
  PieceScratch scratch(across * groups, 64 * 128, pieces);
  if (plain)
    launch(kernel, {divide_up(n, 256 / emulator_warp()), groups}, 256, 0, count, y, q, d, w[0],
           biased(0), k, n, stride, int(add));
  else if (tiles)
    launch(kernel, {groups, across, pieces}, 256, 33792, count, y, scratch.sums(), scratch.counts(),
           q, d, w[0], biased(0), w[1], biased(1), w[2], biased(2), columns[0], columns[1],
           columns[2], k, stride, int(add));
  else
    launch(kernel, {groups, 5}, 256, size_t(at_once) * (k + k / 8), count, y, q, d, w[0], biased(0),
           w[1], biased(1), w[2], biased(2), columns[0], columns[1], columns[2], k, stride,
           int(add));
  scratch.check();
  Comparison c("y", 3e-6);
  for (int r = 0; r < rows; r++) {
    const Row in = reference::quantized(reference::wide(&x[r * k], k));
    for (int part = 0, at = r * stride; part < 3; at += columns[part++])
      for (int i = 0; i < columns[part]; i++) {
        double want = (bias ? from_bf16(b[part][i]) : 0) + (add ? double(before[at + i]) : 0);
        for (int j = 0; j < k; j++) want += copies[part].values[size_t(i) * k + j] * in[j];
        c.add(y[at + i], want, 1 + fabs(want), at + i);
      }
    for (int i = n; i < stride; i++)
      if (memcmp(&y[r * stride + i], &before[r * stride + i], 4)) fail("wrote behind the columns");
  }
  c.check();
  untouched("y", y, rows * stride);
}

TEST(linear_q8) { linears_of("linear_q8", 0, 3, 96, {21, 0, 0}, true, true); }
TEST(linear_q8_no_bias) { linears_of("linear_q8", 0, 1, 64, {8, 0, 0}, false, false); }
TEST(decode_linear_q8) { linears_of("decode_linear_q8_1", 1, 2, 352, {75, 0, 0}, true, false); }
TEST(decode_linear_q8_rows) {
  linears_of("decode_linear_q8_4", 4, 6, 352, {150, 0, 0}, false, true);
}
TEST(decode_linear_q8_parts) {
  linears_of("decode_linear_q8_4", 4, 3, 1120, {20, 16, 5}, true, true);
}

TEST(matrix_linear_q8) { linears_of("prefill_linear_q8", 64, 70, 96, {150, 0, 0}, true, true); }
TEST(matrix_linear_q8_pieces) {
  linears_of("prefill_linear_q8", 64, 66, 160, {130, 60, 7}, true, true, 3);
}

}  // namespace
