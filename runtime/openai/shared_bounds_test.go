// Every bound that clients share, flooded by one and asked of by another: the table has a row for
// each quota.New of the program. What is stored has its own, over all kinds (runtime/records).

package openai_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/openai"
	"github.com/ossrun/ossrun/runtime/openai/keys"
	"github.com/ossrun/ossrun/runtime/openai/porttest"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/records"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
)

// floods are a row for each name: all that a client may have is taken, and another asks.
var floods = map[string]func(t *testing.T){
	"waiting room": func(t *testing.T) {
		p := live(t, engine.Settings{MaxNumSeqs: 2, MaxWaiting: 5})
		short := porttest.ChatWith(`"model":"demo","max_tokens":2`)
		p.stage.hold()
		refused := flood(t, p.URL, "10.0.0.1", 20, short)
		for range 13 {
			if status := <-refused; status != http.StatusTooManyRequests {
				t.Errorf("one beyond the room: %d", status)
			}
		}
		other := flood(t, p.URL, "10.0.0.2", 1, short)
		hosttest.Until(t, "the other waits", func() bool {
			return p.metric(
				"vllm:num_requests_running")+p.metric("vllm:num_requests_waiting") == 8
		})
		p.stage.free()
		if status := <-other; status != 200 {
			t.Errorf("another client is refused: %d", status)
		}
		for range 7 {
			if status := <-refused; status != 200 {
				t.Errorf("one that waited: %d", status)
			}
		}
	},
	"requests that are read": func(t *testing.T) {
		var n named
		leave := make(chan struct{})
		srv, _ := porttest.Server(t, func(r session.Request) ([]session.Event, error) {
			if r.Messages[0].Text() == "wait" { // before the turn has begun
				<-leave
			}
			return sessiontest.Answers("Hello.")(r)
		}, withKeys(t, &n, records.NewStore()), func(o *openai.Options) { o.MaxWaiting = 5 })
		n.add(t, "flood", nil)
		n.add(t, "other", nil)
		statuses := make(chan int, 20)
		for range 20 {
			go func() {
				statuses <- n.as(t, srv, "flood", "POST", "/v1/chat/completions",
					`{"messages":[{"role":"user","content":"wait"}]}`).Status
			}()
		}
		for range 15 {
			if status := <-statuses; status != http.StatusTooManyRequests {
				t.Errorf("one beyond the room: %d", status)
			}
		}
		if r := n.as(t, srv, "other", "POST", "/v1/responses", `{"input":"x"}`); r.Status != 200 {
			t.Errorf("another client is refused: %d %s", r.Status, r.Body)
		}
		close(leave)
		for range 5 {
			<-statuses
		}
	},
	"bodies": func(t *testing.T) {
		var n named
		srv, _ := porttest.Server(t, sessiontest.Answers("Hello."), withKeys(t, &n,
			records.NewStore()), func(o *openai.Options) { o.MaxBodies = 1 << 20 })
		n.add(t, "flood", nil)
		n.add(t, "other", nil)
		var open []net.Conn
		for range 30 { // each leaves its body open
			c := hosttest.Must(net.Dial("tcp", srv.Listener.Addr().String()))(t)
			open = append(open, c)
			fmt.Fprintf(c, "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"+
				"Authorization: Bearer %s\r\nContent-Type: application/json\r\n"+
				"Content-Length: 100000\r\n\r\n%s", n.keys["flood"],
				strings.Repeat(" ", 64<<10))
		}
		r := n.as(t, srv, "other", "POST", "/v1/completions", `{"prompt":"`+
			strings.Repeat("x", 20000)+`"}`)
		if r.Status != 200 {
			t.Errorf("another client is refused: %d %s", r.Status, r.Body)
		}
		for _, c := range open {
			c.Close()
		}
	},
	"sockets": func(t *testing.T) {
		defer openai.SetMaxSockets(8)()
		var n named
		srv, _ := porttest.Server(t, sessiontest.Answers("Hello."), withKeys(t, &n,
			records.NewStore()))
		n.add(t, "flood", nil)
		n.add(t, "other", nil)
		refused := 0
		for range 20 {
			_, r, err := dial(t, srv.URL, "Authorization", "Bearer "+n.keys["flood"])
			if err != nil {
				refused++
				if r == nil || r.StatusCode != http.StatusTooManyRequests {
					t.Errorf("one beyond the bound: %v %v", r, err)
				}
			}
		}
		if refused != 12 {
			t.Errorf("%d of 20 are refused", refused)
		}
		other := mustDial(t, srv.URL, "Authorization", "Bearer "+n.keys["other"])
		if e := other.ask(`"input":"x"`); e.Name != "response.completed" {
			t.Errorf("another client: %s", e.Data)
		}
	},
	"batches": func(t *testing.T) {
		var n named
		leave := make(chan struct{})
		srv, _ := porttest.Server(t, func(r session.Request) ([]session.Event, error) {
			if strings.Contains(r.Messages[0].Text(), "wait") {
				<-leave
			}
			return sessiontest.Answers("Hello.")(r)
		}, withKeys(t, &n, records.NewStore()))
		n.add(t, "flood", nil)
		n.add(t, "other", nil)
		key := []string{"Authorization", "Bearer " + n.keys["flood"]}
		var waiting []string
		for range 20 {
			waiting = append(waiting, batchOf(t, srv,
				strings.ReplaceAll(requestLines(1), "question", "wait"), key...))
		}
		other := []string{"Authorization", "Bearer " + n.keys["other"]}
		if b := endOf(t, srv, batchOf(t, srv, requestLines(1), other...), other...); b["status"] != "completed" {
			t.Errorf("another client: %v", b)
		}
		close(leave)
		for _, id := range waiting[:8] {
			endOf(t, srv, id, key...)
		}
	},
	"idle tools": func(t *testing.T) {
		var n named
		srv, _ := porttest.ToolServer(t, runsPython, nil, withKeys(t, &n, records.NewStore()))
		n.add(t, "flood", nil)
		n.add(t, "other", nil)
		container := func(who, asked string) string {
			r := n.as(t, srv, who, "POST", "/v1/responses", `{"input":"run","tools":[{"type":`+
				`"code_interpreter","container":`+asked+`}]}`)
			if r.Status != 200 {
				t.Fatalf("%s: %d %s", who, r.Status, r.Body)
			}
			return porttest.LastItem(porttest.Decode(t, r.Body),
				"code_interpreter_call")["container_id"].(string)
		}
		id := container("other", `{"type":"auto"}`)
		for range 40 {
			container("flood", `{"type":"auto"}`)
		}
		container("other", strconv.Quote(id))
	},
}

// flood sends requests from an address at once, and returns their statuses as they come.
func flood(t *testing.T, url, from string, n int, body string) <-chan int {
	statuses := make(chan int, n)
	for range n {
		go func() {
			statuses <- porttest.Ask(t, "POST", url+"/v1/chat/completions", body, fromAddress,
				from+":1").Status
		}()
	}
	return statuses
}

// SECURITY.md: a client of the server: keys, limits of each key, bounds on bodies and work,
// equal shares
// SECURITY.md: Of the waiting room, the memory for bodies, idle tools and stored records a
// client holds at most seven times what is free: beyond it gets 429 or 507, or loses its oldest
// tool or record.
func TestOneClientFloodsAnotherAsks(t *testing.T) {
	names := boundNames(t)
	for _, name := range slices.Sorted(maps.Keys(floods)) {
		t.Run(name, floods[name])
		if !names[name] {
			t.Errorf("the program has no bound %q", name)
		}
		delete(names, name)
	}
	for name := range names {
		t.Errorf("the shared bound %q has no row", name)
	}
}

// boundNames are the names that the program gives to quota.New.
func boundNames(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	files := token.NewFileSet()
	hosttest.Check(t, filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") ||
			strings.HasSuffix(path, "_test.go") || strings.Contains(path, "testdata") {
			return err
		}
		f, err := parser.ParseFile(files, path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			fun, ok := call.Fun.(*ast.SelectorExpr)
			if x, is := (*ast.Ident)(nil), false; ok && fun.Sel.Name == "New" {
				if x, is = fun.X.(*ast.Ident); is && x.Name == "quota" {
					name, err := strconv.Unquote(call.Args[0].(*ast.BasicLit).Value)
					hosttest.Check(t, err)
					names[name] = true
				}
			}
			return true
		})
		return nil
	}))
	return names
}

// A key of 1,000 tokens a day asks for all of them in 20 requests at once, of two servers: it gets
// no more than it has, and a request that does not say how long its answer may be gets the rest.
//
// SECURITY.md: A key's tokens are reserved before a turn.
func TestAQuotaIsABound(t *testing.T) {
	var n named
	store := records.NewStore()
	p := live(t, engine.Settings{}, withKeys(t, &n, store))
	n.add(t, "alice", func(k *keys.Key) { k.Tokens = 1000 })
	second := p.port(t, func(o *openai.Options) {
		o.Store = store
		o.Keys = hosttest.Must(keys.Open(n.path, store, func(string) {}))(t)
	})
	var all sync.WaitGroup
	var mu sync.Mutex
	total, served := 0, 0
	for i := range 20 {
		all.Go(func() {
			srv := []*livePort{p, second}[i%2]
			r := n.as(t, srv.Server, "alice", "POST", "/v1/chat/completions", porttest.ChatWith(
				`"model":"demo","max_tokens":200,"ignore_eos":true`))
			mu.Lock()
			defer mu.Unlock()
			if r.Status == 200 {
				served++
				total += int(porttest.At(porttest.Decode(t, r.Body), "usage",
					"total_tokens").(float64))
			} else if r.Status != 429 || r.Header.Get("Retry-After") == "" {
				t.Errorf("%d %s", r.Status, r.Body)
			}
		})
	}
	all.Wait()
	if served == 0 || total > 1000 {
		t.Errorf("%d requests have used %d of 1,000 tokens", served, total)
	}
	for left := 1000 - total; left > 0; { // what is left is used up, and not more
		r := n.as(t, p.Server, "alice", "POST", "/v1/chat/completions", porttest.ChatWith(
			`"model":"demo","ignore_eos":true`))
		if r.Status == 429 {
			break
		}
		used := int(porttest.At(porttest.Decode(t, r.Body), "usage", "total_tokens").(float64))
		if left -= used; r.Status != 200 || left < 0 {
			t.Fatalf("%d, %d tokens beyond the quota", r.Status, -left)
		}
	}
}
