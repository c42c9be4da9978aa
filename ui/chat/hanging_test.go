//go:build unix

// The chat while a tool's server is slow, hangs or dies: the real program in a terminal, with the
// real tools and real servers. Neither drawing nor keys may wait for them.

package chat

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/records"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/runtime/tools/browser"
	"github.com/ossrun/ossrun/runtime/tools/mcp"
	"github.com/ossrun/ossrun/runtime/tools/python"
	"github.com/ossrun/ossrun/ui/chat/screentest"
)

// badServer is testdata/mcp_server.py, over its pipes or at a port.
func badServer(t *testing.T, overHTTP bool) mcp.Server {
	t.Helper()
	python := hosttest.Program(t, "python3")
	script, err := filepath.Abs("testdata/mcp_server.py")
	if err != nil {
		t.Fatal(err)
	}
	if !overHTTP {
		return mcp.Server{Name: "bad", Command: python, Args: []string{script}}
	}
	server := exec.Command(python, script, "0")
	out, err := server.StdoutPipe()
	if err == nil {
		err = server.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill() // it may have died
		_ = server.Wait()
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	})
	port, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return mcp.Server{Name: "bad", Type: "http",
		URL: "http://127.0.0.1:" + strings.TrimSpace(port) + "/mcp"}
}

func badTool(t *testing.T, overHTTP bool) session.Tool {
	t.Helper()
	servers, notes := mcp.Open(t.Context(), []mcp.Server{badServer(t, overHTTP)},
		mcp.Options{Interactive: true})
	t.Cleanup(func() { servers.Close() })
	if len(notes) > 0 {
		t.Fatal(notes)
	}
	return servers.Tool(false, false, func(string) bool { return true })
}

// badPage is a web server that does not send a page: it never answers, sends a byte now and then,
// or breaks the connection off. Its address ends the test's call.
func badPage(t *testing.T, how string) (arguments string) {
	t.Helper()
	over := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch how {
		case "dies":
			conn, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				_ = conn.(*net.TCPConn).SetLinger(0)
				conn.Close()
			}
			return
		case "drips":
			fmt.Fprint(w, "<html><body>")
			for range 1000 {
				fmt.Fprint(w, "x")
				w.(http.Flusher).Flush()
				select {
				case <-time.After(50 * time.Millisecond):
				case <-r.Context().Done():
					return
				case <-over:
					return
				}
			}
		}
		select {
		case <-over:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(func() { close(over); s.Close() })
	return fmt.Sprintf(`{"id":%q}`, s.URL)
}

// oneCall is a model that calls a tool once and answers then.
func oneCall(recipient, arguments string) [][]session.Event {
	return [][]session.Event{{session.CallStart{ID: "c1", Name: recipient, Recipient: recipient},
		session.CallArguments{Text: arguments}, session.CallEnd{Arguments: arguments},
		session.Done{Finish: session.FinishToolCalls, Usage: session.Usage{Prompt: 50,
			Completion: 30}}},
		turn(answering("So it was."), []session.Event{stopped(90, 4)})}
}

// A backEnd is a call of a tool, and what becomes of it.
type backEnd struct {
	name                 string
	recipient, arguments string
	says                 string // while it runs
	asks, ends           bool   // by itself
}

func TestTheScreenAnswersWhateverATool(t *testing.T) {
	var all sync.WaitGroup // each waits for a tool
	for _, c := range []backEnd{
		{name: "mcp slow", recipient: "functions.bad_slow", asks: true, ends: true},
		{name: "mcp hangs", recipient: "functions.bad_hang", asks: true},
		{name: "mcp dies", recipient: "functions.bad_die", asks: true, ends: true},
		{name: "mcp changes and hangs", recipient: "functions.bad_change", asks: true, ends: true},
		{name: "http slow", recipient: "functions.bad_slow", asks: true, ends: true},
		{name: "http hangs", recipient: "functions.bad_hang", asks: true},
		{name: "http dies", recipient: "functions.bad_die", asks: true, ends: true},
		{name: "python slow", recipient: "python", ends: true,
			arguments: "import os, time\nwhile not os.path.exists(%q):\n    print(1)\n" +
				"    time.sleep(.1)"},
		{name: "python hangs", recipient: "python", says: "│ in it",
			arguments: "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n" +
				"print('in it')\nwhile True: time.sleep(9)"},
		{name: "python dies", recipient: "python", ends: true,
			arguments: "import os\nos.kill(os.getpid(), 9)"},
		{name: "browser drips", recipient: "browser.open"},
		{name: "browser hangs", recipient: "browser.open"},
		{name: "browser dies", recipient: "browser.open", ends: true},
	} {
		all.Go(func() { t.Run(c.name, func(t *testing.T) { c.hold(t) }) })
	}
	all.Wait()
}

// hold has the call made and types meanwhile.
func (c backEnd) hold(t *testing.T) {
	approval, arguments := NewApproval(), c.arguments
	released := filepath.Join(t.TempDir(), "released") // the slow part waits for this file
	var tool session.Tool
	kind, how, _ := strings.Cut(c.name, " ")
	switch kind {
	case "mcp", "http":
		tool, arguments = badTool(t, kind == "http"), fmt.Sprintf(`{"until":%q}`, released)
	case "python":
		hosttest.Program(t, "python3")
		arguments = strings.Replace(arguments, "%q", strconv.Quote(released), 1)
		p, err := python.New(python.Options{Sandbox: "unsafe"})
		if err != nil {
			t.Fatal(err)
		}
		tool = p
	case "browser":
		tool, arguments = browser.New(browser.Options{Time: time.Minute,
			Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}), badPage(t, how)
	}
	defer tool.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w := open(t, ctx, 80, 24, Options{Tools: []session.Tool{tool}, Approval: approval,
		Model: script(oneCall(c.recipient, arguments)...)})
	w.until("Ask something")
	w.typing("do it\r")
	w.until("→ ")
	if c.asks {
		w.until("wants to run")
		w.answers("any") // letters that would answer, were they not of a text
		w.typing("\x15")
		hosttest.Until(t, "y answers", w.answerable)
		w.typing("y")
	}
	w.until(c.says)
	w.answers("uring")
	if err := os.WriteFile(released, nil, 0o600); err != nil {
		t.Error(err)
	}
	if c.ends {
		w.until("So it was.")
	} else {
		w.typing("\x1b") // Esc
		w.until("stopped")
	}
	w.answers("fter")
	w.typing("\x15/quit\r")
	if err := w.wait(); err != nil {
		t.Errorf("Run: %v", err)
	}
}

// answers types a word and waits for each letter on the screen, with nothing else to wake it. What
// the tool waits for happens only after it, so a screen that waits for the tool shows no letter.
func (w *window) answers(word string) {
	w.t.Helper()
	w.typing("\x15")
	for n := range word {
		w.typing(word[n : n+1])
		w.until("❯ " + word[:n+1])
	}
}

// answerable tells that the open question shows its keys, bold since one would answer it.
func (w *window) answerable() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.screen.Rows(), func(row []screentest.Cell) bool {
		return len(row) > 4 && row[1].Text == "╰" && row[3].Text == "y" && row[3].Style.Bold
	})
}

// Another process has the store's file locked: a message waits for it no longer than its patience,
// and the screen does not wait at all.
func TestTheScreenAnswersWhileTheStoreIsLocked(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kept.db")
	store, err := records.Open(records.Options{File: file, TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	other, err := sql.Open("sqlite", "file:"+file)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	conn, err := other.Conn(t.Context())
	if err == nil {
		_, err = conn.ExecContext(t.Context(), "BEGIN EXCLUSIVE")
	}
	if err != nil {
		t.Fatal(err)
	}
	w := open(t, t.Context(), 80, 24, Options{Store: store,
		Claim: func(string) (func(), bool) { return func() {}, true },
		Model: script(fine("Kept or not."))})
	w.until("Ask something")
	w.typing("a message\rx")
	text := ""
	hosttest.Until(t, "a letter", func() bool { text = w.text(); return strings.Contains(text, "❯ x") })
	if strings.Contains(text, "❯ a message") {
		t.Errorf("a letter waits for the message before it to be kept:\n%s", text)
	}
	w.answers("fter")
	w.until("Kept or not.")
	for _, command := range []string{"/rename it", "/new", "/resume it", "/sessions "} {
		w.typing("\x15" + command + "\r")
		w.answers("ext")
	}
	if _, err := conn.ExecContext(t.Context(), "ROLLBACK"); err != nil {
		t.Error(err)
	}
	w.typing("\x15/quit\r")
	if err := w.wait(); err != nil {
		t.Errorf("Run: %v", err)
	}
	if k, err := find(store, ""); err != nil || k.Name != "it" {
		t.Errorf("kept is %+v, %v", k, err)
	}
}

// stuck is all that the chat is given, and nothing of it ever returns by itself.
type stuck struct{ released chan struct{} }

func (s stuck) wait() { <-s.released }

func (s stuck) Offer(*session.Request)                              { s.wait() }
func (s stuck) Runs(string) bool                                    { s.wait(); return true }
func (s stuck) Close() error                                        { s.wait(); return nil }
func (s stuck) Citations(string) []session.Citation                 { s.wait(); return nil }
func (s stuck) Put(records.Record) error                            { s.wait(); return nil }
func (s stuck) List(records.Kind) []records.Record                  { s.wait(); return nil }
func (s stuck) Delete(records.Kind, string) (bool, error)           { s.wait(); return false, nil }
func (s stuck) Change(func(*records.Change) error) error            { s.wait(); return nil }
func (s stuck) Refused() int64                                      { s.wait(); return 0 }
func (s stuck) renew() ([]session.Tool, error)                      { s.wait(); return nil, nil }
func (s stuck) models(context.Context) []session.ModelInfo          { s.wait(); return nil }
func (s stuck) Get(records.Kind, string) (r records.Record, _ bool) { s.wait(); return r, false }

func (s stuck) Unsaved(records.Kind, string) error { s.wait(); return nil }

func (s stuck) claim(string) (release func(), ok bool) {
	s.wait()
	return s.wait, true
}

func (s stuck) Run(context.Context, session.Call, func(string)) (r session.ToolResult, _ error) {
	s.wait()
	return r, nil
}

func (s stuck) switchTo(context.Context, string) (session.Runner, error) {
	s.wait()
	return script(), nil
}

// Everything that a chat is given hangs, and every message of every key and command is taken and
// drawn.
func TestUpdateAndViewWaitForNothing(t *testing.T) {
	t.Chdir(t.TempDir()) // /export writes there
	t.Setenv("EDITOR", "true")
	t.Setenv("TMPDIR", t.TempDir())
	s := stuck{make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	defer close(s.released)
	var m *Model
	take := func(what string, work func()) {
		t.Helper()
		done := make(chan bool)
		go func() { work(); m.View(); close(done) }()
		select {
		case <-done:
		case <-time.After(2 * time.Minute):
			t.Fatalf("%s: the screen waits", what)
		}
	}
	take("the model", func() {
		m = newModel(ctx, Options{Tools: []session.Tool{s}, ReplaceTools: s.renew, Claim: s.claim,
			Store: s, Switch: s.switchTo, Models: s.models,
			Model:    script(oneCall("python", "1")...),
			Approval: NewApproval(), HistoryPath: filepath.Join(t.TempDir(), "history")})
	})
	t.Cleanup(m.background.Wait)
	update := func(msg tea.Msg) { m.Update(msg) }
	take("the start", func() { m.Init() })
	take("the size", func() { update(tea.WindowSizeMsg{Width: 80, Height: 24}) })
	take("a turn", func() { m.ask("question", "question", nil) })
	lines := []string{"a message", "another", "@/etc/hostname"}
	for _, c := range commands {
		lines = append(lines, "/"+c.name, "/"+c.name+" 1", "/"+c.name+" low")
	}
	for _, line := range lines {
		take(line, func() {
			m.input.editor.set("")
			for _, r := range line {
				update(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune{r}})
			}
			update(key("enter"))
		})
		take("after "+line, func() {
			for _, k := range []string{"up", "tab", "esc", "ctrl+g", "ctrl+t", "ctrl+c"} {
				m.quitting = false
				update(key(k))
			}
			update(tick(time.Now()))
		})
	}
}
