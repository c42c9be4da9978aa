// What the first run says before it asks: what this machine is, where a model would run on it, how
// fast, and what it takes. What must stay true: it is one screen, of 40 columns and 12 rows too,
// and words that need no knowledge of engines.

package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/charmbracelet/x/term"

	"github.com/ossrun/ossrun/gpu/detect"
	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/runtime/serve"
)

// firstRun is what is known before a model is here.
type firstRun struct {
	cpu     string
	cores   int
	gpus    detect.Report
	disk    int64 // bytes free where models go; negative: nobody knows
	model   models.Entry
	preview serve.Preview
}

// narrow is a screen that has no place for details.
const narrow = 60

// text is the screen with the choices, up to the question.
func (f firstRun) text(width int, choices []string) string {
	var b strings.Builder
	gap := ""
	if width >= narrow {
		gap = "\n"
	}
	f.labelled(&b, width, "This machine", f.machine(width))
	f.labelled(&b, width, f.model.Spec.Name, f.promise(width))
	fmt.Fprintf(&b, "%sNo gpt-oss model is here yet.\n%s", gap, gap)
	for i, c := range choices {
		label := strconv.Itoa(i+1) + "  "
		if width >= narrow {
			label = "  " + label
		}
		b.WriteString(label)
		writeWords(&b, c, len(label), len(label), width)
	}
	b.WriteString(gap)
	return b.String()
}

func (f firstRun) labelled(b *strings.Builder, width int, label, text string) {
	column, indent := len(label)+2, 2
	if width >= narrow {
		column, indent = 14, 14
		fmt.Fprintf(b, "%-14s", label)
	} else {
		b.WriteString(label + ": ")
	}
	writeWords(b, text, column, indent, width)
}

// machine says what was found, and what of it is free.
func (f firstRun) machine(width int) string {
	what := count(f.cores, "core")
	if width >= narrow {
		what = f.cpu + ", " + what
	}
	memory := fmt.Sprintf("%.1f GB of memory", gb(f.preview.Free))
	if f.preview.OnGPU {
		memory = fmt.Sprintf("%.1f GB of the GPU's memory", gb(f.preview.Free))
	} else if width >= narrow {
		memory = fmt.Sprintf("%.1f of %.1f GB of memory", gb(f.preview.Free), gb(f.preview.Total))
	}
	if f.disk >= 0 {
		memory += fmt.Sprintf(" and %.0f GB of disk", gb(f.disk))
	}
	return what + ", " + f.cards() + "; " + memory + " are free"
}

// cards are the GPUs by name, and whether one is used.
func (f firstRun) cards() string {
	if len(f.gpus.GPUs) == 0 {
		return "no GPU"
	}
	var names []string
	number := map[string]int{}
	for _, g := range f.gpus.GPUs {
		name := g.Title()
		if number[name]++; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for i, name := range names {
		if n := number[name]; n > 1 {
			names[i] = fmt.Sprintf("%d × %s", n, name)
		}
	}
	all := strings.Join(names, ", ")
	if !f.preview.OnGPU {
		all += " (not used: ossrun doctor says why)"
	}
	return all
}

// promise says where the model would run, how fast at most, and what it would take.
func (f firstRun) promise(width int) string {
	p := f.preview
	if p.None != nil {
		return fmt.Sprintf("does not fit: it needs %.1f GB of memory", gb(p.Needs))
	}
	where := "runs here on the CPU"
	if p.OnGPU {
		where = "runs here on the GPU"
	}
	if p.Rate > 0 {
		where += ", at up to " + speed(p.Rate)
	}
	takes := fmt.Sprintf("; takes %.1f GB of memory", gb(p.Plan.Total))
	if width >= narrow {
		takes += fmt.Sprintf(" with a context of %s tokens, and %.1f GB of disk",
			digits(p.Plan.Context), gb(f.model.DownloadBytes))
	}
	if p.Plan.OnDisk > 0 {
		takes += fmt.Sprintf("; %.1f GB of weights stay on the disk, which is slow",
			gb(p.Plan.OnDisk))
	}
	return where + takes
}

// speed is tokens a second in words.
func speed(rate float64) string {
	if rate < 0.95 {
		return fmt.Sprintf("%.1f tokens a second", rate)
	}
	return count(int(rate+0.5), "token") + " a second"
}

// ofDownload is the choice to fetch the model.
func (f firstRun) ofDownload() string {
	e := f.model
	text := fmt.Sprintf("download %s: %.1f GB, %s at 100 Mbit/s", e.Spec.Name,
		gb(e.DownloadBytes), minutes(float64(e.DownloadBytes)*8/100e6))
	if f.disk >= 0 && f.disk < e.DownloadBytes {
		text += fmt.Sprintf(" (the disk has no room: %.1f GB are free)", gb(f.disk))
	}
	return text
}

// tooLarge is a warning where so many bytes are not free.
func (f firstRun) tooLarge(bytes int64) string {
	if f.preview.Free >= bytes {
		return ""
	}
	return fmt.Sprintf(" (it will not fit: %.1f GB of memory are free)", gb(f.preview.Free))
}

// whichOf asks for one of n choices, of which Enter takes the last.
func whichOf(n int) string { return fmt.Sprintf("Choose %s [%d]: ", inRange(n), n) }

func inRange(n int) string {
	switch n {
	case 1:
		return "1"
	case 2:
		return "1 or 2"
	}
	return fmt.Sprintf("1 to %d", n)
}

// widthOf is how many columns a terminal has, as far as lines are easy to read.
func widthOf(out io.Writer) int {
	width := 0
	if f, ok := out.(interface{ Fd() uintptr }); ok {
		width, _, _ = term.GetSize(f.Fd()) // 0 where it is none
	}
	return min(cmp.Or(width, reportWidth), 100)
}
