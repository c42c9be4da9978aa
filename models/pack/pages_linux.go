package pack

import "golang.org/x/sys/unix"

// keepSmallPages asks the kernel not to back the memory with huge pages: one byte in 2 MiB would then cost all of it. Kernels
// built without huge pages refuse, and have no need to be asked.
func keepSmallPages(data []byte) { _ = unix.Madvise(data, unix.MADV_NOHUGEPAGE) }
