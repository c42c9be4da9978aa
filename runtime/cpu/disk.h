// Asking the system for memory that may lie on the disk, before it is read.
#ifndef OSSRUN_CPU_DISK_H_
#define OSSRUN_CPU_DISK_H_

#include <cstdint>

namespace ossrun {

// Has bytes of a mapped file brought into memory; it returns at once and may do nothing.
void ask_disk(const void* begin, int64_t bytes);

}  // namespace ossrun

#endif  // OSSRUN_CPU_DISK_H_
