// Sampling: the next token of a row of logits, under a mask, with temperature, top-k, top-p and
// min-p, in the order and with the random stream of runtime/sample.
//
// Weights are counted as integers of 2^-40: their sums are exact, so a choice does not depend on
// the order in which threads add, nor on the batch. A cut is a place in the order of falling
// logits, equal ones by rising id; it is found by a radix search over the bits of the logits, 8 at
// a time, by counting (top-k) or by weighing (top-p).
//
// One block a row; each warp owns a run of consecutive ids, which keeps "by rising id" cheap. A row
// is read several times, out of the second cache, so a thread asks for several logits at once.
#include "number.h"
#include "warp.h"

// What a row is sampled with. 40 bytes; the host writes it.
struct SampleRow {
  float temperature;  // 0: the highest logit, of equals the lowest id
  float top_p;        // 1: off
  float min_p;        // 0: off
  int top_k;          // 0: off
  uint64_t seed;
  int64_t position;
  int mask;  // which of masks, -1: everything is allowed
  int reserved;
};

// What is known of a row before anything is changed: enough for the logprob of any token.
struct LogitStats {
  float highest;
  int finite;     // 0: a logit is NaN or infinite
  uint64_t mass;  // the sum of exp(logit - highest), times 2^40
};

// One change of a logit: v > 0 ? v / repetition : v * repetition, then minus `less`, then plus
// `more`.
struct LogitEdit {
  int row, id;
  float repetition, less, more;
  float was;  // the kernel leaves here what the logit was
};

constexpr int kSampleThreads = 512;
constexpr int kSampleWarps = kSampleThreads / WARP;

__device__ __forceinline__ bool is_finite(float v) {
  return (__float_as_uint(v) & 0x7f800000u) != 0x7f800000u;
}

// 2^40 times e^x, for x <= 0.
__device__ __forceinline__ uint64_t mass_of(float x) {
  return static_cast<uint64_t>(exp_of(x) * 0x1p40f);
}

// use(id, logit) for every `step`-th id from begin + first on, up to end. All lanes of a warp, with
// the same begin, end and step.
constexpr int kLogitsAtOnce = 8;
template <class Use>
__device__ __forceinline__ void each_logit(const float* logits, int begin, int end, int step,
                                           int first, Use use) {
  for (int base = begin; base < end; base += kLogitsAtOnce * step) {
    float v[kLogitsAtOnce];
#pragma unroll
    for (int u = 0; u < kLogitsAtOnce; u++) {
      const int id = base + first + u * step;
      v[u] = logits[id < end ? id : begin];
    }
    asked();
#pragma unroll
    for (int u = 0; u < kLogitsAtOnce; u++) {
      const int id = base + first + u * step;
      if (id < end) use(id, v[u]);
    }
  }
}

// The sum over the block, the same for all threads; `part` is shared, of kSampleWarps.
__device__ __forceinline__ uint64_t block_total(uint64_t v, uint64_t* part) {
  v = warp_sum(v);
  __syncthreads();  // an earlier use of part has been read
  if (threadIdx.x % WARP == 0) part[threadIdx.x / WARP] = v;
  __syncthreads();
  uint64_t sum = 0;
  for (int i = 0; i < kSampleWarps; i++) sum += part[i];
  return sum;
}

__device__ __forceinline__ uint64_t block_highest(uint64_t v, uint64_t* part) {
  v = warp_max(v);
  __syncthreads();
  if (threadIdx.x % WARP == 0) part[threadIdx.x / WARP] = v;
  __syncthreads();
  uint64_t highest = 0;
  for (int i = 0; i < kSampleWarps; i++) highest = part[i] > highest ? part[i] : highest;
  return highest;
}

// stats[row] of logits f32 [logit rows, vocab].
// grid (bucket rows)
KERNEL(512)
logit_stats(const int* logit_rows, LogitStats* stats, const float* logits, int vocab) {
  SHARED(uint64_t, part, kSampleWarps);
  const int row = blockIdx.x;
  if (row >= *logit_rows) return;
  const float* x = logits + static_cast<int64_t>(row) * vocab;
  uint64_t highest = 0, bad = 0;
  each_logit(x, 0, vocab, kSampleThreads, threadIdx.x, [&](int, float v) {
    bad += !is_finite(v);
    const uint64_t key = key_of(v);
    highest = key > highest ? key : highest;
  });
  bad = block_total(bad, part);
  const unsigned key = static_cast<unsigned>(block_highest(highest, part));
  const float top = __uint_as_float(key & 0x80000000u ? key ^ 0x80000000u : ~key);
  uint64_t mass = 0;
  if (bad == 0)
    each_logit(x, 0, vocab, kSampleThreads, threadIdx.x,
               [&](int, float v) { mass += mass_of(v - top); });
  mass = block_total(mass, part);
  if (threadIdx.x == 0) stats[row] = {top, bad == 0, mass};
}
EMULATE(logit_stats, 512)

// Penalties and biases, a thread an edit. count points to how many there are. An id occurs at most
// once a row.
// grid (ceil(most edits / 256))
KERNEL(256)
edit_logits(const int* count, LogitEdit* edits, float* logits, int vocab) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= *count) return;
  LogitEdit& e = edits[i];
  float* at = logits + static_cast<int64_t>(e.row) * vocab + e.id;
  float v = *at;
  e.was = v;
  v = v > 0 ? v / e.repetition : v * e.repetition;
  *at = v - e.less + e.more;
}
EMULATE(edit_logits, 256)

// A row under its mask, and the run of ids that this thread's warp owns.
struct MaskedRow {
  const float* logits;
  const unsigned* mask;    // null: everything is allowed
  float highest, inverse;  // of the temperature
  int begin, end;

  __device__ __forceinline__ bool allowed(int id) const {
    return !mask || (mask[id / 32] >> (id % 32) & 1);
  }
  __device__ __forceinline__ uint64_t mass(float logit) const {
    return mass_of((logit - highest) * inverse);
  }
  // use(id, logit) for the lane's ids from `from` on, up to `to`, both of the warp.
  template <class Use>
  __device__ __forceinline__ void each(int from, int to, Use use) const {
    each_logit(logits, from, to, WARP, threadIdx.x % WARP, use);
  }
};

// Where the kept tokens end: those with a larger key are kept, and of those with this key the ids
// up to `id`; beside that only weights of `least` or more.
struct Cut {
  unsigned key;
  int id;
  uint64_t least;

  __device__ __forceinline__ bool keeps(const MaskedRow& r, int at, float logit) const {
    if (!r.allowed(at)) return false;
    const unsigned k = key_of(logit);
    return k > key || (k == key && at <= id);
  }
};

// Walks the ids of the block in rising order and returns the first at which the running sum of
// weight(id, logit) exceeds target, the same for all threads; -1 if the whole does not exceed it.
template <class Weight>
__device__ __forceinline__ int first_past(const MaskedRow& r, uint64_t target, uint64_t* part,
                                          int* found, Weight weight) {
  const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
  uint64_t own = 0;
  r.each(r.begin, r.end, [&](int i, float logit) { own += weight(i, logit); });
  own = warp_sum(own);
  __syncthreads();
  if (lane == 0) part[warp] = own;
  if (threadIdx.x == 0) *found = -1;
  __syncthreads();
  uint64_t before = 0;
  for (int i = 0; i < warp; i++) before += part[i];
  if (before <= target && before + own > target) {  // one warp: the sums rise
    int at = r.begin;
    for (;; at += kLogitsAtOnce * WARP) {
      const int past = at + kLogitsAtOnce * WARP;
      uint64_t v = 0;
      r.each(at, past < r.end ? past : r.end, [&](int i, float logit) { v += weight(i, logit); });
      const uint64_t step = warp_sum(v);
      if (before + step > target) break;
      before += step;
    }
    for (;; at += WARP) {
      const uint64_t v = at + lane < r.end ? weight(at + lane, r.logits[at + lane]) : 0;
      const uint64_t step = warp_sum(v);
      if (before + step > target) break;
      before += step;
    }
    if (lane == 0) {
      while ((before += weight(at, r.logits[at])) <= target) at++;
      *found = at;
    }
  }
  __syncthreads();
  return *found;
}

// A sum of 64 bits that all threads add to, as two words in shared memory: NVIDIA's cards add 32
// bits there in one go, 64 by trying until no other thread was faster, and most of a vocabulary
// meets in a few bins. Whoever makes the low word go round carries.
constexpr int kBins = 256;
__device__ __forceinline__ void add_to_bin(unsigned* bins, int bin, uint64_t v) {
  const unsigned low = static_cast<unsigned>(v), was = atomic_add(&bins[bin], low);
  const unsigned high = static_cast<unsigned>(v >> 32) + (was + low < low);
  if (high != 0) atomic_add(&bins[kBins + bin], high);
}
__device__ __forceinline__ uint64_t bin_sum(const unsigned* bins, int bin) {
  return static_cast<uint64_t>(bins[kBins + bin]) << 32 | bins[bin];
}

// The place in falling order at which the sum of weight(id, logit) over the tokens that c keeps
// reaches target (at least 1, at most the whole). bins: shared, of 2 * kBins.
template <class Weight>
__device__ __forceinline__ Cut cut_at(const MaskedRow& r, const Cut& c, uint64_t target,
                                      uint64_t* part, unsigned* bins, int* found, Weight weight) {
  unsigned prefix = 0;
  uint64_t before = 0;  // the weight of all larger keys
  for (int shift = 24; shift >= 0; shift -= 8) {
    for (int i = threadIdx.x; i < 2 * kBins; i += kSampleThreads) bins[i] = 0;
    __syncthreads();
    r.each(r.begin, r.end, [&](int i, float logit) {
      const unsigned key = key_of(logit);
      if (shift < 24 && key >> (shift + 8) != prefix) return;
      if (c.keeps(r, i, logit)) add_to_bin(bins, key >> shift & 255, weight(i, logit));
    });
    __syncthreads();
    int bin = 255;
    for (; bin > 0; bin--) {
      const uint64_t sum = bin_sum(bins, bin);
      if (before + sum >= target) break;
      before += sum;
    }
    prefix = prefix << 8 | static_cast<unsigned>(bin);
    __syncthreads();
  }
  // Among the tokens of this key, by rising id, the one that reaches the target.
  const int id = first_past(r, target - before - 1, part, found, [&](int i, float logit) {
    return key_of(logit) == prefix && c.keeps(r, i, logit) ? weight(i, logit) : uint64_t{0};
  });
  return {prefix, id, c.least};
}

// Philox4x32-10, as runtime/sample has it: 53 random bits for (seed, position).
__device__ __forceinline__ uint64_t philox53(uint64_t seed, int64_t position) {
  unsigned c[4] = {static_cast<unsigned>(position),
                   static_cast<unsigned>(static_cast<uint64_t>(position) >> 32), 0, 0};
  unsigned k0 = static_cast<unsigned>(seed), k1 = static_cast<unsigned>(seed >> 32);
  for (int i = 0; i < 10; i++) {
    const uint64_t a = static_cast<uint64_t>(0xD2511F53u) * c[0];
    const uint64_t b = static_cast<uint64_t>(0xCD9E8D57u) * c[2];
    const unsigned c1 = c[1], c3 = c[3];
    c[0] = static_cast<unsigned>(b >> 32) ^ c1 ^ k0;
    c[1] = static_cast<unsigned>(b);
    c[2] = static_cast<unsigned>(a >> 32) ^ c3 ^ k1;
    c[3] = static_cast<unsigned>(a);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return (static_cast<uint64_t>(c[1]) << 32 | c[0]) >> 11;
}

// u / 2^53 of the whole, rounded down. u < 2^53, whole < 2^60.
__device__ __forceinline__ uint64_t share_of(uint64_t u, uint64_t whole) {
  const uint64_t low = (u & 0x7ffffff) * (whole & 0x3fffffff);
  const uint64_t middle = (u >> 27) * (whole & 0x3fffffff) + (low >> 27);
  const uint64_t cross = (u & 0x7ffffff) * (whole >> 30);
  // u * whole = high * 2^57 + cross * 2^30 + middle * 2^27 + (low mod 2^27); all sums below 2^63.
  const uint64_t high = (u >> 27) * (whole >> 30);
  return (high << 4) + ((cross * 8 + middle) >> 26);
}

// tokens[row]: the choice; -1 where a logit is not finite, -2 where the mask allows nothing.
// logits f32 [logit rows, vocab]; masks: bits, mask m begins at word m * mask_words.
// grid (bucket rows)
KERNEL(512)
sample(const int* logit_rows, int* tokens, const float* logits, const SampleRow* params,
       const unsigned* masks, int vocab, int mask_words) {
  SHARED(uint64_t, part, kSampleWarps);
  SHARED(unsigned, bins, 2 * kBins);
  SHARED(int, found, 1);
  const int row = blockIdx.x;
  if (row >= *logit_rows) return;
  const SampleRow p = params[row];
  MaskedRow r;
  r.logits = logits + static_cast<int64_t>(row) * vocab;
  r.mask = p.mask < 0 ? nullptr : masks + static_cast<int64_t>(p.mask) * mask_words;
  const int run = (vocab + kSampleThreads - 1) / kSampleThreads * WARP;
  const int begin = static_cast<int>(threadIdx.x) / WARP * run;
  r.begin = begin < vocab ? begin : vocab;
  r.end = begin + run < vocab ? begin + run : vocab;
  // The highest key with its lowest id, as one number.
  uint64_t best = 0, bad = 0;
  r.each(r.begin, r.end, [&](int i, float logit) {
    bad += !is_finite(logit);
    if (!r.allowed(i)) return;
    const uint64_t rank =
        static_cast<uint64_t>(key_of(logit)) << 32 | (0xffffffffu - static_cast<unsigned>(i));
    best = rank > best ? rank : best;
  });
  if (block_total(bad, part) > 0) {
    if (threadIdx.x == 0) tokens[row] = -1;
    return;
  }
  best = block_highest(best, part);
  const int first = static_cast<int>(0xffffffffu - static_cast<unsigned>(best));
  if (best == 0 || p.temperature == 0) {
    if (threadIdx.x == 0) tokens[row] = best == 0 ? -2 : first;
    return;
  }
  r.highest = r.logits[first];
  r.inverse = 1.0f / p.temperature;
  Cut c = {0, 0x7fffffff, 1};
  // First the top_k of highest logit, then those that hold top_p of the weight: one code for both.
  for (int by_mass = 0; by_mass < 2; by_mass++) {
    if (by_mass ? p.top_p >= 1 : p.top_k <= 0) continue;
    const auto weight = [&](int, float logit) { return by_mass ? r.mass(logit) : uint64_t{1}; };
    uint64_t whole = 0;
    r.each(r.begin, r.end,
           [&](int i, float logit) { whole += c.keeps(r, i, logit) ? weight(i, logit) : 0; });
    whole = block_total(whole, part);
    const uint64_t wanted =
        by_mass ? static_cast<uint64_t>(static_cast<double>(p.top_p) * static_cast<double>(whole))
                : static_cast<uint64_t>(p.top_k);
    if (by_mass || wanted < whole)
      c = cut_at(r, c, wanted < 1 ? 1 : wanted, part, bins, found, weight);
  }
  const auto kept = [&](int i, float logit) {
    const uint64_t m = c.keeps(r, i, logit) ? r.mass(logit) : 0;
    return m >= c.least ? m : 0;
  };
  if (p.min_p > 0) {
    const uint64_t least = static_cast<uint64_t>(p.min_p * 0x1p40f);
    c.least = least > 1 ? least : 1;
  }
  uint64_t whole = 0;
  r.each(r.begin, r.end, [&](int i, float logit) { whole += kept(i, logit); });
  whole = block_total(whole, part);
  const uint64_t target = share_of(philox53(p.seed, p.position), whole);
  const int token = first_past(r, target, part, found, kept);
  if (threadIdx.x == 0) tokens[row] = token;
}
EMULATE(sample, 512)

// The `count` highest logits of every row, highest first, of equals the lower id; before edits.
// ids i32 [logit rows, count], values f32 [logit rows, count]; places past the vocabulary get -1.
// grid (bucket rows)
KERNEL(512)
top_logits(const int* logit_rows, int* ids, float* values, const float* logits, int vocab,
           int count) {
  SHARED(uint64_t, part, kSampleWarps);
  const int row = blockIdx.x;
  if (row >= *logit_rows) return;
  const float* x = logits + static_cast<int64_t>(row) * vocab;
  uint64_t last = ~uint64_t{0};
  for (int n = 0; n < count; n++) {
    uint64_t best = 0;
    for (int i = threadIdx.x; i < vocab; i += blockDim.x) {
      const uint64_t rank =
          static_cast<uint64_t>(key_of(x[i])) << 32 | (0xffffffffu - static_cast<unsigned>(i));
      if (rank < last && rank > best) best = rank;
    }
    last = block_highest(best, part);
    if (threadIdx.x == 0) {
      const int id = last == 0 ? -1 : static_cast<int>(0xffffffffu - static_cast<unsigned>(last));
      ids[static_cast<int64_t>(row) * count + n] = id;
      values[static_cast<int64_t>(row) * count + n] = id < 0 ? 0.0f : x[id];
    }
  }
}
EMULATE(top_logits, 512)
