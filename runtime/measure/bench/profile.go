package bench

// The time of a step by kind of operation. Single operations are timed inside of a step, with
// weights as cold as in real use: a loop over one would find them in a cache.

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/serve"
)

const profiled = 3

// profile times every operation of a step some times and adds up those of one name; medians count.
// split separates full and windowed attention. The limits are measured after each time.
func (b *run) profile(x *engine.Batch, times int, split bool) (list []Operation,
	experts float64) {
	place, places := map[string]int{}, make([]int, len(b.program.Ops)) // in list
	for i, op := range b.program.Ops {
		name := operationName(op, split)
		if _, ok := place[name]; !ok {
			place[name] = len(list)
			list = append(list, Operation{Name: name})
		}
		places[i] = place[name]
	}
	var limits, peaks []float64
	took := make([][]float64, len(list)) // milliseconds, each time
	for range times {
		timings := b.timed(x)
		peak, _ := b.peak()
		limits, peaks = append(limits, b.read()), append(peaks, peak)
		if experts = b.expertsRead(x); b.err != nil {
			return nil, 0
		}
		sums := make([]float64, len(list))
		for i, slot := range places {
			sums[slot] += float64(timings[i].Nanoseconds) / 1e6
		}
		for slot, sum := range sums {
			took[slot] = append(took[slot], sum)
		}
	}
	work, total := b.program.WorkOf(x), 0.0
	products := make([]float64, len(list))
	for i, op := range b.program.Ops {
		list[places[i]].Bytes += b.program.BytesWith(op, work, experts)
		products[places[i]] += float64(operations(b.program, op, work))
	}
	for slot := range list {
		total += median(took[slot])
	}
	for slot := range list {
		o := &list[slot]
		o.Milliseconds, o.Least, o.Most = median(took[slot]), slices.Min(took[slot]),
			slices.Max(took[slot])
		seconds := o.Milliseconds / 1e3
		o.GBPerS, o.TOPS = ratio(float64(o.Bytes), seconds)/1e9, ratio(products[slot], seconds)/1e12
		o.OfRead = ratio(o.GBPerS*1e9, median(limits))
		o.OfMultiply = ratio(o.TOPS*1e12, median(peaks))
		o.Percent = 100 * ratio(o.Milliseconds, total)
	}
	slices.SortStableFunc(list, func(x, y Operation) int {
		return cmp.Compare(y.Milliseconds, x.Milliseconds)
	})
	return list, experts
}

// timed takes a step and returns the time of each of its operations.
func (b *run) timed(x *engine.Batch) (timings []engine.Timing) {
	if b.err == nil {
		timings, b.err = b.eng.Measure(b.ctx, x, b.logits)
	}
	if b.err != nil {
		return make([]engine.Timing, len(b.program.Ops))
	}
	return timings
}

// operationName is the common name of the same operation in all layers.
func operationName(op *engine.Op, split bool) string {
	name := op.Kind.String()
	_, label, inLayer := strings.Cut(op.Label, ".")
	inLayer = inLayer && strings.HasPrefix(op.Label, "layer")
	switch op.Kind {
	case engine.Tap:
		return name
	case engine.Linear, engine.LinearQ8, engine.Norm, engine.Quantize:
		name = op.Label
	}
	if inLayer {
		name = label
	}
	switch {
	case op.Kind == engine.Quantize:
		name = "quantize " + name
	case op.Kind == engine.Attend && split && op.Window > 0:
		name += " window"
	case op.Kind == engine.Attend && split:
		name += " full"
	}
	return name
}

// operations are the multiplications and additions of an operation in a step: those of its
// matrices, and of attention's two products over the positions that its rows see.
func operations(p *engine.Program, op *engine.Op, w engine.Work) int64 {
	if op.Kind != engine.Attend {
		return p.Flops(op, w)
	}
	positions := w.Full
	if op.Window > 0 {
		positions = w.Window
	}
	return 4 * positions * int64(p.Spec.Heads*p.Spec.HeadDim)
}

// OpsReport is one run of bench ops.
type OpsReport struct {
	Report
	Steps []StepProfile `json:"steps"`
}

// StepProfile is a kind of step by operation, all layers together, the slowest first.
type StepProfile struct {
	Test       string      `json:"test"`
	Rows       int         `json:"rows"`    // tokens of the step
	Context    int         `json:"context"` // tokens in the cache before
	Experts    float64     `json:"experts"` // distinct ones a layer read, mean of the layers
	Operations []Operation `json:"operations"`
}

// RunOps measures the operations of steps: one and more sequences decoding, one after each context,
// and a prompt's step at the start and after each context. only are the operations to report, by
// name; none is all. When ctx ends it returns the report so far, and the error.
func RunOps(ctx context.Context, backend engine.Backend, gauge serve.Gauge,
	ckpt *checkpoint.Checkpoint, o Options, only []string) (*OpsReport, error) {
	o.Steps = fewSteps
	b := newRun(ctx, backend, gauge, ckpt, o)
	defer b.close()
	type kind struct {
		name                  string
		sequences, start, row int
	}
	var kinds []kind
	for _, point := range o.points() {
		kinds = append(kinds, kind{point.test(&o), point.sequences,
			max(point.context, firstContext), 1})
	}
	for _, n := range o.Prefill {
		n = min(n, o.Settings.Rows())
		name := fmt.Sprintf("pp%d", n)
		if slices.ContainsFunc(kinds, func(k kind) bool { return k.name == name }) {
			continue // longer prompts are steps of this length
		}
		kinds = append(kinds, kind{name, 1, 0, n})
		for _, c := range o.Contexts {
			kinds = append(kinds, kind{fmt.Sprintf("%s @ d%d", name, c), 1, c, n})
		}
	}
	for _, k := range kinds { // room for a prompt's step after the longest context
		b.o.Prefill = append(slices.Clone(b.o.Prefill), k.start+k.row)
	}
	if err := b.start(); err != nil {
		return nil, err
	}
	report := &OpsReport{Report: b.report}
	if err := CheckOperations(ckpt.Spec, b.eng.Settings(), only); err != nil {
		return nil, err
	}
	for _, k := range kinds {
		x := b.batch(k.sequences, k.start, k.row)
		list, experts := b.profile(x, o.Rounds, true)
		report.ReadGBs, report.PeakTOPS = b.report.ReadGBs, b.report.PeakTOPS
		if b.err != nil {
			return report, b.err
		}
		list = slices.DeleteFunc(list, func(op Operation) bool {
			return op.Name == "tap" || len(only) > 0 && !slices.Contains(only, op.Name)
		})
		report.Steps = append(report.Steps,
			StepProfile{k.name, len(x.Tokens), k.start, experts, list})
		b.o.Progress(k.name)
	}
	report.Resident = residentBytes()
	return report, b.close()
}

// CheckOperations refuses operations that a model's step does not have. It needs no weights.
func CheckOperations(spec models.Spec, s engine.Settings, only []string) error {
	p, err := engine.Record(spec, s, 1)
	if err != nil {
		return err
	}
	var names []string
	for _, op := range p.Ops {
		if name := operationName(op, true); name != "tap" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, name := range only {
		if !slices.Contains(names, name) {
			return fmt.Errorf("unknown operation %q. Use for example qkv, gate_up or "+
				"\"attend full\"; ossrun bench ops lists all", name)
		}
	}
	return nil
}
