// The flags and config keys of `vllm serve` that this engine has no switch for.
//
// People come with a command line or a YAML file that works for vLLM. What it asks for is honoured
// by a flag of the same name, or listed here. Where this engine always does it, or does something
// else with the same result, the server says so in one line when it starts. A flag that would
// change the result is refused, with what to do instead. What must stay true: no flag is ignored
// silently, nor what a configuration of drafts asks for beyond what is here, and an unknown one is
// an error that names the nearest.

package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/runtime/draft"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/serve"
)

// vllmFlag is one flag of vLLM.
type vllmFlag struct {
	names   string // the first is vLLM's own
	boolean bool
	many    bool                      // may be given several times
	here    string                    // what this engine does instead
	refuse  func(value string) string // why it cannot be had, "" if here answers it; nil: never
}

const elsewhere = "--engine vllm --dry-run shows how vLLM is started with it"

// only accepts some values.
func only(accepted ...string) func(string) string {
	return func(v string) string {
		for _, a := range accepted {
			if strings.EqualFold(strings.TrimSpace(v), a) {
				return ""
			}
		}
		return fmt.Sprintf("only %s is possible, not %q", strings.Join(accepted, " or "), v)
	}
}

// oneDevice refuses parallelism over several devices.
func oneDevice(v string) string {
	if n, err := strconv.Atoi(strings.TrimSpace(v)); err != nil || n < 1 {
		return fmt.Sprintf("must be a number from 1 up, not %q", v)
	} else if n > 1 {
		return fmt.Sprintf("this engine does not divide a layer or the requests among %d GPUs; a "+
			"model that one has no room for goes over several by itself (--gpu names them); %s",
			n, elsewhere)
	}
	return ""
}

func never(why string) func(string) string { return func(string) string { return why } }

func notAboveZero(what string) func(string) string {
	return func(v string) string {
		if f, err := strconv.ParseFloat(strings.TrimSpace(v), 64); err != nil || f > 0 {
			return what
		}
		return ""
	}
}

var vllmFlags = []vllmFlag{
	{names: "tool-call-parser",
		here:   "calls are always parsed, from Harmony's tokens",
		refuse: only("openai")},
	{names: "enable-auto-tool-choice", boolean: true, here: "always on"},
	{names: "reasoning-parser",
		here:   "reasoning is always told apart, by Harmony's channels",
		refuse: only("openai_gptoss", "openai", "gptoss", "gpt_oss")},
	{names: "enable-reasoning", boolean: true, here: "always on"},

	{names: "tensor-parallel-size tp", here: "one device, as here", refuse: oneDevice},
	{names: "pipeline-parallel-size pp", here: "one device, as here", refuse: oneDevice},
	{names: "data-parallel-size dp", here: "one device, as here", refuse: oneDevice},
	{names: "enable-expert-parallel", boolean: true, here: "has no effect on one device"},
	{names: "distributed-executor-backend", here: "has no effect on one device"},
	{names: "enable-lora", boolean: true, refuse: never("adapters cannot be loaded; " + elsewhere)},
	{names: "lora-modules", refuse: never("adapters cannot be loaded; " + elsewhere)},

	{names: "max-cudagraph-capture-size max-seq-len-to-capture", here: "steps are compiled for " +
		"buckets of rows, the powers of two up to --max-num-batched-tokens, whatever the size"},
	{names: "cuda-graph-sizes cudagraph-capture-sizes", here: "steps are compiled for buckets of " +
		"rows, the powers of two up to --max-num-batched-tokens, whatever the sizes"},
	{names: "compilation-config cc O", many: true,
		here: "the step is compiled once, at start; there is nothing to set"},
	{names: "enforce-eager", boolean: true, here: "the step is compiled once, at start; there is " +
		"nothing to set"},
	{names: "async-scheduling", boolean: true, here: "the scheduler is this engine's own and " +
		"needs no switch"},
	{names: "no-async-scheduling", boolean: true, here: "the scheduler is this engine's own and " +
		"needs no switch"},
	{names: "enable-chunked-prefill", boolean: true, here: "always on, in chunks of " +
		"--max-num-batched-tokens"},
	{names: "no-enable-chunked-prefill", boolean: true, refuse: never(
		"prefill always comes in chunks; --max-num-batched-tokens sets their size")},
	{names: "scheduling-policy", here: "first come, first served", refuse: only("fcfs")},
	{names: "num-scheduler-steps", here: "every step is scheduled by itself", refuse: only("1")},
	{names: "attention-backend", here: "the device has one attention, with sinks and windows"},
	{names: "block-size", here: "pages of the KV cache hold 32 tokens"},
	{names: "kv-offloading-backend",
		here:   "--swap-space and --swap-disk have their own",
		refuse: only("native")},
	{names: "cpu-offload-gb", here: "nothing is offloaded", refuse: notAboveZero(
		"weights are not split between GPU and CPU in this version; " + elsewhere)},
	{names: "num-gpu-blocks-override", refuse: never(
		"the plan counts the pages; --gpu-memory-utilization and --max-model-len change it")},
	{names: "enable-prompt-tokens-details", boolean: true, here: "cached_tokens is always in the " +
		"usage"},
	{names: "prefix-caching-hash-algo", here: "pages are hashed with one algorithm"},

	{names: "dtype",
		here:   "weights are used as released: MXFP4 experts, bf16 for the rest",
		refuse: only("auto", "bfloat16", "bf16")},
	{names: "quantization q",
		here:   "weights are used as released: MXFP4 experts, bf16 for the rest",
		refuse: only("mxfp4", "gpt_oss_mxfp4", "none")},
	{names: "load-format", here: "weights are mapped from safetensors",
		refuse: only("auto", "safetensors")},
	{names: "trust-remote-code", boolean: true, here: "code that comes with a model is never run"},
	{names: "tokenizer", here: "the vocabulary o200k_harmony is built in"},
	{names: "tokenizer-mode", here: "the vocabulary o200k_harmony is built in"},
	{names: "skip-tokenizer-init", boolean: true, refuse: never(
		"the port speaks text; the vocabulary o200k_harmony is built in")},
	{names: "hf-token", refuse: never(
		"set the environment variable HF_TOKEN, or run hf auth login")},
	{names: "hf-config-path", refuse: never("config.json is read from the model's own folder")},
	{names: "revision", refuse: never("name it with the model: --model hf:OWNER/NAME@REVISION")},
	{names: "download-dir", refuse: never(
		"set the environment variable HF_HUB_CACHE to that folder")},
	{names: "chat-template", refuse: never("prompts are rendered as Harmony, which is built in")},
	{names: "chat-template-content-format", here: "prompts are rendered as Harmony, which is " +
		"built in"},
	{names: "response-role", here: "the role is assistant", refuse: only("assistant")},
	{names: "generation-config",
		here:   "without a client's word: temperature 1, top-p 1",
		refuse: only("auto", "vllm")},
	{names: "override-generation-config", refuse: never("clients set sampling in their requests")},
	{names: "max-logprobs", here: "up to 20, as at OpenAI", refuse: func(v string) string {
		if n, err := strconv.Atoi(v); err != nil || n > 20 {
			return "at most 20 log probabilities a token are given"
		}
		return ""
	}},
	{names: "seed", here: "a request without a seed draws its own"},
	{names: "disable-log-requests", boolean: true, here: "the log has one line a request, " +
		"without its text"},
	{names: "no-enable-log-requests", boolean: true, here: "the log has one line a request, " +
		"without its text"},
	{names: "enable-log-requests", boolean: true, here: "the log has one line a request, without " +
		"its text"},
	{names: "disable-log-stats", boolean: true, here: "figures are in /metrics and ossrun ps"},
	{names: "disable-uvicorn-access-log", boolean: true, here: "the log has one line a request, " +
		"without its text"},
	{names: "uvicorn-log-level", here: "the log has one line a request, without its text"},
	{names: "root-path", refuse: never("the API is under /v1: let the proxy strip the prefix")},
}

// hiddenVLLMFlags are vLLM's flags as flags of serve that --help does not show.
func hiddenVLLMFlags() []cli.Flag {
	var flags []cli.Flag
	for _, w := range vllmFlags {
		names := strings.Fields(w.names)
		if w.boolean {
			flags = append(flags, &cli.BoolFlag{Name: names[0], Aliases: names[1:], Hidden: true})
			continue
		}
		if w.many {
			flags = append(flags, &cli.StringSliceFlag{Name: names[0], Aliases: names[1:],
				Hidden: true})
			continue
		}
		flags = append(flags, &cli.StringFlag{Name: names[0], Aliases: names[1:], Hidden: true})
	}
	return flags
}

// vllmNotes says in a line for each of vLLM's flags that was given what this engine does, or fails
// with the first one that it cannot do.
func vllmNotes(c *cli.Context) ([]string, error) {
	var notes []string
	for _, w := range vllmFlags {
		name := strings.Fields(w.names)[0]
		if !c.IsSet(name) || w.boolean && !c.Bool(name) {
			continue
		}
		value := "true"
		if !w.boolean {
			value = c.String(name)
		}
		shown := "--" + name
		if from := origin(c, name); from != commandLine {
			shown = from + ": " + name
		}
		if w.refuse != nil {
			if why := w.refuse(value); why != "" {
				return nil, fail(exitUsage, "%s: %s", shown, why)
			}
		}
		notes = append(notes, shown+": "+w.here)
	}
	return notes, nil
}

// shellWord quotes a word for a shell where it has to be.
func shellWord(s string) string {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	if s != "" && strings.Trim(s, letters+"0123456789-_./:=,+@%") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// noSpeculationFlag is common to chat and serve.
func noSpeculationFlag(s *engine.Settings) cli.Flag {
	return &cli.BoolFlag{Name: "no-speculation", Usage: "compute one token of a request at a " +
		"time; without it the CPU engine tries what the text may repeat (drafts), where that " +
		"pays. The text is the same",
		Action: func(_ *cli.Context, off bool) error {
			if off {
				s.Drafts = 0
			}
			return nil
		}}
}

// speculation reads --speculative-config, which the native engine was given, and says what of it is
// done otherwise.
func speculation(c *cli.Context, config string, o *serve.Options) (notes []string, err error) {
	const name = "speculative-config"
	if config == "" || c.Bool("no-speculation") {
		return nil, nil
	}
	shown := "--" + name
	if from := origin(c, name); from != commandLine {
		shown = from + ": " + name
	}
	var keys map[string]json.RawMessage
	var read struct {
		Model, Method string
		Tokens        *int `json:"num_speculative_tokens"`
	}
	for _, into := range []any{&keys, &read} {
		if err := json.Unmarshal([]byte(config), into); err != nil {
			return nil, fail(exitUsage, `%s must be an object such as {"method":"ngram",`+
				`"num_speculative_tokens":8}: %s`, shown, err)
		}
	}
	switch {
	case read.Model != "" && read.Model != "ngram" && read.Model != "suffix":
		return nil, fail(exitUsage, "%s: speculative decoding with %s is not in this version; %s",
			shown, read.Model, elsewhere)
	case read.Method != "" && read.Method != "ngram" && read.Method != "suffix":
		return nil, fail(exitUsage, "%s: the methods are ngram and suffix, which are one here, "+
			"not %q; %s", shown, read.Method, elsewhere)
	}
	o.Speculate = true
	if n := read.Tokens; n != nil {
		if *n < 1 {
			return nil, fail(exitUsage, "%s: num_speculative_tokens must be at least 1, not %d",
				shown, *n)
		}
		if o.Settings.Drafts = min(*n, draft.Most); *n > draft.Most {
			notes = append(notes, fmt.Sprintf("%s: drafts have %d tokens at most", shown,
				draft.Most))
		}
	}
	for _, known := range []string{"model", "method", "num_speculative_tokens"} {
		delete(keys, known)
	}
	if len(keys) > 0 {
		notes = append(notes, fmt.Sprintf("%s: drafts follow the longest match in prompt and "+
			"answer, where they pay; these say nothing more: %s", shown,
			strings.Join(slices.Sorted(maps.Keys(keys)), ", ")))
	}
	return notes, nil
}
