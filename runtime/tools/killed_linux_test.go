package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ossrun/ossrun/harmony"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/runtime/tools/mcp"
)

// The test program is also an MCP server.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "server" {
		server := sdk.NewServer(&sdk.Implementation{Name: "own", Version: "1"}, nil)
		server.AddTool(&sdk.Tool{Name: "wait", InputSchema: json.RawMessage(`{"type":"object"}`)},
			func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
				time.Sleep(40 * time.Millisecond)
				return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{
					Text: "alive"}}}, nil
			})
		if err := server.Run(context.Background(), &sdk.StdioTransport{}); err != nil {
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// caller is a model that calls python and a server's tool by turns and then answers.
type caller struct {
	calls int
	asked atomic.Int32
	read  []string // what the tools said
}

func (c *caller) ID() string         { return "caller" }
func (c *caller) Device() string     { return "none" }
func (c *caller) ContextLength() int { return 131072 }

func (c *caller) Start(_ context.Context, r session.Request) (session.Turn, error) {
	if n := len(r.Messages); n > 1 {
		c.read = append(c.read, r.Messages[n-1].Text())
	}
	n := int(c.asked.Add(1))
	if n > c.calls {
		return ended(session.Result{Answer: "Done.",
			Done: session.Done{Finish: session.FinishStop}}), nil
	}
	call := session.Call{ID: fmt.Sprint("call_", n), Recipient: "python", Name: "python",
		Arguments: "import time\ntime.sleep(0.04)\nprint('alive')"}
	if n%2 == 0 {
		call.Recipient, call.Name, call.Arguments = "functions.own_wait", "own_wait", "{}"
	}
	m := harmony.Text(harmony.RoleAssistant, call.Arguments).WithChannel("commentary").
		WithRecipient(call.Recipient)
	return ended(session.Result{Calls: []session.Call{call},
		Messages: []session.Message{{CallID: call.ID, Message: m}},
		Done:     session.Done{Finish: session.FinishToolCalls}}), nil
}

// ended is a turn that has ended already.
func ended(r session.Result) session.Turn { return session.Known(r, r.Done) }

// children are the processes that this one has started.
func children(t *testing.T) (pids []int) {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range stats {
		b, _ := os.ReadFile(path) // it may have ended
		_, rest, _ := strings.Cut(string(b), ") ")
		if f := strings.Fields(rest); len(f) > 1 && f[1] == strconv.Itoa(os.Getpid()) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			pids = append(pids, pid)
		}
	}
	return pids
}

// kill -9 of the tools' processes at ten random moments of a turn: every call has a result, one
// that was lost says so, and the turn comes to its answer.
func TestToolsKilledAtRandomMoments(t *testing.T) {
	hosttest.Program(t, "bwrap")
	config := filepath.Join(t.TempDir(), "mcp.json")
	if err := os.WriteFile(config, fmt.Appendf(nil,
		`{"mcpServers":{"own":{"command":%q,"args":["server"]}}}`, os.Args[0]), 0o600); err != nil {
		t.Fatal(err)
	}
	list, _, err := mcp.Config(config)
	if err != nil {
		t.Fatal(err)
	}
	here, err := Open(t.Context(), Options{Names: []string{Python}, Sandbox: "bwrap",
		Listed: list})
	if err != nil || len(here.Notes) > 0 {
		t.Fatal(err, here.Notes)
	}
	defer here.Close()
	lost := 0
	for round := range 10 {
		list, err := here.For()
		if err != nil {
			t.Fatal(err)
		}
		model := &caller{calls: 8}
		loop, err := session.StartWithTools(t.Context(), model, session.Request{
			Messages: []session.Message{session.User("go on")}}, list, session.ToolLimits{})
		if err != nil {
			t.Fatal(err)
		}
		killed := make(chan struct{})
		at := 1 + rand.IntN(7) // the call before which, or in which, they are killed
		go func() {
			defer close(killed)
			for int(model.asked.Load()) <= at {
				time.Sleep(time.Millisecond)
			}
			time.Sleep(time.Duration(rand.IntN(60)) * time.Millisecond)
			for _, pid := range children(t) {
				_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
			}
		}()
		done := session.Done{}
		for e, ok := loop.Next(); ok; e, ok = loop.Next() {
			if d, is := e.(session.Done); is {
				done = d
			}
		}
		<-killed
		if done.Finish != session.FinishStop || loop.Result().Answer != "Done." ||
			len(model.read) != model.calls {
			t.Errorf("round %d: %+v, results %q", round, done, model.read)
		}
		failed := 0
		for _, text := range model.read {
			switch {
			case text == "alive" || text == "alive\n":
			case strings.Contains(text, "Error: ") && (strings.Contains(text, "variables are gone") ||
				strings.Contains(text, "ended during the call") ||
				strings.Contains(text, "start python in")):
				failed++
			default:
				t.Errorf("round %d: a call says %q", round, text)
			}
		}
		if failed > 3 {
			t.Errorf("round %d, killed at call %d: %q", round, at, model.read)
		}
		lost += failed
		for _, one := range list {
			if err := one.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	if lost == 0 {
		t.Error("nothing was killed")
	}
	t.Logf("%d calls of 80 were lost, each said so", lost)
}
