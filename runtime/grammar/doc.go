// Package grammar says which tokens may come next, so that what cannot be read cannot be sampled.
//
// Two automata make one Turn. The header automaton (header.go) knows the legal message headers of
// one request: channels, the recipients that the request offers, content types. A body may be held
// to a Grammar: a JSON Schema, any JSON, a regular expression, a choice of texts. Both work on the
// bytes that tokens spell, so a name or a number is allowed in every tokenization, and no choice of
// tokens leads into a dead end.
//
// How a body grammar works: a schema is read in order (document.go), and its keywords are
// intersected into shapes of one type each (shape.go). A pushdown machine walks the shapes byte by
// byte (machine.go). Sets of its configurations are the states of an automaton that is made while
// it is walked (states.go). A state's mask is found by walking this automaton and the trie of all
// tokens (trie.go) together.
//
// A mask has a bit for each id, 1 for allowed, 64 in a word, VocabSize bits in all. Masks are
// shared: callers must not change them. nil allows everything.
package grammar
