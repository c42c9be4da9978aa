// Sampling: the next token of a row of logits, under a mask, with temperature, top-k, top-p and
// min-p, in the order and with the random stream of runtime/sample.
//
// Weights are counted as integers of 2^-40: their sums are exact, so a choice does not depend on
// the order in which threads add, nor on the batch. A cut is a place in the order of falling
// logits, equal ones by rising id; it is found by counting (top-k) or by weighing (top-p).
//
// A row is cut into kParts, a block each, and four launches follow each other: sample_look finds
// the highest logit, from which weights are; sample_bins counts and weighs the tokens of rows that
// have a cut in bins of falling logits; sample_weigh weighs what is above the bins that hold the
// cuts, and lists the tokens in them; sample, a block a row, finds the cuts in the list, then the
// part with the token, then the token. A weight below 2^-40 is 0, and such tokens need no bin.
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

// use(id, logit) for the ids from begin on, up to end: of every `step` times four the `first` four.
// All lanes of a warp, with the same begin, end and step. begin is a multiple of 4.
constexpr int kFoursAtOnce = 4;
constexpr int kLogitsAtOnce = 4 * kFoursAtOnce;
template <class Use>
__device__ __forceinline__ void each_logit(const float* logits, int begin, int end, int step,
                                           int first, Use use) {
  const bool fours = reinterpret_cast<uint64_t>(logits) % 16 == 0;  // else the row is odd
  for (int base = begin; base < end; base += kLogitsAtOnce * step) {
    float v[kLogitsAtOnce];
#pragma unroll
    for (int u = 0; u < kFoursAtOnce; u++) {
      const int id = base + 4 * (first + u * step);
      if (fours && id + 4 <= end) {
        const float4 all = *reinterpret_cast<const float4*>(logits + id);
        v[4 * u] = all.x;
        v[4 * u + 1] = all.y;
        v[4 * u + 2] = all.z;
        v[4 * u + 3] = all.w;
      } else {
#pragma unroll
        for (int i = 0; i < 4; i++) v[4 * u + i] = logits[id + i < end ? id + i : begin];
      }
    }
    asked();
#pragma unroll
    for (int i = 0; i < kLogitsAtOnce; i++) {
      const int id = base + 4 * (first + i / 4 * step) + i % 4;
      if (id < end) use(id, v[i]);
    }
  }
}

// What the warps have, combined over the block, the same for all threads; `part` is shared, of
// kSampleWarps.
template <class F>
__device__ __forceinline__ uint64_t over_block(uint64_t v, uint64_t* part, F combine) {
  __syncthreads();  // an earlier use of part has been read
  if (threadIdx.x % WARP == 0) part[threadIdx.x / WARP] = v;
  __syncthreads();
  uint64_t all = 0;
  for (int i = 0; i < kSampleWarps; i++) all = combine(all, part[i]);
  return all;
}
__device__ __forceinline__ uint64_t block_total(uint64_t v, uint64_t* part) {
  return over_block(warp_sum(v), part, sum_of<uint64_t>);
}
__device__ __forceinline__ uint64_t block_highest(uint64_t v, uint64_t* part) {
  return over_block(warp_max(v), part, [](uint64_t a, uint64_t b) { return larger(a, b); });
}

// stats[row] of logits f32 [logit rows, vocab].
// grid (bucket rows)
KERNEL(512)
logit_stats(const int* logit_rows, LogitStats* stats, const float* logits, int vocab) {
  await_grids();
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
  const float top = of_key(key);
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
  await_grids();
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

constexpr int kParts = 32;
constexpr int kBins =
    kSampleThreads;  // of falling logits, a thread each; past the last is weight 0
constexpr float kBinsPerUnit = kBins / 28.0f;  // e^-28 < 2^-40
constexpr int kNoBin = kBins + 1;
constexpr int kListed = 2048;

// Where a row's cuts are: the bin of top-k's, and the first and last in which top-p's may be.
struct CutBins {
  int k, low, high;
  unsigned above_k;                  // tokens in the bins before k
  uint64_t mass_above_k, above_low;  // weights before k (of all where it is kNoBin), before low
};

// What the launches leave of a row for each other.
struct SampleState {
  uint64_t best[kParts];     // the part's highest rank, ~0: not all is finite
  uint64_t mass[kParts];     // what certainly is kept of the part
  unsigned bins[3 * kBins];  // a sum of weights in two words, and a count
  int listed, reserved;      // how many tokens in the cuts' bins
  CutBins cuts;
  uint64_t list[kListed];  // their ranks, if there is room for all
};
static_assert(sizeof(SampleState) == 23080, "SampleStateBytes");

// A row under its mask, and the run of ids that this block or this thread's warp owns.
struct MaskedRow {
  const float* logits;
  const unsigned* mask;    // null: everything is allowed
  uint64_t best;           // the highest rank, 0: nothing is allowed, ~0: not all is finite
  float highest, inverse;  // of the temperature
  uint64_t least;          // of a weight that is kept
  int begin, end;

  __device__ __forceinline__ bool allowed(int id) const {
    return !mask || (mask[id / 32] >> (id % 32) & 1);
  }
  __device__ __forceinline__ uint64_t mass(float logit) const {
    return mass_of((logit - highest) * inverse);
  }
  __device__ __forceinline__ int bin(float logit) const {
    return static_cast<int>(fminf((highest - logit) * inverse * kBinsPerUnit, kBins));
  }
  // use(id, logit) for what is allowed of the block's run, by all its threads.
  template <class Use>
  __device__ __forceinline__ void each(Use use) const {
    each_logit(logits, begin, end, kSampleThreads, threadIdx.x, [&](int id, float logit) {
      if (allowed(id)) use(id, logit);
    });
  }
};

__device__ __forceinline__ int part_size(int vocab) {
  return ((vocab + kParts - 1) / kParts + 3) / 4 * 4;
}

// A row and the block's part of it, as sample_look found it where s is not null.
__device__ __forceinline__ MaskedRow masked_row(int row, int part, const SampleState* s,
                                                const float* logits, const SampleRow& p,
                                                const unsigned* masks, int vocab, int mask_words) {
  MaskedRow r = {};
  r.logits = logits + static_cast<int64_t>(row) * vocab;
  r.mask = p.mask < 0 ? nullptr : masks + static_cast<int64_t>(p.mask) * mask_words;
  const int size = part_size(vocab), begin = part * size;
  r.begin = begin < vocab ? begin : vocab;
  r.end = begin + size < vocab ? begin + size : vocab;
  if (!s) return r;
  for (int i = 0; i < kParts; i++) r.best = s->best[i] > r.best ? s->best[i] : r.best;
  r.highest = of_key(static_cast<unsigned>(r.best >> 32));
  r.inverse = 1.0f / fmaxf(p.temperature, 0x1p-120f);  // finite for any temperature
  const uint64_t least = p.min_p > 0 ? static_cast<uint64_t>(p.min_p * 0x1p40f) : 0;
  r.least = least > 1 ? least : 1;
  return r;
}

__device__ __forceinline__ bool draws(const MaskedRow& r, const SampleRow& p) {
  return r.best != 0 && r.best != ~uint64_t{0} && p.temperature != 0;
}
__device__ __forceinline__ bool has_cut(const SampleRow& p) { return p.top_k > 0 || p.top_p < 1; }

// The weight that top_p keeps at least.
__device__ __forceinline__ uint64_t wanted_mass(const SampleRow& p, uint64_t whole) {
  const uint64_t v =
      static_cast<uint64_t>(static_cast<double>(p.top_p) * static_cast<double>(whole));
  return v < 1 ? 1 : v;
}

// A sum of 64 bits that many threads add to, as two words: NVIDIA's cards add 32 bits in shared
// memory in one go, 64 by trying until no other thread was faster. Whoever makes the low word go
// round carries.
__device__ __forceinline__ void add_to_bin(unsigned* bins, int bin, uint64_t v) {
  const unsigned low = static_cast<unsigned>(v), was = atomic_add(&bins[bin], low);
  const unsigned high = static_cast<unsigned>(v >> 32) + (was + low < low);
  if (high != 0) atomic_add(&bins[kBins + bin], high);
}
__device__ __forceinline__ uint64_t bin_sum(const unsigned* bins, int bin) {
  return static_cast<uint64_t>(bins[kBins + bin]) << 32 | bins[bin];
}

// The first launch: every part's highest rank; a row's bins and list are emptied.
// logits f32 [logit rows, vocab]; masks: bits, mask m begins at word m * mask_words.
// grid (32, bucket rows)
KERNEL(512)
sample_look(const int* logit_rows, SampleState* states, const float* logits,
            const SampleRow* params, const unsigned* masks, int vocab, int mask_words) {
  await_grids();
  SHARED(uint64_t, part, kSampleWarps);
  const int row = blockIdx.y, own = blockIdx.x;
  if (row >= *logit_rows) return;
  SampleState* const s = states + row;
  const MaskedRow r = masked_row(row, own, nullptr, logits, params[row], masks, vocab, mask_words);
  uint64_t best = 0;
  each_logit(r.logits, r.begin, r.end, kSampleThreads, threadIdx.x, [&](int id, float logit) {
    const uint64_t rank = !is_finite(logit) ? ~uint64_t{0} : r.allowed(id) ? rank_of(id, logit) : 0;
    best = rank > best ? rank : best;
  });
  best = block_highest(best, part);
  if (threadIdx.x == 0) s->best[own] = best;
  if (own != 0) return;
  for (int i = threadIdx.x; i < 3 * kBins; i += kSampleThreads) s->bins[i] = 0;
  if (threadIdx.x == 0) s->listed = 0;
}
EMULATE(sample_look, 512)

// The second: the bins of rows with a cut. grid (32, bucket rows)
KERNEL(512)
sample_bins(const int* logit_rows, SampleState* states, const float* logits,
            const SampleRow* params, const unsigned* masks, int vocab, int mask_words) {
  await_grids();
  SHARED(unsigned, bins, 3 * kBins);
  const int row = blockIdx.y, own = threadIdx.x;
  if (row >= *logit_rows) return;
  const SampleRow p = params[row];
  SampleState* const s = states + row;
  if (!has_cut(p)) return;
  const MaskedRow r = masked_row(row, blockIdx.x, s, logits, p, masks, vocab, mask_words);
  if (!draws(r, p)) return;
  for (int i = own; i < 3 * kBins; i += kSampleThreads) bins[i] = 0;
  __syncthreads();
  r.each([&](int, float logit) {
    const int bin = r.bin(logit);
    if (bin == kBins) return;
    add_to_bin(bins, bin, r.mass(logit));
    atomic_add(&bins[2 * kBins + bin], 1u);
  });
  __syncthreads();
  if (bins[2 * kBins + own] == 0) return;
  add_to_bin(s->bins, own, bin_sum(bins, own));
  atomic_add(&s->bins[2 * kBins + own], bins[2 * kBins + own]);
}
EMULATE(sample_bins, 512)

// The cuts' bins, the same for all threads. masses, part: shared, of kBins and kSampleWarps.
__device__ __forceinline__ void find_cuts(CutBins* cuts, const SampleState* s, const SampleRow& p,
                                          uint64_t* masses, uint64_t* part) {
  const int bin = threadIdx.x, warp = bin / WARP;
  const uint64_t count = s->bins[2 * kBins + bin], mass = bin_sum(s->bins, bin);
  // What is before the thread's bin, and all.
  const auto sum_before = [&](uint64_t own, uint64_t& all) {
    masses[bin] = own;
    all = block_total(own, part);
    uint64_t sum = 0;
    for (int i = 0; i < warp; i++) sum += part[i];
    for (int i = warp * WARP; i < bin; i++) sum += masses[i];
    __syncthreads();
    return sum;
  };
  uint64_t tokens, whole;
  const uint64_t count_before = sum_before(count, tokens), before = sum_before(mass, whole);
  if (bin == 0) *cuts = {kNoBin, kNoBin, 0, 0, whole, 0};
  if (bin == 0) part[0] = whole;  // of the weights up to the bin of top-k's cut
  __syncthreads();
  const uint64_t k = p.top_k > 0 ? p.top_k : tokens;
  if (k < tokens && count_before < k && k <= count_before + count) {
    cuts->k = bin;
    cuts->above_k = static_cast<unsigned>(count_before);
    cuts->mass_above_k = before;
    part[0] = before + mass;
  }
  __syncthreads();
  if (p.top_p < 1) {
    const uint64_t low = wanted_mass(p, cuts->mass_above_k), high = wanted_mass(p, part[0]);
    if (before < low && low <= before + mass) {
      cuts->low = bin;
      cuts->above_low = before;
    }
    if (before < high && high <= before + mass) cuts->high = bin;
  }
  __syncthreads();
}

// Whether a token of this bin is kept or not only as the list says.
__device__ __forceinline__ bool in_question(int k, int low, int high, int bin) {
  return bin == k || (bin >= low && bin <= high);
}

// The third: every part's weight that certainly is kept, and the list. grid (32, bucket rows)
KERNEL(512)
sample_weigh(const int* logit_rows, SampleState* states, const float* logits,
             const SampleRow* params, const unsigned* masks, int vocab, int mask_words) {
  await_grids();
  SHARED(uint64_t, part, kSampleWarps);
  SHARED(uint64_t, masses, kBins);
  SHARED(CutBins, cuts, 1);
  const int row = blockIdx.y, own = blockIdx.x;
  if (row >= *logit_rows) return;
  const SampleRow p = params[row];
  SampleState* const s = states + row;
  const MaskedRow r = masked_row(row, own, s, logits, p, masks, vocab, mask_words);
  if (!draws(r, p)) return;
  if (has_cut(p))
    find_cuts(cuts, s, p, masses, part);
  else if (threadIdx.x == 0)
    *cuts = {kNoBin, kNoBin, 0, 0, 0, 0};
  __syncthreads();
  if (own == 0 && threadIdx.x == 0) s->cuts = *cuts;
  const int k = cuts->k, low = cuts->low, high = cuts->high, sure = low < k ? low : k;
  uint64_t sum = 0;
  r.each([&](int id, float logit) {
    const int bin = r.bin(logit);
    if (bin < sure) {
      const uint64_t mass = r.mass(logit);
      sum += mass >= r.least ? mass : 0;
    } else if (in_question(k, low, high, bin)) {
      const int at = atomic_add(&s->listed, 1);
      if (at < kListed) s->list[at] = rank_of(id, logit);
    }
  });
  sum = block_total(sum, part);
  if (threadIdx.x == 0) s->mass[own] = sum;
}
EMULATE(sample_weigh, 512)

// use(rank) for every token in question: those of the list, or of the row where it has no room.
template <class Use>
__device__ __forceinline__ void each_listed(const MaskedRow& row, const SampleState* s, Use use) {
  if (s->listed <= kListed) {
    for (int i = threadIdx.x; i < s->listed; i += kSampleThreads) use(s->list[i]);
    return;
  }
  row.each([&](int id, float logit) {
    if (in_question(s->cuts.k, s->cuts.low, s->cuts.high, row.bin(logit))) use(rank_of(id, logit));
  });
}

// The largest rank for which the sum of weight(rank) over the listed tokens from it upwards reaches
// target, bit by bit; where they all do not, one below them all.
template <class Weight>
__device__ __forceinline__ uint64_t cut_rank(const MaskedRow& row, const SampleState* s,
                                             uint64_t target, uint64_t* part, Weight weight) {
  uint64_t most = 0, least = 0;  // the complement of the lowest
  each_listed(row, s, [&](uint64_t rank) {
    if (weight(rank) == 0) return;
    most = rank > most ? rank : most;
    least = ~rank > least ? ~rank : least;
  });
  most = block_highest(most, part);
  const uint64_t differ = most ^ ~block_highest(least, part);
  uint64_t cut = most;
  for (int bit = 63; bit >= 0; bit--)
    if (differ >> bit) cut &= ~(uint64_t{1} << bit);
  for (int bit = 63; bit >= 0; bit--) {
    if (differ >> bit == 0) continue;
    const uint64_t tried = cut | uint64_t{1} << bit;
    uint64_t sum = 0;
    each_listed(row, s, [&](uint64_t rank) { sum += rank >= tried ? weight(rank) : 0; });
    if (block_total(sum, part) >= target) cut = tried;
  }
  return cut;
}

// Walks the ids of the block's part in rising order and returns the first at which the running sum
// of weight(id, logit) exceeds target, the same for all threads; -1 if the whole does not.
template <class Weight>
__device__ __forceinline__ int first_past(const MaskedRow& r, uint64_t target, uint64_t* part,
                                          int* found, Weight weight) {
  const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
  const int run = ((r.end - r.begin + kSampleWarps - 1) / kSampleWarps + 3) / 4 * 4;
  const int begin = r.begin + warp * run, end = begin + run < r.end ? begin + run : r.end;
  uint64_t own = 0;
  each_logit(r.logits, begin, end, WARP, lane,
             [&](int i, float logit) { own += weight(i, logit); });
  own = warp_sum(own);
  __syncthreads();
  if (lane == 0) part[warp] = own;
  if (threadIdx.x == 0) *found = -1;
  __syncthreads();
  uint64_t before = 0;
  for (int i = 0; i < warp; i++) before += part[i];
  if (before <= target && before + own > target) {  // one warp: the sums rise
    for (int at = begin;; at += WARP) {
      const uint64_t v = at + lane < end ? weight(at + lane, r.logits[at + lane]) : 0;
      const uint64_t step = warp_sum(v);
      if (before + step <= target) {
        before += step;
        continue;
      }
      if (lane == 0) {
        while ((before += weight(at, r.logits[at])) <= target) at++;
        *found = at;
      }
      break;
    }
  }
  __syncthreads();
  return *found;
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

// The last. tokens[row]: the choice; -1 where a logit is not finite, -2 where the mask allows
// nothing. grid (bucket rows)
KERNEL(512)
sample(const int* logit_rows, SampleState* states, const float* logits, const SampleRow* params,
       const unsigned* masks, int vocab, int mask_words, int* tokens) {
  await_grids();
  SHARED(uint64_t, part, kSampleWarps);
  SHARED(unsigned, parts, 2 * kBins);
  SHARED(int, found, 1);
  const int row = blockIdx.x;
  if (row >= *logit_rows) return;
  const SampleRow p = params[row];
  const SampleState* const s = states + row;
  MaskedRow r = masked_row(row, 0, s, logits, p, masks, vocab, mask_words);
  if (!draws(r, p)) {
    const int token = r.best == 0 ? -2 : ~r.best == 0 ? -1 : id_of(r.best);
    if (threadIdx.x == 0) tokens[row] = token;
    return;
  }
  r.end = vocab;
  const CutBins c = s->cuts;
  const auto logit = [](uint64_t rank) { return of_key(static_cast<unsigned>(rank >> 32)); };
  uint64_t cut = 0, whole = c.mass_above_k;
  if (c.k != kNoBin) {
    cut = cut_rank(r, s, p.top_k - c.above_k, part,
                   [&](uint64_t rank) { return uint64_t{r.bin(logit(rank)) == c.k}; });
    uint64_t sum = 0;
    each_listed(r, s, [&](uint64_t rank) {
      sum += rank >= cut && r.bin(logit(rank)) == c.k ? r.mass(logit(rank)) : 0;
    });
    whole += block_total(sum, part);
  }
  if (c.low != kNoBin)
    cut = cut_rank(r, s, wanted_mass(p, whole) - c.above_low, part, [&](uint64_t rank) {
      const int bin = r.bin(logit(rank));
      return rank >= cut && bin >= c.low && bin <= c.high ? r.mass(logit(rank)) : 0;
    });
  const auto kept = [&](int id, float v) {
    const uint64_t m = r.allowed(id) && rank_of(id, v) >= cut ? r.mass(v) : 0;
    return m >= r.least ? m : 0;
  };
  // What each part has in all.
  if (threadIdx.x < kParts) {
    parts[threadIdx.x] = static_cast<unsigned>(s->mass[threadIdx.x]);
    parts[kBins + threadIdx.x] = static_cast<unsigned>(s->mass[threadIdx.x] >> 32);
  }
  __syncthreads();
  const int size = part_size(vocab);
  each_listed(r, s, [&](uint64_t rank) {
    const uint64_t m = kept(id_of(rank), logit(rank));
    if (m > 0) add_to_bin(parts, id_of(rank) / size, m);
  });
  __syncthreads();
  whole = 0;
  for (int i = 0; i < kParts; i++) whole += bin_sum(parts, i);
  uint64_t target = share_of(philox53(p.seed, p.position), whole);
  int own = 0;
  for (; own < kParts - 1 && bin_sum(parts, own) <= target; own++) target -= bin_sum(parts, own);
  r.begin = own * size < vocab ? own * size : vocab;
  r.end = r.begin + size < vocab ? r.begin + size : vocab;
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
  await_grids();
  SHARED(uint64_t, part, kSampleWarps);
  const int row = blockIdx.x;
  if (row >= *logit_rows) return;
  const float* x = logits + static_cast<int64_t>(row) * vocab;
  uint64_t last = ~uint64_t{0};
  for (int n = 0; n < count; n++) {
    uint64_t best = 0;
    for (int i = threadIdx.x; i < vocab; i += blockDim.x) {
      const uint64_t rank = rank_of(i, x[i]);
      if (rank < last && rank > best) best = rank;
    }
    last = block_highest(best, part);
    if (threadIdx.x == 0) {
      const int id = last == 0 ? -1 : id_of(last);
      ids[static_cast<int64_t>(row) * count + n] = id;
      values[static_cast<int64_t>(row) * count + n] = id < 0 ? 0.0f : x[id];
    }
  }
}
EMULATE(top_logits, 512)
