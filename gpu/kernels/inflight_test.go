package kernels

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/gpu/driver/drivertest"
)

// Decode's time is the memory's, and memory is only busy while enough is asked for. What a lane has
// asked for when it begins to wait is written in the sources (decode.h), but compilers and
// assemblers may move loads down to their first use: so it is counted in the machine's
// own words.

// asking are the decode kernels and what each must ask for: in so many places at least, so many
// pieces of weights, keys or values one after another before the first of them is used. One place
// is in front of the loop, the others in it. The numbers are what all architectures have; sm_80 and
// sm_90a have more: the assembler for sm_100a and later breaks up the middle rounds of a row.
var asking = []struct {
	kernel         string
	places, pieces int
	wide           int // on warps of 64, whose lanes share a row among twice as many
}{
	{"decode_linear_1", 2, 8, 6},
	{"decode_linear_4", 2, 4, 4},
	{"decode_linear_8", 2, 8, 4},
	{"decode_qkv_bf16_1", 2, 8, 6},
	{"decode_qkv_bf16_4", 2, 4, 4},
	{"decode_route", 1, 5, 6},
	{"decode_gate_up", 1, 6, 3},
	{"decode_down", 2, 4, 3},
	{"decode_linear_q8_1", 2, 6, 6},
	{"decode_linear_q8_8", 2, 6, 6},
	{"decode_attend_f32", 2, 16, 8},
	{"decode_attend_bf16", 2, 8, 4},
	{"decode_attend_f8", 2, 7, 4}, // on the unit keys are four and values eight
	{"stream_gate_up_8_2", 1, 6, 6},
	{"stream_down_16", 1, 6, 6},
}

// TestDisassemblyKeepsLoadsUnderWay is run by CI's step gpu, as the other tests of disassembly are.
func TestDisassemblyKeepsLoadsUnderWay(t *testing.T) {
	drivertest.Long(t)
	var names []string
	for _, x := range asking {
		names = append(names, x.kernel)
	}
	for _, a := range Archs {
		t.Run(a.Name, func(t *testing.T) {
			disassemble, count := codeObject, askedAMD
			if a.Vendor == NVIDIA {
				disassemble, count = machine, askedNVIDIA
			}
			text := disassemble(t, a, names)
			for _, x := range asking {
				want, places := x.pieces, 0
				if a.Warp == 64 {
					want = x.wide
				}
				runs := count(text[x.kernel])
				for _, n := range runs {
					if n >= want {
						places++
					}
				}
				if places < x.places {
					t.Errorf("%s asks for %v pieces at a time, not for %d in %d places", x.kernel,
						runs, want, x.places)
				}
			}
		})
	}
}

var (
	sassRegister = regexp.MustCompile(`\bR(\d+)\b`)
	sassLoad     = regexp.MustCompile(`LDG\.E\.NA(?:\.(64|128))?(?:\.CONSTANT)? R(\d+), (.*)`)
)

// askedNVIDIA is how many loads past the first cache follow each other before an instruction
// touches what one of them brings.
func askedNVIDIA(text string) (runs []int) {
	coming, n := map[string]bool{}, 0
	end := func() {
		if n > 0 {
			runs = append(runs, n)
		}
		clear(coming)
		n = 0
	}
	for line := range strings.SplitSeq(text, "\n") {
		m := sassLoad.FindStringSubmatch(line)
		touched := line
		if m != nil {
			touched = m[3]
		}
		if slices.ContainsFunc(sassRegister.FindAllStringSubmatch(touched, -1),
			func(r []string) bool { return coming[r[1]] }) {
			end()
		}
		if m != nil {
			n++
			coming[m[2]] = true // the first of the registers: their values begin there
		}
	}
	end()
	return runs
}

// askedAMD is how many loads past the caches follow each other before the wave waits for any.
func askedAMD(text string) (runs []int) {
	n := 0
	for _, line := range append(strings.Split(text, "\n"), "s_wait_loadcnt") {
		switch {
		case strings.Contains(line, "global_load_") && (strings.Contains(line, " nt") ||
			strings.Contains(line, " slc") || strings.Contains(line, " th:TH_LOAD_NT")):
			n++
		case n > 0 && (strings.Contains(line, "vmcnt(") ||
			strings.Contains(line, "s_wait_loadcnt")):
			runs, n = append(runs, n), 0
		}
	}
	return runs
}

// The counting itself, on lines as both disassemblers write them.
func TestAskedIsCounted(t *testing.T) {
	nvidia := `        /*0010*/ LDG.E.NA.128.CONSTANT R8, desc[UR8][R28.64] ;
        /*0020*/ @!P2 LDG.E.NA.128.CONSTANT R12, desc[UR8][R30.64+0x200] ;
        /*0030*/ FFMA R1, R2, R3, R4 ;
        /*0040*/ LDG.E.NA.64 R16, desc[UR8][R32.64] ;
        /*0050*/ SHF.L.U32 R20, R12, 0x10, RZ ;
        /*0060*/ LDG.E.NA.128.CONSTANT R8, desc[UR8][R28.64] ;
        /*0070*/ LDG.E.128 R40, desc[UR8][R44.64] ;`
	if got := askedNVIDIA(nvidia); !slices.Equal(got, []int{3, 1}) {
		t.Errorf("NVIDIA: %v", got)
	}
	amd := `	global_load_dwordx4 v[4:7], v[0:1], off nt
	global_load_dwordx4 v[8:11], v[2:3], off nt
	s_waitcnt vmcnt(1)
	global_load_b128 v[8:11], v[2:3], off slc dlc
	global_load_b128 v[8:11], v[2:3], off
	s_wait_loadcnt 0x0`
	if got := askedAMD(amd); !slices.Equal(got, []int{2, 1}) {
		t.Errorf("AMD: %v", got)
	}
}
