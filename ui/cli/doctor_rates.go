// What a GPU's matrix units do, as doctor --selftest measures and shows it.

package cli

import (
	"encoding/json"
	"fmt"
	"io"
)

// matrixRates times the card's units, each in a bare loop, and the kernels' products beside them. peak is the bare rate of the unit that the operations
// are computed by; they keep all of float32 in three terms, so a third of it is the most that they can reach.
func (r *doctorReport) matrixRates(out io.Writer, dev gpuUnderTest) (peak float64, err error) {
	text, err := dev.RatesText()
	if err != nil {
		return 0, err
	}
	if err := json.Unmarshal(text, &r.Matrix); err != nil {
		return 0, fmt.Errorf("the rates of the matrix units cannot be read: %w", err)
	}
	shown := map[string]bool{}
	for _, x := range r.Matrix {
		if !shown[x.Unit] {
			shown[x.Unit] = true
			fmt.Fprintf(out, "matrix unit: %.1f TFLOP/s, %s, in a bare loop\n", x.UnitTFLOPs, x.Unit)
		}
	}
	for i, x := range r.Matrix {
		if i == 0 {
			peak = x.UnitTFLOPs
		}
		fmt.Fprintf(out, "matrices: %.1f TFLOP/s, %.1f%% of %s, %s, %d by %[5]d by %[5]d\n", x.TFLOPs, x.Percent, x.Unit, x.Product, x.Side)
	}
	return peak, nil
}
