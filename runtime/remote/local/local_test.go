// Both sides over a real socket, with a scripted server.

package local

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/adrg/xdg"

	"github.com/ossrun/ossrun/harmony"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/sample"
	"github.com/ossrun/ossrun/runtime/sched"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// scriptedHost is a server of one model.
type scriptedHost struct {
	sessiontest.Model
	asked   string // the name of the model
	stopped chan bool
}

// hostOf plays these events, or refuses the turn with an error.
func hostOf(err error, events ...session.Event) *scriptedHost {
	return &scriptedHost{stopped: make(chan bool, 1), Model: sessiontest.Model{Name: "m",
		Hardware: "none", Context: 100, Refuse: err, Turns: [][]session.Event{events}}}
}

func (h *scriptedHost) Status() Status {
	return Status{Protocol: Protocol, PID: os.Getpid(), URL: "http://127.0.0.1:1", State: Ready,
		Models: []Model{{Name: "m", Context: 100}}}
}

func (h *scriptedHost) Stop(now bool) { h.stopped <- now }

func (h *scriptedHost) Get(_ context.Context, model string) (session.Runner, error) {
	h.asked = model
	return h, nil
}

// cancelled waits until the turn has ended.
func (h *scriptedHost) cancelled(t *testing.T) {
	t.Helper()
	hosttest.Until(t, "the turn goes on without its client", func() bool { return h.Active() == 0 })
}

func host(t *testing.T, h *scriptedHost) *Client { return hostUntil(t.Context(), t, h) }

func hostUntil(ctx context.Context, t *testing.T, h *scriptedHost) *Client {
	t.Helper()
	folder := t.TempDir()
	l, err := Listen(folder)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- Serve(ctx, l, h) }()
	t.Cleanup(func() {
		l.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	list, err := Servers(t.Context(), folder)
	if err != nil || len(list) != 1 || list[0].PID != os.Getpid() || list[0].Protocol != Protocol {
		t.Fatalf("%+v, %v", list, err)
	}
	return &Client{Server: list[0], Model: list[0].Models[0]}
}

func TestATurnLosesNothing(t *testing.T) {
	request := session.Request{
		Messages: []session.Message{session.User("hé <|end|> \x00"),
			session.AssistantReasoning("r"), session.FunctionCall("call_1", "f", `{"a":1}`),
			session.FunctionResult("call_1", "f", "ok"), session.AssistantAnswer("a"),
			session.Developer("d")},
		Identity: "i", Date: "2026-11-21", Effort: "high", Instructions: "be brief", Python: true,
		Browser: true,
		Functions: []harmony.ToolDescription{{Name: "f", Description: "d",
			Parameters: []byte(`{"type":"object"}`)}},
		Strict: []string{"f"}, MaxReasoning: 5, MaxTokens: 9, Stop: []string{"x"},
		Params: sample.Params{Temperature: 0.5, TopP: 0.9, Seed: 1<<63 + 1, Logprobs: 2,
			LogitBias: map[int32]float32{3: -1.5}},
	}
	lp := []session.TokenLogprob{{Token: "\uFFFD", Bytes: []byte{0xff}, Logprob: -0.25,
		Top: []session.TokenLogprob{{Token: "b", Bytes: []byte("b"), Logprob: -1}}}}
	done := session.Done{Finish: session.FinishError, StopString: "x",
		Usage:  session.Usage{Prompt: 1, Cached: 2, Completion: 3, Reasoning: 4},
		Timing: sched.Timing{TTFT: time.Second, Decode: time.Minute, Generated: 3},
		Err:    errors.New("it broke")}
	events := []session.Event{session.Reasoning{Text: "think"}, session.Commentary{Text: "c"},
		session.CallStart{ID: "call_2", Name: "f", Recipient: "functions.f"},
		session.CallArguments{Text: "{}"}, session.CallEnd{Arguments: "{}"},
		session.Answer{Text: "\u2028<&>", Logprobs: lp}, done}
	result := session.Result{Reasoning: "think", Commentary: "c", Answer: "\u2028<&>",
		Calls: []session.Call{{ID: "call_2", Name: "f", Recipient: "functions.f",
			Arguments: "{}"}},
		Messages: []session.Message{session.AssistantReasoning("think"),
			session.FunctionCall("call_2", "f", "{}"), session.AssistantAnswer("\u2028<&>")},
		Tokens: []int32{200005, 1}, Relaxed: []string{"r"}, Done: done}
	h := hostOf(nil, events...)
	h.Result, h.Relaxed = session.Result{Tokens: result.Tokens}, result.Relaxed
	g := host(t, h)
	turn, err := g.Start(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	var got []session.Event
	for e, ok := turn.Next(); ok; e, ok = turn.Next() {
		got = append(got, e)
	}
	if !reflect.DeepEqual(got, events) {
		t.Errorf("events\ngot  %+v\nwant %+v", got, events)
	}
	if !reflect.DeepEqual(turn.Result(), result) {
		t.Errorf("result\ngot  %+v\nwant %+v", turn.Result(), result)
	}
	if asked := h.Last(t); !reflect.DeepEqual(asked, request) || h.asked != "m" {
		t.Errorf("request\ngot  %+v\nwant %+v", asked, request)
	}
}

func TestCancelReachesTheServerAndItsUsageComesBack(t *testing.T) {
	h := hostOf(nil)
	h.Cancelled.Prompt = 7
	g := host(t, h)
	ctx, cancel := context.WithCancel(t.Context())
	turn, err := g.Start(ctx, session.Request{})
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(20*time.Millisecond, cancel)
	e, ok := turn.Next()
	if d, is := e.(session.Done); !ok || !is || d.Finish != session.FinishCancelled ||
		d.Usage.Prompt != 7 {
		t.Errorf("%+v", e)
	}
	h.cancelled(t)
}

func TestAClientThatGoesAwayCancels(t *testing.T) {
	h := hostOf(nil)
	g := host(t, h)
	turn, err := g.Start(t.Context(), session.Request{})
	if err != nil {
		t.Fatal(err)
	}
	turn.(*clientTurn).conn.Close()
	h.cancelled(t)
	turn.Next()
}

// A host that goes away in the middle of a turn is gone; its client has not cancelled anything.
func TestAHostThatGoesAwayIsGone(t *testing.T) {
	for range 200 {
		ctx, leave := context.WithCancel(t.Context())
		g := hostUntil(ctx, t, hostOf(nil))
		turn, err := g.Start(t.Context(), session.Request{})
		if err != nil {
			t.Fatal(err)
		}
		leave()
		e, _ := turn.Next()
		if d, ok := e.(session.Done); !ok || !errors.Is(d.Err, session.ErrGone) {
			t.Fatalf("%+v", e)
		}
	}
}

func TestErrorsKeepTheirKind(t *testing.T) {
	for _, want := range []error{&session.RequestError{Param: "effort", Msg: "no"},
		&sched.ContextLengthError{Max: 10, Needed: 20}, sched.ErrQueueFull, sched.ErrClosed,
		errors.New("else")} {
		g := host(t, hostOf(want))
		if _, err := g.Start(t.Context(), session.Request{}); !reflect.DeepEqual(err, want) {
			t.Errorf("got %#v, want %#v", err, want)
		}
	}
}

func TestStop(t *testing.T) {
	h := hostOf(nil)
	g := host(t, h)
	if err := g.Server.Stop(t.Context(), true); err != nil || !<-h.stopped {
		t.Error(err)
	}
}

type endingHost struct {
	*scriptedHost
	end func() error
}

func (h endingHost) Stop(bool) { _ = h.end() }

// A server that ends at once has told so before.
func TestStopIsAnsweredFirst(t *testing.T) {
	ours, theirs := net.Pipe()
	var served sync.WaitGroup
	served.Go(func() { answer(t.Context(), theirs, endingHost{hostOf(nil), theirs.Close}) })
	defer served.Wait()
	defer ours.Close()
	var done struct{}
	if err := errors.Join(json.NewEncoder(ours).Encode(order{Do: doStop}),
		json.NewDecoder(ours).Decode(&done)); err != nil {
		t.Error(err)
	}
}

// The socket of a killed server is removed by the next process that looks.
func TestStaleSocketsAreRemoved(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "4711"+suffix)
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	l.Close()
	list, err := Servers(t.Context(), folder)
	if err != nil || len(list) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is still there: %v", err)
	}
}

// Whoever looks while servers start removes none of their sockets.
func TestLookersLeaveServersThatStart(t *testing.T) {
	folder := t.TempDir()
	done := make(chan struct{})
	var lookers sync.WaitGroup
	for range 4 {
		lookers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if _, err := Servers(t.Context(), folder); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 300 {
		l, err := Listen(folder)
		if err != nil {
			t.Fatal(err)
		}
		go func() { // who looks is let go again, without an answer
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				c.Close()
			}
		}()
		sockets, err := filepath.Glob(filepath.Join(folder, "*"+suffix))
		if err != nil || len(sockets) != 1 {
			t.Fatalf("%v, %v", sockets, err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	close(done)
	lookers.Wait()
	if left, err := os.ReadDir(folder); err != nil || len(left) != 0 {
		t.Errorf("%v, %v are left", left, err)
	}
}

// A server that was killed while it made its socket leaves it under its first name.
func TestUnbornSocketsAreRemoved(t *testing.T) {
	folder := t.TempDir()
	for name, age := range map[string]time.Duration{"1" + pendingSuffix: time.Hour,
		"2" + pendingSuffix: 0} {
		path := filepath.Join(folder, name)
		then := time.Now().Add(-age)
		err := errors.Join(os.WriteFile(path, nil, 0o600), os.Chtimes(path, then, then))
		if err != nil {
			t.Fatal(err)
		}
	}
	if list, err := Servers(t.Context(), folder); err != nil || len(list) != 0 {
		t.Errorf("%v, %v", list, err)
	}
	left, err := os.ReadDir(folder)
	if err != nil || len(left) != 1 || left[0].Name() != "2"+pendingSuffix {
		t.Errorf("%v, %v are left", left, err)
	}
}

func TestAPathTooLongIsSaid(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "a-folder-with-a-name-that-goes-on-and-on-and-on",
		"and-on-and-on-and-on-and-on-and-on-and-on-and-on")
	if _, err := Listen(folder); err == nil {
		t.Error("no error")
	}
}

// starved is a listener that has no descriptor left for a while.
type starved struct {
	net.Listener
	failures int
}

func (s *starved) Accept() (net.Conn, error) {
	if s.failures--; s.failures >= 0 {
		return nil, &net.OpError{Op: "accept", Err: syscall.EMFILE}
	}
	return s.Listener.Accept()
}

func TestAServerOutlivesALackOfDescriptors(t *testing.T) {
	folder := t.TempDir()
	l, err := Listen(folder)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error)
	go func() { served <- Serve(t.Context(), &starved{l, 4}, hostOf(nil)) }()
	if servers, err := Servers(t.Context(), folder); err != nil || len(servers) != 1 {
		t.Errorf("%v, %v", servers, err)
	}
	l.Close()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// Two processes of one number, in two containers, have a socket each.
func TestSocketsOfOneNumber(t *testing.T) {
	folder := t.TempDir()
	for range 2 {
		l, err := Listen(folder)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
	}
	if entries, _ := os.ReadDir(folder); len(entries) != 2 {
		t.Errorf("%v", entries)
	}
}

// Another user may have made the folder where XDG_RUNTIME_DIR is open to all, such as /tmp.
func TestAFolderOfAnotherUserIsRefused(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files have no user's number")
	}
	before := xdg.RuntimeDir
	defer func() { xdg.RuntimeDir = before }()
	xdg.RuntimeDir = t.TempDir()
	folder := filepath.Join(xdg.RuntimeDir, "ossrun")
	if got, err := Folder(); err != nil || got != folder {
		t.Fatal(got, err)
	}
	if os.Getuid() == 0 {
		if err := os.Chown(folder, 12345, 12345); err != nil {
			t.Fatal(err)
		}
		if _, err := Folder(); err == nil {
			t.Error("a folder of another user is used")
		}
	}
	if err := errors.Join(os.Remove(folder), os.Symlink(t.TempDir(), folder)); err != nil {
		t.Fatal(err)
	}
	if _, err := Folder(); err == nil {
		t.Error("a link is used")
	}
}
