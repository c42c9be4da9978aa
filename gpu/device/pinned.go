package device

import (
	"errors"

	"github.com/ossrun/ossrun/gpu/driver"
)

// Pinned memory that a queue copies from while the host goes on. What must stay true: it is not
// written, and not freed, before the mark behind the last copy out of it has been passed.

// pinned is such memory with its mark.
type pinned struct {
	memory *driver.HostMemory
	copied *driver.Event
}

// pin makes it, of so many bytes. What it made before it failed is in p still: close frees it.
func (p *pinned) pin(d *Device, bytes int) (err error) {
	if p.memory, err = d.ctx.AllocHost(bytes); err != nil {
		p.memory = nil
		return err
	}
	if p.copied, err = d.ctx.NewEvent(false); err != nil {
		p.copied = nil
	}
	return err
}

// close frees what there is.
func (p *pinned) close() error {
	var errs []error
	if p.memory != nil {
		errs = append(errs, p.memory.Free())
	}
	if p.copied != nil {
		errs = append(errs, p.copied.Close())
	}
	return errors.Join(errs...)
}
