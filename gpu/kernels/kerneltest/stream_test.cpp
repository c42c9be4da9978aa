// The experts of few tokens, weights as the unit's long side, in every layout of fragments.
// Names begin with matrix, as in matrix_test.cpp.
#include "tiles.h"

namespace {

struct Stream {
  const char* end;
  int columns;
  Form form = kOneTerm;
  void run(RoundedExperts& e, unsigned grid) const {
    const std::string layout = emulator_layout();
    const int shares = layout == "gfx11" ? 1 : layout == "gfx12" ? 2 : 4;
    // columns in chunks of the blocks that lanes share, and a few pieces
    e.run(
        "stream", end, 256, [&](int) { return Grid{grid}; },
        [&](int k) {
          return size_t(16) * columns *
                 (divide_up(k / 32, shares) * shares * 4 + (layout == "nv" ? 4 : 1));
        });
  }
};

const Stream k8 = {"_8", 8}, k16 = {"_16", 16}, k32 = {"_32", 32}, kTwo = {"_8_2", 8, kTwoTerms};

void stream_of(const Stream& s, int rows, int hidden, int inter, int experts, int top,
               int favourite, unsigned grid) {
  RoundedExperts e(s.form, rows, hidden, inter, experts, top, favourite);
  s.run(e, grid);
  e.check();
}

// One token; more blocks than units of down; a row whose last chunk is not full; k of one block.
TEST(matrix_stream_one) { stream_of(k8, 1, 160, 32, 9, 4, 8, 7); }
// An expert with more tokens than a tile has columns, others with none; chunks that are not full.
TEST(matrix_stream_8) { stream_of(k8, 13, 96, 288, 5, 2, 3, 5); }
TEST(matrix_stream_16) { stream_of(k16, 13, 160, 96, 5, 2, 3, 5); }
TEST(matrix_stream_32) {
  stream_of(k32, 27, 96, 64, 4, 2, 1, 3);
  stream_of(k32, 45, 32, 96, 2, 2, 1, 3);
}
TEST(matrix_stream_two) { stream_of(kTwo, 7, 96, 64, 5, 2, 3, 5); }
// Rounds of loads in every piece of k, the last one whole or not.
TEST(matrix_stream_long) {
  stream_of(k8, 2, 3200, 64, 3, 1, 2, 2);
  stream_of(k8, 3, 1536, 96, 2, 1, 1, 2);
}

// Scales at both ends of what is exact, and one that is too large.
TEST(matrix_stream_scales) {
  for (const int exponent : {34, 160, 200}) {
    const int counts = exponent < 160 ? exponent : 160;
    RoundedExperts e(kOneTerm, 2, 64, 32, 2, 1, 0);
    for (size_t i = 0; i < e.up.scales.size(); i++) {
      e.up_sizes[i] = uint8_t(exponent);
      e.up.scales[i] = uint8_t(counts);
    }
    for (size_t i = 0; i < e.x.size(); i++) e.x[i] = ldexpf(e.x[i], 127 - counts);
    k8.run(e, 1);
    e.check();
  }
}

// A row has the same bits whatever is beside it, in any tile and any grid, and not a number in one
// row is nothing to the others.
TEST(matrix_stream_same_bits) {
  RoundedExperts e(kOneTerm, 21, 160, 96, 3, 1, 1);
  k8.run(e, 4);
  const std::vector<bf16> h = e.mid.values();
  const std::vector<float> y = e.y.values();
  const int bad = 5;
  for (int i = 0; i < 160; i++) e.x[bad * 160 + i] = NAN;
  for (const Stream* s : {&k16, &k32}) {
    s->run(e, 7);
    for (int row = 0; row < e.slots; row++) {
      if (row == bad) continue;
      if (memcmp(&e.mid[row * 96], &h[size_t(row) * 96], 96 * 2) ||
          memcmp(&e.y[row * 160], &y[size_t(row) * 160], 160 * 4))
        fail("row %d has other bits in tiles of %d", row, s->columns);
    }
  }
}

// By warpgroups, in NVIDIA's layout only: tiles of so many columns.
void wide_of(int columns, int rows, int hidden, int inter, int experts, int top, int favourite,
             unsigned grid) {
  if (strcmp(emulator_layout(), "nv")) return;
  RoundedExperts e(kInShares, rows, hidden, inter, experts, top, favourite);
  e.run(
      "stream", "_wgmma_" + std::to_string(columns), 512, [&](int) { return Grid{grid}; },
      [&](int k) { return size_t(1024) + divide_up(k, 64) * columns * 128; });
  e.check();
}

// One token, more blocks than units; k of a share and half of a step; of one block.
TEST(wide_stream_one) { wide_of(16, 1, 160, 32, 9, 4, 8, 7); }
// Tiles that are divided evenly, experts without tokens, a last unit that is not full.
TEST(wide_stream_16) {
  wide_of(16, 23, 288, 160, 5, 2, 3, 3);
  wide_of(16, 13, 96, 288, 5, 2, 3, 5);
}
TEST(wide_stream_24) {
  wide_of(24, 31, 352, 96, 5, 2, 3, 2);
  wide_of(24, 18, 96, 64, 5, 2, 3, 7);
}
TEST(wide_stream_32) {
  wide_of(32, 45, 64, 128, 2, 2, 1, 3);
  wide_of(32, 75, 128, 320, 4, 2, 1, 2);
}
// Rounds of loads, with and without half a share behind them.
TEST(wide_stream_long) {
  wide_of(16, 2, 1472, 640, 3, 1, 2, 2);
  wide_of(16, 3, 832, 704, 2, 1, 1, 1);
}

}  // namespace
