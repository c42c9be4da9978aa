package device

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/ossrun/ossrun/gpu/kernels"
)

// The rate of a matrix unit that nothing keeps waiting: a loop of products of random numbers that
// stay where the unit reads them (gpu/kernels/matrix_rate.cu). The kernels' rates are shown as a
// percentage of it. The loop uses the same instruction as the kernels: a card with a wider one can
// reach more with that.

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

func (d *Device) timeUnit(u kernels.Unit, loop kernels.Rate, blocks,
	rounds int) (best time.Duration, err error) {
	h := holding{d: d}
	defer func() { err = errors.Join(err, h.close()) }()
	random := rand.New(rand.NewPCG(5, 5))
	var at []kernels.Pointer
	for i, bytes := range loop.Operands {
		var data []byte
		for j := range bytes / 2 {
			word := randomBF16(random)
			switch {
			case u == kernels.MX && i%2 == 1: // scales of 2^-2 to 2^2
				word = uint16(126+j%4) | uint16(125+j%3)<<8
			case u == kernels.MX:
				word = uint16(random.Uint32())
			}
			data = binary.NativeEndian.AppendUint16(data, word)
		}
		at = append(at, h.upload(data))
	}
	sums := h.region(int64(blocks) * int64(loop.Sums))
	return h.time(d.target.MatrixRate(u, blocks, sums.at, at, rounds))
}
