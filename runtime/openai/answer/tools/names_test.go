package tools_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ossrun/ossrun/harmony"
	"github.com/ossrun/ossrun/runtime/openai"
	"github.com/ossrun/ossrun/runtime/openai/fields"
	"github.com/ossrun/ossrun/runtime/openai/porttest"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
	servers "github.com/ossrun/ossrun/runtime/tools"
	"github.com/ossrun/ossrun/runtime/tools/mcp"
)

// What clients allow and forbid by name holds for the tools that their server calls exactly so.
// The servers are real ones, of the official SDK: "db" over HTTP and "far.db", with the same tools,
// as a process.

// toolNames have ends, starts and letters in common, as the model reads them.
var toolNames = []string{"query", "write_query", "write.query", "write-query", "write query",
	"db_query", "löschen", "l_schen", "削除"}

// named is a server whose tools say which of them has run; ran hears it too.
func named(server string, ran func(string)) *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: server, Version: "1"}, nil)
	for _, name := range toolNames {
		s.AddTool(&sdk.Tool{Name: name, Description: server + ":" + name,
			InputSchema: json.RawMessage(`{"type":"object"}`)},
			func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
				if ran != nil {
					ran(name)
				}
				return &sdk.CallToolResult{Content: []sdk.Content{
					&sdk.TextContent{Text: "ran " + server + ":" + name}}}, nil
			})
	}
	return s
}

// A target is the tool that the model calls, whether it is offered or not.
type target struct {
	sync.Mutex
	server, tool string
	functions    map[string]string // that were ever offered, by server and tool
	ran          []string          // on the server db
}

func (x *target) aim(server, tool string) {
	x.Lock()
	defer x.Unlock()
	x.server, x.tool, x.ran = server, tool, nil
}

func (x *target) calls() []string {
	x.Lock()
	defer x.Unlock()
	return slices.Clone(x.ran)
}

// play calls the target once, then tells what it returned.
func (x *target) play(r session.Request) ([]session.Event, error) {
	x.Lock()
	defer x.Unlock()
	for _, f := range r.Functions {
		x.functions[f.Description] = f.Name
	}
	if last := r.Messages[len(r.Messages)-1]; last.Role == harmony.RoleTool {
		return sessiontest.Answers("ok")(r)
	}
	return sessiontest.Call("call_1", "functions."+x.functions[x.server+":"+x.tool], "{}"), nil
}

func namedServers(t *testing.T) (*httptest.Server, *sessiontest.Model, *target) {
	t.Helper()
	x := &target{functions: map[string]string{}}
	far := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server {
		return named("db", func(tool string) {
			x.Lock()
			defer x.Unlock()
			x.ran = append(x.ran, tool)
		})
	}, nil))
	t.Cleanup(func() {
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
		far.Close()
	})
	config := filepath.Join(t.TempDir(), "mcp.json")
	text := fmt.Sprintf(`{"mcpServers":{"db":{"url":%q},"own":{"url":%[1]q,"require_approval":`+
		`"never"},"far.db":{"command":%[2]q,"args":["mcp","far.db"]}}}`, far.URL, os.Args[0])
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	listed, notes, err := mcp.Config(config)
	if err != nil || len(notes) > 0 {
		t.Fatal(err, notes)
	}
	all, err := servers.Open(t.Context(), servers.Options{Listed: listed})
	if err != nil || len(all.Notes) > 0 {
		t.Fatal(err, all.Notes)
	}
	t.Cleanup(func() { all.Close() })
	srv, f := porttest.Server(t, x.play, func(o *openai.Options) { o.Tools = all.ForKind })
	// every function is offered once, so that the model can call those that are not
	porttest.Post(t, srv, "/v1/responses", `{"input":"x","tool_choice":"auto","tools":[`+
		`{"type":"mcp","server_label":"db","require_approval":"never"},`+
		`{"type":"mcp","server_label":"far.db","require_approval":"never"}]}`)
	if len(x.functions) != 2*len(toolNames) {
		t.Fatalf("functions %v", x.functions)
	}
	return srv, f, x
}

func quote(text string) string {
	b, _ := json.Marshal(text) // a string can be written
	return string(b)
}

// Each rule about each name, and each tool that the model then calls, in both APIs.
func TestRulesHoldForExactNames(t *testing.T) {
	srv, _, x := namedServers(t)
	const runs, asks, off = "runs", "asks", "is not offered"
	for _, rule := range []struct {
		members            string // of the mcp tool, about the name %s
		named, unnamed     string // in the Responses API, for the tool of this name and the others
		inChat, chatOthers string // in chat completions, which cannot ask
	}{
		{`"require_approval":{"never":{"tool_names":[%s]}}`, runs, asks, off, off},
		{`"require_approval":{"always":{"tool_names":[%s]}}`, asks, runs, off, off},
		{`"require_approval":{"always":{"tool_names":[%[1]s]},"never":{"tool_names":[%[1]s]}}`, asks,
			asks, off, off},
		{`"require_approval":"never","allowed_tools":[%s]`, runs, off, runs, off},
		{`"require_approval":"never","allowed_tools":{"tool_names":[%s]}`, runs, off, runs, off},
		{`"require_approval":"always","allowed_tools":[%s]`, asks, off, off, off},
	} {
		for _, name := range toolNames {
			for _, tool := range toolNames {
				offer := `"tools":[{"type":"mcp","server_label":"db",` +
					fmt.Sprintf(rule.members, quote(name)) + `}]`
				want, chat := rule.unnamed, rule.chatOthers
				if tool == name {
					want, chat = rule.named, rule.inChat
				}
				x.aim("db", tool)
				m := porttest.Decode(t, porttest.Post(t, srv, "/v1/responses", `{"input":"x",`+offer+
					`}`).Body)
				got := off
				if ask := porttest.LastItem(m, "mcp_approval_request"); ask != nil {
					if got = asks; ask["name"] != tool || ask["server_label"] != "db" {
						t.Errorf("%s, %s: asks %v", offer, tool, ask)
					}
				}
				if call := porttest.LastItem(m, "mcp_call"); call != nil {
					if got = runs; call["name"] != tool || call["output"] != "ran db:"+tool {
						t.Errorf("%s, %s: ran %v", offer, tool, call)
					}
				}
				if ran := x.calls(); got != want || (want == runs) != (len(ran) == 1) ||
					want == runs && ran[0] != tool {
					t.Errorf("%s: %q %s, not %s; ran %q", offer, tool, got, want, ran)
				}
				x.aim("db", tool)
				porttest.Ask(t, "POST", srv.URL+"/v1/chat/completions", `{"messages":[`+
					porttest.Hello+`],`+offer+`}`) // refused, if the rule asks
				if ran := x.calls(); (chat == runs) != (len(ran) == 1) ||
					chat == runs && ran[0] != tool {
					t.Errorf("chat, %s: %q ran %q, want: %s", offer, tool, ran, chat)
				}
			}
		}
	}
}

// tool_choice names a tool of one server, as that server does.
func TestChoiceIsOfTheExactName(t *testing.T) {
	srv, f, x := namedServers(t)
	const both = `"tools":[{"type":"mcp","server_label":"db","require_approval":"never"},` +
		`{"type":"mcp","server_label":"far.db","require_approval":"never"}]`
	for _, server := range []string{"db", "far.db"} {
		for _, tool := range toolNames {
			for path, input := range map[string]string{"/v1/responses": `"input":"x"`,
				"/v1/chat/completions": `"messages":[` + porttest.Hello + `]`} {
				x.aim(server, tool)
				porttest.Post(t, srv, path, `{`+input+`,`+both+`,"tool_choice":{"type":"mcp",`+
					`"server_label":`+quote(server)+`,"name":`+quote(tool)+`}}`)
				first := f.Requests[len(f.Requests)-2] // before the one with the result
				if want := "functions." + x.functions[server+":"+tool]; len(first.Only) != 1 ||
					first.Only[0] != want {
					t.Errorf("%s %s %s: only %q, not %q", path, server, tool, first.Only, want)
				}
			}
		}
	}
}

// Items name the servers' tools as their servers do, and come back so: an approved call is run on
// the server, and of the tool, that were asked about.
func TestApprovedCallIsOfTheExactName(t *testing.T) {
	srv, f, x := namedServers(t)
	const both = `"tools":[{"type":"mcp","server_label":"db","require_approval":"always"},` +
		`{"type":"mcp","server_label":"far.db","require_approval":"always"}]`
	for _, server := range []string{"db", "far.db"} {
		for _, tool := range toolNames {
			x.aim(server, tool)
			first := porttest.Decode(t, porttest.Post(t, srv, "/v1/responses",
				`{"input":"x","store":false,`+both+`}`).Body)
			for _, list := range porttest.At(first, "output").([]any)[:2] {
				var names []string
				for _, one := range porttest.At(list, "tools").([]any) {
					names = append(names, porttest.At(one, "name").(string))
				}
				slices.Sort(names)
				if want := slices.Sorted(slices.Values(toolNames)); !slices.Equal(names, want) {
					t.Errorf("listed %q", names)
				}
			}
			ask := porttest.LastItem(first, "mcp_approval_request")
			if ask == nil || ask["name"] != tool || ask["server_label"] != server {
				t.Fatalf("%s %s: asked %v", server, tool, ask)
			}
			items, _ := json.Marshal(porttest.At(first, "output")) // they came as JSON
			second := porttest.Decode(t, porttest.Post(t, srv, "/v1/responses", `{"store":false,`+both+
				`,"input":[{"role":"user","content":"x"},`+strings.Trim(string(items), "[]")+
				`,{"type":"mcp_approval_response","approval_request_id":`+
				quote(ask["id"].(string))+`,"approve":true}]}`).Body)
			call := porttest.LastItem(second, "mcp_call")
			if call == nil || call["name"] != tool || call["server_label"] != server ||
				call["output"] != "ran "+server+":"+tool {
				t.Errorf("%s %s: %v", server, tool, second)
				continue
			}
			// the client sends the call back
			back, _ := json.Marshal(call)
			porttest.Post(t, srv, "/v1/responses", `{"store":false,"input":[`+string(back)+
				`,{"role":"user","content":"And?"}]}`)
			if h := sessiontest.History(f.Last(t)); !strings.Contains(h, "ran "+server+":"+tool) {
				t.Errorf("the model has read %s", h)
			}
		}
	}
}

// A client that says nothing of approval is asked, as at OpenAI, unless the server's entry in the
// configuration says otherwise; chat completions, which cannot ask, pass over the first.
func TestUnsaidApproval(t *testing.T) {
	srv, _, x := namedServers(t)
	for _, said := range []string{"", `,"require_approval":null`} {
		for label, runs := range map[string]bool{"db": false, "own": true} {
			offer := `"tools":[{"type":"mcp","server_label":` + quote(label) + said + `}]`
			x.aim("db", "query")
			m := porttest.Decode(t, porttest.Post(t, srv, "/v1/responses", `{"input":"x",`+offer+
				`}`).Body)
			if asked := porttest.LastItem(m, "mcp_approval_request") != nil; asked == runs ||
				(len(x.calls()) == 1) != runs {
				t.Errorf("%s: ran %q, %v", offer, x.calls(), m)
			}
			x.aim("db", "query")
			r := porttest.Ask(t, "POST", srv.URL+"/v1/chat/completions", `{"messages":[`+
				porttest.Hello+`],`+offer+`}`)
			if refused := r.Status == 400; refused == runs ||
				(len(x.calls()) == 1) != runs {
				t.Errorf("chat, %s: ran %q, %v %s", offer, x.calls(), r.Header, r.Body)
			}
		}
	}
	x.aim("db", "query") // what the client says holds for a trusted server too
	m := porttest.Decode(t, porttest.Post(t, srv, "/v1/responses", `{"input":"x","tools":[`+
		`{"type":"mcp","server_label":"own","require_approval":"always"}]}`).Body)
	if porttest.LastItem(m, "mcp_approval_request") == nil || len(x.calls()) > 0 {
		t.Errorf("ran %q, %v", x.calls(), m)
	}
}

// Two mcp tools of one server: the rule of the one does not hold for the tools of the other.
func TestTwoEntriesOfOneServer(t *testing.T) {
	srv, _, x := namedServers(t)
	x.aim("db", "write_query")
	m := porttest.Decode(t, porttest.Post(t, srv, "/v1/responses", `{"input":"x","tools":[`+
		`{"type":"mcp","server_label":"db","require_approval":"never","allowed_tools":["query"]},`+
		`{"type":"mcp","server_label":"db","require_approval":"always"}]}`).Body)
	if ask := porttest.LastItem(m, "mcp_approval_request"); ask == nil ||
		ask["name"] != "write_query" || len(x.calls()) > 0 {
		t.Errorf("ran %q, %v", x.calls(), m)
	}
}

// A name that the server does not have is refused: a rule about it would never hold.
func TestNamesThatTheServerLacks(t *testing.T) {
	srv, _, x := namedServers(t)
	for _, name := range []string{"quer", "Query", "query ", "db_write_query", "db_l_schen",
		"functions.db_query", "losch", "*", "", "describe_tool"} {
		for members, param := range map[string]string{
			`"require_approval":{"never":{"tool_names":["query",%s]}}`:       "require_approval",
			`"require_approval":{"always":{"tool_names":["query",%s]}}`:      "require_approval",
			`"require_approval":"never","allowed_tools":[%s]`:                "allowed_tools",
			`"require_approval":"never","allowed_tools":{"tool_names":[%s]}`: "allowed_tools",
		} {
			for path, input := range map[string]string{"/v1/responses": `"input":"x"`,
				"/v1/chat/completions": `"messages":[` + porttest.Hello + `]`} {
				if path != "/v1/responses" && param == "require_approval" {
					continue // the server is passed over
				}
				x.aim("db", "query")
				r := porttest.Ask(t, "POST", srv.URL+path, `{`+input+
					`,"tools":[{"type":"web_search"},{"type":"mcp","server_label":"db",`+
					fmt.Sprintf(members, quote(name))+`}]}`)
				porttest.WantFault(t, r, 400, fields.KindInvalid, "tools[1]."+param, "",
					"does not have")
				if ran := x.calls(); len(ran) > 0 {
					t.Errorf("%s ran", ran)
				}
			}
		}
		r := porttest.Ask(t, "POST", srv.URL+"/v1/responses", `{"input":"x","tools":[`+
			`{"type":"mcp","server_label":"db","require_approval":"never"}],"tool_choice":`+
			`{"type":"mcp","server_label":"db","name":`+quote(name)+`}}`)
		if name != "" && (r.Status != 400 || !strings.Contains(r.Body, "no such tool")) {
			t.Errorf("tool_choice %q: %d %s", name, r.Status, r.Body)
		}
	}
	x.aim("db", "write_query") // the server has it, and the client allows another
	r := porttest.Ask(t, "POST", srv.URL+"/v1/responses", `{"input":"x","tools":[{"type":"mcp",`+
		`"server_label":"db","require_approval":{"never":{"tool_names":["query"]}},`+
		`"allowed_tools":["query"]}],"tool_choice":{"type":"mcp","server_label":"db",`+
		`"name":"write_query"}}`)
	porttest.WantFault(t, r, 400, fields.KindInvalid, "tool_choice", "unsupported_parameter",
		"\"write_query\" of the MCP server \"db\" is not supported")
	if ran := x.calls(); len(ran) > 0 {
		t.Errorf("%s ran", ran)
	}
	for members, param := range map[string]string{
		`"allowed_tools":"query"`:                             "tools[0].allowed_tools",
		`"allowed_tools":{"tool_names":"query"}`:              "tools[0].allowed_tools.tool_names",
		`"require_approval":{"never":{"tool_names":"query"}}`: "tools[0].require_approval.never.tool_names",
		`"require_approval":{"always":["query"]}`:             "tools[0].require_approval.always",
		`"require_approval":["query"]`:                        "tools[0].require_approval",
	} {
		r := porttest.Ask(t, "POST", srv.URL+"/v1/responses", `{"input":"x","tools":[`+
			`{"type":"mcp","server_label":"db",`+members+`}]}`)
		porttest.WantFault(t, r, 400, fields.KindInvalid, param, "invalid_type", "")
	}
	r = porttest.Ask(t, "POST", srv.URL+"/v1/responses", `{"input":"x","tools":[`+
		`{"type":"mcp","server_label":"db"}],"tool_choice":{"type":"allowed_tools","mode":"auto",`+
		`"tools":[{"type":"mcp","server_label":"db","name":"query"}]}}`)
	porttest.WantFault(t, r, 400, fields.KindInvalid, "tool_choice.tools[0].name",
		"unsupported_parameter", "allowed_tools")
}
