package detect

import "slices"

// What the catalogue says that a device can do. What must stay true: a device that is a part of a
// card (a partition of AMD's, an instance of NVIDIA's) is given its part of the card's figures,
// never all of them; a figure that only memory vouches for says so.

// Figures are a device's, by the catalogue; 0: not known.
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

// figures are those of a device of chip c with so many units.
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

// part is the share of a card that a device with so many units is: 1, unless it has half of them or
// fewer. A variant with a few units less is whole.
func (c *Chip) part(units int) float64 {
	if units > 0 && 2*units <= c.Units {
		return float64(units) / float64(c.Units)
	}
	return 1
}

// Bandwidth is that of a device which its driver calls by name, with so much memory and so many
// units, byte/s; 0: not known.
func Bandwidth(name string, memoryMiB, units int) float64 {
	c := ChipNamed(name, memoryMiB)
	if c == nil {
		return 0
	}
	return c.Bandwidth * c.part(units) * 1e9
}
