package drivertest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"runtime"
	"strings"
	"time"
	"unsafe"

	"github.com/ossrun/ossrun/gpu/driver"
)

// The fake driver as a test uses it: opened like a driver, told to fail, and asked what was left
// behind.

// Fake is an opened fake driver: a Driver with its controls.
type Fake struct {
	*driver.Driver
	Path string
}

// Machine is what the fake pretends to have. The zero value is one Fake H100 with 64 GiB.
type Machine struct {
	Devices      int
	Name         string
	Major, Minor int
	Memory       int64
}

// Open builds the library of an API and opens it with a machine. A process has one of each API:
// opening again resets it.
func Open(api driver.API, m Machine) (*Fake, error) {
	path, err := Build(api)
	if err != nil {
		return nil, err
	}
	d, err := driver.Open(api, path)
	if err != nil {
		return nil, err
	}
	f := &Fake{d, path}
	f.RestartAs(m)
	return f, nil
}

// RestartAs forgets everything, as Restart does, and has another machine.
func (f *Fake) RestartAs(m Machine) {
	f.Restart()
	if m != (Machine{}) {
		f.fault("devices", m.Devices, m.Name, m.Major, m.Minor, int(m.Memory))
	}
}

// Multiprocessors sets their number on every device.
func (f *Fake) Multiprocessors(n int) { f.fault("multiprocessors", n) }

// Break makes a kernel touch memory that is not there, which loses the device; "" breaks none.
func (f *Fake) Break(kernel string) { f.fault("break", kernel) }

// Skip makes the nth launch of a kernel from now on do nothing, as after a lost race.
func (f *Fake) Skip(kernel string, nth int) { f.fault("skip", kernel, nth) }

// Cost gives launches of a kernel a duration, and all others none.
func (f *Fake) Cost(kernel string, d time.Duration) { f.fault("cost", kernel, int(d)) }

// Integrate lets every NVIDIA device share the host's memory.
func (f *Fake) Integrate() { f.fault("integrate") }

// NameArch is what AMD's runtime says of the instruction set: "gfx942:sramecc+:xnack-".
func (f *Fake) NameArch(name string) { f.fault("gcn", name) }

// SetVersion changes the version that the driver gives as its own, until the next Restart.
func (f *Fake) SetVersion(v int) { f.fault("version", v) }

// Restart forgets everything: the machine has one Fake H100 again, and nothing was called.
func (f *Fake) Restart() { f.fault("reset") }

// FailCall makes the nth call of a function from now on fail with a code; "" is any function.
// Functions that free still free.
func (f *Fake) FailCall(function string, nth, code int) { f.fault("fail", function, nth, code) }

// Failing tells whether FailCall still waits for its call.
func (f *Fake) Failing() bool { return f.fault("failing") != 0 }

// Calls is how often a function was called, "" for all functions together.
func (f *Fake) Calls(function string) int { return int(f.fault("calls", function)) }

// Trace is the functions called so far, in order.
func (f *Fake) Trace() []string { return strings.Fields(f.read("trace")) }

// Leaks names the resources still held, "" for none.
func (f *Fake) Leaks() string { return f.read("leaks") }

// Image is a module with the name of every kernel of the emulation and no code: all that the fake
// reads of an image.
func (f *Fake) Image() []byte {
	names := strings.Fields(f.read("kernels"))
	if f.API() == driver.HIP {
		return codeObject(names)
	}
	var ptx strings.Builder
	ptx.WriteString("//\n.version 8.0\n.target sm_80\n.address_size 64\n")
	for _, name := range names {
		fmt.Fprintf(&ptx, ".visible .entry %s(\n)\n{\n\tret;\n}\n", name)
	}
	return []byte(ptx.String())
}

// codeObject is an ELF file of nothing but a header and the names of kernel descriptors; its
// section headers begin at its end.
func codeObject(names []string) []byte {
	header := make([]byte, 64)
	copy(header, "\x7fELF\x02\x01\x01")
	body := strings.Join(names, ".kd\x00") + ".kd\x00"
	binary.LittleEndian.PutUint64(header[0x28:], uint64(len(header)+len(body)))
	return append(header, body...)
}

// Reverse runs the threads of a block from the last to the first.
func (f *Fake) Reverse(on bool) { f.fault("reverse", map[bool]int{true: 1}[on]) }

// fault calls a function of the fake with numbers and texts.
func (f *Fake) fault(what string, args ...any) uintptr {
	var pin runtime.Pinner
	defer pin.Unpin()
	words := make([]uintptr, len(args))
	for i, a := range args {
		switch a := a.(type) {
		case int:
			words[i] = uintptr(a)
		case []byte:
			pin.Pin(&a[0])
			words[i] = uintptr(unsafe.Pointer(&a[0]))
		case string:
			text := append([]byte(a), 0)
			pin.Pin(&text[0])
			words[i] = uintptr(unsafe.Pointer(&text[0]))
		}
	}
	at := f.Symbol("ossrun_fake_" + what)
	if at == 0 {
		// built from this folder, so the function is there
		panic(fmt.Sprintf("%s has no ossrun_fake_%s", f.Path, what))
	}
	return f.Raw(at, words...)
}

// read calls a function that gives a text of any length.
func (f *Fake) read(what string) string {
	text := make([]byte, f.fault(what, 0, 0)+1)
	f.fault(what, text, len(text))
	s, _, _ := bytes.Cut(text, []byte{0})
	return string(s)
}
