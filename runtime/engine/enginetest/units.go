package enginetest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/safetensors"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/engine/golden"
)

// The unit goldens: YaRN angles, clamped SwiGLU and MXFP4 decoding as the reference implementations
// compute them, put through the operations that contain them. A device has no SwiGLU of its own, so
// the matrix in front of it is the identity.

// Units lists the checks; dir is the folder of mxfp4, rope and swiglu.safetensors.
func Units(dev engine.Device, o engine.Settings, dir string) []Check {
	u := units{dev, o, dir}
	return []Check{{"rope", u.rope}, {"swiglu", u.swiglu}, {"mxfp4", u.mxfp4}}
}

type units struct {
	dev engine.Device
	o   engine.Settings
	dir string
}

// run opens the arrays, makes a rig for a shape and closes both.
func (u units) run(name string, s Shape, check func(r *rig, a *golden.Arrays) error) (err error) {
	a, err := golden.OpenArrays(filepath.Join(u.dir, name+".safetensors"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	r, err := newRig(u.dev, s.Spec, u.o, s.Rows, name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	return check(r, a)
}

func (u units) rope(context.Context) error {
	s := shape("rope", 13, 64, 64, 1, 1, 64, 1, 1, 1)
	s.Spec.MaxPosition = 131072
	return u.run("rope", s, func(r *rig, a *golden.Arrays) error {
		positions, err := a.Int32("positions")
		if err != nil {
			return err
		}
		var want [3][]float32
		for i, name := range []string{"inv_freq_f32", "cos_f32", "sin_f32"} {
			if want[i], err = a.Float32(name); err != nil {
				return err
			}
		}
		frequencies, _ := models.Frequencies(s.Spec)
		for i, f := range frequencies {
			if f != want[0][i] {
				return fmt.Errorf("frequency %d is %v, not %v", i, f, want[0][i])
			}
		}
		angles := r.p.Scratch("a", engine.F32, engine.PerRow, s.Spec.HeadDim)
		r.p.Angles(angles)
		b := &engine.Batch{Tokens: make([]int32, len(positions))}
		table := make([]int32, s.Spec.MaxPosition/engine.PageTokens)
		for _, p := range positions {
			b.Seqs = append(b.Seqs, engine.SeqRows{Start: p, Rows: 1, Full: table, Window: table})
		}
		got, err := r.after(b, angles, len(positions))
		if err != nil {
			return err
		}
		var e worst
		half := s.Spec.HeadDim / 2
		for i := range positions {
			for j := range half {
				e.add(got[i*2*half+j], float64(want[1][i*half+j]), 1)
				e.add(got[i*2*half+half+j], float64(want[2][i*half+j]), 1)
			}
		}
		return e.within(3e-7)
	})
}

// within returns a Go error if the numeric error is too large.
func (w worst) within(bound float64) error {
	if !(float64(w) <= bound) {
		return fmt.Errorf("error %.3g, allowed %.3g", float64(w), bound)
	}
	return nil
}

func (u units) swiglu(context.Context) error {
	const n = 256
	return u.run("swiglu", shape("swiglu", 1, 2*n, n, 1, 1, 32, 1, 1, 1),
		func(r *rig, a *golden.Arrays) error {
			in, err := a.Float32("gate_up")
			if err != nil {
				return err
			}
			want, err := a.Float32("out_f32")
			if err != nil {
				return err
			}
			if len(in) != 2*n || len(want) != n {
				return fmt.Errorf("%d values in and %d out", len(in), len(want))
			}
			h := r.p.Scratch("h", engine.F32, engine.PerSlot, n)
			routes, _ := r.routed()
			identity := make([]byte, 2*n*n)
			for i := range 2 * n {
				identity[i*n+i/2] = 2 << (i % 2 * 4) // code 2 is 1
			}
			one := make([]byte, 2*n*n/16)
			for i := range one {
				one[i] = 127
			}
			m := engine.ExpertMatrix{
				Blocks: r.upload("blocks", engine.U8, 2*n, n, identity),
				Scales: r.upload("scales", engine.U8, 2*n, n/16, one),
				Bias:   r.upload("bias", engine.BF16, 1, 2*n, make([]byte, 4*n)),
			}
			r.p.GateUp("gate_up", h, routes, []*engine.Buffer{r.fill("x", engine.PerRow, 2*n, in)},
				m)
			got, err := r.after(r.plainBatch(), h, 1)
			if err != nil {
				return err
			}
			var e worst
			for i := range want {
				e.add(got[i], float64(want[i]), math.Max(1, math.Abs(float64(want[i]))))
			}
			return e.within(5e-7)
		})
}

// mxfp4: unit vectors through down, so that each result is one weight. Blocks with a value beyond
// float32 are left out: 0 times infinity.
func (u units) mxfp4(context.Context) error {
	const rows, width = 64, 32
	return u.run("mxfp4", shape("mxfp4", width, rows, width, 1, 1, 32, 1, 1, 1),
		func(r *rig, a *golden.Arrays) error {
			blocks, err1 := a.Bytes("blocks", safetensors.U8)
			scales, err2 := a.Bytes("scales", safetensors.U8)
			want, err3 := a.Float32("values_f32")
			if err := errors.Join(err1, err2, err3); err != nil {
				return err
			}
			if len(blocks) != rows*width/2 || len(scales) != rows || len(want) != rows*width {
				return fmt.Errorf("%d bytes of blocks, %d of scales, %d values", len(blocks),
					len(scales), len(want))
			}
			routes, _ := r.routed()
			unit := make([]float32, width*width)
			for i := range width {
				unit[i*width+i] = 1
			}
			m := engine.ExpertMatrix{
				Blocks: r.upload("blocks", engine.U8, rows, width/2, blocks),
				Scales: r.upload("scales", engine.U8, rows, 1, scales),
				Bias:   r.upload("bias", engine.BF16, 1, rows, make([]byte, 2*rows)),
			}
			y := r.p.Scratch("y", engine.F32, engine.PerSlot, rows)
			r.p.Down("down", y, routes, []*engine.Buffer{r.fill("h", engine.PerSlot, width, unit)},
				m)
			got, err := r.after(r.plainBatch(), y, width)
			if err != nil {
				return err
			}
			compared := 0
			for row := range rows {
				finite := true
				for _, v := range want[row*width : (row+1)*width] {
					finite = finite && !math.IsInf(float64(v), 0)
				}
				if !finite {
					continue
				}
				compared++
				for i := range width {
					if w, g := want[row*width+i], got[i*rows+row]; w != g {
						return fmt.Errorf("block %d, scale %d, element %d: %v, not %v", row,
							scales[row], i, g, w)
					}
				}
			}
			if compared < rows/2 {
				return fmt.Errorf("only %d blocks are finite", compared)
			}
			return nil
		})
}
