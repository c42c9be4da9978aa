// Package pack unpacks an embedded weights file into separate memory.
//
// A pack is one gzip stream:
//
//	8 bytes   "OSSPACK1"
//	u64       length of the unpacked file
//	32 bytes  SHA-256 of the unpacked file
//	records until that length is reached: u8 kind, u64 n (never 0), then
//	  0 literal  n bytes
//	  1 zeros    nothing: n zero bytes
//	  2 copy     u64 offset: n bytes that were unpacked there, all before the place they are
//	             copied to
//	  3 planes   n/2 low bytes, then n/2 high bytes, of n/2 16-bit little-endian values
//
// Numbers are little-endian. Nothing follows the last record.
//
// The demo's file is mostly zeros (untrained vocabulary rows), and zeros are never written. The
// memory is zeroed by the system, so a page of zeros costs nothing as long as it is not written to.
package pack

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// MaxSize is the longest file that is unpacked, in bytes.
const MaxSize = 1 << 30

const magic = "OSSPACK1"

// The kinds of a record.
const (
	literal = iota
	zeros
	copied
	planes
)

// chunk is the size of one read or interleaving.
const chunk = 64 << 10

// Memory is memory outside Go's heap. An unpacked file's bytes are read-only: writing to them
// faults if the system can protect memory.
type Memory struct {
	Bytes  []byte
	SHA256 [sha256.Size]byte // of Bytes, as a pack announces it
	free   func() error
}

// Free releases the memory; Bytes must not be used after it.
func (m *Memory) Free() error {
	free := m.free
	m.Bytes, m.free = nil, nil
	if free == nil {
		return nil
	}
	return free()
}

// Reserve returns size bytes of zeroed memory outside Go's heap; they take no memory until written.
func Reserve(size int64) (*Memory, error) {
	if size <= 0 || size > int64(^uint(0)>>1) {
		return nil, fmt.Errorf("%d bytes cannot be reserved", size)
	}
	data, free, err := reserve(int(size))
	if err != nil {
		return nil, err
	}
	return &Memory{Bytes: data, free: free}, nil
}

// Unpack reads a pack to its end. A broken pack returns an error and no memory. The SHA-256 of
// Bytes is not checked, which would take as long as reading them: gzip's checksum is enough for an
// embedded pack whose hash a test checks.
func Unpack(r io.Reader) (*Memory, error) {
	z, err := gzip.NewReader(r)
	if err != nil {
		return nil, fmt.Errorf("reading the pack: %w", err)
	}
	u := unpacker{in: bufio.NewReaderSize(z, chunk)}
	var head [len(magic) + 8 + sha256.Size]byte
	if _, err := io.ReadFull(u.in, head[:]); err != nil {
		return nil, fmt.Errorf("reading the pack's head: %w", unexpected(err))
	}
	if string(head[:len(magic)]) != magic {
		return nil, fmt.Errorf("the pack begins with %q, not %s", head[:len(magic)], magic)
	}
	size := binary.LittleEndian.Uint64(head[len(magic):])
	if size == 0 || size > MaxSize {
		return nil, fmt.Errorf("the pack announces %d bytes, outside 1..%d", size, MaxSize)
	}
	data, free, err := reserve(int(size))
	if err != nil {
		return nil, fmt.Errorf("reserving %d bytes for the pack: %w", size, err)
	}
	m := &Memory{Bytes: data, SHA256: [sha256.Size]byte(head[len(magic)+8:]), free: free}
	u.out = data
	if err := u.run(); err != nil {
		return nil, errors.Join(err, m.Free())
	}
	if err := protect(data); err != nil {
		return nil, errors.Join(fmt.Errorf("protecting the unpacked weights: %w", err), m.Free())
	}
	return m, nil
}

// unpacker holds the state of one Unpack: out[:at] is written, out[at:] is still zero.
type unpacker struct {
	in  *bufio.Reader
	out []byte
	pos int
}

func (u *unpacker) run() error {
	for u.pos < len(u.out) {
		if err := u.record(); err != nil {
			return fmt.Errorf("unpacking at byte %d: %w", u.pos, err)
		}
	}
	switch _, err := u.in.ReadByte(); {
	case err == nil:
		return fmt.Errorf("the pack has more than its %d bytes", len(u.out))
	case !errors.Is(err, io.EOF):
		return fmt.Errorf("reading the end of the pack: %w", err)
	}
	return nil
}

func (u *unpacker) record() error {
	kind, err := u.in.ReadByte()
	if err != nil {
		return unexpected(err)
	}
	length, err := u.number()
	if err != nil {
		return err
	}
	if length == 0 || length > uint64(len(u.out)-u.pos) {
		return fmt.Errorf("a record of %d bytes, with %d to go", length, len(u.out)-u.pos)
	}
	to := u.out[u.pos : u.pos+int(length)]
	switch kind {
	case literal:
		_, err = io.ReadFull(u.in, to)
		err = unexpected(err)
	case zeros:
	case copied:
		var from uint64
		if from, err = u.number(); err != nil {
			return err
		}
		if from > uint64(u.pos) || length > uint64(u.pos)-from {
			return fmt.Errorf("a copy of %d bytes from %d, which are not unpacked yet", length,
				from)
		}
		u.copy(to, u.out[from:from+length])
	case planes:
		err = u.planes(to)
	default:
		return fmt.Errorf("record kind %d is unknown", kind)
	}
	if err != nil {
		return err
	}
	u.pos += int(length)
	return nil
}

// copy copies, leaving pages alone that stay zero.
func (u *unpacker) copy(to, from []byte) {
	const page = 4 << 10
	var zero [page]byte
	for done := 0; done < len(to); {
		// Steps end at page boundaries of to, so that each page is compared once.
		n := min(page-(u.pos+done)%page, len(to)-done)
		if part := from[done : done+n]; !bytes.Equal(part, zero[:n]) {
			copy(to[done:], part)
		}
		done += n
	}
}

// planes reads the low bytes of all values, then the high ones.
func (u *unpacker) planes(to []byte) error {
	if len(to)%2 != 0 {
		return fmt.Errorf("planes of %d bytes, which is odd", len(to))
	}
	buffer := make([]byte, min(chunk, len(to)/2))
	for plane := range 2 {
		for done := 0; done < len(to)/2; {
			part := buffer[:min(len(buffer), len(to)/2-done)]
			if _, err := io.ReadFull(u.in, part); err != nil {
				return unexpected(err)
			}
			for i, b := range part {
				to[2*(done+i)+plane] = b
			}
			done += len(part)
		}
	}
	return nil
}

func (u *unpacker) number() (uint64, error) {
	var text [8]byte
	if _, err := io.ReadFull(u.in, text[:]); err != nil {
		return 0, unexpected(err)
	}
	return binary.LittleEndian.Uint64(text[:]), nil
}

// unexpected turns io.EOF into io.ErrUnexpectedEOF, since the input must not end inside a record.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
