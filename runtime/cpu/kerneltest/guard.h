// Memory whose neighbours cannot be touched: a read or write one byte past the end is a crash.
//
// AddressSanitizer does not see what vector instructions read; a page without rights does.
#ifndef OSSRUN_KERNELTEST_GUARD_H_
#define OSSRUN_KERNELTEST_GUARD_H_

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

// n elements that end `slack` bytes before a page without rights. With a slack that is not a
// multiple of the element's size the elements are out of alignment; kernels take their addresses,
// this class only copies whole elements in and out as bytes.
template <class T>
class Guarded {
 public:
  explicit Guarded(int64_t n, int64_t slack = 0) : n_(n) {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t bytes = static_cast<size_t>(n) * sizeof(T) + static_cast<size_t>(slack);
    mapped_ = (bytes + page - 1) / page * page + 2 * page;
    map_ = static_cast<uint8_t*>(
        mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    const size_t usable = mapped_ - 2 * page;  // qemu-user refuses to protect nothing
    if (map_ == MAP_FAILED ||
        (usable > 0 && mprotect(map_ + page, usable, PROT_READ | PROT_WRITE))) {
      perror("guarded memory");
      exit(1);
    }
    at_ = reinterpret_cast<T*>(map_ + mapped_ - page - bytes);
  }
  ~Guarded() { munmap(map_, mapped_); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  T* data() { return at_; }
  int64_t size() const { return n_; }
  T get(int64_t i) const {
    T value;
    __builtin_memcpy(&value, reinterpret_cast<const char*>(at_) + i * sizeof(T), sizeof value);
    return value;
  }
  void set(int64_t i, T value) {
    __builtin_memcpy(reinterpret_cast<char*>(at_) + i * sizeof(T), &value, sizeof value);
  }
  template <class Fill>
  Guarded& fill(Fill value) {
    for (int64_t i = 0; i < n_; i++) set(i, static_cast<T>(value()));
    return *this;
  }

 private:
  int64_t n_;
  size_t mapped_;
  uint8_t* map_;
  T* at_;
};

#endif  // OSSRUN_KERNELTEST_GUARD_H_
