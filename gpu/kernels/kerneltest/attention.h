// A random cache with rows that look into it, for the tests of attention: pages in no order, NaN
// where no row may look.
#ifndef OSSRUN_GPU_KERNELTEST_ATTENTION_H_
#define OSSRUN_GPU_KERNELTEST_ATTENTION_H_

#include "reference.h"

struct Heads {
  int query, kv, dim;
  int width() const { return (query + 2 * kv) * dim; }
};

inline double value(float v) { return v; }
inline double value(bf16 v) { return from_bf16(v); }
inline double value(e4m3 v) { return from_e4m3(v); }
inline void set(float& to, float v) { to = v; }
inline void set(bf16& to, float v) { to = to_bf16(v); }
inline void set(e4m3& to, float v) { to = to_e4m3(v); }

constexpr int kPageTokens = 32;

// One row a sequence, at the last of its `lengths` positions, or as many as `chunks` says, at the
// last positions; `layers` layers a page, of which the kernels see the last.
template <class T>
struct Attention {
  Heads heads;
  std::vector<int> lengths;
  int layers;
  int64_t page_elements;
  float scale;
  Memory<int> count, positions, tables, table_at;
  Memory<T> cache;
  Memory<bf16> sinks;
  Memory<float> qkv;

  Attention(Heads h, std::vector<int> sequences, int layers, std::vector<int> chunks = {})
      : heads(h),
        lengths(each_row(sequences, sequences, chunks)),
        layers(layers),
        page_elements(int64_t(layers) * h.kv * 2 * kPageTokens * h.dim),
        scale(float(1 / sqrt(h.dim))),
        count(std::vector<int>{int(lengths.size())}),
        positions(last(sequences, chunks)),
        tables(pages(sequences)),
        table_at(each_row(begins(sequences), sequences, chunks)),
        cache(size_t(tables.size()) * page_elements),
        sinks(halves(h.query, 3)),
        qkv(floats(lengths.size() * h.width(), 2)) {
    for (int r = 0; r < rows(); r++) {
      if (r > 0 && table_at[r] == table_at[r - 1]) continue;
      for (int kv = 0; kv < h.kv; kv++)
        for (int p = 0; p < lengths[r]; p++)
          for (int i = 0; i < h.dim; i++) {
            set(cache[at(r, kv, p) + i], uniform() * 2);
            set(cache[at(r, kv, p) + kPageTokens * h.dim + i], uniform());
          }
    }
  }

  int rows() const { return int(lengths.size()); }
  T* layer() { return cache.data() + page_elements / layers * (layers - 1); }

  // Where the key of a position begins in the cache; the value is kPageTokens * dim further.
  size_t at(int row, int kv, int position) const {
    const int page = tables[table_at[row] + position / kPageTokens];
    return size_t(page) * page_elements + page_elements / layers * (layers - 1) +
           size_t(kv) * 2 * kPageTokens * heads.dim + position % kPageTokens * heads.dim;
  }

  reference::Row stored(size_t from) const {
    reference::Row v;
    for (int i = 0; i < heads.dim; i++) v.push_back(value(cache[from + i]));
    return v;
  }

  // What a row's query head sees and makes of it, the row standing at `position`.
  reference::Row attend(int row, int head, const double* q, int position, int window) const {
    const int kv = head / (heads.query / heads.kv);
    const int begin = window > 0 ? std::max(0, position + 1 - window) : 0;
    std::vector<reference::Row> keys, values;
    for (int p = begin; p <= position; p++) {
      keys.push_back(stored(at(row, kv, p)));
      values.push_back(stored(at(row, kv, p) + kPageTokens * heads.dim));
    }
    return reference::attend(q, keys, values, from_bf16(sinks[head]), scale);
  }

  std::vector<double> want(int window) const {
    std::vector<double> o;
    for (int r = 0; r < rows(); r++)
      for (int h = 0; h < heads.query; h++) {
        const reference::Row q =
            reference::wide(&qkv[size_t(r) * heads.width() + h * heads.dim], heads.dim);
        for (double v : attend(r, h, q.data(), positions[r], window)) o.push_back(v);
      }
    return o;
  }

 private:
  // What every sequence has, said for each of its rows.
  static std::vector<int> each_row(const std::vector<int>& what, const std::vector<int>& sequences,
                                   const std::vector<int>& chunks) {
    std::vector<int> v;
    for (size_t i = 0; i < sequences.size(); i++)
      v.insert(v.end(), chunks.empty() ? 1 : chunks[i], what[i]);
    return v;
  }
  static std::vector<int> last(const std::vector<int>& sequences, const std::vector<int>& chunks) {
    std::vector<int> v;
    for (size_t i = 0; i < sequences.size(); i++)
      for (int n = chunks.empty() ? 1 : chunks[i]; n > 0; n--) v.push_back(sequences[i] - n);
    return v;
  }
  static std::vector<int> begins(const std::vector<int>& lengths) {
    std::vector<int> v;
    int at = 0;
    for (int n : lengths) v.push_back(at), at += int(divide_up(n, kPageTokens));
    return v;
  }
  static std::vector<int> pages(const std::vector<int>& lengths) {
    int n = 0;
    for (int l : lengths) n += int(divide_up(l, kPageTokens));
    std::vector<int> v(n);
    for (int i = 0; i < n; i++) v[i] = i;
    std::shuffle(v.begin(), v.end(), rng());
    return v;
  }
};

#endif  // OSSRUN_GPU_KERNELTEST_ATTENTION_H_
