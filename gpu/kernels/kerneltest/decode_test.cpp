// The decode kernels against the reference: what the plain kernels do in several launches, in one.
#include <algorithm>
#include <deque>
#include <limits>

#include "attention.h"
#include "tiles.h"

namespace {

using reference::Row;

unsigned warps() { return unsigned(256 / emulator_warp()); }

// Shared memory of the kernels on the unit whose k is cut into so many pieces.
size_t unit_shared(int k, unsigned pieces, int rows = 8) {
  return 48 * rows * (divide_up(divide_up(k, 64), pieces) * 8 + 4);
}

// With at_once 8 k is cut into `pieces`, and on the unit blocks take several tiles.
void decode_linear_of(int at_once, int rows, int k, int n, bool norm, bool bias, bool add,
                      unsigned pieces = 1, bool q8 = false) {
  const int bucket = rows + 1, stride = n + 3;
  const float eps = 1e-5f;
  Memory<int> count(std::vector<int>{rows});
  Memory<float> x(floats(rows * k)), y(bucket * stride);
  if (add)
    for (int r = 0; r < rows; r++)
      for (int i = 0; i < n; i++) y[r * stride + i] = uniform();
  const std::vector<float> before = y.values();
  const CopyQ8 copy(q8 ? n : 0, k);
  Memory<uint8_t> bytes(copy.bytes);
  Memory<bf16> w(q8 ? copy.rounded : halves(n * k)), b(halves(n)), g(halves(k));
  const unsigned groups = divide_up(bucket, at_once);
  if (q8 || at_once == 8) {
    PieceScratch scratch(groups * divide_up(n, 64), 520, pieces);
    const std::string name = std::string("decode_linear") + (q8 ? "_q8" : "");
    launch((name + (at_once == 8 ? "_8" : "_1")).c_str(), {groups, divide_up(n, 128), pieces}, 256,
           unit_shared(k, pieces, at_once), count, y, scratch.sums(), scratch.counts(), x,
           norm ? g.data() : nullptr,
           q8 ? static_cast<void*>(bytes.data()) : static_cast<void*>(w.data()),
           bias ? b.data() : nullptr, k, n, stride, int(add), eps);
    scratch.check();
  } else {
    launch(at_once == 4 ? "decode_linear_4" : "decode_linear_1",
           {groups, divide_up(n, warps() * 4)}, 256, 4 * k * at_once, count, y, x,
           norm ? g.data() : nullptr, w, bias ? b.data() : nullptr, k, n, stride, int(add), eps);
  }
  for (int r = 0; r < rows; r++) {
    Row in = reference::wide(&x[r * k], k);
    if (norm) in = reference::norm(in, g.data(), eps);
    const Row want = reference::linear(in, w.data(), bias ? b.data() : nullptr, n);
    Comparison c("y", q8 || at_once == 8 ? 1e-5 : 3e-6);
    for (int i = 0; i < n; i++)
      c.add(y[r * stride + i], want[i] + (add ? before[r * stride + i] : 0), 1 + fabs(want[i]),
            r * stride + i);
    c.check();
    for (int i = n; i < stride; i++)
      if (memcmp(&y[r * stride + i], &before[r * stride + i], 4)) fail("wrote behind the columns");
  }
  untouched("y", y, rows * stride);
}

TEST(decode_linear) { decode_linear_of(1, 2, 96, 37, false, true, true); }
TEST(decode_linear_norm) { decode_linear_of(1, 1, 2080, 35, true, false, false); }
TEST(decode_linear_rows) { decode_linear_of(4, 6, 320, 33, true, true, false); }
TEST(decode_linear_unit) { decode_linear_of(8, 7, 96, 100, true, true, true); }
TEST(decode_linear_unit_norm) { decode_linear_of(8, 10, 672, 130, true, true, false, 3); }
TEST(decode_linear_unit_one) { decode_linear_of(8, 1, 1056, 33, false, false, true, 5); }
TEST(decode_linear_unit_pieces) { decode_linear_of(8, 3, 160, 70, true, false, false, 4); }
TEST(decode_linear_q8) { decode_linear_of(8, 7, 96, 100, true, true, true, 1, true); }
TEST(decode_linear_q8_norm) { decode_linear_of(8, 10, 672, 130, true, true, false, 3, true); }
TEST(decode_linear_q8_row) {
  decode_linear_of(1, 1, 672, 100, true, true, false, 1, true);
  decode_linear_of(1, 2, 96, 130, false, true, true, 1, true);
}
TEST(decode_linear_q8_one) { decode_linear_of(8, 1, 1056, 33, false, false, true, 5, true); }
TEST(decode_linear_rows_add) { decode_linear_of(4, 3, 1056, 64, false, true, true); }

constexpr int kDirect = 64, kTile = 128;  // rows of a block of those that round

template <class T>
void decode_qkv_of(const char* kernel, int at_once, Heads heads, std::vector<int> lengths,
                   unsigned pieces = 1, int hidden = 160) {
  const bool q8 = strstr(kernel, "_q8");
  const float eps = 1e-5f;
  Attention<T> t(heads, lengths, 2);
  const int rows = t.rows(), bucket = rows + 1, dim = heads.dim;
  Memory<float> x(floats(rows * hidden)), qkv(bucket * heads.width()), angles(floats(rows * dim));
  std::deque<CopyQ8> copies;
  std::deque<Memory<uint8_t>> bytes;
  const auto weights = [&](int n) {
    if (!q8) return halves(n * dim * hidden);
    copies.emplace_back(n * dim, hidden);
    bytes.emplace_back(copies.back().bytes);
    return copies.back().rounded;
  };
  Memory<bf16> norm(halves(hidden)), wq(weights(heads.query)), bq(halves(heads.query * dim)),
      wk(weights(heads.kv)), bk(halves(heads.kv * dim)), wv(weights(heads.kv)),
      bv(halves(heads.kv * dim));
  void* const own[] = {q8 ? static_cast<void*>(bytes[0].data()) : wq.data(),
                       q8 ? static_cast<void*>(bytes[1].data()) : wk.data(),
                       q8 ? static_cast<void*>(bytes[2].data()) : wv.data()};
  const std::vector<T> before = t.cache.values();
  const unsigned groups = divide_up(bucket, at_once), tiles = heads.query + 2 * heads.kv;
  if (at_once >= kDirect) {
    const unsigned across = divide_up(heads.query, 2) + 2 * divide_up(heads.kv, 2);
    PieceScratch scratch(groups * across, unsigned(at_once) * 132, pieces);
    const int q = heads.query * dim, kv = heads.kv * dim;
    if (at_once == kDirect) {
      launch(kernel, {groups, across, pieces}, 512, 1024 + 64 * 528, t.count, qkv, scratch.sums(),
             scratch.counts(), x, own[0], bq, own[1], bk, own[2], bv, q, kv, kv, hidden,
             heads.width(), 0, norm, eps, t.layer(), angles, t.positions, t.tables, t.table_at,
             t.page_elements);
    } else {
      Memory<bf16> in(bucket * hidden);
      launch("norm", {unsigned(bucket)}, 256, 0, t.count, nullptr, in, x, norm, hidden, eps);
      launch(kernel, {groups, across, pieces}, 256, 99328, t.count, qkv, scratch.sums(),
             scratch.counts(), in, wq, bq, wk, bk, wv, bv, q, kv, kv, hidden, heads.width(), 0,
             t.layer(), angles, t.positions, t.tables, t.table_at, t.page_elements);
    }
    scratch.check();
  } else if (q8 || at_once == 8) {
    PieceScratch scratch(groups * tiles, 520, pieces);
    launch(kernel, {groups, tiles - 1, pieces}, 256, unit_shared(hidden, pieces, at_once), t.count,
           qkv, scratch.sums(), scratch.counts(), t.layer(), x, norm, own[0], bq, own[1], bk,
           own[2], bv, angles, t.positions, t.tables, t.table_at, t.page_elements, hidden,
           heads.query, heads.kv, dim, eps);
    scratch.check();
  } else {
    launch(kernel, {groups, 3}, 256, 4 * hidden * at_once, t.count, qkv, t.layer(), x, norm, wq, bq,
           wk, bk, wv, bv, angles, t.positions, t.tables, t.table_at, t.page_elements, hidden,
           heads.query, heads.kv, dim, eps);
  }
  std::vector<double> want;
  std::vector<T> cache = before;
  for (int r = 0; r < rows; r++) {
    Row in = reference::norm(reference::wide(&x[r * hidden], hidden), norm.data(), eps);
    if (at_once == kDirect) {  // before RMSNorm's scale
      double squares = 0;
      for (int i = 0; i < hidden; i++) squares += double(x[r * hidden + i]) * x[r * hidden + i];
      for (int i = 0; i < hidden; i++)
        in[i] = from_bf16(to_bf16(x[r * hidden + i] * from_bf16(norm[i]))) /
                sqrt(squares / hidden + eps);
    }
    if (at_once == kTile)
      for (double& v : in) v = from_bf16(to_bf16(float(v)));
    Row row = reference::linear(in, wq.data(), bq.data(), heads.query * dim);
    for (double v : reference::linear(in, wk.data(), bk.data(), heads.kv * dim)) row.push_back(v);
    for (double v : reference::linear(in, wv.data(), bv.data(), heads.kv * dim)) row.push_back(v);
    reference::rope(row, reference::wide(&angles[r * dim], dim), heads.query + heads.kv, dim);
    want.insert(want.end(), row.begin(), row.end());
    for (int h = 0; h < heads.kv; h++)
      for (int i = 0; i < dim; i++) {
        const float* k = &qkv[r * heads.width() + (heads.query + h) * dim + i];
        const size_t at = t.at(r, h, t.positions[r]) + i;
        set(cache[at], k[0]);
        set(cache[at + kPageTokens * dim], k[heads.kv * dim]);
      }
  }
  near("qkv", qkv, want, 5e-6, 2);
  untouched("qkv", qkv, rows * heads.width());
  for (size_t i = 0; i < cache.size(); i++)
    if (memcmp(&cache[i], &t.cache[i], sizeof(T))) fail("element %zu of the cache differs", i);
}

TEST(decode_qkv) { decode_qkv_of<float>("decode_qkv_f32_1", 1, {4, 2, 64}, {33, 1}); }
TEST(decode_qkv_rows) { decode_qkv_of<float>("decode_qkv_f32_4", 4, {3, 1, 32}, {5, 64, 7, 1, 9}); }
TEST(decode_qkv_bf16) { decode_qkv_of<bf16>("decode_qkv_bf16_1", 1, {2, 1, 64}, {65}); }
TEST(decode_qkv_bf16_rows) {
  decode_qkv_of<bf16>("decode_qkv_bf16_4", 4, {2, 2, 64}, {32, 31, 34});
}

TEST(decode_qkv_unit) {
  decode_qkv_of<float>("decode_qkv_f32_8", 8, {3, 1, 64}, {5, 64, 7, 1, 9, 33, 32, 31, 2}, 2);
}
TEST(decode_qkv_bf16_unit) { decode_qkv_of<bf16>("decode_qkv_bf16_8", 8, {2, 2, 64}, {32, 31}); }
TEST(decode_qkv_f8_unit) { decode_qkv_of<e4m3>("decode_qkv_f8_8", 8, {2, 1, 64}, {65, 3, 4}, 3); }

TEST(decode_qkv_q8) {
  decode_qkv_of<float>("decode_qkv_q8_f32_8", 8, {3, 1, 64}, {5, 64, 7, 1, 9, 33, 32, 31, 2}, 2);
}
TEST(decode_qkv_q8_row) { decode_qkv_of<bf16>("decode_qkv_q8_bf16_1", 1, {3, 1, 64}, {33}); }
TEST(decode_qkv_q8_row_f32) { decode_qkv_of<float>("decode_qkv_q8_f32_1", 1, {2, 2, 64}, {5, 9}); }
TEST(decode_qkv_q8_row_f8) { decode_qkv_of<e4m3>("decode_qkv_q8_f8_1", 1, {2, 1, 64}, {65}); }
TEST(decode_qkv_q8_bf16) { decode_qkv_of<bf16>("decode_qkv_q8_bf16_8", 8, {2, 2, 64}, {32, 31}); }
TEST(decode_qkv_q8_f8) { decode_qkv_of<e4m3>("decode_qkv_q8_f8_8", 8, {2, 1, 64}, {65, 3, 4}, 3); }

// Tiles of 16, 32 and 64 rows, one of two heads half filled.
void qkv_rounded_of(const char* kernel, int at_once, Heads heads, int rows, unsigned pieces,
                    int hidden = 160) {
  if (strcmp(emulator_layout(), "nv")) return;
  std::vector<int> lengths;
  for (int r = 0; r < rows; r++) lengths.push_back(1 + below(70));
  decode_qkv_of<bf16>(kernel, at_once, heads, lengths, pieces, hidden);
}
TEST(prefill_qkv_direct) {
  qkv_rounded_of("prefill_qkv_direct_wgmma", kDirect, {3, 1, 64}, 9, 2, 1056);
}
TEST(prefill_qkv_direct_32) {
  qkv_rounded_of("prefill_qkv_direct_wgmma", kDirect, {4, 2, 64}, 20, 1);
}
TEST(prefill_qkv_direct_64) {
  qkv_rounded_of("prefill_qkv_direct_wgmma", kDirect, {2, 2, 64}, 67, 3);
}

TEST(prefill_qkv_direct_q8) {
  qkv_rounded_of("prefill_qkv_direct_wgmma_q8", kDirect, {3, 1, 64}, 20, 3, 1056);
}

TEST(prefill_qkv_wgmma) { qkv_rounded_of("prefill_qkv_wgmma", kTile, {3, 1, 64}, 130, 1); }
TEST(prefill_qkv_wgmma_pieces) { qkv_rounded_of("prefill_qkv_wgmma", kTile, {2, 2, 64}, 9, 3); }

TEST(decode_qkv_f8) { decode_qkv_of<e4m3>("decode_qkv_f8_1", 1, {2, 1, 64}, {65}); }
TEST(decode_qkv_f8_rows) { decode_qkv_of<e4m3>("decode_qkv_f8_4", 4, {2, 2, 64}, {32, 31, 34}); }

// What a launch of a grid of `deep` blocks for each head and `high` for the rows leaves; all rows,
// or those of the list.
template <class T>
std::vector<float> attended(const char* kernel, Attention<T>& t, const std::vector<int>* list,
                            int window, unsigned most_runs, unsigned high, unsigned deep,
                            int many = 0) {
  const int rows = t.rows();
  Memory<float> o((rows + 1) * t.heads.query * t.heads.dim),
      partial(rows * t.heads.kv * most_runs * 8 * 66);
  Memory<int> arrived(std::vector<int>(rows * t.heads.kv, 0)),
      chosen(list ? *list : std::vector<int>{0}),
      count(std::vector<int>{list ? int(list->size()) : rows});
  std::vector<float> first;
  // A step leaves arrived as the next one needs it. In the second one all blocks run at once: those
  // that come last to the merge go on first.
  const size_t shared = 4160 * warps();
  for (int order : {kInTurn, kNewestFirst}) {
    memset(partial.data(), 0xff, partial.size() * 4);
    emulator_blocks(order, 0);
    launch(kernel, {unsigned(t.heads.kv), high, deep}, 256, shared, count,
           list ? chosen.data() : nullptr, o, deep > 1 ? partial.data() : nullptr,
           deep > 1 ? arrived.data() : nullptr, t.qkv, t.layer(), t.sinks, t.positions, t.tables,
           t.table_at, t.page_elements, t.heads.query, t.heads.kv, window, int(most_runs), many,
           t.scale);
    for (size_t i = 0; i < arrived.size(); i++)
      if (arrived[i]) fail("arrived[%zu] is %d", i, arrived[i]);
    if (first.empty()) first = o.values();
    if (memcmp(first.data(), o.data(), o.size() * 4)) fail("two orders of blocks differ");
  }
  untouched("o", o, rows * t.heads.query * t.heads.dim);
  return first;
}

template <class T>
void decode_attend_of(const char* kernel, Heads heads, std::vector<int> lengths, int window,
                      unsigned most_runs, int many = 0) {
  Attention<T> t(heads, lengths, 2);
  const unsigned bucket = unsigned(t.rows() + 1);
  const std::vector<float> have =
      attended(kernel, t, nullptr, window, most_runs, bucket, most_runs, many);
  near("o", have, t.want(window), sizeof(T) == 2 ? 3e-5 : 3e-6, 0.1);  // two terms: 16 bits
  // Fewer blocks than rows and runs: the same bits.
  for (unsigned deep : {1u, 2u}) {
    const std::vector<float> other =
        attended(kernel, t, nullptr, window, most_runs, deep, deep, many);
    if (memcmp(have.data(), other.data(), have.size() * 4))
      fail("a grid of %u blocks a head leaves other bits", deep);
  }
  // Every other row: the others are not touched.
  const size_t row = size_t(heads.query) * heads.dim;
  std::vector<int> some;
  for (int r = t.rows() - 1; r >= 0; r -= 2) some.push_back(r);
  const std::vector<float> part = attended(kernel, t, &some, window, most_runs, 2, 2, many);
  std::vector<float> nothing(row);
  memset(nothing.data(), 0xff, row * 4);
  for (int r = 0; r < t.rows(); r++) {
    const bool named = std::find(some.begin(), some.end(), r) != some.end();
    if (memcmp(&part[r * row], named ? &have[r * row] : nothing.data(), row * 4))
      fail("row %d of a list", r);
  }
}

TEST(decode_attend) {
  decode_attend_of<float>("decode_attend_f32", {16, 2, 64}, {1, 32, 33, 300}, 0, 4);
}
TEST(decode_attend_long) { decode_attend_of<float>("decode_attend_f32", {3, 1, 64}, {1500}, 0, 3); }
TEST(decode_attend_window) {
  decode_attend_of<float>("decode_attend_f32", {8, 1, 64}, {1, 128, 129, 200}, 128, 1);
}
TEST(decode_attend_bf16) {
  decode_attend_of<bf16>("decode_attend_bf16", {12, 2, 64}, {290, 31}, 0, 2);
}
TEST(decode_attend_f8) { decode_attend_of<e4m3>("decode_attend_f8", {12, 2, 64}, {290, 31}, 0, 2); }
TEST(decode_attend_f8_long) {
  decode_attend_of<e4m3>("decode_attend_f8", {8, 1, 64}, {1300, 601}, 0, 2);
}
TEST(decode_attend_f8_window) {
  decode_attend_of<e4m3>("decode_attend_f8", {8, 1, 64}, {159, 161, 3}, 128, 1);
}
// Every code as a value: each row has one position, and a quarter of them.
TEST(decode_attend_f8_codes) {
  Attention<e4m3> t({8, 1, 64}, {1, 1, 1, 1}, 1);
  for (int code = 0; code < 256; code++)  // NaN is never stored
    t.cache[t.at(code / 64, 0, 0) + kPageTokens * 64 + code % 64] =
        e4m3(code % 128 == 127 ? 0 : code);
  near("o", attended("decode_attend_f8", t, nullptr, 0, 1, 4, 1), t.want(0), 3e-6, 1e-5);
}
TEST(decode_attend_bf16_long) {
  decode_attend_of<bf16>("decode_attend_bf16", {8, 1, 64}, {1300, 600}, 0, 2);
}
TEST(decode_attend_bf16_window) {
  decode_attend_of<bf16>("decode_attend_bf16", {8, 1, 64}, {159, 161}, 128, 1);
}
// Rows of few pages by one block for all KV heads, others in runs.
TEST(decode_attend_many) {
  decode_attend_of<bf16>("decode_attend_bf16", {20, 10, 64}, {1, 290, 64, 33, 5}, 0, 2, 2);
  decode_attend_of<bf16>("decode_attend_bf16", {16, 2, 64}, {1, 128, 129, 200}, 128, 1, 2);
  decode_attend_of<bf16>("decode_attend_bf16", {8, 1, 64}, {1300, 40}, 0, 3, 1);
  decode_attend_of<e4m3>("decode_attend_f8", {20, 10, 64}, {1, 290, 64, 33, 5}, 0, 2, 2);
}

// A layer's second half: route, gate and up, down.
void decode_experts_of(int rows, int hidden, int inter, int experts, int top, bool ties,
                       Form form = kInShares) {
  const int bucket = rows + 1;
  const float eps = 1e-5f, limit = 7;
  Memory<int> count(std::vector<int>{rows}), chosen(bucket * top),
      arrived(std::vector<int>(bucket, 0)), order(bucket * top), groups(1 + 2 * experts);
  Memory<float> x(floats(bucket * hidden)), t(bucket * hidden), router(bucket * experts),
      weights(bucket * top), h(bucket * top * inter);
  Memory<bf16> norm(halves(hidden)), rounded(bucket * form.terms() * form.width(hidden)),
      w(halves(experts * hidden, ties ? 0 : 1)),
      bias(ties ? std::vector<bf16>(experts, 0) : halves(experts));
  const std::vector<float> before = x.values();
  // All blocks at once as well: the one that chooses must find what all warps of the others wrote.
  for (int blocks : {kNewestFirst, kOldestFirst, kInTurn}) {
    for (int r = 0; r < rows; r++)
      std::fill_n(&router[r * experts], experts, std::numeric_limits<float>::quiet_NaN());
    std::fill_n(chosen.data(), rows * top, -1);
    emulator_blocks(blocks, 0);
    const bool grouped = blocks != kOldestFirst, rounds = blocks == kNewestFirst;
    launch("decode_route", {unsigned(bucket), divide_up(experts, warps())}, 256,
           std::max<int>(4 * hidden, 4 * experts * (warps() + 1)), count, chosen, weights,
           grouped ? order.data() : nullptr, groups, rounds ? nullptr : t.data(),
           rounds ? rounded.data() : nullptr, form.number, router, arrived, x, norm, w, bias,
           hidden, experts, top, eps);
    for (int r = 0; r < rows; r++) {
      const std::vector<int> want =
          reference::choose(reference::wide(&router[r * experts], experts), top);
      for (int j = 0; j < top; j++)
        if (chosen[r * top + j] != want[j])
          fail("row %d: choice %d is %d, not %d", r, j, chosen[r * top + j], want[j]);
    }
    if (grouped) check_groups(chosen, order, groups, rows * top, experts);
  }
  std::vector<double> normed, logits, shares;
  for (int r = 0; r < rows; r++) {
    const Row in = reference::norm(reference::wide(&x[r * hidden], hidden), norm.data(), eps);
    const Row l = reference::linear(in, w.data(), bias.data(), experts);
    normed.insert(normed.end(), in.begin(), in.end());
    logits.insert(logits.end(), l.begin(), l.end());
    Row picked;
    for (int j = 0; j < top; j++) picked.push_back(l[chosen[r * top + j]]);
    for (double v : reference::softmax(picked)) shares.push_back(v);
  }
  near("t", t, normed, 2e-6);
  check_rounded(rounded, t, rows, hidden, form);
  near("router", router, logits, 4e-6, 2);
  near("weights", weights, shares, 2e-5);
  untouched("t", t, rows * hidden);
  untouched("router", router, rows * experts);
  untouched("experts", chosen, rows * top);
  untouched("weights", weights, rows * top);
  for (int r = 0; r < bucket; r++)
    if (arrived[r]) fail("arrived[%d] is %d", r, arrived[r]);

  const reference::Experts g(experts, 2 * inter, hidden, 124), d(experts, hidden, inter, 122);
  Memory<uint8_t> gb(g.blocks), gs(g.scales), db(d.blocks), ds(d.scales);
  Memory<bf16> gbias(g.bias), dbias(d.bias);
  launch("decode_gate_up", {unsigned(bucket * top), 2}, 256, 4 * hidden, count, h, chosen, t, gb,
         gs, gbias, inter, hidden, top, limit);
  launch("decode_down", {unsigned(bucket), 3}, 256, 4 * inter * top, count, x, chosen, weights, h,
         db, ds, dbias, hidden, inter, top);
  std::vector<double> mid, out(before.begin(), before.end());
  for (int s = 0; s < rows * top; s++) {
    for (double v :
         reference::gate_up(g, chosen[s], reference::wide(&t[s / top * hidden], hidden), limit))
      mid.push_back(v);
    const Row y = reference::down(d, chosen[s], reference::wide(&h[s * inter], inter));
    for (int i = 0; i < hidden; i++) out[s / top * hidden + i] += double(weights[s]) * y[i];
  }
  near("h", h, mid, 5e-6, 1);
  near("x", x, out, 5e-6, 1);
  untouched("h", h, rows * top * inter);
}

TEST(decode_experts) { decode_experts_of(3, 160, 96, 10, 4, false); }
TEST(decode_experts_one_row) { decode_experts_of(1, 64, 32, 40, 2, false, kOneTerm); }
TEST(decode_experts_ties) { decode_experts_of(2, 96, 64, 5, 3, true, kTwoTerms); }
TEST(decode_experts_rows) { decode_experts_of(11, 64, 32, 10, 4, false); }
TEST(decode_experts_many) { decode_experts_of(2, 64, 32, 300, 4, false); }
TEST(decode_experts_wide) { decode_experts_of(1, 1088, 192, 3, 2, false); }

}  // namespace
