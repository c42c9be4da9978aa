// Package highlight tells the parts of source code apart, line by line, for the code blocks of a
// chat: comments, strings, numbers, keywords, names of types and functions, tags, keys of data.
// assets/languages.txt says how each language writes them; one scanner reads them all.
//
// What must stay true: the texts of a line's tokens, one after the other, are the line; no input
// makes it fail; the time is linear in the length of the line; a line is coloured by its text and
// the State before it alone, so that a block that grows is read on from where it was. Nothing is
// prepared before a language is first asked for.
package highlight

import (
	"slices"
	"strings"
)

// A Kind is what a token is.
type Kind uint8

// The kinds of tokens.
const (
	Text     Kind = iota
	Comment       // comments
	Keyword       // words of the language's grammar
	Type          // types, builtins and constants
	String        // strings, characters, regular expressions
	Number        // numbers
	Function      // functions where they are called or defined, types where they are defined
	Tag           // tags of markup, selectors
	Key           // attributes of tags, keys of data, properties
	Variable      // variables of shells and templates
	Inserted      // lines that a patch adds
	Deleted       // lines that a patch takes away
	Heading       // headings, sections
)

// A Token is a piece of a line. Its text is not empty.
type Token struct {
	Kind Kind
	Text string
}

// A State is what a line inherits from those before it. The zero State is that of the first line.
// States may be compared.
type State struct {
	frames    [maxDepth]frame // what is open, outermost first
	depth     int8
	arguments bool // the line before ended in a backslash among the arguments of a command
}

// maxDepth is how deep strings stand in strings, as `a${f("b")}` does. What is deeper is read as
// the string around it.
const maxDepth = 8

// A frame is a region that is open, or code inside of one.
type frame struct {
	region *region
	code   *Language // the inside is code of this language; nil: text
	nested int32     // how deep comments or brackets are nested
}

// Find returns the language of that name or alias in either case, as it stands behind the fence of
// a code block; nil if it is not known.
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

// Line appends the tokens of one line, given without its end, and returns the State for the next.
func (l *Language) Line(tokens []Token, before State, line string) ([]Token, State) {
	s := scanner{State: before, tokens: tokens, mine: len(tokens), line: line, base: l}
	s.read()
	return s.tokens, s.State
}
