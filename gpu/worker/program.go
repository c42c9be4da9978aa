package worker

import (
	"encoding/json"
	"fmt"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/runtime/engine"
)

// A program as text: its buffers in a list, regions by number, and operations that name buffers by their place in it.

type programText struct {
	Spec    models.Spec
	Options engine.Settings
	Rows    int
	Buffers []bufferText
	Ops     []opText
	Keep    []int `json:",omitempty"`
}

type bufferText struct {
	Name   string
	Type   engine.Type
	Home   engine.Home
	Extent engine.Extent
	Rows   int    `json:",omitempty"`
	Width  int    `json:",omitempty"`
	Region uint32 `json:",omitempty"` // 0: none
	Offset int64  `json:",omitempty"`
}

type opText struct {
	Kind        engine.Kind
	Label       string
	Layer       int
	Out, In, W  []int     `json:",omitempty"` // -1: no buffer
	Add         bool      `json:",omitempty"`
	Eps         float32   `json:",omitempty"`
	Frequencies []float32 `json:",omitempty"`
	Scale       float32   `json:",omitempty"`
	Window      int       `json:",omitempty"`
	CacheLayer  int       `json:",omitempty"`
	Twin        bool      `json:",omitempty"`
	Limit       float32   `json:",omitempty"`
}

// Bounds of what a program may be, far beyond every model: they keep sizes from overflowing.
const (
	mostRows    = 1 << 16
	mostSide    = 1 << 28
	mostBuffers = 1 << 17
)

// encodeProgram writes p; number gives the worker's number of a region.
func encodeProgram(p *engine.Program, number func(engine.Region) (uint32, error)) ([]byte, error) {
	t := programText{Spec: p.Spec, Options: p.Settings, Rows: p.Rows}
	place := map[*engine.Buffer]int{nil: -1}
	for i, b := range p.Buffers {
		place[b] = i
		x := bufferText{b.Name, b.Type, b.Home, b.Extent, b.Rows, b.Width, 0, b.Offset}
		if b.Region != nil {
			var err error
			if x.Region, err = number(b.Region); err != nil {
				return nil, fmt.Errorf("%s: %w", b.Name, err)
			}
		}
		t.Buffers = append(t.Buffers, x)
	}
	places := func(list []*engine.Buffer) (at []int, err error) {
		for _, b := range list {
			i, ok := place[b]
			if !ok {
				return nil, fmt.Errorf("%s is not a buffer of its program", b.Name)
			}
			at = append(at, i)
		}
		return at, nil
	}
	for _, op := range p.Ops {
		x := opText{Kind: op.Kind, Label: op.Label, Layer: op.Layer, Add: op.Add, Eps: op.Eps, Frequencies: op.Frequencies, Scale: op.Scale, Window: op.Window,
			CacheLayer: op.CacheLayer, Twin: op.Twin, Limit: op.Limit}
		for _, l := range []struct {
			to   *[]int
			list []*engine.Buffer
		}{{&x.Out, op.Out}, {&x.In, op.In}, {&x.W, op.W}} {
			var err error
			if *l.to, err = places(l.list); err != nil {
				return nil, fmt.Errorf("%s: %w", op.Label, err)
			}
		}
		t.Ops = append(t.Ops, x)
	}
	var err error
	if t.Keep, err = places(p.Keep); err != nil {
		return nil, err
	}
	return json.Marshal(t)
}

// decodeProgram makes the program of a text. Its buffers lie in the regions that region finds, whole.
func decodeProgram(text []byte, region func(number uint32) (engine.Region, error)) (*engine.Program, error) {
	var t programText
	if err := json.Unmarshal(text, &t); err != nil {
		return nil, fmt.Errorf("a program that cannot be read: %w", err)
	}
	if t.Rows < 1 || t.Rows > mostRows || len(t.Buffers) > mostBuffers || t.Spec.ExpertsPerToken < 0 || t.Spec.ExpertsPerToken > mostRows {
		return nil, fmt.Errorf("a program of %d rows and %d buffers, %d experts a token", t.Rows, len(t.Buffers), t.Spec.ExpertsPerToken)
	}
	if err := checkSpec(t.Spec); err != nil {
		return nil, err
	}
	p, err := engine.NewProgram(t.Spec, t.Options, t.Rows)
	if err != nil {
		return nil, err
	}
	for _, x := range t.Buffers {
		if err := placeBuffer(p, x, region); err != nil {
			return nil, fmt.Errorf("buffer %q: %w", x.Name, err)
		}
	}
	for _, x := range t.Ops {
		if err := appendOp(p, x); err != nil {
			return nil, fmt.Errorf("operation %q: %w", x.Label, err)
		}
	}
	for _, i := range t.Keep {
		if i < 0 || i >= len(p.Buffers) {
			return nil, fmt.Errorf("buffer %d of %d is kept", i, len(p.Buffers))
		}
		p.Keep = append(p.Keep, p.Buffers[i])
	}
	return p, p.Check()
}

// checkSpec bounds a shape, so that sizes do not overflow and nothing is divided by zero.
func checkSpec(s models.Spec) error {
	for _, side := range []int{s.Layers, s.Hidden, s.Intermediate, s.Heads, s.KVHeads, s.HeadDim, s.Experts, s.ExpertsPerToken, s.Vocab, s.Window, s.MaxPosition} {
		if side < 1 || side > mostPlanned {
			return fmt.Errorf("a model with a side of %d", side)
		}
	}
	if s.Layers > mostLayers || s.ExpertsPerToken > s.Experts || s.HeadDim%2 != 0 {
		return fmt.Errorf("a model of %d layers with %d of %d experts and heads of %d", s.Layers, s.ExpertsPerToken, s.Experts, s.HeadDim)
	}
	return nil
}

// Bounds of a shape: the bytes of all layers stay below 2^63, those of experts in 4 bits with three of the largest sides.
const (
	mostPlanned = 1 << 18
	mostLayers  = 1 << 8
)

func placeBuffer(p *engine.Program, x bufferText, region func(uint32) (engine.Region, error)) error {
	if x.Type > engine.I16 || x.Home > engine.Logits || x.Extent > engine.PerLogit {
		return fmt.Errorf("type %d, home %d, extent %d", x.Type, x.Home, x.Extent)
	}
	if x.Rows < 0 || x.Rows > mostSide || x.Width < 0 || x.Width > mostSide || x.Offset < 0 {
		return fmt.Errorf("%d rows of %d at %d", x.Rows, x.Width, x.Offset)
	}
	if p.Buffer(x.Name) != nil {
		return fmt.Errorf("there are two")
	}
	b := p.Scratch(x.Name, x.Type, x.Extent, x.Width)
	b.Home, b.Rows, b.Offset = x.Home, x.Rows, x.Offset
	switch {
	case x.Region == 0 && x.Home == engine.Logits:
		return nil
	case x.Region == 0:
		return fmt.Errorf("it lies in no region")
	}
	r, err := region(x.Region)
	if err != nil {
		return err
	}
	if need := p.BytesOf(b); b.Offset > r.Bytes()-need {
		return fmt.Errorf("%d bytes at %d of a region of %d", need, b.Offset, r.Bytes())
	}
	b.Region = r
	return nil
}

func appendOp(p *engine.Program, x opText) error {
	if x.Window < 0 || x.CacheLayer < 0 {
		return fmt.Errorf("window %d, layer %d of the cache", x.Window, x.CacheLayer)
	}
	op := engine.Op{Kind: x.Kind, Label: x.Label, Layer: x.Layer, Add: x.Add, Eps: x.Eps, Frequencies: x.Frequencies, Scale: x.Scale, Window: x.Window,
		CacheLayer: x.CacheLayer, Twin: x.Twin, Limit: x.Limit}
	for _, l := range []struct {
		to   *[]*engine.Buffer
		list []int
	}{{&op.Out, x.Out}, {&op.In, x.In}, {&op.W, x.W}} {
		for _, i := range l.list {
			switch {
			case i == -1:
				*l.to = append(*l.to, nil)
			case i < 0 || i >= len(p.Buffers):
				return fmt.Errorf("buffer %d of %d", i, len(p.Buffers))
			default:
				*l.to = append(*l.to, p.Buffers[i])
			}
		}
	}
	p.Append(op)
	return nil
}
