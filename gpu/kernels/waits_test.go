package kernels

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/assets"
	"github.com/ossrun/ossrun/gpu/driver/drivertest"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// noticedWaits is how many percent of the waits of an image must be noticed where they are taken
// out. The others stand where a later wait is enough: a store that the block does not read again at
// a barrier of the block, what LLVM waits for behind the emptying of a cache, a load that nothing
// uses (prefetch), two waits beside each other. A kernel whose blocks count themselves has a dozen
// of them, and of 69 kernels fourteen do.
const noticedWaits = 92

// Every kernel of every code object waits for what it touches and for what other warps and blocks
// are told of; and the reading notices where it would not. Run by ptxas.sh, as the other tests of
// disassembly are.
func TestDisassemblyWaits(t *testing.T) {
	drivertest.Long(t)
	objdump := tool(t, "llvm-objdump-22")
	for _, a := range Archs {
		if a.Vendor != AMD {
			continue
		}
		t.Run(a.Name, func(t *testing.T) {
			t.Parallel()
			all, err := flows(a, output(t, objdump, "-d", filepath.Join("..", "..", "assets",
				"kernels", a.File())))
			hosttest.Check(t, err)
			image := hosttest.Must(assets.Kernels.ReadFile("kernels/" + a.File()))(t)
			names, err := Names(image)
			if err != nil || len(names) == 0 || len(names) != len(all) {
				t.Fatalf("%d kernels were read, the image has %d (%v)", len(all), len(names), err)
			}
			steps, waits, noticed := 0, 0, 0
			for _, name := range names {
				f := all[name]
				if f == nil {
					t.Fatalf("%s is not in the disassembly", name)
				}
				wrong := f.faults()
				for _, w := range wrong[:min(3, len(wrong))] {
					t.Errorf("%s, %d faults: %s", name, len(wrong), f.String(w))
				}
				if text := f.unread(); text != "" {
					t.Errorf("%s: no path comes to %s", name, text)
				}
				steps += len(f.steps)
				for i := range f.steps {
					if w := f.steps[i].waits; len(w) > 0 {
						waits++
						if slices.ContainsFunc(w, func(w wait) bool {
							return f.notices(removed{i, w.counter})
						}) {
							noticed++
						}
					}
				}
			}
			if noticed*100 < waits*noticedWaits {
				t.Errorf("of %d waits only %d are noticed", waits, noticed)
			}
			t.Logf("%d kernels, %d instructions, %d of %d waits are noticed (%.1f %%)", len(names),
				steps, noticed, waits, 100*float64(noticed)/float64(waits))
		})
	}
}

// disassembled writes what LLVM would: instructions, one a line, of four bytes each; @3 behind a
// branch is the fourth of them.
func disassembled(lines string) string {
	var b strings.Builder
	b.WriteString("0000000000000000 <kernel>:\n")
	for i, line := range strings.Split(lines, "; ") {
		code := 0
		if branch, at, ok := strings.Cut(line, " @"); ok {
			fmt.Sscan(at, &code)
			code, line = (code-i-1)&0xffff, branch+" 0"
		}
		fmt.Fprintf(&b, "\t%s // %012X: BF80%04X\n", line, 4*i, code)
	}
	return b.String()
}

// The reading itself: each of these is right as it stands, and wrong without any one of the
// instructions in brackets.
func TestFlowMissesWhatIsNotThere(t *testing.T) {
	for _, c := range []struct{ arch, lines, wrong string }{
		{"gfx942", "global_load_dword v1, v[2:3], off; [s_waitcnt vmcnt(0)]; v_mov_b32 v4, v1; " +
			"s_endpgm", "before it was loaded"},
		// The wait leaves one of two under way, in the order in which they were asked for.
		{"gfx1100", "global_load_b32 v1, v[2:3], off; global_load_b64 v[8:9], v[2:3], off; " +
			"[s_waitcnt vmcnt(1)]; v_mov_b32 v4, v1; [s_waitcnt vmcnt(0)]; v_mov_b32 v4, v9; " +
			"s_endpgm", "before it was loaded"},
		{"gfx1201", "s_load_b64 s[4:5], s[0:1], 0x0; [s_wait_kmcnt 0x0]; s_mov_b32 s0, s5; s_endpgm",
			"before it was loaded"},
		{"gfx90a", "ds_read_b32 v1, v2; ds_bpermute_b32 v3, v2, v4; [s_waitcnt lgkmcnt(1)]; " +
			"v_mov_b32 v9, v1; [s_waitcnt lgkmcnt(0)]; v_mov_b32 v9, v3; s_endpgm",
			"before it was loaded"},
		{"gfx1201", "ds_store_b32 v1, v2; [s_wait_dscnt 0x0]; s_barrier_signal -1; " +
			"s_barrier_wait 0xffff; s_endpgm", "at a barrier"},
		// A store that comes over the back edge of a loop: what LLVM 22 forgot.
		{"gfx1201", "s_wait_loadcnt 0x0; [s_wait_storecnt 0x0]; global_inv scope:SCOPE_DEV; " +
			"global_atomic_add_u32 v1, v2, v3, s[0:1] th:TH_ATOMIC_RETURN scope:SCOPE_DEV; " +
			"s_wait_loadcnt 0x0; global_store_b32 v1, v2, s[0:1]; s_cbranch_scc1 @0; s_endpgm",
			"in a fence"},
		{"gfx1201", "global_store_b32 v1, v2, s[0:1]; [s_wait_storecnt 0x0]; " +
			"global_store_b32 v3, v4, s[0:1] scope:SCOPE_DEV; s_endpgm", "blocks are told"},
		// A store of this wave before the barrier at which the block says that it is done.
		{"gfx942", "global_store_dword v1, v2, s[0:1]; [buffer_wbl2 sc1]; [s_waitcnt vmcnt(0)]; " +
			"s_barrier; buffer_wbl2 sc1; s_waitcnt vmcnt(0); buffer_inv sc1; " +
			"global_atomic_add v1, v2, v3, s[0:1] sc0; s_endpgm", "at the barrier before"},
		// The count, the barrier, the caches: nothing is read before they are empty.
		{"gfx1100", "global_atomic_add_u32 v1, v2, v3, s[0:1] glc; s_waitcnt vmcnt(0); s_barrier; " +
			"[buffer_gl1_inv]; [buffer_gl0_inv]; global_load_b32 v1, v2, s[0:1]; s_endpgm",
			"that was not emptied"},
		{"gfx942", "global_load_dword v1, v2, s[0:1] sc1; s_waitcnt vmcnt(0); s_cbranch_vccnz @0; " +
			"s_barrier; [buffer_inv sc1]; global_load_dword v1, v2, s[0:1]; s_endpgm",
			"that was not emptied"},
	} {
		wrong := func(lines string) string {
			a := Archs[slices.IndexFunc(Archs, func(a Arch) bool { return a.Name == c.arch })]
			all, err := flows(a, disassembled(lines))
			if err != nil {
				t.Fatalf("%s: %v", lines, err)
			}
			f := all["kernel"]
			if w := f.faults(); len(w) > 0 {
				return f.String(w[0])
			}
			return f.unread()
		}
		lines := strings.Split(c.lines, "; ")
		for i, line := range append(lines, "") {
			without := slices.Clone(lines)
			if strings.HasPrefix(line, "[") {
				without[i] = "s_nop 0"
			} else if line != "" {
				continue
			}
			text := strings.NewReplacer("[s_", "s_", "[b", "b", "]; ", "; ").Replace(
				strings.Join(without, "; "))
			w := wrong(text)
			if line == "" && w != "" || line != "" && !strings.Contains(w, c.wrong) {
				t.Errorf("%s without %q: %q", c.arch, line, w)
			}
		}
	}
}

// An unknown instruction is an error.
func TestFlowRefusesWhatItDoesNotKnow(t *testing.T) {
	for _, line := range []string{"flat_load_dword v1, v[2:3]", "s_setpc_b64 s[0:1]",
		"buffer_load_dword v1, off, s[0:3], 0", "s_waitcnt expcnt(0)", "s_wait_xcnt 0x0",
		"ds_swizzle_b32 v1, v2", "buffer_inv sc0 sc1", "s_cbranch_scc1 @9", "image_load v1, v2"} {
		if _, err := flows(Arch{Name: "gfx942"}, disassembled(line+"; s_endpgm")); err == nil {
			t.Errorf("%s is known", line)
		}
	}
	all := hosttest.Must(flows(Arch{Name: "gfx942"},
		disassembled("s_branch @2; v_mov_b32 v1, v2; s_endpgm")))(t)
	f := all["kernel"]
	if f.faults(); f.unread() == "" {
		t.Error("a path comes to what is jumped over")
	}
}
