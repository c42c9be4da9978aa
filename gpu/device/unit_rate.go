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

// What a matrix unit of the card reaches when nothing keeps it waiting: a loop of products of
// random numbers that stay where the unit reads them (gpu/kernels/matrix_rate.cu). It is the
// hundred percent that the kernels are shown in. By the same instruction as theirs: a card that has
// a wider one too reaches more with that.

var unitNames = map[kernels.Unit]string{kernels.MMA: "bf16 by a warp",
	kernels.WGMMA: "bf16 by a warpgroup", kernels.MX: "MXFP4 by MXFP4"}

// unitRate is multiplications and additions a second. Launches grow, first to more blocks until
// they fill the card, then to more rounds, until one takes long enough; by emulation a few blocks
// do.
func (d *Device) unitRate(u kernels.Unit, enough time.Duration) (rate float64, err error) {
	units, err := d.ctx.Device().Attribute(driver.Multiprocessors)
	if err != nil {
		return 0, err
	}
	// share: blocks a multiprocessor, more than are on it at once
	const share, grow, mostRounds = 4, 4, 1 << 24
	loop, all := d.target.Rate(u), share*max(units, 1)
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

func (d *Device) timeUnit(u kernels.Unit, loop kernels.Rate, blocks,
	rounds int) (best time.Duration, err error) {
	random := rand.New(rand.NewPCG(5, 5))
	element := func(int) uint16 { return uint16(math.Float32bits(random.Float32()*4-2) >> 16) }
	if u == kernels.MX {
		element = func(int) uint16 { return uint16(random.Uint32()) }
	}
	scale := func(i int) uint16 { return uint16(126+i%4) | uint16(125+i%3)<<8 } // 2^-2 to 2^2
	var data []byte
	var at [4]int64
	for i, part := range []struct {
		bytes int
		word  func(int) uint16
	}{{loop.A, element}, {loop.AScales, scale}, {loop.B, element}, {loop.BScales, scale}} {
		at[i] = int64(len(data))
		for j := range part.bytes / 2 {
			data = binary.NativeEndian.AppendUint16(data, part.word(j))
		}
	}
	r, err := d.alloc(int64(len(data)) + int64(blocks)*int64(loop.Sums))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, r.Free()) }()
	if err := r.Write(0, data); err != nil {
		return 0, err
	}
	pointer := func(offset int64) kernels.Pointer {
		return kernels.Pointer(r.at) +
			kernels.Pointer(offset)
	}
	l := d.target.MatrixRate(u, blocks, pointer(int64(len(data))), pointer(at[0]), pointer(at[1]),
		pointer(at[2]), pointer(at[3]), rounds)
	one, err := (&recorder{dev: d}).ready(l)
	if err != nil {
		return 0, err
	}
	c, err := d.newClock()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	return c.best(3, func(s *driver.Stream) error {
		return s.Launch(one.function, one.shape,
			one.args)
	})
}
