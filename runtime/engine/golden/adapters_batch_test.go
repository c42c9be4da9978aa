package golden_test

// A base and its adapters in one engine, in steps with rows of several: each answers with the bits
// of an engine of its own, which TestAdaptersArePEFTs holds to PEFT's numbers.

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/models/lora"
	"github.com/ossrun/ossrun/models/modeltest"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/engine/enginetest"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

const t1 = "../../../testdata/model/T1/checkpoint"

// adapted opens T1 with adapters.
func adapted(t *testing.T, refs ...lora.Ref) *checkpoint.Checkpoint {
	t.Helper()
	c, err := checkpoint.Open(t1)
	if err == nil {
		err = c.Adapt(refs)
	}
	hosttest.Check(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

// everything is an adapter with other values for what is no matrix: sinks, norms, embedding,
// biases.
func everything(t *testing.T, s models.Spec) string {
	t.Helper()
	a, random := modeltest.NewAdapter(s, "o_proj.weight"), rand.New(rand.NewPCG(1, 2))
	for _, to := range s.Tensors() {
		switch filepath.Ext(to.Name) {
		case ".sinks", ".bias":
		case ".weight":
			if len(to.Shape) == 2 && to.Name != "model.embed_tokens.weight" {
				continue
			}
		default:
			continue
		}
		data := make([]byte, to.Bytes())
		for i := range len(data) / 2 { // 0.5 to 2, of both signs
			data[2*i], data[2*i+1] = byte(random.Uint32()), 0x3f|byte(random.IntN(2))<<7
		}
		a.Tensors = append(a.Tensors, modeltest.Tensor{Name: "base_model.model." + to.Name,
			DType: string(to.DType), Shape: to.Shape, Data: data})
	}
	folder := filepath.Join(t.TempDir(), "everything")
	hosttest.Check(t, a.Write(folder))
	return folder
}

// rows is a part of a sequence in a step: its logits are those of its last rows.
type rows struct{ adapter, sequence, count, logits int }

// adaptedSteps mix prompts, cut ones among them, and decodes of some models with others in between;
// the base is missing from the last.
var adaptedSteps = [][]rows{
	{{0, 0, 40, 1}, {1, 0, 33, 2}, {1, 1, 1, 1}, {2, 0, 140, 1}, {4, 0, 7, 7}},
	{{0, 0, 1, 1}, {0, 1, 20, 0}, {2, 0, 1, 1}, {3, 0, 65, 1}, {4, 0, 1, 1}},
	{{0, 0, 1, 1}, {0, 1, 9, 1}, {1, 0, 1, 1}, {1, 1, 1, 1}, {2, 0, 3, 3}, {3, 0, 1, 1},
		{4, 0, 1, 1}},
	{{1, 0, 1, 1}, {4, 0, 30, 1}},
}

// answers are the logits of the sequences of each model: those of only, or of all where it is
// below 0, which an engine of several models has.
func answers(t *testing.T, c *checkpoint.Checkpoint, s engine.Settings,
	only int) map[string][]float32 {
	t.Helper()
	s.Pages, s.MaxNumBatchedTokens = 128, 256
	eng := hosttest.Must(engine.On(device(t)).Load(t.Context(), c, s, nil))(t)
	defer eng.Close()
	pages := enginetest.NewPages(s.Pages).WithTwins(s.KVCacheDtype)
	sequences, got := map[string]*enginetest.Sequence{}, map[string][]float32{}
	vocab := c.Spec.Vocab
	for _, step := range adaptedSteps {
		b := engine.Batch{Twins: pages.Twins}
		var names []string
		for _, r := range step {
			if only >= 0 && r.adapter != only {
				continue
			}
			name := fmt.Sprint(r.adapter, ".", r.sequence)
			if sequences[name] == nil {
				sequences[name] = pages.NewSequence(c.Spec)
			}
			at := sequences[name].Length
			rows := hosttest.Must(sequences[name].Extend(r.count))(t)
			if only < 0 {
				rows.Adapter = int32(r.adapter)
			}
			rows.Full, rows.Window = slices.Clone(rows.Full), slices.Clone(rows.Window)
			b.Seqs = append(b.Seqs, rows)
			for i := range r.count {
				b.Tokens = append(b.Tokens, int32((7*r.sequence+13*(at+i))%vocab))
			}
			for i := range r.logits {
				b.LogitRows = append(b.LogitRows, int32(len(b.Tokens)-r.logits+i))
				names = append(names, name)
			}
		}
		if len(b.Tokens) == 0 {
			continue
		}
		logits := make([]float32, len(b.LogitRows)*vocab)
		hosttest.Check(t, eng.Step(t.Context(), &b, logits))
		for i, name := range names {
			got[name] = append(got[name], logits[i*vocab:(i+1)*vocab]...)
		}
	}
	return got
}

func TestAdaptersAnswerAsAlone(t *testing.T) {
	base := adapted(t)
	var refs []lora.Ref
	for _, source := range []string{peft + "patterns", peft + "router", peft + "saved:0.5",
		everything(t, base.Spec)} {
		ref := hosttest.Must(lora.Find(source))(t)
		refs = append(refs, ref)
		base.AddAdapter("", adapted(t, ref))
	}
	for name, s := range map[string]engine.Settings{
		"exact":          {Compute: engine.Exact},
		"int8":           {Compute: engine.Int8},
		"int8, q8":       {Compute: engine.Int8, Dense: engine.DenseQ8},
		"int8-fast, fp8": {Compute: engine.Int8Fast, Dense: engine.DenseQ8, KVCacheDtype: engine.KVFP8},
	} {
		t.Run(name, func(t *testing.T) {
			got := answers(t, base, s, -1)
			seen := 0
			for adapter := range len(refs) + 1 {
				alone := adapted(t, refs[max(0, adapter-1):adapter]...)
				for name, want := range answers(t, alone, s, adapter) {
					seen++
					if !slices.Equal(got[name], want) {
						t.Errorf("sequence %s is not what it is alone", name)
					}
					vocab := base.Spec.Vocab
					if adapter > 0 && slices.Equal(want[:vocab], got["0.0"][:vocab]) {
						t.Errorf("sequence %s answers as the base", name)
					}
				}
			}
			if seen != len(got) || seen != 7 {
				t.Errorf("%d of %d sequences were compared", seen, len(got))
			}
		})
	}
}

// alone is a device that computes one model at a time.
type alone struct{ engine.Device }

func (a alone) Caps() engine.Caps {
	caps := a.Device.Caps()
	caps.Adapters = false
	return caps
}

// TestAdaptersAreRefused: by a device without them, and rows not in the order of the models.
func TestAdaptersAreRefused(t *testing.T) {
	ref := hosttest.Must(lora.Find(peft + "q"))(t)
	base := adapted(t)
	base.AddAdapter("", adapted(t, ref))
	dev, s := device(t), engine.Settings{Pages: 8, MaxNumBatchedTokens: 8}
	if _, err := engine.New(alone{dev}, base, s); err == nil {
		t.Error("a device that computes one model takes two")
	}
	eng := hosttest.Must(engine.New(dev, base, s))(t)
	defer eng.Close()
	plain, err := engine.PlanFor(base.Spec, eng.Settings())
	if err != nil || plain != eng.Plan() {
		t.Errorf("planned is %+v, in use %+v, %v", plain, eng.Plan(), err)
	}
	changed := int64(0)
	for _, name := range base.Adapters[0].Changed {
		changed += int64(len(hosttest.Must(base.Tensor(name))(t).Data))
	}
	s = eng.Settings()
	s.Adapters = nil
	one, _ := engine.PlanFor(base.Spec, s)
	if more := plain.Weights - one.Weights; more != changed || changed == 0 {
		t.Errorf("an adapter that changes %d bytes takes %d", changed, more)
	}
	for _, x := range []struct {
		adapters [2]int32
		logits   []int32
		ok       bool
	}{
		{[2]int32{0, 1}, []int32{0, 1}, true},
		{[2]int32{1, 1}, []int32{1}, true},
		{[2]int32{1, 0}, []int32{0}, false},
		{[2]int32{0, 2}, []int32{0}, false},
		{[2]int32{-1, 0}, []int32{0}, false},
		{[2]int32{0, 1}, []int32{1, 0}, false},
	} {
		b := engine.Batch{Tokens: []int32{5, 6}, LogitRows: x.logits}
		for _, adapter := range x.adapters {
			q := enginetest.NewPages(4).NewSequence(base.Spec)
			rows := hosttest.Must(q.Extend(1))(t)
			rows.Adapter = adapter
			b.Seqs = append(b.Seqs, rows)
		}
		logits := make([]float32, 2*base.Spec.Vocab)
		if err := eng.Step(t.Context(), &b, logits); (err == nil) != x.ok {
			t.Errorf("adapters %v, logits of %v: %v", x.adapters, x.logits, err)
		}
	}
}
