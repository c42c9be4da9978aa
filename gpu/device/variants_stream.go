package device

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/ossrun/ossrun/gpu/kernels"
	"github.com/ossrun/ossrun/runtime/engine"
)

// The experts of steps of up to some hundred rows, weights as the long side of the product. Steps
// of few rows give the unit two bf16 terms of an activation, larger ones round it.
//
// What must stay true: with drafts they serve all steps of few rows or none (engine.Caps.Alike). If
// no row may depend on its batch, the form that rounds serves steps of any size.

const (
	StreamGateUp Variant = "stream_gate_up" // of rounded activations with the suffix _bf16
	StreamDown   Variant = "stream_down"
)

// forcedKernels is the variable that names variants to use wherever they fit, separated by commas;
// serial among them keeps kernels from overlapping.
const forcedKernels = "OSSRUN_KERNELS"

func readForced() (list []Variant, overlap bool, err error) {
	overlap = true
	for name := range strings.SplitSeq(os.Getenv(forcedKernels), ",") {
		v := Variant(strings.TrimSpace(name))
		switch {
		case slices.Contains(Variants(), v):
			list = append(list, v)
		case v == "serial":
			overlap = false
		case v != "":
			return nil, false, fmt.Errorf("%s: there is no kernel %q. Use decode_down, "+
				"stream_down or others of docs/gpu.md", forcedKernels, name)
		}
	}
	return list, overlap, nil
}

// preferred tells whether a variant that is no default is in use, and forced or of the way that the
// card timed as the fastest. With drafts the way of one row serves all steps of few rows, so that
// a draft changes no text.
func (s *step) preferred(v Variant) bool {
	rows := s.p.Rows
	if rows <= kernels.DecodeRows && s.p.Settings.Drafts > 0 {
		rows = 1
	}
	return s.dev.enabled(v) && (slices.Contains(s.forced, v) ||
		s.forced == nil && s.dev.chosen(v, rows, s.p.Spec))
}

func (s *step) streamExperts(i int) phase {
	op, spec, t := s.p.Ops[i], s.p.Spec, s.dev.target
	kind := map[engine.Kind]Variant{engine.GateUp: StreamGateUp, engine.Down: StreamDown}[op.Kind]
	if kind == "" || len(op.In) != 3 || !t.Streams(spec.Hidden, spec.Intermediate) {
		return phase{}
	}
	terms, suffix := kernels.Split, Variant("")
	if s.p.Rows > kernels.DecodeRows || s.steady {
		terms, suffix = kernels.Rounded, Variant(rounded.suffix)
	}
	many := s.p.Rows*spec.ExpertsPerToken > kernels.StreamTokens*spec.Experts && !s.steady
	rounds := s.p.Settings.Compute == engine.Rounded ||
		s.p.Settings.Compute == engine.MX && (terms == kernels.Split || s.steady)
	variant, wide := kind+suffix, kind+Variant(warpgroups.suffix)
	switch {
	case many || !rounds:
	case t.Unit == kernels.WGMMA && terms == kernels.Rounded && !s.steady && s.preferred(wide):
		return s.single(i, wide, t.StreamWarpgroups(s.experts(op)))
	case s.steady && s.dev.enabled(variant) || s.preferred(variant):
		return s.single(i, variant, t.StreamExperts(s.experts(op), terms))
	}
	return phase{}
}
