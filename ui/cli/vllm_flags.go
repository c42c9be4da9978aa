// The flags and config keys of `vllm serve` without an equivalent switch here.
//
// A command line or YAML file for vLLM must work. Its settings have a flag of the same name, or are
// listed here. If this engine always does the same, or reaches the same result otherwise, the
// server says so in one line at start. A flag that would change the result is refused, with an
// alternative. What must stay true: no flag and no key of --speculative-config is ignored silently,
// and an unknown flag is an error with the nearest name.

package cli

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/models/lora"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/sched/draft"
	"github.com/ossrun/ossrun/runtime/serve"
)

// vllmFlag is a row of vllm_flags.yaml.
type vllmFlag struct {
	Names, Kind  string
	Only         []string
	Check, Never string
	Note         string // equivalent in this engine
}

const vllmHint = "ossrun vllm plan shows vLLM's command for it"

func (f vllmFlag) refuse(v string) string {
	same := func(a string) bool { return strings.EqualFold(strings.TrimSpace(v), a) }
	switch {
	case f.Check != "":
		return flagChecks[f.Check](v)
	case f.Only == nil || slices.ContainsFunc(f.Only, same):
		return f.Never
	}
	return fmt.Sprintf("only %s is possible, not %q", strings.Join(f.Only, " or "), v)
}

var flagChecks = map[string]func(string) string{"device": oneDevice, "names": requireNames,
	"zero": func(v string) string {
		if f, err := strconv.ParseFloat(strings.TrimSpace(v), 64); err != nil || f > 0 {
			return "weights are not split between GPU and CPU in this version. " + vllmHint
		}
		return ""
	}, "logprobs": func(v string) string {
		if n, err := strconv.Atoi(v); err != nil || n > 20 {
			return "at most 20 log probabilities a token are given"
		}
		return ""
	}}

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

//go:embed vllm_flags.yaml
var vllmFlagsText []byte

var vllmFlags = func() (list []vllmFlag) {
	if err := yaml.UnmarshalWithOptions(vllmFlagsText, &list, yaml.Strict()); err != nil {
		panic("vllm_flags.yaml: " + err.Error()) // every test reads it
	}
	return list
}()

func isVLLMs(name string) bool {
	return slices.ContainsFunc(vllmFlags, func(f vllmFlag) bool {
		return strings.Fields(f.Names)[0] == name
	})
}

// hiddenFlags are vLLM's flags, not shown by --help.
func hiddenFlags(list ...vllmFlag) (flags []cli.Flag) {
	for _, w := range list {
		names := strings.Fields(w.Names)
		name, aliases := names[0], names[1:]
		var f cli.Flag = &cli.StringFlag{Name: name, Aliases: aliases, Hidden: true}
		switch w.Kind {
		case "switch":
			f = &cli.BoolFlag{Name: name, Aliases: aliases, Hidden: true}
		case "many":
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
		name, isSwitch := strings.Fields(w.Names)[0], w.Kind == "switch"
		if !c.IsSet(name) || isSwitch && !c.Bool(name) {
			continue
		}
		value, setting := "true", asWritten(c, name)
		if !isSwitch {
			value = c.String(name)
		}
		if why := w.refuse(value); why != "" {
			return nil, fail(exitUsage, "%s: %s", setting, why)
		}
		notes = append(notes, setting+": "+w.Note)
	}
	return notes, nil
}

func asWritten(c *cli.Context, name string) string {
	if from := origin(c, name); from != commandLine {
		return from + ": " + name
	}
	return "--" + name
}

func noSpeculationFlag(s *engine.Settings) cli.Flag {
	return &cli.BoolFlag{Name: "no-speculation", Action: func(_ *cli.Context, disabled bool) error {
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
