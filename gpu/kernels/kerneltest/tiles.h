// The tests that every kernel of prefill's matrices passes: a dense matrix, and the experts' pair
// with a routing that leaves some experts nothing and gives one many.
#ifndef OSSRUN_GPU_KERNELTEST_TILES_H_
#define OSSRUN_GPU_KERNELTEST_TILES_H_

#include <deque>

#include "reference.h"

// A family of kernels: the names end in `suffix`, a block makes `rows` by 128.
struct Tiles {
  const char* suffix;
  int terms;
  unsigned rows;
  size_t shared;
  unsigned threads = 256;
  std::string name(const char* kernel) const { return std::string(kernel) + suffix; }
};

// Activations as one bf16 keeps them.
inline reference::Row rounded(reference::Row x, int terms) {
  if (terms == 1)
    for (double& v : x) v = from_bf16(to_bf16(float(v)));
  return x;
}

// A row in shares is as wide as shared_width, and shared_element is which element lies at a place.
inline int shared_width(int width) { return (width + 63) / 64 * 64; }
inline int shared_element(int at, int wide) {
  // a product's 16 of k: two of each of four lanes, then two more
  const int group = at / 128 * 128 + 128 > wide ? 64 : 128;
  const int lane = at % 8 / 2, word = at % group / 16 * 2 + at % 16 / 8;
  return at / group * group + lane * group / 4 + word / 4 * 8 + word % 4 + at % 2 * 4;
}

// y [rows + 2, width] is the activations as round_rows leaves them, held to what one bf16 keeps.
inline void round_rows(Memory<bf16>& y, Memory<float>& x, int rows, int width, int shares) {
  Memory<int> count(std::vector<int>{rows});
  const int wide = shares ? shared_width(width) : width;
  launch("round_rows", {divide_up(wide / 8, 128), unsigned(rows) + 2}, 128, 0, count, y, x, width,
         shares);
  for (int i = 0; i < rows * wide; i++) {
    const int at = shares ? shared_element(i % wide, wide) : i % wide;
    const float want = at < width ? from_bf16(to_bf16(x[i / wide * width + at])) : 0;
    if (from_bf16(y[i]) != want) fail("y[%d] is not x[%d]", i, at);
  }
  untouched("y", y, rows * wide);
}

// Matrices side by side, as q, k and v are; 0 columns where there is none. k is cut into `pieces`.
inline void linears_of(const Tiles& tiles, int rows, int k, std::vector<int> columns, bool bias,
                       bool add, unsigned pieces = 1) {
  int all = 0;
  for (int n : columns) all += n;
  const int bucket = rows + 3, stride = all + 2;
  Memory<int> count(std::vector<int>{rows});
  Memory<float> x(floats(rows * k)), y(bucket * stride);
  if (add)
    for (int r = 0; r < rows; r++)
      for (int i = 0; i < all; i++) y[r * stride + i] = uniform();
  const std::vector<float> before = y.values();
  const bool warpgroups = tiles.rows == 128;
  Memory<bf16> in(warpgroups ? (rows + 2) * k : 1);
  if (warpgroups) round_rows(in, x, rows, k, 0);
  std::deque<Memory<bf16>> w, b;
  unsigned across = 0;
  for (int n : columns) {
    w.emplace_back(halves(n * k));
    b.emplace_back(halves(n));
    across += divide_up(n, 128);
  }
  const auto biased = [&](int i) { return bias ? b[i].data() : nullptr; };
  const unsigned down = divide_up(bucket, tiles.rows);
  PieceScratch scratch(across * down, tiles.rows * 128, pieces);
  launch(tiles.name("prefill_linear").c_str(), {down, across, pieces}, tiles.threads, tiles.shared,
         count, y, scratch.sums(), scratch.counts(),
         warpgroups ? static_cast<void*>(in.data()) : static_cast<void*>(x.data()), w[0], biased(0),
         w[1], biased(1), w[2], biased(2), columns[0], columns[1], columns[2], k, stride, int(add));
  scratch.check();
  Comparison c("y", 4e-6);
  for (int r = 0; r < rows; r++)
    for (int part = 0, at = r * stride; part < 3; at += columns[part++]) {
      const reference::Row want =
          reference::linear(rounded(reference::wide(&x[r * k], k), tiles.terms), w[part].data(),
                            biased(part), columns[part]);
      for (int i = 0; i < columns[part]; i++)
        c.add(y[at + i], want[i] + (add ? before[at + i] : 0), 1 + fabs(want[i]), at + i);
    }
  c.check();
  for (int r = 0; r < rows; r++)
    for (int i = all; i < stride; i++)
      if (memcmp(&y[r * stride + i], &before[r * stride + i], 4)) fail("wrote behind the columns");
  untouched("y", y, rows * stride);
}

// What the experts' kernels are given and must give. Made before any launch, in this order.
struct Grouped {
  int rows, hidden, inter, experts, top, slots, bucket;
  float limit = 7;
  std::vector<int> chosen;
  reference::Experts up, down;
  Memory<int> order, groups;
  Memory<uint8_t> up_blocks, up_scales, down_blocks, down_scales;
  Memory<bf16> up_bias, down_bias;
  Memory<float> x, h, y;

  Grouped(int rows, int hidden, int inter, int experts, int top, int favourite)
      : rows(rows),
        hidden(hidden),
        inter(inter),
        experts(experts),
        top(top),
        slots(rows * top),
        bucket(slots + 5),
        chosen(choice(slots, experts, favourite)),
        up(experts, 2 * inter, hidden, 124),
        down(experts, hidden, inter, 122),
        order(by_expert(chosen, experts, true)),
        groups(by_expert(chosen, experts, false)),
        up_blocks(up.blocks),
        up_scales(up.scales),
        down_blocks(down.blocks),
        down_scales(down.scales),
        up_bias(up.bias),
        down_bias(down.bias),
        x(floats(rows * hidden)),
        h(bucket * inter),
        y(bucket * hidden) {}

  unsigned tiles(unsigned rows) const { return divide_up(bucket, rows) + unsigned(experts); }

  // `as` makes of a row what the matrix unit sees of it.
  template <class As>
  void check(As as) const {
    std::vector<double> mid, out;
    for (int s = 0; s < slots; s++) {
      const reference::Row in = as(reference::wide(&x[s / top * hidden], hidden));
      for (double v : reference::gate_up(up, chosen[s], in, limit)) mid.push_back(v);
      const reference::Row from = as(reference::wide(&h[s * inter], inter));
      for (double v : reference::down(down, chosen[s], from)) out.push_back(v);
    }
    near("h", h, mid, 6e-6, 1);
    near("y", y, out, 6e-6, 1);
    untouched("h", h, slots * inter);
    untouched("y", y, slots * hidden);
  }

 private:
  static std::vector<int> choice(int slots, int experts, int favourite) {
    std::vector<int> v;
    for (int s = 0; s < slots; s++) v.push_back(s % 3 ? favourite : below(experts));
    return v;
  }
  static std::vector<int> by_expert(const std::vector<int>& chosen, int experts, bool order) {
    std::vector<int> places, groups = {0};
    for (int e = 0; e < experts; e++) {
      const size_t start = places.size();
      for (size_t s = 0; s < chosen.size(); s++)
        if (chosen[s] == e) places.push_back(int(s));
      if (places.size() == start) continue;
      groups[0]++;
      groups.push_back(e);
      groups.push_back(int(places.size()));
    }
    return order ? places : groups;
  }
};

inline void experts_of(const Tiles& tiles, int rows, int hidden, int inter, int experts, int top,
                       int favourite) {
  Grouped g(rows, hidden, inter, experts, top, favourite);
  launch(tiles.name("prefill_gate_up").c_str(), {divide_up(2 * inter, 128), g.tiles(tiles.rows)},
         256, tiles.shared, g.h, g.order, g.groups, g.x, g.up_blocks, g.up_scales, g.up_bias, inter,
         hidden, top, g.limit);
  launch(tiles.name("prefill_down").c_str(), {divide_up(hidden, 128), g.tiles(tiles.rows)}, 256,
         tiles.shared, g.y, g.order, g.groups, g.h, g.down_blocks, g.down_scales, g.down_bias,
         hidden, inter);
  g.check([&](const reference::Row& x) { return rounded(x, tiles.terms); });
}

#endif  // OSSRUN_GPU_KERNELTEST_TILES_H_
