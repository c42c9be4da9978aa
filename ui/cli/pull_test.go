package cli

import (
	"bytes"
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/hub"
	"github.com/ossrun/ossrun/models/hub/hubtest"
)

// TestPullBar: what a person sees of a pull in its states, each in one line that takes the place of
// the last.
func TestPullBar(t *testing.T) {
	const whole = 13_761_264_768
	for want, p := range map[string]hub.Progress{
		"gpt-oss-20b  5.00 of 13.76 GB  250.0 MB/s  35 s left": {Bytes: whole, Done: 5e9,
			Rate: 250e6, Remaining: 35 * time.Second},
		"gpt-oss-20b  5.00 of 13.76 GB  10.0 MB/s  15 min left": {Bytes: whole, Done: 5e9,
			Rate: 10e6, Remaining: 876 * time.Second},
		"gpt-oss-20b  5.00 of 13.76 GB  waiting": {Bytes: whole, Done: 5e9},
		"gpt-oss-20b  13.76 of 13.76 GB  checking": {Bytes: whole, Done: whole,
			Rate: 250e6},
		"gpt-oss-20b  1.5 of 30.0 MB  1.0 MB/s  28 s left": {Bytes: 30e6, Done: 1.5e6,
			Rate: 1e6, Remaining: 28 * time.Second},
	} {
		var said bytes.Buffer
		show := &pullScreen{name: "gpt-oss-20b", terminal: Terminal{Out: &said, Err: &said},
			bar: true}
		show.progress(p)
		if !strings.Contains(said.String(), want) || strings.Contains(said.String(), "\n") {
			t.Errorf("%+v is shown as %q, want %q", p, said.String(), want)
		}
		show.note("something unusual")
		show.clear()
		if rest := said.String(); !strings.Contains(rest, "ossrun: something unusual\n") ||
			show.progressBar != nil {
			t.Errorf("a note behind the bar is shown as %q", rest)
		}
	}
}

// TestPullEvents: programs get an event at most once a second, and one at the end.
func TestPullEvents(t *testing.T) {
	var out, said bytes.Buffer
	show := &pullScreen{name: "m", terminal: Terminal{Out: &out, Err: &said}, json: true,
		last: time.Now().Add(time.Hour)}
	show.progress(hub.Progress{Files: 2, FilesDone: 1, Bytes: 10, Done: 4, Rate: 2,
		Remaining: 3 * time.Second})
	show.progress(hub.Progress{Files: 2, FilesDone: 1, Bytes: 10, Done: 10})
	if out.Len() > 0 {
		t.Errorf("too soon: %s", &out)
	}
	show.last = time.Time{}
	show.progress(hub.Progress{Files: 2, FilesDone: 1, Bytes: 10, Done: 4, Fetched: 3, Rate: 2,
		Remaining: 3 * time.Second})
	show.progress(hub.Progress{Files: 2, FilesDone: 2, Bytes: 10, Done: 10, Fetched: 9})
	show.note("a note")
	want := `{"event":"progress","model":"m","bytes":10,"done":4,"fetched":3,"bytes_per_second":2,"seconds_left":3,"files":2,"files_done":1}
{"event":"progress","model":"m","bytes":10,"done":10,"fetched":9,"files":2,"files_done":2}
{"event":"note","model":"m","text":"a note"}
`
	if out.String() != want || said.Len() > 0 {
		t.Errorf("said %s%s\nwant %s", &said, &out, want)
	}
}

// TestNoNetwork: each attempt is reported at once, every retry with cause and time, and at the end
// the remedy.
func TestNoNetwork(t *testing.T) {
	t.Setenv("HF_HOME", t.TempDir())
	os.Unsetenv("HF_HUB_CACHE")
	client := hub.New("http://127.0.0.1:1")
	client.Backoff, client.Attempts = 300*time.Millisecond, 2
	defer client.Close()
	target, err := models.ParseTarget("120b")
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	err = download(t.Context(), client, target, false, &pullScreen{name: target.Name,
		terminal: Terminal{Out: &said, Err: &said}})
	lines := strings.Split(strings.TrimSpace(said.String()), "\n")
	if len(lines) != 2 || lines[0] != "ossrun: asking http://127.0.0.1:1 for openai/gpt-oss-120b" ||
		!strings.HasPrefix(lines[1], "ossrun: no answer: connection refused; try 2 of 2 in 0.") {
		t.Errorf("said %q", lines)
	}
	for _, want := range []string{"cannot be reached: connect: connection refused (attempts: 2)",
		"HTTPS_PROXY", "HF_ENDPOINT", "models--openai--gpt-oss-120b and use", "--offline"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q: %v", want, err)
		}
	}
}

// TestPullsThatEndEarly: what a pull says it has kept is there, list and rm say how much it is, and
// where nothing came none is claimed.
func TestPullsThatEndEarly(t *testing.T) {
	for name, c := range map[string]struct {
		fault func(stop func(), r hubtest.Request) hubtest.Fault
		some  bool   // bytes come before it ends
		want  string // of stderr
	}{
		"interrupted before a byte": {func(stop func(), _ hubtest.Request) hubtest.Fault {
			stop()
			return hubtest.Fault{Status: 503, RetryAfter: "60"}
		}, false, "ossrun: interrupted before anything was downloaded\n"},
		"interrupted": {func(stop func(), r hubtest.Request) hubtest.Fault {
			if r.Kind != hubtest.CDN || r.N <= 2 {
				return hubtest.Fault{}
			}
			go func() {
				happens(func() bool { // some of it is there
					_, list, _ := runHere(context.Background(), "list")
					return regexp.MustCompile(`[1-9]\S* MB.* %, run`).MatchString(list)
				})
				stop()
			}()
			return hubtest.Fault{Rate: 1}
		}, true, "MB downloaded. Run the same command to resume\n"},
		"without its files": {func(_ func(), r hubtest.Request) hubtest.Fault {
			return hubtest.Fault{Status: 403}
		}, false, "has no repository"},
	} {
		t.Run(name, func(t *testing.T) {
			server, _ := aHub(t)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			server.Fault = func(r hubtest.Request) hubtest.Fault { return c.fault(stop, r) }
			t.Setenv("HF_ENDPOINT", server.Hub.URL)
			t.Setenv("HF_HOME", t.TempDir())
			t.Setenv("HF_TOKEN", "")
			os.Unsetenv("HF_HUB_CACHE")
			code, out, said := runHere(ctx, "pull", "20b")
			if code == exitOK || !strings.Contains(out+said, c.want) ||
				!c.some && strings.Contains(out+said, "resume") {
				t.Errorf("%d, %s%s", code, out, said)
			}
			_, list, _ := runHere(t.Context(), "list")
			if half := strings.Contains(list, " %, run: ossrun pull 20b\n"); half != c.some {
				t.Errorf("the list:\n%s", list)
			}
			code, out, said = runHere(t.Context(), "rm", "20b", "--yes")
			removed := out + said
			amount := regexp.MustCompile(`[0-9.]+ MB`)
			a, b := amount.FindString(list), amount.FindString(removed)
			if c.some && (a != b || a == "0.0 MB") || !c.some && code == exitOK && b != "0.0 MB" {
				t.Errorf("list says %q and rm %q\n%s%s", a, b, list, removed)
			}
		})
	}
}

// TestHubThatCannotBe: a fault of the hub's address or its TLS is reported at once, without a
// retry.
func TestHubThatCannotBe(t *testing.T) {
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	t.Setenv("HF_HOME", t.TempDir())
	const address = "HF_ENDPOINT must be a URL such as https://huggingface.co, not "
	for endpoint, want := range map[string]string{"foo": address + `"foo"`, "foo:80": address,
		"ftp://x": address, "http://": address, "http://[::1": address,
		secure.URL: "certificate is not trusted here",
		strings.Replace(plain.URL, "http:", "https:", 1): "does not speak TLS"} {
		t.Setenv("HF_ENDPOINT", endpoint)
		code, _, said := runHere(t.Context(), "pull", "20b")
		if code == exitOK || !strings.Contains(said, want) ||
			strings.Contains(said, "try 2") || strings.Contains(said, "Get ") {
			t.Errorf("%s: %d, %s", endpoint, code, said)
		}
	}
}
