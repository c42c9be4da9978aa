// --schema: every answer of a chat is JSON of a schema. The grammar holds the model to it; the
// model is told of it in the words that it was trained with.

package cli

import (
	"bytes"
	"encoding/json"
	"os"

	"github.com/ossrun/ossrun/runtime/grammar"
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
