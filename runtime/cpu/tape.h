// A compiled program: operations in order, walked by the threads of a pool.
//
// An operation divides itself into tasks that write disjoint elements. Threads take tasks by a
// counter; whoever finishes the last task of an operation asks the next one how many it has and
// opens it. A thread that was asleep finds the operation that is open now, never an old one's
// count. What an element becomes never depends on who computed it, on how many threads there are,
// or on the other rows.
//
// A tape owns its operations, counters and partial sums and nothing else: buffers belong to the
// caller and must outlive it. Walking allocates nothing.
#ifndef OSSRUN_CPU_TAPE_H_
#define OSSRUN_CPU_TAPE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "cpu.h"
#include "kernels.h"
#include "pool.h"

namespace ossrun {

// How many rows an operand has in this step.
inline int64_t rows_of(const ossrun_batch& b, ossrun_extent extent, int64_t per_token) {
  switch (extent) {
    case OSSRUN_PER_SLOT:
      return b.rows * per_token;
    case OSSRUN_PER_LOGIT:
      return b.logit_rows;
    default:
      return b.rows;
  }
}

// Rows [begin, end) of an operand.
struct Range {
  int64_t begin, end;
};

// A stretch of memory.
struct Stretch {
  const void* begin = nullptr;
  int64_t bytes = 0;
};

class Op {
 public:
  virtual ~Op() = default;
  // How many tasks this batch makes; 0 skips the operation. Asked once a step, when everything
  // before it is done, so the answer may depend on what earlier operations wrote.
  virtual int64_t tasks(const ossrun_batch& b) const = 0;
  virtual void run(const ossrun_batch& b, int64_t task) const = 0;
  // The weights that this thread will probably read first; empty without weights, kUnknown if they
  // depend on results. It may be called at any time of the walk.
  virtual Stretch first(const ossrun_batch&, int) const { return {}; }
  static constexpr Stretch kUnknown = {nullptr, -1};

  // Whether a row's products go by tiles: it is of a prompt, whatever else is in the step.
  static bool on_tiles(const ossrun_batch& b, int64_t row) { return b.prompts && b.prompts[row]; }

  int adapter = -1;  // whose rows it computes; -1: all rows

 protected:
  // The rows of an operand that it is for.
  Range range(const ossrun_batch& b, ossrun_extent extent, int64_t per_token) const {
    if (adapter < 0) return {0, rows_of(b, extent, per_token)};
    const int32_t* begin =
        (extent == OSSRUN_PER_LOGIT ? b.adapter_logits : b.adapter_rows) + adapter;
    return {begin[0], begin[1]};
  }
};

// Room for what attention knows of a few rows, span by span of their context, before it is added
// up: one for all operations of a tape, since they run one after the other.
class Partials {
 public:
  static constexpr int64_t kSpans = 32;

  // For pairs of a row and a KV head: four a thread, where fewer make too few tasks otherwise.
  void reserve(const ossrun_shape& s, int threads);
  int64_t pairs() const { return int64_t(ended_.size()); }
  // [pair, span]: two floats a query head, then the values of the heads.
  float* of(int64_t pair, int64_t span) { return floats_.get() + (pair * kSpans + span) * each_; }
  std::atomic<uint32_t>& ended(int64_t pair) { return ended_[pair]; }  // spans of the pair

 private:
  int64_t each_ = 0;
  std::unique_ptr<float[]> floats_;  // untouched, and so not in memory, until they are used
  std::vector<std::atomic<uint32_t>> ended_;
};

}  // namespace ossrun

// The C name of a tape.
struct ossrun_tape {
  ossrun_tape(const Kernels* kernels, const ossrun_shape& shape) : kernels(kernels), shape(shape) {}

  // Makes room for walks on up to so many threads: after the last operation was added.
  void seal(int threads);
  // Runs the operations from begin up to end.
  void walk(ossrun::Pool& pool, int wanted, const ossrun_batch& batch, size_t begin, size_t end);

  const Kernels* kernels;
  const ossrun_shape shape;
  std::vector<std::unique_ptr<ossrun::Op>> ops;
  ossrun::Partials partials;
  int adapter = -1;         // of the operations that are appended
  size_t unembeddings = 0;  // the last operations, which give the logits
  int threads = 1;  // of the walk that runs: operations make their tasks as large as that allows
  bool profiling = false;
  std::vector<int64_t> nanoseconds;  // of each operation in the last walk

 private:
  struct Counters {
    alignas(64) std::atomic<uint32_t> taken{0};
    alignas(64) std::atomic<uint32_t> done{0};
    uint32_t total = 0;  // tasks; written before the operation opens
  };
  struct Walk {
    ossrun_tape* tape;
    const ossrun_batch* batch;
  };
  // How far a thread that waits has fetched the weights of an operation to come.
  struct Warming {
    size_t op = 0;
    ossrun::Stretch rest;
  };
  static void enter(void* walk, int thread, int threads);
  void run_ops(const ossrun_batch& batch, int thread);
  bool warm(Warming& w, size_t running, const ossrun_batch& batch, int thread) const;
  void open_from(size_t i, const ossrun_batch& batch);

  std::vector<Counters> counters_;
  int64_t opened_at_ = 0;
  size_t end_ = 0;                             // of the walk that runs
  alignas(64) std::atomic<uint32_t> open_{0};  // the operation that runs now; end_: all done
};

#endif  // OSSRUN_CPU_TAPE_H_
