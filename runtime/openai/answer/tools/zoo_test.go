package tools_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/ossrun/ossrun/harmony"
	"github.com/ossrun/ossrun/runtime/openai"
	"github.com/ossrun/ossrun/runtime/openai/porttest"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
	"github.com/ossrun/ossrun/runtime/tools"
	"github.com/ossrun/ossrun/runtime/tools/mcp"
	"github.com/ossrun/ossrun/runtime/tools/mcp/zootest"
)

// The port through the zoo: servers with one fault each. Each request has its answer, and the
// others' tools are there whatever one server does. Only those that hang have little time.
func TestZooAtThePort(t *testing.T) {
	zoo := zootest.Zoo(t, "process", "http", "sse")
	zootest.Open(t, zoo)
	var groups []*mcp.Servers
	for _, group := range zootest.Groups(zoo) {
		list, notes, err := mcp.Config(zootest.Config(t, group.Animals))
		if err != nil || len(notes) > 0 || len(list) != len(group.Animals) {
			t.Fatal(len(list), notes, err)
		}
		servers, _ := mcp.Open(t.Context(), list, mcp.Options{Start: group.Start, Time: group.Time})
		t.Cleanup(func() { servers.Close() })
		groups = append(groups, servers)
	}
	play := func(r session.Request) ([]session.Event, error) {
		last := r.Messages[len(r.Messages)-1]
		if last.Role == harmony.RoleTool || len(r.Functions) == 0 {
			return sessiontest.Answers("ok")(r)
		}
		return sessiontest.Call("call_1", "functions."+r.Functions[0].Name, "{}"), nil
	}
	srv, _ := porttest.Server(t, play, func(o *openai.Options) {
		o.Tools = func(kind, label string) ([]session.Tool, error) {
			for _, servers := range groups {
				tool := servers.Tool(false, false, func(name string) bool { return name == label })
				if kind == tools.MCP && tool != nil && len(tool.Tools()) > 0 {
					return []session.Tool{tool}, nil
				}
			}
			return nil, nil
		}
	})
	var running sync.WaitGroup
	for _, a := range zoo {
		running.Go(func() {
			body := fmt.Sprintf(`{"input":"x","tools":[{"type":"mcp","server_label":%q,`+
				`"require_approval":"never","allowed_tools":["echo"]}]}`, a.Name)
			var answer porttest.Reply
			var call map[string]any
			hosttest.Until(t, a.Fault, func() bool {
				answer = porttest.Ask(t, "POST", srv.URL+"/v1/responses", body)
				call = porttest.LastItem(porttest.Decode(t, answer.Body), "mcp_call")
				return call != nil || !a.Late
			})
			if !a.Callable() {
				if answer.Status != 400 || !strings.Contains(answer.Body, "cannot be used") {
					t.Errorf("%s, %s: %d %s", a.Over, a.Fault, answer.Status, answer.Body)
				}
				return
			}
			output, _ := call["output"].(string)
			failure := ""
			if call["error"] != nil {
				failure = fmt.Sprint(call["error"])
			}
			if call == nil || !a.IsExpected(output, failure) {
				t.Errorf("%s, %s: %d, %.300v, not %q%q", a.Over, a.Fault, answer.Status, call, a.Says,
					a.Fails)
			}
		})
	}
	running.Wait()
}
