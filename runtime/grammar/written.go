// Grammars that are no schema: a regular expression, a choice of texts.

package grammar

import (
	"context"
	"errors"
	"fmt"
)

// expandSequence reads the symbol at f.a and after it the rest.
func (m *machine) expandSequence(out []int32, f frame) []int32 {
	s := m.sequences[f.of]
	if int(f.a) == len(s) {
		return m.expand(out, f.parent)
	}
	rest := f.parent
	if int(f.a)+1 < len(s) {
		rest = m.push(planSequence, f.of, f.a+1, 0, f.parent)
	}
	return m.expand(out, m.push(s[f.a].kind, s[f.a].of, 0, 0, rest))
}

// Regex is the grammar of the texts that an expression matches as a whole.
func Regex(expression string) (*Grammar, error) {
	d, err := pattern(context.Background(), expression, false)
	if err != nil {
		return nil, fmt.Errorf("regular expression: %w", err)
	}
	d.markTotal()
	p := newProgram()
	p.numbers = append(p.numbers, d)
	return newCompiled(p, readDFA, 0), nil
}

// TextChoice is the grammar of the texts given.
func TextChoice(texts []string) (*Grammar, error) {
	if len(texts) == 0 {
		return nil, errors.New("choice: there is nothing to choose from")
	}
	p := newProgram()
	var alternatives []symbol
	for _, t := range texts {
		if t == "" {
			return nil, errors.New("choice: a text is empty")
		}
		alternatives = append(alternatives, symbol{readLiteral, p.literal(t)})
	}
	p.nodes = append(p.nodes, alternatives)
	return newCompiled(p, planValue, 0), nil
}
