// The flags and config keys of `vllm serve` without an equivalent switch here.
//
// A command line or YAML file for vLLM must work. Its settings have a flag of the same name, or are
// listed here. If this engine always does the same, or reaches the same result otherwise, the
// server says so in one line at start. A flag that would change the result is refused, with an
// alternative. What must stay true: no flag and no key of --speculative-config is ignored silently,
// and an unknown flag is an error with the nearest name.

package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/models/lora"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/sched/draft"
	"github.com/ossrun/ossrun/runtime/serve"
)

type vllmFlag struct {
	names   string // separated by blanks, vLLM's own first
	boolean bool
	many    bool                      // may be given several times
	note    string                    // equivalent in this engine
	refuse  func(value string) string // why a value is refused, or ""; nil: never
}

const (
	vllmHint   = "ossrun vllm plan shows vLLM's command for it"
	asReleased = "weights are used as released: MXFP4 experts, bf16 for the rest"
)

func accept(accepted ...string) func(string) string {
	return func(v string) string {
		value := strings.TrimSpace(v)
		same := func(a string) bool { return strings.EqualFold(value, a) }
		if slices.ContainsFunc(accepted, same) {
			return ""
		}
		return fmt.Sprintf("only %s is possible, not %q", strings.Join(accepted, " or "), v)
	}
}

func oneDevice(v string) string {
	if n, err := strconv.Atoi(strings.TrimSpace(v)); err != nil || n < 1 {
		return fmt.Sprintf("must be a number from 1 up, not %q", v)
	} else if n > 1 {
		return fmt.Sprintf("tensor parallelism over %d GPUs is not supported. A model that is too "+
			"large for one GPU is spread over several automatically. For tensor parallelism use "+
			"ossrun vllm serve", n)
	}
	return ""
}

func requireNames(v string) string {
	for _, adapter := range splitList(v) {
		if _, _, ok := lora.Named(adapter); !ok {
			return fmt.Sprintf("must be NAME=FOLDER or NAME=hf:owner/name, not %q", v)
		}
	}
	return ""
}

func refuseAll(why string) func(string) string { return func(string) string { return why } }

func notAboveZero(what string) func(string) string {
	return func(v string) string {
		if f, err := strconv.ParseFloat(strings.TrimSpace(v), 64); err != nil || f > 0 {
			return what
		}
		return ""
	}
}

func atMost20Logprobs(v string) string {
	if n, err := strconv.Atoi(v); err != nil || n > 20 {
		return "at most 20 log probabilities a token are given"
	}
	return ""
}

// valueFlag is a flag with a value, limitedFlag one with a check of its value, bareFlag one without
// a value, refusedFlag one that is always an error.
func valueFlag(names, note string) vllmFlag { return vllmFlag{names: names, note: note} }

func limitedFlag(names, note string, refuse func(string) string) vllmFlag {
	return vllmFlag{names: names, note: note, refuse: refuse}
}

func bareFlag(names, note string) vllmFlag {
	return vllmFlag{names: names, note: note, boolean: true}
}

func refusedFlag(names, why string) vllmFlag {
	return vllmFlag{names: names, refuse: refuseAll(why)}
}

var vllmFlags = []vllmFlag{
	limitedFlag("tool-call-parser", "calls are always parsed, from Harmony's tokens",
		accept("openai")),
	bareFlag("enable-auto-tool-choice", "always on"),
	limitedFlag("reasoning-parser", "reasoning is always told apart, by Harmony's channels",
		accept("openai_gptoss", "openai", "gptoss", "gpt_oss")),
	bareFlag("enable-reasoning", "always on"),
	limitedFlag("tensor-parallel-size tp", "one device, as here", oneDevice),
	limitedFlag("pipeline-parallel-size pp", "one device, as here", oneDevice),
	limitedFlag("data-parallel-size dp", "one device, as here", oneDevice),
	bareFlag("enable-expert-parallel", "has no effect on one device"),
	valueFlag("distributed-executor-backend", "has no effect on one device"),
	bareFlag("enable-lora", "always on; --lora FOLDER adds an adapter"),
	limitedFlag("lora-modules", "each is a model beside its base, as with --lora", requireNames),
	valueFlag("max-cudagraph-capture-size max-seq-len-to-capture", "steps are compiled for "+
		"buckets of rows, the powers of two up to --max-num-batched-tokens, whatever the size"),
	valueFlag("cuda-graph-sizes cudagraph-capture-sizes", "steps are compiled for buckets of "+
		"rows, the powers of two up to --max-num-batched-tokens, whatever the sizes"),
	{names: "compilation-config cc O", many: true, note: "the step is compiled once, at start; " +
		"there is nothing to set"},
	bareFlag("enforce-eager", "the step is compiled once, at start; there is nothing to set"),
	bareFlag("async-scheduling", "the scheduler is this engine's own and needs no switch"),
	bareFlag("no-async-scheduling", "the scheduler is this engine's own and needs no switch"),
	bareFlag("enable-chunked-prefill", "always on, in chunks of --max-num-batched-tokens"),
	{names: "no-enable-chunked-prefill", boolean: true, refuse: refuseAll("prefill always " +
		"comes in chunks; --max-num-batched-tokens sets their size")},
	limitedFlag("scheduling-policy", "first come, first served", accept("fcfs")),
	limitedFlag("num-scheduler-steps", "every step is scheduled by itself", accept("1")),
	valueFlag("attention-backend", "the device has one attention, with sinks and windows"),
	valueFlag("block-size", "pages of the KV cache hold 32 tokens"),
	limitedFlag("kv-offloading-backend", "--swap-space and --swap-disk have their own",
		accept("native")),
	limitedFlag("cpu-offload-gb", "nothing is offloaded", notAboveZero(
		"weights are not split between GPU and CPU in this version. "+vllmHint)),
	refusedFlag("num-gpu-blocks-override", "the plan counts the pages; --gpu-memory-utilization "+
		"and --max-model-len change it"),
	bareFlag("enable-prompt-tokens-details", "cached_tokens is always in the usage"),
	valueFlag("prefix-caching-hash-algo", "pages are hashed with one algorithm"),
	limitedFlag("dtype", asReleased, accept("auto", "bfloat16", "bf16")),
	limitedFlag("quantization q", asReleased, accept("mxfp4", "gpt_oss_mxfp4", "none")),
	limitedFlag("load-format", "weights are mapped from safetensors",
		accept("auto", "safetensors")),
	bareFlag("trust-remote-code", "code that comes with a model is never run"),
	valueFlag("tokenizer", "the vocabulary o200k_harmony is built in"),
	valueFlag("tokenizer-mode", "the vocabulary o200k_harmony is built in"),
	{names: "skip-tokenizer-init", boolean: true, refuse: refuseAll("the port speaks text; " +
		"the vocabulary o200k_harmony is built in")},
	refusedFlag("hf-token", "set the environment variable HF_TOKEN, or run hf auth login"),
	refusedFlag("hf-config-path", "config.json is read from the model's own folder"),
	refusedFlag("revision", "name it with the model: --model hf:OWNER/NAME@REVISION"),
	refusedFlag("download-dir", "set the environment variable HF_HUB_CACHE to that folder"),
	refusedFlag("chat-template", "prompts are rendered as Harmony, which is built in"),
	valueFlag("chat-template-content-format", "prompts are rendered as Harmony, which is built in"),
	limitedFlag("response-role", "the role is assistant", accept("assistant")),
	limitedFlag("generation-config", "without a client's word: temperature 1, top-p 1",
		accept("auto", "vllm")),
	refusedFlag("override-generation-config", "clients set sampling in their requests"),
	limitedFlag("max-logprobs", "up to 20, as at OpenAI", atMost20Logprobs),
	valueFlag("seed", "a request without a seed draws its own"),
	bareFlag("disable-log-requests", "the log has one line a request, without its text"),
	bareFlag("no-enable-log-requests", "the log has one line a request, without its text"),
	bareFlag("enable-log-requests", "the log has one line a request, without its text"),
	bareFlag("disable-log-stats", "figures are in /metrics and ossrun ps"),
	bareFlag("disable-uvicorn-access-log", "the log has one line a request, without its text"),
	valueFlag("uvicorn-log-level", "the log has one line a request, without its text"),
	refusedFlag("root-path", "the API is under /v1: let the proxy strip the prefix"),
}

func isVLLMs(name string) bool {
	return slices.ContainsFunc(vllmFlags, func(f vllmFlag) bool {
		return strings.Fields(f.names)[0] == name
	})
}

// hiddenFlags are vLLM's flags, not shown by --help.
func hiddenFlags(list ...vllmFlag) (flags []cli.Flag) {
	for _, w := range list {
		names := strings.Fields(w.names)
		name, aliases := names[0], names[1:]
		var f cli.Flag = &cli.StringFlag{Name: name, Aliases: aliases, Hidden: true}
		switch {
		case w.boolean:
			f = &cli.BoolFlag{Name: name, Aliases: aliases, Hidden: true}
		case w.many:
			f = &cli.StringSliceFlag{Name: name, Aliases: aliases, Hidden: true}
		}
		flags = append(flags, f)
	}
	return flags
}

// vllmNotes returns a notice for each of vLLM's given flags, or an error for the first refused one.
func vllmNotes(c *cli.Context) ([]string, error) {
	var notes []string
	for _, w := range vllmFlags {
		name := strings.Fields(w.names)[0]
		if !c.IsSet(name) || w.boolean && !c.Bool(name) {
			continue
		}
		value, setting := "true", asWritten(c, name)
		if !w.boolean {
			value = c.String(name)
		}
		if w.refuse != nil {
			if why := w.refuse(value); why != "" {
				return nil, fail(exitUsage, "%s: %s", setting, why)
			}
		}
		notes = append(notes, setting+": "+w.note)
	}
	return notes, nil
}

func asWritten(c *cli.Context, name string) string {
	if from := origin(c, name); from != commandLine {
		return from + ": " + name
	}
	return "--" + name
}

func shellWord(s string) string {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	if s != "" && strings.Trim(s, letters+"0123456789-_./:=,+@%") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func noSpeculationFlag(s *engine.Settings) cli.Flag {
	return &cli.BoolFlag{Name: "no-speculation", Usage: "compute one token of a request at a " +
		"time; without it the CPU engine tries what the text may repeat (drafts), where that " +
		"pays. The text is the same",
		Action: func(_ *cli.Context, disabled bool) error {
			if disabled {
				s.Drafts = 0
			}
			return nil
		}}
}

const notAnObject = `%s must be a JSON object such as {"method":"ngram","num_speculative_tokens":8}`

// speculation reads --speculative-config and returns notices on what is handled differently.
func speculation(c *cli.Context, config string, o *serve.Options) (notes []string, err error) {
	if config == "" || c.Bool("no-speculation") {
		return nil, nil
	}
	flagName := asWritten(c, "speculative-config")
	var keys map[string]json.RawMessage
	var read struct {
		Model, Method string
		Tokens        *int `json:"num_speculative_tokens"`
	}
	for _, into := range []any{&keys, &read} {
		if err := json.Unmarshal([]byte(config), into); err != nil {
			return nil, fail(exitUsage, notAnObject, flagName)
		}
	}
	methods := []string{"", "ngram", "suffix"}
	switch {
	case !slices.Contains(methods, read.Model):
		return nil, fail(exitUsage, "%s: speculative decoding with %s is not in this version. %s",
			flagName, read.Model, vllmHint)
	case !slices.Contains(methods, read.Method):
		return nil, fail(exitUsage, "%s: the methods are ngram and suffix, which are one here, "+
			"not %q. %s", flagName, read.Method, vllmHint)
	}
	o.Speculate = true
	if n := read.Tokens; n != nil {
		if *n < 1 {
			return nil, fail(exitUsage, "%s: num_speculative_tokens must be at least 1, not %d",
				flagName, *n)
		}
		if o.Settings.Drafts = min(*n, draft.Most); *n > draft.Most {
			notes = append(notes, fmt.Sprintf("%s: drafts have %d tokens at most", flagName,
				draft.Most))
		}
	}
	for _, key := range []string{"model", "method", "num_speculative_tokens"} {
		delete(keys, key)
	}
	if len(keys) > 0 {
		notes = append(notes, fmt.Sprintf("%s: drafts follow the longest match in prompt and "+
			"answer, where they pay; these say nothing more: %s", flagName,
			strings.Join(slices.Sorted(maps.Keys(keys)), ", ")))
	}
	return notes, nil
}
