package driver

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unsafe"
)

// Device is one GPU as the driver shows it, before anything is done with it.
type Device struct {
	d      *Driver
	handle int32

	Index  int
	Name   string
	PCI    string // "0000:41:00.0"
	Memory int64  // bytes in all
	Arch   string // "sm_90", "gfx942"; "" where it cannot be told
}

// Device looks at one device.
func (d *Driver) Device(index int) (*Device, error) {
	g := &Device{d: d, Index: index}
	if err := d.call(deviceGet, uintptr(unsafe.Pointer(&g.handle)), uintptr(index)); err != nil {
		return nil, fmt.Errorf("GPU %d: %w", index, err)
	}
	buffer := make([]byte, 256)
	read := func(f function) (string, error) {
		clear(buffer)
		err := d.call(f, uintptr(unsafe.Pointer(&buffer[0])), uintptr(len(buffer)-1), uintptr(g.handle))
		s, _, _ := strings.Cut(string(buffer), "\x00")
		return s, err
	}
	var err error
	if g.Name, err = read(deviceName); err != nil {
		return nil, fmt.Errorf("GPU %d: %w", index, err)
	}
	if g.PCI, err = read(devicePCI); err != nil {
		return nil, fmt.Errorf("GPU %d: %w", index, err)
	}
	var total uintptr
	if err = d.call(deviceTotal, uintptr(unsafe.Pointer(&total)), uintptr(g.handle)); err != nil {
		return nil, fmt.Errorf("GPU %d: %w", index, err)
	}
	g.Memory = word(total)
	if g.Arch, err = g.arch(); err != nil {
		return nil, fmt.Errorf("GPU %d: %w", index, err)
	}
	return g, nil
}

// Attribute asks for a number.
func (g *Device) Attribute(a Attribute) (int, error) {
	id := attributes[a].OfCUDA
	if g.d.api == HIP {
		id = attributes[a].OfHIP
	}
	var v int32
	err := g.d.call(deviceAttribute, uintptr(unsafe.Pointer(&v)), uintptr(id), uintptr(g.handle))
	return int(v), err
}

// CanAccess tells whether this device's kernels can read and write the memory of another.
func (g *Device) CanAccess(other *Device) (bool, error) {
	var can int32
	err := g.d.call(peerCanAccess, uintptr(unsafe.Pointer(&can)), uintptr(g.handle), uintptr(other.handle))
	return can != 0, err
}

// arch names the instruction set. HIP has it only in a structure whose layout changes between releases, so it is read where the kernel driver
// shows it; "" where it does not (Windows, or a container without /sys/class/kfd).
func (g *Device) arch() (string, error) {
	if g.d.api == HIP {
		return kfdArch(kfdNodes, g.PCI), nil
	}
	major, err := g.Attribute(Major)
	if err != nil {
		return "", err
	}
	minor, err := g.Attribute(Minor)
	return fmt.Sprintf("sm_%d%d", major, minor), err
}

const kfdNodes = "/sys/class/kfd/kfd/topology/nodes"

// kfdArch finds the node of a PCI address. gfx_target_version is major*10000 + minor*100 + stepping, the last two written in hexadecimal:
// 90010 is gfx90a. Partitions of a card share its address: some kernels count them in the function, where some runtimes say 0, so the function is
// left out where no node has it.
func kfdArch(nodes, pci string) (near string) {
	files, _ := filepath.Glob(filepath.Join(nodes, "*", "properties"))
	card, _, _ := strings.Cut(pci, ".")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		fields := map[string]int64{}
		for line := range strings.Lines(string(data)) {
			if name, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
				fields[name], _ = strconv.ParseInt(value, 10, 64)
			}
		}
		at, v := fields["location_id"], fields["gfx_target_version"]
		address := fmt.Sprintf("%04x:%02x:%02x", fields["domain"], at>>8&0xff, at>>3&0x1f)
		if v == 0 || !strings.EqualFold(address, card) {
			continue
		}
		near = fmt.Sprintf("gfx%d%x%x", v/10000, v/100%100, v%100)
		if strings.EqualFold(fmt.Sprintf("%s.%x", address, at&7), pci) {
			return near
		}
	}
	return near
}
