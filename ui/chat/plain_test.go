package chat

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/session"
)

// A paper is what a plain chat has printed.
type paper struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (p *paper) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.Write(b)
}

func (p *paper) until(t *testing.T, what string) string {
	t.Helper()
	text := ""
	hosttest.Until(t, func() string {
		return fmt.Sprintf("no %q at the end of\n%s", what, text)
	}, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		text = p.text.String()
		return strings.HasSuffix(text, what)
	})
	return text
}

func TestPlain(t *testing.T) {
	approval, mark := NewApproval(), "【1†L1】"
	tool := &scriptTool{asks: true, output: []string{"0 1\n", "1 1\n"}}
	tool.cited = []session.Citation{{Start: 4, End: 10, URL: "https://go.dev/a",
		Title: "Factorials"}}
	in, keys := io.Pipe()
	defer keys.Close()
	out := &paper{}
	ended := make(chan error, 1)
	go func() {
		said := fine("Yes." + mark + " Done.")
		ended <- RunPlain(t.Context(), Options{In: in, Out: out, Approval: approval,
			Tools: []session.Tool{tool}, Model: script(calling(said)...)})
	}()
	send := func(line string) {
		if _, err := io.WriteString(keys, line+"\n"); err != nil {
			t.Error(err)
		}
	}
	out.until(t, "\n> ")
	send("/help")
	help := out.until(t, "(Ctrl+C, Ctrl+D)\n\n> ")
	for keys, shown := range map[string]bool{"PgUp": false, "Ctrl+T": false, "Shift+Tab  ": false,
		"!command ": true, "@path#20-45": true, "/undo ": true} {
		if strings.Contains(help, keys) != shown {
			t.Errorf("/help has %q: %v\n%s", keys, !shown, help)
		}
	}
	send("/effort high")
	out.until(t, "[Effort: high, from the next message.]\n\n> ")
	send(`compute \`)
	send("this")
	question := "d refuse in this chat: "
	out.until(t, question)
	for _, line := range []string{"and in Go?", "not yet", "", "Yes", "o"} {
		send(line) // none answers
		out.until(t, question)
	}
	send("y")
	text := out.until(t, "https://go.dev/a\n\n> ")
	if n := strings.Count(text, question); n != 6 {
		t.Errorf("asked %d times", n)
	}
	for _, want := range []string{"[thought for ", "-> python\n  import math\n", "0 1\n1 1\n",
		"Yes." + mark + " Done.\n" + mark + " Factorials "} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	if strings.Contains(text, "\x1b") {
		t.Errorf("an escape sequence is printed: %q", text)
	}
	send("/bye")
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
