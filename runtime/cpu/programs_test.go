package cpu_test

import (
	"fmt"
	"testing"

	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/engine/enginetest"
)

// TestPrograms: whole models; on a CPU nothing may change a bit.
func TestPrograms(t *testing.T) {
	for _, isa := range isas[1:] {
		programs(t, isa)
	}
}

// TestPlainPrograms: the plain loops, which are slow, go through one of the nine; CI's step
// long-forms has all.
func TestPlainPrograms(t *testing.T) { programs(t, isas[0]) }

func programs(t *testing.T, isa string) {
	for threads := 1; threads <= 3; threads++ {
		for _, mode := range [][3]string{{engine.Exact, engine.DenseBF16},
			{engine.Int8, engine.DenseBF16}, {engine.Int8, engine.DenseQ8, engine.KVFP8}} {
			t.Run(fmt.Sprintf("%s/%d threads/%s %s %s", isa, threads, mode[0], mode[1], mode[2]),
				func(t *testing.T) {
					needISA(t, isa)
					if isa == "scalar" && (threads != 2 || mode[0] != engine.Exact) {
						long(t)
					}
					model := []string{"T2", "T1"}[threads%2]
					c := enginetest.Config{Backend: engine.On(open(t, threads)), Dir: testdata +
						model, Options: engine.Settings{Compute: mode[0], Dense: mode[1],
						KVCacheDtype: mode[2], ISA: isa}}
					for _, check := range enginetest.Programs(c) {
						t.Run(check.Name, func(t *testing.T) {
							if err := check.Run(t.Context()); err != nil {
								t.Error(err)
							}
						})
					}
				})
		}
	}
}

// TestIntermediates: T1's prompt of 200, inside.
func TestIntermediates(t *testing.T) {
	for _, isa := range isas {
		t.Run(isa, func(t *testing.T) {
			needISA(t, isa)
			c := enginetest.Config{Backend: engine.On(open(t, 2)), Dir: testdata + "T1",
				Options: engine.Settings{ISA: isa}}
			err := enginetest.Intermediates(t.Context(), c,
				func(name string, worst float64) { t.Logf("%-32s %.2e", name, worst) })
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// TestUnits: angles, SwiGLU and MXFP4 decoding as the references have them.
func TestUnits(t *testing.T) {
	for _, isa := range isas {
		t.Run(isa, func(t *testing.T) {
			needISA(t, isa)
			for _, check := range enginetest.Units(open(t, 2), engine.Settings{ISA: isa}, testdata+
				"units") {
				t.Run(check.Name, func(t *testing.T) {
					if err := check.Run(t.Context()); err != nil {
						t.Error(err)
					}
				})
			}
		})
	}
}
