package token

// Speed and its worst case. There is no input that makes encoding slow beyond a constant: long
// pieces are the danger, as byte pair encoding done the simple way is quadratic in them.

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ossrun/ossrun/harmony/internal/goldentest"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

const megabyte = 1 << 20

var textFile = flag.String("text", "",
	"benchmark this `FILE` as the mixed text (testdata/compare_tiktoken.py does)")

// mixedText is prose, code and many scripts, repeated to n bytes or more: the hand-written groups
// of the goldens.
func mixedText(tb testing.TB, n int) string {
	tb.Helper()
	if *textFile != "" {
		text := hosttest.Must(os.ReadFile(*textFile))(tb)
		return string(text)
	}
	var sample strings.Builder
	goldentest.Each(tb, goldens+"encode.jsonl.gz", func(tb testing.TB, c encodeCase) {
		switch c.Group {
		case "special", "whitespace", "unicode16", "casing", "punct", "numbers":
		default:
			if !strings.HasPrefix(c.Group, "fuzz") && c.Group != "vocab_glue" && c.Unit == "" {
				sample.WriteString(c.Text + "\n")
			}
		}
	})
	return strings.Repeat(sample.String(), 1+n/sample.Len())
}

// hardTexts are a megabyte each of a single piece or of text that splits badly.
func hardTexts() map[string]string {
	rng := rand.New(rand.NewPCG(1, 2))
	random := func(lo, n rune) string {
		var s strings.Builder
		for s.Len() < megabyte {
			s.WriteRune(lo + rng.Int32N(n))
		}
		return s.String()
	}
	fill := func(unit string) string { return strings.Repeat(unit, 1+megabyte/len(unit)) }
	bytes := make([]byte, megabyte)
	for i := range bytes {
		bytes[i] = byte(rng.Uint32())
	}
	return map[string]string{
		"one letter":         fill("a"),
		"one capital":        fill("A"),
		"spaces":             fill(" "),
		"spaces then a word": fill(" ") + "x",
		"line break, spaces": "\n" + fill(" ") + "x",
		"line breaks":        fill("\n"),
		"tabs":               fill("\t"),
		"exclamation marks":  fill("!"),
		"emoji joiners":      fill("\u200d"),
		"emoji family":       fill("👨\u200d👩\u200d👧\u200d👦"),
		"accents":            fill("\u0301"),
		"letter, capitals":   "ª" + fill("Z"),
		"digits":             fill("7"),
		"quotes":             fill("'"),
		"two letters":        fill("ab"),
		"random a-z":         random('a', 26),
		"random A-Z":         random('A', 26),
		"random CJK":         random(0x4E00, 0x5000),
		"random Hangul":      random(0xAC00, 11172),
		"random punctuation": random('!', 15),
		"random cuneiform":   random(0x12000, 0x300),
		"special names":      fill("<|end|>"),
		"open specials":      fill("<|"),
		"not UTF-8":          string(bytes),
		"half characters":    fill("\xf0\x9f\x98"),
	}
}

func encodeHard(tok *Tokenizer, dst []int32, name, text string) []int32 {
	switch name {
	case "special names", "open specials":
		return tok.EncodeSpecial(dst, text, nil)
	case "not UTF-8", "half characters":
		return tok.EncodeBytes(dst, []byte(text))
	}
	return tok.Encode(dst, text)
}

// fastest is the computing time of the best of several runs, as the machine has other work.
func fastest(runs int, f func()) time.Duration {
	best := time.Duration(1 << 62)
	for range runs {
		from := hosttest.ProcessTime()
		f()
		best = min(best, max(hosttest.ProcessTime()-from, 1))
	}
	return best
}

// A megabyte of any text is encoded: quadratic work would exceed a test's time limit. proceed is
// called in proportion to the length.
func TestNoInputIsQuadratic(t *testing.T) {
	tok := Get()
	asks := func(text string) (n int) {
		tok.EncodeWhile(nil, text, func(int) bool { n++; return true })
		return n
	}
	for name, text := range hardTexts() {
		encodeHard(tok, nil, name, text)
		part, whole := asks(text[:len(text)/8]), asks(text)
		if whole > 9*(part+1) || whole > 2*len(text)/min(checkTokens, checkPieces) {
			t.Errorf("%s: %d times asked, %d for an eighth", name, whole, part)
		}
	}
}

// On a quiet machine no text is more than 12 times slower than ordinary text, which is 2 MB/s where
// that has 24, and a byte of a megabyte takes at most 5 times as long as one of an eighth of it.
func TestMeasureNoInputIsQuadratic(t *testing.T) {
	if os.Getenv("OSSRUN_MEASURE") == "" {
		t.Skip("figures of a quiet machine: OSSRUN_MEASURE=1")
	}
	tok := Get()
	var ids []int32
	perByte := func(name, text string) float64 {
		return float64(fastest(4,
			func() { ids = encodeHard(tok, ids[:0], name, text) })) / float64(len(text))
	}
	ordinarily := perByte("mixed", mixedText(t, 2*megabyte))
	for name, text := range hardTexts() {
		part, whole := perByte(name, text[:len(text)/8]), perByte(name, text)
		t.Logf("%-20s %6.1f MB/CPU-s, ordinary text %.1f", name, 1e3/whole, 1e3/ordinarily)
		if whole > 12*ordinarily || whole > 5*part {
			t.Errorf("%s: %.1f MB/s, %.1f for an eighth of it", name, 1e3/whole, 1e3/part)
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	tok := Get()
	run := func(name, text string) {
		b.Run(strings.ReplaceAll(name, " ", "_"), func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			var ids []int32
			for b.Loop() {
				ids = encodeHard(tok, ids[:0], name, text)
			}
		})
	}
	run("mixed", mixedText(b, 5*megabyte))
	for name, text := range hardTexts() {
		run("1MB_"+name, text)
	}
}

func BenchmarkDecode(b *testing.B) {
	tok := Get()
	text := mixedText(b, megabyte)
	ids := tok.Encode(nil, text)
	b.SetBytes(int64(len(text)))
	var out []byte
	for b.Loop() {
		out = tok.Decode(out[:0], ids)
	}
}

func BenchmarkLoad(b *testing.B) {
	for b.Loop() {
		hosttest.Must(load())(b)
	}
}

func ExampleTokenizer_Encode() {
	fmt.Println(Get().Encode(nil, "Hello, world!"))
	// Output: [13225 11 2375 0]
}

// What testdata/compare_tiktoken.py reads. Without -text there is nothing to compare.
func TestCountIDs(t *testing.T) {
	if *textFile == "" {
		t.Skip("no -text FILE")
	}
	tok, text := Get(), mixedText(t, 0)
	var ids []int32
	best := fastest(5, func() { ids = tok.Encode(ids[:0], text) })
	t.Logf("%d ids, best of 5: %.1f MB/CPU-s", len(ids), float64(len(text))/1e6/best.Seconds())
}
