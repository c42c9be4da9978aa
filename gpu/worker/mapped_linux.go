package worker

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Weights are views of mapped files. The file behind a view is found here, in this process's own list of mappings, and opened by the worker,
// which checks that it found the same one.

// A filePart is bytes of a file, and which file it is.
type filePart struct {
	Path          string
	Offset, Bytes int64
	Device, Inode uint64
	Size          int64
	Changed       int64 // modification time, nanoseconds
}

// partOf finds the file that data is a view of; false where it is none, or where the name leads to another file by now.
func partOf(data []byte) (filePart, bool) {
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return filePart{}, false
	}
	defer maps.Close()
	at := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(data))))
	part, inode, ok := partIn(maps, at, at+uint64(len(data)))
	if !ok {
		return filePart{}, false
	}
	part.Bytes = int64(len(data))
	if err := part.identify(part.Path); err != nil || part.Inode != inode || part.Offset+part.Bytes > part.Size {
		return filePart{}, false
	}
	return part, true
}

// partIn reads a list of mappings, of proc(5)'s form, for the one that holds addresses from start to end and cannot be written to.
func partIn(maps io.Reader, start, end uint64) (part filePart, inode uint64, ok bool) {
	lines := bufio.NewScanner(maps)
	for lines.Scan() {
		fields := strings.SplitN(lines.Text(), " ", 6) // range, rights, offset, device, inode, spaces and the path
		if len(fields) < 6 {
			continue
		}
		low, high, _ := strings.Cut(fields[0], "-")
		from, err1 := strconv.ParseUint(low, 16, 64)
		to, err2 := strconv.ParseUint(high, 16, 64)
		if err1 != nil || err2 != nil || start < from || end > to {
			continue
		}
		offset, err1 := strconv.ParseUint(fields[2], 16, 63)
		inode, err2 := strconv.ParseUint(fields[4], 10, 64)
		path := strings.TrimLeft(fields[5], " ")
		if err1 != nil || err2 != nil || !strings.HasPrefix(fields[1], "r-") || !strings.HasPrefix(path, "/") || strings.Contains(path, "\\") {
			return filePart{}, 0, false
		}
		return filePart{Path: path, Offset: int64(offset + start - from)}, inode, true
	}
	return filePart{}, 0, false
}

// identify fills in what tells one file from another.
func (p *filePart) identify(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return p.take(info)
}

func (p *filePart) take(info os.FileInfo) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.Mode().IsRegular() {
		return errors.New("not a file")
	}
	p.Device, p.Inode, p.Size, p.Changed = stat.Dev, stat.Ino, info.Size(), info.ModTime().UnixNano()
	return nil
}

// view maps the part, in the worker. Its errors are errOtherFile where the parent can do without the file.
func (p filePart) view() (data []byte, unmap func() error, err error) {
	if p.Bytes <= 0 || p.Offset < 0 || p.Offset > p.Size-p.Bytes {
		return nil, nil, fmt.Errorf("%d bytes at %d of a file of %d", p.Bytes, p.Offset, p.Size)
	}
	f, err := os.Open(p.Path)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", errOtherFile, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", errOtherFile, err)
	}
	found := p
	if err := found.take(info); err != nil || found != p {
		return nil, nil, fmt.Errorf("%w: %s has changed", errOtherFile, p.Path)
	}
	before := p.Offset % int64(os.Getpagesize())
	mapped, err := unix.Mmap(int(f.Fd()), p.Offset-before, int(before+p.Bytes), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, nil, fmt.Errorf("map %s: %w", p.Path, err)
	}
	return mapped[before:], func() error { return unix.Munmap(mapped) }, nil
}
