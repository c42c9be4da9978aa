package kernels

import (
	"bytes"
	"fmt"
	"slices"
)

var (
	entryBegin = []byte("\n.visible .entry ")
	entryEnd   = []byte("\n}\n")
)

// Only is the PTX of the named kernels alone, and what kernels share: a driver compiles everything
// that it is given.
func Only(ptx []byte, names ...string) (out []byte, err error) {
	for _, name := range names {
		if !bytes.Contains(ptx, []byte(string(entryBegin)+name+"(")) {
			return nil, fmt.Errorf("there is no kernel %s in this image", name)
		}
	}
	for {
		at := bytes.Index(ptx, entryBegin)
		if at < 0 {
			return append(out, ptx...), nil
		}
		out, ptx = append(out, ptx[:at+1]...), ptx[at+1:]
		end := bytes.Index(ptx, entryEnd)
		name, _, found := bytes.Cut(ptx[len(entryBegin)-1:], []byte("("))
		if end < 0 || !found {
			return nil, fmt.Errorf("this PTX ends inside of a kernel")
		}
		end += len(entryEnd) - 1 // its last line's end may begin the next kernel
		if slices.Contains(names, string(name)) {
			out = append(out, ptx[:end]...)
		}
		ptx = ptx[end:]
	}
}
