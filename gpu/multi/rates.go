package multi

import (
	"os"
	"time"

	"github.com/ossrun/ossrun/gpu/device"
	"github.com/ossrun/ossrun/runtime/cpu"
	"github.com/ossrun/ossrun/runtime/engine"
)

// touched is memory whose pages are resident.
func touched() []byte {
	data := make([]byte, 256<<20)
	for i := 0; i < len(data); i += os.Getpagesize() {
		data[i] = 1
	}
	return data
}

// ReadRate is what the host's memory delivers, byte/s; 0: not known.
func ReadRate(host engine.Device) float64 {
	dev, ok := host.(*cpu.Device)
	if !ok {
		return 0
	}
	return dev.Bandwidth(touched())
}

// ratesOf measures, in about a second, what decides between computing experts on the CPU and
// copying them to a card.
func ratesOf(first *device.Card, host engine.Device) (r Rates) {
	data := touched()
	if dev, ok := host.(*cpu.Device); ok {
		r.Bandwidth, r.Multiply = dev.Bandwidth(data), dev.MultiplyPeak(100*time.Millisecond)*
			expertShare
	}
	start := time.Now()
	region, err := first.Upload(data)
	if err != nil {
		return r // not known: nothing is streamed
	}
	r.Link = float64(len(data)) / time.Since(start).Seconds()
	if region.Free() != nil {
		r.Link = 0
	}
	return r
}

// expertShare is how much of the peak of its 8-bit multiplications the CPU's expert kernels are
// assumed to reach.
const expertShare = 0.5
