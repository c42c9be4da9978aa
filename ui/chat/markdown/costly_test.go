package markdown

import (
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/ui/chat/term"
)

// A frame makes no more than a plain text's, whatever an answer repeats, 20,000 bytes of it or as
// many marks as are still read; and the text is there. OSSRUN_MEASURE also holds its time.
func TestNoMarksMakeAFrameDear(t *testing.T) {
	var before, after runtime.MemStats
	most := uint64(0)
	defer func() { t.Log(most, "objects a frame at most") }()
	for _, mark := range []string{"[a](", "[", "![", "*", "**a ", "_a", "`a", "<a ", "a[b](c", "> ",
		"[a][", `\(`, "$a ", "~~a", "- ", "1. ", "<!--", "| a ", "&", "***a*", "[a](<", "a*_", "#",
		"[^", "<", "http://a ", "\n- a", "\n> ", "\n| a |", "\n    ", "> - "} {
		for _, n := range []int{20_000 / len(mark), 299, 24} {
			s := New(term.Palette{}, 0)
			s.Push(strings.Repeat(mark, n))
			s.Rows(80, 80)
			runtime.ReadMemStats(&before)
			began := hosttest.ProcessTime()
			for range 4 {
				s.Push("x")
				s.Rows(80, 80)
			}
			s.End()
			stable, tail := s.Rows(80, 80)
			took := (hosttest.ProcessTime() - began) / 5
			runtime.ReadMemStats(&after)
			if made := (after.Mallocs - before.Mallocs) / 5; made > 60_000 {
				t.Errorf("%d of %q: %d objects a frame", n, mark, made)
			} else if most = max(most, made); took > 40*time.Millisecond &&
				os.Getenv("OSSRUN_MEASURE") != "" {
				t.Errorf("%d of %q: %v a frame", n, mark, took)
			}
			if !strings.Contains(strings.Join(append(stable, tail...), ""), "x") {
				t.Errorf("%d of %q: the text is not shown", n, mark)
			}
		}
	}
}

// Real texts are parsed, long ones too.
func TestLongTextIsStillRead(t *testing.T) {
	long := strings.Repeat("A **word**, `code`, a [link](http://a.example) and _more_. ", 130)
	if costly(long) || costly("> > - 1. a") ||
		costly(strings.Repeat("    x = a_b[i] * c_d[j]\n", 100)) {
		t.Error("text is shown as it was written")
	}
}
