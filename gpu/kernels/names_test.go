package kernels

// The kernels of a compiled image of any kind, by their names.

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"strings"
)

// Names lists the kernels of an image, PTX, cubin or code object, in the order of
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

// target is what launches on an architecture depend on.
func (a Arch) target() Target { return Target{Warp: a.Warp, Unit: a.Unit} }
