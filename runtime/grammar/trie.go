// The trie of all tokens that stand for bytes, laid out in the order in which it is walked.
//
// A walk carries a state of some automaton down the trie; where the automaton dies, the whole subtree is skipped. Inside
// JSON strings nearly every token is allowed, so there is a second trie without the tokens that are plain text there,
// and masks of the plain ones.

package grammar

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/ossrun/ossrun/harmony/token"
)

// trieNode is one byte of some token. Nodes stand in the order of a walk: children follow their parent.
type trieNode struct {
	edge  byte
	depth uint8 // of the parent; 0 for the first byte of a token
	next  int32 // the node after this one's subtree
	token int32 // the token that ends here, -1 for none
}

// vocabulary is the tokens in the forms that masks are made from.
type vocabulary struct {
	all    []trieNode // every token
	marked []trieNode // those that are not plain
	// plain[n] allows the plain tokens of at most n characters; the last allows all of them.
	plain [][]uint64
}

// plainText tells whether b stands for itself inside a JSON string: whole characters, no quote, backslash or control.
func plainText(b []byte) bool {
	if !utf8.Valid(b) {
		return false
	}
	for _, c := range b {
		if c < 0x20 || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// words is the vocabulary, made once.
var words = sync.OnceValue(newVocabulary)

// Prepare makes what all grammars share, so that the first turn need not wait for it. It may be called any number of times.
func Prepare() { words() }

func newVocabulary() *vocabulary {
	t := token.Get()
	ids := sortedTokens()
	var marked []int32
	byLength := map[int][]int32{}
	longest := 0
	for _, id := range ids {
		if b := t.TokenBytes(id); plainText(b) {
			n := utf8.RuneCount(b)
			byLength[n] = append(byLength[n], id)
			longest = max(longest, n)
		} else {
			marked = append(marked, id)
		}
	}
	v := &vocabulary{all: newTrie(ids), marked: newTrie(marked), plain: [][]uint64{newMask()}}
	for n := 1; n <= longest; n++ {
		m := v.plain[n-1]
		if len(byLength[n]) > 0 {
			m = slices.Clone(m)
			for _, id := range byLength[n] {
				allow(m, id)
			}
		}
		v.plain = append(v.plain, m)
	}
	return v
}

// sortedTokens are the ids in the order of their bytes. Most are told apart by the first eight, held as a number.
func sortedTokens() []int32 {
	type entry struct {
		head uint64
		id   int32
	}
	t := token.Get()
	entries := make([]entry, ordinaryTokens)
	for i := range entries {
		var head [8]byte
		copy(head[:], t.TokenBytes(int32(i)))
		entries[i] = entry{binary.BigEndian.Uint64(head[:]), int32(i)}
	}
	slices.SortFunc(entries, func(a, b entry) int {
		if a.head != b.head {
			return cmp.Compare(a.head, b.head)
		}
		return bytes.Compare(t.TokenBytes(a.id), t.TokenBytes(b.id))
	})
	ids := make([]int32, len(entries))
	for i, e := range entries {
		ids[i] = e.id
	}
	return ids
}

// newTrie lays out tokens given in the order of their bytes.
func newTrie(sorted []int32) []trieNode {
	t := token.Get()
	nodes := make([]trieNode, 0, 3*len(sorted))
	var path []int32 // the nodes of the last token
	var last []byte
	for _, id := range sorted {
		b := t.TokenBytes(id)
		same := 0
		for same < len(b) && same < len(last) && b[same] == last[same] {
			same++
		}
		for _, n := range path[same:] {
			nodes[n].next = int32(len(nodes))
		}
		path = path[:same]
		for d := same; d < len(b); d++ {
			path = append(path, int32(len(nodes)))
			nodes = append(nodes, trieNode{edge: b[d], depth: uint8(d), token: -1})
		}
		nodes[len(nodes)-1].token = id
		last = b
	}
	for _, n := range path {
		nodes[n].next = int32(len(nodes))
	}
	return slices.Clip(nodes)
}

// longestToken is the most bytes that a token has.
const longestToken = 128
