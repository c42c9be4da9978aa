// Device and pinned memory, each piece between two pages that cannot be touched, and the trap that
// turns a touch into an error code.

#include <sys/mman.h>

#include <csetjmp>
#include <csignal>
#include <cstring>

#include "machine.h"

namespace fake {

namespace {
constexpr size_t kPage = 4096, kAlignment = 256;
constexpr size_t up(size_t n, size_t to) { return (n + to - 1) / to * to; }
constexpr size_t kMostTraps = 4096;  // freed pieces that stay reserved
}  // namespace

// The end of the piece is at the end of its pages, as near as the alignment allows: 256 bytes.
int Machine::allocate(int device, size_t bytes, uintptr_t* at) {
  if (bytes == 0) return kInvalidValue;
  if (device >= 0) {
    Device& d = devices[device];
    if (bytes > d.memory - d.used) return kOutOfMemory;
    d.used += bytes;
  }
  const size_t pages = up(bytes, kPage), mapped = pages + 2 * kPage;
  char* map = static_cast<char*>(
      mmap(nullptr, mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  if (map == MAP_FAILED) return kOutOfMemory;
  mprotect(map + kPage, pages, PROT_READ | PROT_WRITE);
  *at = reinterpret_cast<uintptr_t>(map + kPage + pages - up(bytes, kAlignment));
  if (device >= 0) memset(reinterpret_cast<void*>(*at), 0xa5, bytes);  // not zeroed, and it shows
  allocations[*at] = {device, bytes, map, mapped};
  return kSuccess;
}

int Machine::release(uintptr_t at, bool host) {
  const auto found = allocations.find(at);
  if (found == allocations.end() || (found->second.device < 0) != host) return kInvalidValue;
  const Allocation a = found->second;
  if (a.device >= 0) devices[a.device].used -= a.bytes;
  allocations.erase(found);
  if (freed.size() < kMostTraps) {
    // Nothing of it can be touched again, and its address is not given out again.
    mmap(a.map, a.mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
         0);
    freed[reinterpret_cast<uintptr_t>(a.map)] = a.mapped;
  } else {
    munmap(a.map, a.mapped);
  }
  return kSuccess;
}

const Allocation* Machine::holding(uintptr_t at, size_t bytes) const {
  auto found = allocations.upper_bound(at);
  if (found == allocations.begin()) return nullptr;
  --found;
  const Allocation& a = found->second;
  if (at - found->first > a.bytes || bytes > a.bytes - (at - found->first)) return nullptr;
  return &a;
}

bool Machine::reachable(int device, uintptr_t at) const {
  const Allocation* a = holding(at, 1);
  return a != nullptr && (a->device < 0 || a->device == device);
}

namespace {

thread_local sigjmp_buf* trap = nullptr;
struct sigaction before;

// A touch of a page of ours inside a kernel goes back to guarded(); anything else is not ours.
void on_fault(int number, siginfo_t* info, void* context) {
  const uintptr_t at = reinterpret_cast<uintptr_t>(info->si_addr);
  const auto inside = [at](uintptr_t start, size_t n) { return at >= start && at < start + n; };
  if (trap != nullptr) {
    for (const auto& [address, a] : machine.allocations) {
      (void)address;
      if (inside(reinterpret_cast<uintptr_t>(a.map), a.mapped)) siglongjmp(*trap, 1);
    }
    for (const auto& [start, n] : machine.freed) {
      if (inside(start, n)) siglongjmp(*trap, 1);
    }
    if (at < kPage) siglongjmp(*trap, 1);  // null
  }
  if (before.sa_flags & SA_SIGINFO) {
    before.sa_sigaction(number, info, context);
  } else {
    sigaction(SIGSEGV, &before, nullptr);
  }
}

}  // namespace

int guarded(const std::function<void()>& kernel) {
  sigjmp_buf here;
  struct sigaction mine = {};
  mine.sa_sigaction = on_fault;
  mine.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&mine.sa_mask);
  sigaction(SIGSEGV, &mine, &before);
  int code = kSuccess;
  if (sigsetjmp(here, 1) == 0) {
    trap = &here;
    kernel();
  } else {
    code = kIllegalAddress;
  }
  trap = nullptr;
  sigaction(SIGSEGV, &before, nullptr);
  return code;
}

}  // namespace fake
