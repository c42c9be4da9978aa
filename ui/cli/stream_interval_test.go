package cli

import (
	"fmt"
	"strings"
	"testing"
)

// serve --stream-interval N puts N tokens into an event of every route, completions too, where each
// token is sent by itself without the flag.
func TestServeGathersTokens(t *testing.T) {
	t.Parallel()
	one, eight := askDemo(t), serveDemo(t, "--stream-interval", "8")
	for path, body := range map[string]string{
		"/v1/completions":      `"prompt":"How do","ignore_eos":true`,
		"/v1/chat/completions": `"messages":[{"role":"user","content":"Tell me what you know."}]`,
	} {
		events := func(s *served) int {
			_, text := s.send("POST", path, fmt.Sprintf(
				`{"model":"demo","temperature":0,"max_tokens":64,"stream":true,%s}`, body))
			return strings.Count(text, "data: {")
		}
		// the first and the last ones are never delayed, nor is a change of what is written
		if n := events(eight); n > 16 || n < 4 {
			t.Errorf("%s: %d events", path, n)
		}
		if n := events(one); path == "/v1/completions" && n < 20 {
			t.Errorf("%s: %d events without the flag", path, n)
		}
	}
}
