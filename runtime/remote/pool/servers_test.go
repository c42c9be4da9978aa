// Servers that start late, end early or cannot be used, and what a person reads of them.

package pool

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/sched"
	"github.com/ossrun/ossrun/runtime/session"
)

// shorten makes the waits of this package short for a test.
func shorten(t *testing.T, look time.Duration) {
	before, others, say := checkTimeout, othersTimeout, waitNotice
	checkTimeout, othersTimeout, waitNotice = look, 50*time.Millisecond, 10*time.Millisecond
	t.Cleanup(func() { checkTimeout, othersTimeout, waitNotice = before, others, say })
}

// A server that is being started does not listen at first, and its first answer takes longer than a
// look may: it is waited for, which is reported.
func TestServersThatStart(t *testing.T) {
	shorten(t, 50*time.Millisecond)
	path, held := filepath.Join(t.TempDir(), "s"), make(chan bool)
	f := newFake(t)
	f.set(func() { f.held = held })
	notes, asked := 0, 0
	p, err := Open(t.Context(), Options{URLs: []string{"unix:" + path}, Starting: true,
		Model: "openai/gpt-oss-20b", Check: 10 * time.Millisecond, Notify: func(text string) {
			if !strings.HasPrefix(text, "waiting for the first answer of unix:"+path+": ") {
				return
			}
			if notes++; notes == 1 {
				l, err := net.Listen("unix", path)
				if err != nil {
					t.Error(err)
					return
				}
				server := &http.Server{Handler: f}
				go server.Serve(l) //nolint:errcheck // it ends with the test
				t.Cleanup(func() { server.Close() })
			}
			if len(f.requests()) > 0 {
				asked++
			}
			if asked == 10 { // twice a look's time later
				close(held)
			}
		}})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.left || asked < 10 {
		t.Errorf("its first answer is not waited for: %v, %d notes", f.left, asked)
	}
}

// A server whose first answer takes long does not keep another one from work.
func TestServersThatTakeLong(t *testing.T) {
	shorten(t, time.Minute)
	slow, quick, held := newFake(t), newFake(t), make(chan bool)
	slow.set(func() { slow.held = held })
	var notes []string
	m, p := open(t, &notes, slow, quick)
	if p.up() != 1 {
		t.Errorf("%d are up", p.up())
	}
	if got := say(t, m, user("[[say Yes.]]")); got.Answer != "Yes." {
		t.Errorf("%+v", got)
	}
	close(held)
	hosttest.Until(t, "the slow one is used", func() bool { return p.up() == 2 })
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if all := strings.Join(notes, "\n"); !strings.Contains(all, slow.URL+" is not used yet: ") ||
		!strings.Contains(all, slow.URL+" answers again") {
		t.Error(all)
	}
}

// What a person reads of a server that is gone names its address once.
func TestReportOfAServerThatIsGone(t *testing.T) {
	var notes []string
	f := newFake(t)
	m, p := open(t, &notes, f)
	f.Close()
	hosttest.Until(t, "it is taken out", func() bool { return p.up() == 0 })
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if all := fmt.Sprint(notes); all != "["+f.URL+" is no longer used: connection refused]" {
		t.Error(all)
	}
}

// One that ends while it is waited for ends the wait, with its reason.
func TestServerThatEndsAsItStarts(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("vLLM ended: exit status 1")
	time.AfterFunc(50*time.Millisecond, func() { cancel(why) })
	_, err := Open(ctx, Options{URLs: []string{"http://127.0.0.1:1"}, Starting: true,
		Check: 10 * time.Millisecond})
	if err == nil || err.Error() != why.Error() {
		t.Error(err)
	}
}

// Close ends what runs: a server that is asked to stop waits for its open streams.
func TestCloseEndsWhatRuns(t *testing.T) {
	f := newFake(t)
	m, p := open(t, nil, f)
	r := user("[[slow 1ms]] [[say " + strings.Repeat("and on ", 5000) + "]]")
	turn, err := m.Start(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	turn.Next()
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	hosttest.Until(t, "the server has no more work", func() bool { return f.sched.Stats().Running == 0 })
	for ok := true; ok; {
		_, ok = turn.Next()
	}
	if d := turn.Result().Done; d.Finish != session.FinishCancelled || p.Stats().Running != 0 {
		t.Errorf("%+v, %d run", d, p.Stats().Running)
	}
}

func TestServersThatCannotBeUsed(t *testing.T) {
	f := newFake(t)
	for _, o := range []Options{{URLs: []string{f.URL}, Model: "gpt-4"},
		{URLs: []string{"ftp://x"}}, {URLs: []string{"dns+https://x"}}, {}} {
		if _, err := Open(t.Context(), o); err == nil {
			t.Errorf("%+v", o)
		}
	}
}

// Servers that all fail end a turn with an error, and the next one works when one is back.
func TestNoServer(t *testing.T) {
	a, b := newFake(t), newFake(t)
	m, p := open(t, nil, a, b)
	for _, f := range []*fake{a, b} {
		f.set(func() { f.down = true })
	}
	for range 3 {
		if _, err := m.Start(t.Context(), user("[[say Yes.]]")); !errors.Is(err,
			session.ErrUnavailable) {
			t.Error(err)
		}
	}
	if err := p.Ready(); !errors.Is(err, session.ErrUnavailable) {
		t.Error(err)
	}
	a.set(func() { a.down = false })
	hosttest.Until(t, "the server is taken in again", func() bool { return p.up() == 1 })
	if got := say(t, m, user("[[say Yes.]]")); got.Answer != "Yes." {
		t.Errorf("%+v", got)
	}
	bad := newFake(t)
	bad.spoil = func(tokens int) string {
		if tokens == 2 {
			return "cut"
		}
		return ""
	}
	over, _ := open(t, nil, bad)
	got := say(t, over, user("[[say Yes.]]"))
	var broken *sched.EngineError
	if got.Done.Finish != session.FinishError || !errors.As(got.Done.Err, &broken) &&
		!errors.Is(got.Done.Err, session.ErrUnavailable) {
		t.Errorf("%+v", got.Done)
	}
}

// A server that runs already, but does not answer yet, is waited for, and the reason is reported.
func TestServersThatComeLater(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	f := newFake(t)
	var notes []string
	var p *Pool
	p, err := Open(t.Context(), Options{URLs: []string{"unix:" + path}, Check: time.Millisecond,
		Notify: func(text string) {
			if notes = append(notes, text); len(notes) > 1 {
				return
			}
			l, err := net.Listen("unix", path)
			if err != nil {
				t.Error(err)
				return
			}
			server := &http.Server{Handler: f}
			go server.Serve(l) //nolint:errcheck // it ends with the test
			t.Cleanup(func() { server.Close() })
		}})
	if err != nil {
		t.Fatal(err)
	}
	hosttest.Check(t, p.Close())
	if len(notes) == 0 || notes[0] != "waiting for the first answer of unix:"+path+
		": no such file or directory" {
		t.Error(notes)
	}
}

// Every address of a name is a server: new ones are used, and those that are gone are not.
func TestServersByName(t *testing.T) {
	before, every := lookup, lookupInterval
	t.Cleanup(func() { lookup, lookupInterval = before, every })
	lookupInterval = time.Millisecond
	var mu sync.Mutex
	var addresses []netip.Addr
	var failing error
	lookup = func(context.Context, string) ([]netip.Addr, error) {
		mu.Lock()
		defer mu.Unlock()
		return addresses, failing
	}
	become := func(err error, list ...string) {
		mu.Lock()
		defer mu.Unlock()
		addresses, failing = nil, err
		for _, ip := range list {
			addresses = append(addresses, netip.MustParseAddr(ip))
		}
	}
	f := newFake(t)
	// one port on all addresses of this machine
	l, err := net.Listen("tcp4", "0.0.0.0:0")
	hosttest.Check(t, err)
	server := &http.Server{Handler: f}
	go server.Serve(l) //nolint:errcheck // it ends with the test
	t.Cleanup(func() { server.Close() })
	port := l.Addr().(*net.TCPAddr).Port
	notes := make(chan string, 100)
	become(&net.DNSError{Err: "no such host", Name: "vllm.example", IsNotFound: true})
	opened := make(chan *Pool)
	go func() {
		p, err := Open(context.Background(), Options{Check: time.Millisecond,
			URLs:   []string{fmt.Sprintf("dns+http://vllm.example:%d/v1", port)},
			Notify: func(text string) { notes <- text }})
		if err != nil {
			t.Error(err)
		}
		opened <- p
	}()
	if text := <-notes; text != "vllm.example is not looked up: it has no address" {
		t.Error(text)
	}
	become(nil, "127.0.0.2", "127.0.0.3")
	p := <-opened
	has := func(want ...string) func() bool {
		return func() bool {
			p.mu.Lock()
			defer p.mu.Unlock()
			var got []string
			for _, s := range p.list {
				if s.up {
					got = append(got, s.client.Root())
				}
			}
			slices.Sort(got)
			for i := range want {
				want[i] = fmt.Sprintf("http://%s:%d", want[i], port)
			}
			same := slices.Equal(got, want)
			for i := range want {
				want[i] = strings.TrimSuffix(strings.TrimPrefix(want[i], "http://"),
					fmt.Sprintf(":%d", port))
			}
			return same
		}
	}
	hosttest.Until(t, "both are up", has("127.0.0.2", "127.0.0.3"))
	become(nil, "127.0.0.3", "127.0.0.4")
	hosttest.Until(t, "one is replaced", has("127.0.0.3", "127.0.0.4"))
	become(errors.New("the name server is away"))
	for text := range notes {
		if strings.HasSuffix(text, "is away") {
			break
		}
	}
	if !has("127.0.0.3", "127.0.0.4")() {
		t.Error("a failed lookup changes the servers")
	}
	hosttest.Check(t, p.Close())
}
