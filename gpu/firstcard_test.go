package gpu

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/gpu/driver/drivertest"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// The script for a card's first minutes is rehearsed whole on the fake driver, in tiny form: on a
// card there is no time to mend it.

// TestFirstCard: every step is in the table with what became of it. Those that the fake can end end
// well; the others compute too long by emulation, and show that a step's limit ends it.
func TestFirstCard(t *testing.T) {
	drivertest.Long(t)
	library := hosttest.Must(drivertest.Build(driver.CUDA))(t)
	end := []string{"environment", "doctor", "bench20", "serve"}
	folder := t.TempDir()
	out := filepath.Join(folder, "out")
	script := func(arguments ...string) string {
		c := exec.CommandContext(t.Context(), "bash", append([]string{"firstcard.sh"},
			arguments...)...)
		c.Env = append(os.Environ(), "CARD="+filepath.Join(folder, "card"), "OUT="+out,
			"FC_TINY=1", "FC_LIMIT=3", "FC_END="+strings.Join(end, " "), "OSSRUN_LIBCUDA="+library, "OSSRUN_UNPROVED=1")
		said, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("firstcard.sh %v: %v\n%s", arguments, err, said)
		}
		return string(said)
	}
	script("prepare")
	t.Log(script("1200"))
	table := hosttest.Must(os.ReadFile(filepath.Join(out, "table.txt")))(t)
	results := map[string]string{}
	for line := range strings.Lines(string(table)) {
		if f := strings.Fields(line); len(f) == 3 {
			results[f[0]] = f[1]
		}
	}
	for _, name := range end {
		if results[name] != "0" {
			t.Errorf("step %s: %q", name, results[name])
		}
	}
	for _, name := range []string{"golden2", "demo", "golden1", "counters",
		"sanitize", "roofs", "ops", "bench120", "bench20q8", "bench20f8", "servesame",
		"serveisolated", "sanitizelong", "selftest", "cores"} {
		if results[name] == "" || results[name] == "HELD" {
			t.Errorf("step %s: %q", name, results[name])
		}
	}
	listed, err := exec.Command("tar", "tzf", filepath.Join(out, "logs.tar.gz")).CombinedOutput()
	if err != nil || !strings.Contains(string(listed), "log/serve-1.json") {
		t.Errorf("the logs: %v\n%s", err, listed)
	}
}
