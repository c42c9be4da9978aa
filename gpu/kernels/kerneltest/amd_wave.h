// A wave of an image, and what it has under way in memory.
//
// What must stay true: operations of one counter are over in the order in which they were asked
// for, scalar loads aside; a load's registers are garbage until it is over; a store is in the
// wave's hands, seen by itself alone, until it is over.
#ifndef OSSRUN_GPU_KERNELTEST_AMD_WAVE_H_
#define OSSRUN_GPU_KERNELTEST_AMD_WAVE_H_

#include <deque>
#include "amd.h"
#include "amd_caches.h"

namespace amd {

// A memory operation under way.
struct Operating {
  const Instruction* instruction = nullptr;
  Counter counter = kLoads;
  bool done = false;  // in memory: what a load brings is in `data`
  uint64_t number = 0, lanes = 0;
  uint64_t low = 0, high = 0;  // the bytes of global memory that it touches lie between
  uint64_t at[2][64];
  uint32_t data[8][64];         // by word; of two elements one after the other
  std::vector<uint32_t> words;  // of a scalar load
};

class Wave {
 public:
  enum State { kReady, kAtBarrier, kAsleep, kEnded };

  // Registers as a launch leaves them: the rest is garbage.
  void begin(const Program& p, int number, std::vector<char>* shared, const char* arguments,
             Caches* caches, bool late);
  // Until it stops at something.
  void run();
  State state = kEnded;

 private:
  friend struct Source;

  bool goes(When when) const;
  void scalar(const Instruction& i);
  void save_exec(const Instruction& i);
  void vector(const Instruction& i);
  void results(const Instruction& i, uint32_t* low, uint32_t* high);
  void write(const Instruction& i, const uint32_t* low, const uint32_t* high);
  void packed(const Instruction& i);
  void move_packed(const Instruction& i);
  void lane(const Instruction& i);
  void matrix(const Instruction& i);

  // amd_memory.cpp
  void memory(const Instruction& i);
  void scalar_load(const Instruction& i);
  void wait(const Instruction& i);
  void wait_for(Counter counter, int most);
  void over(size_t n);  // of those under way
  void perform(Operating& o);
  void perform_before(uint64_t number);
  void read(Operating& o);
  char* shared_memory(const Operating& o, uint64_t at, int bytes);
  void empty(const Instruction& i);
  void load_bytes(const Instruction& i, uint64_t at, char* to);
  void store_bytes(const Instruction& i, uint64_t at, const char* of, size_t bytes);
  void fill(const Operand& o, uint64_t lanes, int part);

  uint64_t exec() const { return get64(kExec) & all_; }
  uint64_t get64(int at) const { return scalar_[at] | uint64_t{scalar_[at + 1]} << 32; }
  uint64_t mask(const Operand& o) const {
    return lanes_ == 64 ? get64(o.at) : uint64_t{scalar_[o.at]};
  }
  void set(int at, uint32_t v) {
    if (at != kNull) scalar_[at] = v;
  }
  void set_mask(const Operand& o, uint64_t v) {
    set(o.at, static_cast<uint32_t>(v));
    if (lanes_ == 64) set(o.at + 1, static_cast<uint32_t>(v >> 32));
  }
  uint64_t scalar_value(const Operand& o, char type) const;
  [[noreturn]] void wrong(const Instruction& i, const char* what) const;

  const Program* p_ = nullptr;
  size_t at_ = 0;
  int lanes_ = 0, slept_ = 0;
  uint64_t all_ = 0, asked_ = 0;
  bool scc_ = false, late_ = false, signalled_ = false;
  std::vector<char>* shared_ = nullptr;
  Caches* caches_ = nullptr;  // null where blocks run one after another
  Caches::Lines near_;        // of RDNA
  uint32_t scalar_[kScalars + 2];
  uint32_t vector_[kVectors][64];
  std::deque<std::unique_ptr<Operating>> under_way_;
  std::vector<std::unique_ptr<Operating>> free_;
};

}  // namespace amd

#endif  // OSSRUN_GPU_KERNELTEST_AMD_WAVE_H_
