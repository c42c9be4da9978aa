// The threads that walk a tape.
//
// All threads of a run execute the same function and meet at barriers inside it (tape.cpp counts
// finished tasks). The caller only waits: it may stand on a small stack, the threads have one that
// every kernel fits in. Between runs, and wherever a wait gets long, threads sleep; they spin for
// at most kSpinNanoseconds first, so an idle engine costs nothing.
#ifndef OSSRUN_CPU_POOL_H_
#define OSSRUN_CPU_POOL_H_

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ossrun {

// Nanoseconds of a clock that only goes forward.
int64_t now();

// Waits until word is no longer value: spins shortly, then sleeps until it is notified.
void wait_while(const std::atomic<uint32_t>& word, uint32_t value);

class Pool {
 public:
  using Work = void (*)(void* argument, int thread, int threads);

  explicit Pool(int threads) : size_(threads) {}
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // Starts the threads; false when the system refuses one (those already running are ended by the
  // destructor).
  bool start();
  int size() const { return size_; }

  // Keeps a thread on n processors; false where the system does not, and it runs anywhere.
  bool settle(int thread, const int32_t* cpus, int n);

  // Runs work(argument, i, threads) on the first `threads` threads and returns when all are done.
  // One run at a time: the caller sees to that.
  void run(int threads, Work work, void* argument);

 private:
  struct Start {
    Pool* pool;
    int index;
  };
  static void* enter(void* start);
  void loop(int index);

  int size_;
  std::vector<pthread_t> threads_;
  std::vector<Start> starts_;
  Work work_ = nullptr;
  void* argument_ = nullptr;
  int wanted_ = 0;
  bool stop_ = false;
  alignas(64) std::atomic<uint32_t> generation_{0};  // one more for every run
  alignas(64) std::atomic<uint32_t> finished_{0};    // threads that ended this run
};

}  // namespace ossrun

#endif  // OSSRUN_CPU_POOL_H_
