// The frame of the kernel tests: named cases, device memory with guards, launches checked against
// the kernel's own parameters, and comparisons that no NaN slips through.
#ifndef OSSRUN_GPU_KERNELTEST_CHECK_H_
#define OSSRUN_GPU_KERNELTEST_CHECK_H_

#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <exception>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "../emulator/emulator.h"

typedef uint16_t bf16;
typedef uint8_t e4m3;

// A test case; defining one registers it.
struct Case {
  const char* name;
  void (*run)();
  Case* next;
  static Case*& first() {
    static Case* list = nullptr;
    return list;
  }
  Case(const char* n, void (*f)()) : name(n), run(f), next(first()) { first() = this; }
};
#define TEST(name)                             \
  static void test_##name();                   \
  static Case case_##name(#name, test_##name); \
  static void test_##name()

// Ends the case. Cases hold only Memory and vectors, which unwind.
struct Failure {
  std::string what;
};
[[noreturn]] inline void fail(const char* format, ...) __attribute__((format(printf, 1, 2)));
inline void fail(const char* format, ...) {
  char text[400];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  throw Failure{text};
}

// Device memory of n elements, all bytes 0xff at first: NaN as float and as bf16, -1 as int. Where
// it ends, a page that cannot be touched begins; what lies before it and between it and that page
// is held to be unchanged when it is freed. Aligned to 256 where the size allows, to 16 always.
template <class T>
class Memory {
 public:
  explicit Memory(size_t n) : n_(n) {
    const size_t bytes = n * sizeof(T), rounded = (bytes + 15) / 16 * 16;
    inside_ = (rounded + kPage - 1) / kPage * kPage + kPage;
    base_ = static_cast<unsigned char*>(
        mmap(nullptr, inside_ + kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(base_ + inside_, kPage, PROT_NONE);
    data_ = base_ + inside_ - rounded;
    memset(base_, kCanary, inside_);
    memset(data_, 0xff, bytes);
  }
  explicit Memory(const std::vector<T>& v) : Memory(v.size()) {
    if (!v.empty()) memcpy(data_, v.data(), v.size() * sizeof(T));
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() noexcept(false) {
    bool whole = true;
    for (unsigned char* p = base_; p < data_; p++) whole = whole && *p == kCanary;
    for (unsigned char* p = data_ + n_ * sizeof(T); p < base_ + inside_; p++)
      whole = whole && *p == kCanary;
    munmap(base_, inside_ + kPage);
    if (!whole && !std::uncaught_exceptions()) fail("a kernel wrote outside of its memory");
  }
  T* data() { return reinterpret_cast<T*>(data_); }
  const T* data() const { return reinterpret_cast<const T*>(data_); }
  T& operator[](size_t i) { return data()[i]; }
  const T& operator[](size_t i) const { return data()[i]; }
  size_t size() const { return n_; }
  std::vector<T> values() const { return std::vector<T>(data(), data() + n_); }

 private:
  static constexpr size_t kPage = 4096;
  static constexpr unsigned char kCanary = 0x5a;
  size_t n_, inside_;
  unsigned char *base_, *data_;
};

struct Grid {
  unsigned x = 1, y = 1, z = 1;
};

struct Arguments {
  std::vector<uint64_t> words;
  std::vector<int> sizes;
  void add(const void* p, int size) {
    uint64_t w = 0;
    memcpy(&w, p, size);
    words.push_back(w);
    sizes.push_back(size);
  }
  void push(std::nullptr_t) {
    const void* p = nullptr;
    add(&p, sizeof p);
  }
  template <class T>
  void push(Memory<T>& m) {
    const void* p = m.data();
    add(&p, sizeof p);
  }
  template <class T>
  void push(T* p) {
    add(&p, sizeof p);
  }
  void push(int v) { add(&v, sizeof v); }
  void push(int64_t v) { add(&v, sizeof v); }
  void push(float v) { add(&v, sizeof v); }
};

inline void launch_arguments(const char* name, Grid g, unsigned threads, size_t shared,
                             const Arguments& a) {
  const emulated_kernel* k = emulator_find(name);
  if (!k) fail("there is no kernel %s", name);
  if (k->params != int(a.sizes.size()))
    fail("%s has %d parameters, %zu were given", name, k->params, a.sizes.size());
  std::vector<void*> pointers;
  for (size_t i = 0; i < a.words.size(); i++) {
    if (a.sizes[i] != k->sizes[i])
      fail("%s: parameter %zu has %d bytes, %d were given", name, i, k->sizes[i], a.sizes[i]);
    pointers.push_back(const_cast<uint64_t*>(&a.words[i]));
  }
  const unsigned grid[3] = {g.x, g.y, g.z}, block[3] = {threads, 1, 1};
  const char* error = emulator_launch(k, grid, block, shared, pointers.data());
  if (error) fail("%s", error);
}

// Launches a kernel and waits for it. Numbers are int, int64_t or float, as the kernel has them.
template <class... A>
void launch(const char* name, Grid g, unsigned threads, size_t shared, A&&... args) {
  Arguments a;
  (a.push(args), ...);
  launch_arguments(name, g, threads, shared, a);
}

inline unsigned divide_up(int64_t n, int64_t by) { return unsigned((n + by - 1) / by); }

// The largest |got - want| / scale must be at most `most`; a NaN is larger than anything.
class Comparison {
 public:
  Comparison(const char* what, double most) : what_(what), most_(most) {}
  void add(double got, double want, double scale, int64_t at) {
    const double e = fabs(got - want) / scale;
    if (e <= worst_) return;
    if (worst_ == INFINITY) return;
    worst_ = e == e ? e : INFINITY;
    at_ = at;
    got_ = got;
    want_ = want;
  }
  void check() const {
    if (worst_ > most_)
      fail("%s: element %lld is %.9g, not %.9g: an error of %.2e where %.0e is allowed", what_,
           static_cast<long long>(at_), got_, want_, worst_, most_);
  }

 private:
  const char* what_;
  double most_, worst_ = -1, got_ = 0, want_ = 0;
  int64_t at_ = -1;
};

// got[i] against want[i], relative to `scale` (of all) plus the size of want[i].
template <class G>
void near(const char* what, const G& got, const std::vector<double>& want, double most,
          double scale = 1) {
  Comparison c(what, most);
  for (size_t i = 0; i < want.size(); i++)
    c.add(double(got[i]), want[i], scale + fabs(want[i]), int64_t(i));
  c.check();
}

// Elements from `from` on are as they were before any kernel ran.
template <class T>
void untouched(const char* what, const Memory<T>& m, size_t from) {
  for (size_t i = from; i < m.size(); i++) {
    unsigned char bytes[sizeof(T)];
    memcpy(bytes, m.data() + i, sizeof(T));
    for (unsigned char b : bytes)
      if (b != 0xff) fail("%s: element %zu was written, only %zu were to be", what, i, from);
  }
}

// ---- random data; every case begins with the same seed

inline std::mt19937& rng() {
  static std::mt19937 r;
  return r;
}
inline float uniform() { return std::uniform_real_distribution<float>(-1, 1)(rng()); }
inline int below(int n) { return int(rng()() % unsigned(n)); }

inline float from_bf16(bf16 v) {
  const uint32_t u = uint32_t(v) << 16;
  float f;
  memcpy(&f, &u, 4);
  return f;
}
inline bf16 to_bf16(float f) {
  uint32_t u;
  memcpy(&u, &f, 4);
  return bf16((u + 0x7fff + ((u >> 16) & 1)) >> 16);
}

// 4 bits of exponent with bias 7, 3 of mantissa, no infinities; the codes of NaN count as +-480.
inline float from_e4m3(e4m3 v) {
  const int exponent = v >> 3 & 15, mantissa = v & 7;
  const float size =
      exponent == 0 ? ldexpf(float(mantissa), -9) : ldexpf(float(8 + mantissa), exponent - 10);
  return v & 0x80 ? -size : size;
}
// The nearest code, found by looking at all, the even one of two that are as near; 448 at most,
// which NaN becomes too.
inline e4m3 to_e4m3(float f) {
  static const std::vector<double> values = [] {
    std::vector<double> v;
    for (int c = 0; c < 0x7f; c++) v.push_back(from_e4m3(e4m3(c)));
    return v;
  }();
  const double size = f == f ? fmin(fabs(double(f)), 448) : 448;
  int code = 0;
  for (int c = 1; c < 0x7f; c++) {
    const double off = fabs(values[c] - size), best = fabs(values[code] - size);
    if (off < best || (off == best && c % 2 == 0)) code = c;
  }
  return e4m3(code | (signbit(f) ? 0x80 : 0));
}

inline std::vector<float> floats(size_t n, float size = 1) {
  std::vector<float> v(n);
  for (float& x : v) x = uniform() * size;
  return v;
}
inline std::vector<bf16> halves(size_t n, float size = 1) {
  std::vector<bf16> v(n);
  for (bf16& x : v) x = to_bf16(uniform() * size);
  return v;
}

#endif  // OSSRUN_GPU_KERNELTEST_CHECK_H_
