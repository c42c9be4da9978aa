package device

import "github.com/ossrun/ossrun/gpu/driver"

// What a plan over several devices asks of a card beside its memory.

// Units are the card's processors: SMs or CUs, those of a partition where it is one.
func (d *Device) Units() int { return d.ctx.Device().Units(d.target.Processors) }

// Integrated tells whether the card's memory is the host's; false where the driver does not answer.
func (d *Device) Integrated() bool {
	is, err := d.ctx.Device().Attribute(driver.Integrated)
	return err == nil && is != 0
}
