// What a scheduler knows of a grammar: a Constraint restricts the tokens that one sequence
// generates.

package grammar

import (
	"github.com/ossrun/ossrun/harmony/token"
	"github.com/ossrun/ossrun/runtime/grammar/automaton"
)

// Constraint is where a sequence stands in its grammar. It belongs to one sequence and is used by
// one goroutine at a time.
type Constraint interface {
	// Accept takes each generated token in order, forced ones too. It reports whether the grammar
	// allowed the token. After a token that was not allowed, as a request that ignores end tokens
	// can have, every token is allowed.
	Accept(id int32) bool
	// Mask allows the tokens that may come next; nil allows all. The caller must not change it.
	Mask() []uint64
	// Forced returns the tokens that must come next where there is no choice, else nil. They may be
	// fed without sampling.
	Forced() []int32
}

// NewText restricts a whole text to a grammar; <|return|> ends it.
func NewText(g *Grammar) Constraint { return &text{matcher: g.Matcher()} }

type text struct {
	matcher *automaton.Matcher
	lost    bool
}

func (t *text) Accept(id int32) bool {
	t.lost = t.lost || !t.matcher.Accept(id)
	return !t.lost
}

func (t *text) Mask() []uint64 {
	if t.lost {
		return nil
	}
	return t.matcher.Mask(token.Return)
}

func (t *text) Forced() []int32 { return nil }

// NewAllowed allows the same tokens at every place. The ids must be of the vocabulary.
func NewAllowed(ids []int32) Constraint {
	return allowed(automaton.Only(ids...))
}

type allowed []uint64

func (a allowed) Accept(id int32) bool { return automaton.Allows(a, id) }
func (a allowed) Mask() []uint64       { return a }
func (a allowed) Forced() []int32      { return nil }
