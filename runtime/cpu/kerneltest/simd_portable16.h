// Sixteen lanes as plain arrays: what simd_avx512.h means, for machines that cannot execute it.
//
// With it the kernel templates are tested at the width of AVX-512 on any machine. It also keeps
// their vocabulary honest: whatever a template needs is spelled out here in scalar C++.
#ifndef OSSRUN_KERNELTEST_SIMD_PORTABLE16_H_
#define OSSRUN_KERNELTEST_SIMD_PORTABLE16_H_

// A function of its own: inlined, they take minutes to compile.
#define CALLED static __attribute__((noinline))

namespace {

constexpr E2m1Floats kPortableE2m1;

struct Portable16AnyScales {
  static constexpr int kLanes = 16;
  static constexpr int kTileTokens = 6;
  static constexpr int kRowVectors = 1;
  static constexpr bool kTokenPairs = false;
  typedef int16_t DenseQ;
  static constexpr int kDenseNumbers = 1;
  static constexpr int kDenseColumns = 4;
  static constexpr int kRowVectorsDenseQ8 = 2;
  static constexpr int kTileTokensDenseQ8 = 6;
  static constexpr bool kDenseSumsStay = true;
  static constexpr bool kDenseReady = false;
  static constexpr int kTileHeads = 2;
  static constexpr int kTileTokensQ8 = 1;
  static constexpr int kRowTokens = 0;
  static constexpr bool kTwoRows = false;
  static constexpr bool kUsualScales = false;
  struct F {
    float lane[kLanes];
  };
  struct I {
    uint8_t byte[4 * kLanes];
  };

  template <class Each>
  static F each(Each value) {
    F f;
    for (int i = 0; i < kLanes; i++) f.lane[i] = value(i);
    return f;
  }
  CALLED F zero() { return set1(0); }
  CALLED F set1(float a) {
    return each([&](int) { return a; });
  }
  CALLED F load(const float* p) {
    return each([&](int i) { return p[i]; });
  }
  CALLED void store(float* p, F a) { memcpy(p, a.lane, sizeof a.lane); }
  CALLED F add(F a, F b) {
    return each([&](int i) { return a.lane[i] + b.lane[i]; });
  }
  CALLED F sub(F a, F b) {
    return each([&](int i) { return a.lane[i] - b.lane[i]; });
  }
  CALLED F mul(F a, F b) {
    return each([&](int i) { return a.lane[i] * b.lane[i]; });
  }
  CALLED F div(F a, F b) {
    return each([&](int i) { return a.lane[i] / b.lane[i]; });
  }
  CALLED F fma(F a, F b, F c) {  // rounds twice where the real ones round once
    return each([&](int i) { return a.lane[i] * b.lane[i] + c.lane[i]; });
  }
  CALLED F min(F a, F b) {
    return each([&](int i) { return a.lane[i] < b.lane[i] ? a.lane[i] : b.lane[i]; });
  }
  CALLED F max(F a, F b) {
    return each([&](int i) { return a.lane[i] > b.lane[i] ? a.lane[i] : b.lane[i]; });
  }
  CALLED F abs(F a) {
    return each([&](int i) { return fabsf(a.lane[i]); });
  }
  CALLED F load_part(const float* p, int n) {
    return each([&](int i) { return i < n ? p[i] : 0.0f; });
  }
  CALLED void store_part(float* p, F a, int n) { memcpy(p, a.lane, n * sizeof *p); }
  CALLED float sum(F a) {
    for (int half = kLanes / 2; half > 0; half /= 2) {
      for (int i = 0; i < half; i++) a.lane[i] += a.lane[i + half];
    }
    return a.lane[0];
  }
  CALLED float max_lane(F a) {
    float largest = a.lane[0];
    for (float x : a.lane) largest = x > largest ? x : largest;
    return largest;
  }
  CALLED void sum4(float out[4], F a, F b, F c, F d) {
    out[0] = sum(a);
    out[1] = sum(b);
    out[2] = sum(c);
    out[3] = sum(d);
  }
  CALLED F nearest(F a) {
    return each([&](int i) { return rintf(a.lane[i]); });
  }
  CALLED F power_of_2(F a) {
    return each([&](int i) { return ldexpf(1.0f, static_cast<int>(a.lane[i])); });
  }
  CALLED F times_power_of_2(F a, F n) {
    return each([&](int i) {
      return n.lane[i] >= -126 ? ldexpf(a.lane[i], static_cast<int>(n.lane[i])) : 0.0f;
    });
  }
  CALLED F zero_below(F a, F x, float limit) {
    return each([&](int i) { return x.lane[i] < limit ? 0.0f : a.lane[i]; });
  }
  CALLED F load_f8(const uint8_t* p) {
    return each([&](int i) {
      const int exponent = p[i] >> 3 & 15, mantissa = p[i] & 7;
      const float size = exponent == 0 ? ldexpf(static_cast<float>(mantissa), -9)
                                       : ldexpf(static_cast<float>(8 + mantissa), exponent - 10);
      return p[i] & 0x80 ? -size : size;
    });
  }
  CALLED F load_bf16(const void* p) {
    return each([&](int i) {
      uint8_t bits[4] = {};
      memcpy(bits + 2, static_cast<const uint8_t*>(p) + 2 * i, 2);
      float value;
      memcpy(&value, bits, sizeof value);
      return value;
    });
  }
  CALLED void store_bf16(void* p, F a) {
    for (int i = 0; i < kLanes; i++) {
      uint32_t bits;
      memcpy(&bits, &a.lane[i], sizeof bits);
      const bool nan = a.lane[i] != a.lane[i];
      bits = nan ? bits | 0x00400000u : bits + 0x7fffu + ((bits >> 16) & 1);
      const uint16_t half = static_cast<uint16_t>(bits >> 16);
      memcpy(static_cast<uint16_t*>(p) + i, &half, sizeof half);
    }
  }
  CALLED F evens(F a, F b) {
    return each([&](int i) { return i < 8 ? a.lane[2 * i] : b.lane[2 * i - 16]; });
  }
  CALLED F odds(F a, F b) {
    return each([&](int i) { return i < 8 ? a.lane[2 * i + 1] : b.lane[2 * i - 15]; });
  }
  CALLED void mx_weights(F w[2], const uint8_t* block, uint8_t scale) {
    for (int e = 0; e < 32; e++) {
      const int code = e % 2 == 0 ? block[e / 2] & 15 : block[e / 2] >> 4;
      memcpy(&w[e / kLanes].lane[e % kLanes], &kPortableE2m1.bits[scale][code], sizeof(float));
    }
  }
  CALLED void q8_weights(I w[8], const uint8_t* const rows[16], int64_t offset) {
    for (int v = 0; v < 8; v++) {
      for (int r = 0; r < kLanes; r++) {
        for (int i = 0; i < 4; i++) {
          const uint8_t pair = rows[r][offset + v / 2 * 4 + i];
          w[v].byte[r * 4 + i] = kE2m1Plus12[v % 2 == 0 ? pair & 15 : pair >> 4];
        }
      }
    }
  }
  CALLED void weights_of(I w[2], I bytes) {
    for (int i = 0; i < 4 * kLanes; i++) {
      w[0].byte[i] = kE2m1Plus12[bytes.byte[i] & 15];
      w[1].byte[i] = kE2m1Plus12[bytes.byte[i] >> 4];
    }
  }
  CALLED void turn4(I d[4], const uint8_t* const rows[16], int64_t offset) {
    for (int i = 0; i < 16 * kLanes; i++) {
      d[i % 16 / 4].byte[i / 16 * 4 + i % 4] = rows[i / 16][offset + i % 16];
    }
  }
  CALLED F as_float(I a) {
    F f;
    memcpy(f.lane, a.byte, sizeof f.lane);
    return f;
  }
  CALLED F first_bf16(I a) {
    return each([&](int i) {
      uint8_t bits[4] = {0, 0, a.byte[4 * i], a.byte[4 * i + 1]};
      float value;
      memcpy(&value, bits, sizeof value);
      return value;
    });
  }
  CALLED F second_bf16(I a) {
    for (int i = 0; i < kLanes; i++) a.byte[4 * i] = a.byte[4 * i + 1] = 0;
    return as_float(a);
  }
  CALLED void turn8(uint8_t* out, const uint8_t* const rows[16], int64_t offset) {
    for (int i = 0; i < 8 * kLanes; i++) out[i] = rows[i % kLanes][offset + i / kLanes];
  }
  CALLED void store_bytes(uint8_t* p, I a) { memcpy(p, a.byte, sizeof a.byte); }
  CALLED I load_bytes(const uint8_t* p) {
    I v;
    memcpy(v.byte, p, sizeof v.byte);
    return v;
  }
  CALLED I kept(I a) { return a; }
  CALLED I zero_ints() { return I{}; }
  CALLED F to_float(I a) {
    return each([&](int i) {
      int32_t value;
      memcpy(&value, a.byte + 4 * i, sizeof value);
      return static_cast<float>(value);
    });
  }
  CALLED void store_block_start(float* to, const int8_t* q) {
    int32_t sum = 0;
    for (int i = 0; i < 32; i++) sum -= 12 * q[i];
    memcpy(to, &sum, sizeof sum);
  }
  CALLED I block_start(const float* p) { return repeated(p); }
  CALLED I four(const int8_t* q) { return repeated(q); }
  CALLED I repeated(const void* p) {
    I v;
    for (int r = 0; r < kLanes; r++) memcpy(v.byte + 4 * r, p, 4);
    return v;
  }
  CALLED I dot4(I sums, I w, I four) {
    for (int r = 0; r < kLanes; r++) {
      int32_t value;
      memcpy(&value, sums.byte + 4 * r, sizeof value);
      for (int i = 4 * r; i < 4 * r + 4; i++)
        value += w.byte[i] * static_cast<int8_t>(four.byte[i]);
      memcpy(sums.byte + 4 * r, &value, sizeof value);
    }
    return sums;
  }
  typedef I Dense;
  CALLED Dense load_dense(const uint8_t* p, const uint8_t* second) {
    I v;
    memcpy(v.byte, p, 32);
    memcpy(v.byte + 32, second, 32);
    return v;
  }
  CALLED F dense_scales(const uint8_t* p, const uint8_t* second) {
    uint8_t both[32];
    memcpy(both, p, 16);
    memcpy(both + 16, second, 16);
    return load_bf16(both);
  }
  static constexpr float kDenseUnit = 1;
  struct DenseInput {
    int16_t four[4];
  };
  CALLED DenseInput dense_input(const int16_t* q) { return {{q[0], q[1], q[2], q[3]}}; }
  typedef I DenseSum;
  CALLED DenseSum dense_start(const float*) { return zero_ints(); }
  CALLED DenseSum dense_dot(DenseSum sums, const Dense& w, const DenseInput& q) {
    for (int r = 0; r < kLanes; r++) {
      int32_t value;
      memcpy(&value, sums.byte + 4 * r, sizeof value);
      for (int i = 0; i < 4; i++) value += static_cast<int8_t>(w.byte[4 * r + i]) * q.four[i];
      memcpy(sums.byte + 4 * r, &value, sizeof value);
    }
    return sums;
  }
  CALLED F dense_end(DenseSum sums) { return to_float(sums); }
  CALLED void store_q12(int16_t* q, const F v[2]) {
    for (int e = 0; e < 32; e++) {
      const int place = e / 8 * 8 + e % 2 * 4 + e % 8 / 2;
      q[place] = static_cast<int16_t>(v[e / kLanes].lane[e % kLanes]);
    }
  }
  CALLED I block_end(I sums) { return sums; }
  CALLED I mix(I a, I b) {
    for (int i = 0; i < 4 * kLanes; i++) a.byte[i] ^= b.byte[i];
    return a;
  }
  static constexpr int64_t kPeakOperations = 8 * 2 * 4 * kLanes;
  CALLED void peak_round(I a[8]) {
    for (int i = 0; i < 8; i++) a[i] = dot4(a[i], a[i], a[i]);
  }
  CALLED F scales(const uint8_t* p) {
    return each([&](int i) { return ldexpf(1.0f, p[i] - 128); });
  }
  CALLED F unit(F scale, F size) { return mul(scale, size); }
  CALLED void store_q8(int8_t* q, const F v[2]) {
    for (int e = 0; e < 32; e++) {
      const int place = e / 8 * 8 + e % 2 * 4 + e % 8 / 2;
      q[place] = static_cast<int8_t>(v[e / kLanes].lane[e % kLanes]);
    }
  }
};

struct Portable16 : Portable16AnyScales {
  typedef Portable16AnyScales AnyScales;
  static constexpr bool kUsualScales = true;
  static constexpr int kRowVectors = 3;
  static constexpr int kTileTokensQ8 = 4;
  static constexpr int kRowTokens = 2;

  CALLED bool usual_scales(const uint8_t* p, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
      if (p[i] < 64 || p[i] > 134) return false;
    }
    return true;
  }
  CALLED F scales(const uint8_t* p) {
    return each([&](int i) { return static_cast<float>(p[i] - 128); });
  }
  CALLED F unit(F scale, F size) {
    return each([&](int i) { return ldexpf(size.lane[i], static_cast<int>(scale.lane[i])); });
  }
  template <class Value>
  CALLED I ints(Value value) {
    I v;
    for (int i = 0; i < kLanes; i++) {
      const int32_t n = value(i);
      memcpy(v.byte + 4 * i, &n, sizeof n);
    }
    return v;
  }
  CALLED int32_t int_at(const I& a, int i) {
    int32_t n;
    memcpy(&n, a.byte + 4 * i, sizeof n);
    return n;
  }
  CALLED I sum_fours(I a, I b, I c, I d) {
    const I* of[4] = {&a, &b, &c, &d};
    return ints([&](int i) {
      int32_t sum = 0;
      for (int j = 0; j < 4; j++) sum += int_at(*of[i % 4], i / 4 * 4 + j);
      return sum;
    });
  }
  CALLED void turn_dwords(I d[4], const I a[4]) {
    for (int j = 0; j < 4; j++) {
      d[j] = ints([&](int i) { return int_at(a[i % 4], i / 4 * 4 + j); });
    }
  }
  CALLED void turn_fours(I to[4], const I from[4]) {
    for (int b = 0; b < 4; b++) {
      to[b] = ints([&](int i) { return int_at(from[i / 4], 4 * b + i % 4); });
    }
  }
  CALLED I even_ints(I a, I b) {
    return ints([&](int i) { return int_at(i < 8 ? a : b, 2 * i % kLanes); });
  }
  CALLED I odd_ints(I a, I b) {
    return ints([&](int i) { return int_at(i < 8 ? a : b, 2 * i % kLanes + 1); });
  }
  CALLED I add_ints(I a, I b) {
    return ints([&](int i) { return int_at(a, i) + int_at(b, i); });
  }
};

struct Portable16Dense8 : Portable16AnyScales {
  typedef int8_t DenseQ;
  static constexpr int kDenseNumbers = 2;
  typedef I DenseInput;
  CALLED DenseInput dense_input(const int8_t* q) { return four(q); }
  CALLED DenseSum dense_dot(DenseSum sums, const Dense& w, const DenseInput& q) {
    for (int r = 0; r < kLanes; r++) {
      int32_t value;
      memcpy(&value, sums.byte + 4 * r, sizeof value);
      for (int i = 4 * r; i < 4 * r + 4; i++) {
        value += static_cast<int8_t>(w.byte[i]) * static_cast<int8_t>(q.byte[i]);
      }
      memcpy(sums.byte + 4 * r, &value, sizeof value);
    }
    return sums;
  }
};

}  // namespace

#endif  // OSSRUN_KERNELTEST_SIMD_PORTABLE16_H_
