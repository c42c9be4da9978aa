package gguf

// The keys of a header: numbers, flags, texts, and lists of them. Of a list only the first integers
// are stored, because no caller reads a vocabulary.

import (
	"bufio"
	"encoding/binary"
	"io"
	"math"

	"github.com/ossrun/ossrun/models/safetensors"
)

// The kinds of a value, by their numbers in files.
const (
	kindUint8 = iota
	kindInt8
	kindUint16
	kindInt16
	kindUint32
	kindInt32
	kindFloat32
	kindBool
	kindString
	kindArray
	kindUint64
	kindInt64
	kindFloat64
)

// maxListNumbers is how many numbers of a list are stored.
const maxListNumbers = 64

// decoder reads little-endian values and counts bytes. The first failure is stored in err; later
// reads return zero.
type decoder struct {
	in        *bufio.Reader
	read      int64
	textBytes int64 // bytes of texts
	size      int64 // of the file
	err       error
}

func (d *decoder) fail(err error) {
	if d.err == nil {
		d.err = err
	}
}

func (d *decoder) bytes(to []byte) {
	if d.err != nil {
		return
	}
	n, err := io.ReadFull(d.in, to)
	d.read += int64(n)
	if err != nil {
		clear(to)
		d.fail(err)
	}
}

func (d *decoder) uint32() uint32 {
	var b [4]byte
	d.bytes(b[:])
	return binary.LittleEndian.Uint32(b[:])
}

func (d *decoder) uint64() uint64 {
	var b [8]byte
	d.bytes(b[:])
	return binary.LittleEndian.Uint64(b[:])
}

// count reads a number of items, each of at least one byte of the remaining file.
func (d *decoder) count() int64 {
	n := d.uint64()
	if n > uint64(d.size-d.read) {
		d.fail(io.ErrUnexpectedEOF)
		return 0
	}
	return int64(n)
}

func (d *decoder) text() string {
	n := d.count()
	if n > maxString {
		d.fail(errorf("has a text of %d bytes in its header", n))
		return ""
	}
	if d.textBytes += n; d.textBytes > maxTextBytes {
		d.fail(errorf("has texts of more than %d bytes in its header", maxTextBytes))
		return ""
	}
	b := make([]byte, n)
	d.bytes(b)
	return string(b)
}

func (d *decoder) skip(n int64) {
	for n > 0 && d.err == nil {
		m, err := d.in.Discard(int(min(n, 1<<20)))
		d.read += int64(m)
		n -= int64(m)
		if err != nil {
			d.fail(err)
		}
	}
}

// pair reads a key and its value: int64, float64, string, or []int64 of a list.
func (d *decoder) pair() (string, any) {
	name := d.text()
	if kind := d.uint32(); kind != kindArray {
		return name, d.value(name, kind)
	}
	return name, d.list(name)
}

func (d *decoder) value(name string, kind uint32) any {
	if kind == kindString {
		return d.text()
	}
	width := width(kind)
	if width == 0 {
		d.fail(errorf("has key %s of kind %d, which is unknown", safetensors.Printable(name), kind))
		return nil
	}
	var b [8]byte
	d.bytes(b[:width])
	bits := binary.LittleEndian.Uint64(b[:])
	shift := 64 - 8*width
	switch kind {
	case kindFloat32:
		return float64(math.Float32frombits(uint32(bits)))
	case kindFloat64:
		return math.Float64frombits(bits)
	case kindInt8, kindInt16, kindInt32, kindInt64:
		return int64(bits<<shift) >> shift
	}
	if bits > math.MaxInt64 {
		return float64(bits)
	}
	return int64(bits)
}

var widths = [...]int64{kindUint8: 1, kindInt8: 1, kindBool: 1, kindUint16: 2, kindInt16: 2,
	kindUint32: 4, kindInt32: 4, kindFloat32: 4, kindUint64: 8, kindInt64: 8, kindFloat64: 8}

// width is the size of a number, in bytes; 0 for other kinds.
func width(kind uint32) int64 {
	if kind < uint32(len(widths)) {
		return widths[kind]
	}
	return 0
}

// list skips a list and returns its first integers.
func (d *decoder) list(name string) (numbers []int64) {
	kind := d.uint32()
	count := d.count()
	if kind == kindString {
		for range count {
			if d.skip(d.count()); d.err != nil {
				break
			}
		}
		return nil
	}
	width := width(kind)
	if width == 0 {
		d.fail(errorf("has key %s, a list of kind %d, which is unknown",
			safetensors.Printable(name), kind))
		return nil
	}
	n := min(count, maxListNumbers)
	for range n {
		if n, ok := d.value(name, kind).(int64); ok {
			numbers = append(numbers, n)
		}
	}
	if count-n > (d.size-d.read)/width {
		d.fail(io.ErrUnexpectedEOF)
	}
	d.skip((count - n) * width)
	return numbers
}
