#include "pool.h"

#include <sched.h>
#include <time.h>
#if defined(__APPLE__)
#include <pthread/qos.h>
#endif

#include "kernels.h"

namespace ossrun {

namespace {

constexpr int64_t kSpinNanoseconds = 50'000;
constexpr size_t kStackBytes = 1 << 20;
static_assert(kStackBytes > 4 * kKernelStackBytes, "a kernel and what calls it must fit");

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Spins until done() or the spin time is over; true when done.
template <class Done>
bool spin(Done done) {
  const int64_t end = now() + kSpinNanoseconds;
  do {
    for (int i = 0; i < 64; i++) {
      if (done()) return true;
      pause();
    }
  } while (now() < end);
  return false;
}

}  // namespace

int64_t now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

void wait_while(const std::atomic<uint32_t>& word, uint32_t value) {
  if (spin([&] { return word.load(std::memory_order_acquire) != value; })) return;
  word.wait(value, std::memory_order_acquire);
}

bool Pool::start() {
  threads_.reserve(size_);
  starts_.resize(size_);
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return false;
  bool ok = pthread_attr_setstacksize(&attributes, kStackBytes) == 0;
  for (int i = 0; ok && i < size_; i++) {
    starts_[i] = {this, i};
    pthread_t thread;
    ok = pthread_create(&thread, &attributes, enter, &starts_[i]) == 0;
    if (ok) threads_.push_back(thread);
  }
  pthread_attr_destroy(&attributes);
  return ok;
}

bool Pool::settle(int thread, const int32_t* cpus, int n) {
#if defined(__linux__)
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int i = 0; i < n; i++) {
    if (cpus[i] < 0 || cpus[i] >= CPU_SETSIZE) return false;
    CPU_SET(cpus[i], &set);
  }
  return pthread_setaffinity_np(threads_[thread], sizeof set, &set) == 0;
#else
  (void)thread, (void)cpus, (void)n;
  return false;
#endif
}

Pool::~Pool() {
  stop_ = true;
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  for (pthread_t thread : threads_) pthread_join(thread, nullptr);
}

void Pool::run(int threads, Work work, void* argument) {
  work_ = work;
  argument_ = argument;
  wanted_ = threads < size_ ? threads : size_;
  finished_.store(0, std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  // The caller does not spin: its core is wanted by a thread of the pool. Every thread reports,
  // also those that had nothing to do, so the next run finds all of them at the start line.
  const uint32_t all = size_;
  for (uint32_t seen; (seen = finished_.load(std::memory_order_acquire)) != all;) {
    finished_.wait(seen, std::memory_order_acquire);
  }
}

void* Pool::enter(void* start) {
#if defined(__APPLE__)
  // Somebody waits for this work: performance cores take it first.
  pthread_set_qos_class_self_np(QOS_CLASS_USER_INITIATED, 0);
#endif
  const auto* s = static_cast<Start*>(start);
  s->pool->loop(s->index);
  return nullptr;
}

void Pool::loop(int index) {
  for (uint32_t generation = 0;;) {
    wait_while(generation_, generation);
    generation = generation_.load(std::memory_order_acquire);
    if (stop_) return;
    if (index < wanted_) work_(argument_, index, wanted_);
    if (finished_.fetch_add(1, std::memory_order_acq_rel) + 1 == uint32_t(size_)) {
      finished_.notify_one();
    }
  }
}

}  // namespace ossrun
