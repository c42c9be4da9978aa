package highlight

// Reading languages.txt, which describes its own form. What the scanner looks up at every byte
// becomes an array indexed by byte.

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/ossrun/ossrun/assets"
)

// A Language is the table's entry for one.
type Language struct {
	names       []string
	regions     []region
	opens       [256][]*region // regions by first byte, in the table's order
	words       map[string]word
	starts      [256]bool // bytes that may begin a word
	inWord      [256]bool // bytes inside a word
	marks, keys [256]Kind
	forms
}

type word struct {
	kind, next Kind // its own, and that of the next name
	operand    bool // no command follows
}

// forms are the special rules of a language or region: a bit for each letter from A, see
// languages.txt.
type forms uint32

func (f forms) has(letter byte) bool { return f>>(letter-'A')&1 == 1 }

func (f *forms) set(letters string) {
	for _, letter := range letters {
		*f |= 1 << (letter - 'A')
	}
}

// A region is a comment or a string.
type region struct {
	forms
	kind              Kind
	open, close, hole string
	nest              string    // opens it again inside itself
	bracket           string    // the bracket pair around a hole
	stops             [256]bool // bytes that may end the text inside
	lang              *Language // the language that has it
	code              *Language // language of the inside, nil for text
}

func kindOf(letter byte) Kind { return Kind(max(0, strings.IndexByte("xcktsnfgyvidh", letter))) }

// languages reads the table once, when a language is first used.
var languages = sync.OnceValue(func() (all []*Language) {
	byName := map[string]*Language{}
	find := func(name string) *Language {
		if byName[name] == nil {
			byName[name] = &Language{words: map[string]word{}}
		}
		return byName[name]
	}
	for line := range strings.Lines(strings.ReplaceAll(assets.Languages, "\n  ", " ")) {
		switch f := strings.Fields(line); line[0] {
		case '#':
		case ' ':
			for property := range strings.SplitSeq(line, " ; ") {
				all[len(all)-1].property(strings.Fields(property), find)
			}
		default:
			l := find(f[0])
			l.names = f
			all = append(all, l)
		}
	}
	for _, l := range all {
		l.prepare()
	}
	return all
})

func (l *Language) property(words []string, find func(string) *Language) {
	name, words := words[0], words[1:]
	switch name {
	case "like":
		names, parent := l.names, find(words[0])
		*l = *parent
		l.names, l.words, l.regions = names, maps.Clone(l.words), slices.Clone(l.regions)
	case "regions":
		l.regions = nil
		for text := range strings.SplitSeq(strings.Join(words, " "), " | ") {
			l.regions = append(l.regions, newRegion(strings.Fields(text), find))
		}
	case "part", "start":
		for _, c := range []byte(words[0]) {
			l.starts[c], l.inWord[c] = l.starts[c] || name == "start", true
		}
	case "marks", "keys":
		for _, w := range words {
			map[string]*[256]Kind{"marks": &l.marks, "keys": &l.keys}[name][w[0]] = kindOf(w[1])
		}
	case "forms":
		l.set(words[0])
	default:
		is := map[string]word{"keywords": {kind: Keyword}, "types": {kind: Type},
			"defines": {kind: Keyword, next: Function}, "operands": {kind: Keyword,
				operand: true}}[name]
		for _, w := range words {
			l.words[w] = is
			if l.has('I') {
				l.words[strings.ToUpper(w)] = is
			}
		}
	}
}

func newRegion(f []string, find func(string) *Language) region {
	r := region{kind: kindOf(f[0][0]), bracket: "{}"}
	r.set(f[0][1:])
	for i, text := range f[1:] {
		if name, ok := strings.CutPrefix(text, "in="); ok {
			r.code = find(name)
			break
		}
		text = strings.NewReplacer(`\s`, " ", `\,`, ";").Replace(text)
		*[]*string{&r.open, &r.close, &r.hole}[i] = text
		r.stops[text[0]] = i > 0
	}
	if strings.Contains(r.hole, "(") {
		r.bracket = "()"
	}
	r.stops['\\'] = r.stops['\\'] || r.has('E')
	if r.has('N') {
		r.nest = r.open[len(r.open)-len(r.close):]
		r.stops[r.nest[0]] = true
	}
	return r
}

func (l *Language) prepare() {
	for c := range 256 {
		word := wordByte(byte(c))
		l.starts[c] = l.starts[c] || word && !digit(byte(c))
		l.inWord[c] = l.inWord[c] || word
	}
	for i := range l.regions {
		r := &l.regions[i]
		r.lang = l
		l.opens[r.open[0]] = append(l.opens[r.open[0]], r)
	}
}

func wordByte(c byte) bool { return letter(c) || c == '_' || digit(c) || c >= 0x80 }

func digit(c byte) bool { return c >= '0' && c <= '9' }

func letter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
