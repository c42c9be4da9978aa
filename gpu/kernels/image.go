package kernels

// What stands in a compiled image: the names of its kernels, and PTX with some of them alone.

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"strings"
)

var (
	entryBegin = []byte("\n.visible .entry ")
	entryEnd   = []byte("\n}\n")
)

// Names lists the kernels of an image, PTX, cubin or code object, in the order in which they stand
// there.
func Names(image []byte) ([]string, error) {
	if _, ok := CubinVersion(image); ok {
		return namesOfCubin(image)
	}
	if bytes.HasPrefix(image, []byte(elf.ELFMAG)) {
		return namesOfCodeObject(image)
	}
	var names []string
	for rest := image; ; {
		at := bytes.Index(rest, entryBegin)
		if at < 0 {
			break
		}
		rest = rest[at+len(entryBegin):]
		name, _, found := bytes.Cut(rest, []byte("("))
		if !found {
			return nil, fmt.Errorf("this PTX ends inside of the name of a kernel")
		}
		names = append(names, string(name))
	}
	if names == nil {
		return nil, fmt.Errorf("no kernel in this image")
	}
	return names, nil
}

// namesOfCodeObject: every kernel has a descriptor, an object whose name ends in .kd.
func namesOfCodeObject(image []byte) (names []string, err error) {
	file, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		return nil, fmt.Errorf("read the code object: %w", err)
	}
	symbols, err := file.DynamicSymbols()
	if err != nil {
		return nil, fmt.Errorf("read the code object's symbols: %w", err)
	}
	for _, s := range symbols {
		if name, kernel := strings.CutSuffix(s.Name, ".kd"); kernel {
			names = append(names, name)
		}
	}
	return names, nil
}

// namesOfCubin: every kernel has a section of code named after it. The names of an ELF file's
// sections are in one of them; package debug/elf refuses cubins, whose version is their own.
func namesOfCubin(image []byte) (names []string, err error) {
	u16 := func(at int) int { return int(binary.LittleEndian.Uint16(image[at:])) }
	headers, size, count, named := binary.LittleEndian.Uint64(image[40:]), u16(58), u16(60), u16(62)
	if named >= count || size < 64 || headers > uint64(len(image)) ||
		uint64(count*size) > uint64(len(image))-headers {
		return nil, fmt.Errorf("this cubin ends inside of the table of its sections")
	}
	table := image[headers:]
	bytesOf := func(section int) []byte {
		header := table[section*size:]
		at, n := binary.LittleEndian.Uint64(header[24:]), binary.LittleEndian.Uint64(header[32:])
		if at > uint64(len(image)) || n > uint64(len(image))-at {
			return nil
		}
		return image[at : at+n]
	}
	text := bytesOf(named)
	for i := range count {
		at := binary.LittleEndian.Uint32(table[i*size:])
		if uint64(at) >= uint64(len(text)) {
			continue
		}
		word, _, _ := bytes.Cut(text[at:], []byte{0})
		if name, kernel := strings.CutPrefix(string(word), ".text."); kernel {
			names = append(names, name)
		}
	}
	if names == nil {
		return nil, fmt.Errorf("no kernel in this cubin")
	}
	return names, nil
}

// Only is PTX with the kernels of these names alone. A driver compiles everything that it is given,
// so a program that loads what it runs, and that when it first needs it, starts in a fraction of
// the time. What the kernels share stays: it costs nothing.
func Only(ptx []byte, names ...string) ([]byte, error) {
	missing := map[string]bool{}
	for _, name := range names {
		missing[name] = true
	}
	var out []byte
	rest := ptx
	for {
		at := bytes.Index(rest, entryBegin)
		if at < 0 {
			break
		}
		out = append(out, rest[:at+1]...)
		rest = rest[at+1:]
		end := bytes.Index(rest, entryEnd)
		name, _, found := bytes.Cut(rest[len(entryBegin)-1:], []byte("("))
		if end < 0 || !found {
			return nil, fmt.Errorf("this PTX ends inside of a kernel")
		}
		end += len(entryEnd) - 1 // its last line's end may begin the next kernel
		if missing[string(name)] {
			out = append(out, rest[:end]...)
			delete(missing, string(name))
		}
		rest = rest[end:]
	}
	for _, name := range names {
		if missing[name] {
			return nil, fmt.Errorf("there is no kernel %s in this image", name)
		}
	}
	return append(out, rest...), nil
}
