package multi

import (
	"fmt"
	"math"
	"strings"

	"github.com/ossrun/ossrun/models"
)

// Decides where experts in host memory are computed: few rows on the CPU, which reads only the
// experts that they chose; many rows on the card, to which all experts of a layer are copied.

// Rates are what decides, measured on the machine; 0: not known.
type Rates struct {
	Link      float64 // byte/s from the host's memory to the card
	Bandwidth float64 // byte/s that the CPU reads
	// operations/s of the CPU in the experts' matrices, a multiplication and an addition being two
	Multiply float64
}

// StreamFrom is the smallest step, in rows, for which copying a layer's experts takes less time
// than computing them on the CPU; 0 where there is none, or it is not known. The card's own time is
// left out: it computes one layer while the next one is copied.
func StreamFrom(s models.Spec, r Rates, most int) int {
	if r.Link <= 0 || r.Bandwidth <= 0 || r.Multiply <= 0 {
		return 0
	}
	var bytes float64 // of a layer's experts
	for _, n := range expertBytes(s) {
		bytes = max(bytes, float64(n))
	}
	for rows := 1; rows <= most; rows *= 2 {
		if r.cpu(s, bytes, rows) > bytes/r.Link {
			return rows
		}
	}
	return 0
}

// cpu is the seconds for a layer's experts: the bytes of those that are chosen, or the operations,
// whichever takes longer.
func (r Rates) cpu(s models.Spec, bytes float64, rows int) float64 {
	// the share of experts that no row chose, if all are equally likely
	missed := math.Pow(1-float64(s.ExpertsPerToken)/float64(s.Experts), float64(rows))
	operations := 2 * 3 * float64(rows*s.ExpertsPerToken) * float64(s.Hidden) *
		float64(s.Intermediate)
	return max(bytes*(1-missed)/r.Bandwidth, operations/r.Multiply)
}

// expertBytes are the bytes of each layer's experts.
func expertBytes(s models.Spec) []int64 {
	n := make([]int64, s.Layers)
	for _, t := range s.Tensors() {
		var layer int
		if _, err := fmt.Sscanf(t.Name, "model.layers.%d.", &layer); err == nil &&
			strings.Contains(t.Name, ".mlp.experts.") {
			n[layer] += t.Bytes()
		}
	}
	return n
}
