package enginetest

import (
	"encoding/binary"
	"fmt"

	"github.com/ossrun/ossrun/models/q8"
	"github.com/ossrun/ossrun/runtime/engine"
)

// linear_q8: rows times the 8-bit copy of a dense matrix. The reference multiplies the dequantised
// values, so only the order of the sum may differ: a CPU's of quantised rows, and on a GPU, whose
// unit multiplies bf16, weights rounded to that. The layout here follows the description in
// models/q8 and does not use its code.

// matrixQ8 is a random matrix [n, k] in 8 bits: weights of any size, one block in sixteen with
// scale 0, and zero rows that fill up the last group. A part without a bias is the only one of its
// operation.
func (r *rig) matrixQ8(name string, n, k int, bias bool) (engine.Matrix,
	func(x []float64, row int) (sum, size float64)) {
	data := make([]byte, q8.Groups(n)*q8.GroupBytes(k))
	for row := range n {
		for b := range k / q8.BlockSize {
			scale, weights := blockQ8(data, k, row, b)
			if r.rand.IntN(16) > 0 {
				// 0.002 to 0.008
				binary.LittleEndian.PutUint16(scale, uint16(0x3b00+r.rand.IntN(0x100)))
			}
			for i := range q8.BlockSize {
				*weights(i) = byte(int8(r.rand.IntN(255) - 127))
			}
		}
	}
	m := engine.Matrix{Weight: r.upload(name+q8.Suffix, engine.U8, q8.Groups(n), q8.GroupBytes(k),
		data)}
	add := make([]float64, n)
	if bias {
		var t tensor
		m.Bias, t = r.weight(name+".bias", 1, n)
		add = t.row(0)
	}
	rounds := r.dev.Caps().Discrete // a slow question on a CPU
	return m, func(x []float64, row int) (float64, float64) {
		w := make([]float64, k)
		for b := range k / q8.BlockSize {
			scale, weights := blockQ8(data, k, row, b)
			size := fromBF16(binary.LittleEndian.Uint16(scale))
			for i := range q8.BlockSize {
				v := size * float64(int8(*weights(i)))
				if rounds {
					v = fromBF16(toBF16(float32(v)))
				}
				w[b*q8.BlockSize+i] = v
			}
		}
		return dot(w, x, add[row])
	}
}

// blockQ8 is the place of block b of a row's 32 columns in a matrix of k columns: its scale, and
// each of its weights.
func blockQ8(data []byte, k, row, b int) (scale []byte, weight func(i int) *byte) {
	// four columns of a row, then of the group's next row
	const rowBytes, columnBytes = 4, 4 * q8.GroupRows
	block := data[row/q8.GroupRows*q8.GroupBytes(k)+b*q8.GroupBytes(q8.BlockSize):]
	row %= q8.GroupRows
	return block[2*row:], func(i int) *byte {
		at := i/8*8 + i%2*4 + i%8/2 // the even columns of eight, then the odd ones
		return &block[2*q8.GroupRows+at/4*columnBytes+row*rowBytes+at%4]
	}
}

// dense8 asks for dense weights in 8 bits, and returns a function that gives a row as their
// products see it: on a GPU as it is, else in 8 bits, or in 12 if the device asks for that.
func (r *rig) dense8() (seen func([]float32) []float64) {
	r.p.Settings.Dense = engine.DenseQ8
	r.p.Settings = r.p.Settings.On(r.dev)
	if r.dev.Caps().Discrete {
		return wide
	}
	if r.p.Settings.Dense12 && r.p.Settings.Compute == engine.Exact {
		return func(x []float32) []float64 { return quantised(wide(x), 2047, 1) }
	}
	return func(x []float32) []float64 {
		return quantised(wide(x), 127, r.dev.Caps().Scales)
	}
}

// quantisable are n random values, of whose blocks each has one best scale.
func (r *rig) quantisable(n int) []float32 {
	values, scales := r.normal(n), r.dev.Caps().Scales
	for at := 0; scales > 1 && at < n; at += q8.BlockSize {
		for block := values[at:][:q8.BlockSize]; ; copy(block, r.normal(len(block))) {
			largest := float32(0)
			for _, v := range block {
				largest = max(largest, v, -v)
			}
			if _, clear := chosen(wide(block), largest/127, scales); clear {
				break
			}
		}
	}
	return values
}

func testLinearQ8(r *rig) (float64, error) { return r.linearQ8(false, r.p.Spec.Hidden+5) }

// testLinearQ8In8 has inputs in 8 bits on a device that asks for 12 too.
func testLinearQ8In8(r *rig) (float64, error) {
	r.p.Settings.Compute = engine.Int8
	return r.linearQ8(true, r.p.Spec.Hidden)
}

func testLinearQ8Add(r *rig) (float64, error) { return r.linearQ8(true, r.p.Spec.Hidden) }

func testLinearQ8Parts(r *rig) (float64, error) {
	s := r.p.Spec
	return r.linearQ8(false, s.Heads*s.HeadDim, s.KVHeads*s.HeadDim+1, 3)
}

func (r *rig) linearQ8(add bool, sizes ...int) (float64, error) {
	s, seen, n := r.p.Spec, r.dense8(), 0
	var parts []engine.Matrix
	var refs []reference
	for i, size := range sizes {
		m, ref := r.matrixQ8(fmt.Sprintf("w%d", i), size, s.Hidden, true)
		parts, refs, n = append(parts, m), append(refs, ref), n+size
	}
	in := r.quantisable(r.rows * s.Hidden)
	clear(in[:q8.BlockSize]) // a block without anything in it
	x, y := r.fill("x", engine.PerRow, s.Hidden, in), r.p.Scratch("y", engine.F32, engine.PerRow, n)
	before := make([]float32, r.rows*n)
	if add {
		before = r.normal(r.rows * n)
		r.set(y, before)
	}
	r.p.Dense("dense", y, x, add, parts...)
	return r.compareSums(y, before, in, seen, sizes, refs)
}

func testUnembedQ8In8(r *rig) (float64, error) {
	r.p.Settings.Compute = engine.Int8
	return testUnembedQ8(r)
}

func testUnembedQ8(r *rig) (float64, error) {
	s, seen := r.p.Spec, r.dense8()
	m, ref := r.matrixQ8("w", s.Vocab, s.Hidden, false)
	b := r.plainBatch()
	in := r.quantisable(len(b.LogitRows) * s.Hidden)
	r.p.Dense("unembed", r.p.Logits(), r.fill("x", engine.PerLogit, s.Hidden, in), false, m)
	return r.compareLogits(b, in, seen, ref)
}
