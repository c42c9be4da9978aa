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
	return flagTable(groupSettings, &cli.StringFlag{Name: "config"})
}

// deviceFlags choose the device: for chat, serve, bench and doctor.
func deviceFlags(o *serve.Options) []cli.Flag {
	s := &o.Settings
	return flagTable(groupModel,
		enumFlag(&s.Device, "device", "auto", "cpu", "gpu"),
		intsFlag(&s.GPUs, "gpu", "", 0, "0,1"),
		switchFlag(&s.Isolate, "isolate"))
}

// engineFlags choose model and device: for chat, serve and bench.
func engineFlags(o *serve.Options) []cli.Flag {
	s := &o.Settings
	return flagTable(groupModel,
		textFlag(&o.Model, "model"),
		pullFlag(), deviceFlags(o),
		checkedFlag("cpu-experts", "auto", "must be auto or a number of layers",
			func(v string) bool {
				if s.CPUExperts = 0; v == "" || v == "auto" {
					return true
				}
				n, err := strconv.Atoi(v)
				s.CPUExperts = n
				return err == nil && n >= 0
			}),
		minFlag(&s.Threads, "threads", 0),
		configFlag())
}

// loraFlag adds adapters to the model: for chat and serve.
func loraFlag(o *serve.Options) cli.Flag {
	return repeatedFlag("lora", func(c *cli.Context, v string) error {
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
		minFlag(&s.MaxModelLen, "max-model-len", serve.LeastContext),
		groupModel,
		switchFlag(&s.Deterministic, "deterministic"),
		computeFlag(s, "auto"),
		denseFlag(s),
		groupMemory,
		cacheFlag(s),
		boundedFlag(&s.GPUMemoryUtilization, "gpu-memory-utilization",
			func(v float64) bool { return v >= 0.05 && v <= 1 }, "lie between 0.05 and 1"),
		groupBatch, noSpeculationFlag(s))
}

func cacheFlag(s *engine.Settings) cli.Flag {
	return checkedFlag("kv-cache-dtype", "auto", "must be auto, bf16, fp8 or f32",
		func(v string) (ok bool) {
			s.KVCacheDtype, ok = kvCacheDtypes[strings.ToLower(v)]
			return ok
		})
}

// kvCacheDtypes maps vLLM's names to the engine's.
var kvCacheDtypes = map[string]string{"auto": "", "bf16": "bf16", "bfloat16": "bf16", "f32": "f32",
	"float32": "f32", "float": "f32", "fp8": engine.KVFP8, "fp8_e4m3": engine.KVFP8}

// computeFlag chooses the compute mode. Auto is the device's default.
func computeFlag(s *engine.Settings, standard string) cli.Flag {
	return checkedFlag("compute", standard, "must be auto, exact, bf16, mx, int8 or "+
		"int8-fast",
		func(v string) bool {
			v = strings.ToLower(v)
			s.Compute = strings.TrimPrefix(v, "auto")
			return slices.Contains([]string{"auto", engine.Exact, engine.Int8,
				engine.Int8Fast, engine.Rounded, engine.MX}, v)
		})
}

// denseFlag chooses the dense type. Auto depends on model and device.
func denseFlag(s *engine.Settings) cli.Flag {
	return choiceFlag("dense", "auto", func(word string) {
		s.Dense = strings.TrimPrefix(word, "auto")
	}, "auto", engine.DenseBF16, engine.DenseQ8)
}

// samplingFlags are settings of every turn of a chat. Without a seed each turn draws one.
func samplingFlags(a *session.Request) []cli.Flag {
	*a = session.Request{Effort: "medium", Params: sample.Defaults()}
	return flagTable(groupSampling,
		enumFlag(&a.Effort, "effort", "low", "medium", "high"),
		textFlag(&a.Instructions, "system"),
		temperatureFlag(&a.Params.Temperature),
		boundedFlag(&a.Params.TopP, "top-p", func(v float64) bool { return v > 0 && v <= 1 },
			"lie above 0 and be at most 1"),
		seedFlag(&a.Params.Seed),
		maxReasoningFlag(&a.MaxReasoning),
		minFlag(&a.MaxTokens, "max-tokens", 1))
}

func temperatureFlag[F float32 | float64](to *F) cli.Flag {
	n := sample.NumberNamed("temperature")
	return boundedFlag(to, n.Name, func(v float64) bool { return v >= n.Low && v <= n.High },
		fmt.Sprintf("lie between %v and %v", n.Low, n.High))
}

func seedFlag(to *uint64) cli.Flag {
	set := func(_ *cli.Context, n uint64) error {
		*to = n
		return nil
	}
	return &cli.Uint64Flag{Name: "seed", Action: set}
}

// maxReasoningFlag bounds the reasoning of a chat, or of requests without a bound of their own. In
// session.Request, 0 means no bound and -1 no reasoning.
func maxReasoningFlag(to *int) cli.Flag {
	return &cli.IntFlag{Name: "max-reasoning-tokens", Value: -1,
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
	return flagTable(groupTools,
		checkedFlag("tools", standard, "must be browser, python, auto or none, with commas between",
			func(v string) bool {
				o.Names = splitList(strings.ToLower(v))
				if len(o.Names) == 1 && o.Names[0] == "none" {
					o.Names = nil
				}
				return !slices.ContainsFunc(o.Names, func(name string) bool {
					return !slices.Contains([]string{tools.Browser, tools.Python, tools.Auto}, name)
				})
			}),
		checkedFlag("tool-server", "", "must be HOST:PORT or a URL", func(v string) bool {
			o.Servers = splitList(v)
			return !slices.ContainsFunc(o.Servers, func(address string) bool {
				_, err := mcp.Address(address)
				return err != nil && address != "demo"
			})
		}),
		funcFlag("mcp-config", "", func(v string) (err error) {
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
		checkedFlag("python-tool", "", "must be one of "+strings.Join(python.Names, ", "),
			func(v string) bool {
				o.Sandbox = strings.ToLower(v)
				return slices.Contains(python.Names, o.Sandbox)
			}),
		checkedFlag("search", "", "must be exa, brave, none or the URL of a SearXNG",
			func(v string) bool {
				o.Search = v
				return strings.Contains(v, "://") ||
					slices.Contains([]string{"exa", "brave", "searxng", "none", ""}, v)
			}),
		checkedFlag("browser-allow", "", "must be addresses or networks such as 192.168.0.0/16",
			func(v string) (ok bool) {
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
