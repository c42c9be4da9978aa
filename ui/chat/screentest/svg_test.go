package screentest

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestSVG(t *testing.T) {
	s := New(20, 3)
	if _, err := s.Write(
		[]byte("\x1b[1;36ma <b> & c\x1b[m  far\r\n日本 x\r\n\x1b[7m \x1b[m\x1b[2;3mdim\x1b[m")); err != nil {
		t.Fatal(err)
	}
	out := s.SVG(`the "title"`)
	var texts []string
	d := xml.NewDecoder(strings.NewReader(out))
	for {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("not well formed: %v\n%s", err, out)
		}
		if c, ok := tok.(xml.CharData); ok && strings.TrimSpace(string(c)) != "" {
			texts = append(texts, string(c))
		}
	}
	if got, want := strings.Join(texts, "|"), `the "title"|a <b> & c|far|日本 x|dim`; got != want {
		t.Errorf("texts %q, want %q", got, want)
	}
	for _, want := range []string{
		`font-weight="bold">a &lt;b&gt;`, `fill="` + theme[6] + `"`,
		`textLength="50.4" lengthAdjust="spacingAndGlyphs" fill="` + foreground + `">日本 x`,
		`width="8.4" height="18" fill="` + foreground + `"/>`,
		`font-style="italic" opacity=".6">dim`,
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %s in\n%s", want, out)
		}
	}
}
