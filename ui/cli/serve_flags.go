// The flags of ossrun serve, and settings made of several flags.

package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/runtime/remote/vllm"
	"github.com/ossrun/ossrun/runtime/serve"
	"github.com/ossrun/ossrun/runtime/tools"
)

func (v *serveVerb) flags() []cli.Flag {
	o := &v.options
	*o = serve.DefaultOptions()
	v.engine, v.prefixCaching = "native", true
	gib := func(to *int64, name string, usage string, aliases ...string) cli.Flag {
		return &cli.Float64Flag{Name: name, Aliases: aliases, Usage: usage,
			Action: func(_ *cli.Context, gib float64) error {
				if !(gib >= 0 && gib <= 1<<20) {
					return fail(exitUsage, "--%s must be a number of GiB from 0 up, not %v", name,
						gib)
				}
				*to = int64(gib * (1 << 30))
				return nil
			}}
	}
	return flagTable(engineFlags(o), groupModel, loraFlag(o), memoryFlags(o),
		toolFlags(&v.toolOptions, tools.Auto), groupMemory,
		gib(&o.Keep.SwapSpace, "swap-space", "keep evicted KV pages, and those of unloaded "+
			"models, in `GIB` of host memory; 0 is none (default: up to 4 of what the plan leaves "+
			"over on the CPU, none on a GPU)", "kv-offloading-size"),
		gib(&o.Keep.SwapDisk, "swap-disk", "when that is full, keep them in `GIB` of disk, in "+
			"~/.cache/ossrun/kv, for the next server too (default: none)"),

		groupLife,
		checkedFlag("remember", "24h", "keep the tokens of sampled turns, and stored responses, "+
			"for `TIME` after they were last used, so that reasoning comes back as it was",
			"must be a time such as 24h or 30m", func(text string) bool {
				d, err := time.ParseDuration(text)
				o.Keep.Remember = d
				return err == nil && d >= 0
			}),
		boolFlag("no-remember-on-disk", "keep these in memory only, until the server ends"),

		groupBatch,
		checkedFlag("preset", "", "`P` is latency (8 sequences at once), balanced (128) or "+
			"throughput (1024); the flags below win", "must be latency, balanced or throughput",
			func(name string) bool {
				o.Preset = strings.ToLower(name) // run checks again for the engine
				return name == "" || slices.Contains(vllm.Presets(), o.Preset)
			}),
		minFlag(&o.Settings.MaxNumSeqs, "max-num-seqs", 1, "compute at most `N` requests at once "+
			"(default: 256; 1024 on a GPU of 68.7 GB or more)"),
		minFlag(&o.Settings.MaxNumBatchedTokens, "max-num-batched-tokens", 1, "`N` tokens a step; "+
			"more is a little faster with long prompts and makes the time between tokens uneven "+
			"(default: 512 on the CPU, 8192 on a GPU, 2048 on one of less than 24.7 GB)"),
		minFlag(&o.Settings.MaxWaiting, "max-waiting", 1, "let `N` requests wait; the next ones "+
			"get 429 with Retry-After (default: 2048)"),
		switchFlag(&v.prefixCaching, "enable-prefix-caching", "reuse what was computed for "+
			"prompts that begin alike; this is the default"),
		switchFlag(&o.Settings.NoPrefixCaching, "no-enable-prefix-caching", "compute every prompt "+
			"from its first token, for instance to measure speed"),
		textFlag(&v.speculative, "speculative-config", "draft, bounded as vLLM's `JSON` does, "+
			"{\"method\":\"ngram\",\"num_speculative_tokens\":8}; the method suffix is the same "+
			"here (default: up to 32 tokens where they pay, on the CPU; none on a GPU)"),
		minFlag(&o.StreamInterval, "stream-interval", 1, "send `N` tokens in an event of a stream "+
			"(default: each by itself, more under load)"),

		v.portFlags.flags(), groupListen,
		textFlag(&v.servedNames, "served-model-name", "serve one model, under these `NAMES` with "+
			"commas between, and switch to no other"),
		groupLife,
		checkedFlag("keep-alive", "never", "unload a model after `TIME` without a request, as 5m; "+
			"the next request loads it again; 0 is at once",
			"must be a time such as 5m or 90s, 0 or never", func(text string) (ok bool) {
				o.KeepAlive, ok = keepAlive(text)
				return ok
			}),
		groupVLLM,
		enumFlag(&v.engine, "engine", "`E` is native, or vllm: start vLLM, for what this engine "+
			"cannot do, by the recipes for this machine's GPUs", "native", "vllm"),
		groupSampling, maxReasoningFlag(&v.answers.MaxReasoning),
		switchFlag(&v.answers.AllowLoops, "no-loop-detection", "let a model repeat the same "+
			"tokens without end; by default such a turn is moved on to its answer"),
		printConfigFlag(), v.vllm.flags(), hiddenFlags(vllmFlags...))
}

// keepAlive parses Ollama's durations: 5m, seconds, 0 for at once, below 0 for ever.
func keepAlive(s string) (d time.Duration, ok bool) {
	if s = strings.ToLower(s); s == "never" || s == "forever" || s == "" {
		return -1, true
	}
	if n, err := strconv.Atoi(s); err == nil {
		s = fmt.Sprint(n, "s")
	}
	d, err := time.ParseDuration(s)
	return max(d, -1), err == nil
}

func (v *serveVerb) prefixCachingFlags() error {
	disabled := &v.options.Settings.NoPrefixCaching
	if *disabled && v.c.IsSet("enable-prefix-caching") && v.prefixCaching {
		return fail(exitUsage, "--enable-prefix-caching and --no-enable-prefix-caching "+
			"contradict each other. Give one")
	}
	*disabled = *disabled || !v.prefixCaching
	v.prefixCaching = !*disabled
	return nil
}
