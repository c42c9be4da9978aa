package multi

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/gpu/detect"
	"github.com/ossrun/ossrun/gpu/device"
	"github.com/ossrun/ossrun/gpu/kernels"
	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

var update = flag.Bool("update", false, "write testdata/plans.txt anew")

// The host of the table: 96 GiB free, 80 GB/s, a desktop with two channels of DDR5.
var desktop = Host{Free: 96 << 30, Bandwidth: 80e9}

// cardOf is a chip of the catalogue as its driver shows it, nothing else on it. A chip that shares
// the host's memory is given 112 GiB.
func cardOf(c detect.Chip) CardMemory {
	total := int64(c.MemoryMiB) << 20
	if total == 0 {
		total = 112 << 30
		if !c.Integrated {
			total = 144 << 30 // the one chip whose driver's figure is not known, GH200 with 144 GB
		}
	}
	arch, _ := kernels.ArchFor(c.Arch)
	return CardMemory{Name: c.ID, Total: total, Free: device.Available(total, total-300<<20),
		Bandwidth: c.Bandwidth * 1e9, Shared: c.Integrated, Unit: arch.Unit}
}

func describe(p Plan, err error) string {
	if err != nil {
		return err.Error()
	}
	var where []string
	for _, s := range p.Shares {
		part := fmt.Sprintf("layers %d-%d %.1f+%.1f+%.1f GiB", s.From, s.To-1, gibs(s.Weights),
			gibs(s.KV), gibs(s.Scratch))
		if n := len(s.CPUExperts); n > 0 {
			part += fmt.Sprintf(", experts of %d layers on the CPU", n)
		}
		if s.Staging > 0 {
			part += fmt.Sprintf(", %.1f GiB to stream them through", gibs(s.Staging))
		}
		where = append(where, part)
	}
	return fmt.Sprintf("context %d, %s, at most %.0f tok/s", p.Context, strings.Join(where, " | "),
		p.Ceiling)
}

func gibs(n int64) float64 { return float64(n) / (1 << 30) }

// The kernels and the plan of both models for every chip of the catalogue, written out: a change of
// any of them is seen in review.
func TestTable(t *testing.T) {
	var lines []string
	for _, c := range detect.Chips() {
		for _, s := range []models.Spec{models.Spec20B(), models.Spec120B()} {
			arch, err := kernels.ArchFor(c.Arch)
			plan := ""
			if err != nil {
				arch.Name, plan = "-", "the CPU: "+err.Error()
			} else {
				plan = describe(PlanFor(s, []CardMemory{cardOf(c)}, desktop, engine.Settings{}))
			}
			lines = append(lines, fmt.Sprintf("%-30s %-12s %-8s %s", c.ID, s.Name, arch.Name, plan))
		}
	}
	compare(t, "testdata/plans.txt", lines)
}

// The plans of both models on two and four cards of each kind, and on one with room to stream
// experts through where some are on the CPU.
func TestSeveralTable(t *testing.T) {
	var lines []string
	for _, c := range detect.Chips() {
		if _, err := kernels.ArchFor(c.Arch); err != nil || c.Integrated {
			continue
		}
		for _, s := range []models.Spec{models.Spec20B(), models.Spec120B()} {
			card := cardOf(c)
			for _, n := range []int{2, 4} {
				if p, err := PlanFor(s, []CardMemory{card}, desktop,
					engine.Settings{}); err == nil &&
					p.CPUExpertLayers() == 0 && p.Context == maxContext {
					continue // one is enough
				}
				lines = append(lines, fmt.Sprintf("%d %-30s %-12s %s", n, c.ID, s.Name,
					describe(PlanFor(s, slices.Repeat([]CardMemory{card}, n), desktop,
						engine.Settings{}))))
			}
			if p, err := makePlan(s, []CardMemory{card}, desktop, engine.Settings{},
				true); err == nil && p.CPUExpertLayers() > 0 {
				lines = append(lines, fmt.Sprintf("1 %-30s %-12s %s", c.ID, s.Name,
					describe(p, nil)))
			}
		}
	}
	compare(t, "testdata/plans_several.txt", lines)
}

// compare holds lines to a file, or writes it.
func compare(t *testing.T, path string, lines []string) {
	t.Helper()
	if *update {
		hosttest.Check(t, os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o644))
	}
	f := hosttest.Must(os.Open(path))(t)
	defer f.Close()
	var want []string
	for sc := bufio.NewScanner(f); sc.Scan(); {
		want = append(want, sc.Text())
	}
	if len(want) != len(lines) {
		t.Fatalf("%d lines, the table has %d: go test -update and read the difference", len(lines),
			len(want))
	}
	for i := range lines {
		if lines[i] != want[i] {
			t.Errorf("now  %s\nwas  %s", lines[i], want[i])
		}
	}
}

// Figures by hand: 20b is 13,761,264,768 bytes, and a token reads 3.71 GB of it as released,
// embedding rows left out.
func TestFiguresByHand(t *testing.T) {
	s := models.Spec20B()
	p, err := PlanFor(s, []CardMemory{{Free: 80e9, Total: 80e9, Bandwidth: 3.35e12}}, Host{},
		engine.Settings{})
	hosttest.Check(t, err)
	if len(p.Shares) != 1 || p.Shares[0].Weights != s.WeightBytes() || p.Context != 131072 ||
		p.CPUExpertLayers() != 0 {
		t.Errorf("%+v", p)
	}
	bytes := 3.35e12 / p.Ceiling
	if bytes < 3.6e9 || bytes > 3.8e9 {
		t.Errorf("a token reads %.3g bytes, the published count is 3.71e9", bytes)
	}
	// 8 KV heads of 64, K and V, bf16: 2 KiB a token and layer. All 131,072 in the full 12 layers;
	// the window, a step's 2,048 rows and the cut pages in the others.
	if want := int64(131072+128+2048+64) * 2048 * 12; p.Shares[0].KV != want {
		t.Errorf("KV %d, want %d", p.Shares[0].KV, want)
	}
}

func TestTwoCardsBeforeTheCPU(t *testing.T) {
	card := CardMemory{Free: 20e9, Total: 20e9, Bandwidth: 1e12}
	p := hosttest.Must(PlanFor(models.Spec120B(), []CardMemory{card, card, card, card}, desktop,
		engine.Settings{}))(t)
	if p.CPUExpertLayers() != 0 || len(p.Shares) != 4 {
		t.Errorf("%s", describe(p, nil))
	}
	next := 0
	for _, s := range p.Shares {
		if s.From != next {
			t.Errorf("layers have a gap: %+v", p.Shares)
		}
		next = s.To
	}
	if next != 36 || !p.Shares[0].Embedding || !p.Shares[3].Unembedding {
		t.Errorf("%+v", p.Shares)
	}
}

func TestNoRoomSaysTheNumbers(t *testing.T) {
	_, err := PlanFor(models.Spec120B(), []CardMemory{{Free: 8e9, Total: 8e9}}, Host{Free: 16e9},
		engine.Settings{})
	var e *NoRoom
	if !errors.As(err, &e) || e.HostNeed <= e.HostHave || !strings.Contains(err.Error(), " GB ") {
		t.Errorf("%v", err)
	}
	if _, err := PlanFor(models.Spec20B(), nil, Host{}, engine.Settings{}); err == nil {
		t.Error("no card, no error")
	}
	if _, err := PlanFor(models.Spec20B(), []CardMemory{{Free: 80e9}}, Host{},
		engine.Settings{MaxModelLen: 200000}); err == nil {
		t.Error("a context beyond the model's")
	}
}

// Whatever the machine: no card beyond its room, every layer once, the experts on the CPU within
// the host's memory, more memory never a shorter context with as many experts on the cards.
func TestNeverOverruns(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	specs := []models.Spec{models.Spec20B(), models.Spec120B()}
	for range 400 {
		s := specs[r.IntN(2)]
		cards := make([]CardMemory, 1+r.IntN(4))
		for i := range cards {
			total := int64(4e9 + r.Float64()*140e9)
			cards[i] = CardMemory{Total: total,
				Free:      int64(float64(total) * (0.3 + 0.7*r.Float64())),
				Bandwidth: 1e12}
		}
		host := Host{Free: int64(r.Float64() * 128e9), Bandwidth: 5e10}
		var o engine.Settings
		o.GPUMemoryUtilization, o.CPUExperts = 0.5+r.Float64()/2, max(0, r.IntN(8)-4)
		p, err := makePlan(s, cards, host, o, r.IntN(2) == 0)
		if err != nil {
			var e *NoRoom
			if !errors.As(err, &e) {
				t.Fatal(err)
			}
			continue
		}
		layers, weights := 0, int64(0)
		for _, share := range p.Shares {
			if share.Bytes() > room(cards[share.Card], o) {
				t.Fatalf("card %d holds %d of %d", share.Card, share.Bytes(),
					room(cards[share.Card], o))
			}
			layers += share.To - share.From
			weights += share.Weights
		}
		if p.CPUExpertLayers() < o.CPUExperts {
			t.Fatalf("experts of %d layers on the CPU, %d were asked for", p.CPUExpertLayers(),
				o.CPUExperts)
		}
		if layers != s.Layers || weights+p.HostUsed != s.WeightBytes() || p.HostUsed > host.Free {
			t.Fatalf("%d layers, %d + %d bytes of %d", layers, weights, p.HostUsed, s.WeightBytes())
		}
	}
}

// A few rows read few experts, many rows multiply: from some step on the bus is faster, and with a
// slow bus and a fast CPU never.
func TestStreamFrom(t *testing.T) {
	s := models.Spec120B()
	pcie4 := Rates{Link: 22e9, Bandwidth: 80e9, Multiply: 1e12}
	from := StreamFrom(s, pcie4, 8192)
	if from < 64 || from > 1024 {
		t.Errorf("from %d rows on", from)
	}
	// By hand: a layer's experts are 1.65e9 bytes, 75 ms at 22 GB/s; a row costs the CPU
	// 4*3*2*2880*2880 operations, 0.2 ms at 1e12.
	if rows := 377; from < rows/2 || from > 2*rows {
		t.Errorf("from %d rows on, by hand from %d", from, rows)
	}
	for _, r := range []Rates{{}, {Link: 1e9, Bandwidth: 80e9, Multiply: 1e14},
		{Bandwidth: 1, Multiply: 1}} {
		if from := StreamFrom(s, r, 8192); from != 0 {
			t.Errorf("%+v: from %d rows on", r, from)
		}
	}
}

// What a model needs on one card by hand, in both forms of the dense weights: with room for that it
// is on one card, with a byte less on two, and with less than a layer's room on the second one it
// is refused in words.
func TestOneCardIsEnough(t *testing.T) {
	for _, s := range []models.Spec{models.Spec20B(), models.Spec120B()} {
		dense := int64(0) // bf16 bytes of attention's projections and the unembedding
		for range s.Layers {
			dense += int64(2 * s.Hidden * s.HeadDim * (2*s.Heads + 2*s.KVHeads))
		}
		dense += int64(2 * s.Vocab * s.Hidden)
		// 34 bytes for 32 numbers of two
		for form, weights := range map[string]int64{"bf16": s.WeightBytes(),
			"q8": s.WeightBytes() - dense + dense*17/32} {
			const context, rows, logits = 8192, 8192, 1024
			o := engine.Settings{MaxModelLen: context, MaxNumBatchedTokens: rows,
				MaxNumSeqs: logits, Compute: engine.Rounded, Dense: form}
			eo := engine.Settings{Compute: engine.Rounded, Dense: form, MaxNumBatchedTokens: rows,
				MaxLogits: logits, MaxNumSeqs: logits}
			plan := hosttest.Must(engine.PlanFor(s, eo))(t)
			if plan.Weights != weights {
				t.Errorf("%s %s: %d bytes of weights, by hand %d", s.Name, form, plan.Weights,
					weights)
			}
			beside := hosttest.Must(device.Extra(s, eo, kernels.WGMMA))(t)
			// A page of 32 positions has K and V of 8 heads of 64 in bf16, of half the layers; all
			// of the context in the full layers, and in the others the same, since a step is as
			// long as it.
			cache := int64(2*context/32) * 32 * 2048 * int64(s.Layers/2)
			need := weights + cache + plan.Scratch + beside
			// a state 17 MB, logits 824, the choice 101, what attention passes on, and a little
			// behind every tensor
			if beside < 900_000_000 || beside > 1_174_500_000 {
				t.Errorf("%s: %d bytes beside", s.Name, beside)
			}
			for _, x := range []struct{ less, second, shares int64 }{{0, 80 << 30, 1},
				{1, 80 << 30, 2}, {1, 1 << 30, 0}} {
				cards := []CardMemory{{Free: need + Reserve - x.less, Unit: kernels.WGMMA},
					{Free: x.second}}
				p, err := PlanFor(s, cards, Host{}, o)
				var e *NoRoom
				if int64(len(p.Shares)) != x.shares || (x.shares == 0) != errors.As(err, &e) {
					t.Errorf("%s %s, %d bytes less: %s", s.Name, form, x.less, describe(p, err))
				}
				if x.shares == 1 && p.Shares[0].Bytes() != need {
					t.Errorf("%s %s: %d bytes planned, by hand %d", s.Name, form,
						p.Shares[0].Bytes(), need)
				}
			}
		}
	}
}

// Pages of 8 bits: the context is longer on the same card, and two cards have half of a page each.
func TestPagesOf8Bits(t *testing.T) {
	s := models.Spec20B()
	card := CardMemory{Free: 15 << 30}
	half, err := PlanFor(s, []CardMemory{card}, Host{}, engine.Settings{MaxNumBatchedTokens: 512,
		KVCacheDtype: "bf16"})
	hosttest.Check(t, err)
	eight, err := PlanFor(s, []CardMemory{card}, Host{}, engine.Settings{MaxNumBatchedTokens: 512,
		KVCacheDtype: engine.KVFP8})
	hosttest.Check(t, err)
	if len(half.Shares) != 1 || half.Context == maxContext || eight.Context < half.Context*3/2 {
		t.Errorf("in 8 bits a context of %d, in bf16 %d", eight.Context, half.Context)
	}
	o := engine.Settings{MaxModelLen: 65536, MaxNumBatchedTokens: 512,
		KVCacheDtype: engine.KVFP8}
	// By hand: a slot is K and V of 32 positions of 8 heads of 64, one byte each; the full layers
	// take 2,048 pages, the window of 640 positions 22 and their twins as many.
	slot, pages := int64(2*32*8*64), int64(2048+2*22)
	for _, x := range []struct {
		free  int64
		cards int
	}{{40 << 30, 1}, {10 << 30, 2}} {
		p := hosttest.Must(makePlan(s, []CardMemory{{Free: x.free}, {Free: x.free}}, Host{}, o,
			false))(t)
		for i, share := range p.Shares {
			full, window := share.To/2-share.From/2, (share.To+1)/2-(share.From+1)/2
			if want := int64(max(full, (window+1)/2*2)); share.KV != pages*slot*want ||
				len(p.Shares) != x.cards {
				t.Errorf("card %d of %d, layers %d to %d: %d bytes of cache, by hand %d", i,
					len(p.Shares), share.From, share.To-1, share.KV, pages*slot*want)
			}
		}
	}
}
