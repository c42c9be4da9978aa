// The first run without a gpt-oss in the cache: a person decides. Notices of the models go to
// stderr.
//
// The screen describes this machine, where a model would run, how fast, and what it takes. Models
// of other programs on this machine are offered before a download; Enter takes the demo. What must
// stay true: it fits one screen, even of 40 columns and 12 rows, and needs no knowledge of engines.

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	xterm "github.com/charmbracelet/x/term"
	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/gpu/detect"
	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/models/hub"
	"github.com/ossrun/ossrun/models/store"
	"github.com/ossrun/ossrun/runtime/serve"
	"github.com/ossrun/ossrun/runtime/serve/doctor"
	"github.com/ossrun/ossrun/ui/chat/term"
)

func modelOptions(c *cli.Context, t Terminal, o *serve.Options) serve.Options {
	o.Notify, o.Progress, o.Fetch = notify(t), showProgress(t), fetchNamed(c, t, nil)
	o.NonDeterministic = c.IsSet("deterministic") && !o.Settings.Deterministic
	return *o
}

func notify(t Terminal) func(string) {
	return func(line string) { t.report("%s", line) }
}

// absentModel asks a person if ask is set; otherwise it chooses the demo, with a notice.
func absentModel(c *cli.Context, t Terminal, ask bool) func(*serve.Models) (checkpoint.Model,
	error) {
	return func(m *serve.Models) (checkpoint.Model, error) {
		demo, err := checkpoint.Resolve("demo")
		if err != nil {
			return demo, err
		}
		if ask && isTerminal(t.In) && isTerminal(t.Out) {
			return offer(c.Context, t, m, demo)
		}
		fmt.Fprintln(t.Err, "ossrun: no gpt-oss model is installed, so the built-in demo "+
			"answers. Run ossrun pull 20b")
		return demo, nil
	}
}

// offer describes this machine, asks the person, and downloads the chosen model.
func offer(ctx context.Context, t Terminal, m *serve.Models, demo checkpoint.Model) (
	checkpoint.Model, error) {
	client := hub.FromEnvironment()
	defer client.Close()
	foreign := foreignModels()
	if client.Offline && len(foreign) == 0 {
		fmt.Fprintln(t.Err, "ossrun: no gpt-oss model is on this machine and HF_HUB_OFFLINE "+
			"forbids to fetch one, so the tiny built-in demo answers")
		return demo, nil
	}
	e, _ := models.Lookup("20b")
	p, err := m.Preview(ctx, e)
	if err != nil {
		return checkpoint.Model{}, err
	}
	f := firstRun{cpu: doctor.CPU(), cores: serve.Cores(), gpus: p.GPUs, disk: freeOnDisk(),
		model: e, preview: p}
	if p.Rate > 0 && !p.OnGPU { // without it the screen has the bound
		rates, err := expectedRates(ctx, m.Backend(), []models.Spec{e.Spec},
			serve.DefaultsFor(m.Backend(), checkpoint.Model{}, e.Spec))
		if err == nil {
			f.expected = min(rates[0], p.Rate)
		}
		f.busy = serve.IsBusy()
	}
	var choices []func() (checkpoint.Model, error)
	var words []string
	choice := func(text string, what func() (checkpoint.Model, error)) {
		choices, words = append(choices, what), append(words, text)
	}
	for _, e := range foreign {
		choice(fmt.Sprintf("use %s, which %s has here: nothing is downloaded or copied%s", e.Name,
			e.Program, f.tooLarge(e.Model.Bytes)), func() (checkpoint.Model, error) {
			return checkpoint.Resolve(e.Name)
		})
	}
	if !client.Offline {
		choice(f.downloadChoice(), func() (checkpoint.Model, error) {
			target, err := models.ParseTarget(e.ID)
			if err != nil {
				return checkpoint.Model{}, err
			}
			if err := download(ctx, client, target, false, &pullScreen{name: target.Name,
				terminal: t, bar: isTerminal(t.Err)}); err != nil {
				return checkpoint.Model{}, err
			}
			return checkpoint.Resolve(e.ID)
		})
	}
	choice("talk to the built-in demo: tiny, knows a little about ossrun",
		func() (checkpoint.Model, error) { return demo, nil })
	fmt.Fprint(t.Out, styled(t.Out, f.text(widthOf(t.Out), words)))
	for {
		fmt.Fprint(t.Out, whichOf(len(choices)))
		answer, err := readAnswer(t)
		if err != nil {
			return checkpoint.Model{}, err
		}
		if answer == "" {
			return demo, nil
		}
		if n, err := strconv.Atoi(answer); err == nil && n >= 1 && n <= len(choices) {
			return choices[n-1]()
		}
		fmt.Fprintf(t.Out, "%q is none of them: type %s, or nothing for %d\n", answer,
			inRange(len(choices)), len(choices))
	}
}

// freeOnDisk is the free space for downloads, -1 if unknown.
func freeOnDisk() int64 {
	if root, err := store.Root(); err == nil {
		if free, err := store.Free(root); err == nil {
			return free
		}
	}
	return -1
}

// readAnswer reads one line and nothing after it; "" at the end of input.
func readAnswer(t Terminal) (string, error) {
	var line []byte
	for one := make([]byte, 1); ; {
		n, err := t.In.Read(one)
		if n > 0 && one[0] == '\n' || errors.Is(err, io.EOF) {
			return strings.TrimSpace(string(line)), nil
		}
		if err != nil {
			return "", err
		}
		line = append(line, one[:n]...)
	}
}

// askYes asks a person; standard is the meaning of Enter.
func askYes(t Terminal, question string, standard bool) (bool, error) {
	fmt.Fprint(cleanWriter{t.Err}, question)
	answer, err := readAnswer(t)
	answer = strings.ToLower(answer)
	return answer == "y" || answer == "yes" || answer == "" && standard, err
}

func foreignModels() []checkpoint.Foreign {
	return slices.DeleteFunc(checkpoint.ListForeign(),
		func(e checkpoint.Foreign) bool { return e.Model == nil })
}

// offerForeign offers the same model of another program before a download. It returns true if the
// person accepts.
func offerForeign(t Terminal, target models.Target) (bool, error) {
	entry, ok := models.Lookup(target.Repo.ID())
	if !ok || target.Revision != "" || entry.Special != "" {
		return false, nil
	}
	if cached, err := checkpoint.FindTarget(target); err == nil && cached.Complete {
		return false, nil // already cached: the pull asks for a newer one
	}
	for _, e := range foreignModels() {
		if !e.SameShape(entry) {
			continue
		}
		use := "ossrun chat --model " + e.Name
		if !isTerminal(t.In) || !isTerminal(t.Err) {
			t.report("%s has this model. Run %s to use it in place", e.Program, use)
			return false, nil
		}
		accepted, err := askYes(t, fmt.Sprintf(
			"%s has %s.\nUse it in place instead of downloading %.1f GB? [Y/n] ",
			e.Program, e.Name, gb(entry.DownloadBytes)), true)
		if accepted && err == nil {
			_, err = fmt.Fprintf(t.Out, "nothing was downloaded; %s uses it\n", use)
		}
		return accepted, err
	}
	return false, nil
}

// firstRun is what is known before the first model is downloaded.
type firstRun struct {
	cpu     string
	cores   int
	gpus    detect.Result
	disk    int64 // free space for models; negative: unknown
	model   models.Entry
	preview serve.Preview

	expected float64 // tokens a second; 0: not measured
	busy     bool
}

// narrowWidth is the width below which details are left out.
const narrowWidth = 60

// text is the screen with the choices, up to the question.
func (f firstRun) text(width int, choices []string) string {
	var b strings.Builder
	gap, margin := "", ""
	if width >= narrowWidth {
		gap, margin = "\n", "  "
	}
	f.labelled(&b, width, "This machine", f.machine(width))
	f.labelled(&b, width, f.model.Spec.Name, f.promise(width))
	fmt.Fprintf(&b, "%sNo gpt-oss model is installed yet.\n%s", gap, gap)
	for i, c := range choices {
		label := margin + strconv.Itoa(i+1) + "  "
		b.WriteString(label)
		writeWords(&b, c, len(label), len(label), width)
	}
	b.WriteString(gap)
	return b.String()
}

func (f firstRun) labelled(b *strings.Builder, width int, label, text string) {
	column, indent := len(label)+2, 2
	if width >= narrowWidth {
		column, indent = 14, 14
		fmt.Fprintf(b, "%-14s", label)
	} else {
		b.WriteString(label + ": ")
	}
	writeWords(b, text, column, indent, width)
}

// machine describes the hardware, and how much of it is free.
func (f firstRun) machine(width int) string {
	what := term.Count(f.cores, "core")
	if width >= narrowWidth {
		what = f.cpu + ", " + what
	}
	memory := fmt.Sprintf("%.1f GB of memory", gb(f.preview.Free))
	if f.preview.OnGPU {
		memory = fmt.Sprintf("%.1f GB of the GPU's memory", gb(f.preview.Free))
	} else if width >= narrowWidth {
		memory = fmt.Sprintf("%.1f of %.1f GB of memory", gb(f.preview.Free), gb(f.preview.Total))
	}
	if f.disk >= 0 {
		memory += fmt.Sprintf(" and %.0f GB of disk", gb(f.disk))
	}
	return what + ", " + f.cards() + "; " + memory + " are free"
}

// cards are the names of the GPUs, and whether one is used.
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

// promise is where the model would run, its speed limit, and its needs.
func (f firstRun) promise(width int) string {
	p := f.preview
	if p.PlanErr != nil && (p.OnGPU || width < narrowWidth) {
		return fmt.Sprintf("does not fit: it needs %s of memory", gigabytes(p.Needs))
	} else if p.PlanErr != nil {
		return "does not fit: it " + serve.MemoryNeeded(p.Needs, p.Free, p.Total)
	}
	where := "runs here on the CPU"
	if p.OnGPU {
		where = "runs here on the GPU"
	}
	if p.Rate > 0 {
		where += ", at " + speeds(f.expected, p.Rate) + " tokens a second"
	}
	if f.busy && width >= narrowWidth {
		where += " (" + busyNote + ")"
	}
	needs := fmt.Sprintf("; needs %.1f GB of memory", gb(p.Needs))
	if width >= narrowWidth {
		needs += fmt.Sprintf(" and %.1f GB of disk; context up to %s tokens",
			gb(f.model.DownloadBytes), term.Number(p.Plan.Context))
	}
	if p.Plan.OnDisk > 0 {
		needs += fmt.Sprintf("; %.1f GB of it is read from the disk: slow", gb(p.Plan.OnDisk))
	}
	return where + needs
}

func (f firstRun) downloadChoice() string {
	e := f.model
	text := fmt.Sprintf("download %s: %.1f GB, %s at 100 Mbit/s", e.Spec.Name,
		gb(e.DownloadBytes), formatSeconds(float64(e.DownloadBytes)*8/100e6))
	if f.disk >= 0 && f.disk < e.DownloadBytes {
		text += fmt.Sprintf(" (does not fit the disk: %.1f GB are free)", gb(f.disk))
	}
	return text
}

func (f firstRun) tooLarge(bytes int64) string {
	if f.preview.Free >= bytes {
		return ""
	}
	return fmt.Sprintf(" (it will not fit: %.1f GB of memory are free)", gb(f.preview.Free))
}

// whichOf asks for one of n choices; Enter takes the last.
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

// widthOf is a terminal's width, limited to readable lines.
func widthOf(out io.Writer) int {
	width := 0
	if f, ok := out.(interface{ Fd() uintptr }); ok {
		width, _, _ = xterm.GetSize(f.Fd()) // 0 without a terminal
	}
	return min(cmp.Or(width, reportWidth), 100)
}
