// The scheduler's view of a grammar: a Constraint restricts the tokens that one sequence generates.

package grammar

import (
	"github.com/ossrun/ossrun/harmony/token"
	"github.com/ossrun/ossrun/runtime/grammar/automaton"
)

// Constraint is a sequence's position in its grammar. It belongs to one sequence and is used by one
// goroutine at a time.
type Constraint interface {
	// Accept consumes each generated token in order, including forced ones, and reports whether the
	// grammar allowed it. After a disallowed token, possible if a request ignores end tokens, every
	// token is allowed.
	Accept(id int32) bool
	// Mask allows the next tokens; nil allows all. The caller must not change it.
	Mask() []uint64
	// Forced returns the next tokens if there is no choice, else nil. They need not be sampled.
	Forced() []int32
}

// Bodies is a Constraint that knows the grammar of a body, for servers that sample under rules.
type Bodies interface {
	// Body is the position in a grammar, and the token that ends it; nil: no grammar applies here.
	Body() (m *automaton.Matcher, ender int32)
}

// NewText restricts a complete text to a grammar; <|return|> ends it.
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

func (t *text) Body() (*automaton.Matcher, int32) {
	if t.lost {
		return nil, 0
	}
	return t.matcher, token.Return
}

// NewAllowed allows the same tokens at every position. The ids must be in the vocabulary.
func NewAllowed(ids []int32) Constraint {
	return allowed(automaton.Only(ids...))
}

type allowed []uint64

func (a allowed) Accept(id int32) bool { return automaton.Allows(a, id) }
func (a allowed) Mask() []uint64       { return a }
func (a allowed) Forced() []int32      { return nil }
