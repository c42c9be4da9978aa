// What the kernel tests share: numbers from a fixed seed, float formats in double, failure counts.
#ifndef OSSRUN_KERNELTEST_CHECK_H_
#define OSSRUN_KERNELTEST_CHECK_H_

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "../kernels.h"

// xorshift64*: the same numbers on every machine.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15ull + 1) {}
  uint64_t bits() {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return state_ * 0x2545f4914f6cdd1dull;
  }
  int64_t below(int64_t n) { return static_cast<int64_t>(bits() >> 33) % n; }
  int64_t between(int64_t low, int64_t high) { return low + below(high - low + 1); }
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }  // [0, 1)
  float normal() {                                                          // close enough to it
    double sum = -6;
    for (int i = 0; i < 12; i++) sum += uniform();
    return static_cast<float>(sum);
  }

 private:
  uint64_t state_;
};

inline uint32_t float_bits(float a) {
  uint32_t bits;
  memcpy(&bits, &a, sizeof bits);
  return bits;
}
inline float bits_float(uint32_t bits) {
  float a;
  memcpy(&a, &bits, sizeof a);
  return a;
}
inline double bf16_double(uint16_t half) { return bits_float(static_cast<uint32_t>(half) << 16); }
inline uint16_t bf16_of(float a) {  // cut, not rounded: any bf16 will do as a weight
  return static_cast<uint16_t>(float_bits(a) >> 16);
}
// e4m3, its NaN codes as 480.
inline double f8_double(uint8_t code) {
  const int exponent = code >> 3 & 15, mantissa = code & 7;
  const double size = exponent == 0 ? ldexp(mantissa, -9) : ldexp(8 + mantissa, exponent - 10);
  return code & 0x80 ? -size : size;
}
inline double e2m1_double(int code) {
  static const double kValues[8] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  return code < 8 ? kValues[code] : -kValues[code - 8];
}

// Counts what did not hold and prints the first few of each test.
class Checker {
 public:
  explicit Checker(const char* kernels) : kernels_(kernels) {}
  void start(const char* test) {
    test_ = test;
    printed_ = 0;
  }
  bool that(bool held, const char* what, double got, double want, int64_t a = 0, int64_t b = 0) {
    checks_++;
    if (held) return true;
    failures_++;
    if (printed_++ < 5) {
      printf("FAIL %s %s: %s: got %.9g, want %.9g (at %lld, %lld)\n", kernels_, test_, what, got,
             want, static_cast<long long>(a), static_cast<long long>(b));
    }
    return false;
  }
  // |got - want| <= bound; two that are not finite must be the same.
  bool near(double got, double want, double bound, int64_t a = 0, int64_t b = 0) {
    const bool held = isfinite(want) ? fabs(got - want) <= bound : got == want;
    return that(held, "value", got, want, a, b);
  }
  bool same(float got, float want, const char* what, int64_t a = 0, int64_t b = 0) {
    return that(float_bits(got) == float_bits(want), what, got, want, a, b);
  }
  int64_t checks() const { return checks_; }
  int64_t failures() const { return failures_; }

 private:
  const char* kernels_;
  const char* test_ = "";
  int printed_ = 0;
  int64_t checks_ = 0, failures_ = 0;
};

void test_schedule(Checker& check);
void test_matmul(const Kernels& k, Checker& check);
// Its part on 8-bit and 12-bit inputs.
void test_matmul_q8(const Kernels& k, Checker& check);
// Its part on dense weights.
void test_dense(const Kernels& k, Checker& check);
// Where the table has matmul_bf16_halves.
void test_halves(const Kernels& k, Checker& check);
// Where the table has products on tiles; with `same`, whether the bits are those of that table.
void test_tiles(const Kernels& k, const Kernels* same, Checker& check);
void test_rows(const Kernels& k, Checker& check);
void test_attention(const Kernels& k, Checker& check);
// Of what both compute from 8-bit and 12-bit inputs.
void test_same_bits(const Kernels& one, const Kernels& other, Checker& check);

// Tables that only tests have, which a program may be linked without.
#define TEST_TABLE __attribute__((weak))
// The templates at sixteen lanes in portable C++ (portable16.cpp).
const Kernels* kernels_portable16() TEST_TABLE;
// The table for AVX-VNNI without its instruction (emulated_vnni.cpp); null without AVX2.
const Kernels* kernels_emulated_vnni() TEST_TABLE;
// The tables for AMX: in portable C++ above portable16 (portable_amx.cpp), and with its registers
// as arrays above avx512 (emulated_amx.cpp); the latter null without AVX-512.
const Kernels* kernels_portable_amx() TEST_TABLE;
const Kernels* kernels_emulated_amx() TEST_TABLE;

#endif  // OSSRUN_KERNELTEST_CHECK_H_
