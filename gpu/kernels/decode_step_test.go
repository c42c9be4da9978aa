package kernels

import (
	"encoding/binary"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// stepOf is a step of one layer, of rows rows, with pointers that can be told apart.
func stepOf(t Target, rows int, elements Element) []Launch {
	next := Pointer(0x1000)
	p := func() Pointer { next += 0x100; return next }
	h, c := Heads{8, 2, 64}, Cache{p(), 4096, elements, p(), p(), p()}
	n := func() Rows { return Rows{p(), rows} }
	return []Launch{
		t.Embed(n(), p(), p(), p(), 96),
		t.Angles(n(), p(), p(), p(), 32, 1.5),
		t.DecodeQKV(n(), p(), c, p(), p(), QKV{p(), p(), p(), p(), p(), p()}, p(), 96, h, 1e-5),
		t.DecodeAttend(Attention{n(), p(), p(), c, p(), h, 0, 0.125}, 0, p(), p(), 5),
		t.DecodeLinear(Product{n(), p(), Activations{X: p()}, p(), p(), 96, 640, 640, true}, p(),
			1e-5),
		t.DecodeRoute(n(), p(), p(), p(), p(), p(), p(), p(), p(), p(), 96, 10, 2, 1e-5),
		t.DecodeGateUp(n(), p(), p(), p(), ExpertMatrix{p(), p(), p()}, 64, 96, 2, 7),
		t.DecodeDown(n(), p(), p(), p(), p(), ExpertMatrix{p(), p(), p()}, 96, 64, 2),
		t.Gather(n(), p(), p(), p(), 96),
	}
}

// The numbers of the phases and the shape of a record are those of the source.
func TestStepHasTheNumbersOfItsSource(t *testing.T) {
	source := hosttest.Must(os.ReadFile("decode_step.cu"))(t)
	for _, line := range []string{"constexpr int kRecord = 24;", "constexpr int kArguments = 2;"} {
		if !strings.Contains(string(source), line) {
			t.Errorf("the source has no %q", line)
		}
	}
	list := regexp.MustCompile(`(?s)enum Phase \{(.*?)\}`).FindSubmatch(source)
	if list == nil {
		t.Fatal("the source has no list of phases")
	}
	var have []string
	for name := range strings.SplitSeq(string(list[1]), ",") {
		if name = strings.ToLower(strings.TrimSpace(name)); name != "" {
			have = append(have, strings.TrimPrefix(name, "k"))
		}
	}
	if len(have) != len(phaseNumbers) {
		t.Fatalf("%d phases in the source, %d here", len(have), len(phaseNumbers))
	}
	for name, n := range phaseNumbers {
		if short := strings.ReplaceAll(strings.TrimPrefix(name, "decode_"), "_",
			""); have[n] != short {
			t.Errorf("phase %d is %s in the source and %s here", n, have[n], short)
		}
	}
}

// A record holds its launch: kernel, grid, arguments.
func TestStepTable(t *testing.T) {
	for rows, elements := range map[int]Element{1: F32, 4: BF16} {
		launches := stepOf(Target{Warp: 32}, rows, elements)
		s := hosttest.Must(NewStep(launches))(t)
		if want := map[int]string{1: "decode_step_f32",
			4: "decode_step_bf16"}[rows]; s.Kernel() != want {
			t.Errorf("%d rows on %s, not %s", rows, s.Kernel(), want)
		}
		const blocks = 12
		table := s.Table(blocks)
		if len(table) != 8*recordWords*len(launches) {
			t.Fatalf("%d bytes", len(table))
		}
		for i, l := range launches {
			word := func(j int) uint64 {
				return binary.NativeEndian.Uint64(table[8*(recordWords*i+
					j):])
			}
			grid := [3]uint32{uint32(word(0) >> 32), uint32(word(1)), uint32(word(1) >> 32)}
			whole := l.Grid[0] * l.Grid[1] * l.Grid[2]
			if grid[0] != l.Grid[0] || grid[2] != l.Grid[2] || grid[1] > l.Grid[1] ||
				grid[1] != l.Grid[1] &&
					(whole <= blocks || !slices.Contains(anyBlocks, s.phases[i])) {
				t.Errorf("%s: %v blocks, its launch has %v", l.Kernel, grid, l.Grid)
			}
			for j, a := range l.Args {
				w, ok := word(recordArguments+j), true
				switch a := a.(type) {
				case Pointer:
					ok = w == uint64(a)
				case int32:
					ok = int32(w) == a
				case int64:
					ok = int64(w) == a
				}
				if !ok {
					t.Errorf("%s: argument %d is %#x, not %v", l.Kernel, j, w, a)
				}
			}
			if l.Shared > s.Shared() {
				t.Errorf("%s wants %d bytes of shared memory, the step has %d", l.Kernel, l.Shared,
					s.Shared())
			}
		}
		if n := s.Blocks(1000); n < blocks || s.Blocks(3) != 3 {
			t.Errorf("%d blocks where 1000 are resident, %d where 3 are", n, s.Blocks(3))
		}
	}
}

// What is no phase is refused by name, and so is a step on two kinds of cache.
func TestStepRefusals(t *testing.T) {
	target := Target{Warp: 32}
	mixed := append(stepOf(target, 1, BF16), stepOf(target, 1, F32)...)
	for want, launches := range map[string][]Launch{
		"norm is no phase":     {target.Norm(Rows{1, 1}, 1, 1, 1, 64, 1e-5)},
		"no launches":          nil,
		"caches of two types":  mixed,
		"decode_qkv_f8_1 is n": stepOf(target, 1, E4M3),
		"write_kv_f32 is no p": {target.WriteKV(Rows{1, 1}, Cache{}, 1, Heads{1, 1, 64})},
	} {
		if _, err := NewStep(launches); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, which does not say %q", err, want)
		}
	}
}

// The barrier's state has a line for every group of blocks.
func TestBarrierBytes(t *testing.T) {
	for _, x := range []struct {
		warp, blocks, fan int
		bytes             int64
	}{{32, 132, 132, 3 * 128}, {64, 304, 38, 10 * 128}, {64, 5, 5, 3 * 128},
		{64, 39, 38, 4 * 128}} {
		target := Target{Warp: x.warp}
		if target.BarrierFan(x.blocks) != x.fan || target.BarrierBytes(x.blocks) != x.bytes {
			t.Errorf("%+v: %d, %d", x, target.BarrierFan(x.blocks), target.BarrierBytes(x.blocks))
		}
	}
}
