package kernels

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
)

// The GPUs that artefacts are built for.

// Vendor is the maker of a GPU; it decides which driver loads the artefacts.
type Vendor uint8

const (
	NVIDIA Vendor = iota // cubins, and PTX: text that the driver compiles for the card
	AMD                  // code objects: ELF, for one architecture each
)

// Arch is an architecture that artefacts are built for.
type Arch struct {
	Name   string // "sm_80", "gfx942": the compiler's name, and the artefact's
	Vendor Vendor
	Warp   int // lanes
	// the compiler: the oldest of Debian's that has the architecture; of AMD the newest
	Clang string
	// NVIDIA: the feature that names the PTX version. 8.0 is CUDA 12.0, whose drivers are from 2022
	PTX  string
	Unit Unit
}

// Archs are all of them. AMD's compiler must know the silicon's faults. clang-19 does not know that
// a GFX12 reads a scalar register's old value after some vector instructions (LLVM 20 puts
// s_wait_alu there), nor that instructions which empty a cache must be waited for (LLVM 21), and it
// leaves flat loads in half of the kernels. PTX runs on its architecture and on all later ones of
// NVIDIA; with a final a only on the cards of its cubin, so that text is not shipped.
var Archs = []Arch{
	{"sm_80", NVIDIA, 32, "clang-19", "+ptx80", MMA},
	{"sm_120", NVIDIA, 32, "clang-22", "+ptx87", MMA},
	{"sm_90a", NVIDIA, 32, "clang-19", "+ptx80", WGMMA},
	{"sm_100a", NVIDIA, 32, "clang-22", "+ptx87", MMA},
	{"sm_103a", NVIDIA, 32, "clang-22", "+ptx88", MMA},
	{"sm_120a", NVIDIA, 32, "clang-22", "+ptx87", MX},
	{"sm_121a", NVIDIA, 32, "clang-22", "+ptx88", MX},
	{"gfx90a", AMD, 64, "clang-22", "", MMA},
	{"gfx942", AMD, 64, "clang-22", "", MMA},
	{"gfx950", AMD, 64, "clang-22", "", MX},
	{"gfx1100", AMD, 32, "clang-22", "", MMA},
	{"gfx1101", AMD, 32, "clang-22", "", MMA},
	{"gfx1151", AMD, 32, "clang-22", "", MMA},
	{"gfx1200", AMD, 32, "clang-22", "", MMA},
	{"gfx1201", AMD, 32, "clang-22", "", MMA},
}

// OldestSM is the lowest compute capability that has an artefact, times ten.
const OldestSM = 80

// ArchFor is the architecture whose artefact a card runs: its own, or the text for the nearest
// earlier one. Artefacts of an "a" architecture, and AMD's code objects, run on their own
// architecture only.
func ArchFor(card string) (best Arch, err error) {
	capable, _, nvidia := capability(card)
	for _, a := range Archs {
		version, accelerated, _ := capability(a.Name)
		if a.Vendor == AMD && a.Name == card || nvidia && accelerated && version == capable {
			return a, nil
		}
	}
	if best, ok := TextFor(card); ok {
		return best, nil
	}
	switch {
	case nvidia:
		return best, fmt.Errorf("its compute capability %d.%d is too old: %d.%d or newer is needed",
			capable/10, capable%10, OldestSM/10, OldestSM%10)
	case card == "":
		return best, errors.New("its architecture cannot be told")
	}
	return best, fmt.Errorf("this program has no kernels for %s", card)
}

const amdShared = 64 << 10

// SharedOf is the shared memory that a block may have on a card; of an unknown one the least.
func SharedOf(card string) int {
	kib := map[string]int{"sm_80": 163, "sm_87": 163, "sm_90": 227, "sm_100": 227, "sm_103": 227,
		"gfx950": 160}[card]
	switch {
	case kib > 0:
		return kib << 10
	case strings.HasPrefix(card, "sm_"):
		return 99 << 10
	}
	return amdShared
}

// TextFor is the architecture whose text the driver compiles for a card when there is no cubin or
// the driver refused it: the newest that is not newer than the card.
func TextFor(card string) (best Arch, ok bool) {
	capable, _, nvidia := capability(card)
	newest := 0
	for _, a := range Archs {
		if version, _, _ := capability(a.Name); nvidia && a.HasText() && version <= capable &&
			version > newest {
			best, newest = a, version
		}
	}
	return best, newest > 0
}

// HasText tells whether the architecture's PTX is shipped.
func (a Arch) HasText() bool { return a.Vendor == NVIDIA && !strings.HasSuffix(a.Name, "a") }

// Overlaps tells whether its kernels wait for earlier ones themselves (await_grids in gpu.h).
func (a Arch) Overlaps() bool { return a.Vendor == NVIDIA && a.Name != "sm_80" }

// File is the name in assets/kernels of the code object or text; "": none is shipped.
func (a Arch) File() string {
	switch {
	case a.Vendor == AMD:
		return a.Name + ".co"
	case a.HasText():
		return a.Text() + ".gz"
	}
	return ""
}

// Text is the PTX's file name during generation.
func (a Arch) Text() string { return a.Name + ".ptx" }

// Read is the code object, or the text, out of the files of package assets.
func (a Arch) Read(files fs.FS) ([]byte, error) {
	if a.File() == "" {
		return nil, fmt.Errorf("no text for %s is shipped", a.Name)
	}
	return unpacked(files, a.File())
}

func unpacked(files fs.FS, name string) ([]byte, error) {
	data, err := fs.ReadFile(files, "kernels/"+name)
	if err != nil || !strings.HasSuffix(name, ".gz") {
		return data, err
	}
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if data, err = io.ReadAll(z); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return data, nil
}

// Flags are the compiler's, without input and output. The same sources and flags give the same
// bytes.
func (a Arch) Flags() []string {
	// Loops are unrolled only by the source's pragmas: the compiler's own unrolling doubles the
	// driver's time to load the PTX.
	flags := []string{"--cuda-device-only", "-std=c++17", "-O3", "-fno-unroll-loops", "-Wall",
		"-Werror"}
	if a.Vendor == NVIDIA {
		// without an SDK clang takes the oldest PTX, which has no shfl.sync
		return append(flags, "-x", "cuda", "-nocudainc", "-nocudalib", "-S", "--cuda-gpu-arch="+
			a.Name, "--cuda-feature="+a.PTX)
	}
	// Code object version 5, as clang writes it, runs on HIP runtimes from 6.1 on (gpu/driver);
	// clang-22 would write version 6. The cuid would hold the folder's name.
	return append(flags, "-x", "hip", "--no-gpu-bundle-output", "-nogpuinc", "-nogpulib",
		"-fuse-cuid=none", "-mcode-object-version=5",
		"--offload-arch="+a.Name)
}

var (
	entryBegin = []byte("\n.visible .entry ")
	entryEnd   = []byte("\n}\n")
)

// Only is the PTX of the named kernels alone, with the shared parts: a driver compiles everything
// that it is given.
func Only(ptx []byte, names ...string) (out []byte, err error) {
	for _, name := range names {
		if !bytes.Contains(ptx, []byte(string(entryBegin)+name+"(")) {
			return nil, fmt.Errorf("there is no kernel %s in this image", name)
		}
	}
	for {
		start := bytes.Index(ptx, entryBegin)
		if start < 0 {
			return append(out, ptx...), nil
		}
		out, ptx = append(out, ptx[:start+1]...), ptx[start+1:]
		end := bytes.Index(ptx, entryEnd)
		name, _, ok := bytes.Cut(ptx[len(entryBegin)-1:], []byte("("))
		if end < 0 || !ok {
			return nil, fmt.Errorf("this PTX ends inside of a kernel")
		}
		end += len(entryEnd) - 1 // its last line's end may begin the next kernel
		if slices.Contains(names, string(name)) {
			out = append(out, ptx[:end]...)
		}
		ptx = ptx[end:]
	}
}
