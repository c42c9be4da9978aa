// Attention of one token's query heads over pages of keys and values, for any vector width.
//
// A page is taken in chunks of 32 tokens: logits of up to 8 heads into a small table, the softmax
// state of each head moved to the chunk's largest logit, then the values summed with the table's
// weights. Heads go four at a time, so a key or value is loaded once for four of them. bf16 and
// e4m3 pages become float32 on the stack first. A chunk's result depends on its tokens, not on its
// neighbours.
#ifndef OSSRUN_CPU_SIMD_ATTENTION_H_
#define OSSRUN_CPU_SIMD_ATTENTION_H_

namespace {

constexpr int64_t kChunkTokens = 32;
constexpr int64_t kChunkHeads = 8;
constexpr int kHeadTile = 4;

// Logits of `heads` (1..4) heads and `tokens` keys: p[head, kChunkTokens].
template <class S>
void logits(float* p, const float* q, int64_t heads, int64_t dim, float scale, const float* keys,
            int64_t stride, int64_t tokens) {
  typedef typename S::F F;
  const float* qh[kHeadTile];
  for (int64_t h = 0; h < kHeadTile; h++) qh[h] = q + smaller(h, heads - 1) * dim;
  const auto put = [&](int64_t t, const F s[kHeadTile]) {
    float sums[kHeadTile];
    S::sum4(sums, s[0], s[1], s[2], s[3]);
    for (int64_t h = 0; h < heads; h++) p[h * kChunkTokens + t] = sums[h] * scale;
  };
  int64_t t = 0;
  for (; t + 2 <= tokens; t += 2, keys += 2 * stride) {
    F a[kHeadTile], b[kHeadTile];
    SIMD_UNROLL
    for (int h = 0; h < kHeadTile; h++) a[h] = b[h] = S::zero();
    for (int64_t i = 0; i < dim; i += S::kLanes) {
      const F ka = S::load(keys + i), kb = S::load(keys + stride + i);
      SIMD_UNROLL
      for (int h = 0; h < kHeadTile; h++) {
        const F qi = S::load(qh[h] + i);
        a[h] = S::fma(qi, ka, a[h]);
        b[h] = S::fma(qi, kb, b[h]);
      }
    }
    put(t, a);
    put(t + 1, b);
  }
  if (t < tokens) {
    F a[kHeadTile];
    SIMD_UNROLL
    for (int h = 0; h < kHeadTile; h++) a[h] = S::zero();
    for (int64_t i = 0; i < dim; i += S::kLanes) {
      const F ka = S::load(keys + i);
      SIMD_UNROLL
      for (int h = 0; h < kHeadTile; h++) a[h] = S::fma(S::load(qh[h] + i), ka, a[h]);
    }
    put(t, a);
  }
}

// Turns a head's logits into weights exp(logit - m) of the moved m, adds them to l, and says in
// `keep` by what the values summed so far shrink.
template <class S>
void move_state(float* m, float* l, float* keep, float* p, int64_t tokens) {
  typedef typename S::F F;
  const int64_t padded = (tokens + S::kLanes - 1) / S::kLanes * S::kLanes;
  for (int64_t t = tokens; t < padded; t++) p[t] = -INFINITY;
  F largest = S::set1(*m);
  for (int64_t t = 0; t < padded; t += S::kLanes) largest = S::max(largest, S::load(p + t));
  const float moved = S::max_lane(largest);
  F sum = S::zero();
  for (int64_t t = 0; t < padded; t += S::kLanes) {
    const F weight = exponential<S>(S::sub(S::load(p + t), S::set1(moved)));
    S::store(p + t, weight);
    sum = S::add(sum, weight);
  }
  float shrink[S::kLanes];
  S::store(shrink, exponential<S>(S::sub(S::set1(*m), S::set1(moved))));
  *keep = shrink[0];
  *l = *l * *keep + S::sum(sum);
  *m = moved;
}

// acc = acc * keep + sum over tokens of p * value, for `heads` (1..4) heads.
template <class S>
void weigh_values(float* acc, const float* keep, const float* p, int64_t heads, int64_t dim,
                  const float* values, int64_t stride, int64_t tokens) {
  typedef typename S::F F;
  const float* ph[kHeadTile];
  for (int64_t h = 0; h < kHeadTile; h++) ph[h] = p + smaller(h, heads - 1) * kChunkTokens;
  for (int64_t i = 0; i < dim; i += 2 * S::kLanes) {
    F a[kHeadTile], b[kHeadTile];
    SIMD_UNROLL
    for (int h = 0; h < kHeadTile; h++) {
      const int64_t head = smaller(h, heads - 1);
      const F shrink = S::set1(keep[head]);
      a[h] = S::mul(S::load(acc + head * dim + i), shrink);
      b[h] = S::mul(S::load(acc + head * dim + i + S::kLanes), shrink);
    }
    const float* v = values + i;
    for (int64_t t = 0; t < tokens; t++, v += stride) {
      const F va = S::load(v), vb = S::load(v + S::kLanes);
      SIMD_UNROLL
      for (int h = 0; h < kHeadTile; h++) {
        const F weight = S::set1(ph[h][t]);
        a[h] = S::fma(weight, va, a[h]);
        b[h] = S::fma(weight, vb, b[h]);
      }
    }
    SIMD_UNROLL
    for (int h = 0; h < kHeadTile; h++) {
      if (h >= heads) continue;
      S::store(acc + h * dim + i, a[h]);
      S::store(acc + h * dim + i + S::kLanes, b[h]);
    }
  }
}

// Up to kChunkTokens tokens as float32 with their stride: in place, or widened into `wide`.
template <class S>
const float* widened(float*, const float* page, int64_t, int64_t, int64_t*) {
  return page;
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
const float* widened(float* wide, const T* page, int64_t dim, int64_t tokens, int64_t* stride) {
  for (int64_t t = 0; t < tokens; t++) {
    for (int64_t i = 0; i < dim; i += S::kLanes) {
      S::store(wide + t * dim + i, load_wide<S>(page + t * *stride + i));
    }
  }
  *stride = dim;
  return wide;
}

template <class S, class T>
void attention_page(float* m, float* l, float* acc, const float* q, int64_t group, int64_t dim,
                    float scale, const T* keys, const T* values, int64_t stride, int64_t t0,
                    int64_t t1) {
  alignas(64) float wide[sizeof(T) == sizeof(float) ? 1 : kChunkTokens * kMaxHeadDim];
  alignas(64) float p[kChunkHeads * kChunkTokens];
  float keep[kChunkHeads];
  for (int64_t t = t0; t < t1; t += kChunkTokens) {
    const int64_t tokens = smaller(kChunkTokens, t1 - t);
    for (int64_t g = 0; g < group; g += kChunkHeads) {
      const int64_t heads = smaller(kChunkHeads, group - g);
      int64_t next = stride;
      const float* k = widened<S>(wide, keys + t * stride, dim, tokens, &next);
      for (int64_t h = 0; h < heads; h += kHeadTile) {
        logits<S>(p + h * kChunkTokens, q + (g + h) * dim, smaller(kHeadTile, heads - h), dim,
                  scale, k, next, tokens);
      }
      for (int64_t h = 0; h < heads; h++) {
        move_state<S>(m + g + h, l + g + h, keep + h, p + h * kChunkTokens, tokens);
      }
      next = stride;
      const float* v = widened<S>(wide, values + t * stride, dim, tokens, &next);
      for (int64_t h = 0; h < heads; h += kHeadTile) {
        weigh_values<S>(acc + (g + h) * dim, keep + h, p + h * kChunkTokens,
                        smaller(kHeadTile, heads - h), dim, v, next, tokens);
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
void attention_merge(float* m, float* l, float* acc, const float* m2, const float* l2,
                     const float* acc2, int64_t group, int64_t dim) {
  for (int64_t g = 0; g < group; g++, acc += dim, acc2 += dim) {
    if (l2[g] == 0) continue;  // nothing seen there; and -inf minus -inf is not a number
    const float largest = m[g] > m2[g] ? m[g] : m2[g];
    const float keep = expf(m[g] - largest), weight = expf(m2[g] - largest);
    m[g] = largest;
    l[g] = l[g] * keep + l2[g] * weight;
    for (int64_t i = 0; i < dim; i += S::kLanes) {
      const typename S::F other = S::mul(S::load(acc2 + i), S::set1(weight));
      S::store(acc + i, S::fma(S::load(acc + i), S::set1(keep), other));
    }
  }
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
