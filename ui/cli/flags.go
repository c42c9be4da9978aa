// The flags that several verbs share, and reading them into the types below.

package cli

import (
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/runtime/sample"
)

// Groups of flags in --help.
const (
	groupModel    = "Model and device"
	groupMemory   = "Context and memory"
	groupBatch    = "Batching"
	groupListen   = "The port"
	groupLife     = "Life cycle"
	groupSampling = "The answer"
	groupSettings = "Settings"
)

func configFlag() cli.Flag {
	return &cli.StringFlag{Name: "config", Category: groupSettings, Usage: "read defaults for flags from `FILE`; vLLM's YAML files are read too (default: ossrun/config.yaml in the XDG configuration folder)"}
}

func printConfigFlag() cli.Flag {
	return &cli.BoolFlag{Name: "print-config", Category: groupSettings, Usage: "print every setting with where it comes from, as a config file, and exit"}
}

// engineFlags say which model runs where: common to chat, serve and bench.
func engineFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "model", Category: groupModel, Usage: "`M` is 20b, 120b, demo, a name such as openai/gpt-oss-20b, or a folder (default: the best one that is here and fits)"},
		&cli.StringFlag{Name: "device", Category: groupModel, Value: "auto", Usage: "`D` is auto, cpu or gpu"},
		&cli.StringFlag{Name: "gpu", Category: groupModel, Usage: "use these GPUs, as `0,1`"},
		cpuExpertsFlag(),
		isolateFlag(),
		&cli.IntFlag{Name: "threads", Category: groupModel, Usage: "`N` CPU threads (default: every core this process may use)"},
		&cli.IntFlag{Name: "max-model-len", Category: groupMemory, Usage: "longest context in `TOKENS`, prompt and answer together (default: as long as memory allows)"},
		configFlag(),
	}
}

// memoryFlags say how the memory is used that a model takes beside its weights.
func memoryFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "deterministic", Category: groupModel, Usage: "the same seed gives the same tokens whatever else runs; on the CPU always so"},
		&cli.StringFlag{Name: "compute", Category: groupModel, Value: "auto", Usage: "how matrices meet their inputs: `MODE` is exact, int8 (the experts' inputs in 8 bits), bf16 or, where the GPU multiplies it, mx (MXFP4) in long steps on a GPU, or auto: int8 on the CPU, bf16 on a GPU"},
		&cli.StringFlag{Name: "dense", Category: groupModel, Value: "bf16", Usage: "attention and unembedding weights: `FORM` is bf16, or q8, a copy in 8 bits that is made once (1.3 GB for 20b)"},
		&cli.StringFlag{Name: "kv-cache-dtype", Category: groupMemory, Value: "auto", Usage: "numbers in the KV cache: `TYPE` is auto, bf16, fp8 (the full layers' alone) or f32"},
		&cli.Float64Flag{Name: "gpu-memory-utilization", Category: groupMemory, Usage: "take at most this `SHARE` of the free memory, 0.05 to 1, on the CPU too (default: all but a reserve)"},
	}
}

// samplingFlags are the defaults of a request.
func samplingFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "effort", Category: groupSampling, Value: "medium", Usage: "how long the model thinks: `E` is low, medium or high"},
		&cli.StringFlag{Name: "system", Category: groupSampling, Usage: "instructions for the model, as a developer message: `TEXT`"},
		&cli.Float64Flag{Name: "temperature", Category: groupSampling, Value: 1, Usage: "`T` of 0 always takes the most probable token"},
		&cli.Float64Flag{Name: "top-p", Category: groupSampling, Value: 1, Usage: "sample from the most probable tokens that together have `P`"},
		&cli.Uint64Flag{Name: "seed", Category: groupSampling, Usage: "the same seed `N` gives the same text (default: another each time)"},
		maxReasoningFlag(),
		&cli.IntFlag{Name: "max-tokens", Category: groupSampling, Usage: "stop after `N` tokens, reasoning included (default: the context's end)"},
	}
}

// maxReasoningFlag bounds the reasoning of a chat, or of a server's requests that do not bound it themselves.
func maxReasoningFlag() cli.Flag {
	return &cli.IntFlag{Name: "max-reasoning-tokens", Category: groupSampling, Value: -1, Usage: "let the model reason for at most `N` tokens, then it must answer; 0 is no reasoning, -1 no bound"}
}

// maxReasoning is the flag in session.Request's words.
func maxReasoning(c *cli.Context) int {
	switch n := c.Int("max-reasoning-tokens"); {
	case n < 0:
		return 0
	case n == 0:
		return -1
	default:
		return n
	}
}

// sampling reads samplingFlags. A seed that was not given is drawn anew.
func sampling(c *cli.Context) (p sample.Params, effort string, err error) {
	p = sample.Defaults()
	effort = strings.ToLower(c.String("effort"))
	if effort != "low" && effort != "medium" && effort != "high" {
		return p, "", fail(exitUsage, "--effort must be low, medium or high, not %q", c.String("effort"))
	}
	if t := c.Float64("temperature"); t < 0 || t > 2 {
		return p, "", fail(exitUsage, "--temperature must lie between 0 and 2, not %v", t)
	}
	if q := c.Float64("top-p"); q <= 0 || q > 1 {
		return p, "", fail(exitUsage, "--top-p must lie above 0 and be at most 1, not %v", q)
	}
	if n := c.Int("max-tokens"); n < 0 {
		return p, "", fail(exitUsage, "--max-tokens must be at least 1, not %d", n)
	}
	p.Temperature, p.TopP = float32(c.Float64("temperature")), float32(c.Float64("top-p"))
	if c.IsSet("seed") {
		p.Seed = c.Uint64("seed")
	}
	return p, effort, nil
}

// gpuList reads --gpu.
func gpuList(c *cli.Context) ([]int, error) {
	if c.String("gpu") == "" {
		return nil, nil
	}
	var list []int
	for _, f := range strings.Split(c.String("gpu"), ",") {
		n, err := strconv.Atoi(strings.TrimSpace(f))
		if err != nil || n < 0 {
			return nil, fail(exitUsage, "--gpu wants numbers such as 0,1, not %q", c.String("gpu"))
		}
		list = append(list, n)
	}
	return list, nil
}
