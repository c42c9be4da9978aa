package driver

import (
	"errors"
	"fmt"
	"slices"
	"unsafe"
)

// Turns the driver's errors into Go's. What must stay true: the message has the driver's name and
// text, and code that reacts to an error compares with the errors below, never with texts.

// Errors that a caller may want to tell apart.
var (
	ErrOutOfMemory = errors.New("the GPU's memory is full")
	ErrNotReady    = errors.New("not finished yet")
	// ErrLost is a card that computes nothing more for this process, because a kernel did something
	// illegal. Once the last context of the process is closed, the card can be opened again.
	ErrLost = errors.New("the GPU is lost to this process")
)

// Error is a call that the driver refused.
type Error struct {
	Call string // the exported name: "cuMemAlloc_v2"
	Code int    // the vendor's number
	Name string // "CUDA_ERROR_OUT_OF_MEMORY"
	Text string // "out of memory"
	Log  string // what the compiler of a module said
}

func (e *Error) Error() string {
	s := fmt.Sprintf("%s: %s (%s, %d)", e.Call, e.Text, e.Name, e.Code)
	if e.Log != "" {
		s += ": " + e.Log
	}
	return s
}

// Is makes the errors above recognisable.
func (e *Error) Is(target error) bool {
	switch target {
	case ErrOutOfMemory:
		return e.Code == codeOutOfMemory
	case ErrNotReady:
		return e.Code == codeNotReady
	case ErrLost:
		return slices.Contains(lost, e.Code)
	}
	return false
}

// describe asks the library what a code means. HIP returns the words, CUDA a code and the words.
func (d *Driver) describe(f function, code int) string {
	if d.api == HIP {
		return text(d.lib.call(d.addresses[f], uintptr(code)))
	}
	var p uintptr
	if d.call(f, uintptr(code), uintptr(unsafe.Pointer(&p))) != nil {
		return ""
	}
	return text(p)
}
