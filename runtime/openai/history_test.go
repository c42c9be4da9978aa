package openai_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/openai/porttest"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
)

// past are items and blocks of other servers and of newer APIs, as an agent's later turns bring
// them: what the model must read of each, and what it must not.
var past = []struct{ route, middle, reads, never string }{
	// responses: calls of tools that the client or OpenAI runs
	{"responses", `{"type":"local_shell_call","call_id":"c1","status":"completed","action":{` +
		`"type":"exec","command":["ls"]}},{"type":"function_call_output","call_id":"c1",` +
		`"output":"notes.txt"}`, "functions.local_shell #c1: {\n#c1: notes.txt", ""},
	{"responses", `{"type":"local_shell_call","id":"s1","call_id":"c1","action":{"command":["ls"]` +
		`}},{"type":"local_shell_call_output","id":"c1","output":"a.txt"}`, "#c1: a.txt", ""},
	{"responses", `{"type":"shell_call","call_id":"c2","action":{"commands":["pwd","id"]}},` +
		`{"type":"shell_call_output","call_id":"c2","output":[{"stdout":"/home","stderr":"oops",` +
		`"outcome":{"type":"exit","exit_code":0}}]}`, "functions.shell #c2\n/home\noops", ""},
	{"responses", `{"type":"apply_patch_call","call_id":"c3","operation":{"type":"update_file",` +
		`"path":"x.go","diff":"+a"}},{"type":"apply_patch_call_output","call_id":"c3",` +
		`"status":"completed","output":"Done!"}`, "functions.apply_patch #c3\nx.go\nDone!", ""},
	{"responses", `{"type":"computer_call","call_id":"c4","action":{"type":"screenshot"}},` +
		`{"type":"computer_call_output","call_id":"c4","output":{"type":"computer_screenshot",` +
		`"image_url":"data:image/png;base64,AAAA"}}`, "functions.computer #c4\n[image: not read]",
		"AAAA"},
	{"responses", `{"type":"file_search_call","id":"f1","status":"completed","queries":["q"],` +
		`"results":[{"filename":"law.pdf","text":"Article 5"}]}`, "law.pdf\nArticle 5", ""},
	{"responses", `{"type":"image_generation_call","id":"i1","result":"AAAA"}`,
		"[image: not read]", "AAAA"},
	// without a partner nothing is read
	{"responses", `{"type":"shell_call","call_id":"c5","action":{"commands":["rm"]}}`, "", "shell"},
	{"responses", `{"type":"shell_call_output","call_id":"c5","output":"x_y_z"}`, "", "x_y_z"},
	{"responses", `{"type":"hologram","blob":"x_y_z"}`, "", "x_y_z"},
	{"responses", `{"role":"user","content":[{"type":"input_text","text":"this: "},` +
		`{"type":"input_image","image_url":"data:AAAA"}]},{"role":"assistant","content":"Nice."}`,
		"this: \n[image: not read]\nNice.", "AAAA"},
	{"responses", `{"role":"user","content":[{"type":"input_file","file_id":"file_1"}]},` +
		`{"role":"assistant","content":[{"type":"output_text","text":"Nice."},` +
		`{"type":"output_hologram"}]}`, "[file: not read]\nNice.", ""},
	{"responses", `{"type":"function_call","call_id":"c6","name":"read","arguments":"{}"},` +
		`{"type":"function_call_output","call_id":"c6","output":[{"type":"input_file",` +
		`"filename":"a.md","file_data":"IyBIaQ=="},{"type":"data","data":{"rows":3}}]}`,
		"# Hi\n{\"rows\":3}", "left out"},
	{"responses", `{"type":"function_call","call_id":"c7","name":"größe","arguments":"{}"},` +
		`{"type":"function_call_output","call_id":"c7","output":"4"}`, "functions.unknown #c7", ""},

	{"responses", `{"type":"shell_call","call_id":"h1","action":{"commands":["ls"],` +
		`"timeout_ms":null}},{"type":"shell_call_output","call_id":"h1","output":[{"stdout":"a",` +
		`"stderr":"b","outcome":{"type":"exit","exit_code":2}},{"stdout":"","stderr":"",` +
		`"outcome":{"type":"timeout"}}]}`,
		"functions.shell #h1: {\"commands\":[\"ls\"]}\n#h1: ab\n[exit code 2]\n[timeout]", "null"},
	{"responses", `{"type":"local_shell_call","id":"l0","call_id":"l1","action":{"type":"exec",` +
		`"command":["ls"],"env":{}}},{"type":"local_shell_call_output","id":"l1",` +
		`"output":"a.txt"}`, "functions.local_shell #l1: {\"command\":[\"ls\"]}\n#l1: a.txt", ""},
	{"responses", `{"type":"apply_patch_call","call_id":"p1","operation":{"type":"update_file",` +
		`"path":"a","diff":"@@\n-x\n+y"}},{"type":"apply_patch_call_output","call_id":"p1",` +
		`"status":"completed"}`, "functions.apply_patch #p1: *** Begin Patch\n*** Update File: a\n" +
		"@@\n-x\n+y\n*** End Patch\n#p1: completed", ""},

	// messages: tools that Anthropic runs, and blocks of newer APIs
	{"messages", `{"role":"assistant","content":[{"type":"server_tool_use","id":"s1",` +
		`"name":"web_search","input":{"query":"who"}},{"type":"web_search_tool_result",` +
		`"tool_use_id":"s1","content":[{"type":"web_search_result","url":"https://e.org/a",` +
		`"title":"Ada","encrypted_content":"zzz"}]},{"type":"text","text":"Ada won."}]}`,
		"functions.web_search #s1\nAda\nhttps://e.org/a\nAda won.", "zzz"},
	{"messages", `{"role":"assistant","content":[{"type":"server_tool_use","id":"s2",` +
		`"name":"code_execution","input":{"code":"1+1"}},{"type":"code_execution_tool_result",` +
		`"tool_use_id":"s2","content":{"type":"code_execution_result","stdout":"2",` +
		`"stderr":"","return_code":0}},{"type":"text","text":"Two."}]}`,
		"python #s2: 1+1\n#s2: 2\nTwo.", ""},
	{"messages", `{"role":"assistant","content":[{"type":"mcp_tool_use","id":"m1","name":"echo",` +
		`"server_name":"t","input":{}},{"type":"mcp_tool_result","tool_use_id":"m1",` +
		`"is_error":false,"content":[{"type":"text","text":"hello"}]}]}`,
		"functions.echo #m1\n#m1: hello", ""},
	{"messages", `{"role":"assistant","content":[{"type":"server_tool_use","id":"s3",` +
		`"name":"web_fetch","input":{"url":"u"}},{"type":"web_fetch_tool_result",` +
		`"tool_use_id":"s3","content":{"type":"web_fetch_result","url":"u","content":{` +
		`"type":"document","source":{"type":"text","media_type":"text/plain","data":"page one"}` +
		`}}}]}`, "browser.open #s3: {\"id\":\"u\"}\npage one", ""},
	{"messages", `{"role":"assistant","content":[{"type":"server_tool_use","id":"s4",` +
		`"name":"web_search","input":{"query":"x_y_z"}},{"type":"text","text":"Hm."}]}`, "Hm.",
		"x_y_z"},
	{"messages", `{"role":"assistant","content":[{"type":"tool_search_tool_result",` +
		`"tool_use_id":"s5","content":{"x":"x_y_z"}},{"type":"hologram"},{"type":"text",` +
		`"text":"Hm."}]}`, "Hm.", "x_y_z"},
	{"messages", `{"role":"assistant","content":[{"type":"redacted_thinking","data":"x_y_z"},` +
		`{"type":"compaction","content":"So far: Ada."},{"type":"text","text":"Hm."}]}`,
		"So far: Ada.\nHm.", "x_y_z"},
	{"messages", `{"role":"assistant","content":"A."},{"role":"user","content":[{"type":"image",` +
		`"source":{"type":"base64","media_type":"image/png","data":"AAAA"}},{"type":"container_` +
		`upload","file_id":"f"},{"type":"text","text":"see"}]},{"role":"assistant",` +
		`"content":"B."}`, "[image: not read]\nsee\nB.", "AAAA"},
	{"messages", `{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"find",` +
		`"input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1",` +
		`"content":[{"type":"search_result","source":"https://e.org","title":"Rules",` +
		`"content":[{"type":"text","text":"No dogs."}]},{"type":"document","title":"Plan",` +
		`"source":{"type":"text","media_type":"text/plain","data":"Go west."}},{"type":"image",` +
		`"source":{"type":"base64","data":"AAAA"}}]}]},{"role":"assistant","content":"B."}`,
		"Rules\nhttps://e.org\nNo dogs.\nPlan\nGo west.\n[an image is attached", "AAAA"},

	// chat completions
	{"chat/completions", `{"role":"assistant","content":[{"type":"thinking","thinking":"hm hm"},` +
		`{"type":"text","text":"Yes."},{"type":"image_url","image_url":{"url":"data:AAAA"}}]}`,
		"<analysis>: hm hm\nYes.\n[image: not read]", "AAAA"},
	{"chat/completions", `{"role":"user","content":[{"type":"image_url","image_url":{` +
		`"url":"data:AAAA"}},{"type":"input_audio","input_audio":{"data":"AAAA"}},{"type":"file",` +
		`"file":{"file_id":"f"}}]},{"role":"assistant","content":"B."}`,
		"[image: not read]\n[audio: not read]\n[file: not read]", "AAAA"},
	{"chat/completions", `{"role":"assistant","content":null,"tool_calls":[{"id":"w1",` +
		`"type":"web_search","web_search":{"query":"q"}}]},{"role":"tool","tool_call_id":"w1",` +
		`"content":"found"}`, "functions.web_search #w1\n#w1: found", ""},
	{"chat/completions", `{"role":"assistant","tool_calls":[{"id":"r1","type":"function",` +
		`"function":{"name":"read","arguments":"{}"}}]},{"role":"tool","tool_call_id":"r1",` +
		`"content":[{"type":"resource","resource":{"uri":"file:///a","text":"line one"}},` +
		`{"type":"resource_link","uri":"file:///b","name":"b.txt"},{"type":"resource",` +
		`"resource":{"uri":"file:///c","blob":"dHdv"}}]},{"role":"assistant","content":"B."}`,
		"line one\nfile:///b\nb.txt\ntwo", ""},
	{"chat/completions", `{"role":"assistant","tool_calls":[{"id":"r2","type":"function",` +
		`"function":{"name":"read","arguments":"{}"}}]},{"role":"tool","tool_call_id":"r2",` +
		`"content":{"rows":[{"x":7}]}}`, `{"rows":[{"x":7}]}`, ""},
	{"chat/completions", `{"role":"ipython","content":"x_y_z"},{"role":"assistant",` +
		`"content":"B."}`, "user: [ipython] x_y_z\nB.", ""},
}

// TestPastIsAlwaysRead sends each between a first and a newest user message. In the past it is read
// or left out, never refused; in the newest message it is refused as before.
func TestPastIsAlwaysRead(t *testing.T) {
	srv, f := porttest.Server(t, sessiontest.Answers("ok"))
	for _, c := range past {
		list, more := "messages", `,"max_tokens":9`
		if c.route == "responses" {
			list, more = "input", ""
		}
		r := porttest.Ask(t, "POST", srv.URL+"/v1/"+c.route, `{"`+list+`":[{"role":"user",`+
			`"content":"first"},`+c.middle+`,{"role":"user","content":"newest"}]`+more+`}`)
		if r.Status != 200 {
			t.Errorf("%s %s: %d %s", c.route, c.middle, r.Status, r.Body)
			continue
		}
		got := sessiontest.History(f.Last(t))
		rest := got
		for _, text := range append(strings.Split(c.reads, "\n"), "user: newest") {
			_, after, ok := strings.Cut(rest, text)
			if !ok {
				t.Errorf("%s %s: %q is not read in its place:\n%s", c.route, c.middle, text, got)
			}
			rest = after
		}
		if c.never != "" && strings.Contains(got, c.never) {
			t.Errorf("%s %s: %q is read:\n%s", c.route, c.middle, c.never, got)
		}
	}
	for _, c := range []struct{ route, body string }{
		{"responses", `{"input":[{"role":"assistant","content":"a"},{"role":"user","content":[` +
			`{"type":"input_image","image_url":"data:"}]}]}`},
		{"messages", `{"max_tokens":9,"messages":[{"role":"user","content":"a"},{"role":` +
			`"assistant","content":"b"},{"role":"user","content":[{"type":"container_upload",` +
			`"file_id":"f"}]}]}`},
		{"chat/completions", `{"messages":[{"role":"assistant","content":"a"},{"role":"user",` +
			`"content":[{"type":"input_audio","input_audio":{}}]}]}`},
		{"chat/completions", `{"messages":[{"role":"assistant","content":"a"},{"role":"bot",` +
			`"content":"a"}]}`},
	} {
		if r := porttest.Ask(t, "POST", srv.URL+"/v1/"+c.route, c.body); r.Status != 400 {
			t.Errorf("%s %s: %d", c.route, c.body, r.Status)
		}
	}
}

// TestStoredPastIsRead: a conversation that was stored with an image goes on.
func TestStoredPastIsRead(t *testing.T) {
	srv, f := porttest.Server(t, sessiontest.Answers("ok"))
	m := porttest.Decode(t, porttest.Post(t, srv, "/v1/conversations", `{"items":[{"role":"user",`+
		`"content":"first"},{"type":"shell_call","call_id":"c","action":{"commands":["id"]}},`+
		`{"type":"shell_call_output","call_id":"c","output":[{"stdout":"root"}]}]}`).Body)
	id, _ := json.Marshal(m["id"])
	porttest.Post(t, srv, "/v1/responses", `{"input":"go on","conversation":`+string(id)+`}`)
	if got := sessiontest.History(f.Last(t)); !strings.Contains(got, "#c: root") {
		t.Errorf("the model reads %s", got)
	}
}

// TestToolsInItems: tools that items of the input bring are offered, once each, and stay offered in
// the responses that follow.
func TestToolsInItems(t *testing.T) {
	srv, f := porttest.Server(t, sessiontest.Answers("ok"))
	function := func(name string) string {
		return `{"type":"function","name":"` + name + `","parameters":{"type":"object"}}`
	}
	names := func() string {
		var list []string
		for _, d := range f.Last(t).Functions {
			list = append(list, d.Name)
		}
		return strings.Join(list, " ")
	}
	const user = `{"role":"user","content":"hi"}`
	for _, c := range []struct{ items, tools, want string }{
		{`{"type":"additional_tools","role":"developer","tools":[{"type":"namespace",` +
			`"name":"shop","tools":[` + function("stock") + `]}]}`, ``, "shop_stock"},
		{`{"type":"tool_search_call","call_id":"t","execution":"client","arguments":{"query":` +
			`"mail"}},{"type":"tool_search_output","call_id":"t","execution":"client","tools":[` +
			function("send") + `]}`, ``, "send"},
		{`{"type":"tool_search_call","call_id":null,"arguments":{}},{"type":` +
			`"tool_search_output","call_id":null,"tools":[` + function("send") + `]}`,
			function("ls"), "ls send"},
		{`{"type":"additional_tools","tools":[` + function("ls") + `]},` +
			`{"type":"additional_tools","tools":[` + function("cat") + `,` + function("cat") +
			`]}`, function("ls"), "ls cat"},
		{`{"type":"additional_tools","tools":[{"type":"web_search"},{"type":"local_shell"},` +
			`{"type":"mcp","server_label":"gone"},` + function("cat") + `]}`, ``, "local_shell cat"},
		{`{"type":"additional_tools","tools":[{"type":"web_search"}]}`, ``, ""},
	} {
		m := porttest.Decode(t, porttest.Post(t, srv, "/v1/responses", `{"input":[`+c.items+`,`+
			user+`],"tools":[`+c.tools+`]}`).Body)
		if got := names(); got != c.want {
			t.Errorf("%s: offered are %q, want %q", c.items, got, c.want)
		}
		id, _ := json.Marshal(m["id"])
		porttest.Post(t, srv, "/v1/responses", `{"input":"again","previous_response_id":`+
			string(id)+`,"tools":[`+c.tools+`]}`)
		if got := names(); got != c.want {
			t.Errorf("%s: afterwards %q, want %q", c.items, got, c.want)
		}
	}
	porttest.Post(t, srv, "/v1/responses", `{"input":[{"type":"additional_tools","tools":[`+
		function("cat")+`]},`+user+`],"tool_choice":{"type":"function","name":"cat"}}`)
	if f.Last(t).ToolName != "cat" {
		t.Error("a tool of an item cannot be chosen")
	}
}

// TestOllamaResultsFindTheirCalls: by the call's id, by the name, and by the order, whichever of
// them both sides have.
func TestOllamaResultsFindTheirCalls(t *testing.T) {
	srv, f := porttest.Server(t, sessiontest.Answers("ok"))
	call := func(id, name string) string {
		if id != "" {
			id = `"id":"` + id + `",`
		}
		return `{` + id + `"function":{"name":"` + name + `","arguments":{}}}`
	}
	result := func(text, more string) string {
		return `,{"role":"tool","content":"` + text + `"` + more + `}`
	}
	for _, c := range []struct{ calls, results, want string }{
		{call("", "a") + "," + call("", "b"), result("A", `,"tool_call_id":"x1"`) +
			result("B", `,"tool_call_id":"x2"`), "functions.a A functions.b B"},
		{call("", "a") + "," + call("", "b"), result("B", `,"tool_call_id":"x2","tool_name":"b"`) +
			result("A", `,"tool_call_id":"x1","tool_name":"a"`), "functions.b B functions.a A"},
		{call("i", "a") + "," + call("", "b"), result("B", `,"tool_call_id":"x"`) +
			result("A", `,"tool_call_id":"i"`), "functions.b B functions.a A"},
		{call("", "a") + "," + call("", "a"), result("1", `,"tool_name":"a"`) + result("2", ``),
			"functions.a 1 functions.a 2"},
		{call("i", "a"), result("A", `,"tool_call_id":"x"`), "functions.unknown A"},
		{call("i", "a"), result("A", `,"tool_call_id":"i"`) + result("B", `,"tool_call_id":"i"`),
			"functions.a A functions.a B"},
	} {
		r := porttest.Ask(t, "POST", srv.URL+"/api/chat", `{"model":"gpt-oss:20b","messages":[`+
			`{"role":"user","content":"go"},{"role":"assistant","content":"","tool_calls":[`+
			c.calls+`]}`+c.results+`]}`)
		if r.Status != 200 {
			t.Errorf("%s %s: %d %s", c.calls, c.results, r.Status, r.Body)
			continue
		}
		var got []string
		called := map[string]bool{}
		for _, m := range f.Last(t).Messages {
			if m.Recipient != "assistant" {
				called[m.CallID] = m.CallID != ""
				continue
			}
			got = append(got, m.Name, m.Text())
			if !called[m.CallID] {
				t.Errorf("%s: the result %q is of no call", c.calls, m.Text())
			}
		}
		if all := strings.Join(got, " "); all != c.want {
			t.Errorf("%s %s: %s, want %s", c.calls, c.results, all, c.want)
		}
	}
}
