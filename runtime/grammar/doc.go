// Package grammar says which tokens may come next, so that what cannot be read cannot be sampled.
//
// Two automata make one Turn. The header automaton (header.go) knows the legal message headers of
// one request: channels, the recipients that the request offers, content types. A body may be held
// to a Grammar: a JSON Schema, any JSON (both package schema), a regular expression, a choice of
// texts (written.go), written rules (rules.go). Both work on the bytes that tokens spell, so a name
// or a number is allowed in every tokenization, and no choice of tokens leads into a dead end.
//
// Package schema compiles to a program, package automaton walks it. This package is what a
// scheduler and a session know: a Constraint, and what it is made from.
//
// A mask has a bit for each id, 1 for allowed, 64 in a word, VocabSize bits in all. Masks are
// shared: callers must not change them. nil allows everything.
package grammar
