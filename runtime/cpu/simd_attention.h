// Attention of rows of one sequence over pages of keys and values, for any vector width.
//
// A page is taken in chunks of 32 tokens. A chunk's keys are turned around once for all rows and
// heads, [dim, 32] in float32, its values widened to float32; both stay in the nearest cache. Then,
// row by row: logits of a few heads times two vectors of keys in registers, each one sum over dim
// in order; the softmax state of every head moved to the chunk's largest logit; values summed with
// the chunk's weights, token after token, a few heads times two vectors of dim in registers.
//
// What must stay true: a row's result is a function of which tokens of which chunk it sees. So
// chunks begin at fixed tokens of a page, sums over a chunk have places for all 32, and no
// arithmetic of a row depends on another. Logits of tokens that a row does not see are overwritten
// before they count, and values of such tokens are not touched: both may be anything.
#ifndef OSSRUN_CPU_SIMD_ATTENTION_H_
#define OSSRUN_CPU_SIMD_ATTENTION_H_

namespace {

constexpr int64_t kChunkTokens = 32;
constexpr int64_t kChunkHeads = 16;  // whose logits lie on the stack at once

SIMD_INLINE int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

// Memory that will be read soon, asked for a few lines at a time between the arithmetic: all at
// once, the arithmetic's own loads would wait behind it.
class Ahead {
 public:
  // Spread over so many calls of some().
  Ahead(const void* p, int64_t bytes, int64_t calls)
      : at_(static_cast<const char*>(p)), end_(at_ + bytes), step_((bytes / 64 / calls + 1) * 64) {}
  void some() {
    if (at_ >= end_) return;
    for (int64_t i = 0; i < step_; i += 64) __builtin_prefetch(at_ + i, 0, 3);
    at_ += step_;
  }

 private:
  const char *at_, *end_;
  int64_t step_;
};

// Tokens [t0, t1) of a chunk.
struct Span {
  int64_t t0, t1;
};

// The kLanes keys from token t on as turned[dim, kChunkTokens]. Tokens outside the span are not
// read: a neighbour's key takes their lanes.
template <class S>
void turn_some(float* turned, const uint8_t* const from[S::kLanes], int64_t dim, const float*) {
  const uint8_t* rows[S::kLanes];  // where no store can reach them: in registers
  SIMD_UNROLL
  for (int i = 0; i < S::kLanes; i++) rows[i] = from[i];
  for (int64_t i = 0; i < dim; i += 4) {
    typename S::I d[4];
    S::turn4(d, rows, 4 * i);
    SIMD_UNROLL
    for (int j = 0; j < 4; j++) S::store(turned + (i + j) * kChunkTokens, S::as_float(d[j]));
  }
}
template <class S>
void turn_some(float* turned, const uint8_t* const from[S::kLanes], int64_t dim, const uint16_t*) {
  const uint8_t* rows[S::kLanes];
  SIMD_UNROLL
  for (int i = 0; i < S::kLanes; i++) rows[i] = from[i];
  for (int64_t i = 0; i < dim; i += 8) {
    typename S::I d[4];
    S::turn4(d, rows, 2 * i);
    SIMD_UNROLL
    for (int j = 0; j < 4; j++) {
      S::store(turned + (i + 2 * j) * kChunkTokens, S::first_bf16(d[j]));
      S::store(turned + (i + 2 * j + 1) * kChunkTokens, S::second_bf16(d[j]));
    }
  }
}
template <class S, class T>
void turn_keys(float* turned, const T* keys, int64_t stride, int64_t dim, int64_t t, Span span) {
  const uint8_t* rows[S::kLanes];
  for (int64_t i = 0; i < S::kLanes; i++) {
    const int64_t token = smaller(span.t1 - 1, larger(span.t0, t + i));
    rows[i] = reinterpret_cast<const uint8_t*>(keys + token * stride);
  }
  turn_some<S>(turned + t, rows, dim, keys);
}

// The span's tokens as float32 with their stride: in place, or widened into `wide`.
template <class S>
const float* widened(float*, const float* chunk, int64_t, int64_t*, Span) {
  return chunk;
}
template <class S>
SIMD_INLINE typename S::F load_wide(const uint16_t* p) {
  return S::load_bf16(p);
}
template <class S>
SIMD_INLINE typename S::F load_wide(const uint8_t* p) {
  return S::load_f8(p);
}
template <class S, class T>
const float* widened(float* wide, const T* chunk, int64_t dim, int64_t* stride, Span span) {
  for (int64_t t = span.t0; t < span.t1; t++) {
    for (int64_t i = 0; i < dim; i += S::kLanes) {
      S::store(wide + t * dim + i, load_wide<S>(chunk + t * *stride + i));
    }
  }
  *stride = dim;
  return wide;
}

// The same of keys: only e4m3 is widened before it is turned.
template <class S, class T>
const T* to_turn(float*, const T* chunk, int64_t, int64_t*, Span) {
  return chunk;
}
template <class S>
const float* to_turn(float* wide, const uint8_t* chunk, int64_t dim, int64_t* stride, Span span) {
  return widened<S>(wide, chunk, dim, stride, span);
}

// Logits of `heads` (1..kTileHeads) heads and two vectors of keys: p[head, kChunkTokens].
template <class S>
void logits(float* p, const float* q, int64_t heads, int64_t dim, float scale, const float* turned,
            Ahead& ahead) {
  typedef typename S::F F;
  constexpr int kHeads = S::kTileHeads, kStep = 4;
  const float* qh[kHeads];
  F a[kHeads], b[kHeads];
  SIMD_UNROLL
  for (int h = 0; h < kHeads; h++) {
    qh[h] = q + smaller(h, heads - 1) * dim;
    a[h] = b[h] = S::zero();
  }
  for (int64_t i = 0; i < dim; i += kStep) {
    ahead.some();
    SIMD_UNROLL
    for (int j = 0; j < kStep; j++) {
      const F ka = S::load(turned + (i + j) * kChunkTokens);
      const F kb = S::load(turned + (i + j) * kChunkTokens + S::kLanes);
      SIMD_UNROLL
      for (int h = 0; h < kHeads; h++) {
        const F qi = S::set1(qh[h][i + j]);
        a[h] = S::fma(qi, ka, a[h]);
        b[h] = S::fma(qi, kb, b[h]);
      }
    }
  }
  SIMD_UNROLL
  for (int h = 0; h < kHeads; h++) {
    if (h >= heads) continue;
    S::store(p + h * kChunkTokens, S::mul(a[h], S::set1(scale)));
    S::store(p + h * kChunkTokens + S::kLanes, S::mul(b[h], S::set1(scale)));
  }
}

// 2^x within 2 units in the last place for x <= 127; zero below -126, also of minus infinity.
// x = n + r with |r| <= 1/2, and (2^r - 1) / r is the polynomial through six Chebyshev nodes
// (relative error of 2^r 5e-9).
template <class S>
SIMD_INLINE typename S::F power_of_two(typename S::F x) {
  typedef typename S::F F;
  const F n = S::nearest(x), r = S::sub(x, n);
  F p = S::set1(0.000154531634f);
  p = S::fma(p, r, S::set1(0.00133908633f));
  p = S::fma(p, r, S::set1(0.00961808302f));
  p = S::fma(p, r, S::set1(0.0555035695f));
  p = S::fma(p, r, S::set1(0.240226507f));
  p = S::fma(p, r, S::set1(0.693147182f));
  p = S::fma(p, r, S::set1(1.0f));
  return S::zero_below(S::times_power_of_2(p, n), x, -126.0f);
}

// Turns the logits of `heads` (1..kChunkHeads) heads into weights exp(logit - m) of the moved m,
// adds them to l, and says in `keep` by what the values summed so far shrink. Powers are of two,
// and every one of a row is taken relative to the rounded m * log2(e), so that its rounding is one
// factor of all weights and cancels.
template <class S>
void move_states(float* m, float* l, float* keep, float* p, int64_t heads) {
  typedef typename S::F F;
  constexpr int kVectors = kChunkTokens / S::kLanes;
  constexpr float kLog2E = 1.44269504f;
  float base[kChunkHeads], fall[kChunkHeads] = {};
  for (int64_t h = 0; h < heads; h++) {
    const float* ph = p + h * kChunkTokens;
    F largest = S::set1(m[h]);
    SIMD_UNROLL
    for (int i = 0; i < kVectors; i++) largest = S::max(largest, S::load(ph + i * S::kLanes));
    const float moved = S::max_lane(largest);
    base[h] = moved * kLog2E;
    fall[h] = m[h] * kLog2E - base[h];
    m[h] = moved;
  }
  for (int64_t h = 0; h < heads; h += S::kLanes) {
    S::store(keep + h, power_of_two<S>(S::load(fall + h)));
  }
  for (int64_t h = 0; h < heads; h++) {
    float* ph = p + h * kChunkTokens;
    const F down = S::set1(-base[h]);
    F sum = S::zero();
    SIMD_UNROLL
    for (int i = 0; i < kVectors; i++) {
      const F x = S::fma(S::load(ph + i * S::kLanes), S::set1(kLog2E), down);
      const F weight = power_of_two<S>(x);
      S::store(ph + i * S::kLanes, weight);
      sum = S::add(sum, weight);
    }
    l[h] = l[h] * keep[h] + S::sum(sum);
  }
}

// acc = acc * keep + sum over the span's tokens of p * value, for `heads` (1..kTileHeads) heads.
template <class S>
void weigh_values(float* acc, const float* keep, const float* p, int64_t heads, int64_t dim,
                  const float* values, int64_t stride, Span span, Ahead& ahead) {
  typedef typename S::F F;
  constexpr int kHeads = S::kTileHeads, kStep = 4;
  const float* ph[kHeads];
  SIMD_UNROLL
  for (int h = 0; h < kHeads; h++) ph[h] = p + smaller(h, heads - 1) * kChunkTokens;
  for (int64_t i = 0; i < dim; i += 2 * S::kLanes) {
    F a[kHeads], b[kHeads];
    SIMD_UNROLL
    for (int h = 0; h < kHeads; h++) {
      const int64_t head = smaller(h, heads - 1);
      const F shrink = S::set1(keep[head]);
      a[h] = S::mul(S::load(acc + head * dim + i), shrink);
      b[h] = S::mul(S::load(acc + head * dim + i + S::kLanes), shrink);
    }
    const float* v = values + span.t0 * stride + i;
    const auto token = [&](int64_t t) {
      const F va = S::load(v), vb = S::load(v + S::kLanes);
      v += stride;
      SIMD_UNROLL
      for (int h = 0; h < kHeads; h++) {
        const F weight = S::set1(ph[h][t]);
        a[h] = S::fma(weight, va, a[h]);
        b[h] = S::fma(weight, vb, b[h]);
      }
    };
    int64_t t = span.t0;
    for (; t + kStep <= span.t1; t += kStep) {
      ahead.some();
      SIMD_UNROLL
      for (int j = 0; j < kStep; j++) token(t + j);
    }
    for (; t < span.t1; t++) token(t);
    SIMD_UNROLL
    for (int h = 0; h < kHeads; h++) {
      if (h >= heads) continue;
      S::store(acc + h * dim + i, a[h]);
      S::store(acc + h * dim + i + S::kLanes, b[h]);
    }
  }
}

// One row and a chunk, whose span that it sees is not empty. q, m, l and acc are those of up to
// kChunkHeads heads.
template <class S>
void attend_chunk(float* m, float* l, float* acc, const float* q, int64_t heads, int64_t dim,
                  float scale, const float* turned, const float* values, int64_t stride, Span seen,
                  Ahead& ahead) {
  constexpr int64_t kPair = 2 * S::kLanes;
  alignas(64) float p[kChunkHeads * kChunkTokens];
  float keep[kChunkHeads];
  for (int64_t t = seen.t0 / kPair * kPair; t < seen.t1; t += kPair) {
    for (int64_t h = 0; h < heads; h += S::kTileHeads) {
      logits<S>(p + h * kChunkTokens + t, q + h * dim, smaller(S::kTileHeads, heads - h), dim,
                scale, turned + t, ahead);
    }
  }
  if (seen.t1 - seen.t0 < kChunkTokens) {
    for (int64_t h = 0; h < heads; h++) {
      for (int64_t t = 0; t < seen.t0; t++) p[h * kChunkTokens + t] = -INFINITY;
      for (int64_t t = seen.t1; t < kChunkTokens; t++) p[h * kChunkTokens + t] = -INFINITY;
    }
  }
  move_states<S>(m, l, keep, p, heads);
  for (int64_t h = 0; h < heads; h += S::kTileHeads) {
    weigh_values<S>(acc + h * dim, keep + h, p + h * kChunkTokens,
                    smaller(S::kTileHeads, heads - h), dim, values, stride, seen, ahead);
  }
}

template <class S, class T>
void attention_page(const AttentionRow* rows, int64_t n, int64_t group, int64_t dim, float scale,
                    const T* keys, const T* values, int64_t stride, const void* next,
                    int64_t next_bytes) {
  constexpr int64_t kPair = 2 * S::kLanes;
  alignas(64) float turned[kChunkTokens * kMaxHeadDim];
  alignas(64) float wide[sizeof(T) == sizeof(float) ? 1 : kChunkTokens * kMaxHeadDim];
  Span all = {INT64_MAX, 0};
  for (const AttentionRow* row = rows; row < rows + n; row++) {
    if (row->t0 >= row->t1) continue;
    all = {smaller(all.t0, row->t0), larger(all.t1, row->t1)};
  }
  // One row of a whole chunk asks for everything.
  const int64_t tiles = (group + S::kTileHeads - 1) / S::kTileHeads;
  Ahead ahead(next, next_bytes, tiles * (kChunkTokens / kPair * dim / 4 + dim / kPair * 8));
  for (int64_t c = all.t0 / kChunkTokens * kChunkTokens; c < all.t1; c += kChunkTokens) {
    const auto within = [c](int64_t t0, int64_t t1) {
      return Span{larger(0, t0 - c), smaller(kChunkTokens, t1 - c)};
    };
    const Span span = within(all.t0, all.t1);
    int64_t k_stride = stride, v_stride = stride;
    const auto* k = to_turn<S>(wide, keys + c * stride, dim, &k_stride, span);
    const int64_t turned_to = (span.t1 + kPair - 1) / kPair * kPair;
    for (int64_t t = span.t0 / kPair * kPair; t < turned_to; t += S::kLanes) {
      turn_keys<S>(turned, k, k_stride, dim, t, span);
    }
    const float* v = widened<S>(wide, values + c * stride, dim, &v_stride, span);
    for (const AttentionRow* row = rows; row < rows + n; row++) {
      const Span seen = within(row->t0, row->t1);
      if (seen.t0 >= seen.t1) continue;
      if (row + 1 < rows + n) {
        for (int64_t i = 0; i < group * dim; i += 16) {
          __builtin_prefetch(row[1].q + i, 0, 3);
          __builtin_prefetch(row[1].acc + i, 1, 3);
        }
      }
      for (int64_t g = 0; g < group; g += kChunkHeads) {
        attend_chunk<S>(row->m + g, row->l + g, row->acc + g * dim, row->q + g * dim,
                        smaller(kChunkHeads, group - g), dim, scale, turned, v, v_stride, seen,
                        ahead);
      }
    }
  }
}

inline void attention_start(float* m, float* l, float* acc, int64_t group, int64_t dim,
                            const uint16_t* sinks) {
  for (int64_t g = 0; g < group; g++) {
    m[g] = sinks == nullptr ? -INFINITY : bf16_value(sinks + g);
    l[g] = sinks == nullptr ? 0.0f : 1.0f;
  }
  memset(acc, 0, static_cast<size_t>(group * dim) * sizeof *acc);
}

template <class S>
void attention_end(float* y, const float* l, const float* acc, int64_t group, int64_t dim) {
  for (int64_t g = 0; g < group; g++, y += dim, acc += dim) {
    const typename S::F inverse = S::set1(l[g] == 0 ? 0.0f : 1.0f / l[g]);
    for (int64_t i = 0; i < dim; i += S::kLanes) S::store(y + i, S::mul(S::load(acc + i), inverse));
  }
}

}  // namespace

#endif  // OSSRUN_CPU_SIMD_ATTENTION_H_
