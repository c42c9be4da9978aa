#include "disk.h"

#include <algorithm>

#ifdef _WIN32
#include <windows.h>
#else
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace ossrun {

#ifdef _WIN32

void ask_disk(const void* begin, int64_t bytes) {
  WIN32_MEMORY_RANGE_ENTRY range = {const_cast<void*>(begin), SIZE_T(bytes)};
  PrefetchVirtualMemory(GetCurrentProcess(), 1, &range, 0);
}

#else

void ask_disk(const void* begin, int64_t bytes) {
  // Linux reads no more than a disk's read-ahead for one request, however long it is.
  constexpr uintptr_t kRequest = 128 << 10;
  static const uintptr_t page = uintptr_t(sysconf(_SC_PAGESIZE));
  const uintptr_t end = uintptr_t(begin) + uintptr_t(bytes);
  for (uintptr_t at = uintptr_t(begin) / page * page; at < end; at += kRequest) {
    madvise(reinterpret_cast<void*>(at), std::min(kRequest, end - at), MADV_WILLNEED);
  }
}

#endif

}  // namespace ossrun
