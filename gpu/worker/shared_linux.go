package worker

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Shared memory is a file without a name. Its size is sealed, so that neither side can be stopped
// by pages that went away.

const sizeSeals = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL

// newShared makes it; the file goes to the worker.
func newShared(logits int64) (_ *shared, file *os.File, err error) {
	fd, err := unix.MemfdCreate("ossrun-steps", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, nil, fmt.Errorf("make memory to share with the GPU worker: %w", err)
	}
	file = os.NewFile(uintptr(fd), "memory shared with the GPU worker")
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("share memory with the GPU worker: %w", err), file.Close())
		}
	}()
	if err := file.Truncate(slotsBytes + logits); err != nil {
		return nil, nil, err
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, sizeSeals); err != nil {
		return nil, nil, err
	}
	s, err := mapShared(file, slotsBytes+logits)
	return s, file, err
}

// openShared maps the parent's memory, after checking that it is what the parent said.
func openShared(file *os.File, bytes int64) (*shared, error) {
	if err := checkShared(bytes); err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("the shared memory: %w", err)
	}
	if info.Size() != bytes {
		return nil, fmt.Errorf("the shared memory has %d bytes, not the %d that were said",
			info.Size(), bytes)
	}
	if seals, err := unix.FcntlInt(file.Fd(), unix.F_GET_SEALS, 0); err != nil ||
		seals&sizeSeals != sizeSeals {
		return nil, errors.New("the shared memory's size is not sealed")
	}
	return mapShared(file, bytes)
}

func mapShared(file *os.File, bytes int64) (*shared, error) {
	data, err := unix.Mmap(int(file.Fd()), 0, int(bytes), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_SHARED|unix.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("map %d bytes: %w", bytes, err)
	}
	return &shared{data, func() error { return unix.Munmap(data) }}, nil
}
