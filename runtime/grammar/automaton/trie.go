// The trie of all ordinary tokens, laid out in the order in which it is walked.
//
// A walk carries a state of an automaton down the trie; where the automaton dies, the whole subtree
// is skipped. Inside JSON strings nearly every token is allowed, so there is a second trie without
// the tokens that are plain text there, and masks of the plain ones. Patterns for words and names
// have a smaller equivalent: a trie without the tokens of letters, digits and spaces, and the mask
// of these.

package automaton

import (
	"bytes"
	"maps"
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/ossrun/ossrun/harmony/token"
)

// trieNode is one byte of some token. Siblings are adjacent: walks jump, so each further access
// would be a cache miss.
type trieNode struct {
	isToken bool  // a token ends here, the first of the subtree
	last    int32 // one more than the index of the last token of the subtree
	below   kids
	kinds   uint64 // the kinds of the bytes in the subtree, including the node's own
}

// kids are the nodes from at to before end: all children of one node.
type kids struct{ begin, end int32 }

// trie is the nodes, and the tokens in the order of the nodes. If every byte of a subtree leads an
// automaton back to its state, all tokens of the subtree are allowed, and the walk adds them at
// once.
type trie struct {
	nodes []trieNode
	// by node, the fields that most skips need: reading the node itself would be a cache miss
	edges  []byte  // the byte
	depths []uint8 // the depth of the subtree; broken if a token is not complete characters
	first  []int32 // the index of the first token of the subtree
	roots  kids
	order  []int32
}

// broken is deeper than any token.
const broken = 0xff

// allow adds the tokens of the subtree of node i to mask, up to the index last.
func (t *trie) allow(mask []uint64, i, last int32) {
	for _, id := range t.order[t.first[i]:last] {
		Allow(mask, id)
	}
}

// byteKinds numbers the 256 bytes in fewer than 64 ranges, so that a set of kinds is one word.
// Bytes that patterns often distinguish differ in kind. kindRanges has the inclusive bounds of
// each.
var byteKinds, kindRanges = func() (kind [256]uint8, ranges [][2]uint8) {
	add := func(from, to uint8) {
		for b := int(from); b <= int(to); b++ {
			kind[b] = uint8(len(ranges))
		}
		ranges = append(ranges, [2]uint8{from, to})
	}
	single := func(from, to uint8) {
		for b := from; b <= to; b++ {
			add(b, b)
		}
	}
	add(0, 8)
	single('\t', '\r')
	add(14, 31)
	single(' ', '/')
	add('0', '0')
	add('1', '9')
	single(':', '@')
	add('A', 'F')
	add('G', 'Z')
	single('[', '`')
	add('a', 'f')
	add('g', 'z')
	single('{', 0x7f)
	add(0x80, 0xbf)
	// first bytes of characters: those of spaces and line ends are separate
	add(0xc0, 0xc2)
	add(0xc3, 0xe0)
	single(0xe1, 0xe3)
	add(0xe4, 0xee)
	add(0xef, 0xef)
	add(0xf0, 0xff)
	return kind, ranges
}()

// ragged is an additional bit for tokens that are not complete characters.
const ragged = 1 << 63

// vocabulary is the tokens in the forms for making masks.
type vocabulary struct {
	marked trie // the tokens that are not plain
	// wordy[n] allows the tokens of at most n wordBytes and no others; rest is the trie of the
	// tokens with other bytes.
	wordy [][]uint64
	rest  trie
	// plain[n] allows the plain tokens of at most n characters; the last allows all of them.
	plain    [][]uint64
	alphabet *alphabet // of the plain tokens
	strings  *stringVocabulary
}

// plainText reports whether b is literal inside a JSON string: complete characters, no quote,
// backslash or control.
func plainText(b []byte) bool {
	return utf8.Valid(b) && !slices.ContainsFunc(b, func(c byte) bool {
		return c < 0x20 || c == '"' || c == '\\'
	})
}

// wordBytes are letters, digits and the space: half of the tokens have no other bytes.
const wordBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 "

// words is the vocabulary and allTokens the trie of every token, each made once.
var (
	words     = sync.OnceValue(newVocabulary)
	allTokens = sync.OnceValue(func() *trie { t := newTrie(token.Get().Sorted()); return &t })
)

// Edge is an edge of a graph over a byte or a special token, whose ids are all above the bytes.
type Edge struct{ Label, To int32 }

// Special reports whether it is an edge over a special token.
func (e Edge) Special() bool { return e.Label > 0xff }

// AllowSpelled adds to mask the tokens whose bytes lead from a node of a graph to another; edges
// are those of a node.
func AllowSpelled(mask []uint64, from int32, edges func(node int32) []Edge) {
	t := allTokens()
	var walk func(node int32, k kids)
	walk = func(node int32, k kids) {
		for _, e := range edges(node) {
			if e.Special() {
				continue
			}
			i := bytes.IndexByte(t.edges[k.begin:k.end], byte(e.Label))
			if i < 0 {
				continue
			}
			i += int(k.begin)
			if t.nodes[i].isToken {
				Allow(mask, t.order[t.first[i]])
			}
			walk(e.To, t.nodes[i].below)
		}
	}
	walk(from, t.roots)
}

// Prepare creates the shared tables of all grammars, so that the first turn need not wait for them.
// Further calls do nothing.
func Prepare() {
	allTokens()
	words()
	enders()
}

func newVocabulary() *vocabulary {
	t := token.Get()
	ids := t.Sorted()
	var marked, rest, plain []int32
	wordKinds := kindsOf([]byte(wordBytes))
	plainBy, wordyBy := map[int][]int32{}, map[int][]int32{}
	for _, id := range ids {
		if b := t.TokenBytes(id); plainText(b) {
			n := utf8.RuneCount(b)
			plainBy[n] = append(plainBy[n], id)
			plain = append(plain, id)
		} else {
			marked = append(marked, id)
		}
		if b := t.TokenBytes(id); kindsOf(b)&^wordKinds == 0 {
			wordyBy[len(b)] = append(wordyBy[len(b)], id)
		} else {
			rest = append(rest, id)
		}
	}
	return &vocabulary{marked: newTrie(marked), rest: newTrie(rest),
		wordy: masksUpTo(wordyBy), plain: masksUpTo(plainBy),
		alphabet: newAlphabet(plain), strings: newStringVocabulary(ids)}
}

// masksUpTo makes the masks of the tokens of length at most n, from the tokens of each length.
func masksUpTo(byLength map[int][]int32) [][]uint64 {
	masks := [][]uint64{NewMask()}
	for n := 1; n <= slices.Max(slices.Collect(maps.Keys(byLength))); n++ {
		m := masks[n-1]
		if len(byLength[n]) > 0 {
			m = slices.Clone(m)
			for _, id := range byLength[n] {
				Allow(m, id)
			}
		}
		masks = append(masks, m)
	}
	return masks
}

func newTrie(sorted []int32) trie { return trieOf(sorted, token.Get().TokenBytes) }

// trieOf lays out texts; sorted has their numbers in the order of the texts.
func trieOf(sorted []int32, text func(int32) []byte) trie {
	t := trie{nodes: make([]trieNode, 0, 3*len(sorted)), order: sorted}
	texts := make([][]byte, len(sorted))
	for i, n := range sorted {
		texts[i] = text(n)
	}
	t.roots = t.layOut(texts, 0, 0)
	t.nodes = slices.Clip(t.nodes)
	return t
}

// layOut makes the nodes after a common prefix of depth bytes; place is the index of the first text
// in the order.
func (t *trie) layOut(texts [][]byte, place int32, depth int) kids {
	k := kids{begin: int32(len(t.nodes))}
	for i := 0; i < len(texts); {
		from := i
		edge := texts[i][depth]
		for i++; i < len(texts) && texts[i][depth] == edge; i++ {
		}
		t.edges, t.depths = append(t.edges, edge), append(t.depths, 0)
		t.first = append(t.first, place+int32(from))
		t.nodes = append(t.nodes, trieNode{last: place + int32(i),
			isToken: len(texts[from]) == depth+1, kinds: 1 << byteKinds[edge]})
	}
	k.end = int32(len(t.nodes))
	for i := k.begin; i < k.end; i++ {
		n, deep := t.nodes[i], uint8(0)
		first := t.first[i]
		under := texts[first-place : n.last-place]
		for len(under) > 0 && len(under[0]) == depth+1 { // that end here
			if !utf8.Valid(under[0]) {
				n.kinds |= ragged
			}
			under, first = under[1:], first+1
		}
		n.below = t.layOut(under, first, depth+1)
		for k := n.below.begin; k < n.below.end; k++ {
			n.kinds |= t.nodes[k].kinds
			deep = max(deep, t.depths[k]+1)
		}
		if n.kinds&ragged != 0 {
			deep = broken
		}
		t.nodes[i], t.depths[i] = n, deep
	}
	return k
}

func kindsOf(bytes []byte) (kinds uint64) {
	if !utf8.Valid(bytes) {
		kinds = ragged
	}
	for _, b := range bytes {
		kinds |= 1 << byteKinds[b]
	}
	return kinds
}

// longestToken is the maximum length of a token in bytes.
const longestToken = 128
