// --schema: every answer of a chat is JSON of a schema. The grammar holds the model to it; the
// model is told of it in the words that it was trained with. And /model: another model for a chat.

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/runtime/grammar"
	"github.com/ossrun/ossrun/runtime/join"
	"github.com/ossrun/ossrun/runtime/session"
)

// answerForm is what answers are held to, and how the model is told; the zero value is free text.
type answerForm struct {
	final *grammar.Grammar
	told  string
}

func readSchema(path string) (answerForm, error) {
	if path == "" {
		return answerForm{}, nil
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return answerForm{}, fail(exitUsage, "--schema: %s", err)
	}
	var flat bytes.Buffer
	if err := json.Compact(&flat, raw); err != nil {
		return answerForm{}, fail(exitUsage, "--schema: %s is not JSON: %s", path, err)
	}
	final, err := grammar.Schema(flat.Bytes())
	if err != nil {
		return answerForm{}, fail(exitUsage, "--schema: %s: %s", path, err)
	}
	return answerForm{final, "# Response Formats\n\n## answer\n\n" + flat.String()}, nil
}

// switcher finds another model for a chat that has a: of the same server, or of this machine.
func switcher(c *cli.Context, a answerer) func(context.Context, string) (session.Runner, error) {
	return func(ctx context.Context, name string) (session.Runner, error) {
		joined, shared := a.(*rejoining)
		if !shared {
			return a.(alone).models.Get(ctx, name)
		}
		switch now := joined.current().(type) {
		case alone:
			return now.models.Get(ctx, name)
		case *join.Guest:
			for _, m := range now.Server.Models {
				if wantsModel(name, false, m) {
					return &join.Guest{Server: now.Server, Model: m}, nil
				}
			}
		}
		return nil, fmt.Errorf("the server does not have %q; ossrun chat --alone --model %[1]s "+
			"loads it", name)
	}
}
