package golden

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/ossrun/ossrun/runtime/engine"
)

// The errors that a mode may have, over all positions of a model; exact also case by case.

// CaseResult is one case in one compute mode, or, with Case "all", a mode's cases together.
type CaseResult struct {
	Mode      string
	Case      string
	Positions int     // compared positions of the prompt
	MaxAbs    float64 // largest difference of a logit to the golden
	KLMean    float64 // KL(golden ‖ engine) over the positions, in nats
	KLMedian  float64 //
	KLMax     float64 //
	Agree     int     // positions and greedy steps whose largest logit is the golden's
	Of        int     //
	Greedy    int     // greedy steps that agree, each fed the golden's tokens before it
	GreedyOf  int     //
	// the widest lead (best minus second logit) that was lost in a disagreement
	GapLost float64
	Elapsed time.Duration //
	Misses  []string      // figures outside the bounds; empty: passed

	kl []float64 // by position
}

func (r CaseResult) OK() bool { return len(r.Misses) == 0 }

// bound has the limits that one mode must keep.
type bound struct {
	maxAbs            float64 // 0: not judged
	klMean, klMedian  float64
	agree             float64 // fraction of Of
	gapLost           float64
	everyGreedyEquals bool
}

const goldenBound = 1e-3 // between a golden logit and exact float32 arithmetic, at any position

// int8Engine bounds an engine with 8-bit activations in the experts.
var int8Engine = bound{klMean: 2e-2, klMedian: 2e-3, agree: 0.93, gapLost: 2}

// fastEngine bounds it with dense weights' inputs in 8 bits too: no farther than other engines in
// use (docs/performance.md). 94 in 100 largest logits agree; a golden has some hundred positions,
// of which two are chance.
var fastEngine = bound{klMean: 2e-2, klMedian: 2.9e-3, agree: 0.91, gapLost: 2}

// bfloat16Engine bounds an engine that computes in bfloat16.
var bfloat16Engine = bound{klMean: 5e-2, klMedian: 5e-3, agree: 0.90, gapLost: 2}

// coarse is for two terms of MXFP4, an opt-in mode.
var coarse = bound{klMean: 5e-2, klMedian: 1e-2, agree: 0.85, gapLost: 2}

var bounds = map[string]bound{
	engine.Exact: {maxAbs: goldenBound, klMean: math.Inf(1),
		klMedian: math.Inf(1), gapLost: math.Inf(1), everyGreedyEquals: true},
	engine.Int8:                    int8Engine,
	engine.Rounded:                 bfloat16Engine,
	engine.MX:                      coarse,
	int8DenseQ8:                    bfloat16Engine,
	int8DenseQ8 + inputs12:         int8Engine,
	engine.Int8Fast:                int8Engine,
	int8FastDenseQ8:                fastEngine,
	roundedDenseQ8:                 bfloat16Engine,
	engine.MX + denseQ8:            coarse,
	engine.Exact + kvFP8:           bfloat16Engine,
	engine.Int8 + kvFP8:            bfloat16Engine,
	engine.Rounded + kvFP8:         bfloat16Engine,
	roundedDenseQ8 + kvFP8:         bfloat16Engine,
	engine.MX + kvFP8:              coarse,
	int8DenseQ8 + kvFP8:            bfloat16Engine,
	int8DenseQ8 + inputs12 + kvFP8: bfloat16Engine,
	engine.Int8Fast + kvFP8:        bfloat16Engine,
	int8FastDenseQ8 + kvFP8:        bfloat16Engine,
}

// The names of modes with dense weights in 8 bits too.
const (
	int8DenseQ8     = engine.Int8 + denseQ8
	int8FastDenseQ8 = engine.Int8Fast + denseQ8
	roundedDenseQ8  = engine.Rounded + denseQ8
	denseQ8         = ", dense " + engine.DenseQ8
	inputs12        = " (qkv 12 bits)"
)

// kvFP8 is added to the name of a mode whose full layers' keys and values have 8 bits.
const kvFP8 = ", kv " + engine.KVFP8

// compare measures one case: logits at the prompt's positions, and every greedy choice.
func compare(c *Case, out *output) CaseResult {
	r := CaseResult{Case: c.Name, Positions: len(c.Positions), GreedyOf: len(c.Greedy),
		Elapsed: out.elapsed}
	for i, want := range c.Logits {
		r.MaxAbs = largest(r.MaxAbs, maxAbs(want, out.logits[i]))
		r.kl = append(r.kl, divergence(want, out.logits[i]))
		best, gap := lead(want)
		r.count(best == argmax(out.logits[i]), gap)
	}
	for i, want := range c.Greedy {
		if out.greedy[i] == want {
			r.Greedy++
		}
		r.count(out.greedy[i] == want, float64(c.Gap[i]))
	}
	r.summarize()
	return r
}

func (r *CaseResult) count(agrees bool, gap float64) {
	r.Of++
	if agrees {
		r.Agree++
		return
	}
	r.GapLost = largest(r.GapLost, gap)
}

func (r *CaseResult) summarize() {
	if len(r.kl) == 0 {
		return
	}
	sorted := slices.Sorted(slices.Values(r.kl)) // NaN first, so it must be looked for
	sum := 0.0
	for _, v := range r.kl {
		sum += v
	}
	r.KLMean, r.KLMedian, r.KLMax = sum/float64(len(r.kl)), sorted[len(sorted)/2],
		sorted[len(sorted)-1]
	if math.IsNaN(sum) {
		r.KLMedian, r.KLMax = sum, sum
	}
}

// judgeCase notes the limits that a single case misses.
func judgeCase(r *CaseResult, exact CaseResult) {
	b := bounds[r.Mode]
	if b.maxAbs > 0 && !(r.MaxAbs <= b.maxAbs) {
		r.miss("a logit is off by %.3g, allowed %.3g", r.MaxAbs, b.maxAbs)
	}
	if b.everyGreedyEquals && r.Greedy != r.GreedyOf {
		r.miss("%d of %d greedy tokens", r.Greedy, r.GreedyOf)
	}
	if r.Mode != engine.Exact && !(exact.MaxAbs <= goldenBound) {
		r.miss("the golden itself is off by %.3g from exact arithmetic", exact.MaxAbs)
	}
}

// merge puts a mode's cases into one result and judges it by the bounds over all positions.
func merge(mode string, all []CaseResult) CaseResult {
	r := CaseResult{Mode: mode, Case: "all"}
	missed := 0
	for _, c := range all {
		r.Positions += c.Positions
		r.MaxAbs = largest(r.MaxAbs, c.MaxAbs)
		r.Agree, r.Of = r.Agree+c.Agree, r.Of+c.Of
		r.Greedy, r.GreedyOf = r.Greedy+c.Greedy, r.GreedyOf+c.GreedyOf
		r.GapLost = largest(r.GapLost, c.GapLost)
		r.Elapsed += c.Elapsed
		r.kl = append(r.kl, c.kl...)
		if !c.OK() {
			missed++
		}
	}
	r.summarize()
	b := bounds[mode]
	if !(r.KLMean <= b.klMean) {
		r.miss("mean KL %.3g, allowed %.3g", r.KLMean, b.klMean)
	}
	if !(r.KLMedian <= b.klMedian) {
		r.miss("median KL %.3g, allowed %.3g", r.KLMedian, b.klMedian)
	}
	if float64(r.Agree) < b.agree*float64(r.Of) {
		r.miss("the largest logit agrees at %d of %d, needed %.0f %%", r.Agree, r.Of, 100*b.agree)
	}
	if !(r.GapLost <= b.gapLost) {
		r.miss("a lead of %.3g was lost, allowed %.3g", r.GapLost, b.gapLost)
	}
	if missed > 0 {
		r.miss("%d of %d cases", missed, len(all))
	}
	return r
}

func (r *CaseResult) miss(format string, args ...any) {
	r.Misses = append(r.Misses, fmt.Sprintf(format, args...))
}

// largest is max, but NaN wins, since it is the worst result.
func largest(a, b float64) float64 {
	if math.IsNaN(a) || a > b {
		return a
	}
	return b
}

func maxAbs(want, got []float32) float64 {
	worst := 0.0
	for i := range want {
		worst = largest(worst, math.Abs(float64(want[i])-float64(got[i])))
	}
	return worst
}

// divergence is KL(want ‖ got) of the two softmaxes, in nats.
func divergence(want, got []float32) float64 {
	zw, zg := logSum(want), logSum(got)
	kl := 0.0
	for i := range want {
		lw := float64(want[i]) - zw
		kl += math.Exp(lw) * (lw - (float64(got[i]) - zg))
	}
	return kl
}

func logSum(logits []float32) float64 {
	top := float64(slices.Max(logits))
	sum := 0.0
	for _, v := range logits {
		sum += math.Exp(float64(v) - top)
	}
	return top + math.Log(sum)
}

// argmax is the first of the largest logits; -1 when one is NaN.
func argmax(logits []float32) int32 {
	best := 0
	for i, v := range logits {
		if v != v {
			return -1
		}
		if v > logits[best] {
			best = i
		}
	}
	return int32(best)
}

// lead is the largest logit's token and how far the second is.
func lead(logits []float32) (best int32, gap float64) {
	best = argmax(logits)
	second := math.Inf(-1)
	for i, v := range logits {
		if int32(i) != best {
			second = math.Max(second, float64(v))
		}
	}
	if best < 0 {
		return best, math.NaN()
	}
	return best, float64(logits[best]) - second
}
