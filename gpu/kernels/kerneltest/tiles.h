// The tests that every kernel of prefill's matrices passes: a dense matrix, and the experts' pair
// with a routing that leaves some experts nothing and gives one many.
#ifndef OSSRUN_GPU_KERNELTEST_TILES_H_
#define OSSRUN_GPU_KERNELTEST_TILES_H_

#include <cmath>
#include <deque>

#include "reference.h"

// A family of kernels: the names end in `suffix`, a block makes `rows` by 128.
struct Tiles {
  const char* suffix;
  int terms;
  unsigned rows;
  size_t shared;
  unsigned threads = 256;
  bool q8 = false;
  std::string name(const char* kernel) const { return std::string(kernel) + suffix; }
};

// Activations as one bf16 keeps them.
inline reference::Row rounded(reference::Row x, int terms) {
  if (terms == 1)
    for (double& v : x) v = from_bf16(to_bf16(float(v)));
  return x;
}

// So many terms of bf16, added up.
inline reference::Row in_terms(reference::Row x, int terms) {
  for (double& v : x) {
    double sum = 0;
    for (int t = 0; t < terms; t++) sum += from_bf16(to_bf16(float(v - sum)));
    v = sum;
  }
  return x;
}

// How round_rows leaves rows: the kernels' numbers. `element` lies at place `at` of a term.
struct Form {
  int number;
  int terms() const { return number == 2 ? 2 : 1; }
  int width(int k) const { return number == 3 ? (k + 63) / 64 * 64 : k; }
  int element(int at, int k) const {
    if (number == 0) return at;
    if (number < 3) return at / 8 * 8 + at % 8 / 2 + at % 2 * 4;
    // a product's 16 of k: two of each of four lanes, then two more
    const int group = at / 128 * 128 + 128 > width(k) ? 64 : 128;
    const int lane = at % 8 / 2, word = at % group / 16 * 2 + at % 16 / 8;
    return at / group * group + lane * group / 4 + word / 4 * 8 + word % 4 + at % 2 * 4;
  }
  // The elements of a row, and behind them zeros.
  reference::Row read(const bf16* row, int k) const {
    reference::Row v(width(k));
    for (int t = 0; t < terms(); t++)
      for (int i = 0; i < width(k); i++) v[element(i, k)] += from_bf16(row[t * width(k) + i]);
    for (int i = k; i < width(k); i++)
      if (v[i] != 0) fail("element %d past the last is %g", i, v[i]);
    v.resize(k);
    return v;
  }
};
constexpr Form kInOrder = {0}, kOneTerm = {1}, kTwoTerms = {2}, kInShares = {3};

// y is the first rows of x as they are in this form.
inline void check_rounded(const Memory<bf16>& y, const Memory<float>& x, int rows, int k,
                          Form form) {
  for (int r = 0; r < rows; r++) {
    const reference::Row want = in_terms(reference::wide(&x[r * k], k), form.terms());
    const reference::Row have = form.read(&y[r * form.terms() * form.width(k)], k);
    for (int i = 0; i < k; i++)
      if (!(have[i] == want[i]) && !(std::isnan(have[i]) && std::isnan(want[i])))
        fail("y[%d][%d] is %g, not %g", r, i, have[i], want[i]);
  }
  untouched("y", y, rows * form.terms() * form.width(k));
}

inline void round_rows(Memory<bf16>& y, Memory<float>& x, int rows, int k, Form form) {
  Memory<int> count(std::vector<int>{rows});
  launch("round_rows", {divide_up(form.width(k) / 8, 128), unsigned(rows) + 2}, 128, 0, count, y, x,
         k, form.number);
  check_rounded(y, x, rows, k, form);
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
  if (warpgroups) round_rows(in, x, rows, k, kInOrder);
  std::deque<Memory<bf16>> w, b;
  std::deque<Memory<uint8_t>> copies;
  unsigned across = 0;
  for (int n : columns) {
    if (tiles.q8) {
      const CopyQ8 copy(n, k);
      copies.emplace_back(copy.bytes);
      w.emplace_back(copy.rounded);
    } else {
      w.emplace_back(halves(n * k));
    }
    b.emplace_back(halves(n));
    across += divide_up(n, 128);
  }
  const auto biased = [&](int i) { return bias ? b[i].data() : nullptr; };
  const auto weights = [&](int i) {
    return tiles.q8 ? static_cast<void*>(copies[i].data()) : static_cast<void*>(w[i].data());
  };
  const unsigned down = divide_up(bucket, tiles.rows);
  PieceScratch scratch(across * down, tiles.rows * 128, pieces);
  launch(tiles.name("prefill_linear").c_str(), {down, across, pieces}, tiles.threads, tiles.shared,
         count, y, scratch.sums(), scratch.counts(),
         warpgroups ? static_cast<void*>(in.data()) : static_cast<void*>(x.data()), weights(0),
         biased(0), weights(1), biased(1), weights(2), biased(2), columns[0], columns[1],
         columns[2], k, stride, int(add));
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

// The same for kernels that take rounded rows and leave h so; their loads may reach past a matrix,
// where codes and scales of large numbers lie.
struct RoundedExperts : Grouped {
  Form form;
  Memory<bf16> in, mid;
  Memory<uint8_t> up_codes, up_sizes, down_codes, down_sizes;

  RoundedExperts(Form form, int rows, int hidden, int inter, int experts, int top, int favourite)
      : Grouped(rows, hidden, inter, experts, top, favourite),
        form(form),
        in((rows + 2) * form.terms() * form.width(hidden)),
        mid(bucket * form.terms() * form.width(inter)),
        up_codes(with_more(up.blocks)),
        up_sizes(with_more(up.scales)),
        down_codes(with_more(down.blocks)),
        down_sizes(with_more(down.scales)) {}

  // By the kernels with these names' ends, grids of n rows and shared memory of k.
  template <class Grids, class Shared>
  void run(const std::string& family, const std::string& end, unsigned threads, Grids grid,
           Shared shared) {
    round_rows(in, x, rows, hidden, form);
    launch((family + "_gate_up" + end).c_str(), grid(2 * inter), threads, shared(hidden), mid,
           order, groups, in, up_codes, up_sizes, up_bias, inter, hidden, top, limit);
    launch((family + "_down" + end).c_str(), grid(hidden), threads, shared(inter), y, order, groups,
           mid, down_codes, down_sizes, down_bias, hidden, inter);
  }

  void check() const {
    Comparison c("h", form.terms() == 2 ? 2e-5 : 1.0 / 254);  // half a step of bf16
    std::vector<double> out;
    for (int s = 0, pitch = form.terms() * form.width(inter); s < slots; s++) {
      const reference::Row row =
          in_terms(reference::wide(&x[s / top * hidden], hidden), form.terms());
      const reference::Row want = reference::gate_up(up, chosen[s], row, limit);
      const reference::Row have = form.read(&mid[s * pitch], inter);
      for (int i = 0; i < inter; i++) c.add(have[i], want[i], fabs(want[i]) + 1e-3, s * inter + i);
      for (double v : reference::down(down, chosen[s], have)) out.push_back(v);
    }
    c.check();
    near("y", y, out, 6e-6, 1);
    untouched("h", mid, slots * form.terms() * form.width(inter));
    untouched("y", y, slots * hidden);
  }

 private:
  static std::vector<uint8_t> with_more(std::vector<uint8_t> v) {
    v.resize(v.size() + 512, 0x9f);
    return v;
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
