// What a GPU's matrix unit does, as doctor --selftest measures and shows it.

package cli

import (
	"fmt"
	"io"

	"github.com/ossrun/ossrun/gpu/device"
)

// matrixRates times the products of a card of this process. peak is the rate in float32's accuracy, which is how the operations are computed; 0 where it
// was not measured.
func (r *doctorReport) matrixRates(out io.Writer, dev gpuUnderTest) (peak float64, err error) {
	card, here := dev.(interface{ MatrixRates() ([]device.Rate, error) })
	if !here {
		fmt.Fprintln(out, "matrices: their rate is not measured through the worker")
		return 0, nil
	}
	if r.Matrix, err = card.MatrixRates(); err != nil {
		return 0, err
	}
	for i, x := range r.Matrix {
		if i == 0 {
			peak = x.TFLOPs
		}
		fmt.Fprintf(out, "matrices: %.1f TFLOP/s, %s, %d by %[3]d by %[3]d\n", x.TFLOPs, x.Product, x.Side)
	}
	return peak, nil
}
