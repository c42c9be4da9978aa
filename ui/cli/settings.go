// The flags that several verbs share: each is bound to the one field that it sets, with its bounds,
// its group and its usage.
//
// Values come from the command line, the config file (config.go), a preset, and what suits the
// device (runtime/serve). In that order the first that says something wins.

package cli

import (
	"strconv"
	"strings"
	"sync"

	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/sample"
	"github.com/ossrun/ossrun/runtime/serve"
)

// Groups of flags in --help.
const (
	groupModel    = "Model and device"
	groupMemory   = "Context and memory"
	groupBatch    = "Batching"
	groupListen   = "The port"
	groupLife     = "Life cycle"
	groupSampling = "The answer"
	groupSessions = "Conversations"
	groupScreen   = "The screen"
	groupSettings = "Settings"
)

// The kinds of flags. What is outside the bounds of one is an error of usage that names the flag.

func toggle(to *bool, name, group, usage string) cli.Flag {
	return &cli.BoolFlag{Name: name, Category: group, Usage: usage, Destination: to, Value: *to}
}

// atLeast is a whole number from least on. What is not given stays as the field is.
func atLeast(to *int, name string, least int, group, usage string) cli.Flag {
	return &cli.IntFlag{Name: name, Category: group, Usage: usage, Destination: to, Value: *to,
		Action: func(_ *cli.Context, n int) error {
			if n < least {
				return fail(exitUsage, "--%s must be at least %d, not %d", name, least, n)
			}
			return nil
		}}
}

// between is a number; bounds says which, for people.
func between(to *float64, name string, ok func(float64) bool, bounds, group,
	usage string) cli.Flag {
	return &cli.Float64Flag{Name: name, Category: group, Usage: usage, Destination: to, Value: *to,
		Action: func(_ *cli.Context, v float64) error {
			if !ok(v) {
				return fail(exitUsage, "--%s must %s, not %v", name, bounds, v)
			}
			return nil
		}}
}

func text(to *string, name, group, usage string) cli.Flag {
	return &cli.StringFlag{Name: name, Category: group, Usage: usage, Destination: to, Value: *to}
}

// offered are the words that a flag can be, by its name: what completion offers.
var offered sync.Map

// oneOf is one of some words, in small letters.
func oneOf(to *string, name, group, usage string, words ...string) cli.Flag {
	offered.Store(name, words)
	last := len(words) - 1
	wanted := strings.Join(words[:last], ", ") + " or " + words[last]
	return parsed(name, *to, group, usage, func(v string) error {
		*to = strings.ToLower(v)
		for _, w := range words {
			if *to == w {
				return nil
			}
		}
		return fail(exitUsage, "--%s must be %s, not %q", name, wanted, v)
	})
}

// parsed is a text that read takes where it is given.
func parsed(name, standard, group, usage string, read func(string) error) cli.Flag {
	return &cli.StringFlag{Name: name, Category: group, Usage: usage, Value: standard,
		Action: func(_ *cli.Context, v string) error { return read(v) }}
}

func configFlag() cli.Flag {
	return &cli.StringFlag{Name: "config", Category: groupSettings, Usage: "read defaults for " +
		"flags from `FILE`; vLLM's YAML files are read too (default: ossrun/config.yaml in the " +
		"XDG configuration folder)"}
}

func printConfigFlag() cli.Flag {
	return &cli.BoolFlag{Name: "print-config", Category: groupSettings,
		Usage: "print every setting with where it comes from, as a config file, and exit"}
}

// deviceFlags say what computes: common to chat, serve, bench and doctor.
func deviceFlags(o *serve.Options) []cli.Flag {
	s := &o.Settings
	return []cli.Flag{
		oneOf(&s.Device, "device", groupModel, "`D` is auto, cpu or gpu", "auto", "cpu", "gpu"),
		parsed("gpu", "", groupModel, "use these GPUs, as `0,1`", func(v string) error {
			return readNumbers(&s.GPUs, "gpu", v, 0, "0,1")
		}),
		toggle(&s.Isolate, "isolate", groupModel, "run the GPU engine in a process of its own, "+
			"so that a driver that crashes or hangs ends the running requests only"),
	}
}

// engineFlags say which model runs where: common to chat, serve and bench.
func engineFlags(o *serve.Options) []cli.Flag {
	s := &o.Settings
	flags := append([]cli.Flag{
		text(&o.Model, "model", groupModel, "`M` is 20b, 120b, demo, a name such as "+
			"openai/gpt-oss-20b, or a folder (default: the best one that is here and fits)"),
	}, deviceFlags(o)...)
	return append(flags,
		parsed("cpu-experts", "auto", groupModel, "compute the experts of the last `N` layers on "+
			"the CPU; auto: of as few layers as needed to fit the model on the GPUs",
			func(v string) (err error) {
				if s.CPUExperts = 0; v == "" || v == "auto" {
					return nil
				}
				if s.CPUExperts, err = strconv.Atoi(v); err != nil || s.CPUExperts < 0 {
					return fail(exitUsage,
						"--cpu-experts must be auto or a number of layers, not %q", v)
				}
				return nil
			}),
		atLeast(&s.Threads, "threads", 0, groupModel,
			"`N` CPU threads (0, the default: every core this process may use)"),
		configFlag())
}

// memoryFlags say how a model's numbers are kept and how much memory it takes: common to chat and
// serve.
func memoryFlags(o *serve.Options) []cli.Flag {
	s := &o.Settings
	return []cli.Flag{
		atLeast(&s.MaxModelLen, "max-model-len", 1, groupMemory, "longest context in `TOKENS`, "+
			"prompt and answer together (default: as long as memory allows)"),
		toggle(&s.Deterministic, "deterministic", groupModel,
			"the same seed gives the same tokens whatever else runs; the CPU always works so"),
		computeFlag(s, "auto", groupModel, "precision of the inputs of matrix products: `MODE` "+
			"is exact, int8 (8 bits into the experts), bf16, mx (MXFP4, in long steps, on GPUs "+
			"that multiply it), or auto: int8 on the CPU, bf16 on a GPU"),
		denseFlag(s, groupModel, "attention and unembedding weights: `TYPE` is bf16, as released, "+
			"q8, an 8-bit copy that the first start makes (1.3 GB for 20b), or auto: on the CPU "+
			"q8 for large models, with bf16 until the copy is made behind the first answers"),
		parsed("kv-cache-dtype", "auto", groupMemory, "type of the KV cache: `TYPE` is auto, "+
			"bf16, fp8 (in the full-attention layers only) or f32", func(v string) error {
			dtype, ok := kvCacheDtypes[strings.ToLower(v)]
			if !ok {
				return fail(exitUsage, "--kv-cache-dtype must be auto, bf16, fp8 or f32, not %q", v)
			}
			s.KVCacheDtype = dtype
			return nil
		}),
		between(&s.GPUMemoryUtilization, "gpu-memory-utilization",
			func(v float64) bool { return v >= 0.05 && v <= 1 },
			"lie between 0.05 and 1", groupMemory, "take at most this `SHARE` of the free "+
				"memory, 0.05 to 1, on the CPU too (default: all but a reserve)"),
		noSpeculationFlag(s),
	}
}

// kvCacheDtypes are vLLM's names for what the engine's field holds.
var kvCacheDtypes = map[string]string{"auto": "", "bf16": "bf16", "bfloat16": "bf16", "f32": "f32",
	"float32": "f32",
	"float":   "f32", "fp8": engine.KVFP8, "fp8_e4m3": engine.KVFP8}

// computeFlag chooses the kind of numbers that the engine computes with. Auto leaves it to the
// device.
func computeFlag(s *engine.Settings, standard, group, usage string) cli.Flag {
	return parsed("compute", standard, group, usage, func(v string) error {
		switch v := strings.ToLower(v); v {
		case "auto":
			s.Compute = ""
		case engine.Exact, engine.Int8, engine.Rounded, engine.MX:
			s.Compute = v
		default:
			return fail(exitUsage, "--compute must be auto, exact, bf16, mx or int8, not %q", v)
		}
		return nil
	})
}

// denseFlag chooses the type of the dense weights. Auto leaves it to the model and the device.
func denseFlag(s *engine.Settings, group, usage string) cli.Flag {
	offered.Store("dense", []string{"auto", engine.DenseBF16, engine.DenseQ8})
	return parsed("dense", "auto", group, usage, func(v string) error {
		switch v := strings.ToLower(v); v {
		case "auto":
			s.Dense = ""
		case engine.DenseBF16, engine.DenseQ8:
			s.Dense = v
		default:
			return fail(exitUsage, "--dense must be auto, bf16 or q8, not %q", v)
		}
		return nil
	})
}

// answering is what the flags of a chat say about its answers.
type answering struct {
	effort, system    string
	temperature, topP float64
	seed              uint64
	maxTokens         int
	maxReasoning      int // tokens; -1: no bound
}

// samplingFlags are the defaults of a request.
func samplingFlags(a *answering) []cli.Flag {
	*a = answering{effort: "medium", temperature: 1, topP: 1}
	return []cli.Flag{
		oneOf(&a.effort, "effort", groupSampling,
			"how long the model thinks: `E` is low, medium or high", "low", "medium", "high"),
		text(&a.system, "system", groupSampling,
			"instructions for the model, as a developer message: `TEXT`"),
		between(&a.temperature, "temperature", func(v float64) bool { return v >= 0 && v <= 2 },
			"lie between 0 and 2",
			groupSampling, "`T` of 0 always takes the most probable token"),
		between(&a.topP, "top-p", func(v float64) bool { return v > 0 && v <= 1 },
			"lie above 0 and be at most 1", groupSampling,
			"sample from the most probable tokens that together have `P`"),
		&cli.Uint64Flag{Name: "seed", Category: groupSampling, Destination: &a.seed,
			Usage: "the same seed `N` gives the same text (default: another each time)"},
		maxReasoningFlag(&a.maxReasoning),
		atLeast(&a.maxTokens, "max-tokens", 1, groupSampling,
			"stop after `N` tokens, reasoning included (default: the context's end)"),
	}
}

// params are those of a request. A seed that was not given is drawn anew.
func (a *answering) params(c *cli.Context) sample.Params {
	p := sample.Defaults()
	p.Temperature, p.TopP = float32(a.temperature), float32(a.topP)
	if c.IsSet("seed") {
		p.Seed = a.seed
	}
	return p
}

// maxReasoningFlag bounds the reasoning of a chat, or of a server's requests that do not bound it
// themselves.
func maxReasoningFlag(to *int) cli.Flag {
	*to = -1
	return &cli.IntFlag{Name: "max-reasoning-tokens", Category: groupSampling, Value: -1,
		Destination: to,
		Usage: "let the model reason for at most `N` tokens, then it must answer; 0 is no " +
			"reasoning, -1 no bound"}
}

// maxReasoning is that flag in session.Request's words.
func maxReasoning(n int) int {
	switch {
	case n < 0:
		return 0
	case n == 0:
		return -1
	}
	return n
}

// readNumbers reads a list such as 512,2048.
func readNumbers(to *[]int, flag, text string, least int, example string) error {
	*to = []int{}
	for _, f := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' }) {
		n, err := strconv.Atoi(strings.TrimSpace(f))
		if err != nil || n < least {
			return fail(exitUsage, "--%s needs numbers such as %s, not %q", flag, example, text)
		}
		*to = append(*to, n)
	}
	return nil
}
