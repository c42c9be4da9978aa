package driver

import (
	"bytes"
	"fmt"
	"strings"
	"unsafe"
)

// The driver's facts about a device that is not yet in use: nothing here needs a context.

// Device is one GPU as the driver shows it, before anything is done with it.
type Device struct {
	d      *Driver
	handle int32

	Index  int
	Name   string
	PCI    string // "0000:41:00.0"
	Memory int64  // bytes in all
	Arch   string // "sm_90", "gfx942"; "": unknown
}

func (d *Driver) Device(index int) (*Device, error) {
	g := &Device{d: d, Index: index}
	if err := g.describe(); err != nil {
		return nil, fmt.Errorf("GPU %d: %w", index, err)
	}
	return g, nil
}

func (g *Device) describe() (err error) {
	if err := g.d.call(deviceGet, uintptr(unsafe.Pointer(&g.handle)),
		uintptr(g.Index)); err != nil {
		return err
	}
	read := func(f function) (string, error) {
		var buffer [256]byte
		err := g.d.call(f, uintptr(unsafe.Pointer(&buffer[0])), uintptr(len(buffer)-1),
			uintptr(g.handle))
		s, _, _ := strings.Cut(string(buffer[:]), "\x00")
		return s, err
	}
	if g.Name, err = read(deviceName); err != nil {
		return err
	}
	if g.PCI, err = read(devicePCI); err != nil {
		return err
	}
	if err = g.d.call(deviceTotal, uintptr(unsafe.Pointer(&g.Memory)),
		uintptr(g.handle)); err != nil {
		return err
	}
	g.Arch, err = g.arch()
	return err
}

func (g *Device) Attribute(a Attribute) (int, error) {
	id := a.ofCUDA
	if g.d.api == HIP {
		id = a.ofHIP
	}
	var v int32
	err := g.d.call(deviceAttribute, uintptr(unsafe.Pointer(&v)), uintptr(id), uintptr(g.handle))
	return int(v), err
}

// Units turns a count of Multiprocessors into SMs or compute units. On RDNA, AMD's runtime counts
// pairs of compute units (clr, rocdevice.cpp: maxComputeUnits_).
func (g *Device) Units(multiprocessors int) int {
	if g.d.api == HIP && strings.HasPrefix(g.Arch, "gfx1") {
		return 2 * multiprocessors
	}
	return multiprocessors
}

// arch names the instruction set. HIP has it only in a structure, and "" if not there either.
func (g *Device) arch() (string, error) {
	if g.d.api == HIP {
		return g.gcnArch(), nil
	}
	major, err := g.Attribute(Major)
	if err != nil {
		return "", err
	}
	minor, err := g.Attribute(Minor)
	return fmt.Sprintf("sm_%d%d", major, minor), err
}

// gcnArch reads the name in hipDeviceProp_tR0600, at the same place in the headers of 6.0 to 7, if
// it is one. Older headers do not have the function, so it is not in the table.
func (g *Device) gcnArch() string {
	const place, length = 1160, 256
	address, err := g.d.lib.symbol("hipGetDevicePropertiesR0600")
	if err != nil {
		return ""
	}
	properties := make([]byte, 8192)
	if int(int32(g.d.lib.call(address, uintptr(unsafe.Pointer(&properties[0])),
		uintptr(g.handle)))) != codeSuccess {
		return ""
	}
	return gcnName(properties[place : place+length])
}

// gcnName is the architecture in a text that ends in a zero, as "gfx942:sramecc+:xnack-" does.
func gcnName(text []byte) string {
	name, _, ok := bytes.Cut(text, []byte{0})
	name, _, _ = bytes.Cut(name, []byte(":"))
	digits, gfx := bytes.CutPrefix(name, []byte("gfx"))
	if !ok || !gfx || len(digits) < 3 || len(digits) > 5 ||
		len(bytes.Trim(digits, "0123456789abcdef")) > 0 {
		return ""
	}
	return string(name)
}
