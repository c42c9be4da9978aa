package serve

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"sort"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/gpu"
	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/runtime/cpu"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/kv"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// input is what a plan is made of.
type input struct {
	engine.Room
	models.Spec
	engine.Settings
}

func (in input) plan() (Plan, error) { return makePlan(in.Spec, in.Settings, in.Room) }

func (in input) pages(n int) int { return pagesFor(n, in.Spec, in.Settings) }

func input20b(free int64) input {
	need := engine.Plan{Weights: 13_761_264_768, Scratch: 200 << 20,
		PageBytes: 32 * 12 * 2 * 512 * 2}
	return input{engine.Room{Free: free, Need: need},
		models.Spec20B(), engine.Settings{MaxNumBatchedTokens: 512, MaxNumSeqs: 64}}
}

// The plan must hold what it promises at every amount of free memory: never more than is free, and
// always one sequence of the stated length.
func TestPlanNeverOverruns(t *testing.T) {
	fitted := 0
	for free := int64(1 << 30); free < 64<<30; free += 173 << 20 {
		for _, asked := range []int{0, 4096, 131072} {
			in := input20b(free)
			in.MaxModelLen = asked
			p, err := in.plan()
			if err != nil {
				continue
			}
			fitted++
			if p.Total > free {
				t.Fatalf("free %d: planned %d", free, p.Total)
			}
			if in.pages(p.Context) > p.Pages {
				t.Fatalf("free %d: context %d needs %d pages, the pool has %d", free, p.Context,
					in.pages(p.Context), p.Pages)
			}
			if asked > 0 && p.Context != asked {
				t.Fatalf("free %d: asked %d, got %d", free, asked, p.Context)
			}
		}
	}
	if fitted < 100 {
		t.Fatalf("only %d plans fitted", fitted)
	}
}

// A refusal has doctor's words and figures, for the same context.
func TestPlanRefusesWithNumbers(t *testing.T) {
	for _, asked := range []int{0, 4096, 131072} {
		for name, room := range map[string]engine.Room{"host": {Free: 8 << 30},
			"card": {Free: 8 << 30, Total: 12 << 30}} {
			in := input20b(0)
			room.Need = in.Need
			in.Room, in.MaxModelLen = room, asked
			_, err := in.plan()
			if err == nil {
				t.Fatalf("%s, %d tokens: it fits", name, asked)
			}
			context := cmp.Or(asked, gpu.UsableContext) // doctor's
			needs := room.Need.Weights + room.Need.Scratch +
				int64(in.pages(context))*room.Need.PageBytes
			want := MemoryNeeded(needs, room.Free, room.Total)
			if room.Total > 0 { // with a card's reserve
				want = "there are 12.9 GB in all"
			}
			if !strings.Contains(err.Error(), want) ||
				!strings.Contains(err.Error(), fmt.Sprint(context, " tokens")) {
				t.Errorf("%s, %d tokens: %v, want %s", name, asked, err, want)
			}
		}
	}
}

// If the weights do not fit, experts stay on the disk: the plan is within the usable memory, with
// room for the experts of at least two tokens.
func TestPlanOnDisk(t *testing.T) {
	onDisk, whole, refused := 0, 0, 0
	for free := int64(3 << 30); free < 20<<30; free += 91 << 20 {
		for _, asked := range []int{0, 4096, 65536} {
			in := input20b(free)
			in.Room.OnDisk, in.MaxModelLen = 11_000_000_000, asked
			p, err := in.plan()
			if err != nil {
				if refused++; free > 12<<30 {
					t.Fatalf("free %d: %v", free, err)
				}
				continue
			}
			if p.OnDisk == 0 {
				whole++
			} else {
				onDisk++
			}
			if p.Total > free-reserve(free) || in.pages(p.Context) > p.Pages {
				t.Fatalf("free %d: %+v", free, p)
			}
			if kept := in.Room.OnDisk - p.OnDisk; kept < in.Room.OnDisk/4 {
				t.Fatalf("free %d: %d bytes of experts are in memory", free, kept)
			}
			if p.OnDisk > 0 && asked == 0 && p.Context != diskContext {
				t.Fatalf("free %d: a context of %d", free, p.Context)
			}
			if p.OnDisk > 0 && !strings.Contains(p.Slow(), "read from the disk") {
				t.Fatalf("free %d: it does not say that it is slow: %q", free, p.Slow())
			}
		}
	}
	if onDisk < 100 || whole < 20 || refused < 20 {
		t.Fatalf("%d on the disk, %d whole, %d refused", onDisk, whole, refused)
	}
}

// The minimum of a CPU by docs/guide/hardware.md: free memory with experts on the disk, in GB, with
// the defaults and with --dense bf16.
func TestLeastMemory(t *testing.T) {
	s := DefaultOptions().withDefaults(false, 0).Settings
	dev := hosttest.Must(cpu.New(1))(t)
	defer dev.Close()
	for _, c := range []struct {
		spec  models.Spec
		dense string
		want  string
	}{
		{models.Spec20B(), "", "6.4"}, {models.Spec20B(), engine.DenseBF16, "7.6"},
		{models.Spec120B(), "", "8.5"}, {models.Spec120B(), engine.DenseBF16, "10.1"},
	} {
		s.Dense = c.dense
		s.Dense = DenseFor(c.spec, s, dev.Caps())
		room := hosttest.Must(engine.On(dev).Room(c.spec, s))(t)
		least := sort.Search(64<<10, func(mib int) bool {
			room.Free = int64(mib) << 20
			_, err := makePlan(c.spec, s, room)
			return err == nil
		})
		if got := fmt.Sprintf("%.1f", float64(least<<20)/1e9); got != c.want {
			t.Errorf("%s, dense %q: %s GB, not %s", c.spec.Name, c.dense, got, c.want)
		}
	}
}

func TestPlanUsesAllItCan(t *testing.T) {
	p, err := input20b(40 << 30).plan()
	if err != nil || p.Context != 131072 {
		t.Fatalf("%+v %v", p, err)
	}
	tight, err := input20b(17 << 30).plan()
	if err != nil || tight.Context >= 131072 || tight.Context < 8192 {
		t.Fatalf("%+v %v", tight, err)
	}
}

// On any machine, for any model and any flags: the plan is what the engine takes, is within the
// usable memory, and has pages for every sequence up to the stated context, in any batch.
func TestPlanOnAnyMachine(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	fitted, whole := 0, 0
	for range 400 {
		spec := []models.Spec{models.Spec20B(), models.Spec120B()}[rng.IntN(2)]
		pick := func(n ...int) int { return n[rng.IntN(len(n))] }
		rows, seqs := pick(0, 1, 64, 512, 2048, 8192, 16384), pick(1, 8, 256, 1024)
		if rows == 0 {
			rows = 512
		}
		seqs = min(seqs, rows)
		o := engine.Settings{KVCacheDtype: []string{"", "f32", "bf16"}[rng.IntN(3)],
			MaxNumBatchedTokens: rows, Pages: 1}
		need := hosttest.Must(engine.PlanFor(spec, o))(t)
		in := input{engine.Room{Free: int64(rng.IntN(200<<10)+1) << 20, Need: need,
			Extra: int64(seqs) * int64(spec.Vocab) * 4}, spec,
			engine.Settings{KVCacheDtype: o.KVCacheDtype, MaxNumBatchedTokens: rows,
				MaxNumSeqs: seqs, MaxModelLen: pick(0, 0, 0, 1000, 8192, 131072),
				GPUMemoryUtilization: []float64{0, 0, 0.5, 0.9, 0.95, 1}[rng.IntN(6)]}}
		if rng.IntN(3) == 0 { // a card, of which others have some
			in.Total = in.Free + int64(rng.IntN(32<<10))<<20
		}
		p, err := in.plan()
		if err != nil {
			if p != (Plan{}) || !strings.Contains(err.Error(), "--max-model-len") {
				t.Fatalf("%+v: %+v, %v", in, p, err)
			}
			continue
		}
		fitted++
		o.Pages = p.Pages
		exact, err := engine.PlanFor(spec, o)
		hosttest.Check(t, err)
		may := in.Free - reserve(in.Free)
		if in.GPUMemoryUtilization > 0 {
			may = min(in.Free, int64(float64(max(in.Total, in.Free))*in.GPUMemoryUtilization))
		}
		if total := exact.Total() + int64(seqs)*int64(spec.Vocab)*4; total != p.Total ||
			total > may || p.Remaining != in.Free-total {
			t.Fatalf("%+v: the engine takes %d, planned are %d of %d", in, total, p.Total, may)
		}
		if kv.PagesOf(p.Context, rows, spec.Window, 1) > p.Pages || in.MaxModelLen > 0 &&
			p.Context != min(in.MaxModelLen, spec.MaxPosition) {
			t.Fatalf("%+v: %+v", in, p)
		}
		if p.Context == spec.MaxPosition {
			whole++
		} else if in.MaxModelLen == 0 && (p.FullContext <= in.Free && in.Total <= in.Free ||
			len(p.Lines()) != 3) {
			t.Fatalf("%+v: the whole context is said to need %d, %q", in, p.FullContext, p.Lines())
		} else if in.MaxModelLen > 0 && len(p.Lines()) != 2 {
			t.Fatalf("%+v: the context was asked for, and yet: %q", in, p.Lines())
		}
		if in.MaxModelLen == 0 && p.Context < spec.MaxPosition { // what would change it does
			if in.Free = p.FullContext; in.Total > 0 {
				in.Total = in.Free
			}
			if p, err = in.plan(); err != nil || p.Context != spec.MaxPosition {
				t.Fatalf("%+v: %+v, %v", in, p, err)
			}
		}
	}
	if fitted < 100 || whole < 30 {
		t.Fatalf("only %d plans fitted, %d with the whole context", fitted, whole)
	}
}

// The plan is what the engine takes, to the byte, plus the scheduler's logits; the demo, whose
// context is bounded on purpose, does not ask for more memory.
func TestThePlanIsWhatTheEngineTakes(t *testing.T) {
	for _, o := range []engine.Settings{{}, {KVCacheDtype: "bf16", MaxNumBatchedTokens: 128,
		MaxNumSeqs: 5},
		{KVCacheDtype: "fp8", Dense: "q8", Compute: "int8"}} {
		found := hosttest.Must(checkpoint.Resolve("demo"))(t)
		dev := hosttest.Must(cpu.New(2))(t)
		m := hosttest.Must(LoadOn(found, engine.On(dev), o))(t)
		plan, takes := m.Plan(), m.engine.Plan()
		seqs := o.MaxNumSeqs
		if seqs == 0 {
			seqs = 256
		}
		if logits := int64(seqs) * int64(m.ckpt.Spec.Vocab) * 4; plan.Weights != takes.Weights ||
			plan.KV != takes.KV() || plan.Total != takes.Total()+logits {
			t.Errorf("%+v: planned %+v, the engine takes %+v", o, plan, takes)
		}
		if lines := plan.Lines(); len(lines) != 2 {
			t.Errorf("%q", lines)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
}

type onCPU struct{ engine.Backend }

func (onCPU) Caps() engine.Caps { return engine.Caps{} }

// The interpreters of python are in the ceiling, and named.
func TestThePlanCountsTools(t *testing.T) {
	m := &Models{requests: Requests{Ceiling: 1 << 30}}
	without := Plan{Total: 2 << 30}.WithRequests(m.Requests(), onCPU{}, 0)
	m.SetToolMemory(4 << 30)
	with := Plan{Total: 2 << 30}.WithRequests(m.Requests(), onCPU{}, 0)
	if with.Ceiling != without.Ceiling+4<<30 {
		t.Errorf("%d with tools, %d without", with.Ceiling, without.Ceiling)
	}
	if line := strings.Join(with.Lines(), "\n"); !strings.Contains(line, ", 4.3 GB for python") {
		t.Error(line)
	}
	if line := m.Requests().String(); !strings.Contains(line, "at most 4.3 GB for python") {
		t.Error(line)
	}
}
