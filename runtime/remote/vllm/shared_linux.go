// The shared memory that vLLM's processes leave behind. At a stop they are killed, by vLLM itself
// or by us, before they remove their files in /dev/shm: up to 1 GB for each start, which is memory
// until the machine restarts.
//
// What must stay true: files are removed after the group has ended, if the group had mapped them
// and if their names are those of vLLM or its libraries.

package vllm

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
)

const sharedFolder = "/dev/shm/"

// sharedNames are prefixes of names: Python's blocks and semaphores, vLLM's own, NCCL's, torch's.
var sharedNames = []string{"psm_", "sem.mp-", "vllm", "nccl-", "torch_"}

// sharedFiles is the files of one process group. It is safe for concurrent use.
type sharedFiles struct {
	report io.Writer // receives each name

	mu    sync.Mutex
	files map[string]bool
}

func (s *sharedFiles) record(group int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.files == nil {
		s.files = map[string]bool{}
	}
	mapped := mappedInodes(group)
	files, _ := os.ReadDir(sharedFolder)
	for _, f := range files {
		if !slices.ContainsFunc(sharedNames, func(start string) bool {
			return strings.HasPrefix(f.Name(), start)
		}) {
			continue
		}
		name := sharedFolder + f.Name()
		if info, err := f.Info(); err == nil && mapped[info.Sys().(*syscall.Stat_t).Ino] &&
			!s.files[name] {
			s.files[name] = true
			fmt.Fprintln(s.report, name) // an error means that the group is gone
		}
	}
}

// mappedInodes returns the inodes of /dev/shm that processes of a group have mapped. Paths are
// unreliable: a semaphore gets its name by a link, and is listed under another.
func mappedInodes(group int) map[uint64]bool {
	inodes := map[uint64]bool{}
	processes, _ := filepath.Glob("/proc/[0-9]*")
	for _, p := range processes {
		// a process may have ended by now; its name, in parentheses, may have any character
		stat, _ := os.ReadFile(p + "/stat")
		var state string
		var parent, processGroup int
		_, err := fmt.Sscan(string(stat[bytes.LastIndexByte(stat, ')')+1:]), &state, &parent,
			&processGroup)
		if err != nil || processGroup != group {
			continue
		}
		maps, _ := os.ReadFile(p + "/maps")
		for line := range strings.Lines(string(maps)) {
			var addresses, rights, offset, device string
			var inode uint64
			if strings.Contains(line, " "+sharedFolder) {
				_, _ = fmt.Sscan(line, &addresses, &rights, &offset, &device, &inode)
				inodes[inode] = true
			}
		}
	}
	return inodes
}

func (s *sharedFiles) remove() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.files {
		_ = os.Remove(name) // most are gone
	}
}
