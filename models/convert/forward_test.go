package convert

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/models/modeltest"
	"github.com/ossrun/ossrun/runtime/engine/golden"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// compared imports a source while it reads tokens.
func compared(t *testing.T, source, out string, tokens []int32, first int) *comparison {
	t.Helper()
	from := hosttest.Must(open(disk(source)))(t)
	defer from.Close()
	w := &writer{from: from, out: out, workers: runtime.GOMAXPROCS(0),
		compare: &comparison{spec: from.spec, tokens: tokens, first: first}}
	hosttest.Check(t, w.begin(nil))
	defer w.lock.Close()
	parts := partsOf(from.spec)
	for i, p := range parts {
		hosttest.Must(w.write(t.Context(), fileName(i, len(parts)), i, p, new(atomic.Int64)))(t)
	}
	hosttest.Check(t, w.end(parts))
	return w.compare
}

// TestForward: both readings of an export of untouched experts are transformers'.
func TestForward(t *testing.T) {
	seen := 0
	for name, length := range map[string]int{"T1": 129, "T2": 31} { // the window and one more
		c, path := goldenModel(t, name)
		cases := hosttest.Must(golden.Read(filepath.Dir(path), c.Spec.Vocab))(t)
		for _, one := range cases {
			if len(one.Tokens) != length {
				continue
			}
			got := compared(t, twin(t, name, 1), filepath.Join(t.TempDir(), "out"), one.Tokens, 0)
			for i, position := range one.Positions {
				for which := range got.logits {
					for id, want := range one.Logits[i] {
						d := math.Abs(float64(got.logits[which][position][id] - want))
						if !(d < 2e-3) {
							t.Fatalf("%s, %s: logit %d at %d is off by %v", name, one.Name, id,
								position, d)
						}
					}
				}
			}
			seen++
			if kl := got.divergence(); kl != 0 {
				t.Errorf("%s, %s: KL of %v to itself", name, one.Name, kl)
			}
		}
	}
	if seen != 2 {
		t.Errorf("%d texts were read", seen)
	}
}

// TestDivergence: the second reading is that of the checkpoint that was written; and however often
// the import is stopped, the number is the same.
func TestDivergence(t *testing.T) {
	c, _ := goldenModel(t, "T1")
	whole := newComparison(c.Spec, saved{})
	tokens := whole.tokens
	if len(tokens) < 12 || whole.first < 4 {
		t.Fatalf("logits of %d tokens from %d on", len(tokens), whole.first)
	}
	for _, kind := range []string{"BF16", "Q4_1"} {
		style := modeltest.LlamaBF16
		style.Experts = kind
		source := hosttest.Must(modeltest.WriteGGUF(c, t.TempDir(), "tune", style, 1))(t)
		out := filepath.Join(t.TempDir(), "out")
		got := compared(t, source, out, tokens, whole.first)
		kl := got.divergence()
		if kind == "BF16" != (kl == 0) || !(kl >= 0 && kl < 0.5) {
			t.Errorf("%s: KL of %v", kind, kl)
		}
		written, err := checkpoint.Open(out)
		hosttest.Check(t, err)
		wide := t.TempDir()
		err = modeltest.Merged(written, modeltest.Config(written.Spec), 1).Write(wide)
		hosttest.Check(t, errors.Join(err, written.Close()))
		again := compared(t, wide, filepath.Join(t.TempDir(), "out"), tokens, whole.first)
		for row := range got.logits[1] {
			for id, v := range got.logits[1][row] {
				if d := math.Abs(float64(v - again.logits[0][row][id])); !(d < 1e-4) {
					t.Fatalf("%s: logit %d at %d is off by %v of what is written", kind, id, row, d)
				}
			}
		}
		if r := stoppedOften(t, source); r.KL == nil || *r.KL != kl {
			t.Errorf("%s: stopped, KL is %v, else %v", kind, r.KL, kl)
		}
	}
}

// stoppedOften imports a source with many stops.
func stoppedOften(t *testing.T, source string) Result {
	t.Helper()
	out, enough, stops := filepath.Join(t.TempDir(), "out"), errors.New("enough"), 0
	defer func() { wrote = func() {} }()
	for i := range 60 {
		ctx, stop := context.WithCancelCause(t.Context())
		var calls atomic.Int64
		wrote = func() {
			if calls.Add(1) > int64(20+i*5) {
				stop(enough)
			}
		}
		r, err := Run(ctx, source, Options{Out: out})
		stop(nil)
		if err == nil && stops > 2 {
			return r
		}
		if !errors.Is(err, enough) {
			t.Fatalf("after %d stops: %v", stops, err)
		}
		stops++
	}
	t.Fatal("it does not end")
	return Result{}
}
