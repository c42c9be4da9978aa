//go:build unix

package main

import (
	"context"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ossrun/ossrun/ui/chat/vt"
)

func TestSVG(t *testing.T) {
	s := vt.New(20, 3)
	if _, err := s.Write(
		[]byte("\x1b[1;36ma <b> & c\x1b[m  far\r\n日本 x\r\n\x1b[7m \x1b[m\x1b[2;3mdim\x1b[m")); err != nil {
		t.Fatal(err)
	}
	out := svg(s.Rows(), `the "title"`)
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

func TestRun(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out.svg")
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	program := `stty raw -echo; printf 'Ask something\r\n'; dd bs=1 count=4 2>/dev/null >/dev/null; printf 'Esc stops'; sleep 2; printf '\rthe answer  '; exec cat`
	if err := run(ctx, out, []string{"why"}, "", "t", 40, 6,
		[]string{"sh", "-c", program}); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(b), ">the answer<") {
		t.Errorf("no answer in the picture:\n%s", b)
	}
	if err := run(ctx, out, nil, "", "t", 40, 6, []string{"sh", "-c", "echo broken"}); err == nil ||
		!strings.Contains(err.Error(), "broken") {
		t.Errorf("a program that ends gives %v", err)
	}
}
