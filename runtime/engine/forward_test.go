package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// tiny is a shape of two layers.
func tiny() models.Spec {
	s := models.Spec20B()
	s.Layers, s.Hidden, s.Intermediate, s.Heads, s.KVHeads, s.Experts, s.Vocab = 2, 64, 96, 4, 2, 8,
		100
	return s
}

// listing is a program as text: kind, what it reads and weighs, what it writes.
func listing(p *Program) string {
	var b strings.Builder
	names := func(list []*Buffer) string {
		var n []string
		for _, x := range list {
			if x != nil {
				n = append(n, strings.TrimPrefix(strings.TrimPrefix(x.Name, "model.layers."),
					"model."))
			}
		}
		return strings.Join(n, " ")
	}
	for _, op := range p.Ops {
		fmt.Fprintf(&b, "%s %s(%s) -> %s", op.Kind, op.Label, names(op.In), names(op.Out))
		if op.Window > 0 {
			fmt.Fprintf(&b, " window %d", op.Window)
		}
		if op.Add {
			b.WriteString(" added")
		}
		b.WriteString("\n")
	}
	return b.String()
}

// TestRecord reads the model as it is recorded: a change of the forward pass shows here as a line.
func TestRecord(t *testing.T) {
	p := hosttest.Must(Record(tiny(), Settings{}, 4))(t)
	layer := func(n int, window string) string {
		return strings.NewReplacer("L", fmt.Sprintf("layer%d", n), "WINDOW", window).Replace(`norm L.norm(x) -> norm
linear L.qkv(norm) -> qkv
rope L.rope(angles) -> qkv
write_kv L.kv(qkv) -> kvWINDOW
attend L.attend(qkv kv) -> headsWINDOW
linear L.o(heads) -> x added
norm L.norm2(x) -> norm
linear L.router(norm) -> router
route L.route(router) -> experts expert_weights order groups
gate_up L.gate_up(order groups norm) -> h
down L.down(order groups h) -> y
combine L.combine(y expert_weights) -> x
`)
	}
	want := "embed embed() -> x\nangles angles() -> angles\n" + layer(0, " window 128") +
		layer(1, "") +
		"gather gather(x) -> last\nnorm final_norm(last) -> last\nlinear unembed(last) -> logits\n"
	if got := listing(p); got != want {
		t.Errorf("recorded:\n%s\nwant:\n%s", got, want)
	}
}

func TestRecordInt8(t *testing.T) {
	p := hosttest.Must(Record(tiny(), Settings{Compute: Int8}, 4))(t)
	got := listing(p)
	for _, line := range []string{
		"quantize layer1.norm2(norm) -> norm.q8 norm.d\ngate_up layer1.gate_up(order groups " +
			"norm.q8 norm.d) -> h\n",
		"quantize layer1.h(h) -> h.q8 h.d\ndown layer1.down(order groups h.q8 h.d) -> y\n",
	} {
		if !strings.Contains(got, line) {
			t.Errorf("missing %q in\n%s", line, got)
		}
	}
	if p.Settings.KVCacheDtype != "bf16" {
		t.Errorf("the cache of int8 is %s", p.Settings.KVCacheDtype)
	}
}

func TestRecordTaps(t *testing.T) {
	p := hosttest.Must(Record(tiny(), Settings{Taps: []string{"layer1.experts", "embedding"}},
		4))(t)
	var taps []string
	for _, op := range p.Ops {
		if op.Kind == Tap {
			taps = append(taps, op.Label)
		}
	}
	if !slices.Equal(taps, []string{"embedding", "layer1.experts"}) {
		t.Errorf("taps %v", taps)
	}
}

// TestCacheLayers: layers of one kind are numbered one after the other, and each kind fits its
// page.
func TestCacheLayers(t *testing.T) {
	s := tiny()
	s.Layers = 5 // three with a window, two without
	var got []int
	for l := range s.Layers {
		place, twin := AllLayers(s, "bf16").Place(l)
		if twin {
			t.Errorf("layer %d lies in a twin", l)
		}
		got = append(got, place)
	}
	if !slices.Equal(got, []int{0, 0, 1, 1, 2}) {
		t.Errorf("places %v", got)
	}
	if want := int64(3 * 2 * 2 * PageTokens * 64 * 4); PageBytes(s, "f32") != want {
		t.Errorf("a page has %d bytes, not %d", PageBytes(s, "f32"), want)
	}
	// In 8 bits: two full layers of one byte; two window layers of two bytes, the third in the
	// twin.
	if want := int64(2 * 2 * 2 * 2 * PageTokens * 64); PageBytes(s, KVFP8) != want {
		t.Errorf("a page in 8 bits has %d bytes, not %d", PageBytes(s, KVFP8), want)
	}
	for layer, want := range []struct {
		place int
		twin  bool
	}{{0, false}, {0, false}, {1, false}, {1, false}, {0, true}} {
		place, twin := AllLayers(s, KVFP8).Place(layer)
		if place != want.place || twin != want.twin {
			t.Errorf("layer %d lies at %d, in a twin: %v", layer, place, twin)
		}
	}
}

// TestCheckRefuses spoils every operand of every operation, one at a time.
func TestCheckRefuses(t *testing.T) {
	for _, o := range []Settings{{}, {Compute: Int8}} {
		o.Taps = []string{"embedding"}
		p := hosttest.Must(Record(tiny(), o, 4))(t)
		for _, op := range p.Ops {
			for which, list := range map[string]*[]*Buffer{"output": &op.Out, "input": &op.In,
				"weight": &op.W} {
				for i, b := range *list {
					for what, other := range spoiled(b) {
						if op.Kind == Linear && which == "weight" && i%2 == 1 && other == nil {
							continue // a bias may be missing
						}
						(*list)[i] = other
						if p.Check() == nil {
							t.Errorf("%s %s: accepts a %s %d of %s", op.Kind, op.Label, which, i,
								what)
						}
						(*list)[i] = b
					}
				}
				whole := *list
				*list = append(slices.Clone(whole), whole...)
				*list = append(*list, nil)
				if p.Check() == nil {
					t.Errorf("%s %s: accepts too many %ss", op.Kind, op.Label, which)
				}
				*list = whole
			}
		}
		hosttest.Check(t, p.Check())
	}
}

// spoiled are buffers that differ from b in one way that matters.
func spoiled(b *Buffer) map[string]*Buffer {
	if b == nil {
		return nil
	}
	with := func(change func(*Buffer)) *Buffer {
		c := *b
		change(&c)
		return &c
	}
	m := map[string]*Buffer{
		"nothing":    nil,
		"other type": with(func(c *Buffer) { c.Type = (c.Type + 1) % (U8 + 1) }),
	}
	if b.Home != Cache {
		m["other width"] = with(func(c *Buffer) { c.Width++ })
	}
	return m
}

func TestOptions(t *testing.T) {
	for _, bad := range []Settings{{Compute: "fp4"}, {KVCacheDtype: "q4"}, {Pages: -1},
		{MaxNumBatchedTokens: -1}, {Threads: -1}} {
		if _, err := Record(tiny(), bad, 1); err == nil {
			t.Errorf("%+v is accepted", bad)
		}
	}
}

func TestBuckets(t *testing.T) {
	for most, want := range map[int][]int{1: {1}, 2: {2, 1}, 3: {3, 2, 1}, 8: {8, 4, 2, 1},
		100: {100, 64, 32, 16, 8, 4, 2, 1}} {
		if got := Buckets(most); !slices.Equal(got, want) {
			t.Errorf("Buckets(%d) = %v, want %v", most, got, want)
		}
	}
}
