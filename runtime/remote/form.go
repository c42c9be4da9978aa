// The form of an answer that a port is asked for, as response_format with a JSON Schema.
//
// Some ports refuse it, and some take it and do nothing. What must stay true: an answer that is not
// of the schema never passes for one, so each is checked here when it has ended.

package remote

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

const formField = "response_format"

// form checks answers against a schema.
type form struct{ schema *jsonschema.Resolved }

// readForm reads a schema; nil for none.
func readForm(text json.RawMessage) (*form, error) {
	if len(text) == 0 {
		return nil, nil
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, fmt.Errorf("it is no JSON Schema: %w", err)
	}
	r, err := s.Resolve(nil)
	if err != nil {
		return nil, fmt.Errorf("an answer could not be checked against it: %w", err)
	}
	return &form{r}, nil
}

// CheckSchema tells why a schema cannot be asked for.
func CheckSchema(text json.RawMessage) error {
	_, err := readForm(text)
	return err
}

// formOf is the parameter. strict keeps a port from answering with less than it can hold to.
func formOf(schema json.RawMessage) any {
	return map[string]any{"type": "json_schema", "json_schema": map[string]any{"name": "answer",
		"strict": true, "schema": schema}}
}

// refusesForm tells whether a refusal, in small letters, is about it.
func refusesForm(said string) bool {
	return slices.ContainsFunc([]string{formField, "schema", "grammar", "structured output"},
		func(word string) bool { return strings.Contains(said, word) })
}

// check tells what is wrong with a whole answer.
func (f *form) check(answer string) error {
	if f == nil {
		return nil
	}
	var value any
	err := json.Unmarshal([]byte(answer), &value)
	if err == nil {
		err = f.schema.Validate(value)
	}
	if err != nil {
		return fmt.Errorf("the answer is not of the schema, which this port took and did not hold "+
			"it to: %w", err)
	}
	return nil
}

// TellsOfForms tells whether the port puts the schema into the prompt itself, as ossrun's does.
func (p *Port) TellsOfForms() bool { return p.ours }
