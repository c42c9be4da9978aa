// Package grammar restricts the next tokens, so that unparsable output cannot be sampled.
//
// Two automata make one Turn. The header automaton (header.go) has the legal message headers of one
// request: channels, the offered recipients, content types. A body may be restricted to a Grammar:
// a JSON Schema, any JSON (both package schema), a regular expression, a choice of texts
// (written.go), written rules (rules.go). Both work on the bytes of tokens, so a name or a number
// is allowed in every tokenization, and no choice of tokens leads to a dead end.
//
// Package schema compiles to a program, package automaton executes it. This package has the
// interface for scheduler and session: a Constraint, and its inputs.
//
// A mask has a bit for each id, 1 for allowed, 64 per word, VocabSize bits in all. Masks are
// shared: callers must not change them. nil allows everything.
package grammar
