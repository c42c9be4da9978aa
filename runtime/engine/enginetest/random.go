package enginetest

// A device that gives random logits, so that a sampler's every possible mistake happens sooner or
// later. It computes nothing of the program.

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync/atomic"

	"github.com/ossrun/ossrun/runtime/engine"
)

// RandomOptions say what a Random writes.
type RandomOptions struct {
	Vocab  int
	Seed   uint64
	Likely []Likely
}

// Likely are ids that together get the share Mass of a row's probability, so that messages end and
// documents have structure; the rest is spread over all ids. An id is in one Likely at most.
type Likely struct {
	IDs  []int32
	Mass float64
}

// Random is a Device of the host whose steps give random logits: standard normal ones, with those
// of Likely raised to their mass. As in a model's own logits, most ids of a row are practically
// impossible, and each row has others: of eight blocks of 64 ids seven lie farBelow the rest, so
// they are sampled only if a mask leaves nothing else. The logits differ from step to step, but
// each row is a window of one long table, since a million rows of 201,088 numbers each would take
// hours to make.
type Random struct {
	o      RandomOptions
	table  []float32
	normal []float32
	lift   []float32 // of the ids of each Likely
	rows   atomic.Uint64
}

const (
	blockIDs = 64
	oneIn    = 8    // blocks
	farBelow = 60   // nats; a sampler may leave out tokens this far below its best
	windows  = 1024 // where a row may begin in the table, a block apart
	normals  = 4096 // for the ids of Likely
)

// NewRandom makes one.
func NewRandom(o RandomOptions) *Random {
	r := &Random{o: o, table: make([]float32, o.Vocab+windows*blockIDs),
		normal: make([]float32, normals)}
	rng := rand.New(rand.NewPCG(o.Seed, 1))
	for i := range r.normal {
		r.normal[i] = float32(rng.NormFloat64())
	}
	below := 0.0
	for i := range r.table {
		if i%blockIDs == 0 {
			if below = farBelow; rng.IntN(oneIn) == 0 {
				below = 0
			}
		}
		r.table[i] = float32(rng.NormFloat64() - below)
	}
	rest := 1.0
	for _, l := range o.Likely {
		rest -= l.Mass
	}
	for _, l := range o.Likely {
		r.lift = append(r.lift,
			float32(math.Log(l.Mass/rest*float64(o.Vocab)/oneIn/float64(len(l.IDs)))))
	}
	return r
}

// Rows is how many rows of logits were given.
func (r *Random) Rows() uint64 { return r.rows.Load() }

// Name implements engine.Device.
func (r *Random) Name() string { return "random logits" }

// Memory implements engine.Device.
func (r *Random) Memory() (total, free int64) { return 8 << 30, 8 << 30 }

// Caps implements engine.Device.
func (r *Random) Caps() engine.Caps { return engine.Caps{Computes: []string{engine.Exact}} }

// Alloc implements engine.Device. The region has a size and no memory.
func (r *Random) Alloc(bytes int64) (engine.Region, error) { return emptyRegion(bytes), nil }

// Upload implements engine.Device.
func (r *Random) Upload(data []byte) (engine.Region, error) { return emptyRegion(len(data)), nil }

// Compile implements engine.Device.
func (r *Random) Compile(*engine.Program) (engine.Step, error) { return randomStep{r}, nil }

// Close implements engine.Device.
func (r *Random) Close() error { return nil }

type emptyRegion int64

func (n emptyRegion) Bytes() int64 { return int64(n) }

func (n emptyRegion) Read(offset int64, dst []byte) error { return n.check(offset, dst) }

func (n emptyRegion) Write(offset int64, src []byte) error { return n.check(offset, src) }

func (n emptyRegion) check(offset int64, b []byte) error {
	if offset < 0 || offset+int64(len(b)) > int64(n) {
		return fmt.Errorf("%d bytes at %d are outside a region of %d", len(b), offset, int64(n))
	}
	return nil
}

func (n emptyRegion) Free() error { return nil }

type randomStep struct{ r *Random }

// Forward gives each wanted row another window of the table; the likely ids have a place of their
// own in it.
func (s randomStep) Forward(b *engine.Batch, logits []float32, _ []int64) error {
	r := s.r
	for i := range b.LogitRows {
		n := r.rows.Add(1)
		at := int(scatter(n^r.o.Seed<<32)%windows) * blockIDs
		row := logits[i*r.o.Vocab : (i+1)*r.o.Vocab]
		copy(row, r.table[at:at+r.o.Vocab])
		for g, l := range r.o.Likely {
			for _, id := range l.IDs {
				row[id] = r.normal[scatter(n<<18+uint64(id))%normals] + r.lift[g]
			}
		}
	}
	return nil
}

// scatter mixes a counter to a number that looks random (the finalizer of splitmix64).
func scatter(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func (s randomStep) Close() error { return nil }
