package bench

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// slow is a device that computes nothing: the counting is tested here.
type slow struct{ steps int }

type slowRegion []byte

func (r slowRegion) Bytes() int64                   { return int64(len(r)) }
func (r slowRegion) Read(at int64, b []byte) error  { copy(b, r[at:]); return nil }
func (r slowRegion) Write(at int64, b []byte) error { copy(r[at:], b); return nil }
func (r slowRegion) Free() error                    { return nil }

func (d *slow) Name() string           { return "slow" }
func (d *slow) Memory() (int64, int64) { return 1 << 40, 1 << 40 }
func (d *slow) Caps() engine.Caps {
	return engine.Caps{Computes: []string{engine.Exact}}
}

func (d *slow) Alloc(n int64) (engine.Region, error)           { return make(slowRegion, n), nil }
func (d *slow) Upload(b []byte) (engine.Region, error)         { return slowRegion(b), nil }
func (d *slow) Compile(p *engine.Program) (engine.Step, error) { return &slowStep{d, p}, nil }
func (d *slow) Close() error                                   { return nil }
func (d *slow) Bandwidth([]byte) float64                       { return 1e9 }
func (d *slow) MultiplyPeak(time.Duration) float64             { return 1e12 }
func (d *slow) MultiplyUnit() string                           { return "none" }

type slowStep struct {
	d *slow
	p *engine.Program
}

func (s *slowStep) Forward(_ *engine.Batch, _ []float32, times []int64) error {
	s.d.steps++
	time.Sleep(time.Millisecond)
	for i := range times {
		times[i] = 1000
	}
	return nil
}
func (s *slowStep) Close() error { return nil }

// small is a checkpoint of the 20b's shape, but smaller.
func small(t *testing.T) *checkpoint.Checkpoint {
	t.Helper()
	s := models.Spec20B()
	s.Layers, s.Hidden, s.Intermediate, s.Vocab, s.Experts = 2, 64, 64, 4096, 8
	ckpt := hosttest.Must(checkpoint.Synthetic(s, 1))(t)
	t.Cleanup(func() { ckpt.Close() })
	return ckpt
}

// TestRun: rates follow the device's pace, bytes are those of one expert a layer (the taps of this
// device say expert 0), and the JSON has the names.
func TestRun(t *testing.T) {
	ckpt, d := small(t), &slow{}
	var r *Report
	var err error
	// its clock goes on in the device's steps and nowhere else
	synctest.Test(t, func(t *testing.T) {
		r, err = Run(t.Context(), engine.On(d), d, ckpt,
			Options{Settings: engine.Settings{MaxNumBatchedTokens: 16}, Prefill: []int{40},
				Batches: []int{3}, Contexts: []int{64}, Rounds: 2, Steps: 2,
				Progress: func(string) {}})
	})
	if err != nil {
		t.Fatal(err)
	}
	// three steps of at least a millisecond
	if p := r.Prefill[0]; p.TokensPerS > 40/0.003 || p.TokensPerS < 40 {
		t.Errorf("prefill at %v tok/s", p.TokensPerS)
	}
	if p := r.Prefill[0]; p.Test != "pp40" || p.BytesPerToken*40 > p.BytesPerStep {
		t.Errorf("prefill is %+v", p)
	}
	batch := r.Decode[1]
	if batch.Test != "tg2 x 3" || batch.Experts != 1 || batch.BytesPerToken != batch.BytesPerStep/3 ||
		math.Abs(batch.OfPredicted*batch.PredictedPerS/batch.TokensPerS-1) > 0.01 {
		t.Errorf("a batch is %+v", batch)
	}
	if len(r.Decode) != 3 || r.Decode[1].Tokens != 3 || r.Decode[2].Context != 64 {
		t.Errorf("decode was measured at %+v", r.Decode)
	}
	program, err := engine.Record(ckpt.Spec, engine.Settings{MaxNumBatchedTokens: 16}, 1)
	if err != nil {
		t.Fatal(err)
	}
	var want int64
	for _, full := range []int64{65, 66} { // the mean of two steps
		for _, op := range program.Ops {
			want += program.BytesWith(op, engine.Work{Rows: 1, LogitRows: 1, Full: full,
				Window: full}, 1)
		}
	}
	want /= 2
	// the taps' own few bytes
	if got := r.Decode[0].BytesPerStep; math.Abs(float64(got-want)) > 64 {
		t.Errorf("%d bytes a token, want %d", got, want)
	}
	if rate, of := r.Decode[0].TokensPerS, r.Decode[0].OfRead; math.Abs(of-rate*float64(want)/
		1e9) > 0.2*of {
		t.Errorf("%v of the reads at %v tok/s", of, rate)
	}
	// a microsecond an operation; the plan cannot know that the taps say one expert, not four
	count := float64(len(program.Ops) + 2) // and two taps
	if us := 1e6 / r.Decode[0].PredictedPerS; us < 0.9*count || us > count+3*2*2+0.1*count {
		t.Errorf("%v us are predicted of %v operations", us, count)
	}
	p := r.Prefill[0] // three steps
	if us := 40e6 / p.PredictedPerS / 3; us < 0.9*count || us > 1.1*count+3*2*8 ||
		math.Abs(p.OfPredicted*p.PredictedPerS/p.TokensPerS-1) > 0.01 {
		t.Errorf("%v us are predicted of %v operations: %+v", us, count, p)
	}
	flat := r.Flat()
	for _, name := range []string{"prefill_40_tok_s", "decode_tok_s", "batch3_tok_s",
		"decode_at_64_tok_s", "bytes_per_token", "read_gb_s", "vnni_tops",
		"prefill_fraction_of_vnni", "decode_fraction_of_read"} {
		if _, ok := flat[name].(float64); !ok && name != "bytes_per_token" {
			t.Errorf("%s is %v", name, flat[name])
		}
	}
	var percent float64
	for _, o := range r.DecodeProfile {
		percent += o.Percent
	}
	if math.Abs(percent-100) > 1e-6 {
		t.Errorf("the profile adds up to %v %%", percent)
	}
}

// What two layers predict of more: layers and vocabulary count; no excerpt speaks for other widths.
func TestExpect(t *testing.T) {
	spec := small(t).Spec
	spec.Vocab = 65536
	deep, wide := spec, spec
	deep.Layers, wide.Hidden = 4, 128
	var rates []float64
	var err error
	synctest.Test(t, func(t *testing.T) {
		rates, err = Expect(t.Context(), engine.On(&slow{}), []models.Spec{spec, deep, wide},
			engine.Settings{MaxNumBatchedTokens: 16, DenseCache: "none"})
	})
	if err != nil {
		t.Fatal(err)
	}
	program := hosttest.Must(engine.Record(spec, engine.Settings{MaxNumBatchedTokens: 16}, 1))(t)
	deeper := hosttest.Must(engine.Record(deep, engine.Settings{MaxNumBatchedTokens: 16}, 1))(t)
	// a microsecond an operation, and of the unembedding for each sixteenth of the vocabulary; the
	// taps say one expert where four are chosen
	more := float64(len(deeper.Ops) - len(program.Ops))
	us, usDeep := 1e6/rates[0], 1e6/rates[1]
	least := float64(len(program.Ops)) + 15
	if us < 0.9*least || us > 1.1*least+3*2*2 || usDeep-us < more || usDeep-us > more+3*2*2+1 ||
		rates[2] != 0 {
		t.Errorf("%v us and %v deeper, of %v and %v more: %v", us, usDeep, least, more, rates)
	}
}

// Single operations: attention of full and windowed layers apart, and its operations counted.
func TestRunOps(t *testing.T) {
	ckpt, d := small(t), &slow{}
	o := Options{Settings: engine.Settings{MaxNumBatchedTokens: 16}, Prefill: []int{16, 40},
		Batches: []int{3}, Contexts: []int{256}, Rounds: 1, Progress: func(string) {}}
	var r *OpsReport
	var err error
	synctest.Test(t, func(t *testing.T) {
		r, err = RunOps(t.Context(), engine.On(d), d, ckpt, o, []string{"attend full", "attend window"})
	})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, step := range r.Steps {
		names = append(names, step.Test)
		if len(step.Operations) != 2 {
			t.Errorf("%s has %+v", step.Test, step.Operations)
		}
	}
	if got := strings.Join(names, ", "); got != "tg4, tg4 x 3, tg4 @ d256, pp16, pp16 @ d256" {
		t.Error(got)
	}
	positions := map[string]float64{"attend full": 257, "attend window": 128}
	for _, op := range r.Steps[2].Operations { // each takes 1000 ns
		want := 4 * positions[op.Name] * float64(ckpt.Spec.Heads*ckpt.Spec.HeadDim) / 1e-6 / 1e12
		if math.Abs(op.TOPS/want-1) > 1e-6 || math.Abs(op.OfMultiply/want-1) > 1e-6 {
			t.Errorf("%s: %v TOPS, not %v", op.Name, op.TOPS, want)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		_, err = RunOps(t.Context(), engine.On(d), d, ckpt, o, []string{"swim"})
	})
	if err == nil || !strings.Contains(err.Error(), "gate_up") {
		t.Error(err)
	}
}

// An interrupted run has the earlier measurements.
func TestRunInterrupted(t *testing.T) {
	s := models.Spec20B()
	s.Layers, s.Hidden, s.Intermediate, s.Vocab, s.Experts = 1, 64, 64, 4096, 8
	ckpt := hosttest.Must(checkpoint.Synthetic(s, 1))(t)
	defer ckpt.Close()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		d := &slow{}
		r, err := Run(ctx, engine.On(d), d, ckpt, Options{Settings: engine.Settings{
			MaxNumBatchedTokens: 16}, Prefill: []int{8}, Rounds: 1, Steps: 1, Plain: true,
			Progress: func(line string) {
				if strings.HasPrefix(line, "pp8") {
					cancel()
				}
			}})
		if !errors.Is(err, context.Canceled) || r == nil || len(r.Prefill) != 1 ||
			len(r.Decode) != 0 {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

// Saved results can be read and compared, and name their source.
func TestKeptResults(t *testing.T) {
	files, err := filepath.Glob("../../../testdata/bench/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v %v", files, err)
	}
	var reports []*Report
	for _, file := range files {
		r := hosttest.Must(Read(file))(t)
		if a := r.About; a.CPU == "" || a.Cores == 0 || a.Version == "" || a.Date == "" ||
			a.Command == "" || a.OS == "" || a.Memory == 0 || r.ReadGBs == 0 {
			t.Errorf("%s: %+v", file, a)
		}
		reports = append(reports, r)
	}
	var b strings.Builder
	if err := Compare(&b, files, reports); err != nil || !strings.Contains(b.String(), "tg") {
		t.Errorf("%v\n%s", err, b.String())
	}
}
