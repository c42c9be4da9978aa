// Kernels over one row of activations, for any vector width: norm, SwiGLU, rope, conversions, sums.
//
// They move kilobytes where the matrix products move megabytes, so they are written for clarity; a
// row's result depends on that row alone.
#ifndef OSSRUN_CPU_SIMD_ROWS_H_
#define OSSRUN_CPU_SIMD_ROWS_H_

namespace {

// e^x within 2 units in the last place for x <= 88, which larger x count as; zero below -87.3.
// x = n ln 2 + r with |r| <= ln(2)/2, and (e^r - 1 - r) / r^2 is the polynomial through six
// Chebyshev nodes (relative error of e^r 7e-10).
template <class S>
SIMD_INLINE typename S::F exponential(typename S::F x) {
  typedef typename S::F F;
  constexpr float kLowest = -87.3f;
  const F bounded = S::max(S::set1(kLowest), S::min(S::set1(88.0f), x));
  const F n = S::nearest(S::mul(bounded, S::set1(1.44269504f)));
  F r = S::fma(n, S::set1(-0.693359375f), bounded);  // exact: 9 bits of ln 2
  r = S::fma(n, S::set1(0.000212194440f), r);
  F p = S::set1(0.000198909809f);
  p = S::fma(p, r, S::set1(0.00139336416f));
  p = S::fma(p, r, S::set1(0.00833331048f));
  p = S::fma(p, r, S::set1(0.0416664667f));
  p = S::fma(p, r, S::set1(0.166666672f));
  p = S::fma(p, r, S::set1(0.5f));
  const F e = S::add(S::fma(p, S::mul(r, r), r), S::set1(1.0f));
  return S::zero_below(S::mul(e, S::power_of_2(n)), x, kLowest);
}

template <class S>
void rmsnorm(float* y, const float* x, const uint16_t* w, int64_t k, float eps) {
  typedef typename S::F F;
  constexpr int64_t kStep = 4 * S::kLanes;
  F squares[4] = {S::zero(), S::zero(), S::zero(), S::zero()};
  int64_t i = 0;
  for (; i + kStep <= k; i += kStep) {
    SIMD_UNROLL
    for (int j = 0; j < 4; j++) {
      const F a = S::load(x + i + j * S::kLanes);
      squares[j] = S::fma(a, a, squares[j]);
    }
  }
  for (; i + S::kLanes <= k; i += S::kLanes) {
    const F a = S::load(x + i);
    squares[0] = S::fma(a, a, squares[0]);
  }
  if (i < k) {
    const F a = S::load_part(x + i, static_cast<int>(k - i));
    squares[1] = S::fma(a, a, squares[1]);
  }
  const F all = S::add(S::add(squares[0], squares[1]), S::add(squares[2], squares[3]));
  const float inverse = 1.0f / sqrtf(S::sum(all) / static_cast<float>(k) + eps);
  const F scale = S::set1(inverse);
  for (i = 0; i + S::kLanes <= k; i += S::kLanes) {
    S::store(y + i, S::mul(S::mul(S::load(x + i), scale), S::load_bf16(w + i)));
  }
  if (i < k) {
    const int part = static_cast<int>(k - i);
    const F a = S::mul(S::load_part(x + i, part), scale);
    S::store_part(y + i, S::mul(a, load_bf16_part<S>(w + i, part)), part);
  }
}

template <class S>
SIMD_INLINE typename S::F gated(typename S::F gate, typename S::F up, float limit) {
  typedef typename S::F F;
  const F one = S::set1(1.0f);
  gate = S::min(S::set1(limit), gate);
  up = S::max(S::set1(-limit), S::min(S::set1(limit), up));
  const F sigmoid = S::div(gate, S::add(one, exponential<S>(S::mul(gate, S::set1(-1.702f)))));
  return S::mul(sigmoid, S::add(up, one));
}

template <class S>
void swiglu(float* y, const float* gate_up, int64_t n, float limit) {
  typedef typename S::F F;
  int64_t i = 0;
  for (; i + S::kLanes <= n; i += S::kLanes) {
    const F a = S::load(gate_up + 2 * i), b = S::load(gate_up + 2 * i + S::kLanes);
    S::store(y + i, gated<S>(S::evens(a, b), S::odds(a, b), limit));
  }
  if (i < n) {
    const int part = static_cast<int>(n - i);
    float padded[2 * S::kLanes] = {};
    memcpy(padded, gate_up + 2 * i, 2 * part * sizeof *padded);
    const F a = S::load(padded), b = S::load(padded + S::kLanes);
    S::store_part(y + i, gated<S>(S::evens(a, b), S::odds(a, b), limit), part);
  }
}

// Not fused: what the reference rounds, in the same places.
template <class S>
void rope(float* x, int64_t heads, int64_t dim, const float* cosine, const float* sine) {
  typedef typename S::F F;
  const int64_t half = dim / 2;
  for (int64_t h = 0; h < heads; h++, x += dim) {
    int64_t i = 0;
    for (; i + S::kLanes <= half; i += S::kLanes) {
      const F a = S::load(x + i), b = S::load(x + i + half);
      const F c = S::load(cosine + i), s = S::load(sine + i);
      S::store(x + i, S::sub(S::mul(a, c), S::mul(b, s)));
      S::store(x + i + half, S::add(S::mul(b, c), S::mul(a, s)));
    }
    for (; i < half; i++) {
      const float a = x[i], b = x[i + half];
      x[i] = a * cosine[i] - b * sine[i];
      x[i + half] = b * cosine[i] + a * sine[i];
    }
  }
}

template <class S>
void bf16_to_f32(float* y, const uint16_t* x, int64_t n) {
  int64_t i = 0;
  for (; i + S::kLanes <= n; i += S::kLanes) S::store(y + i, S::load_bf16(x + i));
  for (; i < n; i++) y[i] = bf16_value(x + i);
}

template <class S>
void f32_to_bf16(uint16_t* y, const float* x, int64_t n) {
  int64_t i = 0;
  for (; i + S::kLanes <= n; i += S::kLanes) S::store_bf16(y + i, S::load(x + i));
  if (i < n) {
    uint16_t rounded[S::kLanes];
    S::store_bf16(rounded, S::load_part(x + i, static_cast<int>(n - i)));
    memcpy(y + i, rounded, static_cast<size_t>(n - i) * sizeof *rounded);
  }
}

// e4m3 in integers, 1024 numbers a row and layer: plain code. From 2^-6 up a code is the upper 11
// bits of the float32, rounded and moved to the bias of 7; below, a multiple of 2^-9.
inline void f32_to_f8(uint8_t* y, const float* x, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    const float size = fabsf(x[i]) < 448.0f ? fabsf(x[i]) : 448.0f;
    uint32_t bits, sign;
    memcpy(&bits, &size, sizeof bits);
    memcpy(&sign, x + i, sizeof sign);
    const uint32_t normal = (bits + 0x7ffff + (bits >> 20 & 1)) >> 20;
    const uint32_t small = static_cast<uint32_t>(lrintf(size * 512.0f));
    const uint32_t code = size < 0x1p-6f ? small : normal - (120 << 3);
    y[i] = static_cast<uint8_t>(code | (sign >> 24 & 0x80));
  }
}

template <class S>
void add(float* y, const float* x, int64_t n) {
  int64_t i = 0;
  for (; i + S::kLanes <= n; i += S::kLanes)
    S::store(y + i, S::add(S::load(y + i), S::load(x + i)));
  for (; i < n; i++) y[i] += x[i];
}

template <class S>
void axpy(float* y, float a, const float* x, int64_t n) {
  int64_t i = 0;
  for (; i + S::kLanes <= n; i += S::kLanes) {
    S::store(y + i, S::fma(S::set1(a), S::load(x + i), S::load(y + i)));
  }
  if (i < n) {
    const int part = static_cast<int>(n - i);
    S::store_part(y + i, S::fma(S::set1(a), S::load_part(x + i, part), S::load_part(y + i, part)),
                  part);
  }
}

// Four logits as a rule: plain code.
inline void softmax_row(float* x, int64_t n) {
  float largest = x[0], sum = 0;
  for (int64_t i = 1; i < n; i++) largest = x[i] > largest ? x[i] : largest;
  for (int64_t i = 0; i < n; i++) sum += x[i] = expf(x[i] - largest);
  for (int64_t i = 0; i < n; i++) x[i] /= sum;
}

}  // namespace

#endif  // OSSRUN_CPU_SIMD_ROWS_H_
