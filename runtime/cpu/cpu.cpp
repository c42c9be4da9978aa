// The C functions of cpu.h that are not operations: pools, tapes, steps.
#include "cpu.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <vector>

#include "tape.h"

using ossrun::Pool;

struct ossrun_pool {
  explicit ossrun_pool(int threads) : pool(threads) {}
  Pool pool;
};

namespace {

const Kernels* kernels_of(const char* isa) {
  if (std::strcmp(isa, "scalar") == 0) return kernels_scalar();
  if (std::strcmp(isa, "avx2") == 0) return kernels_avx2();
  if (std::strcmp(isa, "avxvnni") == 0) return kernels_avxvnni();
  if (std::strcmp(isa, "neon") == 0) return kernels_neon();
  if (std::strcmp(isa, "i8mm") == 0) return kernels_i8mm();
  if (std::strcmp(isa, "bf16") == 0) return kernels_bf16();
  if (std::strcmp(isa, "avx512") == 0) return kernels_avx512();
  if (std::strcmp(isa, "vbmi") == 0) return kernels_vbmi();
  if (std::strcmp(isa, "amx") == 0) return kernels_amx();
  return nullptr;
}

// A gauge's work, a share for each thread. The sums keep it from being optimised away.
struct Read {
  const Kernels* kernels;
  const uint8_t* data;
  int64_t bytes;
  std::atomic<uint64_t> sum{0};

  static void share(void* argument, int thread, int threads) {
    auto* r = static_cast<Read*>(argument);
    const int64_t begin = r->bytes / 4096 * thread / threads * 4096;
    const int64_t end = r->bytes / 4096 * (thread + 1) / threads * 4096;
    r->sum += r->kernels->read_all(r->data + begin, end - begin);
  }
};

struct Multiply {
  const Kernels* kernels;
  int64_t rounds;
  std::atomic<int64_t> operations{0};

  static void share(void* argument, int, int) {
    auto* m = static_cast<Multiply*>(argument);
    m->operations += m->kernels->multiply_peak(m->rounds);
  }
};

}  // namespace

ossrun_pool* ossrun_pool_new(int threads) {
  try {
    auto pool = std::make_unique<ossrun_pool>(threads);
    return pool->pool.start() ? pool.release() : nullptr;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void ossrun_pool_free(ossrun_pool* pool) { delete pool; }

int ossrun_pool_settle(ossrun_pool* pool, int thread, const int32_t* cpus, int n) {
  return pool->pool.settle(thread, cpus, n) ? 1 : 0;
}

const char* ossrun_isa(const char* isa) {
  const Kernels* k = kernels_of(isa);
  return k ? k->name : nullptr;
}

ossrun_tape* ossrun_tape_new(const char* isa, const ossrun_shape* shape) {
  const Kernels* kernels = kernels_of(isa);
  return kernels ? new (std::nothrow) ossrun_tape(kernels, *shape) : nullptr;
}

void ossrun_tape_free(ossrun_tape* tape) { delete tape; }

void ossrun_tape_adapter(ossrun_tape* t, int adapter) { t->adapter = adapter; }

int ossrun_tape_seal(ossrun_tape* t, int threads) {
  try {
    t->seal(threads);
    return 1;
  } catch (const std::bad_alloc&) {
    return 0;
  }
}

void ossrun_step(ossrun_pool* pool, ossrun_tape* t, int threads, ossrun_part part, int64_t rows,
                 int64_t logit_rows, const int32_t* tokens, const int32_t* positions,
                 const int32_t* tables, const int32_t* full_at, const int32_t* window_at,
                 const int32_t* twins, const int32_t* logit_row, float* logits,
                 const uint64_t* wanted, const int32_t* adapter_rows, const int32_t* adapter_logits,
                 const uint8_t* prompts) {
  const ossrun_batch batch{rows,    logit_rows,   tokens,         positions, tables,
                           full_at, window_at,    twins,          logit_row, logits,
                           wanted,  adapter_rows, adapter_logits, prompts};
  const size_t all = t->ops.size(), body = all - t->unembeddings;
  t->walk(pool->pool, threads, batch, part == OSSRUN_LOGITS ? body : 0,
          part == OSSRUN_BODY ? body : all);
}

void ossrun_profile(ossrun_tape* t, int on) { t->profiling = on != 0; }

void ossrun_profile_read(const ossrun_tape* t, int64_t* ns) {
  std::copy(t->nanoseconds.begin(), t->nanoseconds.end(), ns);
}

int64_t ossrun_read_memory(ossrun_pool* pool, const char* isa, int threads, const void* data,
                           int64_t bytes) {
  Read r{kernels_of(isa), static_cast<const uint8_t*>(data), bytes};
  const int64_t start = ossrun::now();
  pool->pool.run(threads, Read::share, &r);
  return ossrun::now() - start;
}

int ossrun_tiles_pay(void) {
  const Kernels* k = kernels_amx();
  if (k == nullptr) return 0;
  // As an expert of 20b has them: a tile of rows, and the tokens that chose it of 512.
  constexpr int64_t kRows = 96, kWidth = 2880, kTokens = 64, kBlocks = kWidth / kMxBlock;
  try {
    std::vector<uint8_t> blocks(kRows * kWidth / 2, 0x21), scales(kRows * kBlocks, 120);
    std::vector<float> x(kWidth), d(2 * kBlocks), y(kTokens * kRows);
    for (int64_t i = 0; i < kWidth; i++) x[i] = float(i % 15 - 7);
    std::vector<int8_t> q(kWidth);
    std::vector<uint16_t> rounded(kTokens * kWidth);
    k->quantize_q8(q.data(), d.data(), x.data(), kWidth);
    k->f32_to_bf16(rounded.data(), x.data(), kWidth);
    const std::vector<const int8_t*> q_at(kTokens, q.data());
    const std::vector<const float*> d_at(kTokens, d.data());
    int64_t least[2] = {INT64_MAX, INT64_MAX};
    for (int i = 0; i < 10; i++) {
      const int64_t start = ossrun::now();
      if (i % 2 == 0) {
        k->matmul_mxfp4_q8(y.data(), kRows, q_at.data(), d_at.data(), kTokens, blocks.data(),
                           scales.data(), kWidth, 0, kRows, nullptr);
      } else {
        k->matmul_mxfp4_tiles(y.data(), kRows, rounded.data(), kWidth, kTokens, blocks.data(),
                              scales.data(), kWidth, 0, kRows, nullptr);
      }
      least[i % 2] = std::min(least[i % 2], ossrun::now() - start);
    }
    return least[1] < least[0];
  } catch (const std::bad_alloc&) {
    return 0;
  }
}

int64_t ossrun_multiply(ossrun_pool* pool, const char* isa, int threads, int64_t rounds,
                        int64_t* operations) {
  Multiply m{kernels_of(isa), rounds};
  const int64_t start = ossrun::now();
  pool->pool.run(threads, Multiply::share, &m);
  *operations = m.operations;
  return ossrun::now() - start;
}
