// The recipes: the arguments for each kind of GPU, preset and length.

package vllm

import (
	"cmp"
	"fmt"
	"strings"
)

// config makes the YAML file for Hopper and Blackwell.
func (p *planner) config() {
	var name string
	switch p.chip.Family {
	case "hopper":
		name = "Hopper"
	case "blackwell":
		name = "Blackwell"
	default:
		return
	}
	if p.r.Preset == "eval" || p.r.Version == benchmarksVersion {
		return // their command lines have no file
	}
	p.add(&p.Config, p.book.File)
	if p.r.Speculative == "eagle3" {
		name = "EAGLE3_" + name
	}
	p.File = "GPT-OSS_" + name + ".yaml"
	path := p.File
	if p.r.Launch == "docker" {
		path = "/" + path // the path of its mount
	}
	p.Args.add("--config "+path, "the settings recommended for this architecture", placeLaunch)
}

// benchmarksVersion is the version of the second document, whose command lines have no config file.
const benchmarksVersion = "v0.10.1"

// parallel adds the number of GPUs a layer and the batch.
func (p *planner) parallel() {
	tp := fmt.Sprint("--tensor-parallel-size ", p.TensorParallel)
	switch {
	case p.r.Preset == "eval":
		p.Args.add(tp, p.preset.Why, placeEval)
		for _, w := range p.book.Eval {
			p.Args.add(w.Text, p.preset.Why, placeEval)
		}
		if p.r.Concurrency > 0 {
			p.replace(fmt.Sprint("--max-num-seqs ", p.r.Concurrency))
		}
		if p.r.Memory > 0 {
			p.replace(fmt.Sprint("--gpu-memory-utilization ", p.r.Memory))
		}
		return
	case p.chip.Family == "gfx942", p.chip.Family == "gfx950":
		p.Args.add(tp, "the layers' parts run on this many GPUs", p.chip.Place)
		if p.r.Version != "" && p.r.Version != "v0.17.0" {
			p.Warnings.add("these settings were validated on vLLM v0.17.0, not on "+p.r.Version,
				"others may lack a flag", placeMI300)
		}
	case p.preset.Name != "" && p.r.TensorParallel == 0:
		p.Args.add(tp, p.preset.Why, placeBalance)
	case p.r.Version == benchmarksVersion:
		p.Args.add(tp, "as in its runs", placeBenchmarks)
	case p.chip.Family == "ampere" && p.TensorParallel == 1:
	case p.chip.Family == "ampere":
		p.Args.add(tp, "more GPUs raise the throughput", placeA100)
	default:
		p.Args.add(tp, "1 gives the most throughput a GPU, 2 to 8 shorter waits", placeParameters)
	}
	p.add(&p.Args, p.book.Args)
	switch {
	case p.r.Concurrency > 0:
		p.Args.add(fmt.Sprint("--max-num-seqs ", p.r.Concurrency), "the clients' own concurrency",
			placeParameters)
	case p.preset.Sequences > 0:
		p.Args.add(fmt.Sprint("--max-num-seqs ", p.preset.Sequences), p.preset.Why, placeBalance)
	}
	p.memory()
}

// memory adds the limits with which an H100 can hold the 120b.
func (p *planner) memory() {
	h100 := strings.EqualFold(p.r.Hardware, "H100") && p.large
	single := h100 && p.TensorParallel == 1
	p.add(&p.Args, p.book.Limits)
	switch {
	case single && p.r.Memory == 0:
	case h100 && p.TensorParallel == 2 && p.r.Memory >= 0.95:
		p.Warnings.add(fmt.Sprintf("--gpu-memory-utilization %v runs out of memory on two H100",
			p.r.Memory), "keep vLLM's default of 0.9", placeLimits)
		fallthrough
	case p.r.Memory > 0:
		p.replace(fmt.Sprint("--gpu-memory-utilization ", p.r.Memory))
	}
}

// address adds the length of the context, and where the server listens.
func (p *planner) address() {
	p.host = p.r.Host
	if p.r.Launch == "docker" && (p.host == "" || p.r.HasFront) {
		p.host = "0.0.0.0" // inside the container
	}
	p.add(&p.Args, p.book.Address)
}

func (p *planner) install() {
	p.add(&p.Prepare, p.book.Install)
	if p.usesRay() {
		add := p.Prepare.add
		add("ray start --head --port=6379 # on the first machine", "before the others", NotInGuide)
		for i := range p.r.Machines[1:] {
			add(fmt.Sprintf("ray start --address=HEAD:6379 # on machine %d", i+2),
				"joins the first machine", NotInGuide)
		}
	}
}

// docker makes the container's command line.
func (p *planner) docker() {
	p.Image = p.Pull
	rows := p.book.Docker
	if p.r.Version == benchmarksVersion && p.chip.Kind == "cuda" {
		rows = p.book.Benchmarks
	} else if p.chip.Kind == "cuda" {
		p.Image = "vllm/vllm-openai:deploy"
	}
	p.add(&p.Prepare, p.book.Prepare)
	p.add(&p.Docker, rows)
	p.add(&p.Look, p.book.Look)
}

// image sets the container's image, by the name to pull.
func (p *planner) image() {
	k := p.book.Kinds[p.chip.Kind]
	p.Pull, p.kind = k.Image+":"+cmp.Or(p.r.Version, k.Tag), k
}
