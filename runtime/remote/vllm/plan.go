// Package vllm plans, starts and watches vLLM, for models and loads beyond this machine's own
// engine.
//
// A plan follows the rules of the "gpt-oss vLLM Usage Guide" and of the "vLLM v0.10.1" benchmark
// document. What must stay true: every line of a plan gives its reason and the part of a document
// that asks for it, or says that none does; the same request gives the same plan on every machine.
package vllm

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Request is the model to serve, and the hardware.
type Request struct {
	Hardware       string // a name of Hardware
	Model          string // 20b, 120b, or a repository
	GPUs           int    // of this kind here; 0: unknown
	TensorParallel int    // GPUs that share each layer; 0: the preset's, or 1
	Preset         string // one of Presets; "": vLLM's own batch size
	Speculative    string // "" or eagle3

	Input, Output int // most tokens of a prompt and of an answer; 0: the model's whole context
	Concurrency   int // concurrent requests of clients; 0: the preset's, or vLLM's default

	Launch   string // docker or local
	Version  string // of vLLM, such as v0.12.0; "": the newest
	Platform string // linux/amd64 or linux/aarch64
	Host     string // "": 127.0.0.1, as vLLM
	Port     int    // 0: 8000
	HasFront bool   // a port of this machine is in front: other machines have no access

	Firmware   int // of AMD's MEC; 0: unknown
	Software   Software
	Memory     float64 // requested --gpu-memory-utilization; 0: none
	Vocabulary string  // folder with o200k_base.tiktoken; "": vLLM fetches it
	Folder     string  // of the model on this machine; "": Model is a repository
	HFHome     string  // the cache of weights; "": $HF_HOME
	// Machines are the addresses of several; none: one machine. Spread is how they share one model:
	// tp, tp-pp or dep; "": each has its own.
	Machines []string
	Spread   string

	DockerArgs []string // further arguments of docker run
	Extra      []string // further arguments of vLLM, each with its value; they override the plan's
}

type Line struct {
	Text  string
	Why   string
	Place string // the part of the document
}

type Lines []Line

func (l *Lines) add(text, why, place string) { *l = append(*l, Line{text, why, place}) }

func (l Lines) texts() (list []string) {
	for _, line := range l {
		list = append(list, line.Text)
	}
	return list
}

// NotInGuide is the Place of lines that no document asks for.
const NotInGuide = "none in the guide"

// Plan is a start of vLLM.
type Plan struct {
	Prepare  Lines  // commands before the start
	Env      Lines  // NAME=VALUE
	Config   Lines  // lines of the YAML file
	File     string // the YAML file's name; "": no file
	Args     Lines  // arguments of `vllm serve`, the model first
	Docker   Lines  // arguments of `docker run`; none: a local installation
	Image    string // as it is started: a name of this machine
	Pull     string // the same image as others know it
	Look     Lines  // commands to inspect it, or to run this program's port in front
	Warnings Lines

	Machines []Machine // several; none: one, by Command
	Front    string    // the command of this program in front of Machines

	Model          string // the repository
	TensorParallel int
	Folder         string // of the model on the machine; "": vLLM fetches the repository
	kind           kind
	spread         string
	Key            string // for requests, if Run starts it; never in a line
}

// The documents' parts.
const (
	placeA100       = "guide, A100"
	placeAMD        = "guide, AMD"
	placeMI300      = "guide, MI300x/MI325x(gfx942)"
	placeEval       = "guide, Accuracy Evaluation Panels"
	placeLaunch     = "guide, Launch the vLLM Server"
	placeParameters = "guide, Configs and Parameters"
	placeBalance    = "guide, Balancing between Throughput and Latencies"
	placeLimits     = "guide, Known Limitations"
	placeBenchmarks = "vLLM v0.10.1, Serve a model via docker"
)

// planner makes one plan.
type planner struct {
	Plan
	book   recipes
	r      Request
	chip   chip
	preset preset
	large  bool   // the model is the 120b
	host   string // to listen at
}

// Make makes the plan of a request, or refuses it with a reason.
func Make(r Request) (Plan, error) {
	p := &planner{r: r, book: rowsOf()}
	if err := p.check(); err != nil {
		return Plan{}, err
	}
	p.image()
	p.model()
	p.config()
	p.parallel()
	p.add(&p.Env, p.book.Env)
	p.address()
	p.spreadArgs()
	for _, argument := range p.r.Extra { // overrides in vLLM's own words
		p.replace(argument)
	}
	if p.r.Launch == "docker" {
		p.docker()
		for _, argument := range p.r.DockerArgs {
			p.Docker.add(argument, "as asked", NotInGuide)
		}
	} else {
		p.install()
	}
	p.machines()
	if !p.r.HasFront && p.Front == "" {
		p.Look.add(fmt.Sprintf("ossrun vllm serve %s --upstream http://127.0.0.1:%d "+
			"--port %d", Quote(p.r.Model), p.r.Port, SecondPort(p.r.Port)),
			"this program's port in front of it", NotInGuide)
	}
	return p.Plan, nil
}

// replace adds a requested argument and removes the recipe's.
func (p *planner) replace(argument string) {
	name := func(text string) string {
		text, _, _ = strings.Cut(text, " ")
		text, _, _ = strings.Cut(text, "=")
		return text
	}
	p.Args = slices.DeleteFunc(p.Args, func(l Line) bool {
		return strings.HasPrefix(l.Text, "-") && name(l.Text) == name(argument)
	})
	p.Args.add(argument, "as asked", NotInGuide)
}

func (p *planner) check() (err error) {
	p.chip = chipOf(p.r.Hardware)
	p.chip.Place = cmp.Or(p.chip.Place, map[bool]string{true: NotInGuide}[p.chip.Family == "other"],
		placeLaunch)
	i := slices.IndexFunc(p.book.Presets, func(s preset) bool { return s.Name == p.r.Preset })
	switch {
	case i >= 0:
		p.preset = p.book.Presets[i]
	case p.r.Preset != "":
		return fmt.Errorf("unknown preset %q: use one of %s", p.r.Preset,
			strings.Join(Presets(), ", "))
	}
	switch p.r.Launch {
	case "":
		if p.r.Launch = "docker"; p.r.Spread != "" && !p.r.HasFront {
			p.r.Launch = "local"
		}
	case "docker", "local":
	default:
		return fmt.Errorf("unknown launch %q: use docker or local", p.r.Launch)
	}
	switch {
	case p.r.Spread == "":
	case len(p.r.Machines) < 2:
		return fmt.Errorf("--spread needs the machines. Add --nodes 2, or their addresses")
	case !slices.Contains(Spreads, p.r.Spread):
		return fmt.Errorf("unknown spread %q: use tp, tp-pp or dep", p.r.Spread)
	case p.r.Launch == "docker" && !p.r.HasFront:
		return fmt.Errorf("one model over several machines needs the host's network. Use " +
			"--launch local or --print k8s")
	}
	if v := p.r.Version; v != "" && v[0] >= '0' && v[0] <= '9' {
		p.r.Version = "v" + v
	}
	if p.usesRay() && p.r.HasFront {
		return fmt.Errorf("manifests of one model over several machines need vLLM 0.18 or newer")
	}
	for _, f := range p.book.Removed {
		for _, argument := range p.r.Extra {
			name, _, _ := strings.Cut(argument, " ")
			if name == f.Flag && !isBefore(p.r.Version, f.From) {
				return fmt.Errorf("vLLM has no %s since %s. Use %s", f.Flag, f.From, f.Replacement)
			}
		}
	}
	if len(p.r.DockerArgs) > 0 && p.r.Launch != "docker" {
		return fmt.Errorf("--docker-arg is for --launch docker")
	}
	if err := p.share(); err != nil {
		return err
	}
	if p.chip.Kind == "rocm" && p.r.Launch == "local" {
		if err := p.r.Software.checkWheel(); err != nil {
			return err
		}
	}
	p.large = strings.Contains(p.r.Model, "120b")
	switch p.r.Speculative {
	case "":
	case "eagle3":
		if p.chip.Family != "hopper" && p.chip.Family != "blackwell" {
			return fmt.Errorf("eagle3 has recipes for H100, H200, B200 and B300. For %s name a "+
				"draft model with --speculative-config", p.r.Hardware)
		}
	default:
		return fmt.Errorf("unknown speculative method %q: use eagle3", p.r.Speculative)
	}
	if p.r.Speculative != "" && (p.r.Preset == "eval" || p.r.Version == benchmarksVersion) {
		return fmt.Errorf("the command lines of --preset eval and of %s have no draft model",
			benchmarksVersion)
	}
	p.r.Port = cmp.Or(p.r.Port, 8000)
	if p.r.Platform == "" {
		p.r.Platform = "linux/amd64"
		if grace.MatchString(p.r.Hardware) {
			p.r.Platform = "linux/aarch64"
		}
	}
	return nil
}

// grace is in the names of GPUs with Grace, an ARM: GH200, GB200, GB300, GB10.
var grace = regexp.MustCompile(`(?i)\bG[HB]\d`)

// share decides how many GPUs share a layer.
func (p *planner) share() error {
	switch p.TensorParallel = p.r.TensorParallel; {
	case p.TensorParallel == 0:
		p.TensorParallel = cmp.Or(p.preset.TP, p.chip.TP, 1)
		for p.r.GPUs > 0 && p.TensorParallel > p.r.GPUs {
			p.TensorParallel /= 2
		}
	case p.TensorParallel < 0 || 64%p.TensorParallel != 0 || p.TensorParallel > 8:
		return fmt.Errorf("--tensor-parallel-size is 1, 2, 4 or 8, not %d", p.TensorParallel)
	case p.r.GPUs > 0 && p.TensorParallel > p.r.GPUs:
		return fmt.Errorf("--tensor-parallel-size %d needs %[1]d GPUs, and %d of %s are found "+
			"here: name the hardware with --hardware to plan for another machine",
			p.TensorParallel, p.r.GPUs, p.r.Hardware)
	}
	return nil
}

func (p *planner) model() {
	why := "the released weights"
	var weights Lines
	if p.add(&weights, p.book.Weights); p.r.Model != "20b" && p.r.Model != "120b" {
		p.Model, why, p.Folder = p.r.Model, "as asked", p.r.Folder
	} else if p.Model = "openai/gpt-oss-" + p.r.Model; len(weights) > 0 {
		p.Model, why = weights[0].Text, weights[0].Why
	}
	p.Args.add(Quote(p.Model), why, p.chip.Place)
	if p.hasFront() {
		p.Args.add("--enable-prompt-tokens-details", "cached tokens in the usage", NotInGuide)
	}
	p.add(&p.Warnings, p.book.Warnings)
	if p.chip.Family == "other" {
		p.Warnings.add("vLLM's documents have no recipe for "+p.r.Hardware,
			"vLLM's defaults are used", NotInGuide)
	}
}

// Software has the versions on a machine, "" if unknown. uv fetches the Python that is needed.
type Software struct {
	ROCm  string // such as 7.0.2
	Glibc string // such as 2.39
}

// FindSoftware inspects this machine. root is the folder of its files, "/".
func FindSoftware(ctx context.Context, root string) (s Software) {
	if text, err := os.ReadFile(filepath.Join(root, "opt/rocm/.info/version")); err == nil {
		s.ROCm, _, _ = strings.Cut(strings.TrimSpace(string(text)), "-") // 7.0.2-56
	}
	// the answer is "glibc 2.39", or an error on systems without glibc
	if out, err := exec.CommandContext(ctx, "getconf", "GNU_LIBC_VERSION").Output(); err == nil {
		_, s.Glibc, _ = strings.Cut(strings.TrimSpace(string(out)), " ")
	}
	return s
}

// checkWheel says why the wheel cannot run here.
func (s Software) checkWheel() error {
	if major, minor, ok := version(s.ROCm); ok && (major != 7 || minor != 0) {
		return fmt.Errorf("vLLM's wheel for AMD needs ROCm 7.0, not ROCm %s: use --launch "+
			"docker (%s)", s.ROCm, placeAMD)
	}
	if major, minor, ok := version(s.Glibc); ok && (major < 2 || major == 2 && minor < 35) {
		return fmt.Errorf("vLLM's wheel for AMD needs glibc 2.35 or newer, not %s: use "+
			"--launch docker (%s)", s.Glibc, placeAMD)
	}
	return nil
}

func version(text string) (major, minor int, ok bool) {
	n, _ := fmt.Sscanf(text, "%d.%d", &major, &minor)
	return major, minor, n == 2
}
