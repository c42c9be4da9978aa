package doctor

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/serve"
)

// What doctor says of a mode's quality is what docs/performance.md has measured.
func TestModesAreThoseOfTheResults(t *testing.T) {
	text := hosttest.Must(os.ReadFile("../../../docs/performance.md"))(t)
	rows := []string{"int8 and `--dense q8`", "int8-fast and `--dense q8`",
		"int8 into the experts", "exact, 1 to 5,000 tokens"}
	for i, m := range measuredModes {
		row := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(rows[i]) + ` \| (\S+) \|`).
			FindSubmatch(text)
		if row == nil || strings.ReplaceAll(fmt.Sprintf("%.1e", m.KL), "e-0", "e-") !=
			string(row[1]) {
			t.Errorf("%s, %s: %.1e here, %q there", m.Compute, m.Dense, m.KL, row)
		}
	}
}

// The default is first, and fewer bytes give more tokens: 20b reads 2.6 GB a token with 8-bit dense
// weights and 3.7 with the released ones.
func TestModes(t *testing.T) {
	b, _, err := serve.Open(t.Context(), engine.Settings{Device: "cpu"}, func(string) {})
	hosttest.Check(t, err)
	defer b.Close()
	big := models.Spec20B()
	list, err := modesOf(serve.DefaultsFor(b, checkpoint.Model{}, big), big, 30e9)
	if err != nil || len(list) != 4 || list[0].Dense != engine.DenseQ8 ||
		list[1].Compute != engine.Int8Fast {
		t.Fatalf("%+v, %v", list, err)
	}
	for i, want := range []float64{2.6e9, 2.6e9, 3.7e9, 3.7e9} {
		if got := 30e9 / list[i].ReadBound; got < 0.97*want || got > 1.03*want {
			t.Errorf("%s, %s: %.0f bytes a token", list[i].Compute, list[i].Dense, got)
		}
	}
	small := big
	small.Hidden, small.Layers = 64, 2
	for demo, compute := range map[bool]string{true: engine.Exact, false: engine.Int8} {
		list, err := modesOf(serve.DefaultsFor(b, checkpoint.Model{Demo: demo}, small), small, 30e9)
		if err != nil || list[0].Dense != engine.DenseBF16 || list[0].Compute != compute {
			t.Errorf("a small model's default, demo %v: %+v, %v", demo, list, err)
		}
	}
}

// TestExpectedIsPossible: the memory is timed at another moment than the kernels, and the faster of
// the two does not make the report contradict itself.
func TestExpectedIsPossible(t *testing.T) {
	for _, c := range []struct{ rate, bound, want float64 }{{15.5, 6.8, 6.8}, {9.3, 2.3, 2.3},
		{3, 6.2, 3}, {8, 8, 8}, {0, 6, 0}} {
		m := Model{ReadBound: c.bound}
		if m.Expect(c.rate); m.Expected != c.want {
			t.Errorf("%v of at most %v: %v is expected, not %v", c.rate, c.bound, m.Expected, c.want)
		}
	}
}
