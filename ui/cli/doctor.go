// ossrun doctor: the machine as ossrun sees it, and whether it computes correctly.
//
// Without flags it only looks. --golden DIR holds every compute mode to golden logits, --selftest every operation to
// plain float64 loops; a miss of either ends with exit code 1. stdout holds the report alone, as text or as one JSON
// object.

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

	"github.com/ossrun/ossrun/gpu/card"
	"github.com/ossrun/ossrun/gpu/detect"
	"github.com/ossrun/ossrun/gpu/device"
	"github.com/ossrun/ossrun/gpu/spread"
	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/runtime/cpu"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/engine/enginetest"
)

// doctorReport is what --json prints.
type doctorReport struct {
	Machine  machineReport  `json:"machine"`
	GPUs     detect.Report  `json:"gpus"`
	Device   deviceReport   `json:"device"`
	Models   []modelReport  `json:"models"`
	Config   configReport   `json:"config"`
	Golden   []goldenRow    `json:"golden,omitempty"`
	Selftest []selftestRow  `json:"selftest,omitempty"`
	Kernels  []device.Proof `json:"kernels,omitempty"` // of --selftest on a GPU: the faster kernels against the plain ones
	Matrix   []device.Rate  `json:"matrix_rates,omitempty"`
	Whole    *wholeReport   `json:"whole_models,omitempty"`
	Worker   *trafficRow    `json:"worker,omitempty"`
	Decode   []decodeReport `json:"decode_kernels,omitempty"`
	Passed   *bool          `json:"passed,omitempty"` // of --golden and --selftest
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
	Name    string   `json:"name"`
	Why     string   `json:"why"`
	Kernels string   `json:"kernels,omitempty"` // of a GPU: what they are, and whether they are right on this card
	Wrong   []string `json:"wrong,omitempty"`   // a sentence for each that is not
}

func reportOf(dev engine.Device, why string) deviceReport {
	d := deviceReport{Name: dev.Name(), Why: why}
	d.Kernels, d.Wrong = kernelsOf(dev)
	return d
}

type modelReport struct {
	Name  string `json:"name"`
	State string `json:"state"` // "complete", "incomplete", "not here", "built in"
	Path  string `json:"path,omitempty"`
	Needs int64  `json:"needs"` // bytes of the device's memory with doctorContext tokens of context
	Fits  bool   `json:"fits"`  // on the device, with a reserve left

	Plan planReport `json:"plan"`               // what a load would do now
	GPUs string     `json:"gpu_plan,omitempty"` // where it would lie on the GPUs, and what their memories' speed allows

	onGPUs gpuPlacing // the same for people
}

type configReport struct {
	Path  string `json:"path"`
	There bool   `json:"there"`
}

// doctorContext is the context that "fits" speaks of, in tokens.
const doctorContext = 8192

func doctorCommand() *cli.Command {
	return &cli.Command{
		Name:  "doctor",
		Usage: "show the machine, what is used and why; check that it computes correctly",
		Description: "Example: ossrun doctor --selftest\n\n" +
			"A golden folder has checkpoint/, a model in the Hugging Face layout, and golden/ with cases.json and\n" +
			"logits.safetensors.\n\n" + exitCodes,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "golden", Usage: "hold every compute mode to the golden logits in `DIR`"},
			&cli.BoolFlag{Name: "selftest", Usage: "hold every operation to plain float64 loops, on every instruction set, about a minute, or on the GPU, where speeds are measured too, below five"},
			&cli.StringFlag{Name: "device", Value: "auto", Usage: "what the checks run on: auto, cpu or gpu"},
			&cli.StringFlag{Name: "gpu", Usage: "this GPU, as `0`"},
			isolateFlag(),
			&cli.BoolFlag{Name: "json", Usage: "as one JSON object"},
			configFlag(),
		},
		Action: func(c *cli.Context) (err error) {
			if c.NArg() > 0 {
				return fail(exitUsage, "doctor takes no arguments, but got %q; see ossrun doctor --help", c.Args().First())
			}
			host, err := cpu.New(0)
			if err != nil {
				return fail(exitFailure, "%s", err)
			}
			defer func() { err = errors.Join(err, host.Close()) }()
			dev, why, err := doctorDevice(c, host)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, dev.Close()) }() // twice where it is the host, which is no error
			return examine(c, host, dev, why)
		},
	}
}

// examine makes the report and prints it; text comes as it is known, JSON at the end.
func examine(c *cli.Context, host, dev engine.Device, why string) error {
	r, err := look(c, host, dev, why)
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
	if gpu, ok := dev.(gpuUnderTest); ok && c.Bool("selftest") {
		if err := r.selftestGPU(c.Context, text, gpu, fullGPUSelftest(gpu, host)); err != nil {
			return err
		}
	} else if c.Bool("selftest") {
		if err := r.selftest(c.Context, text, dev, enginetest.Small(), []enginetest.Shape{enginetest.Published(1)}); err != nil {
			return err
		}
	}
	r.Worker = workerTraffic(text, dev)
	if c.Bool("json") {
		encoder := json.NewEncoder(c.App.Writer)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(r); err != nil {
			return err
		}
	}
	if r.Passed != nil && !*r.Passed {
		return fail(exitFailure, "a check missed: this build does not compute correctly on this machine, or the golden is damaged")
	}
	return nil
}

// look gathers what can be seen without computing.
func look(c *cli.Context, host, dev engine.Device, why string) (*doctorReport, error) {
	total, free := host.Memory()
	r := &doctorReport{
		Machine: machineReport{OS: osName(), CPU: cpuModel(), Cores: cpu.Cores(), ISAs: cpu.ISAs(), MemoryTotal: total, MemoryFree: free},
		GPUs:    seeGPUs(c.Context),
		Device:  reportOf(dev, why),
	}
	switch {
	case why == "" && len(r.GPUs.Usable()) > 0:
		r.Device.Why = "no GPU is used: " + card.ErrNone.Error() + gpuNote()
	case why == "":
		r.Device.Why = whyCPU(r.GPUs) + gpuNote()
	}
	r.Config.Path = cmp.Or(c.String("config"), defaultConfigPath())
	_, err := os.Stat(r.Config.Path)
	r.Config.There = err == nil
	only, err := gpuList(c)
	if err != nil {
		return nil, err
	}
	rate := sync.OnceValue(func() float64 { return spread.ReadRate(host) })
	r.Models, err = modelReports(dev, func(s models.Spec) gpuPlacing { return gpuPlan(s, r.GPUs, only, free, rate) })
	return r, err
}

// modelReports goes through the catalogue: what is here, what each model needs on dev, and where the GPUs would have it.
func modelReports(dev engine.Device, onGPUs func(models.Spec) gpuPlacing) ([]modelReport, error) {
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
		if m.Needs, m.Fits, err = needs(e, dev); err != nil {
			return nil, err
		}
		m.Plan = planOf(e, dev)
		m.onGPUs = onGPUs(e.Spec)
		m.GPUs = m.onGPUs.String()
		list = append(list, m)
	}
	return list, nil
}

func (r *doctorReport) print(out io.Writer) error {
	m := r.Machine
	isas := strings.Join(m.ISAs, ", ")
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintf(w, "system\t%s\n", m.OS)
	fmt.Fprintf(w, "cpu\t%s, %d core%s to use, %s\n", m.CPU, m.Cores, plural(m.Cores), isas)
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
		case x.onGPUs.fits: // the plan below has room for it
			verdict += " on this device alone"
		}
		state := strings.TrimSpace(x.State + " " + x.Path)
		if x.State != "complete" && x.State != "built in" {
			fmt.Fprintf(w, "%s\t%s: %s; needs %s with %d tokens of context, %s\n", name, x.Name, state, gigabytes(x.Needs), doctorContext, verdict)
			printGPUPlan(w, x.onGPUs)
			continue
		}
		// The plan says what it takes, for several sequences at once; the least that one needs would be another figure beside it.
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

func printGPUPlan(w io.Writer, plan gpuPlacing) {
	label := "GPUs: "
	for _, line := range plan.lines {
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

func plural(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
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
	return cmp.Or(fieldOf("/proc/cpuinfo", "model name", ":"), "unknown "+runtime.GOARCH+" processor")
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
