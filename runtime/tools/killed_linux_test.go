package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
	"github.com/ossrun/ossrun/runtime/tools/mcp"
)

// The test program is also an MCP server, whose tool can hang after a notice.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "server" {
		server := sdk.NewServer(&sdk.Implementation{Name: "own", Version: "1"}, nil)
		server.AddTool(&sdk.Tool{Name: "wait", InputSchema: json.RawMessage(`{"type":"object"}`)},
			func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
				if strings.Contains(string(r.Params.Arguments), "hang") {
					_ = r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{
						ProgressToken: r.Params.GetProgressToken(), Progress: 1})
					<-ctx.Done()
				}
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
	calls  int
	hang   int      // this call hangs, unless before is set
	before func()   // runs before that call
	read   []string // what the tools said
}

func (c *caller) turn(r session.Request) ([]session.Event, error) {
	if n := len(r.Messages); n > 1 {
		c.read = append(c.read, r.Messages[n-1].Text())
	}
	n := len(c.read) + 1
	if n > c.calls {
		return []session.Event{session.Answer{Text: "Done."},
			sessiontest.Done(session.FinishStop)}, nil
	}
	recipient, arguments := "python", "print('alive')"
	if n%2 == 0 {
		recipient, arguments = "functions.own_wait", "{}"
	}
	switch {
	case n == c.hang && c.before != nil:
		c.before()
	case n == c.hang && n%2 == 0:
		arguments = `{"then":"hang"}`
	case n == c.hang:
		arguments = "import time\nprint('begun')\ntime.sleep(600)"
	}
	return sessiontest.Call(fmt.Sprint("call_", n), recipient, arguments), nil
}

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

// kill -9 of the tools' processes before each call of a turn and in it, when the tool has said
// something: every call has a result, one that was lost says so, and the turn comes to its answer.
func TestToolsKilled(t *testing.T) {
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
	kill := func() {
		for _, pid := range children(t) {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
		}
	}
	for round := range 8 {
		list, err := here.ForConversation()
		if err != nil {
			t.Fatal(err)
		}
		model := &caller{calls: 4, hang: 1 + round/2}
		inside := round%2 == 1
		if !inside {
			model.before = kill
		}
		loop, err := session.StartWithTools(t.Context(), &sessiontest.Model{Script: model.turn},
			session.Request{Messages: []session.Message{session.User("go on")}}, list,
			session.ToolOptions{})
		if err != nil {
			t.Fatal(err)
		}
		done := session.Done{}
		for e, ok := loop.Next(); ok; e, ok = loop.Next() {
			switch e := e.(type) {
			case session.Done:
				done = e
			case session.ToolOutput:
				if inside && len(model.read) == model.hang-1 {
					kill()
				}
			}
		}
		if done.Finish != session.FinishStop || loop.Result().Answer != "Done." ||
			len(model.read) != model.calls {
			t.Errorf("round %d: %+v, results %q", round, done, model.read)
		}
		failed := 0
		for i, text := range model.read {
			switch {
			case text == "alive" || text == "alive\n":
				if inside && i == model.hang-1 {
					t.Errorf("round %d: nothing was killed", round)
				}
			case strings.Contains(text, "Error: ") && (strings.Contains(text, "variables are gone") ||
				strings.Contains(text, "ended during the call") ||
				strings.Contains(text, "start python in")):
				failed++
			default:
				t.Errorf("round %d: a call says %q", round, text)
			}
		}
		if failed > 2 { // the one in which they were killed, and the first of the other tool
			t.Errorf("round %d: %q", round, model.read)
		}
		for _, one := range list {
			if err := one.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
