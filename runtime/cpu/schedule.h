// How an operation is divided into tasks. Threads take them as they come (tape.h), so a thread on a
// core of half the speed does half as many.
//
// What is lost is the time in which threads wait for the last ones of an operation. What must stay
// true: how the work is divided depends on the step's rows, the chosen experts and the number of
// threads, and changes no bit of a result.
#ifndef OSSRUN_CPU_SCHEDULE_H_
#define OSSRUN_CPU_SCHEDULE_H_

#include <algorithm>
#include <cstdint>

namespace ossrun {

inline int64_t divide_up(int64_t n, int64_t by) { return (n + by - 1) / by; }

// Divides units that lie one after another in memory into tasks: long stretches first, since memory
// is read fastest in order, then shorter ones, so that all threads end together.
class Shares {
 public:
  Shares(int64_t units, int threads) : units_(units), parts_(2 * threads) {}

  int64_t count() const {
    int64_t n = 0;
    for (int64_t begin = 0; begin < units_; begin += length(begin)) n++;
    return n;
  }
  struct Range {
    int64_t begin, end;
  };
  Range operator[](int64_t task) const {
    int64_t begin = 0;
    for (; task > 0; task--) begin += length(begin);
    return {begin, std::min(units_, begin + length(begin))};
  }

 private:
  int64_t length(int64_t begin) const { return std::max<int64_t>(1, (units_ - begin) / parts_); }
  int64_t units_, parts_;
};

constexpr int64_t kTile = 64;        // most rows of a weight that a kernel takes at a time
constexpr int64_t kExpertTile = 96;  // the same of an expert: 2,880 and 5,760 are whole tiles
constexpr int64_t kLowestTile = 16;
constexpr int64_t kFewRows = 4;  // of activations; with more, kernels want the tallest

// The height of a tile, in rows: the one with which the thread that has most of `copies` times some
// matrices has least, a multiple of 8. With few threads that is kTile; with many, 45 tiles of 64
// rows would keep 45 of them busy. A lower tile must save 5 %, since each costs its kernel a start.
inline int64_t tile_height(const int64_t* rows, int matrices, int64_t copies, int threads) {
  const auto most = [&](int64_t height) {
    int64_t tiles = 0;
    for (int i = 0; i < matrices; i++) tiles += divide_up(rows[i], height);
    return divide_up(copies * tiles, threads) * height;
  };
  int64_t best = kTile;
  for (int64_t h = kTile - 8; h >= kLowestTile; h -= 8) {
    if (100 * most(h) < 95 * most(best)) best = h;
  }
  return best;
}

}  // namespace ossrun

#endif  // OSSRUN_CPU_SCHEDULE_H_
