// ossrun doctor: the machine as ossrun sees it, and whether it computes correctly.
//
// Without flags it only looks. --golden DIR holds every compute mode to golden logits, --selftest
// every operation to plain float64 loops; a miss of either ends with exit code 1. stdout holds the
// report alone, as text or as one JSON object.

package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"strings"
	"sync"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/assets"
	"github.com/ossrun/ossrun/gpu"
	"github.com/ossrun/ossrun/gpu/detect"
	"github.com/ossrun/ossrun/gpu/device"
	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/engine/enginetest"
	"github.com/ossrun/ossrun/runtime/serve"
)

// doctorReport is what --json prints.
type doctorReport struct {
	Machine  machineReport `json:"machine"`
	GPUs     detect.Report `json:"gpus"`
	Device   deviceReport  `json:"device"`
	Models   []modelReport `json:"models"`
	Config   configReport  `json:"config"`
	Golden   []goldenRow   `json:"golden,omitempty"`
	Selftest []selftestRow `json:"selftest,omitempty"`
	// of --selftest on a GPU: the faster kernels against the reference ones
	Kernels []device.Proof `json:"kernels,omitempty"`
	Matrix  []device.Rate  `json:"matrix_rates,omitempty"`
	Whole   *wholeReport   `json:"whole_models,omitempty"`
	Worker  *gpu.Traffic   `json:"worker,omitempty"`
	Decode  []decodeReport `json:"decode_kernels,omitempty"`
	Passed  *bool          `json:"passed,omitempty"` // of --golden and --selftest
}

type machineReport struct {
	OS          string   `json:"os"`
	CPU         string   `json:"cpu"`
	Cores       int      `json:"cores"` // that this process may use
	ISAs        []string `json:"isas"`
	MemoryTotal int64    `json:"memory_total"`
	MemoryFree  int64    `json:"memory_free"`
}

type deviceReport struct {
	Name string `json:"name"`
	Why  string `json:"why"`
	// of a GPU: what they are, and whether they are right on this card
	Kernels string   `json:"kernels,omitempty"`
	Wrong   []string `json:"wrong,omitempty"` // a sentence for each that is not
}

func reportOf(b engine.Backend, why string) deviceReport {
	d := deviceReport{Name: b.Name(), Why: why}
	if g, ok := b.(*gpu.Backend); ok {
		d.Kernels, d.Wrong = g.Kernels()
	}
	return d
}

type modelReport struct {
	Name  string `json:"name"`
	State string `json:"state"` // "complete", "incomplete", "not here", "built in"
	Path  string `json:"path,omitempty"`
	// bytes of the device's memory with gpu.UsableContext tokens of context
	Needs int64 `json:"needs"`
	Fits  bool  `json:"fits"` // on the device, with a reserve left

	Plan planReport `json:"plan"` // what a load would do now
	// where it would lie on the GPUs, and what their memories' speed allows
	GPUs string `json:"gpu_plan,omitempty"`

	onGPUs gpu.Placement // the same for people
}

type configReport struct {
	Path  string `json:"path"`
	There bool   `json:"there"`
}

func doctorCommand() *cli.Command {
	o := defaultOptions()
	return &cli.Command{
		Name:  "doctor",
		Usage: "show the machine, what is used and why; check that it computes correctly",
		Description: "Example: ossrun doctor --selftest\n\n" +
			"A golden folder has checkpoint/, a model in the Hugging Face layout, and golden/ " +
			"with cases.json and\n" +
			"logits.safetensors.",
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "golden", Usage: "compare every compute mode with the golden " +
				"logits in `DIR`"},
			&cli.BoolFlag{Name: "selftest", Usage: "compare every operation with plain float64 " +
				"loops: on the CPU with every instruction set, in about a minute; on a GPU, " +
				"with its speeds, in less than five"},
			&cli.BoolFlag{Name: "json", Usage: "as one JSON object"},
			configFlag(),
		}, deviceFlags(&o)...),
		Action: func(c *cli.Context) (err error) {
			if err := noArguments(c); err != nil {
				return err
			}
			if len(o.Settings.GPUs) > 1 && o.Settings.Device != "cpu" {
				return fail(exitUsage, "doctor checks one GPU at a time: give --gpu one number")
			}
			tell := notify(Terminal{Err: c.App.ErrWriter})
			host, _, err := serve.Open(c.Context, engine.Settings{Device: "cpu"}, tell)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, host.Close()) }()
			dev, why, err := serve.Open(c.Context, o.Settings, tell)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, dev.Close()) }()
			return examine(c, host, dev, why, o)
		},
	}
}

// examine makes the report and prints it; text comes as it is known, JSON at the end.
func examine(c *cli.Context, host, dev engine.Backend, why string, o serve.Options) error {
	r, err := look(c, host, dev, why, o)
	if err != nil {
		return fail(exitFailure, "%s", err)
	}
	text := c.App.Writer
	if c.Bool("json") {
		text = io.Discard
	}
	var shown bytes.Buffer
	if err := r.print(&shown); err != nil {
		return err
	}
	lines := shown.String()
	if isTerminal(text) {
		lines = folded(lines, reportWidth)
	}
	if _, err := io.WriteString(text, lines); err != nil {
		return err
	}
	if dir := c.String("golden"); dir != "" {
		if err := r.golden(c.Context, text, dev, dir); err != nil {
			return err
		}
	}
	if g, ok := dev.(*gpu.Backend); ok && c.Bool("selftest") {
		if err := r.selftestGPU(c.Context, text, g, fullGPUSelftest(g, host)); err != nil {
			return err
		}
	} else if c.Bool("selftest") {
		if err := r.selftest(c.Context, text, serve.HostDevice(dev), enginetest.Small(),
			[]enginetest.Shape{enginetest.Published(1)}); err != nil {
			return err
		}
	}
	if g, ok := dev.(*gpu.Backend); ok {
		r.Worker = g.Traffic()
	}
	if w := r.Worker; w != nil {
		fmt.Fprintf(text,
			"\nworker: %d steps, %d messages there, %d back\n", w.Steps, w.Sent, w.Received)
	}
	if c.Bool("json") {
		if err := writeJSON(c.App.Writer, r); err != nil {
			return err
		}
	}
	if r.Passed != nil && !*r.Passed {
		return fail(exitFailure, "a check missed: this build does not compute correctly on this "+
			"machine, or the golden is damaged")
	}
	return nil
}

// look gathers what can be seen without computing.
func look(c *cli.Context, host, dev engine.Backend, why string, o serve.Options) (*doctorReport,
	error) {
	total, free := host.Memory()
	r := &doctorReport{
		Machine: machineReport{OS: osName(), CPU: cpuModel(), Cores: serve.Cores(),
			ISAs:        serve.ISAs(),
			MemoryTotal: total, MemoryFree: free},
		GPUs:   gpu.Detect(c.Context),
		Device: reportOf(dev, why),
	}
	switch {
	case why == "" && len(r.GPUs.Usable()) > 0:
		r.Device.Why = "no GPU is used: " + gpu.ErrNone.Error() + gpuNote()
	case why == "":
		r.Device.Why = whyCPU(r.GPUs) + gpuNote()
	}
	r.Config.Path = cmp.Or(c.String("config"), defaultConfigPath())
	_, err := os.Stat(r.Config.Path)
	r.Config.There = err == nil
	if why != "" && !dev.Caps().Discrete && o.Settings.Device != "cpu" {
		r.Device.Why = "no GPU is used: " + why
	}
	settings := func(memory int64) engine.Settings { return serve.SettingsOnGPU(memory, o) }
	rate := sync.OnceValue(func() float64 { return serve.HostReadRate(host) })
	r.Models, err = modelReports(dev, func(s models.Spec) gpu.Placement {
		return gpu.Place(s, r.GPUs, settings, free, rate)
	})
	return r, err
}

// modelReports goes through the catalogue: what is here, what each model needs on dev, and where
// the GPUs would have it.
func modelReports(dev engine.Backend, onGPUs func(models.Spec) gpu.Placement) ([]modelReport,
	error) {
	found, err := checkpoint.Cached()
	if err != nil {
		return nil, fmt.Errorf("reading the cache: %w", err)
	}
	demo, err := checkpoint.OpenDemo()
	if err != nil {
		return nil, err
	}
	spec := demo.Spec
	if err := demo.Close(); err != nil {
		return nil, err
	}
	var list []modelReport
	for _, e := range models.Catalogue() {
		m := modelReport{Name: e.ID, State: "not here"}
		if e.HF == "" {
			m.State, e.Spec = "built in", spec
		}
		for _, f := range found {
			if f.ID != e.ID {
				continue
			}
			m.State, m.Path = "complete", f.Path
			if !f.Complete {
				m.State = "incomplete"
			}
		}
		if err := m.plan(e, dev); err != nil {
			return nil, err
		}
		m.onGPUs = onGPUs(e.Spec)
		m.GPUs = m.onGPUs.String()
		list = append(list, m)
	}
	return list, nil
}

// planReport is one plan. Sizes are bytes, contexts are tokens.
type planReport struct {
	Context     int   `json:"context"`
	MaxContext  int   `json:"max_context"` // what the model was made for
	Weights     int64 `json:"weights"`
	KV          int64 `json:"kv"`
	Scratch     int64 `json:"scratch"`
	Free        int64 `json:"free"`
	Left        int64 `json:"left"`
	FullContext int64 `json:"free_for_max_context"` // what would have to be free for max_context
	// why there is no plan; the other fields are 0 then
	Error string `json:"error,omitempty"`

	lines []string // for people
}

// plan says what serve and chat would do with a model of the catalogue on a device when nobody says
// anything.
func (m *modelReport) plan(e models.Entry, b engine.Backend) (err error) {
	s := serve.SettingsFor(b, defaultOptions())
	found := checkpoint.Found{Name: e.ID, Demo: e.ID == models.Demo}
	if p, err := serve.PlanOn(b, found, e.Spec, s); err != nil {
		m.Plan = planReport{Error: err.Error(), lines: []string{err.Error()}}
	} else {
		m.Plan = planReport{Context: p.Context, MaxContext: p.MaxPosition, Weights: p.Weights,
			KV: p.KV, Scratch: p.Scratch,
			Free: p.Free, Left: p.Left, FullContext: p.FullContext, lines: p.Lines()}
	}
	s.MaxModelLen = gpu.UsableContext
	if m.Needs, err = serve.Needs(b, found, e.Spec, s); err != nil {
		return err
	}
	_, none := serve.PlanOn(b, found, e.Spec, s)
	m.Fits = none == nil
	return nil
}

func (r *doctorReport) print(out io.Writer) error {
	m := r.Machine
	isas := strings.Join(m.ISAs, ", ")
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintf(w, "system\t%s\n", m.OS)
	fmt.Fprintf(w, "cpu\t%s, %s to use, %s\n", m.CPU, count(m.Cores, "core"), isas)
	fmt.Fprintf(w, "memory\t%s, %s free\n", gigabytes(m.MemoryTotal), gigabytes(m.MemoryFree))
	printGPUs(w, r.GPUs)
	fmt.Fprintf(w, "device\t%s: %s\n", r.Device.Name, shortWhy(r.Device.Why, r.GPUs.Problems))
	if r.Device.Kernels != "" {
		fmt.Fprintf(w, "kernels\t%s\n", r.Device.Kernels)
	}
	for i, x := range r.Models {
		name, verdict := "", "does not fit"
		if i == 0 {
			name = "models"
		}
		switch {
		case x.Fits:
			verdict = "fits"
		case x.onGPUs.Fits: // the plan below has room for it
			verdict += " on this device alone"
		}
		state := strings.TrimSpace(x.State + " " + x.Path)
		if x.State != "complete" && x.State != "built in" {
			fmt.Fprintf(w,
				"%s\t%s: %s; needs %s with %d tokens of context, %s\n",
				name, x.Name, state, gigabytes(x.Needs), gpu.UsableContext, verdict)
			printGPUPlan(w, x.onGPUs)
			continue
		}
		// The plan says what it takes, for several sequences at once; the least that one needs
		// would be another figure beside it.
		fmt.Fprintf(w, "%s\t%s: %s; %s\n", name, x.Name, state, verdict)
		for _, line := range x.Plan.lines {
			fmt.Fprintf(w, "\t  %s\n", line)
		}
		printGPUPlan(w, x.onGPUs)
	}
	state := "not there, defaults are used"
	if r.Config.There {
		state = "read"
	}
	fmt.Fprintf(w, "config\t%s (%s)\n", r.Config.Path, state)
	return w.Flush()
}

func printGPUPlan(w io.Writer, plan gpu.Placement) {
	label := "GPUs: "
	for _, line := range plan.Lines {
		fmt.Fprintf(w, "\t  %s%s\n", label, line)
		label = "      "
	}
}

// shortWhy is why a device is used, without the problem that stands above it.
func shortWhy(why string, problems []detect.Problem) string {
	for _, p := range problems {
		if before, after, told := strings.Cut(why, ": "+p.Sentence()); told {
			return before + ", " + seeProblems + after
		}
	}
	return why
}

// gpuNote is what a static executable without a worker says of the GPU.
func gpuNote() string {
	if gpu.Static && len(assets.GPUWorker) == 0 {
		return "; " + gpu.NoWorker
	}
	return ""
}

// writeJSON writes a report as one JSON object that a person can read too.
func writeJSON(w io.Writer, report any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(report)
}

// pass records the verdict of one check; one miss is enough.
func (r *doctorReport) pass(ok bool) {
	all := ok && (r.Passed == nil || *r.Passed)
	r.Passed = &all
}

// verdict is the line that ends a check's table.
func verdict(ok bool) string {
	if ok {
		return "passed"
	}
	return "FAILED"
}

// count is a number of things, in words: "1 core", "2 cores".
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func gigabytes(n int64) string {
	if n < 1e9 {
		return fmt.Sprintf("%.0f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.1f GB", float64(n)/1e9)
}

// finite is a number as JSON can have it: null where it is not finite.
func finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// osName is the distribution where there is one, and the platform.
func osName() string {
	platform := runtime.GOOS + "/" + runtime.GOARCH
	if name := strings.Trim(fieldOf("/etc/os-release", "PRETTY_NAME", "="), `"`); name != "" {
		return name + ", " + platform
	}
	return platform
}

func cpuModel() string {
	return cmp.Or(fieldOf("/proc/cpuinfo", "model name", ":"),
		"unknown "+runtime.GOARCH+" processor")
}

// fieldOf is the first value of a key in a file of lines, "" when there is none.
func fieldOf(path, key, separator string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(data)) {
		if name, value, ok := strings.Cut(line, separator); ok && strings.TrimSpace(name) == key {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
