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
	gib := func(to *int64, name string, aliases ...string) cli.Flag {
		return &cli.Float64Flag{Name: name, Aliases: aliases,
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
		gib(&o.Keep.SwapSpace, "swap-space", "kv-offloading-size"),
		gib(&o.Keep.SwapDisk, "swap-disk"),

		groupLife,
		checkedFlag("remember", "24h", "must be a time such as 24h or 30m", func(text string) bool {
			d, err := time.ParseDuration(text)
			o.Keep.Remember = d
			return err == nil && d >= 0
		}),
		boolFlag("no-remember-on-disk"),
		switchFlag(&v.shareSessions, "share-sessions"),

		groupBatch,
		checkedFlag("preset", "", "must be latency, balanced or throughput",
			func(name string) bool {
				o.Preset = strings.ToLower(name) // run checks again for the engine
				return name == "" || slices.Contains(vllm.Presets(), o.Preset)
			}),
		minFlag(&o.Settings.MaxNumSeqs, "max-num-seqs", 1),
		minFlag(&o.Settings.MaxNumBatchedTokens, "max-num-batched-tokens", 1),
		minFlag(&o.Settings.MaxWaiting, "max-waiting", 1),
		switchFlag(&v.prefixCaching, "enable-prefix-caching"),
		switchFlag(&o.Settings.NoPrefixCaching, "no-enable-prefix-caching"),
		textFlag(&v.speculative, "speculative-config"),
		minFlag(&o.StreamInterval, "stream-interval", 1),

		v.portFlags.flags(), groupListen,
		textFlag(&v.servedNames, "served-model-name"),
		groupLife,
		checkedFlag("keep-alive", "never", "must be a time such as 5m or 90s, 0 or never",
			func(text string) (ok bool) {
				o.KeepAlive, ok = keepAlive(text)
				return ok
			}),
		groupVLLM,
		enumFlag(&v.engine, "engine", "native", "vllm"),
		groupSampling, maxReasoningFlag(&v.answers.MaxReasoning),
		switchFlag(&v.answers.AllowLoops, "no-loop-detection"),
		groupSettings, boolFlag("print-config"), v.vllm.flags(), hiddenFlags(vllmFlags...))
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
