// Package highlight tokenises source code line by line for code blocks: comments, strings, numbers,
// keywords, names of types and functions, tags, keys of data. assets/languages.txt describes each
// language; one scanner reads them all.
//
// What must stay true: the tokens' texts concatenate to the line; no input fails; time is linear in
// the line's length; a line's colours depend on its text and the State before it only, so a growing
// block is scanned incrementally. Tables are built when a language is first used.
package highlight

import (
	"slices"
	"strings"
)

type Kind uint8

const (
	Text     Kind = iota
	Comment       // comments
	Keyword       // words of the language's grammar
	Type          // types, builtins and constants
	String        // strings, characters, regular expressions
	Number        // numbers
	Function      // functions in calls and definitions, types in definitions
	Tag           // tags of markup, selectors
	Key           // attributes of tags, keys of data, properties
	Variable      // variables of shells and templates
	Inserted      // added lines of a patch
	Deleted       // removed lines of a patch
	Heading       // headings, sections
)

// A Token is a piece of a line. Its text is not empty.
type Token struct {
	Kind Kind
	Text string
}

// A State is carried from line to line; the zero State is that of the first line. States are
// comparable.
type State struct {
	frames    [maxDepth]frame // open regions, outermost first
	depth     int8
	arguments bool // the previous line ended in a backslash among a command's arguments
}

// maxDepth bounds strings nested in strings, as in `a${f("b")}`. Deeper ones count as text of the
// string around them.
const maxDepth = 8

// A frame is an open region, or code inside one.
type frame struct {
	region *region
	code   *Language // language of the inside; nil: text
	nested int32     // depth of nested comments or brackets
}

// Find returns a language by its name or alias in either case, as written after the fence of a code
// block; nil if unknown.
func Find(name string) *Language {
	name = strings.ToLower(strings.Trim(name, "{}. \t"))
	if i := strings.IndexAny(name, " \t,{:;("); i >= 0 {
		name = name[:i]
	}
	for _, l := range languages() {
		if slices.Contains(l.names, name) {
			return l
		}
	}
	return nil
}

// Line appends the tokens of one line, without its line end, and returns the State for the next.
func (l *Language) Line(tokens []Token, state State, line string) ([]Token, State) {
	s := scanner{State: state, tokens: tokens, earlier: len(tokens), line: line, base: l}
	s.read()
	return s.tokens, s.State
}
