// What a GPU's matrix units do, as doctor --selftest measures and shows it.

package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/ossrun/ossrun/gpu"
)

// matrixRates times the card's units, each in a bare loop, and the kernels' products beside them.
// peak is the bare rate of the unit that the operations are computed by; they keep all of float32
// in three terms, so a third of it is the most that they can reach.
func (r *doctorReport) matrixRates(ctx context.Context, out io.Writer,
	dev *gpu.Backend) (peak float64, err error) {
	if r.Matrix, err = dev.MatrixRates(ctx); err != nil {
		return 0, err
	}
	fmt.Fprintf(out, "%-27s %8s %8s  %s\n", "product of matrices", "TFLOP/s", "of unit", "unit, "+
		"TFLOP/s in a bare loop")
	for i, x := range r.Matrix {
		if i == 0 {
			peak = x.UnitTFLOPs
		}
		fmt.Fprintf(out, "%-27s %8.1f %7.1f%%  %s, %.1f\n", x.Product, x.TFLOPs, x.Percent, x.Unit,
			x.UnitTFLOPs)
	}
	return peak, nil
}
