package worker

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/ossrun/ossrun/models/store"
)

// A worker that the program carries, compressed, and starts from memory. If the system forbids that
// (vm.memfd_noexec=2, no /proc), it starts from a folder of the user's.

// StartEmbedded is Start with a compressed program in memory, and the demo's pack; of o.Program
// only the arguments count.
func StartEmbedded(compressed, demo []byte, o Options) (*Backend, error) {
	image, err := unpack(compressed)
	if err != nil {
		return nil, fmt.Errorf("the GPU worker inside this program: %w", err)
	}
	if loader := loaderOf(image); loader != "" {
		if _, err := os.Stat(loader); err != nil {
			return nil, fmt.Errorf("GPUs need the C library glibc on this machine, and its "+
				"loader %s is not there", loader)
		}
	}
	if o.demo, err = dataFile("ossrun-demo", 0, demo); err != nil {
		return nil, err
	}
	defer o.demo.Close()
	inMemory, memoryErr := programFile(image)
	if memoryErr == nil {
		defer inMemory.Close()
		dev, err := o.startAt(fmt.Sprintf("/proc/self/fd/%d", inMemory.Fd()))
		if err == nil || !refusedToRun(err) {
			return dev, err
		}
		memoryErr = err
	}
	var errs []error
	for _, folder := range folders() {
		path, err := writeProgram(folder, image)
		if err == nil {
			var dev *Backend
			if dev, err = o.startAt(path); err == nil || !refusedToRun(err) {
				return dev, err
			}
		}
		errs = append(errs, err)
	}
	return nil, fmt.Errorf("the GPU worker can be started neither from memory nor from a file: %w",
		errors.Join(append([]error{memoryErr}, errs...)...))
}

func (o Options) startAt(path string) (*Backend, error) {
	o.Program = append([]string{path}, o.Program[min(1, len(o.Program)):]...)
	return Start(o)
}

// mostImage limits the size of the unpacked program.
const mostImage = 512 << 20

func unpack(compressed []byte) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(compressed))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(z, mostImage))
}

// loaderOf is the dynamic loader that an executable names, "" when it names none.
func loaderOf(image []byte) string {
	f, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		return ""
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			text := make([]byte, min(p.Filesz, 4096))
			if _, err := p.ReadAt(text, 0); err != nil {
				return ""
			}
			name, _, _ := strings.Cut(string(text), "\x00")
			return name
		}
	}
	return ""
}

// refusedToRun tells whether the system will not run this file from this place.
func refusedToRun(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) ||
		errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.ENOEXEC)
}

// firstDescriptor is above those that the worker inherits: a lower one would name another file in
// the new process.
const firstDescriptor = 64

// programFile is an executable file without a name, sealed against changes.
func programFile(image []byte) (*os.File, error) {
	const executable = 0x10 // MFD_EXEC, from Linux 6.3 on; before it, every such file is
	low, err := dataFile("ossrun-gpu-worker", executable, image)
	if errors.Is(err, unix.EINVAL) {
		low, err = dataFile("ossrun-gpu-worker", 0, image)
	}
	if err != nil {
		return nil, err
	}
	defer low.Close()
	high, err := unix.FcntlInt(low.Fd(), unix.F_DUPFD_CLOEXEC, firstDescriptor)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(high), "worker"), nil
}

// dataFile is a file without a name, sealed against changes.
func dataFile(name string, flags int, data []byte) (*os.File, error) {
	return memoryFile(name, flags, unix.F_SEAL_WRITE, func(f *os.File) error {
		_, err := f.Write(data)
		return err
	})
}

// Handed is the demo's pack that StartEmbedded gave this process.
func Handed() ([]byte, error) {
	f := os.NewFile(demoDescriptor, "demo")
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("the demo model that was handed over: %w", err)
	}
	return unix.Mmap(demoDescriptor, 0, int(info.Size()), unix.PROT_READ, unix.MAP_SHARED)
}

// folders are those in which a worker may be written: of the session, then of the user.
func folders() (list []string) {
	if session := os.Getenv("XDG_RUNTIME_DIR"); session != "" {
		list = append(list, filepath.Join(session, "ossrun"))
	}
	if cache, err := os.UserCacheDir(); err == nil {
		list = append(list, filepath.Join(cache, "ossrun"))
	}
	return list
}

// writeProgram puts the program, under its hash, into a folder that is the user's alone.
func writeProgram(folder string, image []byte) (path string, err error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", err
	}
	info, err := os.Lstat(folder)
	if err != nil {
		return "", err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(owner.Uid) != os.Geteuid() || !info.IsDir() {
		return "", fmt.Errorf("%s is a link or of another user: a program is not started from "+
			"there", folder)
	}
	if mode := info.Mode().Perm(); mode&0o022 != 0 {
		return "", fmt.Errorf("%s can be written to by others (%o): a program is not started "+
			"from there", folder, mode)
	}
	sum := sha256.Sum256(image)
	path = filepath.Join(folder, "gpu-worker-"+hex.EncodeToString(sum[:8]))
	if have, err := os.ReadFile(path); err == nil && bytes.Equal(have, image) {
		return path, os.Chmod(path, 0o700)
	}
	if err := store.WriteFile(path, image, 0o700); err != nil {
		return "", fmt.Errorf("write the GPU worker: %w", err)
	}
	return path, nil
}
