// `ossrun serve --engine vllm`: a plan for vLLM by the recipes for this hardware, printed or run.

package cli

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/adrg/xdg"
	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/runtime/serve"
	"github.com/ossrun/ossrun/runtime/vllm"
)

const groupVLLM = "VLLM, WITH --engine vllm"

// vllmSettings are the flags that only --engine vllm has.
type vllmSettings struct {
	request vllm.Request
	dryRun  bool
	print   string
}

func (s *vllmSettings) flags() []cli.Flag {
	r := &s.request
	s.print = "plan"
	return []cli.Flag{
		&cli.BoolFlag{Name: "dry-run", Category: groupVLLM, Destination: &s.dryRun,
			Usage: "print the plan, with a reason and its place in the guide for each line, and " +
				"start nothing"},
		oneOf(&s.print, "print", groupVLLM, "print the plan as `FORM`: plan, shell (one line), k8s "+
			"or compose; start nothing", "plan", "shell", "k8s", "compose"),
		text(&r.Hardware, "hardware", groupVLLM, "plan for `NAME`, such as H100, B200 or MI300X "+
			"(default: what is found here)"),
		oneOf(&r.Launch, "launch", groupVLLM, "start vLLM by `WAY`: docker, or local for an "+
			"installed one (default: docker)", "docker", "local"),
		text(&r.Speculative, "speculative", groupVLLM, "draft tokens by `METHOD`: eagle3"),
		text(&r.Version, "vllm-version", groupVLLM, "`VERSION` of vLLM, such as v0.12.0"),
		text(&r.Platform, "platform", groupVLLM, "the image's `PLATFORM`: linux/amd64 or "+
			"linux/aarch64"),
		atLeast(&r.Input, "input-len", 1, groupVLLM, "prompts have at most `N` tokens"),
		atLeast(&r.Output, "output-len", 1, groupVLLM, "answers have at most `N` tokens"),
		atLeast(&r.Concurrency, "concurrency", 1, groupVLLM, "clients send `N` requests at once"),
		atLeast(&r.Nodes, "nodes", 1, groupVLLM, "spread the model over `N` machines, by Ray"),
	}
}

// unused refuses these flags for this program's own engine.
func (s *vllmSettings) unused(c *cli.Context) error {
	for _, f := range s.flags() {
		if name := f.Names()[0]; c.IsSet(name) && origin(c, name) == commandLine {
			return fail(exitUsage, "--%s belongs to --engine vllm", name)
		}
	}
	return nil
}

// runVLLM plans vLLM, and prints the plan or runs it.
func (v *serveVerb) runVLLM() error {
	s, c := &v.vllm, v.c
	r := &s.request
	r.Model = vllmModel(cmp.Or(v.options.Model, "20b"))
	r.Preset, r.Port = v.options.Preset, v.port
	if c.IsSet("tensor-parallel-size") {
		n, err := strconv.Atoi(c.String("tensor-parallel-size"))
		if err != nil || n < 1 {
			return fail(exitUsage, "--tensor-parallel-size must be a number from 1 up, not %q",
				c.String("tensor-parallel-size"))
		}
		r.TensorParallel = n
	}
	if c.IsSet("gpu-memory-utilization") {
		r.Memory = c.Float64("gpu-memory-utilization")
	}
	if c.IsSet("max-num-seqs") {
		r.Concurrency = c.Int("max-num-seqs")
	}
	if c.IsSet("host") {
		r.Host = v.host
	}
	r.Extra = vllmWords(c)
	if r.Hardware == "" {
		gpu, firmware := serve.Hardware(c.Context)
		name, known := vllm.Recognise(gpu)
		if !known {
			return fail(exitUsage, "no GPU with a recipe is found here (%s): --hardware names one "+
				"of %s", cmp.Or(gpu, "none"), strings.Join(vllm.Hardware(), ", "))
		}
		r.Hardware, r.Firmware = name, firmware
	}
	show := s.dryRun || c.IsSet("print")
	folder := filepath.Join(xdg.CacheHome, "ossrun", "vllm")
	r.Vocabulary = folder
	p, err := vllm.Make(*r)
	if err != nil {
		return fail(exitUsage, "%s", err)
	}
	if show {
		return s.show(v.t, p, v.port)
	}
	if err := vllm.WriteVocabulary(folder); err != nil {
		return err
	}
	fmt.Fprintf(v.t.Err, "vLLM is started: %s\n", p.Command())
	for _, w := range p.Warnings {
		fmt.Fprintf(v.t.Err, "%s: %s\n", w.Text, w.Why)
	}
	return vllm.Run(c.Context, p, folder, vllm.Watcher{Log: v.t.Err,
		Ready: func() {
			fmt.Fprintf(v.t.Out, "vLLM listens on http://%s:%d/v1\n", cmp.Or(r.Host, "127.0.0.1"),
				r.Port)
		},
		Trouble: func(t vllm.Trouble) {
			fmt.Fprintf(v.t.Err, "known trouble: %s; %s (%s)\n", t.Name, t.Cure, t.Place)
		}})
}

func (s *vllmSettings) show(t Terminal, p vllm.Plan, port int) error {
	switch s.print {
	case "shell":
		fmt.Fprintln(t.Out, p.Command())
	case "k8s":
		fmt.Fprint(t.Out, p.K8s(port))
	case "compose":
		fmt.Fprint(t.Out, p.Compose(port))
	default:
		fmt.Fprint(t.Out, p)
	}
	return nil
}

// vllmWords are the flags that vLLM has too and that the plan does not know by itself, in vLLM's
// words.
func vllmWords(c *cli.Context) (list []string) {
	for _, f := range c.Command.Flags {
		name := f.Names()[0]
		if !c.IsSet(name) || ours[name] {
			continue
		}
		switch v := c.Value(name).(type) {
		case bool:
			if v {
				list = append(list, "--"+name)
			}
		case cli.StringSlice: // settings inside a setting
			for _, inner := range v.Value() {
				if strings.HasPrefix(inner, "{") {
					list = append(list, "--"+name+" "+shellWord(inner))
				} else {
					list = append(list, "-cc."+shellWord(inner))
				}
			}
		default:
			list = append(list, "--"+name+" "+shellWord(fmt.Sprint(v)))
		}
	}
	slices.Sort(list)
	return list
}

// ours are flags that vLLM does not have, or that the plan knows by itself.
var ours = map[string]bool{
	"model": true, "engine": true, "device": true, "gpu": true, "isolate": true, "threads": true,
	"preset": true, "config": true, "print-config": true, "keep-alive": true, "host": true,
	"max-waiting": true, "deterministic": true, "compute": true, "dense": true, "log": true,
	"swap-disk": true, "tools": true,
	"mcp-config": true, "python-tool": true, "search": true, "browser-allow": true,
	"remember": true, "no-remember-on-disk": true, "port": true,
	"max-reasoning-tokens": true, "no-loop-detection": true, "tensor-parallel-size": true,
	"gpu-memory-utilization": true, "max-num-seqs": true, "dry-run": true, "print": true,
	"hardware": true, "launch": true, "speculative": true, "vllm-version": true, "platform": true,
	"input-len": true, "output-len": true, "concurrency": true, "nodes": true,
	"api-key-file": true, "allowed-hosts": true, "max-body": true, "log-level": true,
	"log-format": true, "log-prompts": true, "ignore-images": true,
}

// vllmModel is a model's name as the plan knows it: 20b, 120b or a repository.
func vllmModel(name string) string {
	e, ok := models.Lookup(name)
	if !ok || e.HF == "" {
		return name
	}
	if short, ok := strings.CutPrefix(e.HF, "openai/gpt-oss-"); ok {
		return short
	}
	return e.HF
}
