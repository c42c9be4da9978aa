// The experts of few tokens, weights as the unit's long side, in every layout of fragments.
// Names begin with matrix, as in matrix_test.cpp.
#include "tiles.h"

namespace {

struct Stream {
  const char* suffix;
  int columns, terms;
  std::string name(const char* kernel) const { return kernel + std::string(suffix); }
  // Of a launch, for rows of k: columns in chunks of the blocks that lanes share, and a few pieces.
  size_t shared(int k) const {
    const std::string layout = emulator_layout();
    const int shares = layout == "gfx11" ? 1 : layout == "gfx12" ? 2 : 4;
    return size_t(16) * columns *
           (divide_up(k / 32, shares) * shares * 4 + (layout == "nv" ? 4 : 1));
  }
};

const Stream k8 = {"_8", 8, 1}, k16 = {"_16", 16, 1}, k32 = {"_32", 32, 1}, kTwo = {"_8_2", 8, 2};

// So many terms of bf16, added up.
reference::Row in_terms(reference::Row x, int terms) {
  for (double& v : x) {
    double sum = 0;
    for (int t = 0; t < terms; t++) sum += from_bf16(to_bf16(float(v - sum)));
    v = sum;
  }
  return x;
}

// Bytes that loads may reach past a matrix; codes and scales of large numbers lie there.
constexpr size_t kBehind = 512;

std::vector<uint8_t> with_more(std::vector<uint8_t> v) {
  v.resize(v.size() + kBehind, 0x9f);
  return v;
}

struct StreamedExperts {
  Grouped g;
  Memory<uint8_t> up_blocks, up_scales, down_blocks, down_scales;
  StreamedExperts(int rows, int hidden, int inter, int experts, int top, int favourite)
      : g(rows, hidden, inter, experts, top, favourite),
        up_blocks(with_more(g.up.blocks)),
        up_scales(with_more(g.up.scales)),
        down_blocks(with_more(g.down.blocks)),
        down_scales(with_more(g.down.scales)) {}

  void run(const Stream& s, unsigned grid) {
    launch(s.name("stream_gate_up").c_str(), {grid}, 256, s.shared(g.hidden), g.h, g.order,
           g.groups, g.x, up_blocks, up_scales, g.up_bias, g.inter, g.hidden, g.top, g.limit);
    launch(s.name("stream_down").c_str(), {grid}, 256, s.shared(g.inter), g.y, g.order, g.groups,
           g.h, down_blocks, down_scales, g.down_bias, g.hidden, g.inter);
  }
};

void stream_of(const Stream& s, int rows, int hidden, int inter, int experts, int top,
               int favourite, unsigned grid) {
  StreamedExperts e(rows, hidden, inter, experts, top, favourite);
  e.run(s, grid);
  e.g.check([&](const reference::Row& x) { return in_terms(x, s.terms); });
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
// Three rounds of loads or more in every piece of k.
TEST(matrix_stream_long) { stream_of(k8, 2, 3200, 64, 3, 1, 2, 2); }

// Scales at both ends of what is exact, and one that is too large.
TEST(matrix_stream_scales) {
  for (const int exponent : {34, 160, 200}) {
    const int counts = exponent < 160 ? exponent : 160;
    StreamedExperts e(2, 64, 32, 2, 1, 0);
    for (size_t i = 0; i < e.g.up.scales.size(); i++) {
      e.up_scales[i] = uint8_t(exponent);
      e.g.up.scales[i] = uint8_t(counts);
    }
    for (size_t i = 0; i < e.g.x.size(); i++) e.g.x[i] = ldexpf(e.g.x[i], 127 - counts);
    e.run(k8, 1);
    e.g.check([](const reference::Row& x) { return in_terms(x, 1); });
  }
}

// A row has the same bits whatever is beside it, in any tile and any grid, and not a number in one
// row is nothing to the others.
TEST(matrix_stream_same_bits) {
  StreamedExperts e(21, 160, 96, 3, 1, 1);
  e.run(k8, 4);
  const std::vector<float> h = e.g.h.values(), y = e.g.y.values();
  const int bad = 5;
  for (int i = 0; i < 160; i++) e.g.x[bad * 160 + i] = NAN;
  for (const Stream* s : {&k16, &k32}) {
    e.run(*s, 7);
    for (int row = 0; row < e.g.slots; row++) {
      if (row == bad) continue;
      if (memcmp(&e.g.h[row * 96], &h[size_t(row) * 96], 96 * 4) ||
          memcmp(&e.g.y[row * 160], &y[size_t(row) * 160], 160 * 4))
        fail("row %d has other bits in tiles of %d", row, s->columns);
    }
  }
}

// By warpgroups, in NVIDIA's layout only: tiles of so many columns.
struct WideStream {
  int columns;
  void run(StreamedExperts& e, unsigned grid) const {
    Grouped& g = e.g;
    const std::string suffix = "_wgmma_" + std::to_string(columns);
    const auto shared = [&](int k) { return size_t(1024) + divide_up(k, 64) * columns * 128; };
    launch(("stream_gate_up" + suffix).c_str(), {grid}, 512, shared(g.hidden), g.h, g.order,
           g.groups, g.x, e.up_blocks, e.up_scales, g.up_bias, g.inter, g.hidden, g.top, g.limit);
    launch(("stream_down" + suffix).c_str(), {grid}, 512, shared(g.inter), g.y, g.order, g.groups,
           g.h, e.down_blocks, e.down_scales, g.down_bias, g.hidden, g.inter);
  }
};

void wide_of(int columns, int rows, int hidden, int inter, int experts, int top, int favourite,
             unsigned grid) {
  if (strcmp(emulator_layout(), "nv")) return;
  StreamedExperts e(rows, hidden, inter, experts, top, favourite);
  WideStream{columns}.run(e, grid);
  e.g.check([](const reference::Row& x) { return in_terms(x, 1); });
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
