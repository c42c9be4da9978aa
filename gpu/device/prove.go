package device

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/ossrun/ossrun/gpu/kernels"
	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/models/q8"
	"github.com/ossrun/ossrun/runtime/engine"
)

// Variants are used on a card only after they were proved right on it. A small model of random
// weights goes through its phases one by one: each variant runs, memory is restored, the reference
// kernels run, and the results are compared. Products of integers prove fragment layouts.

// Proof is the result of one variant on this card.
type Proof struct {
	Variant Variant `json:"variant"`
	// worst difference to the reference kernels, relative to the largest value of the buffer
	Error float64 `json:"error"`
	Bound float64 `json:"bound"` // the most that rounding can cause
	OK    bool    `json:"ok"`
	Why   string  `json:"why,omitempty"` // the failure

	// result of its matrix unit on products of integers: "exact" or "wrong"; "": it has no own unit
	Fragments string `json:"fragments,omitempty"`
}

// proofBound is how far float32 sums of a few hundred terms may differ in another order. A bf16
// cache rounds to steps of 2^-8, one of 8 bits to steps of 2^-3. Matrices that round get round
// activations; attention rounds its probabilities, a pair of experts h, PrefillQKV its norm.
const (
	proofBound  = 2e-5
	insideBound = 1e-2
)

// Trial is the result of one run through a model so far.
type Trial struct {
	Name   string  `json:"name"`
	Proofs []Proof `json:"proofs"` // of its variants, worst first
}

// trial is one run through the small model.
type trial struct {
	name       string
	o          engine.Settings
	rows       int
	layers     int
	multiplier *multiplier // of the matrices of many rows; nil: the mode's
	forced     []Variant
}

// trials lists runs that together reach every variant of this card.
func (d *Device) trials() []trial {
	const few, many = 4, kernels.DecodeRows + 5
	streamed := engine.Settings{KVCacheDtype: "bf16", Compute: engine.Rounded}
	fp8 := engine.Settings{KVCacheDtype: engine.KVFP8}
	eight := engine.Settings{KVCacheDtype: engine.KVFP8, Dense: engine.DenseQ8}
	list := []trial{
		{"few rows, f32 cache", engine.Settings{KVCacheDtype: "f32"}, few, 2, nil, nil},
		{"few rows, bf16 cache", engine.Settings{KVCacheDtype: "bf16"}, few, 1, nil, nil},
		{"few rows, 8-bit cache", fp8, few, 2, nil, nil},
		{"few rows on the unit", fp8, kernels.DecodeRows, 2, nil, []Variant{QKVUnit, LinearUnit}},
		{"few rows on the unit, f32 cache", engine.Settings{KVCacheDtype: "f32"},
			kernels.DecodeRows, 1, nil, []Variant{QKVUnit, LinearUnit}},
		{"many rows, three terms", engine.Settings{KVCacheDtype: "bf16"}, many, 2, &unrounded,
			[]Variant{PrefillLinear}},
		{"many rows, rounded", streamed, many, 2, &rounded, nil},
		{"few rows, 8-bit weights and cache", eight, few, 2, nil, nil},
		{"many rows, 8-bit weights and cache", eight, many, 2, nil, nil},
		{"many rows, rounded, 8-bit weights and cache", engine.Settings{KVCacheDtype: engine.KVFP8,
			Compute: engine.Rounded, Dense: engine.DenseQ8}, many, 2, &rounded, nil},
		{"few rows, streamed", streamed, few, 1, nil, []Variant{StreamExperts}},
		{"many rows, streamed", streamed, many, 1, nil, []Variant{StreamExperts + "_bf16"}},
	}
	switch d.target.Unit {
	case kernels.WGMMA:
		list = append(list, trial{"many rows, warpgroups", streamed, many, 1, &warpgroups, nil},
			trial{"many rows, 8-bit weights by warpgroups", engine.Settings{KVCacheDtype: "bf16",
				Compute: engine.Rounded, Dense: engine.DenseQ8}, many, 1, nil, nil},
			trial{"many rows, streamed by warpgroups", streamed, many, 1, nil,
				[]Variant{StreamExperts + "_wgmma"}})
	case kernels.MX:
		list = append(list, trial{"many rows, MXFP4", engine.Settings{KVCacheDtype: "bf16",
			Compute: engine.MX}, many, 1, &mxfp4, nil})
	}
	return list
}

// Prove compares every variant with the reference kernels and disables those that are wrong. report
// gets each trial when it has run. The error is of a trial that could not run.
func (d *Device) Prove(ctx context.Context, report func(Trial)) (list []Proof, err error) {
	wrong, err := d.proveLayouts()
	if err != nil {
		return nil, fmt.Errorf("multiply integers: %w", err)
	}
	proofs := map[Variant]*Proof{}
	for _, x := range d.trials() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		x.forced = append([]Variant{}, x.forced...) // nil would be the device's
		v := &prover{resources: resources{d: d}, spec: proofSpec(), times: 1}
		if err := v.run(x); err != nil {
			return nil, fmt.Errorf("hold the kernels to the reference ones, %s: %w", x.name, err)
		}
		report(v.trial(x.name))
		for f, p := range v.proofs {
			if have := proofs[f]; have == nil {
				proofs[f] = p
			} else {
				have.worsen(p.Error, p.Why)
			}
		}
	}
	for _, f := range Variants() {
		p := proofs[f]
		if p == nil {
			continue // not on this card, or out of use already
		}
		p.OK = p.Error <= p.Bound
		if strings.HasPrefix(string(f), "prefill_") {
			p.Fragments = "exact"
			if why := wrong[unitOf(f)]; why != nil {
				p.OK, p.Why, p.Fragments = false, why.Error(), "wrong"
			}
		}
		if !p.OK {
			d.Disable(f)
		}
		list = append(list, *p)
	}
	if d.enabled(Sampling) {
		p, err := d.proveSampling(ctx, startVocab, startRows)
		if err != nil {
			return nil, fmt.Errorf("hold choices to the host's: %w", err)
		}
		if !p.OK {
			d.Disable(Sampling)
		}
		list = append(list, p)
	}
	return list, nil
}

// unitOf is the matrix unit that a variant of many rows uses.
func unitOf(f Variant) kernels.Unit {
	for _, m := range []multiplier{warpgroups, mxfp4} {
		if strings.Contains(string(f), m.suffix) {
			return m.unit
		}
	}
	return kernels.MMA
}

// proofSpec has the published models' heads, and widths that leave every kernel's last tile
// unfilled.
func proofSpec() models.Spec {
	s := models.Spec20B()
	s.Name, s.Layers, s.Hidden, s.Intermediate, s.Heads, s.KVHeads = "proof", 2, 160, 96, 8, 2
	s.Experts, s.ExpertsPerToken, s.Vocab, s.MaxPosition = 6, 3, 200, 600
	return s
}

// prover is a model's memory, and its program compiled both ways.
type prover struct {
	resources
	spec            models.Spec
	times           int // how often each variant runs; every run must give the same bits
	program         *engine.Program
	arena, cache    *region
	fast, reference *step
	batch           *engine.Batch
	ckpt            *checkpoint.Checkpoint
	weights         map[string]engine.Region
	proofs          map[Variant]*Proof
}

func (v *prover) run(x trial) (err error) {
	v.proofs = map[Variant]*Proof{}
	defer func() { err = errors.Join(err, v.close()) }()
	if err := v.open(x); err != nil {
		return err
	}
	return v.compare()
}

func (v *prover) trial(name string) Trial {
	t := Trial{Name: name}
	for _, f := range Variants() {
		if p := v.proofs[f]; p != nil {
			p.OK = p.Why == ""
			t.Proofs = append(t.Proofs, *p)
		}
	}
	slices.SortStableFunc(t.Proofs, func(a, b Proof) int {
		return cmp.Compare(b.Error/b.Bound, a.Error/a.Bound)
	})
	return t
}

// open makes the model and compiles its program both ways.
func (v *prover) open(x trial) (err error) {
	spec := v.spec
	spec.Layers = x.layers
	v.ckpt = acquire(&v.resources, func() (*checkpoint.Checkpoint, error) {
		return checkpoint.Synthetic(spec, 1)
	}, (*checkpoint.Checkpoint).Close)
	if err := v.prepare(spec, x.o, x.rows, max(1, x.rows-1)); err != nil {
		return err
	}
	compile := func(s *step) *step {
		return acquire(&v.resources, func() (*step, error) { return v.d.compile(s) }, (*step).Close)
	}
	v.fast = compile(&step{p: v.program, multiplier: x.multiplier, forced: x.forced})
	v.reference = compile(&step{p: v.program, reference: true})
	return v.err
}

// prepare makes a program of the model for a batch of live rows, and fills its cache with random
// keys and values. The weights stay for the next one.
func (v *prover) prepare(spec models.Spec, o engine.Settings, rows, live int) (err error) {
	if v.weights == nil {
		v.weights = map[string]engine.Region{}
	}
	v.batch, o.Pages = proofBatch(spec, live, o.KVCacheDtype)
	o.MaxNumBatchedTokens = rows
	if v.program, err = engine.Record(spec, o, rows); err != nil {
		return err
	}
	v.arena, v.cache = v.zeroed(v.program.Layout()), v.region(v.program.BytesOf(v.program.KV()))
	if v.err != nil {
		return v.err
	}
	if err := v.cache.Write(0, v.randomCache()); err != nil {
		return err
	}
	for _, b := range v.program.Buffers {
		switch b.Home {
		case engine.Scratch:
			b.Region = v.arena
		case engine.Cache:
			b.Region = v.cache
		case engine.Weight:
			if v.weights[b.Name] == nil {
				v.weights[b.Name] = acquire(&v.resources, func() (engine.Region, error) {
					data, err := v.weight(b.Name)
					if err != nil {
						return nil, err
					}
					return v.d.Upload(data)
				}, engine.Region.Free)
			}
			b.Region = v.weights[b.Name]
		}
	}
	return v.err
}

// weight is a tensor of the model, or its 8-bit copy.
func (v *prover) weight(name string) ([]byte, error) {
	dense, is8 := strings.CutSuffix(name, q8.Suffix)
	t, err := v.ckpt.Tensor(dense)
	if err != nil || !is8 {
		return t.Data, err
	}
	n, k := t.Shape[0], t.Shape[1]
	data := make([]byte, q8.Groups(n)*q8.GroupBytes(k))
	q8.Quantize(data, t.Data, n, k)
	return data, nil
}

// randomCache fills each page with normal values in the page's type. Those of 8 bits are below 2,
// and small ones are as frequent as large ones.
func (v *prover) randomCache() []byte {
	random := rand.New(rand.NewPCG(3, 3))
	data := make([]byte, 0, v.cache.Bytes())
	for page := v.program.PageBytes(); int64(len(data)) < v.cache.Bytes(); {
		t := v.typeOf(int64(len(data)))
		for end := int64(len(data)) + page; int64(len(data)) < end; {
			bits := math.Float32bits(float32(random.NormFloat64()))
			switch t {
			case engine.U8:
				data = append(data, byte(random.Uint32())&0xbf)
			case engine.BF16:
				data = binary.NativeEndian.AppendUint16(data, uint16(bits>>16))
			default:
				data = binary.NativeEndian.AppendUint32(data, bits)
			}
		}
	}
	return data
}

// typeOf is the type at an offset: a cache of 8 bits has the window layers' pages in bf16.
func (v *prover) typeOf(offset int64) engine.Type {
	page := int32(offset / v.program.PageBytes())
	if t := v.program.KV().Type; t != engine.U8 || slices.ContainsFunc(v.batch.Seqs,
		func(q engine.SeqRows) bool { return slices.Contains(q.Full, page) }) {
		return t
	}
	return engine.BF16
}

// compare walks the program. Each phase starts from what the reference kernels left.
func (v *prover) compare() error {
	if err := v.d.wait(func() error { return v.fast.sendState(v.batch, nil) }); err != nil {
		return err
	}
	for i, ph := range v.fast.phases {
		var got [][]byte
		if ph.variant != "" {
			if err := v.round(ph.variant, v.program.Ops[ph.from]); err != nil {
				return err
			}
			arena, cache := make([]byte, v.arena.Bytes()), make([]byte, v.cache.Bytes())
			if err := errors.Join(v.arena.Read(0, arena), v.cache.Read(0, cache)); err != nil {
				return err
			}
			for n := range v.times {
				first := got
				if err := v.d.wait(func() error { return v.fast.launch(i) }); err != nil {
					return withVariants(fmt.Errorf("%s: %w", ph.variant, err), ph.variant)
				}
				var err error
				if got, err = v.read(ph.results); err != nil {
					return err
				}
				if n > 0 {
					v.compareAgain(ph, n, first, got)
				}
				if err := errors.Join(v.arena.Write(0, arena),
					v.cache.Write(0, cache)); err != nil {
					return err
				}
			}
		}
		for j := ph.from; j < ph.to; j++ {
			err := v.d.wait(func() error { return v.reference.launch(j) })
			if next := j + 1; err == nil && ph.form != kernels.InOrder && next < ph.to {
				err = v.round(ph.variant, v.program.Ops[next]) // h
			}
			if err != nil {
				return err
			}
		}
		if ph.variant == "" {
			continue
		}
		want, err := v.read(ph.results)
		if err != nil {
			return err
		}
		for n, b := range ph.results {
			v.compareResults(ph.variant, b, want[n], got[n])
		}
	}
	return nil
}

// round rounds an operation's activations in advance, so that only products are compared.
func (v *prover) round(f Variant, op *engine.Op) error {
	to := toBF16
	switch {
	case unitOf(f) == kernels.MX:
		to = toMXFP4
	case unitOf(f) == kernels.MMA && !strings.HasSuffix(string(f), rounded.suffix):
		return nil
	}
	x := op.In[len(op.In)-1]
	if op.Kind == engine.Attend {
		x = op.In[0]
	}
	data := make([]byte, v.program.BytesOf(x))
	if err := x.Region.Read(x.Offset, data); err != nil {
		return err
	}
	to(engine.Numbers[float32](data))
	return x.Region.Write(x.Offset, data)
}

func (v *prover) read(buffers []*engine.Buffer) (all [][]byte, err error) {
	rows := len(v.batch.Tokens) // fewer may be live than fit
	for _, b := range buffers {
		data := make([]byte, int64(v.program.RowsIn(b, rows, rows)*b.Width)*b.Type.Size())
		from, offset := b.Region, b.Offset
		if b.Home == engine.Logits {
			from, offset = v.fast.logits, 0
		}
		if err := from.Read(offset, data); err != nil {
			return nil, err
		}
		all = append(all, data)
	}
	return all, nil
}

func (v *prover) compareResults(f Variant, b *engine.Buffer, want, got []byte) {
	p := v.proof(f)
	e := difference(b.Type, want, got)
	switch {
	case b.Home == engine.Cache && b.Type == engine.U8:
		e = v.differenceOfPages(want, got)
	case b.Type == engine.BF16:
		e = max(0, e-roundingStep[engine.BF16])
	}
	why := ""
	if !(e <= p.Bound) {
		why = fmt.Sprintf("%s differs from what the reference kernels leave, by %.2g of its "+
			"largest value, in a step of %d rows", b.Name, e, len(v.batch.Tokens))
	}
	p.worsen(e, why)
}

// compareAgain compares a phase's results with the bits of its previous run.
func (v *prover) compareAgain(ph phase, n int, prev, now [][]byte) {
	for i, b := range ph.results {
		if !bytes.Equal(prev[i], now[i]) {
			v.proof(ph.variant).worsen(math.Inf(1), fmt.Sprintf("%s has other bits when it is "+
				"computed again (round %d), in a step of %d rows", b.Name, n+1,
				len(v.batch.Tokens)))
		}
	}
}

// proof is the result of a variant so far. Sums of more terms may differ by more.
func (v *prover) proof(f Variant) *Proof {
	p := v.proofs[f]
	if p == nil {
		terms := float64(v.spec.Hidden) / float64(proofSpec().Hidden)
		p = &Proof{Variant: f, Bound: proofBound * max(1, math.Sqrt(terms))}
		if slices.Contains([]Variant{"prefill_attend_bf16", PrefillGateUp + "_wgmma", PrefillQKV,
			PrefillQKV + "_q8", StreamExperts + "_bf16", StreamExperts + "_wgmma"}, f) {
			p.Bound = insideBound
		}
		v.proofs[f] = p
	}
	return p
}

// worsen adds another difference, with a reason if it is too large.
func (p *Proof) worsen(e float64, why string) {
	p.Why = cmp.Or(p.Why, why)
	if math.IsNaN(e) || math.IsInf(e, 0) {
		e = 1 // off by all; JSON has no other number for it
	}
	p.Error = max(p.Error, e)
}

// roundingStep is the distance of two neighbours of a cache's type, relative to the largest value.
var roundingStep = map[engine.Type]float64{engine.BF16: 1.0 / 128, engine.U8: 1.0 / 8}

// differenceOfPages is the difference of a cache of two types beyond a rounding step.
func (v *prover) differenceOfPages(want, got []byte) float64 {
	most, page := 0.0, v.program.PageBytes()
	for offset := int64(0); offset < int64(len(want)); offset += page {
		t := v.typeOf(offset)
		end := offset + page
		most = max(most, difference(t, want[offset:end], got[offset:end])-roundingStep[t])
	}
	return most
}
