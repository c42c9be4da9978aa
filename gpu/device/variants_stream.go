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
				"stream_experts or others of docs/gpu.md", forcedKernels, name)
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

// expertPair are both matrices of experts that round their activations in the same way, if nothing
// else reads h: rounded where float32 would be. Not int8's: bf16 rounds their scaled values.
func (s *step) expertPair(i int) phase {
	ops, spec, t := s.run(i, engine.GateUp, engine.Down), s.p.Spec, s.dev.target
	if ops == nil || len(ops[0].In) != 3 || ops[1].In[2] != ops[0].Out[0] ||
		!s.dead(ops[0].Out[0], i+2) {
		return phase{}
	}
	variant, form := StreamExperts, kernels.TwoTerms
	if s.p.Rows > kernels.DecodeRows || s.steady {
		variant, form = StreamExperts+"_bf16", kernels.OneTerm
	}
	groups := s.denseWays()[0] == warpgroups && s.p.Rows > kernels.DecodeRows && !s.steady
	streamed := t.Streams(spec.Hidden, spec.Intermediate) &&
		(s.steady || s.p.Rows*spec.ExpertsPerToken <= kernels.StreamTokens*spec.Experts)
	rounds := s.p.Settings.Compute == engine.Rounded ||
		s.p.Settings.Compute == engine.MX && (form == kernels.TwoTerms || s.steady)
	matrix := func(e kernels.Experts) kernels.Launch { return t.StreamExperts(e, form) }
	switch {
	case streamed && groups && s.preferred(StreamExperts+"_wgmma"):
		variant, form, matrix = StreamExperts+"_wgmma", kernels.InShares, t.StreamWarpgroups
	case streamed && rounds && (s.steady && s.dev.enabled(variant) || s.preferred(variant)):
	case groups && s.dev.enabled(PrefillGateUp+"_wgmma"):
		variant, form, matrix = PrefillGateUp+"_wgmma", kernels.InShares, t.PrefillWarpgroups
	default:
		return phase{}
	}
	up, x := s.experts(ops[0]), s.terms.address
	list := []kernels.Launch{t.RoundRows(s.rows(ops[0].In[2]), x, up.From.X, up.K, form)}
	if n := len(s.phases); n > 0 && s.phases[n-1].form == form {
		list = nil
	}
	up.From.X = x
	return phase{from: i, to: i + 2, variant: variant, results: ops[1].Out, form: form,
		launches: append(list, matrix(up), matrix(s.experts(ops[1])))}
}
