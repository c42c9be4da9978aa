package kernels

// Cubins: our PTX, translated by NVIDIA's own assembler, so that a start need not wait for the
// driver's compiler. Other cards than theirs, and drivers that refuse them, get PTX.

import (
	"encoding/binary"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

// Cubin is an architecture that machine code is shipped for.
type Cubin struct {
	Name string // "sm_86", "sm_90a": the assembler's name of it
	From string // the Arch whose PTX it is
}

var Cubins = []Cubin{
	{"sm_80", "sm_80"},
	{"sm_86", "sm_80"},
	{"sm_89", "sm_80"},
	{"sm_90a", "sm_90a"},
	{"sm_100a", "sm_100a"},
	{"sm_103a", "sm_103a"},
	{"sm_120a", "sm_120a"},
	{"sm_121a", "sm_121a"},
}

// File is the cubin's name in assets/kernels. It is compressed there, to about a quarter.
func (c Cubin) File() string { return c.Name + ".cubin.gz" }

// Flags are the assembler's, without input and output. A kernel that spills registers is an error.
func (c Cubin) Flags() []string {
	return []string{"-arch=" + c.Name, "--warn-on-spills", "--warning-as-error"}
}

// tegra are the chips that share their compute capability with no card: NVIDIA promises no
// compatibility between them and cards.
var tegra = map[int]bool{87: true, 101: true, 110: true}

// CubinFor names the machine code for a card of a compute capability: "sm_86". It runs on its own
// capability and higher minor numbers; that of an "a" architecture on its own alone. False: none.
func CubinFor(arch string) (best Cubin, ok bool) {
	card, isFamily, valid := capability(arch)
	if !valid {
		return best, false
	}
	newest := -1
	for _, c := range Cubins {
		version, accelerated, _ := capability(c.Name)
		switch {
		case version == card:
			return c, true
		case isFamily || accelerated || tegra[card] || version/10 != card/10 || version > card ||
			version < newest:
		default:
			best, newest = c, version
		}
	}
	return best, newest >= 0
}

// capability is the number of an NVIDIA architecture, 90 of "sm_90a", and whether it is an "a" one.
func capability(arch string) (version int, accelerated, ok bool) {
	digits, ok := strings.CutPrefix(arch, "sm_")
	digits, accelerated = strings.CutSuffix(digits, "a")
	version, err := strconv.Atoi(digits)
	return version, accelerated, ok && err == nil
}

// Read is the machine code out of the files of package assets, checked to be for its cards.
func (c Cubin) Read(files fs.FS) (image []byte, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("the cubin for %s: %w", c.Name, err)
		}
	}()
	if image, err = unpacked(files, c.File()); err != nil {
		return nil, err
	}
	version, _, _ := capability(c.Name)
	if have, ok := CubinVersion(image); !ok || have != version {
		return nil, fmt.Errorf("it is for compute capability %d", have)
	}
	return image, nil
}

// CubinVersion is the compute capability that a cubin was assembled for, times ten: in the ELF
// file's flags bits 0 to 7 in version 7 of the format, 8 to 15 in version 8.
func CubinVersion(image []byte) (int, bool) {
	const machine, flags = 18, 48 // offsets in the header of a 64-bit ELF file
	if len(image) < 64 || string(image[:4]) != "\x7fELF" ||
		binary.LittleEndian.Uint16(image[machine:]) != 190 {
		return 0, false
	}
	f := binary.LittleEndian.Uint32(image[flags:])
	if image[8] >= 8 {
		f >>= 8
	}
	return int(f & 0xff), true
}
