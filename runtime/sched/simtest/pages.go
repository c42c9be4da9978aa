// The pages of the simulated engine as memory that can be copied and swapped out.

package simtest

import (
	"encoding/binary"
	"fmt"

	"github.com/ossrun/ossrun/runtime/engine"
)

// Cache is the pool.
func (e *Engine) Cache() engine.Region { return region{e} }

type region struct{ e *Engine }

func (r region) Bytes() int64 { return int64(len(r.e.pages)) * pageBytes }

func (r region) Free() error { return nil }

// Read copies whole pages out.
func (r region) Read(offset int64, dst []byte) error {
	return r.each(offset, dst, func(s *slot, b []byte) {
		for i, v := range s {
			binary.LittleEndian.PutUint64(b[8*i:], v)
		}
	})
}

// Write copies whole pages in.
func (r region) Write(offset int64, src []byte) error {
	return r.each(offset, src, func(s *slot, b []byte) {
		for i := range s {
			s[i] = binary.LittleEndian.Uint64(b[8*i:])
		}
	})
}

func (r region) each(offset int64, data []byte, do func(*slot, []byte)) error {
	if offset%pageBytes != 0 || len(data)%pageBytes != 0 || offset < 0 ||
		offset+int64(len(data)) > r.Bytes() {
		return fmt.Errorf("%d bytes at %d of %d are not whole pages", len(data), offset, r.Bytes())
	}
	r.e.mu.Lock()
	defer r.e.mu.Unlock()
	for at := 0; at < len(data); at += slotBytes {
		page := (int(offset) + at) / pageBytes
		do(&r.e.pages[page][at%pageBytes/slotBytes], data[at:at+slotBytes])
	}
	return nil
}
