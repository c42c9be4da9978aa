package worker

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/models/modeltest"
	"github.com/ossrun/ossrun/runtime/engine"
)

// What crosses the boundary comes out as it went in, and what no honest side sends is refused.

func TestMessage(t *testing.T) {
	for _, m := range []message{{kind: forward, number: 7, shared: 1234}, {kind: done, number: math.MaxUint32, text: bytes.Repeat([]byte("x"), 200<<10)}} {
		sent := m.append(nil)
		var got message
		if err := got.read(bytes.NewReader(sent)); err != nil || got.kind != m.kind || got.number != m.number || got.shared != m.shared || !bytes.Equal(got.text, m.text) {
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
	for _, bad := range []message{{kind: 0}, {kind: kinds}, {kind: forward, shared: slotBytes + 1}} {
		if err := m.read(bytes.NewReader(bad.append(nil))); err == nil {
			t.Errorf("%+v was read", bad)
		}
	}
	long := (&message{kind: compile}).append(nil)
	long[8], long[9], long[10], long[11] = 0xff, 0xff, 0xff, 0xff
	if err := m.read(bytes.NewReader(long)); err == nil || errors.Is(err, errTorn) {
		t.Errorf("4 GiB of text: %v", err)
	}
}

func sampleBatch() *engine.Batch {
	return &engine.Batch{Tokens: []int32{5, 6, 7}, LogitRows: []int32{2, 0}, Twins: []int32{-1, 3}, Seqs: []engine.SeqRows{
		{Start: 31, Rows: 2, Full: []int32{3, 4}, Window: []int32{-1, 9}}, {Start: 0, Rows: 1, Full: []int32{1}, Window: []int32{2}}}}
}

func sampleChoices() []engine.SamplingParams {
	return []engine.SamplingParams{
		{Temperature: 0.5, TopP: 0.25, MinP: 0.125, TopK: 40, Seed: math.MaxUint64, Position: 1 << 40, Logprobs: -1, Mask: []uint64{1, math.MaxUint64}},
		{Logprobs: 3, Edits: []engine.Edit{{ID: 8, Repetition: 1.5, Less: 2, More: -3}}, Mask: []uint64{}},
		{Temperature: 1},
	}
}

func TestStepParts(t *testing.T) {
	w := writer{to: make([]byte, 4096)}
	batch, choices := sampleBatch(), sampleChoices()
	chosen := []engine.SampledToken{{ID: 4, Logprob: -0.5, Top: []engine.TokenLogprob{{ID: 1, Logprob: -1}, {ID: 2, Logprob: float32(math.Inf(-1))}}}, {ID: engine.NotFinite}}
	writeBatch(&w, batch)
	writeFrom(&w, []int32{-1, 0, 1})
	writeChoices(&w, choices)
	writeChosen(&w, chosen)
	read := func(data []byte) (b engine.Batch, from []int32, c []engine.SamplingParams, x []engine.SampledToken, err error) {
		r := reader{from: data}
		readBatch(&r, &b)
		from, err = readFrom(&r, len(b.Tokens))
		c, x = readChoices(&r), readChosen(&r)
		return b, from, c, x, errors.Join(err, r.end())
	}
	b, from, c, x, err := read(w.to[:w.n])
	if err != nil || !reflect.DeepEqual(&b, batch) || !slices.Equal(from, []int32{-1, 0, 1}) || !reflect.DeepEqual(c, choices) || !reflect.DeepEqual(x, chosen) {
		t.Errorf("%v\n%+v\n%v\n%+v\n%+v", err, b, from, c, x)
	}
	for n := range w.n {
		if _, _, _, _, err := read(w.to[:n]); err == nil {
			t.Errorf("cut at %d of %d: read", n, w.n)
		}
	}
	if _, _, _, _, err := read(w.to[:w.n+1]); err == nil {
		t.Error("a byte too many: read")
	}
	for n := range w.n {
		short := writer{to: make([]byte, n)}
		writeBatch(&short, batch)
		writeFrom(&short, []int32{-1, 0, 1})
		writeChoices(&short, choices)
		writeChosen(&short, chosen)
		if !short.full {
			t.Errorf("all of %d bytes fit into %d", w.n, n)
		}
	}
}

// TestEveryField: a field that is added to what crosses must be given its place there, and its number here. Two of Program's are of its recording.
func TestEveryField(t *testing.T) {
	for _, x := range []struct {
		of     any
		fields int
	}{{engine.Batch{}, 5}, {engine.SeqRows{}, 4}, {engine.SamplingParams{}, 9}, {engine.Edit{}, 4}, {engine.SampledToken{}, 3}, {engine.TokenLogprob{}, 2},
		{engine.Program{}, 8}, {engine.Buffer{}, 8}, {engine.Op{}, 14}, {driver.Error{}, 5}} {
		if n := reflect.TypeOf(x.of).NumField(); n != x.fields {
			t.Errorf("%T has %d fields, %d are sent", x.of, n, x.fields)
		}
	}
}

// TestTablesAreCut: entries that no row of the step looks at stay here.
func TestTablesAreCut(t *testing.T) {
	table := make([]int32, 4096)
	w := writer{to: make([]byte, 256)}
	writeBatch(&w, &engine.Batch{Tokens: []int32{1}, Seqs: []engine.SeqRows{{Start: 32, Rows: 1, Full: table, Window: table}}})
	if w.full {
		t.Error("a step of two pages takes more than 256 bytes")
	}
}

func TestProgramText(t *testing.T) {
	for _, o := range []engine.Settings{{}, {Compute: engine.Int8, KVCacheDtype: "bf16", Taps: []string{"final"}}} {
		p, text := encoded(t, o)
		got, err := decodeProgram(text, func(n uint32) (engine.Region, error) { return numbered{n}, nil })
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(p.Spec, got.Spec) || !reflect.DeepEqual(p.Settings, got.Settings) || p.Rows != got.Rows || len(p.Ops) != len(got.Ops) {
			t.Errorf("%+v", got)
		}
		for i := range p.Ops {
			if !reflect.DeepEqual(p.Ops[i], got.Ops[i]) {
				t.Errorf("operation %d: %+v, was %+v", i, got.Ops[i], p.Ops[i])
			}
		}
		if len(p.Buffers) != len(got.Buffers) || got.Buffer("x") == nil {
			t.Error("buffers")
		}
	}
}

// numbered is a region that is large enough for anything.
type numbered struct{ n uint32 }

func (numbered) Bytes() int64              { return 1 << 50 }
func (numbered) Read(int64, []byte) error  { return nil }
func (numbered) Write(int64, []byte) error { return nil }
func (numbered) Free() error               { return nil }

// encoded is the program of a tiny model, all of it in region 1.
func encoded(t testing.TB, o engine.Settings) (*engine.Program, []byte) {
	t.Helper()
	p, err := engine.Record(modeltest.Tiny(), o, 4)
	if err != nil {
		t.Fatal(err)
	}
	p.Layout()
	for _, b := range p.Buffers {
		if b.Home != engine.Logits {
			b.Region = numbered{1}
		}
	}
	text, err := encodeProgram(p, func(r engine.Region) (uint32, error) { return r.(numbered).n, nil })
	if err != nil {
		t.Fatal(err)
	}
	return p, text
}

// TestProgramLies: programs that no honest parent sends.
func TestProgramLies(t *testing.T) {
	_, text := encoded(t, engine.Settings{})
	for name, lie := range map[string]func(*programText){
		"no rows":               func(p *programText) { p.Rows = 0 },
		"endless rows":          func(p *programText) { p.Rows = mostRows + 1 },
		"an unknown type":       func(p *programText) { p.Buffers[0].Type = 99 },
		"an unknown home":       func(p *programText) { p.Buffers[0].Home = 99 },
		"an unknown extent":     func(p *programText) { p.Buffers[0].Extent = 99 },
		"a negative offset":     func(p *programText) { p.Buffers[0].Offset = -1 },
		"an offset too far":     func(p *programText) { p.Buffers[0].Offset = math.MaxInt64 },
		"a side that overflows": func(p *programText) { p.Buffers[0].Width = math.MaxInt },
		"two of one name":       func(p *programText) { p.Buffers[1].Name = p.Buffers[0].Name },
		"no region":             func(p *programText) { p.Buffers[0].Region = 0 },
		"an unknown operation":  func(p *programText) { p.Ops[0].Kind = 200 },
		"a buffer beyond":       func(p *programText) { p.Ops[0].Out[0] = len(p.Buffers) },
		"a buffer before":       func(p *programText) { p.Ops[0].Out[0] = -2 },
		"a missing operand":     func(p *programText) { p.Ops[0].Out[0] = -1 },
		"no operand":            func(p *programText) { p.Ops[0].Out = nil },
		"an unknown mode":       func(p *programText) { p.Options.Compute = "fast" },
		"a negative window":     func(p *programText) { p.Ops[0].Window = -1 },
		"experts that overflow": func(p *programText) { p.Spec.ExpertsPerToken = math.MaxInt },
	} {
		var p programText
		if err := json.Unmarshal(text, &p); err != nil {
			t.Fatal(err)
		}
		lie(&p)
		lied, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := decodeProgram(lied, func(n uint32) (engine.Region, error) { return numbered{n}, nil }); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// TestFaults: an error crosses with its text and with those of its causes that somebody asks for.
func TestFaults(t *testing.T) {
	cause := &driver.Error{Call: "cuMemAlloc_v2", Code: 2, Name: "CUDA_ERROR_OUT_OF_MEMORY", Text: "out of memory", Log: "a log"}
	err := decodeFault(encodeFault(errors.Join(errors.New("allocate the cache"), cause, engine.ErrClosed)))
	var e *driver.Error
	if !errors.As(err, &e) || *e != *cause || !errors.Is(err, driver.ErrOutOfMemory) || !errors.Is(err, engine.ErrClosed) || errors.Is(err, engine.ErrNoSampling) {
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
	here := Here()
	if here.Protocol != Protocol || len(here.Kernels) != 12 {
		t.Errorf("%+v", here)
	}
	for _, other := range []Identity{{Protocol + 1, here.Commit, here.Kernels}, {Protocol, here.Commit + "x", here.Kernels}, {Protocol, here.Commit, "else"}} {
		if here.match(other) == nil {
			t.Errorf("%+v is this build", other)
		}
	}
	if err := here.match(here); err != nil {
		t.Error(err)
	}
}
