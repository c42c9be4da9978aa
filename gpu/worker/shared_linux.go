package worker

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Shared memory is a file without a name. Its size is sealed: no page of it can go away.

const sizeSeals = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL

// memoryFile makes a file without a name, which fill writes, and seals it.
func memoryFile(name string, flags, seals int, fill func(*os.File) error) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|flags)
	if err != nil {
		return nil, fmt.Errorf("make a file in memory: %w", err)
	}
	f := os.NewFile(uintptr(fd), name)
	if err = fill(f); err == nil {
		_, err = unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, seals|sizeSeals)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("write a file into memory: %w", err), f.Close())
	}
	return f, nil
}

// newShared makes shared memory; the file goes to the worker.
func newShared(logits int64) (*shared, *os.File, error) {
	file, err := memoryFile("ossrun-steps", 0, 0,
		func(f *os.File) error { return f.Truncate(slotsBytes + logits) })
	if err != nil {
		return nil, nil, err
	}
	s, err := mapShared(file, slotsBytes+logits)
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	return s, file, nil
}

// openShared maps the parent's memory, after checking its size and seals.
func openShared(file *os.File, bytes int64) (*shared, error) {
	if bytes <= slotsBytes || bytes > slotsBytes+logitsBytes {
		return nil, fmt.Errorf("the shared memory has %d bytes, between %d and %d are expected",
			bytes, slotsBytes, int64(slotsBytes)+logitsBytes)
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
