package device

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ossrun/ossrun/assets"
	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/gpu/kernels"
)

// The kernels in a card's memory. Machine code for exactly this card is loaded whole. If there is
// none, or the driver refuses it, each kernel's PTX is cut out and compiled on first use.

// modules are the loaded kernels of a device. They are guarded by the device's lock, or by the
// device not being in use yet.
type modules struct {
	ctx       *driver.Context
	ptx       []byte // nil if a whole image is loaded
	loaded    []*driver.Module
	functions map[string]*driver.Function
	from      string // the loaded image, for people
	arch      kernels.Arch
}

// loadModules chooses and loads the kernels for a card; a is the artefact's architecture.
func loadModules(ctx *driver.Context, arch string, a kernels.Arch) (m *modules, err error) {
	m = &modules{ctx: ctx, functions: map[string]*driver.Function{}, arch: a}
	refused := ""
	if c, ok := kernels.CubinFor(arch); ok && c.From == a.Name {
		image, err := c.Read(assets.Kernels)
		if err != nil {
			return nil, err
		}
		if err = m.loadImage(image); err == nil {
			m.from = "machine code " + c.Name
			return m, nil
		}
		e, ok := errors.AsType[*driver.Error](err)
		if !ok || !slices.Contains(imageErrors, e.Code) {
			return nil, err
		}
		refused = fmt.Sprintf(" (it refused the machine code for %s: %v)", c.Name, err)
	}
	if text, ok := kernels.TextFor(arch); ok {
		a, m.arch = text, text
	}
	image, err := a.Read(assets.Kernels)
	if err != nil {
		return nil, fmt.Errorf("the kernels for %s: %w", a.Name, err)
	}
	if a.Vendor == kernels.AMD {
		m.from = "code object " + a.Name
		return m, m.loadImage(image)
	}
	m.from, m.ptx = "PTX "+a.Name+", compiled by the driver"+refused, image
	// one small kernel that every step has shows whether the driver compiles this PTX
	_, err = m.function("embed")
	return m, err
}

// imageErrors are about the image, not the request: invalid, no binary, PTX twice, invalid source.
var imageErrors = []int{200, 209, 218, 222, 300}

func (m *modules) loadImage(image []byte) error {
	loaded, err := m.ctx.Load(image)
	if err != nil {
		return err
	}
	m.loaded = append(m.loaded, loaded)
	return nil
}

func (m *modules) function(name string) (*driver.Function, error) {
	if f := m.functions[name]; f != nil {
		return f, nil
	}
	if m.ptx != nil {
		one, err := kernels.Only(m.ptx, name)
		if err != nil {
			return nil, err
		}
		if err := m.loadImage(one); err != nil {
			return nil, fmt.Errorf("compile kernel %s: %w", name, err)
		}
	}
	f, err := m.loaded[len(m.loaded)-1].Function(name)
	if err != nil {
		return nil, err
	}
	m.functions[name] = f
	return f, nil
}

func (m *modules) close() (err error) {
	for _, loaded := range m.loaded {
		err = errors.Join(err, loaded.Close())
	}
	m.loaded = nil
	return err
}

// Kernels is the source of the card's loaded kernels: "machine code sm_90a".
func (d *Device) Kernels() string { return d.kernels.from }
