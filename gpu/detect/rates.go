package detect

import "slices"

// What the catalogue says that a device can do. What must stay true: a device that is a part of a
// card (AMD's partition, NVIDIA's instance) gets its part of the card's figures, never all of them;
// a figure without a second source says so.

// Figures are the catalogue's for a device; 0: not known.
type Figures struct {
	Bandwidth float64 `json:"bandwidth_gbs,omitempty"` // of its memory, 10^9 byte/s
	BF16      float64 `json:"bf16_tflops,omitempty"`   // 10^12/s, dense, float32 accumulation
	// "nvlink", "nvlink-bridge", "nvlink-c2c", "xgmi"; "": PCIe, or not known
	PeerLink string `json:"peer_link,omitempty"`
	// of that link, both directions together, 10^9 byte/s
	PeerGBs float64 `json:"peer_gbs,omitempty"`
	// names of those above that were found in no second source
	About []string `json:"unconfirmed,omitempty"`
}

// figures gives the figures of a device of chip c with so many units.
func (c *Chip) figures(units int) *Figures {
	part := c.part(units)
	f := &Figures{Bandwidth: c.Bandwidth * part, BF16: c.BF16 * part, PeerLink: c.PeerLink,
		PeerGBs: c.PeerGBs}
	for _, name := range []string{"bandwidth_gbs", "bf16_tflops"} {
		if slices.Contains(c.FromMemory, name) {
			f.About = append(f.About, name)
		}
	}
	return f
}

// part is the share of a card that a device with so many units has. It is 1 unless the device has
// half of the units or fewer: a variant with a few units less is a whole card.
func (c *Chip) part(units int) float64 {
	if units > 0 && 2*units <= c.Units {
		return float64(units) / float64(c.Units)
	}
	return 1
}

// Bandwidth is the catalogue's for a device with this driver name, memory and number of units,
// byte/s; 0: not known.
func Bandwidth(name string, memoryMiB, units int) float64 {
	c := ChipNamed(name, memoryMiB)
	if c == nil {
		return 0
	}
	return c.Bandwidth * c.part(units) * 1e9
}
