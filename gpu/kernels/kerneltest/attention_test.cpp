// angles, write_kv and attend against the reference.
#include "attention.h"

namespace {

using reference::Row;

TEST(angles) {
  const std::vector<int> at = {0, 1, 131071, 77777, 500};
  const std::vector<float> f = {1.0f, 0.1f, 1.3e-3f, 7.7e-6f, 0.999f};
  const int half = int(f.size()), rows = 4;
  const float scale = 1.3465736f;
  Memory<int> count(std::vector<int>{rows}), positions(at);
  Memory<float> frequencies(f), a(at.size() * 2 * half);
  launch("angles", {unsigned(at.size())}, 256, 0, count, a, positions, frequencies, half, scale);
  std::vector<double> want;
  for (int r = 0; r < rows; r++)
    for (double v : reference::angles(at[r], f, scale)) want.push_back(v);
  near("a", a, want, 2e-7);
  untouched("a", a, rows * 2 * half);
}

TEST(rope) {
  const int rows = 2, heads = 9, dim = 64, stride = 11 * dim;  // two KV heads
  const std::vector<float> in = floats(3 * stride);
  Memory<int> count(std::vector<int>{rows});
  Memory<float> x(in), a(floats(rows * dim));
  launch("write_kv_f32", {divide_up(stride, 2 * 256), 3}, 256, 0, count, nullptr, x, a, nullptr,
         nullptr, nullptr, int64_t{0}, heads - 2, 2, dim);
  for (int r = 0; r < 3; r++) {
    Row want = reference::wide(&in[r * stride], stride);
    if (r < rows) reference::rope(want, reference::wide(&a[r * dim], dim), heads, dim);
    near("x", std::vector<float>(&x[r * stride], &x[r * stride] + stride), want, 5e-7);
  }
}

// What rounding to e4m3 may get wrong: every value of it, the middle of two, what lies beside the
// middle, and what is no number or beyond the largest one.
std::vector<float> edges_of_e4m3() {
  std::vector<float> v = {INFINITY, -INFINITY, NAN, -NAN, 464, 1e30f, 0x1p-149f, -0x1p-149f};
  for (int code = 0; code < 0x7f; code++) {
    const float low = from_e4m3(e4m3(code)), high = from_e4m3(e4m3(code + 1));
    const float middle = (low + high) / 2;
    for (float x : {low, middle, nextafterf(middle, low), nextafterf(middle, high)})
      v.insert(v.end(), {x, -x});
  }
  return v;
}

template <class T>
void write_of(const char* kernel, std::vector<float> edges = {}, bool turn = false) {
  const Heads heads = {4, 9, 32};
  const int first = heads.query * heads.dim, own = heads.width() - first;  // K and V in a row
  std::vector<int> lengths = {70, 5};
  while (lengths.size() * own < edges.size()) lengths.push_back(int(lengths.size()));
  Attention<T> t(heads, lengths, 2);
  Memory<float> qkv(floats((t.rows() + 2) * heads.width()));
  for (size_t i = 0; i < edges.size(); i++)
    qkv[i / own * heads.width() + first + i % own] = edges[i];
  Memory<float> angles(floats(t.rows() * heads.dim)), turned(qkv.values());
  const unsigned rows = unsigned(t.rows()) + 2;
  if (turn)  // as by a launch of its own
    launch("write_kv_f32", {divide_up(heads.width(), 2 * 256), rows}, 256, 0, t.count, nullptr,
           turned, angles, nullptr, nullptr, nullptr, int64_t{0}, heads.query, heads.kv, heads.dim);
  std::vector<T> want = t.cache.values();
  launch(kernel, {divide_up(heads.width(), 2 * 256), rows}, 256, 0, t.count, t.layer(), qkv,
         turn ? angles.data() : nullptr, t.positions, t.tables, t.table_at, t.page_elements,
         t.heads.query, t.heads.kv, t.heads.dim);
  if (turn)
    near("qkv", qkv, std::vector<double>(turned.data(), turned.data() + turned.size()), 5e-7);
  else if (memcmp(turned.data(), qkv.data(), qkv.size() * sizeof(float)))
    fail("qkv was changed");
  for (int r = 0; r < t.rows(); r++)
    for (int h = 0; h < t.heads.kv; h++)
      for (int i = 0; i < t.heads.dim; i++) {
        const float* k = &qkv[r * t.heads.width() + (t.heads.query + h) * t.heads.dim + i];
        const size_t at = t.at(r, h, t.positions[r]) + i;
        set(want[at], k[0]);
        set(want[at + 32 * t.heads.dim], k[t.heads.kv * t.heads.dim]);
      }
  for (size_t i = 0; i < want.size(); i++)
    if (memcmp(&want[i], &t.cache[i], sizeof(T))) fail("element %zu of the cache differs", i);
}

TEST(write_kv_f32) { write_of<float>("write_kv_f32"); }
TEST(write_kv_bf16_ties) {  // half way between two bf16
  std::vector<float> ties(256);
  for (float& v : ties) v = 1 + float(2 * below(64) + 1) / 256;
  write_of<bf16>("write_kv_bf16", ties);
}
TEST(write_kv_f8) { write_of<e4m3>("write_kv_f8"); }
TEST(write_kv_f8_edges) { write_of<e4m3>("write_kv_f8", edges_of_e4m3()); }
TEST(write_kv_bf16) { write_of<bf16>("write_kv_bf16"); }
TEST(write_kv_turned) {
  write_of<bf16>("write_kv_bf16", {}, true);
  write_of<float>("write_kv_f32", {}, true);
}

template <class T>
void attend_of(const char* kernel, Heads heads, std::vector<int> lengths, int window) {
  Attention<T> t(heads, lengths, 2);
  const unsigned per_block = 256 / emulator_warp();
  Memory<float> o((t.rows() + 1) * heads.query * heads.dim);
  launch(kernel, {divide_up(heads.query, per_block), unsigned(t.rows() + 1)}, 256, 0, t.count, o,
         t.qkv, t.layer(), t.sinks, t.positions, t.tables, t.table_at, t.page_elements, heads.query,
         heads.kv, heads.dim, window, t.scale);
  near("o", o, t.want(window), 2e-6, 0.1);
  untouched("o", o, t.rows() * heads.query * heads.dim);
}

TEST(attend_full) { attend_of<float>("attend_f32", {6, 2, 64}, {1, 33, 150}, 0); }
TEST(attend_window) { attend_of<float>("attend_f32", {3, 1, 32}, {1, 9, 10, 97}, 9); }
TEST(attend_wide) { attend_of<float>("attend_f32", {2, 2, 96}, {40}, 0); }
TEST(attend_bf16) { attend_of<bf16>("attend_bf16", {6, 2, 64}, {64, 65}, 0); }
TEST(attend_f8) { attend_of<e4m3>("attend_f8", {6, 2, 64}, {64, 65}, 0); }
TEST(attend_bf16_window) { attend_of<bf16>("attend_bf16", {2, 1, 64}, {200, 3}, 128); }

}  // namespace
