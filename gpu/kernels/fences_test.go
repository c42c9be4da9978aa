package kernels

import (
	"slices"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/gpu/driver/drivertest"
)

// What blocks of AMD's cards tell each other goes through caches that only instructions keep in
// step, and what those must wait for is the compiler's to know. No emulation shows an instruction
// that is missing, and compilers have left some out (gpu.h, targets.go), so they are looked for in
// the images. The words are those of LLVM's "User Guide for AMDGPU Backend", memory models of
// gfx90a, gfx942, gfx11 and gfx12.

// invalidates is what throws out of the caches in front of a warp what other blocks may have
// changed since.
var invalidates = map[string]string{"gfx90a": "buffer_wbinvl1_vol", "gfx942": "buffer_inv sc1",
	"gfx950": "buffer_inv sc1", "gfx1100": "buffer_gl1_inv",
	"gfx1101": "buffer_gl1_inv", "gfx1151": "buffer_gl1_inv",
	"gfx1200": "global_inv scope:SCOPE_DEV", "gfx1201": "global_inv scope:SCOPE_DEV"}

// instructions of a disassembly, without addresses and codes.
func instructions(text string) (all []string) {
	for line := range strings.Lines(text) {
		word, _, _ := strings.Cut(line, "//")
		if strings.HasPrefix(word, "\t") {
			all = append(all, strings.Join(strings.Fields(word), " "))
		}
	}
	return all
}

// position of the first instruction from `from` on that begins with one of the words, -1 where
// there is none.
func position(all []string, from int, words ...string) int {
	for i := from; i < len(all); i++ {
		if slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(all[i], w) }) {
			return i
		}
	}
	return -1
}

// unwaited is a write-back of a cache that nothing waits for, "" for none.
func unwaited(all []string) string {
	for i, line := range all {
		if strings.HasPrefix(line, "buffer_wbl2") &&
			(i+1 == len(all) || !strings.HasPrefix(all[i+1], "s_waitcnt vmcnt(0)")) {
			return "nothing waits for " + line
		}
	}
	return ""
}

// unfenced is what is wrong with blocks that count themselves and read what others wrote, "" where
// nothing is: behind the count comes the barrier at which the block learns whether it was the last,
// and before anything is read there the caches are emptied.
func unfenced(all []string, invalidate string) string {
	counts := position(all, 0, "global_atomic_add")
	if counts < 0 {
		return "no block counts itself"
	}
	barrier := position(all, counts, "s_barrier")
	if barrier < 0 {
		return "no barrier behind the count"
	}
	emptied := position(all, barrier, invalidate)
	if read := position(all, barrier, "global_load", "flat_load", "buffer_load"); emptied < 0 ||
		read >= 0 && read < emptied {
		return "what is read behind the count may be in a cache: no " + invalidate
	}
	return ""
}

func TestDisassemblyFencesBlocks(t *testing.T) {
	drivertest.Long(t)
	for _, a := range Archs {
		if a.Vendor != AMD {
			continue
		}
		t.Run(a.Name, func(t *testing.T) {
			for name, text := range codeObject(t, a, []string{"decode_route",
				"decode_attend_bf16", "decode_linear_8", "decode_qkv_bf16_8", "prefill_linear_3",
				"decode_linear_q8_8", "prefill_linear_q8_3", "sample_look", "sample"}) {
				all := instructions(text)
				if wrong := unwaited(all); wrong != "" {
					t.Errorf("%s: %s", name, wrong)
				}
				if wrong := unfenced(all, invalidates[a.Name]); wrong != "" {
					t.Errorf("%s: %s", name, wrong)
				}
				// A compiler that knows what GFX12's scalar registers need writes this some hundred
				// times.
				if strings.HasPrefix(a.Name, "gfx12") && position(all, 0, "s_wait_alu") < 0 {
					t.Errorf("%s has no s_wait_alu", name)
				}
				// Such a load counts as one of shared memory too, so that whoever waits for that
				// waits for it.
				if at := position(all, 0, "flat_load", "flat_store"); at >= 0 {
					t.Errorf("%s asks which memory it reads: %s", name, all[at])
				}
			}
		})
	}
}

// The looking itself.
func TestUnfencedIsSeen(t *testing.T) {
	good := "kernel:\n\tbuffer_wbl2 sc1 // 0\n\ts_waitcnt vmcnt(0) lgkmcnt(0)\n\tbuffer_inv " +
		"sc1\n\ts_barrier\n\tglobal_atomic_add v1, v2, v3, s[0:1] sc0\n" +
		"\ts_waitcnt vmcnt(0)\n\ts_barrier\n\tbuffer_wbl2 sc1\n\ts_waitcnt " +
		"vmcnt(0)\n\tbuffer_inv sc1\n\tglobal_load_dword v1, v2, s[0:1]\n"
	wrong := func(text string) string {
		all := instructions(text)
		return unwaited(all) + unfenced(all, "buffer_inv sc1")
	}
	if w := wrong(good); w != "" {
		t.Error(w)
	}
	for without, want := range map[string]string{
		"\ts_waitcnt vmcnt(0)\n\tbuffer_inv": "nothing waits for",
		"\tbuffer_inv sc1\n\tglobal_load":    "may be in a cache",
		"\tglobal_atomic_add":                "no block counts itself",
	} {
		line, _, _ := strings.Cut(without, "\n")
		at := strings.Index(good, without)
		if bad := good[:at] + strings.TrimPrefix(good[at:], line); !strings.Contains(wrong(bad),
			want) {
			t.Errorf("without %q: %q", line, wrong(bad))
		}
	}
}
