// Loading the tokenizer from the embedded vocabulary.
//
// The vocabulary is stored as merges: every token of more than one byte is the concatenation of two
// lower ones. Token bytes and merge order both follow from that, in a quarter of the space of the
// published list. The gzip checksum protects it at load; the tests compare the bytes of all tokens
// with the published hash.

package token

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/ossrun/ossrun/assets"
)

const (
	single    = 256 // tokens of one byte, the lowest ids
	mergeSize = 6   // bytes of a stored merge, in as many planes
	textSize  = 1397670

	longestToken = 128 // bytes
)

func load() (*Tokenizer, error) {
	raw, err := expand(assets.Merges)
	if err != nil {
		return nil, err
	}
	t := &Tokenizer{}
	if t.classes, err = newClassTable(assets.Classes); err != nil {
		return nil, err
	}
	merges := mergePlanes(raw[single:])
	for id, b := range raw[:single] {
		t.byteID[b] = uint32(id)
	}
	for id := single; id < ordinary; id++ {
		if left, right := merges.halves(id); left >= uint32(id) || right >= uint32(id) {
			return nil, errors.New("merges: a token is made of later ones")
		}
	}
	var both sync.WaitGroup
	both.Go(func() { t.loadTokens(raw[:single], merges) })
	both.Go(func() { t.loadPairs(raw[:single], merges) })
	both.Wait()
	t.order = sync.OnceValue(t.newOrder)
	return t, nil
}

// expand decompresses gzip, which checks the length and the CRC-32.
func expand(packed []byte) ([]byte, error) {
	zr, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("merges: %w", err)
	}
	raw := make([]byte, single+(ordinary-single)*mergeSize)
	if _, err := io.ReadFull(zr, raw); err != nil {
		return nil, fmt.Errorf("merges: %w", err)
	}
	if n, err := zr.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		return nil, fmt.Errorf("merges: not %d bytes: %v", len(raw), err)
	}
	return raw, nil
}

// mergePlanes is the bytes of all merges in six planes: low, mid and high byte of the left token,
// then of the right one; each plane is in id order.
type mergePlanes []byte

func (m mergePlanes) halves(id int) (left, right uint32) {
	const n = ordinary - single
	i := id - single
	left = uint32(m[i]) | uint32(m[n+i])<<8 | uint32(m[2*n+i])<<16
	right = uint32(m[3*n+i]) | uint32(m[4*n+i])<<8 | uint32(m[5*n+i])<<16
	return left, right
}

func (t *Tokenizer) loadTokens(singles []byte, merges mergePlanes) {
	t.offsets = make([]uint32, ordinary+1)
	t.text = make([]byte, 0, textSize)
	t.tokens = make(tokenTable, 1<<tableBits)
	for id := range ordinary {
		if id < single {
			t.text = append(t.text, singles[id])
		} else {
			left, right := merges.halves(id)
			t.text = append(t.text, t.ordinaryBytes(left)...)
			t.text = append(t.text, t.ordinaryBytes(right)...)
		}
		t.offsets[id+1] = uint32(len(t.text))
		t.tokens.put(t.ordinaryBytes(uint32(id)), uint32(id))
	}
}

func (t *Tokenizer) loadPairs(singles []byte, merges mergePlanes) {
	t.pairs = make(pairTable, 1<<tableBits)
	t.bytePair = slices.Repeat([]uint32{absent}, 1<<16)
	for id := single; id < ordinary; id++ {
		left, right := merges.halves(id)
		t.pairs.put(left, right, uint32(id))
		if left < single && right < single {
			t.bytePair[uint(singles[left])<<8|uint(singles[right])] = uint32(id)
		}
	}
}
