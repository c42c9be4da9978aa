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

namespace {

#ifdef __APPLE__
using Resident = char;
#else
using Resident = unsigned char;
#endif

constexpr uintptr_t kLooked = 4096;  // pages of which one question asks where they are

// Linux reads no more than a disk's read-ahead for one request, however long it is.
constexpr uintptr_t kRequest = 128 << 10;

}  // namespace

void ask_disk(const void* begin, int64_t bytes) {
  static const uintptr_t page = uintptr_t(sysconf(_SC_PAGESIZE));
  const uintptr_t end = uintptr_t(begin) + uintptr_t(bytes);
  Resident there[kLooked];
  for (uintptr_t at = uintptr_t(begin) / page * page; at < end;) {
    const uintptr_t pages = std::min(kLooked, (end - at + page - 1) / page);
    // what cannot be told is asked for; to ask for what is there would cost more than to look
    if (mincore(reinterpret_cast<void*>(at), pages * page, there) != 0) {
      std::fill(there, there + pages, Resident(0));
    }
    for (uintptr_t i = 0; i < pages;) {
      if (there[i] & 1) {
        i++;
        continue;
      }
      madvise(reinterpret_cast<void*>(at + i * page), std::min(kRequest, (pages - i) * page),
              MADV_WILLNEED);
      i += kRequest / page;
    }
    at += pages * page;
  }
}

#endif

}  // namespace ossrun
