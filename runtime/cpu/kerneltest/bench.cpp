// How fast the kernels of each table are on one core, beside what the core can read.
//
//   bench [table] [repetitions]     all tables and 9 repetitions by default
//
// One token: GB/s of weights out of memory (a ring of matrices larger than the caches), and percent
// of a plain read loop over the same memory in the same repetition. A batch of 64: GFLOP/s, and
// percent of the table's own 8-bit multiply-adds. Every figure is the median of the repetitions; on
// a shared machine only the ratios mean much.
#include <time.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "check.h"

namespace {

const int64_t kHidden = 2880, kRing = 192 << 20;  // bytes of weights that are walked

// Of this thread on a core, not of the clock: others may share the machine.
double seconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

double timed(const std::function<void()>& work) {
  const double start = seconds();
  work();
  return seconds() - start;
}

// Sums 64-bit words: eight sums, so that only memory holds it back.
uint64_t read_all(const uint8_t* p, int64_t bytes) {
  uint64_t sums[8] = {};
  for (int64_t i = 0; i + 64 <= bytes; i += 64) {
    uint64_t words[8];
    memcpy(words, p + i, sizeof words);
    for (int j = 0; j < 8; j++) sums[j] += words[j];
    __builtin_prefetch(p + i + 4096);
  }
  uint64_t sum = 0;
  for (uint64_t s : sums) sum += s;
  return sum;
}

volatile uint64_t sink;

struct Bench {
  std::vector<uint8_t> memory;
  std::vector<float> x, y, d;
  std::vector<int8_t> q;
  std::vector<int16_t> q12;
  std::vector<float> d12;
  std::vector<const float*> x_at, d_at;
  std::vector<const int8_t*> q_at;
  std::vector<const int16_t*> q12_at;
  std::vector<const float*> d12_at;
  int repetitions;
  const Kernels* kernels = nullptr;

  static constexpr int64_t kTokens = 64;

  explicit Bench(int n) : memory(kRing + 64), repetitions(n) {
    Random random(4);
    for (size_t i = 0; i + 8 <= memory.size(); i += 8) {
      const uint64_t bits = random.bits() & 0xbf7fbf7fbf7fbf7full;  // bf16 below 2 in size
      memcpy(&memory[i], &bits, sizeof bits);
    }
    x.resize(kTokens * kHidden);
    for (float& v : x) v = random.normal();
    y.resize(kTokens * 2 * kHidden);
    q.resize(kTokens * kHidden);
    d.resize(kTokens * kHidden / 16);
    q12.resize(kTokens * kHidden);
    d12.resize(kTokens * kHidden / 32);
    for (int64_t t = 0; t < kTokens; t++) {
      x_at.push_back(&x[t * kHidden]);
      q_at.push_back(&q[t * kHidden]);
      d_at.push_back(&d[t * kHidden / 16]);
      q12_at.push_back(&q12[t * kHidden]);
      d12_at.push_back(&d12[t * kHidden / 32]);
    }
  }

  // Calls work(row) for rows in tiles of 64 over the ring, each row `bytes` long.
  void walk(int64_t bytes, const std::function<void(int64_t, int64_t)>& work) {
    const int64_t rows = kRing / bytes / 64 * 64;
    for (int64_t r = 0; r < rows; r += 64) work(r, r + 64);
  }

  void stream(const char* name, int64_t bytes, const std::function<void(int64_t, int64_t)>& work) {
    std::vector<double> rate, share;
    const double total = static_cast<double>(kRing / bytes / 64 * 64 * bytes);
    for (int i = 0; i < repetitions; i++) {
      const double t = timed([&] { walk(bytes, work); });
      const double plain = timed([&] { sink = read_all(memory.data(), kRing); });
      rate.push_back(total / t / 1e9);
      share.push_back(total / t / (kRing / plain) * 100);
    }
    printf("  %-24s %7.2f GB/s   %4.0f %% of the read loop\n", name, median(rate), median(share));
  }

  void compute(const char* name, int64_t n, int64_t rows, int64_t k,
               const std::function<void()>& work) {
    std::vector<double> rate, share;
    for (int i = 0; i < repetitions; i++) {
      rate.push_back(2.0 * static_cast<double>(n * rows * k) / timed(work) / 1e9);
      int64_t operations = 0;
      const double plain = timed([&] { operations = kernels->multiply_peak(200000); });
      share.push_back(rate.back() * 1e9 / (static_cast<double>(operations) / plain) * 100);
    }
    printf("  %-24s %7.1f GFLOP/s %4.0f %% of the multiply-adds\n", name, median(rate),
           median(share));
  }

  void run(const Kernels& k) {
    printf("%s\n", k.name);
    kernels = &k;
    uint16_t* w = reinterpret_cast<uint16_t*>(memory.data());
    uint8_t* blocks = memory.data();
    const int64_t nb = kHidden / 32, row_bytes = 17 * nb;
    // Scales stand behind the blocks, as in the checkpoint; sane ones.
    uint8_t* scales = blocks + kRing / row_bytes / 64 * 64 * nb * 16;
    for (uint8_t* s = scales; s < blocks + kRing; s++) *s = static_cast<uint8_t>(120 + *s % 4);
    for (int64_t t = 0; t < kTokens; t++) {
      k.quantize_q8(&q[t * kHidden], &d[t * kHidden / 16], x_at[t], kHidden);
      k.quantize_q12(&q12[t * kHidden], &d12[t * kHidden / 32], x_at[t], kHidden);
    }
    // y is a ring too: row r of the walk writes y[r % 64].
    for (int64_t n : {1, 2, 3, 4, 8}) {
      char name[64];
      snprintf(name, sizeof name, "bf16 n=%lld", static_cast<long long>(n));
      stream(name, 2 * kHidden, [&](int64_t r0, int64_t) {
        k.matmul_bf16(y.data(), 64, x.data(), kHidden, n, w + r0 * kHidden, kHidden, 0, 64,
                      nullptr);
      });
      snprintf(name, sizeof name, "mxfp4 n=%lld", static_cast<long long>(n));
      stream(name, row_bytes, [&](int64_t r0, int64_t) {
        k.matmul_mxfp4(y.data(), 64, x_at.data(), n, blocks + r0 * nb * 16, scales + r0 * nb,
                       kHidden, 0, 64, nullptr);
      });
      snprintf(name, sizeof name, "mxfp4 q8 n=%lld", static_cast<long long>(n));
      stream(name, row_bytes, [&](int64_t r0, int64_t) {
        k.matmul_mxfp4_q8(y.data(), 64, q_at.data(), d_at.data(), n, blocks + r0 * nb * 16,
                          scales + r0 * nb, kHidden, 0, 64, nullptr);
      });
      snprintf(name, sizeof name, "dense q8 n=%lld", static_cast<long long>(n));
      stream(name, 34 * nb, [&](int64_t r0, int64_t) {
        k.matmul_q8(y.data(), 64, q12_at.data(), d12_at.data(), n, blocks + r0 * nb * 34, kHidden,
                    0, 64, nullptr);
      });
      snprintf(name, sizeof name, "dense q8 q8 n=%lld", static_cast<long long>(n));
      stream(name, 34 * nb, [&](int64_t r0, int64_t) {
        k.matmul_q8_q8(y.data(), 64, q_at.data(), d_at.data(), n, blocks + r0 * nb * 34, kHidden, 0,
                       64, nullptr);
      });
    }
    const int64_t rows = 576;
    compute("bf16 n=64", kTokens, rows, kHidden, [&] {
      k.matmul_bf16(y.data(), rows, x.data(), kHidden, kTokens, w, kHidden, 0, rows, nullptr);
    });
    compute("mxfp4 n=64", kTokens, rows, kHidden, [&] {
      k.matmul_mxfp4(y.data(), rows, x_at.data(), kTokens, blocks, scales, kHidden, 0, rows,
                     nullptr);
    });
    compute("mxfp4 q8 n=64", kTokens, rows, kHidden, [&] {
      k.matmul_mxfp4_q8(y.data(), rows, q_at.data(), d_at.data(), kTokens, blocks, scales, kHidden,
                        0, rows, nullptr);
    });
    compute("dense q8 n=64", kTokens, rows, kHidden, [&] {
      k.matmul_q8(y.data(), rows, q12_at.data(), d12_at.data(), kTokens, blocks, kHidden, 0, rows,
                  nullptr);
    });
    compute("dense q8 q8 n=64", kTokens, rows, kHidden, [&] {
      k.matmul_q8_q8(y.data(), rows, q_at.data(), d_at.data(), kTokens, blocks, kHidden, 0, rows,
                     nullptr);
    });
    compute("quantize_q12 (2 k)", kTokens, 1, kHidden, [&] {
      for (int64_t t = 0; t < kTokens; t++) {
        k.quantize_q12(&q12[t * kHidden], &d12[t * kHidden / 32], x_at[t], kHidden);
      }
    });
    compute("quantize_q8 (2 k)", kTokens, 1, kHidden, [&] {
      for (int64_t t = 0; t < kTokens; t++) {
        k.quantize_q8(&q[t * kHidden], &d[t * kHidden / 16], x_at[t], kHidden);
      }
    });
    // 8 heads of one KV head over 4096 tokens in pages of 32: 4 * rows * 8 * 4096 * 64 operations.
    std::vector<float> keys(4096 * 64, 0.1f);
    for (int64_t n : {1, 4, 16}) {
      std::vector<float> states(n * 8 * 66);
      std::vector<AttentionRow> rows;
      for (int64_t r = 0; r < n; r++) {
        float* m = &states[r * 8 * 66];
        rows.push_back({x.data() + r * 512, m, m + 8, m + 16, 0, 32});
        k.attention_begin(m, m + 8, m + 16, 8, 64, nullptr);
      }
      const auto attend = [&](const char* type, auto* page, auto function) {
        char name[64];
        snprintf(name, sizeof name, "attention %s rows=%lld", type, static_cast<long long>(n));
        compute(name, n * 8, 2 * 4096, 64, [&] {
          for (int64_t t = 0; t < 4096; t += 32) {
            function(rows.data(), n, 8, 64, 0.125f, page + t * 64, page + t * 64, 64, nullptr, 0);
          }
        });
      };
      attend("f32", keys.data(), k.attention_page_f32);
      attend("bf16", reinterpret_cast<const uint16_t*>(keys.data()), k.attention_page_bf16);
      attend("f8", reinterpret_cast<const uint8_t*>(keys.data()), k.attention_page_f8);
    }
  }
};

}  // namespace

int main(int argc, char** argv) {
  const char* only = argc > 1 ? argv[1] : "";
  Bench bench(argc > 2 ? atoi(argv[2]) : 9);
  for (const Kernels* k :
       {kernels_scalar(), kernels_neon(), kernels_i8mm(), kernels_bf16(), kernels_avx2(),
        kernels_avxvnni(), kernels_avx512(), kernels_vbmi(), kernels_amx()}) {
    if (k != nullptr && (*only == 0 || strcmp(only, k->name) == 0)) bench.run(*k);
  }
}
