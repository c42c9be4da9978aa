#include "tape.h"

#include <algorithm>

using ossrun::Op;

void ossrun::Partials::reserve(const ossrun_shape& s, int threads) {
  const int64_t pairs = 4 * int64_t{threads};
  each_ = s.heads / s.kv_heads * (2 + s.head_dim);
  floats_.reset(new float[pairs * kSpans * each_]);
  ended_ = std::vector<std::atomic<uint32_t>>(pairs);
}

void ossrun_tape::seal(int threads) {
  partials.reserve(shape, threads);
  counters_ = std::vector<Counters>(ops.size());
  nanoseconds.assign(ops.size(), 0);
}

void ossrun_tape::walk(ossrun::Pool& pool, int wanted, const ossrun_batch& batch, size_t begin,
                       size_t end) {
  threads = wanted;
  end_ = end;
  for (Counters& c : counters_) {
    c.taken.store(0, std::memory_order_relaxed);
    c.done.store(0, std::memory_order_relaxed);
  }
  if (profiling) opened_at_ = ossrun::now();
  open_from(begin, batch);
  Walk w{this, &batch};
  pool.run(wanted, enter, &w);
}

void ossrun_tape::enter(void* walk, int thread, int) {
  const auto* w = static_cast<Walk*>(walk);
  w->tape->run_ops(*w->batch, thread);
}

// Opens the first operation from i on that has any task. Only the thread that closed operation i-1
// is here, and everything it saw done is seen by those who see the operation open.
void ossrun_tape::open_from(size_t i, const ossrun_batch& batch) {
  for (; i < end_; i++) {
    counters_[i].total = uint32_t(ops[i]->tasks(batch));
    if (counters_[i].total > 0) break;
    nanoseconds[i] = 0;
  }
  open_.store(uint32_t(i), std::memory_order_release);
  open_.notify_all();
}

// A thread without a task fetches a little of what it will read next into the cache near it, so
// that memory does not rest while the others end, or while one thread does what is not worth
// sharing. False when there is nothing to fetch.
bool ossrun_tape::warm(Warming& w, size_t running, const ossrun_batch& batch, int thread) const {
  constexpr int64_t kMost = 128 << 10, kAtATime = 2048, kLine = 64;
  if (w.op <= running) {
    w.rest = {};
    for (w.op = running + 1; w.op < ops.size(); w.op++) {
      w.rest = ops[w.op]->first(batch, thread);
      if (w.rest.bytes != 0) break;
    }
    w.rest.bytes = std::min(kMost, w.rest.bytes);
  }
  if (w.rest.bytes <= 0) return false;
  const char* at = static_cast<const char*>(w.rest.begin);
  const int64_t bytes = std::min(kAtATime, w.rest.bytes);
  for (int64_t i = 0; i < bytes; i += kLine) __builtin_prefetch(at + i, 0, 2);
  w.rest = {at + bytes, w.rest.bytes - bytes};
  return true;
}

void ossrun_tape::run_ops(const ossrun_batch& batch, int thread) {
  Warming warming;
  for (uint32_t i; (i = open_.load(std::memory_order_acquire)) < end_;) {
    Counters& c = counters_[i];
    for (uint32_t task; (task = c.taken.fetch_add(1, std::memory_order_relaxed)) < c.total;) {
      ops[i]->run(batch, task);
      if (c.done.fetch_add(1, std::memory_order_acq_rel) + 1 < c.total) continue;
      if (profiling) {
        const int64_t end = ossrun::now();
        nanoseconds[i] = end - opened_at_;
        opened_at_ = end;
      }
      open_from(i + 1, batch);
    }
    while (open_.load(std::memory_order_acquire) == i && warm(warming, i, batch, thread)) {
    }
    ossrun::wait_while(open_, i);
  }
}
