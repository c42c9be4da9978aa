package mcp

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/runtime/tools/mcp/zootest"
)

// opened is the zoo, and how its servers are reached.
func opened(t *testing.T, animals []zootest.Animal) (zoo []zootest.Animal, list []Server) {
	t.Helper()
	zoo = zootest.Open(t, "testdata/zoo.py", animals)
	for _, a := range zoo {
		list = append(list, Server{Name: a.Name, Command: a.Command, Args: a.Args, URL: a.URL,
			Type: a.Type})
	}
	return zoo, list
}

// All servers of the zoo at once: each works or costs one sentence, and none hangs.
func TestZoo(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) }) // when the servers have ended
	zoo, list := opened(t, zootest.Zoo)
	s, notes := Open(t.Context(), list, Options{Start: 7 * time.Second, Time: 5 * time.Second})
	t.Cleanup(func() { s.Close() })
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
		if a.Says == "" && a.Fails == "" {
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
				if !a.Told(got, failure) {
					t.Errorf("%s, %s: %.200q, %.300q, not %q%q", a.Over, a.Fault, got, failure,
						a.Says, a.Fails)
				}
			}
		})
	}
	all.Wait()
}

// A message that is too long costs its call, which says so.
func TestHugeMessage(t *testing.T) {
	for _, over := range []string{"pipes", "http"} {
		_, list := opened(t, []zootest.Animal{{Over: over, Fault: "huge line"}})
		s, notes := open(t, Options{}, list...)
		if len(notes) > 0 {
			t.Fatal(notes)
		}
		tool, _ := conversation(t, s)
		fails(t, tool, "functions.a0_echo", "{}", "(it sent a message of more than 16 MB); the next call")
	}
}

// A server that comes late joins a conversation whose user is asked, and any other where it needs
// no approval; new conversations have it in any case.
func TestLateServersJoin(t *testing.T) {
	ask := func(context.Context, string, string, string) (bool, error) { return true, nil }
	for _, c := range []struct {
		approve func(context.Context, string, string, string) (bool, error)
		require string
		joins   bool
	}{{ask, "", true}, {nil, approvalNever, true}, {nil, "", false}} {
		_, list := opened(t, []zootest.Animal{{Over: "http", Fault: "comes late"}})
		list[0].RequireApproval = c.require
		s, notes := open(t, Options{Approve: c.approve}, list...)
		tool, r := conversation(t, s)
		if len(r.Functions) != 0 || len(notes) != 1 {
			t.Fatal(r.Functions, notes)
		}
		for end := time.Now().Add(time.Minute); len(s.Lines()) == 0 && time.Now().Before(end); {
			time.Sleep(20 * time.Millisecond)
		}
		tool.Offer(&session.Request{})
		other, _ := conversation(t, s)
		if tool.Runs("functions.a0_echo") != c.joins || !other.Runs("functions.a0_echo") {
			t.Errorf("%q: joins is %v", c.require, !c.joins)
		}
	}
}

// A chat is shown while a server still hangs, with the tools of the others.
func TestAChatDoesNotWaitForAServerThatHangs(t *testing.T) {
	_, list := opened(t, []zootest.Animal{{Over: "pipes", Fault: "hangs"},
		{Over: "http", Fault: "none"}})
	s, notes := open(t, Options{Start: time.Minute,
		Approve: func(context.Context, string, string, string) (bool, error) { return true, nil }},
		list...)
	if len(notes) != 1 || notes[0] != `MCP server "a0" was skipped: it does not answer yet.` {
		t.Errorf("%q", notes) // else it was waited for
	}
	tool, _ := conversation(t, s)
	says(t, tool, "functions.a1_echo", "{}", "the answer of echo")
}
