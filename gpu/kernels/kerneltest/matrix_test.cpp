// The matrix unit and what is built on it, in every layout of fragments. Names begin with matrix:
// the layouts that differ in nothing else run these cases alone.
#include "attention.h"
#include "tiles.h"

namespace {

const Tiles kRounded = {"_1", 1, 64, 64 * 132 * 4}, kWhole = {"_3", 3, 64, 64 * 132 * 4};

// Every warp of both blocks leaves the sum of its eight products, three times over.
TEST(matrix_rate) {
  std::vector<bf16> a(2 * 256), b(4 * 256);
  for (bf16& v : a) v = to_bf16(float(below(33) - 16));
  for (bf16& v : b) v = to_bf16(float(below(33) - 16));
  Memory<bf16> ma(a), mb(b);
  const int warps = 2 * 256 / emulator_warp(), rounds = 3;
  Memory<float> c((warps + 1) * 256);
  launch("matrix_rate", {2}, 256, 0, c, ma, mb, rounds);
  for (int i = 0; i < 16; i++)
    for (int j = 0; j < 16; j++) {
      float want = 0;
      for (int x = 0; x < 2; x++)
        for (int y = 0; y < 4; y++)
          for (int k = 0; k < 16; k++)
            want +=
                rounds * from_bf16(a[(x * 16 + i) * 16 + k]) * from_bf16(b[(y * 16 + j) * 16 + k]);
      for (int w = 0; w < warps; w++)
        if (c[w * 256 + i * 16 + j] != want)
          fail("warp %d: c[%d][%d] is %g, not %g", w, i, j, c[w * 256 + i * 16 + j], want);
    }
  untouched("c", c, warps * 256);
}

TEST(matrix_linear) { linears_of(kRounded, 67, 96, {150, 0, 0}, true, false); }
TEST(matrix_linear_pieces) { linears_of(kRounded, 66, 224, {130, 0, 0}, true, true, 3); }
TEST(matrix_linear_pieces_whole) { linears_of(kWhole, 67, 160, {32, 0, 0}, true, false, 5); }
TEST(matrix_linear_parts) { linears_of(kRounded, 7, 96, {200, 128, 30}, true, false); }
TEST(matrix_linear_whole) { linears_of(kWhole, 33, 160, {70, 0, 0}, true, true); }
TEST(matrix_linear_no_bias) { linears_of(kRounded, 5, 32, {129, 0, 0}, false, false); }

TEST(matrix_experts) { experts_of(kRounded, 52, 64, 96, 5, 2, 3); }
TEST(matrix_experts_whole) { experts_of(kWhole, 4, 64, 96, 3, 4, 0); }
TEST(matrix_experts_one_slot) { experts_of(kRounded, 1, 32, 32, 9, 1, 8); }

// Flash attention, its sequences' last `chunks` positions being the step's rows.
template <class T = bf16>
void attend_of(int terms, Heads heads, std::vector<int> lengths, std::vector<int> chunks,
               int window, unsigned share) {
  Attention<T> t(heads, lengths, 2, chunks);
  if (terms == 1)  // what the kernel rounds is exact: only the weights are not
    for (size_t i = 0; i < t.qkv.size(); i++) t.qkv[i] = from_bf16(to_bf16(t.qkv[i]));
  const unsigned at_once = terms == 1 ? 16 : 8, bucket = unsigned(t.rows()) + 3;
  Memory<float> o(size_t(bucket) * heads.query * heads.dim);
  const std::string kernel = sizeof(T) == 1 ? "prefill_attend_f8" : "prefill_attend";
  launch((kernel + (terms == 1 ? "_1" : "_3")).c_str(),
         {unsigned(heads.kv), divide_up(bucket, at_once), share}, at_once * 16, 0, t.count, o,
         t.qkv, t.layer(), t.sinks, t.positions, t.tables, t.table_at, t.page_elements, heads.query,
         heads.kv, window, nullptr, t.scale);
  near("o", o, t.want(window), terms == 1 ? 0x1p-8 : 1e-5, terms == 1 ? 1 : 0.1);
  untouched("o", o, size_t(t.rows()) * heads.query * heads.dim);
}

TEST(matrix_attend) { attend_of(1, {8, 1, 64}, {70}, {37}, 0, 1); }
TEST(matrix_attend_whole) { attend_of(3, {6, 2, 64}, {33, 65}, {9, 3}, 0, 2); }
TEST(matrix_attend_window) { attend_of(3, {3, 1, 64}, {100, 9}, {21, 9}, 40, 1); }
TEST(matrix_attend_f8) { attend_of<e4m3>(1, {8, 1, 64}, {70}, {37}, 0, 1); }
TEST(matrix_attend_f8_whole) { attend_of<e4m3>(3, {6, 2, 64}, {33, 65}, {9, 3}, 0, 2); }
TEST(matrix_attend_mixed) { attend_of(3, {8, 1, 64}, {1, 40, 64, 5, 6}, {1, 1, 3, 2, 1}, 0, 4); }

// A row's bits do not depend on what else is in the step.
TEST(matrix_attend_same_bits) {
  const Heads heads = {8, 1, 64};
  Attention<bf16> t(heads, {50, 80}, 1, {7, 20});
  Memory<float> o(27 * 8 * 64), alone(27 * 8 * 64);
  launch("prefill_attend_1", {1, 2, 2}, 256, 0, t.count, o, t.qkv, t.layer(), t.sinks, t.positions,
         t.tables, t.table_at, t.page_elements, 8, 1, 32, nullptr, t.scale);
  const int first = 11;
  Memory<int> one(std::vector<int>{27 - first});
  launch("prefill_attend_1", {1, 1, 1}, 256, 0, one, alone, &t.qkv[first * heads.width()],
         t.layer(), t.sinks, &t.positions[first], t.tables, &t.table_at[first], t.page_elements, 8,
         1, 32, nullptr, t.scale);
  if (memcmp(&o[first * 512], &alone[0], (27 - first) * 512 * 4))
    fail("other bits in another step");
}

// Rows that stand alone are left to another kernel; the others' bits do not change. The run of 17
// rows fills a block and has one row of the next.
TEST(matrix_attend_runs_only) {
  const Heads heads = {8, 1, 64};
  const std::vector<int> chunks = {17, 1, 1, 1, 2, 1};
  Attention<bf16> t(heads, {33, 40, 1, 70, 64, 65}, 1, chunks);
  Memory<float> all(size_t(t.rows()) * 512), runs(size_t(t.rows()) * 512);
  Memory<int> singles(std::vector<int>{4});
  for (int* only : {static_cast<int*>(nullptr), t.count.data(), singles.data()}) {
    launch("prefill_attend_1", {1, 2, 2}, 256, 0, t.count, only ? runs : all, t.qkv, t.layer(),
           t.sinks, t.positions, t.tables, t.table_at, t.page_elements, 8, 1, 0, only, t.scale);
    if (only != singles.data()) untouched("rows that all stand alone", runs, 0);
  }
  int row = 0;
  for (int chunk : chunks)
    for (int i = 0; i < chunk; i++, row++) {
      std::vector<float> want(all.data() + row * 512, all.data() + (row + 1) * 512);
      if (chunk == 1) memset(want.data(), 0xff, 512 * 4);
      if (memcmp(want.data(), &runs[row * 512], 512 * 4)) fail("row %d", row);
    }
}

}  // namespace
