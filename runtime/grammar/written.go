// Grammars other than schemas: a regular expression, a choice of texts. Written rules are in
// rules.go.

package grammar

import (
	"context"
	"errors"
	"fmt"

	"github.com/ossrun/ossrun/runtime/grammar/automaton"
)

// Grammar restricts a body; schema.Compile, Regex, TextChoice and Rules make one.
type Grammar = automaton.Grammar

// Prepare creates the shared tables of all grammars, so that the first turn need not wait for them.
// Further calls do nothing. Tests of many short processes replace it by a no-op.
var Prepare = automaton.Prepare

// Regex is the grammar of the texts that an expression matches completely.
func Regex(expression string) (*Grammar, error) {
	d, err := automaton.Pattern(context.Background(), expression, false)
	if err != nil {
		return nil, fmt.Errorf("regular expression: %w", err)
	}
	p := automaton.NewProgram()
	return automaton.New(p, p.Text(d)), nil
}

func TextChoice(texts []string) (*Grammar, error) {
	if len(texts) == 0 {
		return nil, errors.New("choice: there is nothing to choose from")
	}
	p := automaton.NewProgram()
	var alternatives []automaton.Symbol
	for _, t := range texts {
		if t == "" {
			return nil, errors.New("choice: a text is empty")
		}
		alternatives = append(alternatives, p.Literal(t))
	}
	p.Add(alternatives)
	return automaton.New(p, p.Node(0)), nil
}
