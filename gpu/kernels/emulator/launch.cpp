// A launch: its blocks one after another, or all at once.
//
// All at once, blocks take turns where one waits in memory for another (a barrier over the grid)
// and behind every atomic operation, which is where blocks meet: whatever one block must have done
// before it says that it has arrived is put to the test there. Which block goes first is an order
// of its own, so that several can be tried; all of it happens on the calling thread, and the same
// order gives the same run. In a random order those that wait look again while others are paused,
// so that several blocks are paused behind the same barrier.
//
// What must stay true: no more blocks are begun than are resident. A launch in which all of them
// wait for a block that has not begun, or for nothing, ends with a sentence.
#include "block.h"
#include "emulator.h"

#include <stdio.h>
#include <algorithm>
#include <numeric>
#include <random>
#include <string>

namespace simt {

namespace {

constexpr size_t kMostShared = 227 << 10;
constexpr int kMostThreads = 1024;

Kernel*& registry() {
  static Kernel* first = nullptr;
  return first;
}

std::vector<emulated_kernel>& table() {
  static std::vector<emulated_kernel> all = [] {
    std::vector<emulated_kernel> v;
    for (Kernel* k = registry(); k; k = k->next)
      v.push_back({k->name, k->max_threads, k->count, k->sizes});
    std::sort(v.begin(), v.end(), [](const emulated_kernel& a, const emulated_kernel& b) {
      return strcmp(a.name, b.name) < 0;
    });
    return v;
  }();
  return all;
}

const Kernel* registered(const char* name) {
  for (Kernel* k = registry(); k; k = k->next)
    if (strcmp(k->name, name) == 0) return k;
  return nullptr;
}

thread_local int option_step = 1, option_order = 0;
thread_local unsigned option_resident = 0;
thread_local std::string last_error;
thread_local uint64_t total_switches = 0;

std::string refusal(const Kernel* k, const unsigned grid[3], const unsigned size[3],
                    size_t shared) {
  const uint64_t threads = uint64_t{size[0]} * size[1] * size[2];
  const uint64_t blocks = uint64_t{grid[0]} * grid[1] * grid[2];
  char text[160] = "";
  if (threads == 0 || blocks == 0)
    snprintf(text, sizeof text, "an empty grid or block");
  else if (threads > uint64_t(std::min(k->max_threads, kMostThreads)))
    snprintf(text, sizeof text, "a block of %llu threads, %d are its limit",
             static_cast<unsigned long long>(threads), std::min(k->max_threads, kMostThreads));
  else if (threads % WARP)
    snprintf(text, sizeof text, "a block of %llu threads is not whole warps of %d",
             static_cast<unsigned long long>(threads), WARP);
  else if (grid[1] > 65535 || grid[2] > 65535 || grid[0] > 0x7fffffff)
    snprintf(text, sizeof text, "a grid of %u x %u x %u", grid[0], grid[1], grid[2]);
  else if (shared > kMostShared)
    snprintf(text, sizeof text, "%zu bytes of shared memory", shared);
  return text[0] ? std::string(k->name) + ": " + text : std::string();
}

// The blocks of one launch.
class Grid {
 public:
  Grid(const Kernel* kernel, void* const* args, size_t shared, dim3 size, int order)
      : order_(order), size_(size), starts_(size_t{size.x} * size.y * size.z), random_(order) {
    std::iota(starts_.begin(), starts_.end(), 0u);
    if (order_ == kOldestFirst) std::reverse(starts_.begin(), starts_.end());
    if (order_ > kOldestFirst) std::shuffle(starts_.begin(), starts_.end(), random_);
    const size_t all = starts_.size();
    room_ = option_resident > 0 ? std::min<size_t>(option_resident, all) : all;
    kernel_ = kernel;
    args_ = args;
    shared_ = shared;
  }

  // Null, or what was wrong.
  std::string run() {
    std::string error = turns();
    for (size_t i = 0; i < made_; i++) total_switches += pool()[i]->switches;
    return error;
  }

 private:
  static std::vector<std::unique_ptr<Block>>& pool() {  // their stacks serve the next launch too
    static thread_local std::vector<std::unique_ptr<Block>> blocks;
    return blocks;
  }

  std::string turns() {
    size_t idle = 0;  // blocks in a row that looked into memory and went on waiting
    for (;;) {
      Block* b = choose();
      const bool others = b != nullptr;
      if (!b) {
        if (waiting_.empty()) return "";
        if (idle > waiting_.size()) return stuck();
        b = take(waiting_, 0);
      }
      const uint64_t before = b->progress;
      switch (b->resume()) {
        case Left::kFailed:
          return b->error;
        case Left::kReturned:
          free_.push_back(b);
          idle = 0;
          break;
        case Left::kPaused:
          paused_.push_back(b);
          idle = 0;
          break;
        case Left::kWaits:
          waiting_.push_back(b);
          idle = b->progress == before && !others ? idle + 1 : 0;
          break;
      }
    }
  }

  // A block that has not begun or is paused, or, while there are such, one that waits; null when
  // all wait.
  Block* choose() {
    const bool fresh = begun_ < starts_.size() && (!free_.empty() || made_ < room_);
    if (order_ > kOldestFirst) {
      const size_t n = paused_.size() + fresh;
      if (n == 0) return nullptr;
      const size_t pick = random_() % (n + waiting_.size());
      if (pick >= n) return take(waiting_, pick - n);
      return pick == paused_.size() ? begin() : take(paused_, pick);
    }
    if (fresh) return begin();
    if (paused_.empty()) return nullptr;
    return take(paused_, order_ == kNewestFirst ? paused_.size() - 1 : 0);
  }

  static Block* take(std::vector<Block*>& from, size_t i) {
    Block* b = from[i];
    from.erase(from.begin() + static_cast<std::ptrdiff_t>(i));
    return b;
  }

  Block* begin() {
    if (free_.empty()) free_.push_back(another());
    Block* b = free_.back();
    free_.pop_back();
    const unsigned i = starts_[begun_++];
    b->begin({i % size_.x, i / size_.x % size_.y, i / (size_.x * size_.y)});
    return b;
  }

  Block* another() {
    if (pool().size() == made_) pool().emplace_back(new Block);
    Block* b = pool()[made_++].get();
    b->kernel = kernel_;
    b->args = args_;
    b->step = option_step;
    b->dynamic_bytes = shared_;
    b->pauses = order_ != kInTurn;
    b->switches = 0;
    return b;
  }

  std::string stuck() const {
    char text[200];
    snprintf(text, sizeof text,
             ": deadlock: %zu blocks wait in memory for what no block writes, %zu of %zu have not "
             "begun, %zu are resident",
             waiting_.size(), starts_.size() - begun_, starts_.size(), room_);
    return waiting_[0]->kernel->name + std::string(text);
  }

  const int order_;
  const dim3 size_;
  std::vector<unsigned> starts_;  // the order in which blocks begin
  const Kernel* kernel_;
  void* const* args_;
  size_t shared_, room_, begun_ = 0, made_ = 0;  // made: of the blocks that are there at once
  std::vector<Block*> free_, paused_, waiting_;
  std::mt19937 random_;
};

}  // namespace

void add(Kernel* k) {
  k->next = registry();
  registry() = k;
}

}  // namespace simt

int emulator_count(void) { return int(simt::table().size()); }
const emulated_kernel* emulator_at(int i) { return &simt::table()[i]; }

const emulated_kernel* emulator_find(const char* name) {
  for (const emulated_kernel& k : simt::table())
    if (strcmp(k.name, name) == 0) return &k;
  return nullptr;
}

int emulator_warp(void) { return WARP; }
#define QUOTE(x) #x
#define QUOTED(x) QUOTE(x)
const char* emulator_layout(void) { return QUOTED(EMULATED_LAYOUT); }
void emulator_reverse(int reverse) { simt::option_step = reverse ? -1 : 1; }
void emulator_blocks(int order, unsigned resident) {
  simt::option_order = order;
  simt::option_resident = resident;
}
uint64_t emulator_switches(void) { return simt::total_switches; }

const char* emulator_launch(const emulated_kernel* kernel, const unsigned grid[3],
                            const unsigned size[3], size_t shared_bytes, void* const* args) {
  const simt::Kernel* k = simt::registered(kernel->name);
  simt::last_error = simt::refusal(k, grid, size, shared_bytes);
  if (!simt::last_error.empty()) return simt::last_error.c_str();
  simt::grid_dim = {grid[0], grid[1], grid[2]};
  simt::block_dim = {size[0], size[1], size[2]};
  simt::last_error = simt::Grid(k, args, shared_bytes, simt::grid_dim, simt::option_order).run();
  return simt::last_error.empty() ? nullptr : simt::last_error.c_str();
}
