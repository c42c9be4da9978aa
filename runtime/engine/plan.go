package engine

import "github.com/ossrun/ossrun/models"

// Memory is planned, not guessed: an engine's use, to the byte, before it is made.

type Plan struct {
	Weights   int64 // views of the checkpoint if the device shares the host's memory
	Experts   int64 // of Weights: the matrices of all experts
	PageBytes int64 // one KV page
	Pages     int
	Scratch   int64 // activations of the largest step, taps included
}

func (p Plan) KV() int64 { return p.PageBytes * int64(p.Pages) }

func (p Plan) Total() int64 { return p.Weights + p.KV() + p.Scratch }

// PlanFor computes the memory that New will use for a model of shape s.
func PlanFor(s models.Spec, o Settings) (Plan, error) {
	p, err := Record(s, o, o.Rows())
	if err != nil {
		return Plan{}, err
	}
	return planOf(p), nil
}

func planOf(p *Program) Plan {
	plan := Plan{PageBytes: PageBytes(p.Spec, p.Settings.KVCacheDtype), Pages: p.Settings.Pages,
		Scratch: p.Layout()}
	for _, b := range p.Buffers {
		if b.Home == Weight {
			plan.Weights += p.BytesOf(b)
		}
	}
	for _, op := range p.Ops {
		if op.Kind == GateUp || op.Kind == Down {
			plan.Experts += p.BytesOf(op.W[0]) + p.BytesOf(op.W[1])
		}
	}
	return plan
}

// align is the alignment of scratch buffers: a cache line, and the widest vector.
const align = 64

// Layout gives every scratch buffer its offset in one arena and returns the arena's size.
func (p *Program) Layout() int64 {
	var offset int64
	for _, b := range p.Buffers {
		if b.Home == Scratch {
			b.Offset = offset
			offset += (p.BytesOf(b) + align - 1) / align * align
		}
	}
	return offset
}
