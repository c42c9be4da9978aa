// What ossrun serve takes of the machine's memory: never more than doctor says, and after a burst
// soon what it had before.

package cli

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// takes is a line of /proc/PID/status of the server, in bytes.
func (s *served) takes(name string) float64 {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(s.cmd.Process.Pid), "status"))
	if err != nil {
		s.t.Skip("the system does not say what a process has: ", err)
	}
	m := regexp.MustCompile(`(?m)^` + name + `:\s+(\d+) kB$`).FindSubmatch(text)
	if m == nil {
		s.t.Fatalf("no %s in %s", name, text)
	}
	kib, _ := strconv.ParseFloat(string(m[1]), 64)
	return kib * 1024
}

// burst asks n questions at once. fault is what their errors say, "" for none.
func (s *served) burst(n int, ask func(i int) question, fault string) {
	s.t.Helper()
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			if _, _, err := s.ask(s.t.Context(), ask(i)); !strings.Contains(fmt.Sprint(err),
				cmp.Or(fault, "<nil>")) {
				s.t.Errorf("request %d: %v", i, err)
			}
		})
	}
	all.Wait()
}

const rests = 1.5 // times what it had before may stay after a burst

// demoCeiling is what doctor says of the demo, without pages that are pushed out: there are none.
// The programs of tools are other processes.
func demoCeiling(t *testing.T) float64 {
	for _, m := range doctorJSON(t, 0, "--device", "cpu").Models {
		if m.State == "built in" {
			return float64(m.Plan.Ceiling - m.Plan.Swap - m.Plan.Tools)
		}
	}
	t.Fatal("doctor does not know the demo")
	return 0
}

// What a burst took is given back when nothing runs.
func TestServeGivesMemoryBack(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("the race detector has memory of its own")
	}
	ceiling := demoCeiling(t)
	s := serveDemo(t, "--max-model-len", "1024", "--swap-space", "0")
	idle := s.takes("VmRSS")
	s.load(64, 0, s.questions(4, 8))
	long := question{text: strings.Repeat("much too long ", 110_000), tokens: 1}
	s.burst(16, func(int) question { return long }, "status 400")
	s.rest()
	peak := s.takes("VmHWM")
	s.eventually("memory is given back", func() bool { return s.takes("VmRSS") <= rests*idle })
	t.Logf("%.0f MB at rest, %.0f at most of %.0f planned, %.0f after", idle/1e6, peak/1e6,
		ceiling/1e6, s.takes("VmRSS")/1e6)
	if peak > ceiling {
		t.Errorf("%.0f MB at most, more than the %.0f that doctor says", peak/1e6, ceiling/1e6)
	}
}

// TestServeSoakMemory is ten bursts of a thousand. Pages are the model's, and a small pool is full
// at once, so that the memory left by requests can be seen apart from it.
func TestServeSoakMemory(t *testing.T) {
	if os.Getenv("OSSRUN_LONG") == "" {
		t.Skip("slow: set OSSRUN_LONG=1")
	}
	ceiling := demoCeiling(t)
	s := serveDemo(t, "--max-model-len", "1024", "--swap-space", "0")
	idle := s.takes("VmRSS")
	for burst := range 10 {
		s.burst(1000, func(i int) question {
			var text strings.Builder // that no other request has, of about 50 tokens
			for word := range 12 {
				fmt.Fprintf(&text, "w%d ", (burst*1000+i)*7919+word*31)
			}
			return question{text: text.String(), tokens: 3}
		}, "")
		t.Logf("burst %d: %.0f MB", burst, s.takes("VmRSS")/1e6)
	}
	s.rest()
	s.eventually("memory is given back", func() bool { return s.takes("VmRSS") <= rests*idle })
	peak := s.takes("VmHWM")
	t.Logf("%.0f MB at rest, %.0f at most of %.0f planned", idle/1e6, peak/1e6, ceiling/1e6)
	if peak > ceiling {
		t.Errorf("%.0f MB at most, more than the %.0f that doctor says", peak/1e6, ceiling/1e6)
	}
}
