// The rows of recipes.yaml: hardware, presets, and the lines of plans with their conditions.
//
// What must stay true: a new card, flag or recipe is a row and no code; hardware that no row names
// has vLLM's defaults.

package vllm

import (
	"cmp"
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/goccy/go-yaml"
)

//go:embed recipes.yaml
var recipesText []byte

// recipes is the file; its head describes the fields.
type recipes struct {
	Kinds    map[string]kind
	Hardware []chip
	Presets  []preset
	Removed  []struct{ Flag, From, Replacement string }
	Troubles []Trouble

	Weights, Warnings, File, Env, Args, Limits, Eval, Address, Install, Prepare []row
	Spread, Docker, Benchmarks, Look                                            []row
	SpreadEnv                                                                   []row `yaml:"spread_env"`
}

type kind struct {
	Image, Tag, Resource, Install string
	Devices                       []string
	Plain                         bool // processors: compose and Kubernetes reserve no device
}

// chip is a kind of GPU, or other hardware that vLLM runs on.
type chip struct {
	Names      string // the first is shown; separated by spaces
	Family     string
	Kind       string // of Kinds
	Capability string // of CUDA
	Place      string
	TP         int
	Part       bool // the names are parts of names
}

// preset is a balance between throughput and latencies.
type preset struct {
	Name      string
	TP        int
	Sequences int // 0: as many as the cache holds, which is vLLM's default
	Why       string
}

type row struct {
	Hardware              []string
	Model, From, To       string
	TP                    int
	Speculative, Firmware string
	Launch, Spread        string
	Front                 *bool
	Text, Why, Place      string
	Guide                 bool
}

var rowsOf = sync.OnceValue(func() (r recipes) {
	if err := yaml.UnmarshalWithOptions(recipesText, &r, yaml.Strict()); err != nil {
		panic("recipes.yaml: " + err.Error()) // a test reads it
	}
	return r
})

func (p *planner) add(to *Lines, rows []row) {
	for _, w := range rows {
		if !p.applies(w) {
			continue
		}
		if w.To != "" && !isBefore(p.r.Version, w.To) {
			if w.Guide && p.r.Version == "" {
				p.Warnings.add("the guide has "+w.Text, "for vLLM before "+w.To+
					"; --vllm-version v0.17.0 plans that", w.Place)
			}
			continue
		}
		prefix, suffix, repeated := strings.Cut(w.Text, "{env}")
		for _, e := range p.Env {
			if repeated {
				to.add(prefix+e.Text+suffix, e.Why, e.Place)
			}
		}
		text, ok := p.fill(w.Text)
		why, _ := p.fill(w.Why)
		if ok && !repeated {
			to.add(text, why, cmp.Or(w.Place, p.chip.Place))
		}
	}
}

// fill puts the request's values in a row; ok: it has all that the row names.
func (p *planner) fill(text string) (_ string, ok bool) {
	r := &p.r
	values := map[string]string{"cache": cmp.Or(r.HFHome, "$HF_HOME"), "file": p.File,
		"vocabulary": r.Vocabulary, "image": p.Image, "pull": p.Pull, "platform": r.Platform,
		"host": p.host, "port": strconv.Itoa(r.Port), "length": strconv.Itoa(r.Input + r.Output),
		"input": strconv.Itoa(r.Input), "output": strconv.Itoa(r.Output), "folder": "",
		"machines":  strconv.Itoa(len(r.Machines)),
		"published": fmt.Sprintf("-p %d:%[1]d", r.Port), "vllm": "vllm " + p.kind.Install}
	if r.Input == 0 || r.Output == 0 || r.Preset == "eval" {
		values["length"] = ""
	}
	if r.Port == 8000 {
		values["port"] = ""
	}
	if r.Version != "" {
		values["vllm"] = "vllm==" + strings.TrimPrefix(r.Version, "v") + " " + p.kind.Install
	}
	if p.Folder != "" {
		values["folder"] = Quote(p.Folder + ":" + p.Folder + ":ro")
	}
	if r.HasFront { // to this machine only
		values["published"] = fmt.Sprintf("-p 127.0.0.1:%d:%[1]d", r.Port)
	}
	for name, value := range values {
		if name = "{" + name + "}"; strings.Contains(text, name) && value == "" {
			return "", false
		}
		text = strings.ReplaceAll(text, name, value)
	}
	return text, true
}

// applies tells whether a row is for the request, except for its last version.
func (p *planner) applies(w row) bool {
	size := "other"
	if p.large {
		size = "120b"
	} else if strings.Contains(p.r.Model, "20b") {
		size = "20b"
	}
	firmware := "new"
	if p.r.Firmware == 0 {
		firmware = "unknown"
	} else if p.r.Firmware < 177 {
		firmware = "old"
	}
	is := func(want, have string) bool { return want == "" || want == have }
	return (w.Hardware == nil || slices.ContainsFunc(w.Hardware, p.chip.is(p.r.Hardware))) &&
		is(w.Model, size) && is(w.Speculative, p.r.Speculative) && is(w.Firmware, firmware) &&
		is(w.Launch, p.r.Launch) && is(w.Spread, p.r.Spread) &&
		(w.TP == 0 || w.TP == p.TensorParallel) && (w.Front == nil || *w.Front == p.hasFront()) &&
		(w.From == "" || !isBefore(p.r.Version, w.From))
}

// is tells whether a name of a row is the chip's.
func (c chip) is(name string) func(string) bool {
	return func(text string) bool {
		return strings.EqualFold(text, name) || text == c.Family || text == c.Kind ||
			text == c.Capability
	}
}

// isBefore compares versions; an empty or unusual one is the newest.
func isBefore(version, limit string) bool {
	var a, b [3]int
	n, _ := fmt.Sscanf(version, "v%d.%d.%d", &a[0], &a[1], &a[2])
	_, _ = fmt.Sscanf(limit, "v%d.%d.%d", &b[0], &b[1], &b[2]) // a test reads all of them
	return n >= 2 && slices.Compare(a[:], b[:]) < 0
}

// Hardware lists the names that have recipes.
func Hardware() (names []string) {
	for _, c := range rowsOf().Hardware {
		if !c.Part {
			names = append(names, strings.Fields(c.Names)...)
		}
	}
	return names
}

// Recognise returns the hardware of a GPU's name, such as H100 of "NVIDIA H100 80GB HBM3", or that
// name if no row has it.
func Recognise(gpu string) string {
	upper := strings.ToUpper(gpu)
	i := slices.IndexFunc(Hardware(), func(n string) bool { return strings.Contains(upper, n) })
	if i < 0 {
		return gpu
	}
	return Hardware()[i]
}

// chipOf finds the hardware by its name; unknown names are cards for CUDA.
func chipOf(gpu string) chip {
	name := strings.ReplaceAll(strings.ToUpper(gpu), " ", "_")
	for _, c := range rowsOf().Hardware {
		if slices.ContainsFunc(strings.Fields(c.Names), func(n string) bool {
			return n == name || n == "RTX" && strings.HasPrefix(name, n) ||
				c.Part && strings.Contains(name, n)
		}) {
			return c
		}
	}
	return chip{Names: gpu, Family: "other", Kind: "cuda"}
}

func Presets() (names []string) {
	for _, p := range rowsOf().Presets {
		names = append(names, p.Name)
	}
	return names
}
