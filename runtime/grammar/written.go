// Grammars that are no schema: a regular expression, a choice of texts. Written rules are in
// rules.go.

package grammar

import (
	"context"
	"errors"
	"fmt"

	"github.com/ossrun/ossrun/runtime/grammar/automaton"
)

// Grammar is what a body can be held to: schema.Compile, Regex, TextChoice and Rules make one.
type Grammar = automaton.Grammar

// Prepare makes what all grammars share, so that the first turn need not wait for it. It may be
// called any number of times. Tests of many short processes replace it by nothing.
var Prepare = automaton.Prepare

// Regex is the grammar of the texts that an expression matches as a whole.
func Regex(expression string) (*Grammar, error) {
	d, err := automaton.Pattern(context.Background(), expression, false)
	if err != nil {
		return nil, fmt.Errorf("regular expression: %w", err)
	}
	p := automaton.NewProgram()
	return automaton.New(p, p.Text(d)), nil
}

// TextChoice is the grammar of the texts given.
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
