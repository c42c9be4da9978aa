// Output of ossrun doctor: a mark and a line for each part of the machine, a table of the models,
// and the next step.

package cli

import (
	"cmp"
	"fmt"
	"io"
	"runtime"
	"strings"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/runtime/serve"
	"github.com/ossrun/ossrun/runtime/serve/doctor"
	"github.com/ossrun/ossrun/ui/chat/term"
)

// printSummary marks working parts with ✓, fixable ones with !, and missing ones with –.
func printSummary(out io.Writer, r *doctor.Report) error {
	w, m := columns(out), r.Machine
	row := func(mark, label, format string, args ...any) {
		fmt.Fprintf(w, "%s %s\t%s\n", mark, label, fmt.Sprintf(format, args...))
	}
	fmt.Fprintf(w, "ossrun %s · %s\n", build().Version, m.OS)
	row("✓", "CPU", "%s, %s, %s", m.CPU, term.Count(m.Cores, "core"), m.ISAs[len(m.ISAs)-1])
	row("✓", "Memory", "%s", memoryLine(runtime.GOOS, m.MemoryTotal, m.MemoryFree))
	for _, g := range r.GPUs.GPUs {
		memory := gigabytes(int64(g.MemoryMiB) << 20)
		if !g.Usable {
			memory += ", not used"
		}
		row(marks[g.Usable], "GPU", "%s, %s", g.Title(), memory)
	}
	for _, p := range r.GPUs.Problems {
		row("!", "GPU", "%s", p.Sentence())
	}
	for _, wrong := range r.Device.Wrong {
		row("!", "GPU", "%s", wrong)
	}
	if len(r.GPUs.GPUs)+len(r.GPUs.Problems) == 0 {
		row("–", "GPU", "none found; the CPU is used")
	}
	smallest, _ := models.Lookup("20b")
	if r.Cache.Unavailable == "" {
		row(marks[r.Cache.Free >= smallest.DownloadBytes], "Disk", "%s free in %s",
			gigabytes(r.Cache.Free), r.Cache.Path)
	} else {
		row("!", "Disk", "%s cannot be used: %s", r.Cache.Path, r.Cache.Unavailable)
	}
	for _, x := range r.Tools {
		why, cure, _ := strings.Cut(x.Missing, ": ")
		if why == "" {
			row("✓", "Tool", "%s: %s", x.Tool, x.What)
		} else {
			row("–", "Tool", "%s off: %s", x.Tool, cmp.Or(cure, why))
		}
	}
	for _, x := range r.Servers {
		row("✓", "Server", "%s (process %d): %s", x.URL, x.PID,
			strings.Join(append(x.Models, x.State), ", "))
	}
	if r.Port.Unavailable == "" {
		row("✓", "Port", "%s is free", r.Port.Address)
	} else {
		row("!", "Port", "%s is in use: %s", r.Port.Address, r.Port.Unavailable)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	next := ""
	fmt.Fprintln(w, "\nMODEL\tFITS\tCONTEXT\tSPEED\tINSTALLED")
	for _, x := range r.Models {
		entry, _ := models.Lookup(x.Name)
		if entry.Special != "" && x.State == "not downloaded" {
			continue
		}
		fits, installed := x.Fits || x.OnGPUs.Fits, x.State
		switch {
		case x.State == "complete" && fits:
			next = "ossrun chat"
		case fits && entry.HF != "":
			installed += ", " + size(entry.DownloadBytes)
			next = cmp.Or(next, "ossrun pull "+x.Name)
		}
		verdict, context := "no", "-"
		if fits {
			verdict = "yes"
		} else if x.Plan.OnDisk > 0 {
			verdict = "slow"
		}
		if x.Plan.Error == "" {
			context = term.Number(x.Plan.Context)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", x.Name, verdict, context, expectedSpeed(x),
			installed)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, x := range r.Models {
		if entry, _ := models.Lookup(x.Name); entry.Special == "" && !x.Fits && !x.OnGPUs.Fits &&
			entry.HF != "" {
			fmt.Fprintf(w, "%s %s.\n", x.Name,
				serve.MemoryNeeded(x.Needs, m.MemoryFree, m.MemoryTotal))
		}
	}
	if r.Busy {
		fmt.Fprintf(w, "The speeds were %s.\n", busyNote)
	}
	fmt.Fprintf(w, "\nNext:     %s\nDetails:  ossrun doctor --verbose\n",
		cmp.Or(next, "ossrun chat --model demo"))
	return w.Flush()
}

// marks are the marks of parts that work, and of those that can be fixed.
var marks = map[bool]string{true: "✓", false: "!"}

func expectedSpeed(x doctor.Model) string {
	if !x.Fits || x.Expected == 0 {
		return "-"
	}
	return speeds(x.Expected, x.ReadBound) + " tokens/s"
}
