package responses_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ossrun/ossrun/runtime/openai"
	"github.com/ossrun/ossrun/runtime/openai/fields"
	"github.com/ossrun/ossrun/runtime/openai/porttest"
	"github.com/ossrun/ossrun/runtime/openai/responses"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/records"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
)

// Two servers on one store: the other one is a process of its own.

func onStore(t *testing.T, file string) func(*openai.Options) {
	t.Helper()
	store := hosttest.Must(records.Open(records.Options{File: file, TTL: time.Hour}))(t)
	t.Cleanup(func() { store.Close() })
	return func(o *openai.Options) { o.Store, o.Silence = store, 600*time.Millisecond }
}

// otherServer is the second server: in the child process it serves, otherwise it starts the child.
func otherServer(t *testing.T, file string) (url string) {
	t.Helper()
	if file := os.Getenv("SERVE_STORE"); file != "" {
		srv, _ := porttest.Server(t, porttest.Slowly(nil), onStore(t, file))
		fmt.Println(srv.URL)
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
		return ""
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), "SERVE_STORE="+file)
	in := hosttest.Must(cmd.StdinPipe())(t)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	hosttest.Check(t, err)
	url, err = bufio.NewReader(out).ReadString('\n')
	hosttest.Check(t, err)
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Wait() // it was killed, or its server's clients are gone
	})
	return strings.TrimSpace(url)
}

func TestTwoServersOnOneStore(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kept.db")
	other := otherServer(t, file)
	if other == "" {
		return
	}
	srv, _ := porttest.Server(t, sessiontest.Answers("ok"), onStore(t, file))

	// what both acknowledge to one conversation is there
	talk := porttest.Decode(t, porttest.Post(t, srv, "/v1/conversations", `{}`).Body)["id"].(string)
	path := "/v1/conversations/" + talk + "/items"
	var clients sync.WaitGroup
	for _, url := range []string{srv.URL, other} {
		clients.Go(func() {
			for i := range 40 {
				if r := porttest.Ask(t, "POST", url+path, fmt.Sprintf(
					`{"items":[{"role":"user","content":"%d"}]}`, i)); r.Status != 200 {
					t.Errorf("%d %s", r.Status, r.Body)
				}
			}
		})
	}
	clients.Wait()
	items := porttest.Decode(t, porttest.Ask(t, "GET", srv.URL+path+"?limit=100", "").Body)["data"]
	if n := len(items.([]any)); n != 80 {
		t.Errorf("%d of 80 items are there", n)
	}

	// what runs there and is deleted here stays deleted, and ends there
	m := porttest.Decode(t, porttest.Ask(t, "POST", other+"/v1/responses",
		`{"input":"x","background":true}`).Body)
	path = "/v1/responses/" + m["id"].(string)
	if r := porttest.Ask(t, "DELETE", srv.URL+path, ""); r.Status != 200 {
		t.Fatalf("%d %s", r.Status, r.Body)
	}
	porttest.Eventually(t, func() (any, bool) {
		return nil, porttest.Ask(t, "GET", other+path, "").Status == 404
	})
	if r := porttest.Ask(t, "GET", srv.URL+path, ""); r.Status != 404 {
		t.Errorf("it came back: %d %s", r.Status, r.Body)
	}
}

// watched calls after following every write to the store.
type watched struct {
	records.Store
	after func()
}

func (w watched) Put(r records.Record) error {
	defer w.after()
	return w.Store.Put(r)
}

func (w watched) Change(work func(*records.Change) error) error {
	defer w.after()
	return w.Store.Change(work)
}

// Whenever the process is killed the store has the end of a response and what it adds to its
// conversation, or neither: who takes it over would add it once more.
func TestAResponseEndsInOneChange(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kept.db")
	seen := hosttest.Must(records.Open(records.Options{File: file, TTL: time.Hour}))(t)
	defer seen.Close()
	writes := 0
	var talk string
	var mu sync.Mutex
	after := func() {
		mu.Lock()
		defer mu.Unlock()
		writes++
		record, _ := seen.Get(records.KindConversation, talk)
		ended := 0
		for _, r := range seen.List(records.KindResponse) {
			if s, ok := responses.GetResponse(seen, r.Key); ok && !responses.RunningOf(&s) {
				ended++
			}
		}
		leases := len(seen.List(records.KindRunning))
		if said := strings.Count(string(record.Value), "Hello."); said != ended || ended+leases > 1 {
			t.Errorf("after %d writes: %d ended, %d leases, and the conversation has the answer "+
				"%d times", writes, ended, leases, said)
		}
	}
	srv, _ := porttest.Server(t, porttest.Slowly(closed()), onStore(t, file),
		func(o *openai.Options) { o.Store = watched{o.Store, after} })
	talk = porttest.Decode(t, porttest.Post(t, srv, "/v1/conversations", `{}`).Body)["id"].(string)
	id := porttest.Decode(t, porttest.Post(t, srv, "/v1/responses",
		`{"input":"x","background":true,"conversation":"`+talk+`"}`).Body)["id"].(string)
	porttest.Ended(t, srv, id)
	if writes < 3 {
		t.Errorf("%d writes", writes)
	}
}

func closed() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// What a conversation has no room for is not acknowledged.
func TestAConversationIsBounded(t *testing.T) {
	store := hosttest.Must(records.Open(records.Options{TTL: time.Hour,
		Bounds: map[records.Kind]records.Bound{records.KindConversation: {Bytes: 2000},
			records.KindResponse: {Bytes: 1 << 20}, records.KindRunning: {Bytes: 1 << 20}}}))(t)
	srv, _ := porttest.Server(t, sessiontest.Answers(strings.Repeat("long ", 400)),
		func(o *openai.Options) { o.Store = store })
	id := porttest.Decode(t, porttest.Post(t, srv, "/v1/conversations", `{}`).Body)["id"].(string)
	path := srv.URL + "/v1/conversations/" + id
	item := `{"items":[{"role":"user","content":"` + strings.Repeat("x", 700) + `"}]}`
	if r := porttest.Ask(t, "POST", path+"/items", item); r.Status != 200 {
		t.Fatal(r.Body)
	}
	for _, url := range []string{path + "/items", srv.URL + "/v1/conversations"} {
		porttest.WantFault(t, porttest.Ask(t, "POST", url, strings.Replace(item, "xx",
			strings.Repeat("x", 1500), 1)), 400, fields.KindInvalid, "items", "", "too large")
	}
	for _, background := range []string{"false", "true"} {
		r := porttest.Post(t, srv, "/v1/responses", `{"input":"x","conversation":"`+id+
			`","background":`+background+`}`)
		m := porttest.Ended(t, srv, porttest.Decode(t, r.Body)["id"].(string))
		if text, _ := porttest.At(m, "error", "message").(string); m["status"] != "failed" ||
			!strings.Contains(text, "too large") {
			t.Errorf("%v", m)
		}
	}
	items := porttest.Decode(t, porttest.Ask(t, "GET", path+"/items", "").Body)["data"].([]any)
	if len(items) != 1 {
		t.Errorf("%d items", len(items))
	}
}
