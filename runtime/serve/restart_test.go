package serve

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ossrun/ossrun/harmony/token"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/models/mapping"
	"github.com/ossrun/ossrun/models/modeltest"
	"github.com/ossrun/ossrun/runtime/cpu"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/sample"
	"github.com/ossrun/ossrun/runtime/sched"
	"github.com/ossrun/ossrun/runtime/session"
)

// frail is a device whose steps fail while broken is positive, one less each time.
type frail struct {
	engine.Device
	broken *atomic.Int32
}

type frailStep struct {
	engine.Step
	broken *atomic.Int32
}

var errBroken = errors.New("the card has fallen off the bus")

func (d frail) Compile(p *engine.Program) (engine.Step, error) {
	s, err := d.Device.Compile(p)
	return frailStep{s, d.broken}, err
}

func (s frailStep) Forward(b *engine.Batch, logits []float32, times []int64) error {
	if s.broken.Load() > 0 {
		s.broken.Add(-1)
		return errBroken
	}
	return s.Step.Forward(b, logits, times)
}

func loadFrail(t *testing.T, s engine.Settings, reopen func(engine.Backend) (engine.Backend,
	error)) (*Model, *atomic.Int32) {
	t.Helper()
	found := hosttest.Must(checkpoint.Resolve("demo"))(t)
	dev := hosttest.Must(cpu.New(2))(t)
	broken := new(atomic.Int32)
	s.MaxModelLen = 1024
	m := hosttest.Must(LoadOn(found, engine.On(frail{dev, broken}), s))(t)
	m.reopen = reopen
	return m, broken
}

func textOf(ids []int32) string { return string(token.Get().Decode(nil, ids)) }

func say(t *testing.T, m *Model, words string) (session.Result, error) {
	t.Helper()
	turn, err := m.Start(context.Background(),
		session.Request{Messages: []session.Message{session.User(words)}, Date: "2026-11-21",
			MaxTokens: 20, Params: sample.Params{Logprobs: -1}})
	if err != nil {
		return session.Result{}, err
	}
	for _, ok := turn.Next(); ok; _, ok = turn.Next() {
	}
	return turn.Result(), nil
}

// A device that fails costs the turns that run; the next one gets what it would have got before, on
// a new engine. One that stays broken ends the model with an error that says so.
func TestFaultRestartsTheEngine(t *testing.T) {
	reopened := 0
	m, broken := loadFrail(t, engine.Settings{}, func(old engine.Backend) (engine.Backend, error) {
		reopened++
		return old, nil
	})
	before, err := say(t, m, "Hello")
	if err != nil || before.Done.Finish == session.FinishError {
		t.Fatal(err, before.Done.Err)
	}
	broken.Store(1)
	failed, err := say(t, m, "Hello")
	var fault *sched.EngineError
	if err != nil || failed.Done.Finish != session.FinishError ||
		!errors.As(failed.Done.Err, &fault) || !errors.Is(failed.Done.Err, errBroken) {
		t.Fatalf("%v, %q %v", err, failed.Done.Finish, failed.Done.Err)
	}
	after, err := say(t, m, "Hello")
	if err != nil || !slices.Equal(after.Tokens, before.Tokens) {
		t.Fatalf("%v: %q after the restart, %q before: %v", err, textOf(after.Tokens),
			textOf(before.Tokens), after.Done.Err)
	}
	if reopened != 1 || m.Stats().Faults != 1 || after.Done.Usage.Cached != 0 {
		t.Errorf("reopened %d times, %d faults, %d tokens cached on a new engine", reopened,
			m.Stats().Faults, after.Done.Usage.Cached)
	}
	broken.Store(1000)
	for range 10 {
		if failed, err = say(t, m, "Hello"); err != nil {
			break
		}
	}
	if !errors.Is(err, sched.ErrClosed) {
		t.Errorf("a broken device's model still takes turns: %v, %v", err, failed.Done.Err)
	}
	hosttest.Check(t, m.Close())
}

// With pages in 8 bits the model answers, a prefix is reused, and a context takes fewer bytes.
func TestPagesInEightBits(t *testing.T) {
	m, _ := loadFrail(t, engine.Settings{KVCacheDtype: "fp8"}, nil)
	defer m.Close()
	wide, _ := loadFrail(t, engine.Settings{KVCacheDtype: "bf16"}, nil)
	defer wide.Close()
	first, err := say(t, m, "Hello there, what can you do for me today?")
	if err != nil || first.Done.Finish == session.FinishError {
		t.Fatal(err, first.Done.Err)
	}
	second, err := say(t, m, "Hello there, what can you do for me today?")
	if err != nil || !slices.Equal(first.Tokens, second.Tokens) || second.Done.Usage.Cached == 0 {
		t.Errorf("%v: %q, then %q with %d tokens cached", err, textOf(first.Tokens),
			textOf(second.Tokens), second.Done.Usage.Cached)
	}
	if a, b := m.Plan().KV, wide.Plan().KV; a >= b {
		t.Errorf("%d bytes of pages in 8 bits, %d in 16", a, b)
	}
}

// What the flags say reaches the engine and the scheduler.
func TestSettingsReachTheEngine(t *testing.T) {
	m, _ := loadFrail(t, engine.Settings{KVCacheDtype: "bf16", NoPrefixCaching: true, MaxNumSeqs: 3,
		MaxNumBatchedTokens: 64, Deterministic: true}, nil)
	defer m.Close()
	if o := m.engine.Settings(); o.KVCacheDtype != "bf16" || o.MaxNumBatchedTokens != 64 ||
		!o.Deterministic {
		t.Errorf("%+v", o)
	}
	for range 2 {
		res, err := say(t, m, "Hello there, what can you do for me today?")
		if err != nil || res.Done.Usage.Cached != 0 {
			t.Errorf("%v, %d tokens cached", err, res.Done.Usage.Cached)
		}
	}
	if len(m.Plan().Lines()) < 2 || !strings.Contains(m.Plan().Lines()[1], "1024 tokens") {
		t.Errorf("%q", m.Plan().Lines())
	}
}

// loadHere loads a model on two threads of the CPU.
func loadHere(t *testing.T, name string, context int) *Model {
	t.Helper()
	found := hosttest.Must(checkpoint.Resolve(name))(t)
	dev := hosttest.Must(cpu.New(2))(t)
	m := hosttest.Must(LoadOn(found, engine.On(dev), engine.Settings{MaxModelLen: context}))(t)
	return m
}

// Mapped weights that are truncated fail the turns that read them, naming the file, and end the
// model: no engine can run on them.
func TestTruncatedWeights(t *testing.T) {
	folder, spec := t.TempDir(), modeltest.Tiny()
	spec.Vocab = token.VocabSize
	hosttest.Check(t, modeltest.WriteSparse(folder, spec, 1))
	m := loadHere(t, folder, 1024)
	defer m.Close()
	var told error
	m.onDamage = func(err error) { told = err }
	if r, err := say(t, m, "Hello"); err != nil || r.Done.Err != nil {
		t.Fatal(err, r.Done.Err)
	}
	files, _ := filepath.Glob(filepath.Join(folder, "*.safetensors"))
	for _, path := range files {
		hosttest.Check(t, os.Truncate(path, 4096))
	}
	r, err := say(t, m, "Hello again, and more")
	if err == nil {
		err = r.Done.Err
	}
	if !errors.Is(err, mapping.ErrTruncated) || !strings.Contains(err.Error(), ".safetensors") {
		t.Errorf("the turn ended with %v", err)
	}
	var damaged *ModelError
	if r, err := say(t, m, "Hello"); err == nil && r.Done.Err == nil || !errors.As(told, &damaged) {
		t.Errorf("the model goes on: %v, told %v", err, told)
	}
}
