package worker

import (
	"encoding/binary"
	"errors"
	"math"
	"unsafe"
)

// Numbers in a slot of shared memory, in the machine's own order: both sides are on one machine.
// Lists have their length in front.

var (
	errSlotFull = errors.New("the step does not fit into the memory that is shared with the GPU " +
		"worker")
	errSlotShort = errors.New("a step in the shared memory is cut off")
)

// writer fills a slot; the first value that has no room makes it fail, and those after it too.
type writer struct {
	to   []byte
	n    int
	full bool
}

// room is the place of the next n bytes, nil when there is none.
func (w *writer) room(n int) []byte {
	if w.full || n > len(w.to)-w.n {
		w.full = true
		return nil
	}
	at := w.to[w.n : w.n+n]
	w.n += n
	return at
}

func (w *writer) word(v uint32) {
	if at := w.room(4); at != nil {
		binary.NativeEndian.PutUint32(at, v)
	}
}

func (w *writer) int(v int32)     { w.word(uint32(v)) }
func (w *writer) float(v float32) { w.word(math.Float32bits(v)) }

func (w *writer) long(v uint64) {
	if at := w.room(8); at != nil {
		binary.NativeEndian.PutUint64(at, v)
	}
}

// ints and longs write a list.
func (w *writer) ints(v []int32) {
	w.word(uint32(len(v)))
	copy(w.room(4*len(v)), bytesOf(v))
}

func (w *writer) longs(v []uint64) {
	w.word(uint32(len(v)))
	copy(w.room(8*len(v)), bytesOf(v))
}

// reader takes a slot apart; the first value that is not there makes it fail, and those after it
// are zero.
type reader struct {
	from  []byte
	short bool
}

func (r *reader) take(n int) []byte {
	if r.short || n > len(r.from) {
		r.short = true
		return nil
	}
	at := r.from[:n]
	r.from = r.from[n:]
	return at
}

func (r *reader) word() uint32 {
	if at := r.take(4); at != nil {
		return binary.NativeEndian.Uint32(at)
	}
	return 0
}

func (r *reader) int() int32     { return int32(r.word()) }
func (r *reader) float() float32 { return math.Float32frombits(r.word()) }

func (r *reader) long() uint64 {
	if at := r.take(8); at != nil {
		return binary.NativeEndian.Uint64(at)
	}
	return 0
}

// count is the length of a list whose elements take at least each bytes; 0 when the slot cannot
// hold so many.
func (r *reader) count(each int) int {
	n := int(r.word())
	if r.short || n > len(r.from)/each {
		r.short = true
		return 0
	}
	return n
}

// ints appends a list to to; the copy is the caller's.
func (r *reader) ints(to []int32) []int32 {
	n, at := r.count(4), len(to)
	to = append(to, make([]int32, n)...)
	copy(bytesOf(to[at:]), r.take(4*n))
	return to
}

func (r *reader) longs(to []uint64) []uint64 {
	n, at := r.count(8), len(to)
	to = append(to, make([]uint64, n)...)
	copy(bytesOf(to[at:]), r.take(8*n))
	return to
}

// end says what was wrong: too little, or more than was asked for.
func (r *reader) end() error {
	if r.short {
		return errSlotShort
	}
	if len(r.from) > 0 {
		return errors.New("a step in the shared memory is longer than its parts")
	}
	return nil
}

// bytesOf is the memory of numbers.
func bytesOf[T int32 | uint64 | float32](v []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))),
		len(v)*int(unsafe.Sizeof(*new(T))))
}
