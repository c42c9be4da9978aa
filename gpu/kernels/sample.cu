// Sampling: the next token of a row of logits, under a mask, with temperature, top-k, top-p and
// min-p, in the order and with the random stream of runtime/sample.
//
// Weights are counted as integers of 2^-40: their sums are exact, so a choice does not depend on
// the order in which threads add, nor on the batch. A cut is a place in the order of falling
// logits, equal ones by rising id; it is found by counting (top-k) or by weighing (top-p).
//
// A row is cut into kParts, a block each, in two launches whose last block to arrive has the row
// for itself. sample_look finds the highest logit, from which weights are, and chooses where that
// is the choice. sample weighs the tokens, for rows with a cut in bins of falling logits; its last
// block finds the cuts' bins, the cuts among their tokens, then the part with the token, then the
// token. A weight below 2^-40 is 0, and such tokens need no bin.
//
// By count, of 201,088 logits: each launch reads them once, 804 KB a row, 13 a thread. The last
// block reads 256 bytes, the bins of a row with a cut (66 KB by weight, 16 KB by count), the parts
// that have tokens in the bin of a cut (25 KB each, all where logits are flat), and one part for
// the token. It meets at 11 barriers without a cut, and at some 25 more for each.
#include "grid.h"
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

// use(id, logit, allowed) for the ids from begin, a multiple of 32, to end, by all threads of a
// block. A lane asks for a word of the mask for its warp; null: everything is allowed.
constexpr int kLogitsAtOnce = 13;  // a part of 201,088 logits is asked for at once
template <int AT_ONCE = kLogitsAtOnce, class Use>
__device__ __forceinline__ void each_logit(const float* logits, const unsigned* mask, int begin,
                                           int end, Use use) {
  constexpr int kWords = WARP / 32;
  const int thread = threadIdx.x, lane = thread % WARP;
  for (int base = begin; base < end; base += AT_ONCE * kSampleThreads) {
    float v[AT_ONCE];
#pragma unroll
    for (int i = 0; i < AT_ONCE; i++) {
      const int id = base + i * kSampleThreads + thread;
      v[i] = logits[id < end ? id : begin];
    }
    const int first = base + lane / kWords * kSampleThreads + thread - lane + lane % kWords * 32;
    const int word = mask && first < end ? static_cast<int>(mask[first / 32]) : -1;
    asked();
#pragma unroll
    for (int i = 0; i < AT_ONCE; i++) {
      const int id = base + i * kSampleThreads + thread;
      const int bits = __shfl_sync(FULL, word, i * kWords + lane / 32);
      if (id < end) use(id, v[i], (bits >> (lane % 32) & 1) != 0);
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
  return over_block(warp_max(v), part, [](auto a, auto b) { return larger(a, b); });
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
  uint64_t highest = 0;
  each_logit(x, nullptr, 0, vocab, [&](int, float v, bool) {
    highest = larger(highest, is_finite(v) ? key_of(v) : ~uint64_t{0});
  });
  highest = block_highest(highest, part);
  const bool finite = ~highest != 0;
  const float top = of_key(static_cast<unsigned>(highest));
  uint64_t mass = 0;
  if (finite)
    each_logit(x, nullptr, 0, vocab, [&](int, float v, bool) { mass += mass_of(v - top); });
  mass = block_total(mass, part);
  if (threadIdx.x == 0) stats[row] = {top, finite, mass};
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

constexpr int kParts = 32;                     // a lane each
constexpr int kBins = kSampleThreads / 2;      // of falling logits; past the last is weight 0
constexpr float kBinsPerUnit = kBins / 28.0f;  // e^-28 < 2^-40
constexpr int kListed = 8192;

// What the blocks of a row leave for each other.
struct SampleState {
  uint64_t best[kParts];         // the part's highest rank, ~0: not all is finite
  uint64_t highest;              // of these; 0: the token is chosen
  int arrived, reserved;         // blocks of a launch: 0 before and after
  uint64_t mass[kParts][kBins];  // of the part's tokens; without a cut all are in the first bin
  uint16_t count[kParts][kBins];
};
static_assert(sizeof(SampleState) == 82192, "SampleStateBytes");

// The first thread up to which a sum over the threads reaches a target, and the sum before it.
struct Reached {
  int thread;
  uint64_t before;
};

// A block's shared memory.
struct SampleShared {
  uint64_t part[kSampleWarps];
  Reached reached;
  unsigned bins[3 * kBins];  // a sum of weights in two words, and a count
  int flag, listed;
  int ids[kListed];
};

// A row under its mask, and the run of ids that this block owns.
struct MaskedRow {
  const float* logits;
  const unsigned* mask;    // null: everything is allowed
  float highest, inverse;  // of the temperature
  uint64_t least;          // of a weight that is kept
  int vocab, size;         // of a part
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
  __device__ __forceinline__ void take(int part) {
    begin = part * size < vocab ? part * size : vocab;
    end = begin + size < vocab ? begin + size : vocab;
  }
  // use(id, logit) for what is allowed of the run, by all threads of the block.
  template <int AT_ONCE = kLogitsAtOnce, class Use>
  __device__ __forceinline__ void each(Use use) const {
    each_logit<AT_ONCE>(logits, mask, begin, end, [&](int id, float logit, bool allowed) {
      if (allowed) use(id, logit);
    });
  }
};

// best: the row's highest rank.
__device__ __forceinline__ MaskedRow masked_row(uint64_t best, const float* logits,
                                                const SampleRow& p, const unsigned* masks,
                                                int vocab, int mask_words) {
  MaskedRow r;
  r.logits = logits + static_cast<int64_t>(blockIdx.y) * vocab;
  r.mask = p.mask < 0 ? nullptr : masks + static_cast<int64_t>(p.mask) * mask_words;
  r.highest = of_key(static_cast<unsigned>(best >> 32));
  r.inverse = 1.0f / fmaxf(p.temperature, 0x1p-120f);  // finite for any temperature
  const uint64_t least = p.min_p > 0 ? static_cast<uint64_t>(p.min_p * 0x1p40f) : 0;
  r.least = least > 1 ? least : 1;
  r.vocab = vocab;
  r.size = (vocab + kParts * 32 - 1) / (kParts * 32) * 32;
  r.take(blockIdx.x);
  return r;
}

// A sum of 64 bits that many threads add to, as two words: NVIDIA's cards add 32 bits in shared
// memory in one go, 64 by trying until no other thread was faster. Whoever makes the low word go
// round carries.
__device__ __forceinline__ void add_to_bin(unsigned* bins, int bin, uint64_t v) {
  const unsigned low = static_cast<unsigned>(v), was = atomic_add(&bins[bin], low);
  const unsigned high = static_cast<unsigned>(v >> 32) + (was + low < low);
  if (high != 0) atomic_add(&bins[kBins + bin], high);
}
__device__ __forceinline__ uint64_t own_bin(const unsigned* bins) {
  const int bin = threadIdx.x;
  return bin < kBins ? static_cast<uint64_t>(bins[kBins + bin]) << 32 | bins[bin] : 0;
}
__device__ __forceinline__ void clear_bins(unsigned* bins) {
  __syncthreads();  // an earlier use has been read
  bins[threadIdx.x] = 0;
  if (threadIdx.x < kBins) bins[2 * kBins + threadIdx.x] = 0;
  __syncthreads();
}

// Where v, summed over the threads in their order, reaches target; past the last thread if it does
// not. The same for all threads.
__device__ __forceinline__ Reached reach(uint64_t v, uint64_t target, SampleShared* m) {
  const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
  uint64_t sum = v, all = v;  // up to the lane, and of all whose numbers differ from it below d
#pragma unroll
  for (int d = 1; d < WARP; d *= 2) {
    const uint64_t other = shuffle_xor(all, d);
    sum += lane & d ? other : 0;
    all += other;
  }
  __syncthreads();  // an earlier use has been read
  if (lane == 0) m->part[warp] = all;
  __syncthreads();
  for (int i = 0; i < warp; i++) sum += m->part[i];
  const int own = threadIdx.x;
  if (sum - v < target && sum >= target) m->reached = {own, sum - v};
  if (own == kSampleThreads - 1 && sum < target) m->reached = {kSampleThreads, sum};
  __syncthreads();
  return m->reached;
}

// The first launch: the highest rank, and the choice where it is the highest logit. tokens[row]: -1
// where a logit is not finite, -2 where the mask allows nothing.
// logits f32 [logit rows, vocab]; masks: bits, mask m begins at word m * mask_words.
// grid (32, bucket rows)
KERNEL(512, 2)
sample_look(const int* logit_rows, int* tokens, SampleState* states, const float* logits,
            const SampleRow* params, const unsigned* masks, int vocab, int mask_words) {
  await_grids();
  SHARED(uint64_t, part, kSampleWarps);
  SHARED(int, flag, 1);
  const int row = blockIdx.y;
  if (row >= *logit_rows) return;
  SampleState* const s = states + row;
  const MaskedRow r = masked_row(0, logits, params[row], masks, vocab, mask_words);
  uint64_t best = 0;
  each_logit(r.logits, r.mask, r.begin, r.end, [&](int id, float logit, bool allowed) {
    const uint64_t rank = !is_finite(logit) ? ~uint64_t{0} : allowed ? rank_of(id, logit) : 0;
    best = larger(best, rank);
  });
  best = block_highest(best, part);
  if (threadIdx.x == 0) s->best[blockIdx.x] = best;
  if (!last_to_arrive(&s->arrived, kParts, flag)) return;
  best = warp_max(s->best[threadIdx.x % kParts]);
  if (threadIdx.x > 0) return;
  const bool draws = best != 0 && ~best != 0 && params[row].temperature != 0;
  s->highest = draws ? best : 0;
  if (!draws) tokens[row] = best == 0 ? -2 : ~best == 0 ? -1 : id_of(best);
}
EMULATE(sample_look, 512)

// The tokens of bins low to high, for a row's last block: a list in shared memory, or if that is
// too short the row, read again.
struct Candidates {
  MaskedRow row;
  const SampleState* s;
  SampleShared* m;
  int low, high;

  // use(id, logit) for them, out of the parts that have some. More at once would need registers
  // that two blocks of a processor do not have.
  template <int AT_ONCE, class Use>
  __device__ __forceinline__ void search(Use use) {
    int some = 0;
    for (int bin = low; bin <= high; bin++) some += s->count[threadIdx.x % kParts][bin];
    for (int part = 0; part < kParts; part++) {
      if (__shfl_sync(FULL, some, part) == 0) continue;
      row.take(part);
      row.each<AT_ONCE>([&](int id, float logit) {
        const int bin = row.bin(logit);
        if (bin >= low && bin <= high) use(id, logit);
      });
    }
  }
  __device__ __forceinline__ void list(int first, int last) {
    if (first == low && last == high) return;
    low = first;
    high = last;
    __syncthreads();  // an earlier list has been read
    if (threadIdx.x == 0) m->listed = 0;
    __syncthreads();
    search<7>([&](int id, float) {
      const int at = atomic_add(&m->listed, 1);
      if (at < kListed) m->ids[at] = id;
    });
    __syncthreads();
  }
  // use(id, logit, rank) for each of them.
  template <class Use>
  __device__ __forceinline__ void each(Use use) {
    const auto ranked = [&](int id, float logit) { use(id, logit, rank_of(id, logit)); };
    if (m->listed > kListed) return search<3>(ranked);
    for (int i = threadIdx.x; i < m->listed; i += kSampleThreads)
      ranked(m->ids[i], row.logits[m->ids[i]]);
  }

  // The rank down to which the sum of weight(logit) reaches target, which all of it does:
  // between the highest and the lowest by kBins equal steps, until they are one.
  template <class Weight>
  __device__ __forceinline__ uint64_t cut(uint64_t target, Weight weight) {
    uint64_t from = 0, to = ~uint64_t{0};
    for (;;) {
      uint64_t most = 0, least = 0;  // the complement of the lowest
      each([&](int, float logit, uint64_t rank) {
        if (rank < from || rank > to || weight(logit) == 0) return;
        most = larger(most, rank);
        least = larger(least, ~rank);
      });
      to = most = block_highest(most, m->part);
      from = least = ~block_highest(least, m->part);
      if (most == least) return most;
      int shift = 0;
      for (int more = 32; more > 0; more /= 2)  // the least at which there are no more bins
        if ((most - least) >> (shift + more - 1) >= kBins) shift += more;
      clear_bins(m->bins);
      each([&](int, float logit, uint64_t rank) {
        if (rank >= least && rank <= most)
          add_to_bin(m->bins, static_cast<int>((most - rank) >> shift), weight(logit));
      });
      __syncthreads();
      const Reached at = reach(own_bin(m->bins), target, m);
      target -= at.before;
      to = most - (static_cast<uint64_t>(at.thread) << shift);
      const uint64_t step = (uint64_t{1} << shift) - 1;
      if (to - least > step) from = to - step;
    }
  }
};

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

// The second: the token of rows that draw one. grid (32, bucket rows)
KERNEL(512, 2)
sample(const int* logit_rows, int* tokens, SampleState* states, const float* logits,
       const SampleRow* params, const unsigned* masks, int vocab, int mask_words) {
  await_grids();
  SHARED(SampleShared, m, 1);
  const int row = blockIdx.y, own = threadIdx.x;
  if (row >= *logit_rows) return;
  const SampleRow& p = params[row];
  SampleState* const s = states + row;
  if (s->highest == 0) return;
  const bool has_cut = p.top_k > 0 || p.top_p < 1;
  Candidates c = {masked_row(s->highest, logits, p, masks, vocab, mask_words), s, m, 1, 0};
  const MaskedRow& r = c.row;
  clear_bins(m->bins);
  uint64_t mass = 0;
  r.each([&](int, float logit) {
    const uint64_t v = r.mass(logit);
    const int bin = r.bin(logit);
    if (!has_cut) {
      mass += v >= r.least ? v : 0;
    } else if (bin < kBins) {
      add_to_bin(m->bins, bin, v);
      atomic_add(&m->bins[2 * kBins + bin], 1u);
    }
  });
  mass = block_total(mass, m->part);
  if (own < (has_cut ? kBins : 1)) {
    s->mass[blockIdx.x][own] = has_cut ? own_bin(m->bins) : mass;
    s->count[blockIdx.x][own] = static_cast<uint16_t>(m->bins[2 * kBins + own]);
  }
  if (own == 0) m->listed = 0;
  if (!last_to_arrive(&s->arrived, kParts, &m->flag)) return;

  uint64_t cut = 0;
  const auto kept = [&](float logit, uint64_t rank) {
    const uint64_t v = rank >= cut ? r.mass(logit) : 0;
    return v >= r.least ? v : 0;
  };
  int sure = 1;  // bins of which all is kept
  if (has_cut) {
    int last = kBins;  // the bin of the cut, and what is kept of it
    mass = 0;
    for (int by_count = 1; by_count >= 0; by_count--) {
      if (by_count ? p.top_k <= 0 : p.top_p >= 1) continue;
      uint64_t sum = 0;
#pragma unroll 8
      for (int i = 0; i < kParts; i++)
        if (own < kBins) sum += by_count ? s->count[i][own] : s->mass[i][own];
      if (own >= last) sum = own == last ? mass : 0;
      uint64_t target = p.top_k;
      if (!by_count)
        target = static_cast<uint64_t>(static_cast<double>(p.top_p) *
                                       static_cast<double>(block_total(sum, m->part)));
      target = target > 1 ? target : 1;
      const Reached at = reach(sum, target, m);
      if (at.thread >= kBins) continue;
      last = at.thread;
      c.list(last, last);
      cut = c.cut(target - at.before, [&](float v) { return by_count ? 1 : r.mass(v); });
      mass = 0;
      c.each([&](int, float v, uint64_t rank) { mass += rank >= cut ? r.mass(v) : 0; });
      mass = block_total(mass, m->part);
    }
    // min_p's cut is in the first bin of whose lower end the weight is too low, or, exp_of being
    // good to a few last bits only, at the upper end of the next.
    const int least = static_cast<int>(block_total(
        mass_of(-(static_cast<float>(own) + 1.01f) / kBinsPerUnit) >= r.least, m->part));
    sure = least < last ? least : last;
    c.list(sure, least + 1 < last ? least + 1 : last);
  }
  // What each part has in all.
  clear_bins(m->bins);
  for (int part = own / WARP; part < kParts; part += kSampleWarps) {
    uint64_t sum = 0;
#pragma unroll 4
    for (int bin = own % WARP; bin < sure; bin += WARP) sum += s->mass[part][bin];
    sum = warp_sum(sum);
    if (own % WARP == 0) add_to_bin(m->bins, part, sum);
  }
  c.each([&](int id, float logit, uint64_t rank) {
    const uint64_t v = kept(logit, rank);
    if (v > 0) add_to_bin(m->bins, id / r.size, v);
  });
  __syncthreads();
  mass = own_bin(m->bins);
  // The token is where the sum by rising ids is more than the target.
  uint64_t target = share_of(philox53(p.seed, p.position), block_total(mass, m->part)) + 1;
  const Reached part = reach(mass, target, m);
  c.row.take(part.thread);
  const auto weight = [&](int id) {
    return r.allowed(id) ? kept(r.logits[id], rank_of(id, r.logits[id])) : 0;
  };
  const int run = (r.size + kSampleThreads - 1) / kSampleThreads;
  int id = r.begin + own * run;
  const int end = id + run < r.end ? id + run : r.end;
  mass = 0;
  for (int i = id; i < end; i++) mass += weight(i);
  target -= part.before;
  const Reached at = reach(mass, target, m);
  if (own != at.thread) return;
  target -= at.before;
  for (uint64_t v; (v = weight(id)) < target; id++) target -= v;
  tokens[row] = id;
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
