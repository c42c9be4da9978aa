package detect

// Decides which GPUs may be used. All of the policy is here: our kernels need compute capability
// 8.0; a small integrated GPU is left to the desktop; a vendor's problem keeps all of that vendor's
// cards out, unless it is only advice.

import (
	"fmt"
	"strconv"
	"strings"
)

// oldestSM is the lowest compute capability that has kernels.
const oldestSM = 80

// judge decides. runs is Machine.Runs.
func (r *Result) judge(runs func(arch string) error) {
	tooOld := ""
	for i := range r.GPUs {
		g := &r.GPUs[i]
		if g.Reason != "" {
			continue
		}
		if sm := smOf(g.Arch); sm > 0 && sm < oldestSM {
			g.Reason = fmt.Sprintf("compute capability %d.%d is below 8.0, which our kernels need",
				sm/10, sm%10)
			tooOld = fmt.Sprintf("compute capability %d.%d of %s is too low", sm/10, sm%10,
				g.Title())
			continue
		}
		if g.Vendor == AMD && g.Integrated && g.Units > 0 && g.Units < smallIGPU {
			g.Reason = "a small GPU inside the processor: the CPU is faster"
			continue
		}
		if g.Arch != "" {
			if err := runs(g.Arch); err != nil {
				g.Reason = err.Error() + "; use the CPU"
				continue
			}
		}
		if p := r.blocking(g.Vendor); p != nil {
			g.Reason = p.Text
			continue
		}
		g.Usable = true
	}
	if tooOld != "" && len(r.Usable()) == 0 {
		r.problem(NVIDIA, "too-old", tooOld, "needs 8.0 or later; use the CPU")
	}
}

// blocking is the first problem that keeps a vendor's cards out.
func (r *Result) blocking(vendor string) *Problem {
	for i := range r.Problems {
		if p := &r.Problems[i]; p.Vendor == vendor && !p.Advice {
			return p
		}
	}
	return nil
}

// smOf is 90 for "sm_90" and "sm_90a", 0 for anything else.
func smOf(arch string) int {
	digits, ok := strings.CutPrefix(arch, "sm_")
	if !ok {
		return 0
	}
	n, _ := strconv.Atoi(strings.TrimRight(digits, "abcdef"))
	return n
}
