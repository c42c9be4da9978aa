// Speculation: drafts are on by themselves where the engine can take them; these flags bound them
// or turn them off, in vLLM's words.
//
// What must stay true: both methods that need no second model are one here, and what a
// configuration asks beyond that is said or refused, never dropped in silence.

package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/runtime/draft"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/serve"
)

// noSpeculationFlag is common to chat and serve.
func noSpeculationFlag(s *engine.Settings) cli.Flag {
	return &cli.BoolFlag{Name: "no-speculation", Usage: "compute one token of a request at a time; " +
		"without it the CPU engine tries what the text may repeat (drafts), where that pays. The " +
		"text is the same",
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
