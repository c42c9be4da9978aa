// Names of prefixes. A page is named by all tokens up to its end, not by its own tokens alone,
// since its keys and values depend on all tokens before it.

package kv

import (
	"crypto/sha256"
	"encoding/binary"
)

// Hash names a prefix of whole pages. It is cryptographic, so collisions can be ignored, and
// stable, so that pages can be found again in another process.
type Hash [16]byte

// RootOf names the empty prefix for what the words describe, so that pages of two models, or of two
// element types, never get the same name.
func RootOf(words ...string) (h Hash) {
	d := sha256.New()
	for _, w := range words {
		var n [8]byte
		binary.LittleEndian.PutUint64(n[:], uint64(len(w)))
		d.Write(n[:])
		d.Write([]byte(w))
	}
	copy(h[:], d.Sum(nil))
	return h
}

// Next is the name of prefix h extended by PageTokens more tokens.
func (h Hash) Next(page []int32) (next Hash) {
	var b [len(h) + 4*PageTokens]byte
	copy(b[:], h[:])
	for i, id := range page[:PageTokens] {
		binary.LittleEndian.PutUint32(b[len(h)+4*i:], uint32(id))
	}
	sum := sha256.Sum256(b[:])
	copy(next[:], sum[:])
	return next
}

// Hashes appends to have the names of the prefixes of tokens that end with each further whole page.
func Hashes(root Hash, have []Hash, tokens []int32) []Hash {
	h := root
	if len(have) > 0 {
		h = have[len(have)-1]
	}
	for at := len(have) * PageTokens; at+PageTokens <= len(tokens); at += PageTokens {
		h = h.Next(tokens[at : at+PageTokens])
		have = append(have, h)
	}
	return have
}
