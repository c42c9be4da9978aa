// --schema: every answer of a chat is JSON of a schema. The grammar holds the model to it, or the
// port's where the model is behind one; the model is told of it in the words that it was trained
// with.

package cli

import (
	"bytes"
	"encoding/json"
	"os"

	"github.com/ossrun/ossrun/runtime/grammar"
	"github.com/ossrun/ossrun/runtime/remote"
)

// answerForm is what answers are held to, and how the model is told; the zero value is free text.
type answerForm struct {
	final  *grammar.Grammar
	schema json.RawMessage // for a port, which has its own grammar; nil: for none
	told   string
}

func readSchema(path string, port bool) (answerForm, error) {
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
	form := answerForm{told: "# Response Formats\n\n## answer\n\n" + flat.String()}
	if port {
		form.schema = flat.Bytes()
		err = remote.CheckSchema(form.schema)
	} else {
		form.final, err = grammar.Schema(flat.Bytes())
	}
	if err != nil {
		return answerForm{}, fail(exitUsage, "--schema: %s: %s", path, err)
	}
	return form, nil
}
