// The flags that several verbs share, and reading them into the types below.

package cli

import (
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/runtime/sample"
)

func configFlag() cli.Flag {
	return &cli.StringFlag{Name: "config", Usage: "read defaults for flags from `FILE` (default: ossrun/config.yaml in the XDG configuration folder)"}
}

// engineFlags say which model runs where: common to chat and serve.
func engineFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "model", Usage: "`M` is 20b, 120b, demo, a name such as openai/gpt-oss-20b, or a folder (default: the best one that is here and fits)"},
		&cli.StringFlag{Name: "device", Value: "auto", Usage: "auto, cpu or gpu"},
		&cli.StringFlag{Name: "gpu", Usage: "use these GPUs, as `0,1`"},
		&cli.IntFlag{Name: "threads", Usage: "CPU threads (default: every core this process may use)"},
		&cli.IntFlag{Name: "max-model-len", Usage: "longest context in tokens (default: as long as memory allows)"},
		configFlag(),
	}
}

// samplingFlags are the defaults of a request.
func samplingFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "effort", Value: "medium", Usage: "how long the model thinks: low, medium or high"},
		&cli.StringFlag{Name: "system", Usage: "instructions for the model, as a developer message"},
		&cli.Float64Flag{Name: "temperature", Value: 1, Usage: "0 always takes the most probable token"},
		&cli.Float64Flag{Name: "top-p", Value: 1, Usage: "sample from the most probable tokens that together have this much"},
		&cli.Uint64Flag{Name: "seed", Usage: "the same seed gives the same text (default: another each time)"},
		&cli.IntFlag{Name: "max-tokens", Usage: "stop after this many tokens, reasoning included (default: the context's end)"},
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
