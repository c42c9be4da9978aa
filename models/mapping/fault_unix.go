//go:build unix && cgo

// Files that become shorter while they are mapped. Reading past their new end raises SIGBUS, which
// would end the program without a message. A handler maps empty pages there and records the file,
// so that the step that read them fails with an error message.
//
// What must stay true: any other fault is passed to the previous handler, which is Go's; the
// handler only makes calls that are safe in a signal handler.

package mapping

/*
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { most_mappings = 1024 };

static struct {
  _Atomic uintptr_t begin, end;
  _Atomic int damaged;
} mappings[most_mappings];
static struct sigaction earlier;
static uintptr_t page;

static void on_bus(int number, siginfo_t *info, void *context) {
  uintptr_t at = (uintptr_t)info->si_addr;
  for (int i = 0; i < most_mappings; i++) {
    uintptr_t begin = atomic_load(&mappings[i].begin), end = atomic_load(&mappings[i].end);
    if (at < begin || at >= end) continue;
    // all that follows is gone as well
    uintptr_t from = at & ~(page - 1);
    if (mmap((void *)from, end - from, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
        MAP_FAILED)
      break;
    atomic_store(&mappings[i].damaged, 1);
    return;
  }
  if (earlier.sa_flags & SA_SIGINFO) {
    earlier.sa_sigaction(number, info, context);
  } else if (earlier.sa_handler != SIG_DFL && earlier.sa_handler != SIG_IGN) {
    earlier.sa_handler(number);
  } else {
    signal(number, SIG_DFL); // the instruction is run again and ends the program
  }
}

static int install(void) {
  struct sigaction ours;
  memset(&ours, 0, sizeof ours);
  ours.sa_sigaction = on_bus;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  sigfillset(&ours.sa_mask);
  page = (uintptr_t)sysconf(_SC_PAGESIZE);
  return sigaction(SIGBUS, &ours, &earlier);
}

static void watch(int i, uintptr_t begin, uintptr_t end) {
  atomic_store(&mappings[i].damaged, 0);
  atomic_store(&mappings[i].end, end);
  atomic_store(&mappings[i].begin, begin);
}

static void forget(int i) { atomic_store(&mappings[i].end, 0); }
static int damaged(int i) { return atomic_load(&mappings[i].damaged); }
*/
import "C"

import (
	"fmt"
	"sync"
	"unsafe"
)

var watched struct {
	mu    sync.Mutex
	once  sync.Once
	works bool
	names [C.most_mappings]string // "": a free slot
}

// watch makes the handler record faults in a mapping under the file's name, until forget is called.
func watch(data []byte, name string) (forget func()) {
	w := &watched
	w.once.Do(func() { w.works = C.install() == 0 })
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.names {
		if !w.works || w.names[i] != "" {
			continue
		}
		w.names[i] = name
		begin := C.uintptr_t(uintptr(unsafe.Pointer(&data[0])))
		C.watch(C.int(i), begin, begin+C.uintptr_t(len(data)))
		return func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			C.forget(C.int(i))
			w.names[i] = ""
		}
	}
	return func() {} // more files than any model has: a fault in this one ends the program
}

// Damaged returns an error that wraps ErrTruncated and names a mapped file that became shorter, or
// nil.
func Damaged() error {
	w := &watched
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, name := range w.names {
		if name != "" && C.damaged(C.int(i)) != 0 {
			return fmt.Errorf("%s %w: its weights cannot be read any more", name, ErrTruncated)
		}
	}
	return nil
}
