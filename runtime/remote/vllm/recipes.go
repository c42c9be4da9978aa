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

func (p *planner) environment() {
	p.add(&p.Env, p.book.Env)
	if p.r.Vocabulary != "" {
		p.Env.add("TIKTOKEN_ENCODINGS_BASE="+p.r.Vocabulary,
			"the vocabulary that ossrun carries, so that vLLM fetches none; of the two files only "+
				"o200k_base is read, cl100k_base belongs to older models", placeTrouble)
	}
	if p.r.Version == benchmarksVersion && p.r.Launch == "docker" {
		p.Env.add("VLLM_LOGGING_LEVEL=ERROR", "errors only in the log", placeBenchmarks)
		p.Env.add("TRANSFORMERS_OFFLINE=1", "the weights are in the cache already", placeBenchmarks)
	}
}

// lengths shortens the context to the requested lengths.
func (p *planner) lengths() {
	if n := p.r.Input + p.r.Output; p.r.Input > 0 && p.r.Output > 0 && p.r.Preset != "eval" {
		p.Args.add(fmt.Sprint("--max-model-len ", n),
			fmt.Sprintf("prompts of %d and answers of %d tokens", p.r.Input, p.r.Output),
			placeParameters)
	}
}

func (p *planner) address() {
	host := p.r.Host
	if p.r.Launch == "docker" && (host == "" || p.r.HasFront) {
		host = "0.0.0.0" // inside the container
	}
	if host != "" {
		p.Args.add("--host "+host, "the address to listen at", placeParameters)
	}
	if p.r.Port != 8000 {
		p.Args.add(fmt.Sprint("--port ", p.r.Port), "as asked", placeParameters)
	}
}

func (p *planner) install() {
	add := p.Prepare.add
	if p.chip.amd() {
		add("uv venv --python 3.12", "an environment with the Python that the wheel is for",
			placeAMD)
	} else {
		add("uv venv", "an environment of its own", placeQuickstart)
	}
	add("source .venv/bin/activate", "to use it", placeQuickstart)
	version := ""
	if p.r.Version != "" {
		version = "==" + strings.TrimPrefix(p.r.Version, "v")
	}
	why, place := "the PyTorch that fits this driver", placeQuickstart
	if p.chip.amd() {
		why = "the wheel needs Python 3.12, ROCm 7.0 and glibc 2.35 or newer; use docker elsewhere"
		place = placeAMD
	}
	add("uv pip install vllm"+version+" "+p.book.Kinds[p.chip.Kind].Install, why, place)
	if p.usesRay() {
		add("ray start --head --port=6379 # on the first machine", "before the others", NotInGuide)
		for i := range p.r.Machines[1:] {
			add(fmt.Sprintf("ray start --address=HEAD:6379 # on machine %d", i+2),
				"joins the first machine", NotInGuide)
		}
	}
}

// docker makes the container's command line.
func (p *planner) docker() {
	add, cache := p.Docker.add, cmp.Or(p.r.HFHome, "$HF_HOME")
	if p.r.Version == benchmarksVersion && p.chip.Kind == "cuda" {
		p.Image = p.Pull
		p.Prepare.add("docker pull "+p.Pull, "the image", placeBenchmarks)
		add("--runtime nvidia", "NVIDIA's container runtime", placeBenchmarks)
		add("--gpus all", "all GPUs", placeBenchmarks)
		add("-v "+cache+":/root/.cache/huggingface_hub", "the cache of weights", placeBenchmarks)
		add(`--env "HF_HOME=/root/.cache/huggingface_hub"`, "where it is inside", placeBenchmarks)
		for _, e := range p.Env {
			add(`--env "`+e.Text+`"`, e.Why, e.Place)
		}
		p.mountVocabulary()
		add(p.published(), "the port", placeBenchmarks)
		if !p.r.HasFront {
			add("--net host", "the host's own network", placeBenchmarks)
		}
		add("--ipc=host", "shared memory between vLLM's processes", placeBenchmarks)
		add("--rm", "nothing is left of the container", placeBenchmarks)
		add("--name vllm", "to stop it by", placeBenchmarks)
		return
	}
	if p.chip.Kind != "cuda" {
		p.Image = p.Pull
		p.Prepare.add("docker pull "+p.Pull, "the image for this hardware", p.chip.Place)
	} else {
		p.Image = "vllm/vllm-openai:deploy"
		p.Prepare.add("docker pull --platform "+p.r.Platform+" "+p.Pull,
			"the image for this processor", placeImage)
		p.Prepare.add("docker tag "+p.Pull+" "+p.Image,
			"a name that stays when another is pulled", placeImage)
	}
	p.add(&p.Docker, p.book.Docker)
	// by name: a value would be visible in the list of processes
	add("-e HF_TOKEN", "the right to download", placeContainer)
	if p.hasFront() {
		add("-e VLLM_API_KEY", "the key that this program has for it", NotInGuide)
	}
	add(`-e HF_HOME="`+cache+`"`, "where the weights are inside", placeContainer)
	add("-v "+cache+":"+cache, "the cache of weights", placeContainer)
	for _, e := range p.Env {
		add("-e "+e.Text, e.Why, e.Place)
	}
	if p.File != "" {
		add("-v $PWD/"+p.File+":/"+p.File, "the config file", placeContainer)
	}
	if p.Folder != "" {
		add("-v "+quote(p.Folder+":"+p.Folder+":ro"), "the model", placeContainer)
	}
	p.mountVocabulary()
	add("--ipc=host", "shared memory between vLLM's processes", placeContainer)
	add(p.published(), "the port", placeQuickstart)
	add("--rm", "nothing is left of the container", placeContainer)
	if p.chip.Kind == "cuda" {
		p.Look.add(`docker run -e HF_TOKEN -e HF_HOME="`+cache+
			`" --ipc=host --gpus all --entrypoint "/bin/bash" --rm -it `+p.Image,
			"a shell inside, where vllm serve can be tried by hand", placeContainer)
	}
}

// published is docker's argument that opens the port to this machine, or to all others too.
func (p *planner) published() string {
	if p.r.HasFront {
		return fmt.Sprintf("-p 127.0.0.1:%d:%d", p.r.Port, p.r.Port)
	}
	return fmt.Sprintf("-p %d:%d", p.r.Port, p.r.Port)
}

// mountVocabulary mounts the folder of TIKTOKEN_ENCODINGS_BASE.
func (p *planner) mountVocabulary() {
	if v := p.r.Vocabulary; v != "" {
		p.Docker.add("-v "+v+":"+v, "the vocabulary", placeTrouble)
	}
}

// image sets the container's image, by the name to pull.
func (p *planner) image() {
	k := p.book.Kinds[p.chip.Kind]
	p.Pull, p.kind = k.Image+":"+cmp.Or(p.r.Version, k.Tag), k
}
