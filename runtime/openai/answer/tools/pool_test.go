package tools_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ossrun/ossrun/harmony"
	"github.com/ossrun/ossrun/runtime/openai"
	"github.com/ossrun/ossrun/runtime/openai/answer"
	"github.com/ossrun/ossrun/runtime/openai/answer/tools"
	"github.com/ossrun/ossrun/runtime/openai/fields"
	"github.com/ossrun/ossrun/runtime/openai/porttest"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
)

// countingTool is python that says which interpreter it is and how many cells it has run.
type countingTool struct {
	porttest.ScriptedTool
	number, cells int64
}

func (c *countingTool) Run(context.Context, session.Call, func(string)) (session.ToolResult,
	error) {
	c.cells++
	return session.ToolResult{Text: fmt.Sprintf("%d.%d", c.number, c.cells)}, nil
}

// keeper is a port whose interpreters count. What the model says is the last cell's output; it
// calls python where the last message is "run".
func keeper(t *testing.T, idle time.Duration) (srv *httptest.Server, open *atomic.Int64) {
	t.Helper()
	open = &atomic.Int64{}
	var made atomic.Int64
	model := &sessiontest.Model{Script: func(r session.Request) ([]session.Event, error) {
		last := r.Messages[len(r.Messages)-1]
		switch {
		case last.Role == harmony.RoleTool:
			return []session.Event{session.Answer{Text: last.Text()},
				sessiontest.Done(session.FinishStop)}, nil
		case r.Python && strings.HasSuffix(last.Text(), "run"):
			return sessiontest.Call(answer.NewID("call_"), "python", "x"), nil
		case last.Text() == "fail":
			return []session.Event{session.Done{Finish: session.FinishError}}, nil
		}
		return []session.Event{session.Answer{Text: "idle"}, sessiontest.Done(session.FinishStop)}, nil
	}}
	h := porttest.NewChecked(t,
		openai.Options{Options: answer.Options{Models: sessiontest.Single(model, model.Now)},
			Tools: func(kind, _ string) ([]session.Tool, error) {
				open.Add(1)
				return []session.Tool{&countingTool{ScriptedTool: porttest.ScriptedTool{Kind: kind,
					Open: open},
					number: made.Add(1)}}, nil
			}})
	t.Cleanup(tools.SetIdle(idle))
	srv = httptest.NewServer(h)
	t.Cleanup(func() {
		srv.Close()
		h.Close()
		http.DefaultClient.CloseIdleConnections()
		if n := open.Load(); n != 0 {
			t.Errorf("%d tools were not closed", n)
		}
	})
	return srv, open
}

// python is a request with python, whose container is a JSON value.
func python(container, fields string) string {
	return `{"tools":[{"type":"code_interpreter","container":` + container + `}],` + fields + `}`
}

const auto = `{"type":"auto"}`

func toldBy(t *testing.T, srv *httptest.Server, body string) (text, id, container string) {
	t.Helper()
	m := porttest.Decode(t, porttest.Post(t, srv, "/v1/responses", body).Body)
	text, _ = porttest.At(porttest.LastItem(m, "message"), "content", 0, "text").(string)
	container, _ = porttest.LastItem(m, "code_interpreter_call")["container_id"].(string)
	return text, m["id"].(string), container
}

// A response goes on with the tools of the one before it.
func TestToolsGoOn(t *testing.T) {
	srv, _ := keeper(t, time.Hour)
	goOn := func(id, input string) string {
		return `"previous_response_id":"` + id + `","input":"` + input + `"`
	}
	first, id1, container := toldBy(t, srv, python(auto, `"input":"run"`))
	second, id2, same := toldBy(t, srv, python(auto, goOn(id1, "run")))
	if first != "1.1" || second != "1.2" || container == "" || container != same {
		t.Errorf("%s in %s, then %s in %s", first, container, second, same)
	}
	if fork, _, other := toldBy(t, srv, python(auto, goOn(id1, "run"))); fork != "2.1" ||
		other == container {
		t.Errorf("a fork has %s in %s", fork, other)
	}
	// one without the tool, and one that fails, leave it to those after them
	_, id3, _ := toldBy(t, srv, `{`+goOn(id2, "x")+`}`)
	r := porttest.Ask(t, "POST", srv.URL+"/v1/responses", python(auto, goOn(id3, "fail")))
	if r.Status != 500 {
		t.Errorf("%d", r.Status)
	}
	third, _, _ := toldBy(t, srv, python(auto, goOn(id3, "run")))
	if third != "1.3" {
		t.Errorf("third %s", third)
	}
	// by the container's own id, from anywhere
	if by, _, in := toldBy(t, srv, python(`"`+container+`"`, `"input":"run","store":false`)); by !=
		"1.4" || in != container {
		t.Errorf("%s in %s", by, in)
	}
	porttest.WantFault(t, porttest.Ask(t, "POST", srv.URL+"/v1/responses", python(`"cntr_x"`, `"input":"run"`)), 404,
		fields.KindInvalid, "tools", "container_not_found", "cntr_x")

	talk := porttest.Decode(t, porttest.Post(t, srv, "/v1/conversations", `{}`).Body)["id"].(string)
	for _, want := range []string{"3.1", "3.2"} {
		got, _, _ := toldBy(t, srv, python(auto, `"conversation":"`+talk+`","input":"run"`))
		if got != want {
			t.Errorf("in a conversation %s, want %s", got, want)
		}
	}
	// chat completions have no name for what they leave
	porttest.Post(t, srv, "/v1/chat/completions", python(auto,
		`"messages":[{"role":"user","content":"run"}]`))
}

// Tools without a successor are closed: after a while, and when there are too many.
func TestToolsAreNotKeptForEver(t *testing.T) {
	srv, open := keeper(t, 50*time.Millisecond)
	_, _, container := toldBy(t, srv, python(auto, `"input":"run"`))
	porttest.Eventually(t, func() (any, bool) { return open.Load(), open.Load() == 0 })
	porttest.WantFault(t, porttest.Ask(t, "POST", srv.URL+"/v1/responses", python(`"`+container+`"`,
		`"input":"run"`)), 404, fields.KindInvalid, "tools", "container_not_found", "20 minutes")

	srv, open = keeper(t, time.Hour)
	for range tools.MostKeptTools + 8 {
		toldBy(t, srv, python(auto, `"input":"run"`))
	}
	if n := open.Load(); n != tools.MostKeptTools {
		t.Errorf("%d tools are open", n)
	}
	toldBy(t, srv, python(auto, `"input":"x"`)) // one that was not called has nothing to keep
	if n := open.Load(); n != tools.MostKeptTools {
		t.Errorf("%d tools are open after one that was not called", n)
	}
}

// A container goes with the response or conversation that left it, and stays if another one has
// continued with it.
func TestContainersGoWithTheirRecord(t *testing.T) {
	srv, open := keeper(t, time.Hour)
	remove := func(path string, want int64) {
		t.Helper()
		if r := porttest.Ask(t, "DELETE", srv.URL+path, ""); r.Status != 200 || open.Load() != want {
			t.Errorf("DELETE %s: %d, and %d tools are open, not %d", path, r.Status, open.Load(), want)
		}
	}
	_, first, _ := toldBy(t, srv, python(auto, `"input":"run"`))
	_, second, _ := toldBy(t, srv, python(auto, `"input":"run","previous_response_id":"`+first+`"`))
	_, alone, _ := toldBy(t, srv, python(auto, `"input":"run"`))
	talk := porttest.Decode(t, porttest.Post(t, srv, "/v1/conversations", `{}`).Body)["id"].(string)
	_, inTalk, _ := toldBy(t, srv, python(auto, `"input":"run","conversation":"`+talk+`"`))
	remove("/v1/responses/"+first, 3)  // the second has it
	remove("/v1/responses/"+inTalk, 3) // the conversation has it
	remove("/v1/responses/"+second, 2)
	remove("/v1/conversations/"+talk, 1)
	remove("/v1/responses/"+alone, 0)
}
