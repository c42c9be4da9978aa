package hub_test

// What cannot be helped, in the right words; what a token opens; addresses that end.

import (
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ossrun/ossrun/models/hub"
	"github.com/ossrun/ossrun/models/hub/hubtest"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// TestErrors checks the sentence of every final error.
func TestErrors(t *testing.T) {
	all := func(k kind, f hubtest.Fault) func(hubtest.Request) hubtest.Fault {
		return func(r hubtest.Request) hubtest.Fault {
			if r.Kind == k {
				return f
			}
			return hubtest.Fault{}
		}
	}
	type config struct {
		repo     func(*hubtest.Repo)
		client   func(*hub.Client)
		options  func(*hub.Options)
		fault    func(hubtest.Request) hubtest.Fault
		contains string
	}
	for name, test := range map[string]config{
		"gated, no token": {repo: func(r *hubtest.Repo) { r.Gated, r.Token = true, "good" },
			contains: "someone/tune is gated: accept its terms at http://"},
		"gated, wrong token": {repo: func(r *hubtest.Repo) { r.Gated, r.Token = true, "good" },
			client: token("other"), contains: "the token of HF_TOKEN has no access"},
		"private, no token": {repo: func(r *hubtest.Repo) { r.Hidden, r.Token = true, "good" },
			contains: "has no repository someone/tune"},
		"unknown token": {client: token("unknown"),
			contains: "does not know the token of HF_TOKEN: make a new one at http://"},
		"no repository": {options: func(o *hub.Options) { o.Repo.Name = "other" },
			contains: "has no repository someone/other that everybody can see"},
		"no such, with token": {options: func(o *hub.Options) { o.Repo.Name = "other" },
			client: token("good"), contains: "has no repository someone/other"},
		"no revision": {options: func(o *hub.Options) { o.Revision = "v3" },
			contains: "has no revision v3 of someone/tune"},
		"bad revision": {options: func(o *hub.Options) { o.Revision = "../x" },
			contains: "is not a revision"},
		"always 503": {fault: all(hubtest.CDN, hubtest.Fault{Status: 503}),
			contains: "cannot be reached: status 503 (attempts: 8)"},
		"always corrupt": {fault: all(hubtest.CDN, hubtest.Fault{Corrupt: true}),
			contains: "arrived damaged twice: its hash is "},
		"always another ETag": {fault: all(hubtest.Get, hubtest.Fault{ETag: "another"}),
			contains: "changes on the hub while it is fetched"},
		"always another size": {fault: all(hubtest.CDN, hubtest.Fault{Total: 7}),
			contains: "changes on the hub while it is fetched"},
		"wrong size": {fault: all(hubtest.Head, hubtest.Fault{ETag: "../../x"}),
			contains: "names no content"},
		"only gguf": {repo: func(r *hubtest.Repo) {
			r.Files = map[string]*hubtest.File{"x.gguf": hubtest.Text("GGUF")}
		}, contains: "holds GGUF files"},
		"no weights": {repo: func(r *hubtest.Repo) {
			r.Files = map[string]*hubtest.File{"config.json": hubtest.Text("{}")}
		}, contains: "has no model*.safetensors"},
		"offline": {client: func(c *hub.Client) { c.Offline = true },
			contains: "nothing is fetched offline"},
		"no hub": {client: func(c *hub.Client) { c.Endpoint = "http://127.0.0.1:1" },
			contains: "127.0.0.1:1 cannot be reached: connect"},
		"not a hub": {client: func(c *hub.Client) { c.Endpoint += "/elsewhere" },
			contains: "has no revision main"},
	} {
		t.Run(name, func(t *testing.T) {
			r := sample(200_000)
			if test.repo != nil {
				test.repo(r)
			}
			server, client, o := serve(t, r)
			server.Fault = test.fault
			if test.client != nil {
				test.client(client)
			}
			if test.options != nil {
				test.options(&o)
			}
			_, err := client.Pull(t.Context(), o)
			if err == nil || !strings.Contains(err.Error(), test.contains) ||
				strings.Contains(err.Error(), "\n") {
				t.Errorf("the error is\n      %v\nwant: ...%s...", err, test.contains)
			}
			if server.Leaked() {
				t.Error("the store was sent the token")
			}
			if ref, err := os.ReadFile(filepath.Join(o.Root, tune.Folder(), "refs",
				"main")); err == nil {
				t.Errorf("a pull that failed wrote refs/main: %s", ref)
			}
		})
	}
}

func token(text string) func(*hub.Client) {
	return func(c *hub.Client) { c.Token, c.TokenFrom = text, "HF_TOKEN" }
}

// TestToken opens what a token opens, without giving it to the store.
func TestToken(t *testing.T) {
	for _, gated := range []bool{true, false} {
		r := sample(200_000)
		r.Gated, r.Hidden, r.Token = gated, !gated, "good"
		server, client, o := serve(t, r)
		token("good")(client)
		hosttest.Must(client.Pull(t.Context(), o))(t)
		whole(t, o, r)
		if server.Requests(hubtest.CDN, "") == 0 || server.Leaked() {
			t.Errorf("the store had %d requests, and was sent the token: %v",
				server.Requests(hubtest.CDN, ""), server.Leaked())
		}
	}
}

// TestExpired lets every address end in the middle of a pull.
func TestExpired(t *testing.T) {
	r := sample(4 << 20)
	server, client, o := serve(t, r)
	var once atomic.Int64
	server.Fault = func(q hubtest.Request) hubtest.Fault {
		if q.Kind == hubtest.CDN && once.Add(1)%40 == 0 {
			server.Expire()
		}
		return hubtest.Fault{}
	}
	hosttest.Must(client.Pull(t.Context(), o))(t)
	whole(t, o, r)
}
