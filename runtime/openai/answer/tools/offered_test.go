// Tools of the makers' types that the client runs: offered as functions, held to their form, and
// read again as they were called.

package tools_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/openai/answer/tools"
	"github.com/ossrun/ossrun/runtime/openai/porttest"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
)

// Each call becomes its item, streamed or not, and the item becomes the same call again.
func TestClientToolsAreCalledAndReadAgain(t *testing.T) {
	const update = "*** Begin Patch\n*** Update File: a b.go\n@@ func f\n x\n-y\n+\n*** End Patch"
	for _, c := range []struct{ tool, name, call, item, result string }{
		{`{"type":"shell"}`, "shell", `{"commands":["ls","pwd"],"timeout_ms":9}`, `"action":{` +
			`"commands":["ls","pwd"],"timeout_ms":9,"max_output_length":null}`,
			`"output":[{"stdout":"a","stderr":"","outcome":{"type":"exit","exit_code":0}}]`},
		{`{"type":"local_shell"}`, "local_shell", `{"command":["ls","-l"],"working_directory":"/a"}`,
			`"action":{"type":"exec","command":["ls","-l"],"env":{},"working_directory":"/a"}`,
			`"output":"a"`}, // ai refuses null for the others
		{`{"type":"apply_patch"}`, "apply_patch", update, `"operation":{"type":"update_file",` +
			`"path":"a b.go","diff":"@@ func f\n x\n-y\n+\n"}`, `"status":"completed","output":"a"`},
		{`{"type":"apply_patch"}`, "apply_patch", "*** Begin Patch\n*** Add File: n\n+a\n" +
			"*** End Patch\n", `"operation":{"type":"create_file","path":"n","diff":"+a\n"}`,
			`"status":"failed","output":"a"`},
		{`{"type":"apply_patch"}`, "apply_patch", "*** Begin Patch\n*** Delete File: n\n" +
			"*** End Patch", `"operation":{"type":"delete_file","path":"n"}`, `"output":"a"`},
		{`{"type":"tool_search","execution":"client"}`, "tool_search", `{"query":"mail"}`,
			`"execution":"client","arguments":{"query":"mail"}`,
			`"tools":[{"type":"function","name":"a"}]`},
	} {
		for _, stream := range []string{"false", "true"} {
			srv, f := porttest.Server(t, sessiontest.Calls(c.name, c.call))
			ask := func(input string) string {
				return porttest.Post(t, srv, "/v1/responses", `{"input":[{"role":"user","content":"x"}`+
					input+`],"stream":`+stream+`,"tools":[`+c.tool+`]}`).Body
			}
			body := ask("")
			m := any(nil)
			if stream == "true" {
				list := porttest.Events(t, body)
				m = porttest.At(list[len(list)-1].Json, "response")
				if n := strings.Count(body, `"type":"`+c.name+`_call"`); n != 3 { // added, done, response
					t.Errorf("%d items of %s in %s", n, c.name, body)
				}
			} else {
				m = porttest.Decode(t, body)
			}
			item := porttest.LastItem(m, c.name+"_call")
			var want map[string]any
			if err := json.Unmarshal([]byte("{"+strings.ReplaceAll(c.item, "\n", `\n`)+"}"),
				&want); err != nil {
				t.Fatal(err)
			}
			for key, value := range want {
				got, _ := json.Marshal(item[key])
				if w, _ := json.Marshal(value); string(got) != string(w) {
					t.Errorf("%s of %s is %s, want %s", key, c.name, got, w)
				}
			}
			if item["status"] != "completed" || item["call_id"] != "call_1" {
				t.Errorf("%v", item)
			}
			sent, _ := json.Marshal(item)
			ask("," + string(sent) + `,{"type":"` + c.name + `_call_output","call_id":"call_1",` +
				c.result + `}`)
			if c.name == "tool_search" {
				continue // its output has another type
			}
			call := f.Last(t).Messages[1]
			if got := call.Text(); strings.TrimSpace(got) != strings.TrimSpace(c.call) ||
				call.Recipient != "functions."+c.name || f.Last(t).Messages[2].Text() != "a" {
				t.Errorf("%s", sessiontest.History(f.Last(t)))
			}
		}
	}
}

// A patch of the model is one operation on one file, or it cannot be written.
func TestPatchesAreHeld(t *testing.T) {
	srv, f := porttest.Server(t, sessiontest.Answers("ok"))
	porttest.Post(t, srv, "/v1/responses", `{"input":"x","tools":[{"type":"apply_patch"}]}`)
	g := f.Last(t).Texts[tools.ApplyPatch]
	for text, want := range map[string]bool{
		"*** Update File: a\n@@\n-x\n+y\n":                    true,
		"*** Update File: a\n-x\n@@ f\n y\n*** End of File\n": true,
		"*** Add File: a\n+x\n+\n":                            true,
		"*** Delete File: a\n":                                true,
		"*** Add File: a\nx\n":                                false,
		"*** Add File: \n+x\n":                                false,
		"*** Add File: a\n":                                   false,
		"*** Update File: a\n@@\n":                            false,
		"*** Update File: a\n*** Move to: b\n@@\n-x\n":        false,
		"*** Delete File: a\n*** Delete File: b\n":            false,
	} {
		m := g.Matcher()
		if got := m.AcceptText([]byte("*** Begin Patch\n"+text+"*** End Patch")) &&
			m.Done(); got != want {
			t.Errorf("%q: %v", text, got)
		}
		if o := tools.ReadPatch("*** Begin Patch\n" + text + "*** End Patch"); want &&
			o.Patch() != "*** Begin Patch\n"+text+"*** End Patch" {
			t.Errorf("%q is read as %q", text, o.Patch())
		}
	}
}

// A choice of such a tool, the words of a namespace, and routes and forms that are refused.
func TestClientToolsAreChosenOrRefused(t *testing.T) {
	srv, f := porttest.Server(t, sessiontest.Answers("ok"))
	porttest.Post(t, srv, "/v1/responses", `{"input":"x","tools":[{"type":"shell"}],"tool_choice":`+
		`{"type":"shell"}}`)
	if got := f.Last(t).ToolName; got != "shell" {
		t.Errorf("chosen is %q", got)
	}
	porttest.Post(t, srv, "/v1/responses", `{"input":"x","tools":[{"type":"shell"},`+
		`{"type":"local_shell"}],"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[`+
		`{"type":"shell"}]}}`)
	if got := f.Last(t).Functions; len(got) != 1 || got[0].Name != "shell" {
		t.Errorf("allowed are %v", got)
	}
	porttest.Post(t, srv, "/v1/responses", `{"input":"x","tools":[{"type":"namespace","name":"crm",`+
		`"description":"Customers.","tools":[{"type":"function","name":"list","description":`+
		`"Lists."},{"type":"function","name":"get","description":"Gets."}]}]}`)
	if got := f.Last(t).Functions; got[0].Description != "Customers.\n\nLists." ||
		got[1].Description != "Gets." {
		t.Errorf("%+v", got)
	}
	for body, want := range map[string]string{
		`/v1/chat/completions {"messages":[` + porttest.Hello + `],"tools":[{"type":"shell"}]}`: "/v1/responses",
		`/v1/responses {"input":"x","tools":[{"type":"memory_20250818"}]}`:                      "/v1/messages",
		`/v1/responses {"input":"x","tools":[{"type":"shell","environment":` +
			`{"type":"container_auto"}}]}`: "container_auto",
		`/v1/responses {"input":"x","tools":[{"type":"tool_search","execution":"client",` +
			`"parameters":{"type":"object","properties":{"a":` + strings.Repeat(`{"items":`, 300) +
			`1` + strings.Repeat("}", 300) + `}}}]}`: "nested",
	} {
		path, text, _ := strings.Cut(body, " ")
		if r := porttest.Ask(t, "POST", srv.URL+path, text); r.Status != 400 ||
			!strings.Contains(r.Body, want) {
			t.Errorf("%s: %d %s", body, r.Status, r.Body)
		}
	}
}

// Both tools of the web share one browser, which keeps to the limits of both.
func TestToolsOfTheWebShareLimits(t *testing.T) {
	for list, want := range map[string]string{
		`"allowed_domains":["a.org","b.org"]|"allowed_domains":["x.b.org","c.org"]`: "false [x.b.org] []",
		`"allowed_domains":["a.org"]|"allowed_domains":["b.org"]`:                   "false [] []",
		`"allowed_domains":["A.org/"]|"allowed_domains":["https://a.org"]`:          "false [a.org] []",
		`"blocked_domains":["a.org"]|"allowed_domains":["b.org"]`:                   "false [b.org] [a.org]",
		`"blocked_domains":["a.org"]|"blocked_domains":["b.org"]`:                   "false [] [a.org b.org]",
	} {
		search, fetch, _ := strings.Cut(list, "|")
		if got := limitsOf(t, `{"type":"web_search_20250305","name":"web_search",`+search+
			`},{"type":"web_fetch_20250910","name":"web_fetch",`+fetch+`}`); got != want {
			t.Errorf("%s: %s, want %s", list, got, want)
		}
	}
}
