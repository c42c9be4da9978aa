package worker

import (
	"bytes"
	"errors"
	"io"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/modeltest"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// What crosses the boundary comes out as it went in, and what no honest side sends is refused.

func TestMessage(t *testing.T) {
	for _, m := range []message{{kind: step, number: 7, shared: 1234},
		{kind: done, number: math.MaxUint32, text: bytes.Repeat([]byte("x"), 200<<10)}} {
		sent := m.append(nil)
		var got message
		if err := got.read(bytes.NewReader(sent)); err != nil || got.kind != m.kind ||
			got.number != m.number || got.shared != m.shared || !bytes.Equal(got.text, m.text) {
			t.Errorf("%v: %+v", err, got)
		}
		for _, n := range []int{1, headerBytes - 1, len(sent) - 1} {
			if n >= headerBytes && len(m.text) == 0 {
				continue
			}
			if err := got.read(bytes.NewReader(sent[:n])); !errors.Is(err, errTorn) {
				t.Errorf("cut at %d: %v", n, err)
			}
		}
	}
	var m message
	if err := m.read(strings.NewReader("")); err != io.EOF {
		t.Error(err)
	}
	for _, bad := range []message{{kind: 0}, {kind: kinds}, {kind: step, shared: slotBytes + 1}} {
		if err := m.read(bytes.NewReader(bad.append(nil))); err == nil {
			t.Errorf("%+v was read", bad)
		}
	}
	long := (&message{kind: load}).append(nil)
	long[8], long[9], long[10], long[11] = 0xff, 0xff, 0xff, 0xff
	if err := m.read(bytes.NewReader(long)); err == nil || errors.Is(err, errTorn) {
		t.Errorf("4 GiB of text: %v", err)
	}
}

func sampleBatch() *engine.Batch {
	return &engine.Batch{Tokens: []int32{5, 6, 7}, LogitRows: []int32{2, 0}, Twins: []int32{-1, 3},
		Seqs: []engine.SeqRows{
			{Start: 31, Rows: 2, Full: []int32{3, 4}, Window: []int32{-1, 9}}, {Start: 0, Rows: 1,
				Full: []int32{1}, Window: []int32{2}}}}
}

func sampleChoices() []engine.SamplingParams {
	return []engine.SamplingParams{
		{Draw: engine.Draw{Temperature: 0.5, TopP: 0.25, MinP: 0.125, TopK: 40,
			Seed: math.MaxUint64, Position: 1 << 40}, Logprobs: -1,
			Mask: []uint64{1, math.MaxUint64}},
		{Logprobs: 3, Edits: []engine.Edit{{ID: 8, Repetition: 1.5, Penalty: 2, Bias: -3}},
			Mask: []uint64{}},
		{Draw: engine.Draw{Temperature: 1}},
	}
}

func TestStepParts(t *testing.T) {
	slot := make([]byte, 4096)
	w := codec{slot: slot}
	batch, choices := sampleBatch(), sampleChoices()
	chosen := []engine.SampledToken{{ID: 4, Logprob: -0.5,
		Top: []engine.TokenLogprob{{ID: 1, Logprob: -1}, {ID: 2, Logprob: float32(math.Inf(-1))}}},
		{ID: engine.NotFinite}}
	rows := []int32{-1, 0, 1}
	write := func(w *codec) {
		batchIn(w, batch)
		list(w, &rows)
		choicesIn(w, &choices)
		tokensIn(w, &chosen)
	}
	write(&w)
	used := len(slot) - len(w.slot)
	read := func(data []byte) (b engine.Batch, from []int32, c []engine.SamplingParams,
		x []engine.SampledToken, err error) {
		r := codec{slot: data, reads: true}
		batchIn(&r, &b)
		list(&r, &from)
		choicesIn(&r, &c)
		tokensIn(&r, &x)
		return b, from, c, x, r.end()
	}
	b, from, c, x, err := read(slot[:used])
	if err != nil || !reflect.DeepEqual(&b, batch) || !slices.Equal(from, []int32{-1, 0, 1}) ||
		!reflect.DeepEqual(c, choices) || !reflect.DeepEqual(x, chosen) {
		t.Errorf("%v\n%+v\n%v\n%+v\n%+v", err, b, from, c, x)
	}
	for n := range used {
		if _, _, _, _, err := read(slot[:n]); err == nil {
			t.Errorf("cut at %d of %d: read", n, used)
		}
	}
	if _, _, _, _, err := read(slot[:used+1]); err == nil {
		t.Error("a byte too many: read")
	}
	for n := range used {
		short := codec{slot: make([]byte, n)}
		write(&short)
		if !short.bad {
			t.Errorf("all of %d bytes fit into %d", used, n)
		}
	}
}

// TestEveryField: a field that is added to what crosses must be given its place there, and its
// number here. A batch's Wanted stays: a device that samples does not ask for it; so do a
// sequence's Adapter and Prompt: a GPU computes one model, and has no tiles to choose.
func TestEveryField(t *testing.T) {
	for _, x := range []struct {
		of     any
		fields int
	}{{engine.Batch{}, 5 + 1}, {engine.SeqRows{}, 4 + 2},
		{engine.SamplingParams{}, 4}, {engine.Edit{}, 4}, {engine.SampledToken{}, 3},
		{engine.TokenLogprob{}, 2}, {driver.Error{}, 5}} {
		if n := reflect.TypeOf(x.of).NumField(); n != x.fields {
			t.Errorf("%T has %d fields, %d are known here", x.of, n, x.fields)
		}
	}
}

// TestTablesAreCut: entries that no row of the step looks at stay here.
func TestTablesAreCut(t *testing.T) {
	table := make([]int32, 4096)
	w := codec{slot: make([]byte, 256)}
	batchIn(&w, &engine.Batch{Tokens: []int32{1},
		Seqs: []engine.SeqRows{{Start: 32, Rows: 1, Full: table, Window: table}}})
	if w.bad {
		t.Error("a step of two pages takes more than 256 bytes")
	}
}

// TestBounds: shapes and settings that no model and no machine has are refused before anything is
// planned.
func TestBounds(t *testing.T) {
	for what, change := range map[string]func(*models.Spec, *engine.Settings){
		"endless layers":   func(m *models.Spec, _ *engine.Settings) { m.Layers = 1 << 40 },
		"no layers":        func(m *models.Spec, _ *engine.Settings) { m.Layers = 0 },
		"a negative width": func(m *models.Spec, _ *engine.Settings) { m.Hidden = -64 },
		"experts overflow": func(m *models.Spec,
			_ *engine.Settings) {
			m.ExpertsPerToken = math.MaxInt
		},
		"more KV heads": func(m *models.Spec, _ *engine.Settings) { m.KVHeads = m.Heads + 1 },
		"no KV heads":   func(m *models.Spec, _ *engine.Settings) { m.KVHeads = 0 },
		"an odd head":   func(m *models.Spec, _ *engine.Settings) { m.HeadDim = 3 },
		"endless positions": func(m *models.Spec,
			_ *engine.Settings) {
			m.MaxPosition = math.MaxInt
		},
		"no positions": func(m *models.Spec, _ *engine.Settings) { m.MaxPosition = -1 },
		"endless rows": func(_ *models.Spec,
			s *engine.Settings) {
			s.MaxNumBatchedTokens = math.MaxInt
		},
		"a negative context": func(_ *models.Spec, s *engine.Settings) { s.MaxModelLen = -1 },
		"more than all": func(_ *models.Spec,
			s *engine.Settings) {
			s.GPUMemoryUtilization = 2
		},
		"no number": func(_ *models.Spec,
			s *engine.Settings) {
			s.GPUMemoryUtilization = math.NaN()
		},
		"endless experts": func(_ *models.Spec,
			s *engine.Settings) {
			s.CPUExperts = math.MaxInt
		},
		"an unknown KV type": func(_ *models.Spec, s *engine.Settings) { s.KVCacheDtype = "f8" },
		"unknown dense":      func(_ *models.Spec, s *engine.Settings) { s.Dense = "q4" },
		"an unknown mode":    func(_ *models.Spec, s *engine.Settings) { s.Compute = "fast" },
		"a negative number":  func(_ *models.Spec, s *engine.Settings) { s.Threads = -1 },
		"endless pages":      func(_ *models.Spec, s *engine.Settings) { s.Pages = math.MaxInt },
		"endless logits": func(_ *models.Spec,
			s *engine.Settings) {
			s.MaxLogits = math.MaxInt
		},
		"sequences below one": func(_ *models.Spec, s *engine.Settings) { s.MaxNumSeqs = -1 },
	} {
		m, s := modeltest.Tiny(), engine.Settings{}
		hosttest.Check(t, errors.Join(checkSpec(m), checkSettings(s)))
		change(&m, &s)
		if errors.Join(checkSpec(m), checkSettings(s)) == nil {
			t.Errorf("%s: accepted", what)
		}
	}
}

// TestFaults: an error crosses with its text and with those of its causes that somebody asks for.
func TestFaults(t *testing.T) {
	cause := &driver.Error{Call: "cuMemAlloc_v2", Code: 2, Name: "CUDA_ERROR_OUT_OF_MEMORY",
		Text: "out of memory", Log: "a log"}
	err := decodeFault(encodeFault(errors.Join(errors.New("allocate the cache"), cause,
		engine.ErrClosed)))
	var e *driver.Error
	if !errors.As(err, &e) || *e != *cause || !errors.Is(err, driver.ErrOutOfMemory) ||
		!errors.Is(err, engine.ErrClosed) || errors.Is(err, engine.ErrNoSampling) {
		t.Errorf("%#v", err)
	}
	if !strings.HasPrefix(err.Error(), "allocate the cache\ncuMemAlloc_v2: out of memory") {
		t.Error(err)
	}
	if err := decodeFault([]byte("{")); err == nil || err.Error() == "" {
		t.Error("a fault that cannot be read is none")
	}
}

func TestIdentity(t *testing.T) {
	here := ThisBuild()
	if here.Protocol != Protocol || len(here.Kernels) != 12 {
		t.Errorf("%+v", here)
	}
	for _, other := range []Identity{{Protocol + 1, here.Commit, here.Kernels},
		{Protocol, here.Commit + "x", here.Kernels}, {Protocol, here.Commit, "else"}} {
		if here.match(other) == nil {
			t.Errorf("%+v is this build", other)
		}
	}
	hosttest.Check(t, here.match(here))
}
