// Operations of attention: angles, rope, writing the cache, attending over it.
#include <atomic>
#include <cmath>
#include <cstddef>
#include <vector>

#include "ops.h"

namespace ossrun {
namespace {

// a[row] = cos then sin of position * frequency, times the YaRN scale. The angle is rounded to
// float32 like everybody's; cos and sin of that float32 are exact to the last bit or two.
class AnglesOp : public RowOp<AnglesOp> {
 public:
  AnglesOp(const ossrun_tape& t, float* a, const float* frequencies, float scale)
      : RowOp(OSSRUN_PER_ROW, 0),
        a_(a),
        scale_(scale),
        frequencies_(frequencies, frequencies + t.shape.head_dim / 2) {}

  void row(const ossrun_batch& b, int64_t i) const {
    const size_t half = frequencies_.size();
    float* cosine = a_ + i * 2 * half;
    float* sine = cosine + half;
    for (size_t j = 0; j < half; j++) {
      const float angle = float(b.positions[i]) * frequencies_[j];
      cosine[j] = float(std::cos(double(angle))) * scale_;
      sine[j] = float(std::sin(double(angle))) * scale_;
    }
  }

 private:
  float* a_;
  float scale_;
  std::vector<float> frequencies_;
};

// Rotates the q and k heads of qkv in place; they lie side by side.
class RopeOp : public RowOp<RopeOp> {
 public:
  RopeOp(const ossrun_tape& t, float* qkv, const float* angles)
      : RowOp(OSSRUN_PER_ROW, 0), k_(t.kernels), s_(t.shape), qkv_(qkv), angles_(angles) {}

  void row(const ossrun_batch&, int64_t i) const {
    const float* a = angles_ + i * s_.head_dim;
    k_->rope(qkv_ + i * (s_.heads + 2 * s_.kv_heads) * s_.head_dim, s_.heads + s_.kv_heads,
             s_.head_dim, a, a + s_.head_dim / 2);
  }

 private:
  const Kernels* k_;
  ossrun_shape s_;
  float* qkv_;
  const float* angles_;
};

// Where things lie in the cache, for one layer. T is float, uint16_t (bf16) or uint8_t (e4m3).
//   page = [layers of a kind][kv heads]{ K [page_tokens, head_dim], V [page_tokens, head_dim] }
template <class T>
struct LayerCache {
  LayerCache(const ossrun_shape& s, const void* cache, int64_t layer, bool twin)
      : base(static_cast<const char*>(cache) +
             layer * s.kv_heads * 2 * s.page_tokens * s.head_dim * int64_t{sizeof(T)}),
        page_bytes(s.page_bytes),
        half(s.page_tokens * s.head_dim),
        twin(twin) {}

  // The page of this layer where the block table names this one.
  int32_t page(const ossrun_batch& b, int32_t named) const { return twin ? b.twins[named] : named; }
  const T* keys(int32_t page, int64_t kv_head) const {
    return reinterpret_cast<const T*>(base + page * page_bytes) + kv_head * 2 * half;
  }
  const T* values(int32_t page, int64_t kv_head) const { return keys(page, kv_head) + half; }

  // A page's keys and values of one head, which lie side by side.
  Stretch stretch(int32_t page, int64_t kv_head) const {
    return {keys(page, kv_head), 2 * half * int64_t{sizeof(T)}};
  }

  const char* base;
  int64_t page_bytes;
  int64_t half;  // elements of K, or V, of one head in one page
  bool twin;     // the layer lies in the pages' twins
};

void store(const Kernels*, float* to, const float* from, int64_t n) {
  std::copy(from, from + n, to);
}
void store(const Kernels* k, uint16_t* to, const float* from, int64_t n) {
  k->f32_to_bf16(to, from, n);
}
void store(const Kernels* k, uint8_t* to, const float* from, int64_t n) {
  k->f32_to_f8(to, from, n);
}

template <class T>
class WriteKvOp : public RowOp<WriteKvOp<T>> {
 public:
  WriteKvOp(const ossrun_tape& t, void* cache, const float* qkv, int64_t layer, bool windowed,
            bool twin)
      : RowOp<WriteKvOp<T>>(OSSRUN_PER_ROW, 0),
        k_(t.kernels),
        s_(t.shape),
        cache_(t.shape, cache, layer, twin),
        qkv_(qkv),
        windowed_(windowed) {}

  void row(const ossrun_batch& b, int64_t i) const {
    const int64_t position = b.positions[i], d = s_.head_dim;
    const int32_t* table = b.tables + (windowed_ ? b.window_at : b.full_at)[i];
    const int32_t page = cache_.page(b, table[position / s_.page_tokens]);
    const int64_t at = position % s_.page_tokens * d;
    const float* key = qkv_ + (i * (s_.heads + 2 * s_.kv_heads) + s_.heads) * d;
    const float* value = key + s_.kv_heads * d;
    for (int64_t h = 0; h < s_.kv_heads; h++) {
      store(k_, const_cast<T*>(cache_.keys(page, h)) + at, key + h * d, d);
      store(k_, const_cast<T*>(cache_.values(page, h)) + at, value + h * d, d);
    }
  }

 private:
  const Kernels* k_;
  ossrun_shape s_;
  LayerCache<T> cache_;
  const float* qkv_;
  bool windowed_;
};

// The context that a row at this position sees is divided into spans of so many positions: at most
// kMostSpans, which the position alone decides, so that a row's sums are the same whoever adds
// them.
constexpr int64_t kMostSpans = 32, kShortestSpan = 256;
int64_t span_at(int64_t position) {
  int64_t span = kShortestSpan;
  while (span * kMostSpans <= position) span *= 2;
  return span;
}

// What kernels.h calls the state of a row: of the query heads of one KV head.
struct State {
  float *m, *l, *acc;
};

// Adds one span to those before it. Never inlined: wherever it is called it must round alike.
[[gnu::noinline]] void add_span(const State& to, const State& span, int64_t group, int64_t dim) {
  for (int64_t g = 0; g < group; g++) {
    const float m = std::max(to.m[g], span.m[g]);
    const float before = std::exp(to.m[g] - m), added = std::exp(span.m[g] - m);
    to.m[g] = m;
    to.l[g] = to.l[g] * before + span.l[g] * added;
    float* __restrict sum = to.acc + g * dim;
    const float* __restrict more = span.acc + g * dim;
    for (int64_t i = 0; i < dim; i++) sum[i] = sum[i] * before + more[i] * added;
  }
}

// o[row] = softmax over the visible positions and the sink, of q·k * scale, applied to v. A task is
// the query heads of one KV head and some rows, of which those of one sequence read each page
// once, together; or, where that makes too few tasks for the threads, one span of one row, and who
// ends the last of them adds them up. Pages come in the order of positions and begin at multiples
// of the page, spans in that order too, and a row's sum does not depend on the rows beside it:
// neither on how the prompt was cut, nor on the number of threads.
template <class T>
class AttendOp : public Op {
 public:
  AttendOp(ossrun_tape& t, float* o, const float* qkv, const void* cache,
           std::vector<const uint16_t*> sinks, int64_t layer, int64_t window, bool twin,
           float scale)
      : tape_(&t),
        k_(t.kernels),
        s_(t.shape),
        cache_(t.shape, cache, layer, twin),
        o_(o),
        qkv_(qkv),
        sinks_(std::move(sinks)),
        window_(window),
        scale_(scale),
        group_(t.shape.heads / t.shape.kv_heads) {}

  int64_t tasks(const ossrun_batch& b) const override {
    if (!by_span(b)) return divide_up(b.rows, rows_per_task(b)) * s_.kv_heads;
    int64_t n = 0;
    for (int64_t row = 0; row < b.rows; row++) n += spans(b, row) * s_.kv_heads;
    return n;
  }

  void run(const ossrun_batch& b, int64_t task) const override {
    if (by_span(b)) {
      int64_t row = 0;
      for (; task >= spans(b, row) * s_.kv_heads; row++) task -= spans(b, row) * s_.kv_heads;
      return attend_span(b, task % s_.kv_heads, row, task / s_.kv_heads);
    }
    const int64_t at_once = rows_per_task(b), kv = task % s_.kv_heads;
    const int64_t end = std::min(b.rows, (task / s_.kv_heads + 1) * at_once);
    for (int64_t row = task / s_.kv_heads * at_once; row < end;) {
      int64_t next = row + 1;
      while (next < end && tables(b)[next] == tables(b)[row]) next++;
      attend(b, kv, row, next);
      row = next;
    }
  }

  static constexpr int64_t kMaxGroup = 16;  // query heads of one KV head
  static constexpr int64_t kMaxRows = 32;   // whose pages are read together

 private:
  static constexpr int64_t kSums =
      32 * 8 * 64;  // floats of all rows' sums of the spans behind them

  // As many as share a page's way into the near caches, but enough tasks for all threads.
  int64_t rows_per_task(const ossrun_batch& b) const {
    const int64_t most = std::min(kMaxRows, kSums / (group_ * s_.head_dim));
    return std::clamp<int64_t>(b.rows * s_.kv_heads / (8 * tape_->threads), 1, most);
  }
  int64_t spans(const ossrun_batch& b, int64_t row) const {
    return b.positions[row] / span_at(b.positions[row]) + 1;
  }
  // Whether the tasks are spans.
  bool by_span(const ossrun_batch& b) const {
    if (window_ > 0 || b.rows * s_.kv_heads >= tape_->partials.pairs()) return false;
    for (int64_t row = 0; row < b.rows; row++) {
      if (spans(b, row) > 1) return true;
    }
    return false;
  }
  // The sinks of the model that a row is of.
  const uint16_t* sinks(const ossrun_batch& b, int64_t row, int64_t kv) const {
    size_t adapter = 0;
    while (adapter + 1 < sinks_.size() && b.adapter_rows[adapter + 1] <= row) adapter++;
    return sinks_[adapter] + kv * group_;
  }

  // One span of one row, and all of the row when it is the last to end.
  void attend_span(const ossrun_batch& b, int64_t kv, int64_t r, int64_t span) const {
    const int64_t d = s_.head_dim, position = b.positions[r], size = span_at(position);
    const int64_t begin = span * size, end = std::min(position + 1, begin + size);
    const int64_t pair = r * s_.kv_heads + kv, count = spans(b, r);
    const State state = partial(pair, span);
    k_->attention_begin(state.m, state.l, state.acc, group_, d,
                        span == 0 ? sinks(b, r, kv) : nullptr);
    AttentionRow row = {query(r, kv), state.m, state.l, state.acc, 0, 0};
    const int32_t* table = b.tables + tables(b)[r];
    for (int64_t first = begin; first < end; first += s_.page_tokens) {
      const int64_t page = first / s_.page_tokens;
      row.t1 = std::min(s_.page_tokens, end - first);
      const int32_t here = cache_.page(b, table[page]);
      Stretch ahead;
      if (first + s_.page_tokens < end) ahead = cache_.stretch(cache_.page(b, table[page + 1]), kv);
      page_of(&row, 1, cache_.keys(here, kv), cache_.values(here, kv), ahead);
    }
    std::atomic<uint32_t>& ended = tape_->partials.ended(pair);
    if (ended.fetch_add(1, std::memory_order_acq_rel) + 1 < count) return;
    ended.store(0, std::memory_order_relaxed);
    const State sum = partial(pair, 0);
    for (int64_t i = 1; i < count; i++) add_span(sum, partial(pair, i), group_, d);
    k_->attention_end(o_ + (r * s_.heads + kv * group_) * d, sum.l, sum.acc, group_, d);
  }

  State partial(int64_t pair, int64_t span) const {
    float* at = tape_->partials.of(pair, span);
    float* acc = at + 2 * group_;
    return {at, at + group_, acc};
  }
  const float* query(int64_t r, int64_t kv) const {
    return qkv_ + (r * (s_.heads + 2 * s_.kv_heads) + kv * group_) * s_.head_dim;
  }

  // Where each row's table of pages begins: rows of one sequence have it in common.
  const int32_t* tables(const ossrun_batch& b) const {
    return window_ > 0 ? b.window_at : b.full_at;
  }
  int64_t first_seen(int64_t position) const {
    return window_ > 0 ? std::max<int64_t>(0, position + 1 - window_) : 0;
  }

  // Rows [r0, r1) of one sequence, at positions that rise.
  void attend(const ossrun_batch& b, int64_t kv, int64_t r0, int64_t r1) const {
    const int64_t d = s_.head_dim, n = r1 - r0;
    const int64_t begin = first_seen(b.positions[r0]), end = b.positions[r1 - 1] + 1;
    const int32_t* table = b.tables + tables(b)[r0];
    float m[kMaxRows * kMaxGroup], l[kMaxRows * kMaxGroup];
    float sums_m[kMaxRows * kMaxGroup], sums_l[kMaxRows * kMaxGroup];
    alignas(64) float sums[kSums];
    AttentionRow rows[kMaxRows];
    int64_t span[kMaxRows];
    bool summed[kMaxRows] = {};
    const auto sum = [&](int64_t i) {
      return State{sums_m + i * group_, sums_l + i * group_, sums + i * group_ * d};
    };
    const auto end_span = [&](int64_t i) {
      const State state = {rows[i].m, rows[i].l, rows[i].acc}, to = sum(i);
      if (summed[i]) return add_span(to, state, group_, d);
      std::copy_n(state.m, group_, to.m);
      std::copy_n(state.l, group_, to.l);
      std::copy_n(state.acc, group_ * d, to.acc);
      summed[i] = true;
    };
    for (int64_t i = 0; i < n; i++) {  // the span at hand is kept in o itself
      rows[i] = {query(r0 + i, kv),
                 m + i * group_,
                 l + i * group_,
                 o_ + ((r0 + i) * s_.heads + kv * group_) * d,
                 0,
                 0};
      span[i] = window_ > 0 ? INT64_MAX : span_at(b.positions[r0 + i]);
      k_->attention_begin(rows[i].m, rows[i].l, rows[i].acc, group_, d, sinks(b, r0, kv));
    }
    for (int64_t page = begin / s_.page_tokens; page * s_.page_tokens < end; page++) {
      const int64_t first = page * s_.page_tokens;
      for (int64_t i = 0; i < n; i++) {
        const int64_t position = b.positions[r0 + i];
        if (first > 0 && first <= position && first % span[i] == 0) {
          end_span(i);
          k_->attention_begin(rows[i].m, rows[i].l, rows[i].acc, group_, d, nullptr);
        }
        rows[i].t0 = std::max<int64_t>(0, first_seen(position) - first);
        rows[i].t1 = std::min(s_.page_tokens, position + 1 - first);
      }
      const int32_t here = cache_.page(b, table[page]);
      Stretch ahead;
      if (first + s_.page_tokens < end) ahead = cache_.stretch(cache_.page(b, table[page + 1]), kv);
      page_of(rows, n, cache_.keys(here, kv), cache_.values(here, kv), ahead);
    }
    for (int64_t i = 0; i < n; i++) {
      if (summed[i]) end_span(i);
      const State state = summed[i] ? sum(i) : State{rows[i].m, rows[i].l, rows[i].acc};
      k_->attention_end(rows[i].acc, state.l, state.acc, group_, d);
    }
  }

  void page_of(const AttentionRow* rows, int64_t n, const float* keys, const float* values,
               Stretch ahead) const {
    k_->attention_page_f32(rows, n, group_, s_.head_dim, scale_, keys, values, s_.head_dim,
                           ahead.begin, ahead.bytes);
  }
  void page_of(const AttentionRow* rows, int64_t n, const uint16_t* keys, const uint16_t* values,
               Stretch ahead) const {
    k_->attention_page_bf16(rows, n, group_, s_.head_dim, scale_, keys, values, s_.head_dim,
                            ahead.begin, ahead.bytes);
  }
  void page_of(const AttentionRow* rows, int64_t n, const uint8_t* keys, const uint8_t* values,
               Stretch ahead) const {
    k_->attention_page_f8(rows, n, group_, s_.head_dim, scale_, keys, values, s_.head_dim,
                          ahead.begin, ahead.bytes);
  }

  ossrun_tape* tape_;
  const Kernels* k_;
  ossrun_shape s_;
  LayerCache<T> cache_;
  float* o_;
  const float* qkv_;
  std::vector<const uint16_t*> sinks_;
  int64_t window_;
  float scale_;
  int64_t group_;
};

// Calls make with an element of the type that a layer's keys and values have.
template <class Make>
int of_type(const ossrun_tape& t, bool windowed, Make make) {
  switch (t.shape.kv) {
    case OSSRUN_KV_F8:
      return windowed ? make(uint16_t()) : make(uint8_t());
    case OSSRUN_KV_BF16:
      return make(uint16_t());
    default:
      return make(float());
  }
}

static_assert(kMostSpans == Partials::kSpans, "what tape.h has room for");
static_assert(AttendOp<float>::kMaxGroup == OSSRUN_MAX_GROUP, "what cpu.h promises");
static_assert(int{kMaxHeadDim} == int{OSSRUN_MAX_HEAD_DIM}, "what cpu.h promises");

}  // namespace
}  // namespace ossrun

using namespace ossrun;

int ossrun_angles(ossrun_tape* t, float* a, const float* frequencies, float scale) {
  try {
    return append(t, AnglesOp(*t, a, frequencies, scale));
  } catch (const std::bad_alloc&) {
    return 0;
  }
}

int ossrun_rope(ossrun_tape* t, float* qkv, const float* angles) {
  return append(t, RopeOp(*t, qkv, angles));
}

int ossrun_write_kv(ossrun_tape* t, void* cache, const float* qkv, int64_t layer, int windowed,
                    int twin) {
  return of_type(*t, windowed != 0, [&](auto element) {
    using T = decltype(element);
    return append(t, WriteKvOp<T>(*t, cache, qkv, layer, windowed != 0, twin != 0));
  });
}

int ossrun_attend(ossrun_tape* t, float* o, const float* qkv, const void* cache,
                  const uint16_t* const* sinks, int adapters, int64_t layer, int64_t window,
                  int twin, float scale) {
  try {
    const std::vector<const uint16_t*> all(sinks, sinks + adapters);
    return of_type(*t, window > 0, [&](auto element) {
      using T = decltype(element);
      return append(t, AttendOp<T>(*t, o, qkv, cache, all, layer, window, twin != 0, scale));
    });
  } catch (const std::bad_alloc&) {
    return 0;
  }
}
