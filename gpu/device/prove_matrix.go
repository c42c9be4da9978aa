package device

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/ossrun/ossrun/gpu/kernels"
	"github.com/ossrun/ossrun/runtime/engine"
)

// Proves fragment layouts on the card: each unit multiplies matrices of integers, whose products
// are exact or wrong. No two rows or columns are alike, so a misplaced fragment shows.

// product is one of these proofs: c [m, n] = a [m, k] times b [n, k], transposed.
type product struct {
	unit    kernels.Unit
	m, n, k int
	a, b    func(row, column int) float64 // elements, as the card has them
	operand [][]byte                      // as they are uploaded, in the order of the launch
}

// proveLayouts returns the first wrong element of each wrong unit; err is of a proof that did not
// run.
func (d *Device) proveLayouts() (wrong map[kernels.Unit]error, err error) {
	list := []product{productBF16(kernels.MMA, 16, 16, 16)}
	switch d.target.Unit {
	case kernels.WGMMA:
		list = append(list, productBF16(kernels.WGMMA, 128, 128, 64))
	case kernels.MX:
		list = append(list, productMX())
	}
	wrong = map[kernels.Unit]error{}
	for _, p := range list {
		bad, err := d.multiply(p)
		if err != nil {
			return nil, withVariants(err, variantsOf(p.unit)...)
		}
		if bad != nil {
			wrong[p.unit] = bad
		}
	}
	return wrong, nil
}

func variantsOf(u kernels.Unit) []Variant {
	return slices.DeleteFunc(Variants(), func(f Variant) bool {
		return !strings.HasPrefix(string(f), "prefill_") || unitOf(f) != u
	})
}

// productBF16 is in bf16, for MMA or WGMMA, which has 64 rows twice.
func productBF16(unit kernels.Unit, m, n, k int) product {
	p := product{unit: unit, m: m, n: n, k: k,
		a: func(row, column int) float64 { return float64((row%64*k+column)*7%31 - 15) },
		b: func(row, column int) float64 { i := row*k + column; return float64((i*i+row)%29 - 14) }}
	pack := func(rows int, element func(int, int) float64) []byte {
		var data []uint16
		for row := range rows {
			for column := range k {
				data = append(data, uint16(math.Float32bits(float32(element(row, column)))>>16))
			}
		}
		return engine.Bytes(data)
	}
	p.operand = [][]byte{pack(min(m, 64), p.a), pack(n, p.b)}
	return p
}

// e2m1 are the magnitudes of MXFP4's codes.
var e2m1 = [8]float64{0, 0.5, 1, 1.5, 2, 3, 4, 6}

// productMX is k = 128 in MXFP4, with a scale of 2^-1 to 2^2 per block; its sums are exact too.
func productMX() product {
	const side, k = 16, 128
	code := func(row, column, odd int) int { i := row*k + column; return (i*odd + i/16 + row) % 16 }
	scale := func(row, block, odd int) int { return 126 + (row*odd+block)%4 }
	value := func(row, column, odd int) float64 {
		c := code(row, column, odd)
		return math.Copysign(math.Ldexp(e2m1[c%8], scale(row, column/32, odd)-127), float64(7-c))
	}
	p := product{unit: kernels.MX, m: side, n: side, k: k,
		a: func(row, column int) float64 { return value(row, column, 7) },
		b: func(row, column int) float64 { return value(row, column, 11) }}
	for _, odd := range []int{7, 11} {
		var codes, scales []byte
		for row := range side {
			for column := 0; column < k; column += 2 {
				codes = append(codes, byte(code(row, column, odd)|code(row, column+1, odd)<<4))
			}
			for block := range k / 32 {
				scales = append(scales, byte(scale(row, block, odd)))
			}
		}
		p.operand = append(p.operand, codes, scales)
	}
	return p
}

func (d *Device) multiply(p product) (wrong, err error) {
	h := resources{d: d}
	defer func() { err = errors.Join(err, h.close()) }()
	sums, loop := make([]float32, p.m*p.n), d.target.Rate(p.unit)
	to := h.region(int64(loop.Sums))
	operands := []any{to.address}
	for i, o := range p.operand { // the loop's other operands are 0
		data := make([]byte, max(len(o), loop.Operands[i]))
		copy(data, o)
		operands = append(operands, h.upload(data))
	}
	if h.err != nil {
		return nil, h.err
	}
	one, err := d.ready(d.target.MatrixRate(p.unit, 1, operands, 1))
	if err != nil {
		return nil, err
	}
	if err := d.wait(func() error { return one.queue(d.stream) }); err != nil {
		return nil, err
	}
	if err := to.Read(0, engine.Bytes(sums)); err != nil {
		return nil, err
	}
	for i := range p.m {
		for j := range p.n {
			want := 0.0
			for k := range p.k {
				want += p.a(i, k) * p.b(j, k)
			}
			if got := sums[i*p.n+j]; float64(got) != want {
				return fmt.Errorf("a product of integers is wrong at row %d, column %d: %v, not "+
					"%v: the fragments have another layout on this GPU", i, j, got, want), nil
			}
		}
	}
	return nil, nil
}
