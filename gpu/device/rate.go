package device

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/gpu/kernels"
)

// What the card multiplies at best, measured on it: each of its matrix units in a bare loop
// (unit_rate.go), and beside that a square product of random numbers by each of the kernels for
// many rows, large enough to fill the card and to read each number often.

// Rate is a kind of product and what it reached.
type Rate struct {
	Product string `json:"product"`
	Side    int    `json:"side"` // rows, columns and length of the sums
	// of the product: a multiplication and an addition count two, whatever the kernel does for them
	TFLOPs     float64 `json:"tflop_s"`
	Unit       string  `json:"unit"`         // what multiplies
	UnitTFLOPs float64 `json:"unit_tflop_s"` // of that unit in a bare loop
	// of UnitTFLOPs: three terms can reach a third, two terms a half
	Percent float64 `json:"percent_of_unit"`
}

// squares are the products of this card, by what of the activations meets its unit.
func (d *Device) squares() (list []square) {
	by := func(w way) square {
		t := d.target
		t.Unit = w.unit
		return square{name: map[string]string{"": "bf16, three terms", "_bf16": "bf16",
			"_wgmma": "bf16 by warpgroups"}[w.suffix], unit: w.unit,
			launch: func(o operands, n int) kernels.Launch {
				return t.PrefillLinear(o.count, n, o.y, o.x, o.w, 0, n, n, n, false, w.terms)
			}}
	}
	list = append(list, by(whole), by(rounded))
	list = append(list, square{"8-bit weights", kernels.MMA,
		func(o operands, n int) kernels.Launch {
			return d.target.PrefillLinearQ8(o.count, n, o.y,
				kernels.Activations{Q: o.x, D: o.scales},
				o.w, 0, n, n, n, false)
		}})
	switch d.target.Unit {
	case kernels.WGMMA:
		list = append(list, by(warpgroups))
	case kernels.MX:
		list = append(list, square{"MXFP4 by two terms of MXFP4", kernels.MX,
			func(o operands, n int) kernels.Launch {
				q, _ := kernels.TermsMXBytes(n, n)
				return d.target.PrefillDownMX(n, 1, o.y, o.order, o.groups,
					kernels.TermsMX{Q: o.x, S: o.x + kernels.Pointer(q)},
					kernels.ExpertMatrix{Blocks: o.w, Scales: o.scales, Bias: o.bias}, n, n)
			}})
	}
	return list
}

type square struct {
	name   string
	unit   kernels.Unit
	launch func(o operands, side int) kernels.Launch
}

// operands lie one behind the other in one region; every kernel finds in them numbers of its own
// type.
type operands struct{ count, order, groups, bias, scales, x, w, y kernels.Pointer }

// MatrixRates measures all of them. A product grows until it takes long enough to be timed, or
// fills a quarter of what is free.
func (d *Device) MatrixRates() (rates []Rate, err error) {
	const enough, first = 4 * time.Millisecond, 128
	bare := map[kernels.Unit]float64{}
	for _, s := range d.squares() {
		if bare[s.unit] == 0 {
			if bare[s.unit], err = d.unitRate(s.unit, enough); err != nil {
				return nil, fmt.Errorf("measure the unit for %s: %w", unitNames[s.unit], err)
			}
		}
		best := Rate{Product: s.name, Unit: unitNames[s.unit], UnitTFLOPs: bare[s.unit] / 1e12}
		for side := first; ; side *= 2 {
			took, err := d.timeSquare(s, side)
			if err != nil {
				return nil, fmt.Errorf("measure a product of %s: %w", s.name, err)
			}
			if rate := 2 * math.Pow(float64(side), 3) / took.Seconds() / 1e12; took > 0 &&
				rate > best.TFLOPs {
				best.Side, best.TFLOPs = side, rate
			}
			if _, free := d.Memory(); took >= enough || 4*squareBytes(2*side) > free ||
				2*side > mostSlots {
				break
			}
		}
		best.Percent = 100 * best.TFLOPs / best.UnitTFLOPs
		rates = append(rates, best)
	}
	return rates, nil
}

// squareBytes is room for the operands: four bytes an element for x, as many for w and all scales,
// as many for y; and the short ones.
func squareBytes(side int) int64 { n := int64(side); return 3*4*n*n + 64*n + 4096 }

func (d *Device) timeSquare(s square, side int) (best time.Duration, err error) {
	const rounds = 3
	n := int64(side)
	r, err := d.alloc(squareBytes(side))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, r.Free()) }()
	if err := d.scatter(r); err != nil {
		return 0, err
	}
	at := func(offset int64) kernels.Pointer {
		return kernels.Pointer(r.at) +
			kernels.Pointer(offset)
	}
	small := 4096 + 64*n
	o := operands{count: at(0), groups: at(16), bias: at(4096), order: at(4096 + 2*n), x: at(small),
		w: at(small + 4*n*n), scales: at(small + 6*n*n), y: at(small + 8*n*n)}
	ints := binary.NativeEndian.AppendUint32(nil, uint32(side))
	ints = append(ints, make([]byte, 12)...)
	for _, v := range []uint32{1, 0, uint32(side)} { // one expert, number 0, has all rows
		ints = binary.NativeEndian.AppendUint32(ints, v)
	}
	var order []byte
	for i := range side {
		order = binary.NativeEndian.AppendUint32(order, uint32(i))
	}
	if err := errors.Join(r.Write(0, ints), r.Write(4096+2*n, order)); err != nil {
		return 0, err
	}
	one, err := (&recorder{dev: d}).ready(s.launch(o, side))
	if err != nil {
		return 0, err
	}
	c, err := d.newClock()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	return c.best(rounds, func(s *driver.Stream) error {
		return s.Launch(one.function, one.shape,
			one.args)
	})
}

// scatter fills a region with random bf16 numbers between -2 and 2: as 8-bit numbers and MXFP4 they
// are random too. Zeros would flatter the card.
func (d *Device) scatter(r *region) error {
	random := rand.New(rand.NewPCG(7, 7))
	piece := make([]byte, 0, 1<<20)
	for len(piece) < min(1<<20, int(r.bytes)&^1) {
		piece = binary.NativeEndian.AppendUint16(piece,
			uint16(math.Float32bits(random.Float32()*4-2)>>16))
	}
	if err := r.Write(0, piece); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for have := int64(len(piece)); have < r.bytes; {
		n := min(have, r.bytes-have)
		if err := d.stream.Copy(r.at+driver.Pointer(have), r.at, n); err != nil {
			return err
		}
		have += n
	}
	return d.stream.Synchronize()
}
