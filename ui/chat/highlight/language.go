// What a table says of a language.

package highlight

import (
	"strings"
	"sync"
)

// A Language is the table by which a language is read. Words are separated by blanks. Everything in it is constant data
// until the language is first used.
type Language struct {
	names   string // its own name, then other ones
	shape   shape
	regions []region // tried in this order

	keywords  string // words of the grammar
	types     string // types, builtins, constants
	defines   string // keywords behind which a function's name stands
	declares  string // keywords behind which a type's name stands
	prefixes  string // words that belong to the string right behind them
	start     string // what a word may begin with beside letters and _
	part      string // what it may go on with beside letters, digits and _
	at        Kind   // what @word is
	dollar    Kind   // what $word is
	documents string // what opens a here document: "<<" or "<<<"
	traits    trait

	once  sync.Once
	words map[string]Kind
	next  map[string]Kind // the kind of the word behind a keyword
	opens [256]bool       // bytes with which a region may open
}

// A shape is the way in which a language is read.
type shape uint8

const (
	code shape = iota
	shell
	makefile
	styles
	markup
	yaml
	ini
	patch
	prose
)

// A trait is a habit of some languages.
type trait uint32

const (
	foldsCase    trait = 1 << iota // keywords in either case
	capitals                       // a word with a capital is a type
	calls                          // a word before ( is a function
	macros                         // so is one before !
	preprocessor                   // # at the start of a line is a directive
	regexps                        // /x/ is a string where no value stands before it
	characters                     // ' begins a character or a name, never a string
	ticks                          // 1'000
	sigils                         // $ and @ before names, numbers and punctuation; no keywords behind them
	wordQuotes                     // q{} qw() m// s///
	percents                       // %w[]
	symbols                        // :name
	tags                           // <Name attribute={x}>
	keys                           // a string before : is a key
	assigns                        // a word before = at the start of a line is a key
	sections                       // [x] at the start of a line
	instructions                   // the first word of a line is an instruction (Dockerfile)
	hyphenated                     // -word is an option or an operator (PowerShell)
	inPHP                          // a page of PHP, which begins in PHP
	isPHP                          // the language of PHP itself
)

// A region is a comment or a string. It opens with lead, any number of fill bytes, open; it closes with shut, as many
// fill bytes, tail. Without shut it ends with the line.
type region struct {
	lead string
	fill byte
	open string
	shut string
	tail string
	hole string // opens code inside a string; brackets in it are counted
	kind Kind
	form form
}

// A form is a property of a region.
type form uint8

const (
	escapes  form = 1 << iota // a backslash takes away the meaning of the next byte
	backtick                  // a backtick does
	doubles                   // its end, twice, is a character of it
	lines                     // it goes over the ends of lines
	nests                     // it may stand in itself
	atStart                   // begins and ends at the start of a line
	atWord                    // begins where a word would
	tagged                    // open is followed by a word of the writer's and its last byte, shut comes before that word
)

// has reports a trait.
func (l *Language) has(t trait) bool { return l.traits&t != 0 }

// prepare makes the maps, once.
func (l *Language) prepare() {
	l.words, l.next = map[string]Kind{}, map[string]Kind{}
	for _, list := range []struct {
		words string
		kind  Kind
	}{{l.types, Type}, {l.keywords, Keyword}, {l.defines, Keyword}, {l.declares, Keyword}} {
		words := list.words
		if l.has(foldsCase) {
			words = strings.ToLower(words)
		}
		for _, w := range strings.Fields(words) {
			l.words[w] = list.kind
		}
	}
	for _, w := range strings.Fields(l.defines) {
		l.next[w] = Function
	}
	for _, w := range strings.Fields(l.declares) {
		l.next[w] = Function
	}
	if l.documents != "" {
		l.opens['<'] = true
	}
	for i := range l.regions {
		r := &l.regions[i]
		l.opens[(r.lead + r.open)[0]] = true
		if r.lead == "" && r.fill != 0 {
			l.opens[r.fill] = true
		}
	}
}

// word is the kind of a word, Text if it means nothing.
func (l *Language) word(w string) Kind {
	if l.has(foldsCase) && len(w) <= 64 {
		w = strings.ToLower(w)
	}
	return l.words[w]
}

// starts reports that a word may begin with c.
func (l *Language) starts(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c >= 0x80 || l.start != "" && strings.IndexByte(l.start, c) >= 0
}

// continues reports that a word may go on with c.
func (l *Language) continues(c byte) bool {
	return wordByte(c) || l.part != "" && strings.IndexByte(l.part, c) >= 0 || l.start != "" && strings.IndexByte(l.start, c) >= 0
}

func wordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c >= '0' && c <= '9' || c >= 0x80
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

func letter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

func blank(c byte) bool { return c == ' ' || c == '\t' }
