// Package doctor inspects the machine as ossrun sees it and runs checks: golden logits, and every
// operation against plain float64 loops.
//
// It returns data and prints nothing. What must stay true: inspecting takes no memory for a model;
// one failed check sets Passed to false for good.
package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"github.com/ossrun/ossrun/gpu"
	"github.com/ossrun/ossrun/gpu/detect"
	"github.com/ossrun/ossrun/gpu/device"
	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/models/q8"
	"github.com/ossrun/ossrun/models/store"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/engine/golden"
	"github.com/ossrun/ossrun/runtime/remote/vllm"
	"github.com/ossrun/ossrun/runtime/serve"
)

// Report is what ossrun doctor --json prints.
type Report struct {
	Machine Machine       `json:"machine"`
	GPUs    detect.Result `json:"gpus"`
	Device  Device        `json:"device"`
	// of a server with the defaults
	Requests    serve.Requests `json:"requests"`
	Models      []Model        `json:"models"`
	OtherModels []OtherModel   `json:"other_models,omitempty"`
	Cache       Cache          `json:"cache"`
	Servers     []Server       `json:"servers"`
	Port        Port           `json:"port"`
	Tools       []Tool         `json:"tools"`
	// the cases of vLLM's known problems that a GPU of this machine would have hit
	Troubles []vllm.Trouble `json:"troubles_of_vllm"`
	Config   Config         `json:"config"`
	Golden   []GoldenRow    `json:"golden,omitempty"`
	Selftest []SelftestRow  `json:"selftest,omitempty"`
	// GPU self-test: the faster kernels against the reference ones
	Kernels []device.Proof `json:"kernels,omitempty"`
	// the same kernels at a published model's width
	Width       []device.Trial `json:"width,omitempty"`
	Matrix      []device.Rate  `json:"matrix_rates,omitempty"`
	WholeModels *WholeModels   `json:"whole_models,omitempty"`
	Worker      *gpu.Traffic   `json:"worker,omitempty"`
	// attempts of the known escapes from python's sandboxes
	Attacks []Attack `json:"attacks,omitempty"`
	Busy    bool     `json:"busy,omitempty"`   // speeds are low: other programs use the CPUs
	Passed  *bool    `json:"passed,omitempty"` // of all checks; nil: none ran
}

// Attack is an attempted escape from a sandbox.
type Attack struct {
	Sandbox string `json:"sandbox"`
	Attack  string `json:"attack"`
	Blocked bool   `json:"held"`
	Ways    int    `json:"ways"`             // tried
	Detail  string `json:"detail,omitempty"` // the place that the attack reached
}

type Machine struct {
	OS          string   `json:"os"`
	CPU         string   `json:"cpu"`
	Cores       int      `json:"cores"` // that this process may use
	ISAs        []string `json:"isas"`
	MemoryTotal int64    `json:"memory_total"`
	MemoryFree  int64    `json:"memory_free"`
}

type Device struct {
	Name string `json:"name"`
	Why  string `json:"why"`
	// of a GPU: the kernels, and whether they are right on this card
	Kernels string   `json:"kernels,omitempty"`
	Wrong   []string `json:"wrong,omitempty"` // a sentence for each wrong kernel
	// of a GPU: how long each way of computing experts takes by rows, and which is used
	Timings []device.Timing `json:"timings,omitempty"`
}

// UsableContext is the context, in tokens, that Model.Needs counts.
const UsableContext = gpu.UsableContext

// Placement is how the GPUs would hold a model.
type Placement = gpu.Placement

// Model is one of the catalogue's.
type Model struct {
	Name  string `json:"name"`
	State string `json:"state"` // "complete", "incomplete", "not downloaded", "built in"
	Path  string `json:"path,omitempty"`
	// whose release the cached weights are, and how their files describe them
	Weights checkpoint.Verification `json:"weights,omitempty"`
	About   string                  `json:"about,omitempty"`
	// bytes of the device's memory with UsableContext tokens of context
	Needs int64 `json:"needs"`
	Fits  bool  `json:"fits"` // on the device, with a reserve left

	Plan PlanReport `json:"plan"` // of a load now
	// placement on the GPUs, and the speed that their memories allow
	GPUs string `json:"gpu_plan,omitempty"`
	// upper bound on tokens a second of one answer, from the CPU's read rate; 0 on a GPU
	ReadBound float64 `json:"tok_s_at_most,omitempty"`
	// predicted from the speed that the kernels reach, see bench.Expect; 0: not measured
	Expected float64 `json:"tok_s_expected,omitempty"`

	// compute modes on a CPU, the default first
	Modes []Mode `json:"modes,omitempty"`
	// path of the 8-bit copy of the dense weights; "" if not made yet
	Copy string `json:"dense_copy,omitempty"`

	Spec   models.Spec `json:"-"`
	OnGPUs Placement   `json:"-"` // the same for people
}

// OtherModel is a model on this machine that the catalogue does not have.
type OtherModel struct {
	Name  string `json:"name"`
	About string `json:"about"` // from its files, or why it cannot be used
}

// Expect records the speed that kernels reached. Memory speed was measured at another moment, and
// the expected speed is never above the bound.
func (m *Model) Expect(rate float64) { m.Expected = min(rate, m.ReadBound) }

// PlanReport is the memory plan of a load, or the error if nothing fits.
type PlanReport struct {
	serve.Plan
	Error string `json:"error,omitempty"`
}

func (p PlanReport) Lines() []string {
	if p.Error != "" {
		return []string{p.Error}
	}
	lines := p.Plan.Lines()
	if slow := p.Slow(); slow != "" {
		lines = append(lines, slow)
	}
	return lines
}

// Cache is the folder of the weights.
type Cache struct {
	Path string `json:"path"`
	Used int64  `json:"used"` // bytes of models, of any kind
	Free int64  `json:"free"` // bytes of the disk
	// why it cannot be used; "" if it can
	Unavailable string `json:"unavailable,omitempty"`
}

// Server is a running server of this user.
type Server struct {
	PID    int      `json:"pid"`
	URL    string   `json:"url"`
	State  string   `json:"state"`
	Models []string `json:"models"`
}

// Port is the default address of ossrun serve.
type Port struct {
	Address string `json:"address"`
	// why a new server cannot listen: a server above, another program, or no right to; "" if it can
	Unavailable string `json:"taken,omitempty"`
	// why programs of other users are served there without a key; "" if they are not
	OtherUsers string `json:"others_served,omitempty"`
}

// Tool is a tool that the model can be given, and its requirements.
type Tool struct {
	Tool    string `json:"tool"`
	What    string `json:"what,omitempty"`
	Missing string `json:"missing,omitempty"` // what to install or do
	Memory  int64  `json:"memory,omitempty"`  // bytes that its programs may use
}

type Config struct {
	Path   string `json:"path"`
	Exists bool   `json:"there"`
}

// Doctor holds the machine's devices open.
type Doctor struct {
	Report
	host, dev engine.Backend
}

// Open opens the CPU and the device of the options, and inspects them without computing. config is
// the path of the config file.
func Open(ctx context.Context, o serve.Options, config string, notify func(string)) (_ *Doctor,
	err error) {
	d := &Doctor{}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.Close())
		}
	}()
	if d.host, _, err = serve.Open(ctx, engine.Settings{Device: "cpu"}, notify); err != nil {
		return nil, err
	}
	var why string
	if d.dev, why, err = serve.Open(ctx, o.Settings, notify); err != nil {
		return nil, err
	}
	return d, d.inspect(ctx, why, o, config)
}

func (d *Doctor) Close() (err error) {
	for _, b := range []engine.Backend{d.dev, d.host} {
		if b != nil {
			err = errors.Join(err, b.Close())
		}
	}
	return err
}

func (d *Doctor) Backend() engine.Backend { return d.dev }

func DescribeMachine(host engine.Backend) Machine {
	total, free := host.Memory()
	return Machine{OS: osName(), CPU: CPU(), Cores: serve.Cores(), ISAs: serve.ISAs(),
		MemoryTotal: total, MemoryFree: free}
}

func (d *Doctor) inspect(ctx context.Context, why string, o serve.Options,
	config string) (err error) {
	_, free := d.host.Memory()
	d.Machine = DescribeMachine(d.host)
	d.GPUs = gpu.Detect(ctx)
	d.Device = Device{Name: d.dev.Name(), Why: why}
	if g, ok := d.dev.(*gpu.Backend); ok {
		d.Device.Kernels, d.Device.Wrong = g.Kernels()
		d.Device.Timings, _ = g.Timings(ctx) // several GPUs have none
	}
	const unused = "no GPU is used: "
	switch {
	case why != "" && !d.dev.Caps().Discrete && o.Settings.Device != "cpu":
		d.Device.Why = unused + why
	case why != "":
	case len(d.GPUs.Usable()) > 0:
		d.Device.Why = unused + gpu.ErrNone.Error() + serve.GPUNote()
	case d.GPUs.Why() != "":
		d.Device.Why = unused + d.GPUs.Why() + serve.GPUNote()
	default:
		d.Device.Why = "there is no GPU of NVIDIA or AMD in this machine" + serve.GPUNote()
	}
	d.Requests, err = serve.PlanRequests(serve.SettingsFor(d.dev, serve.DefaultOptions()),
		serve.StandardBody)
	if d.Requests.Tools = o.ToolMemory; err != nil {
		return err
	}
	_, missing := os.Stat(config)
	d.Config = Config{config, missing == nil}
	settings := func(memory int64) engine.Settings { return serve.SettingsOnGPU(memory, o) }
	rate := sync.OnceValue(func() float64 { return serve.HostReadRate(d.host) })
	if err := d.inspectCache(); err != nil {
		return err
	}
	return d.inspectModels(rate, func(s models.Spec) Placement {
		return gpu.Place(s, d.GPUs, settings, free, rate)
	})
}

func (d *Doctor) inspectCache() (err error) {
	if d.Cache.Path, err = store.Root(); err != nil {
		return err
	}
	walk := func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return nil // an unreadable file is not counted
		}
		if info, err := entry.Info(); err == nil {
			d.Cache.Used += info.Size()
		}
		return nil
	}
	_ = filepath.WalkDir(d.Cache.Path, walk) // walk returns no error
	if d.Cache.Free, err = store.Free(d.Cache.Path); err != nil {
		d.Cache.Unavailable = cmp.Or(errors.Unwrap(err), err).Error()
	}
	return nil
}

// inspectModels goes through the catalogue: the cached files, what each model needs on the device,
// and its placement on the GPUs.
func (d *Doctor) inspectModels(rate func() float64, onGPUs func(models.Spec) Placement) error {
	cached, err := checkpoint.Cached()
	if err != nil && d.Cache.Unavailable == "" {
		return fmt.Errorf("reading the cache: %w", err)
	}
	demo, err := checkpoint.OpenDemo()
	if err != nil {
		return err
	}
	spec := demo.Spec
	if err := demo.Close(); err != nil {
		return err
	}
	for _, e := range models.Catalogue() {
		m := Model{Name: e.ID, State: "not downloaded"}
		if e.HF == "" {
			m.State, e.Spec = "built in", spec
		}
		m.Spec = e.Spec
		for _, f := range cached {
			if f.ID != e.ID {
				continue
			}
			m.State, m.Path = "complete", f.Path
			if m.Weights = f.Verification(); !f.Complete {
				m.State, m.Weights = "incomplete", ""
			}
			m.Copy = q8.Ready(f, serve.DenseFolder())
			if about, err := checkpoint.Describe(f.Path); err == nil && f.Complete {
				m.About = about.String()
			}
		}
		if err := m.plan(e, d.dev, d.Requests); err != nil {
			return err
		}
		if !d.dev.Caps().Discrete {
			if m.Modes, err = modesOf(serve.DefaultsFor(d.dev, catalogueModel(e), e.Spec), e.Spec,
				rate()); err != nil {
				return err
			}
			m.ReadBound = m.Modes[0].ReadBound
		}
		m.OnGPUs = onGPUs(e.Spec)
		m.GPUs = m.OnGPUs.String()
		d.Models = append(d.Models, m)
	}
	stored, err := checkpoint.Inventory()
	for _, s := range stored {
		if s.ID == "" && s.Complete {
			d.addOther("hf:"+s.Repo, s.Path)
		}
	}
	for _, e := range checkpoint.ListForeign() {
		d.addOther(e.Name, e.Path)
	}
	if d.Cache.Unavailable != "" {
		return nil // it is reported
	}
	return err
}

func (d *Doctor) addOther(name, path string) {
	about, err := checkpoint.Describe(path)
	line := about.String()
	if err != nil {
		line = err.Error()
	}
	d.OtherModels = append(d.OtherModels, OtherModel{name, line})
}

func catalogueModel(e models.Entry) checkpoint.Model {
	return checkpoint.Model{Name: e.ID, Demo: e.ID == models.Demo}
}

// plan records what serve and chat would do by default with a catalogue model on a device.
func (m *Model) plan(e models.Entry, b engine.Backend, r serve.Requests) (err error) {
	s := serve.SettingsFor(b, serve.DefaultOptions())
	source := catalogueModel(e)
	p, planErr := serve.PlanOn(b, source, e.Spec, s)
	if m.Plan.Plan = p; planErr != nil {
		m.Plan.Error = planErr.Error()
	} else {
		m.Plan.Plan = p.WithRequests(r, b, -1)
	}
	s.MaxModelLen = UsableContext
	if m.Needs, err = serve.Needs(b, source, e.Spec, s); err != nil {
		return err
	}
	p, planErr = serve.PlanOn(b, source, e.Spec, s)
	m.Fits = planErr == nil && p.OnDisk == 0
	return nil
}

// AddAttack records the result of an attempted escape.
func (r *Report) AddAttack(a Attack) {
	r.Attacks = append(r.Attacks, a)
	r.pass(a.Blocked)
}

// pass records the verdict of one check; one failure is final.
func (r *Report) pass(ok bool) {
	all := ok && (r.Passed == nil || *r.Passed)
	r.Passed = &all
}

// GoldenRow is one case in one mode; case "all" sums up the mode.
type GoldenRow struct {
	Mode         string   `json:"mode"`
	Case         string   `json:"case"`
	Positions    int      `json:"positions"`
	MaxAbs       *float64 `json:"max_abs"` // null: not a number
	KLMean       *float64 `json:"kl_mean"`
	KLMedian     *float64 `json:"kl_median"`
	KLMax        *float64 `json:"kl_max"`
	Agree        int      `json:"argmax_equal"`
	Total        int      `json:"argmax_of"`
	Greedy       int      `json:"greedy_equal"`
	GreedyTotal  int      `json:"greedy_of"`
	GapLost      *float64 `json:"gap_lost"`
	Milliseconds int64    `json:"ms"`
	OK           bool     `json:"ok"`
	Misses       []string `json:"misses,omitempty"`
}

// RunGolden checks the device against the golden folder dir, in every compute mode, on the CPU with
// both types of dense weights.
func (d *Doctor) RunGolden(ctx context.Context, dir string,
	show func(golden.CaseResult)) (ok bool, err error) {
	o := golden.Options{Both: !d.dev.Caps().Discrete}
	ok, err = o.Run(ctx, dir, d.dev, nil, func(c golden.CaseResult) {
		d.Golden = append(d.Golden, GoldenRow{Mode: c.Mode, Case: c.Case, Positions: c.Positions,
			MaxAbs: finite(c.MaxAbs), KLMean: finite(c.KLMean), KLMedian: finite(c.KLMedian),
			KLMax: finite(c.KLMax), Agree: c.Agree, Total: c.Of, Greedy: c.Greedy,
			GreedyTotal: c.GreedyOf, GapLost: finite(c.GapLost),
			Milliseconds: c.Elapsed.Milliseconds(), OK: c.OK(), Misses: c.Misses})
		show(c)
	})
	if err == nil {
		d.pass(ok)
	}
	return ok, err
}

// finite returns v for JSON, null unless it is finite.
func finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

func osName() string {
	platform := runtime.GOOS + "/" + runtime.GOARCH
	if name := strings.Trim(readField("/etc/os-release", "PRETTY_NAME", "="), `"`); name != "" {
		return name + ", " + platform
	}
	return platform
}

func CPU() string {
	return cmp.Or(readField("/proc/cpuinfo", "model name", ":"),
		"unknown "+runtime.GOARCH+" processor")
}

// readField returns the first value of a key in a file of lines, "" if missing.
func readField(path, key, separator string) string {
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
