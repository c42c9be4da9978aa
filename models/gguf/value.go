package gguf

// The keys of a header: numbers, flags, texts, and lists of them. Of a list only its length and,
// where they are numbers, its first values are kept, since nothing here reads a vocabulary.

import (
	"bufio"
	"encoding/binary"
	"io"
	"math"

	"github.com/ossrun/ossrun/models/safetensors"
)

// The kinds of a value, as files number them.
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

// keptNumbers is how many numbers of a list are kept.
const keptNumbers = 64

// Value is a key's value.
type Value struct {
	number  float64
	integer int64
	whole   bool // integer holds it
	isText  bool
	text    string
	Len     int     // of a list, else 0
	Numbers []int64 // the first of a list of integers
}

// Integer gives a value that is a whole number.
func (v Value) Integer() (int64, bool) { return v.integer, v.whole }

// Number gives a value that is a number.
func (v Value) Number() (float64, bool) {
	if v.whole {
		return float64(v.integer), true
	}
	return v.number, !v.isText && v.Len == 0
}

// Text gives a value that is a text.
func (v Value) Text() (string, bool) { return v.text, v.isText }

// decoder reads little-endian values and counts what it read.
type decoder struct {
	in   *bufio.Reader
	read int64
	size int64 // of the file
}

func (d *decoder) bytes(to []byte) error {
	n, err := io.ReadFull(d.in, to)
	d.read += int64(n)
	return err
}

func (d *decoder) uint32() (uint32, error) {
	var b [4]byte
	err := d.bytes(b[:])
	return binary.LittleEndian.Uint32(b[:]), err
}

func (d *decoder) uint64() (uint64, error) {
	var b [8]byte
	err := d.bytes(b[:])
	return binary.LittleEndian.Uint64(b[:]), err
}

// length reads a text's length, which must fit into what is left of the file.
func (d *decoder) length() (int64, error) {
	n, err := d.uint64()
	if err != nil {
		return 0, err
	}
	if n > uint64(d.size-d.read) {
		return 0, io.ErrUnexpectedEOF
	}
	return int64(n), nil
}

func (d *decoder) text() (string, error) {
	n, err := d.length()
	if err != nil {
		return "", err
	}
	if n > maxString {
		return "", wrong("has a text of %d bytes in its header", n)
	}
	b := make([]byte, n)
	err = d.bytes(b)
	return string(b), err
}

func (d *decoder) skip(n int64) error {
	for n > 0 {
		m, err := d.in.Discard(int(min(n, 1<<20)))
		d.read += int64(m)
		n -= int64(m)
		if err != nil {
			return err
		}
	}
	return nil
}

// pair reads a key and its value.
func (d *decoder) pair() (string, Value, error) {
	name, err := d.text()
	if err != nil {
		return "", Value{}, err
	}
	kind, err := d.uint32()
	if err != nil {
		return "", Value{}, err
	}
	if kind != kindArray {
		v, err := d.value(name, kind)
		return name, v, err
	}
	v, err := d.list(name)
	return name, v, err
}

// value reads one value that is no list.
func (d *decoder) value(name string, kind uint32) (Value, error) {
	if kind == kindString {
		text, err := d.text()
		return Value{isText: true, text: text}, err
	}
	width, ok := width(kind)
	if !ok {
		return Value{}, wrong("has key %s of kind %d, which is unknown", safetensors.Show(name),
			kind)
	}
	var b [8]byte
	if err := d.bytes(b[:width]); err != nil {
		return Value{}, err
	}
	bits := binary.LittleEndian.Uint64(b[:])
	shift := 64 - 8*width
	switch kind {
	case kindFloat32:
		return Value{number: float64(math.Float32frombits(uint32(bits)))}, nil
	case kindFloat64:
		return Value{number: math.Float64frombits(bits)}, nil
	case kindInt8, kindInt16, kindInt32, kindInt64:
		return Value{whole: true, integer: int64(bits<<shift) >> shift}, nil
	}
	if bits > math.MaxInt64 {
		return Value{number: float64(bits)}, nil
	}
	return Value{whole: true, integer: int64(bits)}, nil
}

// width is the size of a number, in bytes.
func width(kind uint32) (int, bool) {
	switch kind {
	case kindUint8, kindInt8, kindBool:
		return 1, true
	case kindUint16, kindInt16:
		return 2, true
	case kindUint32, kindInt32, kindFloat32:
		return 4, true
	case kindUint64, kindInt64, kindFloat64:
		return 8, true
	}
	return 0, false
}

// list passes over a list and keeps its length and its first numbers.
func (d *decoder) list(name string) (Value, error) {
	kind, err := d.uint32()
	if err != nil {
		return Value{}, err
	}
	count, err := d.uint64()
	if err != nil {
		return Value{}, err
	}
	if count > uint64(d.size-d.read) { // an element has at least a byte
		return Value{}, io.ErrUnexpectedEOF
	}
	v := Value{Len: int(count)}
	if kind == kindString {
		for range count {
			n, err := d.length()
			if err == nil {
				err = d.skip(n)
			}
			if err != nil {
				return v, err
			}
		}
		return v, nil
	}
	width, ok := width(kind)
	if !ok {
		return v, wrong("has key %s, a list of kind %d, which is unknown", safetensors.Show(name),
			kind)
	}
	for range min(count, keptNumbers) {
		one, err := d.value(name, kind)
		if err != nil {
			return v, err
		}
		if one.whole {
			v.Numbers = append(v.Numbers, one.integer)
		}
	}
	left := int64(count) - min(int64(count), keptNumbers)
	if left > (d.size-d.read)/int64(width) {
		return v, io.ErrUnexpectedEOF
	}
	return v, d.skip(left * int64(width))
}
