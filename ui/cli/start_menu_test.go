package cli

import (
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/creack/pty"
)

// TestStartMenu: keys on a terminal lead to a verb or nowhere; narrow terminals show whole rows.
func TestStartMenu(t *testing.T) {
	for _, at := range []struct {
		keys  string
		width uint16
		want  string
		not   string
	}{
		{"\x1b[A\r", 40, `an OpenAI port for programs\s*\n(?s:.*)Commands:`, "ready"},
		{"\x1b[B\x1b[B\x1b[A\t\t\t\r", 80, `Commands:`, "ready"},
		{"\x1b[Z\r", 200, `↑↓ choose, Enter starts, Esc leaves(?s:.*)Commands:`, "ready"},
		{"\x1b[Bq", 40, `❯ `, "Commands:|ready"},
		{"\x1b", 12, `❯ chat  +\r?\n`, "Commands:|ready"},
	} {
		near, far, err := pty.Open()
		if err != nil {
			t.Fatal(err)
		}
		if err := pty.Setsize(far, &pty.Winsize{Rows: 12, Cols: at.width}); err != nil {
			t.Fatal(err)
		}
		shown, ended := &heard{}, make(chan int)
		copied := make(chan struct{})
		go func() {
			_, _ = io.Copy(shown, near) // it ends with the other end
			close(copied)
		}()
		go func() {
			ended <- Run(t.Context(), []string{"ossrun"}, Terminal{In: far, Out: far, Err: far})
		}()
		shown.until(t, "chat")
		if _, err := io.WriteString(near, at.keys); err != nil {
			t.Fatal(err)
		}
		if code := <-ended; code != exitOK {
			t.Errorf("%q: exit code %d", at.keys, code)
		}
		far.Close()
		<-copied
		near.Close()
		text := regexp.MustCompile("\x1b\\[[0-9;?]*[A-Za-z]").ReplaceAllString(shown.String(), "")
		if !regexp.MustCompile(at.want).MatchString(text) ||
			at.not != "" && regexp.MustCompile(at.not).MatchString(text) {
			t.Errorf("%q in %d columns: want %s, not %q:\n%s", at.keys, at.width, at.want, at.not,
				text)
		}
	}
	var piped strings.Builder
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	code := Run(t.Context(), []string{"ossrun"}, Terminal{In: null, Out: &piped, Err: &piped})
	if code != exitOK || !strings.Contains(piped.String(), "Commands:") {
		t.Errorf("in a pipe: %d %s", code, piped.String())
	}
}
