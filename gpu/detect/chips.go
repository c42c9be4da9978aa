package detect

// The chips that this version knows by PCI id or name. chips.json holds published and recorded
// figures, one object per product; one listed in from_memory is confirmed by no second source and
// shown as "about". What must stay true: nothing here decides how much memory may be used; a chip
// that is not in the list is no error.

import (
	_ "embed"
	"encoding/json"
	"slices"
	"strings"
	"sync"
)

//go:embed chips.json
var chipsJSON []byte

// Chip is one product. Rates are dense; 0: there is no such unit, or it is not known.
type Chip struct {
	ID         string   `json:"id"`
	Vendor     string   `json:"vendor"`
	PCI        []string `json:"pci"` // "10de:2335"
	Names      []string `json:"names"`
	Arch       string   `json:"arch"`          // "sm_90", "gfx942"
	MemoryMiB  int      `json:"memory_mib"`    // as the driver prints it
	Units      int      `json:"units"`         // SMs or CUs
	Bandwidth  float64  `json:"bandwidth_gbs"` // 10^9 byte/s
	BF16       float64  `json:"bf16_tflops"`   // 10^12/s, float32 accumulation
	Int8       float64  `json:"int8_tops"`     // 10^12/s
	FP8        float64  `json:"fp8_tflops"`    // 10^12/s
	FP4        float64  `json:"fp4_tflops"`    // 10^12/s
	Shared     int      `json:"shared_bytes"`  // the most shared memory a block may ask for
	L2         int64    `json:"l2_bytes"`      // bytes
	PeerLink   string   `json:"peer_link"`     // "nvlink", "xgmi", ...; "": PCIe
	PeerGBs    float64  `json:"peer_gbs"`      // both directions together, 10^9 byte/s
	Integrated bool     `json:"integrated"`    // shares the host's memory
	FromMemory []string `json:"from_memory"`   // fields that no second source confirms
}

// Chips lists every chip this version knows.
var Chips = sync.OnceValue(func() []Chip {
	var chips []Chip
	if err := json.Unmarshal(chipsJSON, &chips); err != nil {
		// embedded at build time and parsed in the tests
		panic("gpu/detect: chips.json: " + err.Error())
	}
	return chips
})

// chipOf finds the product of a PCI id ("10de:2335"), among several by units, then memory, or nil.
func chipOf(pci string, units, memoryMiB int) *Chip {
	pci = strings.ToLower(pci)
	return bestMatch(units, memoryMiB, func(c *Chip) bool { return slices.Contains(c.PCI, pci) })
}

// ChipNamed finds the product that a driver calls by name, among several by memory, or nil.
func ChipNamed(name string, memoryMiB int) *Chip {
	return bestMatch(0, memoryMiB, func(c *Chip) bool {
		return slices.ContainsFunc(c.Names,
			func(n string) bool { return strings.EqualFold(n, name) })
	})
}

// bestMatch is the candidate with these figures, the first of equals; nil without candidates. Units
// count more than memory, 0 is unknown.
func bestMatch(units, memoryMiB int, isCandidate func(*Chip) bool) (best *Chip) {
	most := -1
	for i := range Chips() {
		c, score := &Chips()[i], 0
		if units != 0 && c.Units == units {
			score += 2
		}
		if similarMemory(memoryMiB, c.MemoryMiB) {
			score++
		}
		if score > most && isCandidate(c) {
			best, most = c, score
		}
	}
	return best
}

// similarMemory tells if two memory figures can be of one product: a twentieth may be reserved.
func similarMemory(a, b int) bool { return a*20 > b*19 && b*20 > a*19 }

// integratedArchs are the AMD architectures that exist only inside processors.
var integratedArchs = []string{"gfx902", "gfx90c", "gfx1013", "gfx1033", "gfx1035", "gfx1036",
	"gfx1037", "gfx1103", "gfx1150", "gfx1151", "gfx1152", "gfx1153"}

// nameFor is a product's name: the i-th name for the i-th PCI id if there are as many.
func (c *Chip) nameFor(pci string) string {
	if i := slices.Index(c.PCI, strings.ToLower(pci)); i > 0 && len(c.Names) == len(c.PCI) {
		return c.Names[i]
	}
	return c.Names[0]
}

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
	// names of the fields above that no second source confirms
	About []string `json:"unconfirmed,omitempty"`
}

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

// part is the share of a card that a device with so many units has: 1 for more than half of them,
// since a variant with a few units less is a whole card.
func (c *Chip) part(units int) float64 {
	if units > 0 && 2*units <= c.Units {
		return float64(units) / float64(c.Units)
	}
	return 1
}

// Bandwidth is the catalogue's for a device as its driver shows it, byte/s; 0: not known.
func Bandwidth(name string, memoryMiB, units int) float64 {
	c := ChipNamed(name, memoryMiB)
	if c == nil {
		return 0
	}
	return c.Bandwidth * c.part(units) * 1e9
}
