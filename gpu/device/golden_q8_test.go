package device

import (
	"testing"

	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/engine/golden"
)

// TestGoldenQ8: activations and dense weights both in 8 bits, on a short prompt and what follows it: within the bounds of the 8-bit mode, which
// TestGoldenLong judges over all cases.
func TestGoldenQ8(t *testing.T) {
	long(t)
	o := golden.Options{Only: []string{"len31"}, Engine: engine.Options{Dense: engine.DenseQ8}}
	holdGolden(t, o, driver.CUDA, Options{}, testdata+"T2", []string{engine.Int8})
}
