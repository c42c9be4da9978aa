// Package highlight tells the parts of source code apart, line by line, for the code blocks of a chat.
//
// It knows just enough of each language to colour it: comments, strings, numbers, keywords, the names of types and of
// functions, the tags of markup and the keys of data. What a language looks like stands in tables (languages_*.go); one
// scanner reads most of them, and what is not made of words and brackets (markup, shell, YAML, markdown) has its own.
//
// What must stay true: the texts of a line's tokens, one after the other, are the line; no input makes it fail; the
// time is linear in the length of the line; a line is coloured by its text and the State before it alone, so that a
// block that grows is read on from where it was. Nothing is prepared before a language is first asked for.
package highlight

import "strings"

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
	Function      // names of functions where they are called or defined, and of types where they are defined
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

// A State is what a line inherits from those before it. The zero State is that of the first line. States may be compared.
type State struct {
	frames [maxDepth]frame // what is open, outermost first
	depth  uint8
	joined bool   // the line before ended in a backslash
	here   bool   // inside the document that ends with the line tag
	mode   uint8  // where in a tag, a block of YAML
	column int32  // at which the key of that block of YAML stands
	tag    string // the word that ends a here document or a string with a tag

	guest *Language // the language inside of this one: a script in HTML, a code block in markdown
	until string    // what ends the guest
}

// maxDepth is how deep strings stand in strings, as `a${f("b")}` does. What is deeper is read as the string around it.
const maxDepth = 8

// A frame is a region that is open, or the code in a hole of one.
type frame struct {
	region int16
	hole   bool
	raw    bool  // backslashes mean nothing
	holes  bool  // the string has holes because of its prefix
	n      int32 // how deep comments or brackets are nested, or how many fill bytes opened it
}

// Find returns the language of that name or alias in either case, as it stands behind the fence of a code block; nil if
// it is not known.
func Find(name string) *Language {
	name = strings.ToLower(strings.Trim(name, "{}. \t"))
	if i := strings.IndexAny(name, " \t,{:;("); i >= 0 {
		name = name[:i]
	}
	if name == "" {
		return nil
	}
	for _, l := range languages {
		for names := l.names; names != ""; {
			var one string
			one, names, _ = strings.Cut(names, " ")
			if one == name {
				return l
			}
		}
	}
	return nil
}

// Name is the language's own name.
func (l *Language) Name() string {
	name, _, _ := strings.Cut(l.names, " ")
	return name
}

// Line appends the tokens of one line, given without its end, and returns the State for the next one.
func (l *Language) Line(tokens []Token, before State, line string) ([]Token, State) {
	s := scanner{State: before, tokens: tokens, line: line}
	s.read(l)
	return s.tokens, s.State
}
