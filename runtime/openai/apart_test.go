package openai_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/openai"
	"github.com/ossrun/ossrun/runtime/openai/fields"
	"github.com/ossrun/ossrun/runtime/openai/porttest"
	"github.com/ossrun/ossrun/runtime/records"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
)

// One client cannot learn the prompts of another: neither from the reported cached tokens, nor from
// the computed part of a prompt, which determines the time of its answer.

// who is a client: its address, its key, and the salt of its requests.
type who struct{ from, key, salt string }

// ask sends a prompt by a route; cached is the reported number, rows the number computed for it.
func (p *livePort) ask(w who, path, text string) (cached, rows int) {
	p.t.Helper()
	body := map[string]string{
		"/v1/chat/completions": `"max_tokens":1,"messages":[{"role":"user","content":%q}]`,
		"/v1/completions":      `"max_tokens":1,"prompt":%q`,
		"/v1/responses":        `"max_output_tokens":1,"store":false,"input":%q`,
		"/v1/messages":         `"max_tokens":1,"messages":[{"role":"user","content":%q}]`,
		"/api/chat":            `"stream":false,"options":{"num_predict":1},"messages":[{"role":"user","content":%q}]`,
	}[path]
	body = `{"model":"demo",` + fmt.Sprintf(body, text)
	if w.salt != "" {
		body += fmt.Sprintf(`,"cache_salt":%q`, w.salt)
	}
	before := p.stage.rows.Load()
	r := porttest.Ask(p.t, "POST", p.URL+path, body+"}", "Authorization", "Bearer "+w.key,
		fromAddress, w.from)
	if r.Status != 200 {
		p.t.Fatalf("%s: %d %s", path, r.Status, r.Body)
	}
	m := porttest.Decode(p.t, r.Body)
	for _, at := range [][]any{{"usage", "prompt_tokens_details", "cached_tokens"},
		{"usage", "input_tokens_details", "cached_tokens"},
		{"usage", "cache_read_input_tokens"}} {
		if n, ok := porttest.At(m, at...).(float64); ok {
			cached = int(n)
		}
	}
	return cached, int(p.stage.rows.Load() - before)
}

// guess is an attack on a prompt with a known beginning: at each position it takes the word that
// differs in the count, or else in time, and gives up if none does.
func (p *livePort) guess(w who, path, known string, byTime bool) string {
	found := ""
	for range places {
		best, most, others := "", -1<<30, -1<<30
		p.ask(w, path, known+found) // a guess is remembered too: each is as good as the first
		for _, word := range words {
			score, rows := p.ask(w, path, known+found+word+" or")
			if byTime {
				score = -rows
			}
			if score > most {
				best, most, others = word, score, most
			} else {
				others = max(others, score)
			}
		}
		if most <= others {
			return found
		}
		found += best
	}
	return found
}

var words = []string{" one", " three", " five", " seven", " nine"}

const secret, places = " seven three", 2

func TestPromptsAreNotGuessed(t *testing.T) {
	keyed := func(o *openai.Options) { o.APIKey = "key-1" }
	var n named
	names := withKeys(t, &n, records.NewStore())
	n.add(t, "alice", nil)
	n.add(t, "mallory", nil)
	all := live(t, engine.Settings{})
	for name, c := range map[string]struct {
		change        []func(*openai.Options)
		victim, thief who
		path          string
	}{
		"two addresses": {nil, who{from: "192.168.7.2:40000"}, who{from: "192.168.7.3:40000"},
			"/v1/chat/completions"},
		"this machine by an address": {nil, who{}, who{from: "192.168.7.3:40000"},
			"/v1/completions"},
		"an address by this machine": {nil, who{from: "[fd00::2]:40000"}, who{}, "/v1/messages"},
		"salts with one key": {[]func(*openai.Options){keyed}, who{key: "key-1", salt: "a"},
			who{key: "key-1", salt: "b"}, "/v1/responses"},
		"named keys of one address": {[]func(*openai.Options){names}, who{key: n.keys["alice"]},
			who{key: n.keys["mallory"]}, "/v1/chat/completions"},
		"a named key by the server's": {[]func(*openai.Options){names, keyed},
			who{key: n.keys["alice"]}, who{key: "key-1"}, "/v1/completions"},
		"a salt by none": {[]func(*openai.Options){keyed}, who{key: "key-1", salt: "a"},
			who{key: "key-1"}, "/v1/chat/completions"},
		"none by a salt": {nil, who{}, who{salt: "a"}, "/v1/completions"},
		"an address by a salt that names it": {nil, who{from: "192.168.7.2:40000"},
			who{salt: "192.168.7.2\n"}, "/v1/completions"},
	} {
		t.Run(name, func(t *testing.T) {
			p := all.port(t, c.change...)
			for _, byTime := range []bool{false, true} {
				known := fmt.Sprint(name, byTime, " are the words of my safe, which are")
				p.ask(c.victim, c.path, known+secret+" and that is all.")
				if found := p.guess(c.thief, c.path, known, byTime); found != "" &&
					strings.HasPrefix(secret, found) {
					t.Errorf("by time %v: found%s", byTime, found)
				}
			}
		})
	}
}

// The attack is one: by the same client, whose own prompts these are, it finds every word, but not
// by counts, which are whole pages.
func TestOwnPromptsAreRemembered(t *testing.T) {
	all := live(t, engine.Settings{})
	for name, c := range map[string]struct{ first, second who }{
		"one address":   {who{from: "192.168.7.2:40000"}, who{from: "192.168.7.2:50000"}},
		"this machine":  {who{from: "127.0.0.1:40000"}, who{from: "[::1]:40000"}},
		"a Unix socket": {who{from: "@"}, who{from: "127.0.0.2:40000"}},
		"one salt":      {who{salt: "a"}, who{salt: "a"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := all.port(t)
			for _, path := range []string{"/v1/completions", "/v1/chat/completions"} {
				for byTime, want := range map[bool]string{false: "", true: secret} {
					known := fmt.Sprint(name, byTime, " are the words of my safe, which are")
					p.ask(c.first, path, known+secret+" and that is all.")
					if found := p.guess(c.second, path, known, byTime); found != want {
						t.Errorf("%s, by time %v: found %q", path, byTime, found)
					}
				}
			}
		})
	}
}

// Every route keeps clients apart, also those whose answers have no count.
func TestEveryRouteKeepsClientsApart(t *testing.T) {
	p := live(t, engine.Settings{})
	for at, path := range []string{"/v1/chat/completions", "/v1/completions", "/v1/responses",
		"/v1/messages", "/api/chat"} {
		text := path + " " + strings.Repeat("and so on ", 40)
		for i := range 3 {
			client := who{from: fmt.Sprintf("192.168.%d.%d:1", at, 2+i)}
			if cached, rows := p.ask(client, path, text); cached > 0 || rows < 100 {
				t.Errorf("%s, first request of client %d: %d cached, %d computed", path, i, cached,
					rows)
			}
			if _, rows := p.ask(client, path, text); rows > 40 {
				t.Errorf("%s, second request of client %d: %d computed", path, i, rows)
			}
		}
	}
}

// The prompts of one request wait in one line, and those of another in another; who has the
// server's own key is who runs it.
func TestARequestHasOneShare(t *testing.T) {
	srv, f := porttest.Server(t, sessiontest.Answers("ok"),
		func(o *openai.Options) { o.APIKey = "secret" })
	for range 2 {
		porttest.Ask(t, "POST", srv.URL+"/v1/completions",
			`{"model":"gpt-oss-20b","prompt":["a","b","c"],"n":2}`, "Authorization", "Bearer secret")
	}
	f.Mu.Lock()
	defer f.Mu.Unlock()
	if len(f.Shares) != 12 {
		t.Fatalf("%d turns", len(f.Shares))
	}
	for i, s := range f.Shares {
		if s == nil || s != f.Shares[i/6*6] || s.Client != "" {
			t.Errorf("turn %d has the share %v", i, s)
		}
	}
	if f.Shares[0] == f.Shares[6] {
		t.Error("two requests have one share")
	}
}

func TestCacheSaltIsChecked(t *testing.T) {
	p := live(t, engine.Settings{})
	for _, path := range []string{"/v1/chat/completions", "/v1/completions", "/v1/responses"} {
		for salt, code := range map[string]string{`""`: "", `5`: "invalid_type"} {
			r := porttest.Ask(t, "POST", p.URL+path, `{"messages":[`+porttest.Hello+
				`],"prompt":"x","input":"x","cache_salt":`+salt+`}`)
			porttest.WantFault(t, r, 400, fields.KindInvalid, "cache_salt", code, "cache_salt")
		}
	}
}
