package token

// The goldens in testdata/tokenizer were made with OpenAI's tiktoken; its README says how.

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/harmony/internal/goldentest"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

const goldens = "../../testdata/tokenizer/"

type encodeCase struct {
	ID, Group  string
	Text, Unit string
	Count      int
	IDs        []int32 `json:"ids"`
	NIDs       int     `json:"n_ids"`
	Hash       string  `json:"ids_sha256"`
	Special    []int32 `json:"ids_special"`
	Subset     []int32 `json:"ids_subset"`
}

func TestEncodeGolden(t *testing.T) {
	tok := Get()
	goldentest.Each(t, goldens+"encode.jsonl.gz", func(t testing.TB, c encodeCase) {
		text := c.Text + strings.Repeat(c.Unit, c.Count)
		ids := tok.Encode(nil, text)
		if c.IDs != nil && !slices.Equal(ids, c.IDs) {
			t.Errorf("%s: %q: %v, want %v", c.ID, text, ids, c.IDs)
		}
		if c.IDs == nil && (len(ids) != c.NIDs || hex.EncodeToString(sum256(ids)) != c.Hash) {
			t.Errorf("%s: %d ids, want %d of hash %s", c.ID, len(ids), c.NIDs, c.Hash)
		}
		if got := string(tok.Decode(nil, ids)); got != text {
			t.Errorf("%s: decoded %.200q", c.ID, got)
		}
		if strings.Contains(text, "<|") != (c.Special != nil) {
			t.Fatalf("%s: special ids missing", c.ID)
		}
		if c.Special == nil {
			return
		}
		if got := tok.EncodeSpecial(nil, text, nil); !slices.Equal(got, c.Special) {
			t.Errorf("%s: %q: special %v, want %v", c.ID, text, got, c.Special)
		}
		some := func(name string) bool { return name == "<|end|>" || name == "<|message|>" }
		if got := tok.EncodeSpecial(nil, text, some); !slices.Equal(got, c.Subset) {
			t.Errorf("%s: %q: subset %v, want %v", c.ID, text, got, c.Subset)
		}
		none := func(string) bool { return false }
		if got := tok.EncodeSpecial(nil, text, none); !slices.Equal(got, ids) {
			t.Errorf("%s: %q: with nothing allowed %v, want %v", c.ID, text, got, ids)
		}
	})
}

func sum256(ids []int32) []byte {
	h := sha256.New()
	binary.Write(h, binary.LittleEndian, ids)
	return h.Sum(nil)
}

func TestEncodeBytesGolden(t *testing.T) {
	tok := Get()
	goldentest.Each(t, goldens+"encode_bytes.jsonl.gz", func(t testing.TB, c struct {
		ID       string
		Bytes    string  `json:"bytes_b64"`
		Text     string  `json:"text_replaced"`
		Replaced []int32 `json:"ids_replaced"`
		Exact    []int32 `json:"ids_bytes"`
	}) {
		b := hosttest.Must(base64.StdEncoding.DecodeString(c.Bytes))(t)
		if got := Text(b); got != c.Text {
			t.Errorf("%s: text %q, want %q", c.ID, got, c.Text)
		}
		if got := tok.Encode(nil, string(b)); !slices.Equal(got, c.Replaced) {
			t.Errorf("%s: %q: %v, want %v", c.ID, b, got, c.Replaced)
		}
		if got := tok.EncodeBytes(nil, b); !slices.Equal(got, c.Exact) {
			t.Errorf("%s: %q: exact %v, want %v", c.ID, b, got, c.Exact)
		}
		if got := tok.Decode(nil, c.Exact); !bytes.Equal(got, b) {
			t.Errorf("%s: decoded %q, want %q", c.ID, got, b)
		}
	})
}

func TestDecodeGolden(t *testing.T) {
	tok := Get()
	goldentest.Each(t, goldens+"decode.jsonl.gz", func(t testing.TB, c struct {
		ID    string
		IDs   []int32 `json:"ids"`
		Bytes string  `json:"bytes_b64"`
		Text  string  `json:"text_replaced"`
	}) {
		want := hosttest.Must(base64.StdEncoding.DecodeString(c.Bytes))(t)
		got := tok.Decode(nil, c.IDs)
		if !bytes.Equal(got, want) || Text(got) != c.Text {
			t.Errorf("%s: %q %q, want %q %q", c.ID, got, Text(got), want, c.Text)
		}
		var d StreamDecoder
		var text strings.Builder
		for _, id := range c.IDs {
			text.WriteString(d.Push(id))
		}
		text.WriteString(d.Flush())
		if text.String() != c.Text {
			t.Errorf("%s: streamed %q, want %q", c.ID, text.String(), c.Text)
		}
	})
}
