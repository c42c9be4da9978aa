// What the files of operations share: appending to a tape, and operations that treat rows alike.
#ifndef OSSRUN_CPU_OPS_H_
#define OSSRUN_CPU_OPS_H_

#include <algorithm>
#include <new>
#include <utility>

#include "schedule.h"
#include "tape.h"

namespace ossrun {

// Appends an operation; 0 when there was no memory.
template <class T>
int append(ossrun_tape* t, T op) {
  try {
    t->ops.push_back(std::make_unique<T>(std::move(op)));
    t->ops.back()->adapter = t->adapter;
    return 1;
  } catch (const std::bad_alloc&) {
    return 0;
  }
}

// Rows of activations that one task of a row-wise operation takes: enough to hide the counter.
constexpr int64_t kRowsPerTask = 8;

// An operation that treats each row by itself: derive, and say what happens to one row.
template <class Self>
class RowOp : public Op {
 public:
  RowOp(ossrun_extent extent, int64_t per_token) : extent_(extent), per_token_(per_token) {}

  int64_t tasks(const ossrun_batch& b) const override {
    const Range rows = range(b, extent_, per_token_);
    return divide_up(rows.end - rows.begin, kRowsPerTask);
  }
  void run(const ossrun_batch& b, int64_t task) const override {
    const Range rows = range(b, extent_, per_token_);
    const int64_t begin = rows.begin + task * kRowsPerTask;
    const int64_t end = std::min(rows.end, begin + kRowsPerTask);
    for (int64_t i = begin; i < end; i++) static_cast<const Self*>(this)->row(b, i);
  }

 private:
  ossrun_extent extent_;
  int64_t per_token_;
};

}  // namespace ossrun

#endif  // OSSRUN_CPU_OPS_H_
