// Tables that promise the same bits: what one computes from 8-bit and 12-bit inputs against the
// other, each with inputs that it made itself.
#include <vector>

#include "check.h"

namespace {

// n rows of k activations as one table has them, with pointers to the rows.
template <class Q>
struct Inputs {
  std::vector<Q> q;
  std::vector<float> d;
  std::vector<const Q*> q_at;
  std::vector<const float*> d_at;

  Inputs(int64_t n, int64_t k, int64_t per_block) : q(n * k), d(n * (k / 32) * per_block) {
    for (int64_t t = 0; t < n; t++) {
      q_at.push_back(&q[t * k]);
      d_at.push_back(&d[t * (k / 32) * per_block]);
    }
  }
};

}  // namespace

void test_same_bits(const Kernels& one, const Kernels& other, Checker& check) {
  Random random(7);
  check.start("the same bits as another table");
  for (int i = 0; i < 40; i++) {
    const int64_t rows = 8 * random.between(1, 9), n = random.between(1, 140);
    const int64_t k = 32 * random.between(1, 40), nb = k / 32;
    std::vector<float> x(n * k),
        y[2] = {std::vector<float>(n * rows), std::vector<float>(n * rows)};
    for (float& v : x) v = 3 * random.normal();
    std::vector<uint8_t> w(rows * nb * 34), scales(rows * nb);
    for (uint8_t& v : w) v = static_cast<uint8_t>(random.below(256));
    for (uint8_t& v : scales) v = static_cast<uint8_t>(random.between(118, 130));
    for (int64_t group = 0; group < rows / 8 * nb; group++) {
      for (int r = 0; r < 8; r++) {
        const uint16_t scale = bf16_of(0.01f + static_cast<float>(random.uniform()));
        memcpy(&w[group * 8 * 34 + 2 * r], &scale, sizeof scale);
      }
    }
    const auto compare = [&](const char* what) {
      for (int64_t at = 0; at < n * rows; at++) {
        check.same(y[0][at], y[1][at], what, at / rows, at % rows);
      }
    };
    const Kernels* tables[2] = {&one, &other};
    for (int table = 0; table < 2; table++) {
      Inputs<int8_t> in(n, k, 2);
      for (int64_t t = 0; t < n; t++) {
        tables[table]->quantize_q8(&in.q[t * k], &in.d[t * nb * 2], &x[t * k], k);
      }
      tables[table]->matmul_mxfp4_q8(y[table].data(), rows, in.q_at.data(), in.d_at.data(), n,
                                     w.data(), scales.data(), k, 0, rows, nullptr);
    }
    compare("mxfp4 q8");
    for (int table = 0; table < 2; table++) {
      Inputs<int16_t> in(n, k, 1);
      for (int64_t t = 0; t < n; t++) {
        tables[table]->quantize_q12(&in.q[t * k], &in.d[t * nb], &x[t * k], k);
      }
      tables[table]->matmul_q8(y[table].data(), rows, in.q_at.data(), in.d_at.data(), n, w.data(),
                               k, 0, rows, nullptr);
    }
    compare("dense q8");
    for (int table = 0; table < 2; table++) {
      Inputs<int8_t> in(n, k, 2);
      for (int64_t t = 0; t < n; t++) {
        tables[table]->quantize_q8(&in.q[t * k], &in.d[t * nb * 2], &x[t * k], k);
      }
      tables[table]->matmul_q8_q8(y[table].data(), rows, in.q_at.data(), in.d_at.data(), n,
                                  w.data(), k, 0, rows, nullptr);
    }
    compare("dense q8, 8-bit inputs");
  }
}
