//go:build unix

package cli

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/harmony"
	"github.com/ossrun/ossrun/runtime/remote"
	"github.com/ossrun/ossrun/runtime/session"
)

// A tool of this process, called over our own port by the real model.
func TestToolOverAnEndpoint(t *testing.T) {
	t.Parallel()
	s := askDemo(t)
	port, err := remote.Open(t.Context(), s.url, "", func(line string) { t.Error(line) })
	if err != nil {
		t.Fatal(err)
	}
	defer port.Close()
	model, err := port.Get(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	weather := &weatherTool{}
	turn, err := session.StartWithTools(t.Context(), model, session.Request{Effort: "medium",
		Messages: []session.Message{session.User("What is the weather in Paris?")}},
		[]session.Tool{weather}, session.ToolOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, ok := turn.Next(); ok; _, ok = turn.Next() {
	}
	r := turn.Result()
	if len(weather.asked) != 1 || weather.asked[0] != "Paris" || r.Answer == "" ||
		r.Reasoning == "" || r.Done.Finish != session.FinishStop || r.Done.Usage.Prompt == 0 {
		t.Errorf("asked %q: %+v", weather.asked, r)
	}
}

type weatherTool struct{ asked []string }

func (*weatherTool) Offer(r *session.Request) {
	r.Functions = append(r.Functions, harmony.ToolDescription{Name: "get_weather",
		Description: "Weather of a city", Parameters: []byte(`{"type":"object","properties":` +
			`{"city":{"type":"string"}},"required":["city"]}`)})
}
func (*weatherTool) Runs(recipient string) bool { return recipient == "functions.get_weather" }
func (*weatherTool) Close() error               { return nil }
func (w *weatherTool) Run(_ context.Context, c session.Call, _ func(string)) (session.ToolResult,
	error) {
	var given struct{ City string }
	err := json.Unmarshal([]byte(c.Arguments), &given)
	w.asked = append(w.asked, given.City)
	return session.ToolResult{Text: "18 degrees, sunny"}, err
}

// The chat over our own port.
func TestChatOverAnEndpoint(t *testing.T) {
	t.Parallel()
	s := askDemo(t)
	term, cmd := startInTerminal(t, 130, 30, "chat", "--endpoint", s.url, "--temperature", "0")
	term.wait("ossrun · demo", s.url, "16,384 tokens of context", "medium effort")
	term.send("What is ossrun?\r")
	term.until("the first answer", answered(1))
	term.send("And how do I stop it?\r")
	screen := term.until("the second answer", answered(2))
	if !strings.Contains(screen, "tokens from cache") || strings.Contains(screen, "counts no tokens") {
		t.Errorf("usage:\n%s", screen)
	}
	term.send("/model ")
	term.wait("demo  16,384 tokens of context")
	term.send("\t")
	term.wait("/model demo")
	term.send("\x15\x03")
	if err := cmd.Wait(); err != nil {
		t.Errorf("the chat ended with %v", err)
	}
	said, err := sameHome(cmd, "chat", "--endpoint", s.url+"/v1", "--temperature", "0",
		"How do I serve an OpenAI API?").Output()
	if err != nil || !strings.Contains(string(said), "ossrun serve") {
		t.Errorf("%s: %v", said, err)
	}
	schema := filepath.Join(t.TempDir(), "schema.json")
	write(t, schema, `{"type":"object","properties":{"command":{"type":`+
		`"string","enum":["serve","chat"]}},"required":["command"],"additionalProperties":false}`)
	said, err = sameHome(cmd, "chat", "--endpoint", s.url, "--temperature", "0", "--schema", schema,
		"How do I serve an OpenAI API?").CombinedOutput()
	if held := strings.Join(strings.Fields(string(said)), ""); err != nil ||
		held != `{"command":"serve"}` && held != `{"command":"chat"}` {
		t.Errorf("held to a schema: %s: %v", said, err)
	}
	for want, args := range map[string][]string{
		"http://127.0.0.1:1 cannot be used: connection refused": {"--endpoint", "http://127.0.0.1:1"},
		"Remove --dense":           {"--endpoint", s.url, "--dense", "q8"},
		"unknown model \"absent\"": {"--endpoint", s.url, "--model", "absent"},
	} {
		c := sameHome(cmd, append(append([]string{"chat"}, args...), "hello")...)
		if said, err := c.CombinedOutput(); err == nil || !strings.Contains(string(said), want) {
			t.Errorf("%q: %s: %v", args, said, err)
		}
	}
}
