package responses_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/openai/fields"
	"github.com/ossrun/ossrun/runtime/openai/porttest"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
)

func sumsTool(approval string) string {
	return `"tools":[{"type":"mcp","server_label":"sums","server_url":"https://example.org/",` +
		`"require_approval":` + approval + `}]`
}

// A call that needs approval ends its response; the answer runs it once, or tells the model no.
func TestApproval(t *testing.T) {
	const allowed, denied, unsaid = "tool functions.sums_add <commentary> to assistant #call_1: 42",
		"The user did not allow this call.\n\nToo dear.", "the user has not said whether it may"
	answer := func(id, how string) string {
		return `{"type":"mcp_approval_response","approval_request_id":"` + id + `",` + how + `}`
	}
	for _, stream := range []string{"false", "true"} {
		for _, way := range []string{"previous", "conversation", "alone"} {
			for how, want := range map[string]string{`"approve":true`: allowed,
				`"approve":false,"reason":"Too dear."`: denied, "": unsaid} {
				name := way + ", stream " + stream + ", " + how
				srv, f, ran := porttest.CountedTools(t, porttest.ToolUser, nil)
				get := func(body string) any {
					r := porttest.Post(t, srv, "/v1/responses", `{"stream":`+stream+`,`+body+`,`+
						sumsTool(`{"always":{"tool_names":["add"]}}`)+`}`)
					if stream == "false" {
						m := porttest.Decode(t, r.Body)
						porttest.Conform(t, "Response", m)
						return m
					}
					list := porttest.Events(t, r.Body)
					porttest.ConformResponses(t, list)
					return porttest.At(list[len(list)-1].Json, "response")
				}
				before := ""
				if way == "conversation" {
					id := porttest.Decode(t, porttest.Post(t, srv, "/v1/conversations", `{}`).Body)["id"].(string)
					before = `"conversation":"` + id + `",`
				}
				first := get(before + `"input":"x","store":` + map[bool]string{true: "false",
					false: "true"}[way == "alone"])
				asked := porttest.LastItem(first, "mcp_approval_request")
				if asked == nil || asked["name"] != "add" || asked["server_label"] != "sums" ||
					asked["arguments"] != `{"city":"Paris"}` || ran.Load() != 0 ||
					porttest.At(first, "status") != "completed" || porttest.LastItem(first, "mcp_call") != nil {
					t.Fatalf("%s: %d calls were run, %v", name, ran.Load(), first)
				}
				said := answer(asked["id"].(string), how)
				if how == "" {
					said = `{"role":"user","content":"Something else."}`
				}
				var input string
				switch way {
				case "previous":
					input = `"previous_response_id":"` + porttest.At(first, "id").(string) + `","input":[` +
						said + `]`
				case "conversation":
					input = before + `"input":[` + said + `]`
				default:
					b, _ := json.Marshal(porttest.At(first, "output"))
					input = `"store":false,"input":[{"role":"user","content":"x"},` +
						strings.Trim(string(b), "[]") + `,` + said + `]`
				}
				second := get(input)
				if h := sessiontest.History(f.Last(t)); strings.Count(h, want) != 1 ||
					strings.Count(h, "to functions.sums_add #call_1") != 1 {
					t.Errorf("%s: the model has read\n%s", name, h)
				}
				call := porttest.LastItem(second, "mcp_call")
				// the other function of the server needs no approval, and is called too
				calls := int64(1)
				if want == allowed {
					calls = 2
				}
				if ran.Load() != calls || porttest.LastItem(second, "message") == nil {
					t.Errorf("%s: %d calls, %v", name, ran.Load(), second)
				}
				if want != allowed {
					continue
				}
				for _, i := range porttest.At(second, "output").([]any) {
					if porttest.At(i, "name") == "add" && porttest.At(i, "type") == "mcp_call" {
						call = i.(map[string]any)
					}
				}
				if call["approval_request_id"] != asked["id"] || call["output"] != "42" {
					t.Errorf("%s: %v", name, call)
				}
				if way == "alone" {
					continue
				}
				third := `"previous_response_id":"` + porttest.At(second, "id").(string) + `"`
				if way == "conversation" {
					third = strings.TrimSuffix(before, ",")
				}
				get(third + `,"input":"And?"`)
				if h := sessiontest.History(f.Last(t)); strings.Count(h, "tool functions.sums_add") != 1 ||
					ran.Load() != 2 {
					t.Errorf("%s: the third response has read\n%s", name, h)
				}
			}
		}
	}
}

func TestApprovalRefuses(t *testing.T) {
	srv, _, ran := porttest.CountedTools(t, porttest.ToolUser, nil)
	for body, want := range map[string][2]string{
		`"input":[{"type":"mcp_approval_response","approval_request_id":"mcpr_x","approve":true}],` +
			sumsTool(`"always"`): {"input[0].approval_request_id", "no request"},
		`"input":"x",` + sumsTool(`"sometimes"`): {"tools[0].require_approval", "sometimes"},
	} {
		porttest.WantFault(t, porttest.Ask(t, "POST", srv.URL+"/v1/responses", `{`+body+`}`), 400,
			fields.KindInvalid, want[0], "", want[1])
	}
	m := porttest.Decode(t, porttest.Post(t, srv, "/v1/responses", `{"input":"x",`+sumsTool(`"always"`)+`}`).Body)
	id, request := m["id"].(string), porttest.LastItem(m, "mcp_approval_request")["id"].(string)
	yes := `{"type":"mcp_approval_response","approval_request_id":"` + request + `","approve":true}`
	for body, want := range map[string][2]string{
		`[` + yes + `]`: {"tools", "send the mcp tool"},
		`[` + yes + `,{"role":"user","content":"y"}],` + sumsTool(`"always"`): {"input", "alone"},
		`[` + strings.Replace(yes, `,"approve":true`, "", 1) + `],` +
			sumsTool(`"always"`): {"input[0].approve", "missing"},
	} {
		r := porttest.Ask(t, "POST", srv.URL+"/v1/responses", `{"previous_response_id":"`+id+`","input":`+
			body+`}`)
		code, _ := porttest.At(porttest.Decode(t, r.Body), "error", "code").(string)
		porttest.WantFault(t, r, 400, fields.KindInvalid, want[0], code, want[1])
	}
	if n := ran.Load(); n != 0 {
		t.Errorf("%d calls were run", n)
	}
	// chat completions have no words for it
	r := porttest.Ask(t, "POST", srv.URL+"/v1/chat/completions", `{"messages":[`+porttest.Hello+`],`+
		sumsTool(`"always"`)+`}`)
	porttest.WantFault(t, r, 400, fields.KindInvalid, "tools[0].require_approval",
		"unsupported_parameter", "/v1/responses")
}
