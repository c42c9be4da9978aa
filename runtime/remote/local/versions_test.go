package local

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/adrg/xdg"

	"github.com/ossrun/ossrun/runtime/sched"
	"github.com/ossrun/ossrun/runtime/session"
)

// recorded are the lines that processes of this protocol have said to each other.
func recorded(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("../../../testdata/versions/socket-%d/%s.json", Protocol, name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// The messages of a protocol version never change. If this fails, raise Protocol and record the new
// messages.
func TestAProtocolSaysTheSame(t *testing.T) {
	done := session.Done{Finish: session.FinishStop, StopString: "x",
		Usage:  session.Usage{Prompt: 1, Cached: 2, Completion: 3, Reasoning: 4},
		Timing: sched.Timing{TTFT: time.Second, Decode: time.Minute, Generated: 3}}
	lp := []session.TokenLogprob{{Token: "\uFFFD", Bytes: []byte{0xff}, Logprob: -0.25,
		Top: []session.TokenLogprob{{Token: "b", Bytes: []byte("b"), Logprob: -1}}}}
	result := session.Result{Reasoning: "think", Commentary: "c", Answer: "\u2028<&>",
		Calls:    []session.Call{{ID: "call_2", Name: "f", Recipient: "functions.f", Arguments: "{}"}},
		Messages: []session.Message{session.FunctionCall("call_2", "f", "{}")},
		Tokens:   []int32{200005, 1}, Relaxed: []string{"r"}, Done: done}
	lines := []any{turnLine{Started: true}}
	for _, e := range []session.Event{session.Reasoning{Text: "think"}, session.Commentary{Text: "c"},
		session.CallStart{ID: "call_2", Name: "f", Recipient: "functions.f"},
		session.CallArguments{Text: "{}"}, session.CallEnd{Arguments: "{}"},
		session.Answer{Text: "\u2028<&>", Logprobs: lp}} {
		lines = append(lines, eventLine(e))
	}
	for name, list := range map[string][]any{
		"status-asked": {order{Do: doStatus}},
		"turn-asked": {order{Do: doTurn, Model: "m", Request: &session.Request{
			Messages: []session.Message{session.User("Hello!")}, Effort: "high"}}},
		"turn-said": append(lines, turnLine{Result: &result})} {
		var b bytes.Buffer
		write := json.NewEncoder(&b)
		write.SetEscapeHTML(false)
		for _, line := range list {
			if err := write.Encode(line); err != nil {
				t.Fatal(err)
			}
		}
		if want := recorded(t, name); b.String() != string(want) {
			t.Errorf("%s is\n%swas\n%s", name, b.String(), want)
		}
	}
}

// How a server is can be read whatever its protocol: who lists servers tells which it can join, and
// a chat that wants the model of one of another version says that it cannot.
func TestServersOfOtherVersionsAreListed(t *testing.T) {
	t.Cleanup(xdg.Reload) // once the variable is what it was
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	xdg.Reload()
	folder, err := Folder()
	if err != nil {
		t.Fatal(err)
	}
	for protocol, text := range map[int]string{3: string(recorded(t, "status-said")),
		99: `{"protocol":99,"version":"9.0","pid":7,"state":"new","models":[{"name":"n","cards":[1]}],` +
			`"more":{}}`} {
		l, err := net.Listen("unix", filepath.Join(folder, fmt.Sprint(protocol, suffix)))
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		go func() {
			for conn, err := l.Accept(); err == nil; conn, err = l.Accept() {
				var o order
				if json.NewDecoder(conn).Decode(&o) == nil && o.Do == doStatus {
					fmt.Fprintln(conn, text)
				}
				conn.Close()
			}
		}()
	}
	list, err := Servers(t.Context(), folder)
	if err != nil || len(list) != 2 {
		t.Fatalf("%+v, %v", list, err)
	}
	for _, s := range list {
		if len(s.Models) != 1 || s.Models[0].Name != map[int]string{3: "m", 99: "n"}[s.Protocol] {
			t.Errorf("%+v", s)
		}
	}
	var told []string
	tell := func(line string) { told = append(told, line) }
	if c := (Opener{}).join(t.Context(), "m", tell); c == nil || c.Server.Protocol != 3 ||
		told != nil {
		t.Errorf("%+v, %q", c, told)
	}
	if c := (Opener{}).join(t.Context(), "n", tell); c != nil || len(told) != 1 || told[0] !=
		"process 7 has n loaded and is an ossrun of another version, which cannot be joined" {
		t.Errorf("%+v, %q", c, told)
	}
}
