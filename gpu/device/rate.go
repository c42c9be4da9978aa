package device

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/gpu/kernels"
	"github.com/ossrun/ossrun/runtime/engine"
)

// Measures the best rate at which the card multiplies: each matrix unit in a bare loop, and each of
// the kernels for many rows in a square product of random numbers, large enough to fill the card
// and to read each number often.

// Rate is a kind of product and the rate that it reached.
type Rate struct {
	Product string `json:"product"`
	Side    int    `json:"side"` // rows, columns and length of the sums
	// of the product: a multiplication and an addition count as two, whatever else the kernel does
	TFLOPs     float64 `json:"tflop_s"`
	Unit       string  `json:"unit"`         // the matrix unit
	UnitTFLOPs float64 `json:"unit_tflop_s"` // of that unit in a bare loop
	// of UnitTFLOPs: with three terms at most a third, with two terms a half
	Percent float64 `json:"percent_of_unit"`
}

type rateKernel struct {
	name   string
	unit   kernels.Unit
	launch func(side int, o operands) kernels.Launch
}

// operands are memory in which each kernel finds numbers of its types; count, order and groups give
// all rows to one expert, number 0.
type operands struct{ count, order, groups, bias, scales, x, w, y kernels.Pointer }

// squares are the products of this card, one for each form in which activations reach its unit.
func (d *Device) squares() []rateKernel {
	kernel := func(name string, w multiplier, kind engine.Kind) rateKernel {
		t := d.target
		t.Unit = w.unit
		return rateKernel{name, w.unit, func(side int, o operands) kernels.Launch {
			return t.PrefillLinears([]kernels.Product{{Rows: kernels.Rows{Live: o.count,
				Most: side}, Y: o.y, X: o.x, W: o.w, K: side, N: side, Stride: side,
				Weights: string(onQ8[kind])}}, w.terms, kernels.Scratch{})
		}}
	}
	list := []rateKernel{kernel("bf16, three terms", unrounded, engine.Linear),
		kernel("bf16", rounded, engine.Linear), kernel("8-bit weights", rounded, engine.LinearQ8)}
	switch d.target.Unit {
	case kernels.WGMMA:
		list = append(list, kernel("bf16 by warpgroups", warpgroups, engine.Linear))
	case kernels.MX:
		list = append(list, rateKernel{"MXFP4 by two terms of MXFP4", kernels.MX,
			func(side int, o operands) kernels.Launch {
				codes, _ := kernels.TermsMXBytes(side, side)
				return d.target.PrefillExperts(kernels.Experts{Slots: side, Experts: 1, To: o.y,
					Order: o.order, Groups: o.groups,
					From: kernels.Activations{Q: o.x, D: o.x + kernels.Pointer(codes)},
					W:    kernels.ExpertMatrix{Blocks: o.w, Scales: o.scales, Bias: o.bias},
					N:    side, K: side}, kernels.Rounded)
			}})
	}
	return list
}

// MatrixRates measures all of them. A product grows until it takes long enough to be timed, or
// fills a quarter of the free memory.
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

func (d *Device) timeSquare(s rateKernel, side int) (best time.Duration, err error) {
	h := resources{d: d}
	defer func() { err = errors.Join(err, h.close()) }()
	ints := func(v ...int32) kernels.Pointer { return h.upload(engine.Bytes(v)) }
	order := make([]int32, side)
	for i := range order {
		order[i] = int32(i)
	}
	n := int64(side)
	o := operands{count: ints(int32(side)), order: ints(order...),
		groups: ints(1, 0, int32(side)), bias: h.random(2 * n),
		scales: h.random(2 * n * n), x: h.random(4 * n * n), w: h.random(2 * n * n),
		y: h.region(4 * n * n).address}
	return h.time(s.launch(side, o))
}

// random makes memory of random bf16 numbers between -2 and 2: as 8-bit numbers and MXFP4 they are
// random too. Zeros would flatter the card.
func (h *resources) random(bytes int64) kernels.Pointer {
	r := h.region(bytes)
	if h.err == nil {
		h.err = h.d.scatter(r)
	}
	return r.address
}

func (d *Device) scatter(r *region) error {
	random := rand.New(rand.NewPCG(7, 7))
	piece := make([]uint16, min(1<<19, r.bytes/2))
	for i := range piece {
		piece[i] = randomBF16(random)
	}
	if err := r.Write(0, engine.Bytes(piece)); err != nil {
		return err
	}
	return d.wait(func() error {
		for have := int64(2 * len(piece)); have < r.bytes; have *= 2 {
			if err := d.stream.Copy(r.address+driver.Pointer(have), r.address,
				min(have, r.bytes-have)); err != nil {
				return err
			}
		}
		return nil
	})
}

// randomBF16 is a number between -2 and 2.
func randomBF16(random *rand.Rand) uint16 {
	return uint16(math.Float32bits(random.Float32()*4-2) >> 16)
}

// The rate of a matrix unit that nothing keeps waiting, by the kernels' instruction: products of
// random numbers that stay where the unit reads them (gpu/kernels/matrix_rate.cu). The kernels'
// rates are shown as a percentage of it.

var unitNames = map[kernels.Unit]string{kernels.MMA: "bf16 by a warp",
	kernels.WGMMA: "bf16 by a warpgroup", kernels.MX: "MXFP4 by MXFP4"}

// unitRate counts multiplications and additions a second. Launches grow until one takes long
// enough: first to more blocks, until they fill the card, then to more rounds. In emulation a few
// blocks are enough.
func (d *Device) unitRate(u kernels.Unit, enough time.Duration) (rate float64, err error) {
	// share: blocks per multiprocessor, more than it holds at once
	const share, grow, mostRounds = 4, 4, 1 << 24
	loop, all := d.target.Rate(u), share*max(d.target.Processors, 1)
	for blocks, rounds := 1, 1; rounds <= mostRounds; {
		took, err := d.timeUnit(u, loop, blocks, rounds)
		if err != nil {
			return 0, err
		}
		if took > 0 {
			rate = max(rate, 2*float64(loop.Multiplications)*float64(blocks)*float64(rounds)/
				took.Seconds())
		}
		if took >= enough {
			return rate, nil
		}
		if blocks < all {
			blocks = min(grow*blocks, all)
		} else {
			rounds *= grow
		}
	}
	return 0, fmt.Errorf("%d rounds of the loop took less than %v: it did not run", mostRounds,
		enough)
}

func (d *Device) timeUnit(u kernels.Unit, loop kernels.RateLoop, blocks,
	rounds int) (best time.Duration, err error) {
	h := resources{d: d}
	defer func() { err = errors.Join(err, h.close()) }()
	random := rand.New(rand.NewPCG(5, 5))
	operands := []any{h.region(int64(blocks) * int64(loop.Sums)).address}
	for i, bytes := range loop.Operands {
		data := make([]uint16, bytes/2)
		for j := range data {
			switch {
			case u == kernels.MX && i%2 == 1: // scales of 2^-2 to 2^2
				data[j] = uint16(126+j%4) | uint16(125+j%3)<<8
			case u == kernels.MX:
				data[j] = uint16(random.Uint32())
			default:
				data[j] = randomBF16(random)
			}
		}
		operands = append(operands, h.upload(engine.Bytes(data)))
	}
	return h.time(d.target.MatrixRate(u, blocks, operands, rounds))
}
