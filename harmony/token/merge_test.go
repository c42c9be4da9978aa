package token

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// mergePlainly is byte pair encoding by the book: of all neighbours whose bytes together are a
// token, the lowest merges, the leftmost of equals. It uses tokens but not the table of pairs.
func mergePlainly(t *Tokenizer, b []byte) []int32 {
	ends := make([]int, len(b))
	for i := range ends {
		ends[i] = i + 1
	}
	start := func(k int) int {
		if k == 0 {
			return 0
		}
		return ends[k-1]
	}
	for {
		best, at := absent, 0
		for k := 0; k+1 < len(ends); k++ {
			if both := b[start(k):ends[k+1]]; len(both) <= longestToken {
				if id := t.find(both); id < best {
					best, at = id, k
				}
			}
		}
		if best == absent {
			break
		}
		ends = slices.Delete(ends, at, at+1)
	}
	var ids []int32
	for k, end := range ends {
		ids = append(ids, int32(t.find(b[start(k):end])))
	}
	return ids
}

// hardBytes makes pieces that do not split well: few different bytes, runs, rows of tokens.
func hardBytes(t *Tokenizer, rng *rand.Rand, n int) []byte {
	var b []byte
	alphabet := make([]byte, 1+rng.IntN(4))
	for i := range alphabet {
		alphabet[i] = byte(rng.IntN(256))
		if rng.IntN(2) == 0 {
			alphabet[i] = "aeinorst -=#\n_"[rng.IntN(14)]
		}
	}
	kind := rng.IntN(4)
	for len(b) < n {
		switch kind {
		case 0:
			b = append(b, alphabet[rng.IntN(len(alphabet))])
		case 1:
			b = append(b, 'a'+byte(rng.IntN(26)))
		case 2:
			b = append(b, t.ordinaryBytes(uint32(rng.IntN(ordinary)))...)
		case 3:
			b = append(b, slices.Repeat(alphabet[:1], rng.IntN(300))...)
			b = append(b, alphabet...)
		}
	}
	return b[:n]
}

// The scan of short pieces, the way of long ones and the heap of these tests are all the plain
// algorithm.
func TestMergeIsExact(t *testing.T) {
	tok, rng := Get(), rand.New(rand.NewPCG(3, 4))
	var q mergeQueue
	for range 300 {
		b := hardBytes(tok, rng, 1+rng.IntN(300))
		want := mergePlainly(tok, b)
		if got := tok.merge(nil, b); !slices.Equal(got, want) {
			t.Fatalf("%q: %v, want %v", b, got, want)
		}
		q.encode(tok, b)
		if got := q.tokens(); !slices.Equal(got, want) {
			t.Fatalf("%q: heap %v, want %v", b, got, want)
		}
		if got, _ := tok.mergeLong(nil, b, nil); !slices.Equal(got, want) {
			t.Fatalf("%q: as a long piece %v, want %v", b, got, want)
		}
	}
}

func TestLongMergeIsExact(t *testing.T) {
	tok, rng := Get(), rand.New(rand.NewPCG(5, 6))
	var q mergeQueue
	for range 40 {
		b := hardBytes(tok, rng, 1000+rng.IntN(9000))
		q.encode(tok, b)
		if got, _ := tok.mergeLong(nil, b, nil); !slices.Equal(got, q.tokens()) {
			t.Fatalf("%.100q...: it is not what the heap makes", b)
		}
	}
}

func (q *mergeQueue) tokens() (ids []int32) {
	for i := int32(0); int(i) < len(q.ids); i = q.next[i] {
		ids = append(ids, int32(q.ids[i]))
	}
	return ids
}

func TestRunsAreExact(t *testing.T) {
	tok := Get()
	var q mergeQueue
	for _, letter := range []string{" ", "a", "=", "-", "\n", "\t", "abc", "é", " \n"} {
		for _, n := range []int{shortPiece + 1, 128, 129, 460, 1024, 10_000} {
			b := []byte(strings.Repeat(letter, n))
			q.encode(tok, b)
			if got, _ := tok.mergeLong([]int32{7}, b, nil); !slices.Equal(got[1:], q.tokens()) {
				t.Errorf("%d of %q are not exact", n, letter)
			}
		}
	}
}

// Every token is the encoding of its bytes, which the encoding of long pieces relies on.
func TestTokensAreMerged(t *testing.T) {
	tok := Get()
	var q mergeQueue
	for id := range uint32(ordinary) {
		q.encode(tok, tok.ordinaryBytes(id))
		if got := q.tokens(); len(got) != 1 || got[0] != int32(id) {
			t.Fatalf("the bytes of %d are encoded as %v", id, got)
		}
	}
}

// Encoding also stops inside one long piece, and is otherwise unchanged.
func TestEncodeWhileEndsInAPiece(t *testing.T) {
	tok := Get()
	for _, text := range []string{strings.Repeat("?!<~", 1<<16), strings.Repeat("word ", 1<<15),
		"a<|end|>b " + strings.Repeat("x<|end|>", 1<<14), ""} {
		want := tok.EncodeSpecial(nil, text, nil)
		ids, whole := tok.EncodeSpecialWhile(nil, text, func(int) bool { return true })
		if !whole || !slices.Equal(ids, want) {
			t.Errorf("%.20q: not what EncodeSpecial gives", text)
		}
		const most = 1000
		ids, whole = tok.EncodeSpecialWhile(nil, text, func(n int) bool { return n <= most })
		if whole != (len(want) <= most) || len(ids) > 1<<16 {
			t.Errorf("%.20q: %d of %d tokens, %t", text, len(ids), len(want), whole)
		}
	}
}
