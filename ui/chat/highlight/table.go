package highlight

// The table of languages: how languages.txt, which explains itself, is read.

import (
	_ "embed"
	"maps"
	"slices"
	"strings"
	"sync"
)

//go:embed languages.txt
var table string

// A Language is what the table says of one.
type Language struct {
	names       []string
	regions     []region // tried in this order
	opens       [256]bool
	words       map[string]Kind
	next        map[string]Kind // the kind of the word behind a keyword
	prefixes    []string        // words that belong to the string right behind them
	operands    []string        // keywords of a shell that no command follows
	documents   string          // what opens a here document
	starts      [256]bool       // bytes that a word may begin with
	continues   [256]bool       // and hold
	marks, keys [256]Kind
	hasKeys     bool
	traits      trait
}

// A trait is a habit of some languages.
type trait uint32

const (
	calls        trait = 1 << iota // a word before ( is a function
	capitals                       // a word with a capital is a type
	folds                          // keywords in either case
	macros                         // a word before ! is a function
	preprocessor                   // # at the start of a line is a directive
	ticks                          // 1'000
	bare                           // functions take arguments without brackets
	tags                           // <Name attribute={x}>
	attributes                     // words are keys
	keyStrings                     // a string before : is a key
	hyphenated                     // so is a function with a hyphen
	dates                          // 2024-01-02
	blocks                         // text behind | that is indented deeper
	commands                       // a shell's lines
	instructions                   // begin with a word in either case
	margin                         // keys stand at the margin only, and $(x) is a variable
	plain                          // nothing but regions
	styles                         // declarations of a style sheet
)

var traitNames = strings.Fields("calls capitals foldsCase macros preprocessor ticks bare tags " +
	"attributes keys hyphenated dates blocks commands instructions margin plain styles")

// A region is a comment or a string.
type region struct {
	open, shut, hole string
	kind             Kind
	forms            uint32    // a bit for each letter from A
	in               *Language // what is inside, nil for plain text
	fill             byte
}

// is reports a form by its letter, which languages.txt explains.
func (r *region) is(form byte) bool { return r.forms>>(form-'A')&1 == 1 }

const kindLetters = "xcktsnfgyvidh" // in the order of the Kinds

func kindOf(letter byte) Kind { return Kind(max(0, strings.IndexByte(kindLetters, letter))) }

// languages reads the table once, when a language is first asked for.
var languages = sync.OnceValue(func() (all []*Language) {
	byName := map[string]*Language{}
	find := func(name string) *Language {
		if byName[name] == nil {
			byName[name] = &Language{words: map[string]Kind{}, next: map[string]Kind{}}
		}
		return byName[name]
	}
	var l *Language
	for line := range strings.Lines(strings.ReplaceAll(table, "\n  ", " ")) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "#"), line == "":
		case line[0] != ' ':
			names := strings.Fields(line)
			l = find(names[0])
			l.names = names
			all = append(all, l)
		case strings.HasPrefix(line, " regions "):
			l.regions = nil
			for text := range strings.SplitSeq(line[len(" regions "):], " | ") {
				l.regions = append(l.regions, parseRegion(text, find))
			}
		default:
			for property := range strings.SplitSeq(line, " ; ") {
				l.set(strings.Fields(property), find)
			}
		}
	}
	for _, l := range all {
		l.prepare()
	}
	return all
})

func parseRegion(text string, find func(string) *Language) region {
	f := strings.Fields(text)
	r := region{kind: kindOf(f[0][0])}
	for _, form := range f[0][1:] {
		r.forms |= 1 << (form - 'A')
	}
	for _, to := range []*string{&r.open, &r.shut, &r.hole} {
		if f = f[1:]; len(f) == 0 {
			break
		}
		if name, ok := strings.CutPrefix(f[0], "in="); ok {
			r.in = find(name)
		} else if fill, ok := strings.CutPrefix(f[0], "fill="); ok {
			r.fill = fill[0]
		} else {
			*to = strings.ReplaceAll(f[0], `\s`, " ")
		}
	}
	return r
}

// set takes a property: its name and its words.
func (l *Language) set(words []string, find func(string) *Language) {
	name, words := words[0], words[1:]
	add := func(kind Kind) {
		for _, w := range words {
			l.words[w] = kind
		}
	}
	switch name {
	case "like":
		own, parent := *l, find(words[0])
		*l = *parent
		l.names, l.words, l.next = own.names, maps.Clone(parent.words), maps.Clone(parent.next)
		if own.regions != nil {
			l.regions = own.regions
		}
	case "keywords":
		add(Keyword)
	case "types":
		add(Type)
	case "operands":
		add(Keyword)
		l.operands = words
	case "defines", "declares":
		add(Keyword)
		for _, w := range words {
			l.next[w] = Function
		}
	case "prefixes":
		l.prefixes = words
	case "documents":
		l.documents = words[0]
	case "start", "part":
		for _, c := range []byte(words[0]) {
			l.starts[c] = l.starts[c] || name == "start"
			l.continues[c] = true
		}
	case "traits":
		for _, w := range words {
			l.traits |= 1 << slices.Index(traitNames, w)
		}
	case "marks", "keys":
		for _, w := range words {
			to := &l.marks
			if name == "keys" {
				to = &l.keys
			}
			to[w[0]] = kindOf(w[1])
			l.hasKeys = l.hasKeys || name == "keys"
		}
	}
}

func (l *Language) is(t trait) bool { return l.traits&t != 0 }

// prepare makes what is looked up at every byte.
func (l *Language) prepare() {
	if l.is(folds) {
		for w, kind := range maps.Clone(l.words) {
			l.words[strings.ToLower(w)] = kind
		}
	}
	for c := range 256 {
		word := wordByte(byte(c))
		l.starts[c] = l.starts[c] || word && !digit(byte(c))
		l.continues[c] = l.continues[c] || word
	}
	for _, r := range l.regions {
		l.opens[r.open[0]] = true
		if r.fill != 0 && r.open[0] == '*' {
			l.opens[r.fill] = true
		}
	}
	if l.documents != "" {
		l.opens['<'] = true
	}
}

// word is the kind of a word, Text if it means nothing.
func (l *Language) word(w string) Kind {
	if l.is(folds) && len(w) <= 64 {
		w = strings.ToLower(w)
	}
	return l.words[w]
}

func wordByte(c byte) bool { return letter(c) || c == '_' || digit(c) || c >= 0x80 }

func digit(c byte) bool { return c >= '0' && c <= '9' }

func letter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func blank(c byte) bool { return c == ' ' || c == '\t' }
