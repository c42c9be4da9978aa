package token

// Hashes over 13 million encodings: every token, every code point in eight contexts, random rows of
// tokens.

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"hash"
	"os"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

type bulk struct {
	Vocabulary string `json:"vocab_bytes_sha256"`
	Self       struct {
		Block  int
		Hashes []string
	} `json:"vocab_self"`
	CodePoints struct {
		Block    int
		Contexts []struct {
			Context string
			Hashes  []string
		}
	} `json:"code_points"`
	Glue struct {
		Seed   uint64
		Block  int
		NValid []int `json:"n_valid"`
		Hashes []string
	} `json:"vocab_glue"`
}

func loadBulk(t *testing.T) (b bulk) {
	t.Helper()
	raw, err := os.ReadFile(goldens + "bulk.json")
	if err == nil {
		err = json.Unmarshal(raw, &b)
	}
	hosttest.Check(t, err)
	return b
}

// The vocabulary is the published one, byte for byte.
func TestVocabularyHash(t *testing.T) {
	tok, h := Get(), sha256.New()
	for id := range int32(ordinary) {
		b := tok.TokenBytes(id)
		binary.Write(h, binary.LittleEndian, uint32(len(b)))
		h.Write(b)
		if len(b) > longestToken {
			t.Fatalf("token %d has %d bytes", id, len(b))
		}
	}
	if got, want := hex.EncodeToString(h.Sum(nil)), loadBulk(t).Vocabulary; got != want {
		t.Fatalf("vocabulary hash %s, want %s", got, want)
	}
	if len(tok.text) != textSize {
		t.Fatalf("%d bytes of text, want %d", len(tok.text), textSize)
	}
}

// encodings hashes encodings in the form of bulk.json.
type encodings struct {
	hash hash.Hash
	ids  []int32
	row  []byte
}

func (e *encodings) add(text []byte) {
	e.ids = Get().Encode(e.ids[:0], string(text))
	e.row = binary.LittleEndian.AppendUint32(e.row[:0], uint32(len(e.ids)))
	for _, id := range e.ids {
		e.row = binary.LittleEndian.AppendUint32(e.row, uint32(id))
	}
	e.hash.Write(e.row)
}

func (e *encodings) sum() string { return hex.EncodeToString(e.hash.Sum(nil))[:16] }

func TestBulkVocabulary(t *testing.T) {
	b := loadBulk(t)
	for k, want := range b.Self.Hashes {
		e := encodings{hash: sha256.New()}
		for id := k * b.Self.Block; id < min((k+1)*b.Self.Block, ordinary); id++ {
			if text := Get().TokenBytes(int32(id)); utf8.Valid(text) {
				e.add(text)
			}
		}
		if got := e.sum(); got != want {
			t.Errorf("block %d: %s, want %s", k, got, want)
		}
	}
}

func TestBulkCodePoints(t *testing.T) {
	b := loadBulk(t)
	stride := 1
	if testing.Short() {
		stride = 16
	}
	var wg sync.WaitGroup
	for _, c := range b.CodePoints.Contexts {
		wg.Go(func() {
			for k := 0; k < len(c.Hashes); k += stride {
				e := encodings{hash: sha256.New()}
				var text []byte
				for r := rune(k * b.CodePoints.Block); r < rune((k+1)*b.CodePoints.Block); r++ {
					if utf8.ValidRune(r) {
						text = append(text[:0], strings.ReplaceAll(c.Context, "@", string(r))...)
						e.add(text)
					}
				}
				if got := e.sum(); got != c.Hashes[k] {
					t.Errorf("context %q, block %d: %s, want %s", c.Context, k, got, c.Hashes[k])
				}
			}
		})
	}
	wg.Wait()
}

func TestBulkGlue(t *testing.T) {
	b := loadBulk(t)
	state := b.Glue.Seed
	next := func() uint64 {
		state = state*6364136223846793005 + 1442695040888963407
		return state >> 33
	}
	for k, want := range b.Glue.Hashes {
		e := encodings{hash: sha256.New()}
		valid := 0
		for range b.Glue.Block {
			var text []byte
			for n := 1 + next()%12; n > 0; n-- {
				text = append(text, Get().TokenBytes(int32(next()%ordinary))...)
			}
			if utf8.Valid(text) {
				valid++
				e.add(text)
			}
		}
		if got := e.sum(); got != want || valid != b.Glue.NValid[k] {
			t.Errorf("block %d: %s of %d texts, want %s of %d", k, got, valid, want,
				b.Glue.NValid[k])
		}
	}
}

// The embedded classes are those of the published table.
func TestUnicodeClasses(t *testing.T) {
	raw := hosttest.Must(os.ReadFile(goldens + "unicode_classes.json"))(t)
	var table struct{ Ranges [][3]int }
	hosttest.Check(t, json.Unmarshal(raw, &table))
	var want [codePoints]class
	for _, r := range table.Ranges {
		for c := r[0]; c <= r[1]; c++ {
			want[c] = class(r[2])
		}
	}
	for r := range rune(codePoints) {
		if got := Get().classes.lookup(r); got != want[r] {
			t.Fatalf("%U is in class %d, want %d", r, got, want[r])
		}
	}
}
