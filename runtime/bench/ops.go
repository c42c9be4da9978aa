package bench

// Single operations: what each one costs inside of a step, where its weights are as cold as they
// are in earnest. A loop over one operation would find them in a cache.

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/runtime/engine"
)

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

// RunOps measures the operations of steps: one and more sequences decoding, one behind each
// context, and a prompt's step at the start and behind each context. only are the operations to
// report, by name; none is all. When ctx ends it returns what it has, and the error.
func RunOps(ctx context.Context, on engine.Backend, gauge Gauge, ckpt *checkpoint.Checkpoint,
	o Options, only []string) (*OpsReport, error) {
	o.Steps = fewSteps
	b := newRun(ctx, on, gauge, ckpt, o)
	defer b.close()
	type kind struct {
		name                  string
		sequences, start, row int
	}
	var kinds []kind
	for _, at := range o.points() {
		kinds = append(kinds, kind{at.test(&o), at.sequences, max(at.context, firstContext), 1})
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
	for _, k := range kinds { // room for a prompt's step behind the longest context
		b.o.Prefill = append(slices.Clone(b.o.Prefill), k.start+k.row)
	}
	if err := b.start(); err != nil {
		return nil, err
	}
	report := &OpsReport{Report: b.report}
	if err := known(b.program, only); err != nil {
		return nil, err
	}
	for _, k := range kinds {
		x := b.batch(k.sequences, k.start, k.row)
		list, experts, err := b.measured(x, o.Rounds, true)
		report.ReadGBs, report.PeakTOPS = b.report.ReadGBs, b.report.PeakTOPS
		if err != nil {
			return report, err
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

func known(p *engine.Program, only []string) error {
	var names []string
	for _, op := range p.Ops {
		if name := operationName(op, true); name != "tap" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, name := range only {
		if !slices.Contains(names, name) {
			return fmt.Errorf("there is no operation %q: %s", name, strings.Join(names, ", "))
		}
	}
	return nil
}
