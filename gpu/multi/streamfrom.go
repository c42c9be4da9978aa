package multi

import (
	"math"
	"os"
	"strings"
	"time"

	"github.com/ossrun/ossrun/gpu/device"
	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/runtime/cpu"
	"github.com/ossrun/ossrun/runtime/engine"
)

// Decides which device computes experts in host memory: few rows on the CPU, which reads only the
// experts that they chose; many rows on the card, to which all experts of a layer are copied.

// Rates are the machine's measured rates; 0: not known.
type Rates struct {
	Link      float64 // byte/s from the host's memory to the card
	Bandwidth float64 // byte/s that the CPU reads
	// operations/s of the CPU in the experts' matrices, a multiplication and an addition being two
	Multiply float64
}

// StreamFrom is the smallest step, in rows, for which copying a layer's experts takes less time
// than computing them on the CPU, not counting the card's, which overlaps; 0 if none or unknown.
func StreamFrom(s models.Spec, r Rates, most int) int {
	if r.Link <= 0 || r.Bandwidth <= 0 || r.Multiply <= 0 {
		return 0
	}
	var bytes float64 // of a layer's experts
	for _, t := range s.Tensors() {
		if strings.HasPrefix(t.Name, "model.layers.0.mlp.experts.") {
			bytes += float64(t.Bytes())
		}
	}
	for rows := 1; rows <= most; rows *= 2 {
		if r.cpu(s, bytes, rows) > bytes/r.Link {
			return rows
		}
	}
	return 0
}

// cpu is the seconds for a layer's experts: of their bytes or their operations, the longer.
func (r Rates) cpu(s models.Spec, bytes float64, rows int) float64 {
	// the share of experts that no row chose, if all are equally likely
	missed := math.Pow(1-float64(s.ExpertsPerToken)/float64(s.Experts), float64(rows))
	operations := 2 * 3 * float64(rows*s.ExpertsPerToken) * float64(s.Hidden) *
		float64(s.Intermediate)
	return max(bytes*(1-missed)/r.Bandwidth, operations/r.Multiply)
}

func residentMemory() []byte {
	data := make([]byte, 256<<20)
	for i := 0; i < len(data); i += os.Getpagesize() {
		data[i] = 1
	}
	return data
}

// ReadRate is the rate at which the host reads its memory, byte/s; 0: not known.
func ReadRate(host engine.Device) float64 {
	dev, ok := host.(*cpu.Device)
	if !ok {
		return 0
	}
	return dev.Bandwidth(residentMemory())
}

// ratesOf measures the rates, in about a second.
func ratesOf(first *device.Card, host engine.Device) (r Rates) {
	data := residentMemory()
	if dev, ok := host.(*cpu.Device); ok {
		r.Bandwidth, r.Multiply = dev.Bandwidth(data), dev.MultiplyPeak(100*time.Millisecond)*
			expertShare
	}
	start := time.Now()
	region, err := first.Upload(data)
	if err != nil {
		return r // not known: nothing is streamed
	}
	r.Link = float64(len(data)) / time.Since(start).Seconds()
	if region.Free() != nil {
		r.Link = 0
	}
	return r
}

// expertShare is how much of the peak of its 8-bit multiplications the CPU's expert kernels are
// assumed to reach.
const expertShare = 0.5
