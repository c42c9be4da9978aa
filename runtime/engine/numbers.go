package engine

import "unsafe"

// Numbers and the bytes that they lie in: the machine's order is that of checkpoints and cards.

// Bytes is the memory of v.
func Bytes[T any](v []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v)*int(size[T]()))
}

// Numbers are those that lie in b, which must begin where one may lie.
func Numbers[T any](b []byte) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(size[T]()))
}

func size[T any]() uintptr { return unsafe.Sizeof(*new(T)) }
