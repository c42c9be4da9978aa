package device

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// The table of docs/gpu.md says for each kernel variant on which card it ran and when.

// TestWhatDoctorSaysRan: the page and doctor know of the same image, and doctor says it of others.
func TestWhatDoctorSaysRan(t *testing.T) {
	text := hosttest.Must(os.ReadFile("../../docs/gpu.md"))(t)
	arch := strings.TrimPrefix(provenImage, "machine code ")
	if !strings.Contains(string(text), " ran NVIDIA's "+arch+" on ") {
		t.Errorf("docs/gpu.md does not say that %s ran", arch)
	}
	for _, x := range []struct {
		api  driver.API
		arch string
		ran  bool
	}{{driver.CUDA, "sm_90", true}, {driver.CUDA, "sm_120", false}, {driver.HIP, "gfx942", false}} {
		t.Run(x.arch, func(t *testing.T) {
			dev, _ := openWith(t, x.api, Options{Arch: x.arch})
			if summary, _ := (&Card{Device: dev}).Verified(); strings.Contains(summary,
				"no GPU had run") == x.ran {
				t.Error(summary)
			}
		})
	}
}

// TestVariantsHaveARow: each variant has its row, in their order, and no other has one; a row names
// cards with a date, or says that there was none.
func TestVariantsHaveARow(t *testing.T) {
	text := hosttest.Must(os.ReadFile("../../docs/gpu.md"))(t)
	_, table, found := strings.Cut(string(text), "| kernel | what | on which card, when |\n|---|---|---|\n")
	if !found {
		t.Fatal("docs/gpu.md has no table of what ran")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	row := regexp.MustCompile("^\\| `([a-z0-9_]+)` \\| [^|]+ \\| (.+) \\|$")
	ran := regexp.MustCompile(`^(no card|[A-Z][A-Za-z0-9, ]+: 20\d\d-\d\d-\d\d(; .+)?)$`)
	var have []Variant
	for line := range strings.SplitSeq(strings.TrimSpace(table), "\n") {
		cells := row.FindStringSubmatch(line)
		if cells == nil || !ran.MatchString(cells[2]) {
			t.Errorf("no row of the table: %q", line)
			continue
		}
		have = append(have, Variant(cells[1]))
	}
	if want := Variants(); !slices.Equal(have, want) {
		t.Errorf("the table has %v, the variants are %v", have, want)
	}
}
