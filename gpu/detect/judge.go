package detect

// Decides which GPUs may be used. All of the policy is here: our kernels need compute capability
// 8.0; a small integrated GPU is left to the desktop; a vendor's problem keeps all of that vendor's
// cards out, unless it is only advice. problems.json has the problems' codes and remedies.

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
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
		r.problem(NVIDIA, "too-old", tooOld)
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

//go:embed problems.json
var problemsText []byte

// remedy is the advice for a problem, and words of the vendor's tools or driver, or the system's,
// that show it. One without a remedy counts in containers only.
type remedy struct {
	Vendor, Code, Words    string
	Remedy, Contained, WSL string // the second in a container, the third in WSL2, if set
}

var remedies = sync.OnceValue(func() (list []remedy) {
	if err := json.Unmarshal(problemsText, &list); err != nil {
		panic("gpu/detect: problems.json: " + err.Error()) // parsed in the tests
	}
	return list
})

func (s remedy) on(platform string) string {
	switch platform {
	case "container":
		return cmp.Or(s.Contained, s.Remedy)
	case "wsl2":
		return cmp.Or(s.WSL, s.Remedy)
	}
	return s.Remedy
}

// problem notes a problem that keeps a vendor's GPUs from being used.
func (r *Result) problem(vendor, code, text string) {
	p := Problem{Vendor: vendor, Code: code, Text: text}
	for _, s := range remedies() {
		if s.Vendor == vendor && s.Code == code {
			p.Remedy = cmp.Or(p.Remedy, s.on(r.Platform))
		}
	}
	r.note(p)
}

// explain notes the problem whose words are in a text, and returns its code; "" for none.
func (r *Result) explain(vendor, text string) string {
	for _, s := range remedies() {
		if advice := s.on(r.Platform); s.Vendor == vendor && s.Words != "" && advice != "" &&
			strings.Contains(text, s.Words) {
			r.note(Problem{Vendor: vendor, Code: s.Code, Text: lineWith(text, s.Words),
				Remedy: advice})
			return s.Code
		}
	}
	return ""
}

// lineWith is the line of a text that holds words, without the rest.
func lineWith(text, words string) string {
	for line := range strings.Lines(text) {
		if strings.Contains(line, words) {
			return strings.TrimSpace(line)
		}
	}
	return words
}
