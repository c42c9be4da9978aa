package cli

import (
	"fmt"
	"strings"
	"testing"
)

// serve --stream-interval N puts N tokens into an event of every route. Without the flag the load
// of the machine decides: 64 tokens had 13 events on a busy one.
func TestServeGathersTokens(t *testing.T) {
	t.Parallel()
	eight := serveDemo(t, "--stream-interval", "64")
	for path, body := range map[string]string{
		"/v1/completions":      `"prompt":"How do","ignore_eos":true`,
		"/v1/chat/completions": `"messages":[{"role":"user","content":"Tell me what you know."}]`,
	} {
		_, text := eight.send("POST", path, fmt.Sprintf(
			`{"model":"demo","temperature":0,"max_tokens":64,"stream":true,%s}`, body))
		// the first and the last one are never delayed, nor is a change of what is written
		if n := strings.Count(text, "data: {"); n > 9 || n < 2 {
			t.Errorf("%s: %d events", path, n)
		}
	}
}
