#include "tape.h"

using ossrun::Op;

void ossrun_tape::seal() {
  counters_ = std::vector<Counters>(ops.size());
  nanoseconds.assign(ops.size(), 0);
}

void ossrun_tape::walk(ossrun::Pool& pool, int wanted, const ossrun_batch& batch) {
  threads = wanted;
  for (Counters& c : counters_) {
    c.taken.store(0, std::memory_order_relaxed);
    c.done.store(0, std::memory_order_relaxed);
  }
  if (profiling) opened_at_ = ossrun::now();
  open_from(0, batch);
  Walk w{this, &batch};
  pool.run(wanted, enter, &w);
}

void ossrun_tape::enter(void* walk, int, int) {
  const auto* w = static_cast<Walk*>(walk);
  w->tape->run_ops(*w->batch);
}

// Opens the first operation from i on that has any task. Only the thread that closed operation i-1
// is here, and everything it saw done is seen by those who see the operation open.
void ossrun_tape::open_from(size_t i, const ossrun_batch& batch) {
  for (; i < ops.size(); i++) {
    counters_[i].total = uint32_t(ops[i]->tasks(batch));
    if (counters_[i].total > 0) break;
    nanoseconds[i] = 0;
  }
  open_.store(uint32_t(i), std::memory_order_release);
  open_.notify_all();
}

void ossrun_tape::run_ops(const ossrun_batch& batch) {
  for (uint32_t i; (i = open_.load(std::memory_order_acquire)) < ops.size();) {
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
    ossrun::wait_while(open_, i);
  }
}
