package hub_test

// How the environment sets a client up, as Hugging Face's own programs read it, and that a proxy is
// used.

import (
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ossrun/ossrun/models/hub"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

func TestFromEnvironment(t *testing.T) {
	home := t.TempDir()
	hosttest.Check(t, os.WriteFile(filepath.Join(home, "token"), []byte("of-the-home\n"), 0o600))
	elsewhere := filepath.Join(t.TempDir(), "mine")
	hosttest.Check(t, os.WriteFile(elsewhere, []byte("of-a-file"), 0o600))
	for name, test := range map[string]struct {
		set                   map[string]string
		endpoint, token, from string
		offline               bool
	}{
		"nothing": {map[string]string{"HF_HOME": t.TempDir()}, "https://huggingface.co", "",
			"", false},
		"a mirror": {map[string]string{"HF_HOME": t.TempDir(),
			"HF_ENDPOINT": "https://mirror.example/hf/"}, "https://mirror.example/hf", "", "",
			false},
		"HF_TOKEN": {map[string]string{"HF_HOME": home, "HF_TOKEN": " t1 "},
			"https://huggingface.co", "t1", "HF_TOKEN", false},
		"the old name": {map[string]string{"HF_HOME": home, "HUGGING_FACE_HUB_TOKEN": "t2"},
			"https://huggingface.co", "t2", "HUGGING_FACE_HUB_TOKEN", false},
		"auth login": {map[string]string{"HF_HOME": home}, "https://huggingface.co",
			"of-the-home", filepath.Join(home, "token"), false},
		"a token file": {map[string]string{"HF_HOME": home, "HF_TOKEN_PATH": elsewhere},
			"https://huggingface.co", "of-a-file", elsewhere, false},
		"offline": {map[string]string{"HF_HOME": t.TempDir(), "HF_HUB_OFFLINE": "yes"},
			"https://huggingface.co", "", "", true},
		"offline for transformers": {map[string]string{"HF_HOME": t.TempDir(),
			"TRANSFORMERS_OFFLINE": "1"}, "https://huggingface.co", "", "", true},
		"not offline": {map[string]string{"HF_HOME": t.TempDir(), "HF_HUB_OFFLINE": "0"},
			"https://huggingface.co", "", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			for _, variable := range []string{"HF_ENDPOINT", "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN",
				"HF_TOKEN_PATH", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_HOME"} {
				t.Setenv(variable, test.set[variable])
			}
			c := hub.FromEnvironment()
			if c.Endpoint != test.endpoint || c.Token != test.token || c.TokenFrom != test.from ||
				c.Offline != test.offline {
				t.Errorf("the client is %s, token %q of %q, offline %v", c.Endpoint, c.Token,
					c.TokenFrom, c.Offline)
			}
		})
	}
}

// TestProxy pulls from a hub that only the proxy knows. A process of its own, since Go reads the
// proxy variables once.
func TestProxy(t *testing.T) {
	r := sample(300_000)
	server := hubWith(t, r)
	var through atomic.Int64
	forward := &http.Client{Transport: &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request,
			[]*http.Request) error {
			return http.ErrUseLastResponse
		}}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.URL.Host != "hub.invalid" {
			http.Error(w, "this proxy knows hub.invalid only", http.StatusBadGateway)
			return
		}
		through.Add(1)
		inner, err := http.NewRequestWithContext(q.Context(), q.Method,
			server.Hub.URL+q.URL.RequestURI(), nil)
		if err != nil {
			t.Error(err)
			return
		}
		inner.Header = q.Header.Clone()
		answer, err := forward.Do(inner)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer answer.Body.Close()
		maps.Copy(w.Header(), answer.Header)
		w.WriteHeader(answer.StatusCode)
		_, _ = io.Copy(w, answer.Body) // a client that went away is its own affair
	}))
	defer proxy.Close()
	o := hub.Options{Root: t.TempDir(), Repo: tune}
	cmd := exec.Command(os.Args[0], childName, "http://hub.invalid", o.Root)
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(strings.ToUpper(variable), "="); !strings.HasSuffix(name,
			"_PROXY") {
			cmd.Env = append(cmd.Env, variable)
		}
	}
	cmd.Env = append(cmd.Env, "HTTP_PROXY="+proxy.URL)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("the pull behind a proxy: %v: %s", err, out)
	}
	whole(t, o, r)
	if through.Load() < int64(len(fetched)) {
		t.Errorf("%d requests went through the proxy", through.Load())
	}
}

// TestMirror pulls through a mirror that only sends its callers on to the hub, which must not see
// the mirror's token, nor the user that the mirror names there.
func TestMirror(t *testing.T) {
	r := sample(300_000)
	server, client, o := serve(t, r)
	var leaked atomic.Bool
	behind := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.Header.Get("Authorization") != "" {
			leaked.Store(true)
		}
		server.Hub.Config.Handler.ServeHTTP(w, q)
	}))
	defer behind.Close()
	mirror := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		planted := strings.Replace(behind.URL, "//", "//planted:word@", 1)
		http.Redirect(w, q, planted+q.URL.RequestURI(), http.StatusTemporaryRedirect)
	}))
	defer mirror.Close()
	client.Endpoint, client.Token, client.TokenFrom = mirror.URL, "of-the-mirror", "HF_TOKEN"
	hosttest.Must(client.Pull(t.Context(), o))(t)
	whole(t, o, r)
	if leaked.Load() || server.Leaked() {
		t.Error("the mirror's token went to another host")
	}
}
