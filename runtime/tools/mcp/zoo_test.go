package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/runtime/tools/mcp/zootest"
)

// inProcess is a server without a process.
type inProcess struct {
	program
	start  func(stderr io.Writer) (io.WriteCloser, io.ReadCloser)
	stderr io.Writer
	out    io.ReadCloser
}

func (p *inProcess) Connect(ctx context.Context) (sdk.Connection, error) {
	p.in, p.out = p.start(p.stderr)
	p.readFrom(p.out)
	return (&sdk.IOTransport{Reader: p, Writer: p, MaxLineLength: -1}).Connect(ctx)
}

func (p *inProcess) Close() error { return errors.Join(p.in.Close(), p.out.Close()) }

// servers are the animals as a configuration has them.
func servers(zoo []*zootest.Animal) (list []Server) {
	for _, a := range zoo {
		s := Server{Name: a.Name, Command: a.Command, Args: a.Args, URL: a.URL, Type: a.Type}
		if a.Over == "pipes" {
			s.replace = func(stderr io.Writer) sdk.Transport {
				return &inProcess{start: a.Pipes, stderr: stderr}
			}
		}
		list = append(list, s)
	}
	return list
}

// bubble is a test whose clock moves when all wait, with animals in memory.
func bubble(t *testing.T, zoo []*zootest.Animal, test func(*testing.T, []Server)) {
	synctest.Test(t, func(t *testing.T) {
		zootest.OpenInMemory(t, zoo)
		test(t, servers(zoo))
	})
}

// All servers of the zoo at once: each works or costs one sentence, and none hangs.
func TestZoo(t *testing.T) {
	zoo := zootest.Zoo(t, "pipes", "http", "memory", "sse")
	bubble(t, zoo, func(t *testing.T, list []Server) {
		visit(t, zoo, list, Options{Start: 7 * time.Second, Time: 5 * time.Second})
	})
}

// Those that are processes. Each that hangs is given little time and its neighbours minutes.
func TestZooOfProcesses(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) }) // when the servers have ended
	zoo := zootest.Zoo(t, "process")
	zootest.Open(t, zoo)
	for _, g := range zootest.Groups(zoo) {
		visit(t, g.Animals, servers(g.Animals), Options{Start: g.Start, Time: g.Time})
	}
}

// visit opens the servers and calls each that can be called.
func visit(t *testing.T, zoo []*zootest.Animal, list []Server, o Options) {
	t.Helper()
	s, notes := open(t, o, list...)
	told := map[string]string{}
	for _, note := range notes {
		name, why, _ := strings.Cut(strings.TrimPrefix(note, "MCP server "), " was skipped: ")
		if told[name] != "" || why == "" || strings.Contains(note, "\n") {
			t.Errorf("one sentence too many: %s", note)
		}
		told[name] = why
	}
	var all sync.WaitGroup // a conversation each: calls of one wait for each other
	for _, a := range zoo {
		if why := told[fmt.Sprintf("%q", a.Name)]; a.Skipped == "" && why != "" ||
			!strings.HasPrefix(why, a.Skipped) {
			t.Errorf("%s, %s: skipped as %q, not %q", a.Over, a.Fault, why, a.Skipped)
		}
		if !a.Callable() {
			continue
		}
		all.Go(func() {
			tool := s.Tool(false, false, func(name string) bool { return name == a.Name })
			if tool == nil {
				t.Errorf("%s, %s: no tool", a.Over, a.Fault)
				return
			}
			defer func() { tool.Close() }()
			function := "functions." + a.Name + "_echo"
			for range 400 {
				if tool.Offer(&session.Request{}); tool.Runs(function) || !a.Late {
					break
				}
				time.Sleep(50 * time.Millisecond)
				tool = s.Tool(false, false, tool.functions)
			}
			again := 2 // what works does so again
			if a.Fails != "" {
				again = 1
			}
			for range again {
				got, err := call(t, tool, function, `{"q":"x"}`)
				failure := ""
				if err != nil {
					failure = err.Error()
				}
				if !a.IsExpected(got, failure) {
					t.Errorf("%s, %s: %.200q, %.300q, not %q%q", a.Over, a.Fault, got, failure,
						a.Says, a.Fails)
				}
			}
		})
	}
	all.Wait()
}

// animal is the one over a transport with a fault.
func animal(t *testing.T, over, fault string) *zootest.Animal {
	t.Helper()
	for _, a := range zootest.Zoo(t, over) {
		if a.Fault == fault {
			return a
		}
	}
	t.Fatalf("there is no %s, %s", over, fault)
	return nil
}

// A message that is too long costs its call, which says so.
func TestHugeMessage(t *testing.T) {
	for _, over := range []string{"pipes", "http"} {
		huge := animal(t, over, "none")
		huge.Call = json.RawMessage(`{"content": [{"type": "text", "text": "` +
			strings.Repeat("x", 17<<20) + `"}]}`)
		bubble(t, []*zootest.Animal{huge}, func(t *testing.T, list []Server) {
			s, notes := open(t, Options{}, list...)
			if len(notes) > 0 {
				t.Fatal(notes)
			}
			tool, _ := conversation(t, s)
			fails(t, tool, "functions.a0_echo", "{}",
				"(it sent a message of more than 16 MB); the next call")
		})
	}
}

// A late server joins the conversation of a person who is there, and any other if it needs no
// approval; new conversations always have it.
func TestLateServersJoin(t *testing.T) {
	for _, c := range []struct {
		interactive bool
		require     string
		joins       bool
	}{{true, "", true}, {false, approvalNever, true}, {false, "", false}} {
		late := animal(t, "http", "comes late")
		bubble(t, []*zootest.Animal{late}, func(t *testing.T, list []Server) {
			list[0].RequireApproval = c.require
			s, notes := open(t, Options{Interactive: c.interactive}, list...)
			tool, r := conversation(t, s)
			if len(r.Functions) != 0 || len(notes) != 1 {
				t.Fatal(r.Functions, notes)
			}
			time.Sleep(time.Minute)
			tool.Offer(&session.Request{})
			other, _ := conversation(t, s)
			if tool.Runs("functions.a0_echo") != c.joins || !other.Runs("functions.a0_echo") {
				t.Errorf("%q: joins is %v", c.require, !c.joins)
			}
		})
	}
}

// A chat is shown while a server still hangs, with the tools of the others.
func TestAChatDoesNotWaitForAServerThatHangs(t *testing.T) {
	zoo := []*zootest.Animal{animal(t, "pipes", "hangs"), animal(t, "http", "none")}
	bubble(t, zoo, func(t *testing.T, list []Server) {
		began := time.Now()
		s, notes := open(t, Options{Start: time.Minute, Interactive: true}, list...)
		if len(notes) != 1 || notes[0] != `MCP server "a0" was skipped: it does not answer yet.` ||
			time.Since(began) != maxStartWait {
			t.Errorf("%q after %v", notes, time.Since(began))
		}
		tool, _ := conversation(t, s)
		says(t, tool, "functions.a1_echo", "{}", "the answer of echo")
	})
}
