// Flags shared by several verbs: each is bound to one field, with its bounds, group and usage.
//
// A value comes from the command line, the config file (config.go), a preset, or the device's
// defaults (runtime/serve), in this order.

package cli

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/models/lora"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/sample"
	"github.com/ossrun/ossrun/runtime/serve"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/runtime/tools"
	"github.com/ossrun/ossrun/runtime/tools/mcp"
	"github.com/ossrun/ossrun/runtime/tools/python"
)

func configFlag() []cli.Flag {
	return flagTable(groupSettings, &cli.StringFlag{Name: "config", Usage: "read defaults for " +
		"flags from `FILE`; vLLM's YAML files are read too (default: ossrun/config.yaml in the " +
		"XDG configuration folder)"})
}

func printConfigFlag() []cli.Flag {
	return flagTable(groupSettings, boolFlag("print-config", "print every setting with where it "+
		"comes from, as a config file, and exit"))
}

// deviceFlags choose the device: for chat, serve, bench and doctor.
func deviceFlags(o *serve.Options) []cli.Flag {
	s := &o.Settings
	return flagTable(groupModel,
		enumFlag(&s.Device, "device", "`D` is auto, cpu or gpu", "auto", "cpu", "gpu"),
		intsFlag(&s.GPUs, "gpu", "", 0, "0,1", "use these GPUs, as `0,1`"),
		switchFlag(&s.Isolate, "isolate", "run the GPU engine in a process of its own, so that a "+
			"driver that crashes or hangs ends the running requests only"))
}

// engineFlags choose model and device: for chat, serve and bench.
func engineFlags(o *serve.Options) []cli.Flag {
	s := &o.Settings
	return flagTable(groupModel,
		textFlag(&o.Model, "model", "`M` is 20b, 120b, demo, a name such as openai/gpt-oss-20b, "+
			"or a folder (default: the best installed one that fits)"),
		pullFlag(), deviceFlags(o),
		checkedFlag("cpu-experts", "auto", "compute the experts of the last `N` layers on the "+
			"CPU; auto: of as few layers as needed to fit the model on the GPUs",
			"must be auto or a number of layers", func(v string) bool {
				if s.CPUExperts = 0; v == "" || v == "auto" {
					return true
				}
				n, err := strconv.Atoi(v)
				s.CPUExperts = n
				return err == nil && n >= 0
			}),
		minFlag(&s.Threads, "threads", 0,
			"`N` CPU threads (0, the default: every core this process may use)"),
		configFlag())
}

// loraFlag adds adapters to the model: for chat and serve.
func loraFlag(o *serve.Options) cli.Flag {
	return repeatedFlag("lora", "add the LoRA adapter in `FOLDER` (PEFT's) or hf:owner/name to "+
		"the model; FOLDER:0.5 adds half of it, NAME=FOLDER makes a second model of it; may be "+
		"given several times (default: none)",
		func(c *cli.Context, v string) error {
			for _, text := range splitList(v) {
				_, adapter, _ := lora.Named(text)
				if _, err := findAdapter(c, adapter); err != nil {
					return err
				}
				o.Adapters = append(o.Adapters, text)
			}
			return nil
		})
}

// memoryFlags are number formats and memory limits: for chat and serve.
func memoryFlags(o *serve.Options) []cli.Flag {
	s := &o.Settings
	return flagTable(groupMemory,
		minFlag(&s.MaxModelLen, "max-model-len", serve.LeastContext, "longest context in "+
			"`TOKENS`, prompt and answer together (default: as long as memory allows)"),
		groupModel,
		switchFlag(&s.Deterministic, "deterministic",
			"the same seed gives the same tokens whatever else runs; the CPU always works so"),
		computeFlag(s, "auto", "precision of the inputs of matrix products: `MODE` is exact, int8 "+
			"(8 bits into the experts), int8-fast (8 bits into all 8-bit weights, on the CPU), "+
			"bf16, mx (MXFP4, in long steps, on GPUs that multiply it), or auto: int8 on the "+
			"CPU, bf16 on a GPU"),
		denseFlag(s, "attention and unembedding weights: `TYPE` is bf16, as released, q8, an "+
			"8-bit copy that the first start makes (1.3 GB for 20b), or auto: on the CPU q8 for "+
			"large models, with bf16 until the copy is built in the background"),
		groupMemory,
		cacheFlag(s),
		boundedFlag(&s.GPUMemoryUtilization, "gpu-memory-utilization",
			func(v float64) bool { return v >= 0.05 && v <= 1 }, "lie between 0.05 and 1",
			"take at most this `SHARE` of the free memory, 0.05 to 1, on the CPU too (default: "+
				"all but a reserve)"),
		groupBatch, noSpeculationFlag(s))
}

func cacheFlag(s *engine.Settings) cli.Flag {
	return checkedFlag("kv-cache-dtype", "auto", "type of the KV cache: `TYPE` is auto, bf16, fp8 "+
		"(in the full-attention layers only) or f32", "must be auto, bf16, fp8 or f32",
		func(v string) (ok bool) {
			s.KVCacheDtype, ok = kvCacheDtypes[strings.ToLower(v)]
			return ok
		})
}

// kvCacheDtypes maps vLLM's names to the engine's.
var kvCacheDtypes = map[string]string{"auto": "", "bf16": "bf16", "bfloat16": "bf16", "f32": "f32",
	"float32": "f32", "float": "f32", "fp8": engine.KVFP8, "fp8_e4m3": engine.KVFP8}

// computeFlag chooses the compute mode. Auto is the device's default.
func computeFlag(s *engine.Settings, standard, usage string) cli.Flag {
	return checkedFlag("compute", standard, usage, "must be auto, exact, bf16, mx, int8 or "+
		"int8-fast",
		func(v string) bool {
			v = strings.ToLower(v)
			s.Compute = strings.TrimPrefix(v, "auto")
			return slices.Contains([]string{"auto", engine.Exact, engine.Int8,
				engine.Int8Fast, engine.Rounded, engine.MX}, v)
		})
}

// denseFlag chooses the dense type. Auto depends on model and device.
func denseFlag(s *engine.Settings, usage string) cli.Flag {
	return choiceFlag("dense", "auto", usage, func(word string) {
		s.Dense = strings.TrimPrefix(word, "auto")
	}, "auto", engine.DenseBF16, engine.DenseQ8)
}

// samplingFlags are settings of every turn of a chat. Without a seed each turn draws one.
func samplingFlags(a *session.Request) []cli.Flag {
	*a = session.Request{Effort: "medium", Params: sample.Defaults()}
	return flagTable(groupSampling,
		enumFlag(&a.Effort, "effort", "how long the model thinks: `E` is low, medium or high",
			"low", "medium", "high"),
		textFlag(&a.Instructions, "system", "instructions for the model, as a developer message: "+
			"`TEXT`"),
		temperatureFlag(&a.Params.Temperature, "`T` of 0 always takes the most probable token"),
		boundedFlag(&a.Params.TopP, "top-p", func(v float64) bool { return v > 0 && v <= 1 },
			"lie above 0 and be at most 1",
			"sample from the most probable tokens that together have `P`"),
		seedFlag(&a.Params.Seed, "the same seed `N` gives the same text (default: another each "+
			"time)"),
		maxReasoningFlag(&a.MaxReasoning),
		minFlag(&a.MaxTokens, "max-tokens", 1,
			"stop after `N` tokens, reasoning included (default: the context's end)"))
}

func temperatureFlag[F float32 | float64](to *F, usage string) cli.Flag {
	n := sample.NumberNamed("temperature")
	return boundedFlag(to, n.Name, func(v float64) bool { return v >= n.Low && v <= n.High },
		fmt.Sprintf("lie between %v and %v", n.Low, n.High), usage)
}

func seedFlag(to *uint64, usage string) cli.Flag {
	set := func(_ *cli.Context, n uint64) error {
		*to = n
		return nil
	}
	return &cli.Uint64Flag{Name: "seed", Usage: usage, Action: set}
}

// maxReasoningFlag bounds the reasoning of a chat, or of requests without a bound of their own. In
// session.Request, 0 means no bound and -1 no reasoning.
func maxReasoningFlag(to *int) cli.Flag {
	return &cli.IntFlag{Name: "max-reasoning-tokens", Value: -1, Usage: "let the model reason " +
		"for at most `N` tokens, then it must answer; 0 is no reasoning, -1 no bound",
		Action: func(_ *cli.Context, n int) error {
			if *to = max(n, 0); n == 0 {
				*to = -1
			}
			return nil
		}}
}

// toolFlags bind tools.Options. standard is the default of --tools.
func toolFlags(o *tools.Options, standard string) []cli.Flag {
	*o = tools.Options{Names: splitList(standard)}
	about := "(default: auto on 127.0.0.1, else none)"
	if standard == "" {
		about = "(default: none)"
	}
	return flagTable(groupTools,
		checkedFlag("tools", standard, "let the model use these `TOOLS`: browser, python, auto "+
			"for those that can run here, or none "+about, "must be browser, python, auto or "+
			"none, with commas between", func(v string) bool {
			o.Names = splitList(strings.ToLower(v))
			if len(o.Names) == 1 && o.Names[0] == "none" {
				o.Names = nil
			}
			return !slices.ContainsFunc(o.Names, func(name string) bool {
				return !slices.Contains([]string{tools.Browser, tools.Python, tools.Auto}, name)
			})
		}),
		checkedFlag("tool-server", "", "the tools of MCP servers at `HOST:PORT,...`, as for vLLM; "+
			"demo is --tools browser,python", "must be HOST:PORT or a URL", func(v string) bool {
			o.Servers = splitList(v)
			return !slices.ContainsFunc(o.Servers, func(address string) bool {
				_, err := mcp.Address(address)
				return err != nil && address != "demo"
			})
		}),
		funcFlag("mcp-config", "", "the tools of the MCP servers in `FILE`, an mcp.json as for "+
			"Claude, Cursor or VS Code", func(v string) (err error) {
			if v == "" {
				return nil
			}
			if o.Listed, o.Skipped, err = mcp.Config(v); err != nil {
				return fail(exitUsage, "--mcp-config %s", err)
			}
			return nil
		}),
		backendFlags(o))
}

// backendFlags choose what the built-in tools run on.
func backendFlags(o *tools.Options) []cli.Flag {
	return flagTable(groupTools,
		checkedFlag("python-tool", "", "run the model's python in `SANDBOX`: bwrap, podman, "+
			"docker, or unsafe, which is none (default: the first that works)",
			"must be one of "+strings.Join(python.Names, ", "), func(v string) bool {
				o.Sandbox = strings.ToLower(v)
				return slices.Contains(python.Names, o.Sandbox)
			}),
		checkedFlag("search", "", "search with `E`: exa, brave, the URL of a SearXNG, or none "+
			"(default: what EXA_API_KEY, BRAVE_API_KEY or SEARXNG_URL is set for)",
			"must be exa, brave, none or the URL of a SearXNG", func(v string) bool {
				o.Search = v
				return strings.Contains(v, "://") ||
					slices.Contains([]string{"exa", "brave", "searxng", "none", ""}, v)
			}),
		checkedFlag("browser-allow", "", "let the browser reach these `NETWORKS` too, as "+
			"192.168.0.0/16,10.1.2.3 (default: public addresses only)",
			"must be addresses or networks such as 192.168.0.0/16", func(v string) (ok bool) {
				ok = true
				o.Allow = mapSlice(splitList(v), func(text string) netip.Prefix {
					network, err := tools.Network(text)
					ok = ok && err == nil
					return network
				})
				return ok
			}))
}

func openTools(ctx context.Context, o tools.Options, report func(string)) (*tools.Tools, error) {
	t, err := tools.Open(ctx, o)
	if err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		return nil, fail(exitUsage, "%s", err)
	}
	for _, n := range t.Notes {
		report(n)
	}
	return t, nil
}

func toolLine(e session.ToolEnd, result session.Result) string {
	line := e.Result.Title
	if line == "" && e.Index < len(result.Calls) {
		line = result.Calls[e.Index].Recipient
	}
	if e.Err != nil {
		line += ": " + e.Err.Error()
	}
	return fmt.Sprintf("[%s, %.1f s]", line, e.Took.Seconds())
}

// sourceLines are the citations of an answer, each once.
func sourceLines(res session.Result) (lines []string) {
	answer := []rune(res.Answer)
	for _, x := range res.Citations {
		line := fmt.Sprintf("%s %s, %s", string(answer[x.Start:x.End]), x.Title, x.URL)
		if !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return lines
}
