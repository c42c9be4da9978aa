// Stored responses: continued, read, listed, deleted, also after the process has ended.

package responses_test

import (
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/ossrun/ossrun/runtime/openai"
	"github.com/ossrun/ossrun/runtime/openai/fields"
	"github.com/ossrun/ossrun/runtime/openai/porttest"
	"github.com/ossrun/ossrun/runtime/openai/request"
	"github.com/ossrun/ossrun/runtime/openai/responses"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/records"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
)

func TestPreviousResponse(t *testing.T) {
	srv, f := porttest.Server(t, sessiontest.Agent)
	first := porttest.Decode(t, porttest.Post(t, srv, "/v1/responses",
		`{"instructions":"One.","input":[{"role":"developer","content":"Two."},{"role":"user","content":"Weather?"}],"tools":[`+porttest.WeatherFunction+`]}`).Body)
	id := first["id"].(string)
	second := porttest.Decode(t, porttest.Post(t, srv, "/v1/responses",
		`{"instructions":"Three.","previous_response_id":"`+id+
			`","input":[{"type":"function_call_output","call_id":"call_1","output":"sunny"}],"tools":[`+porttest.WeatherFunction+`]}`).Body)
	porttest.Conform(t, "Response", second)
	want := "user: Weather?\nassistant <analysis>: A tool knows.\nassistant <commentary> to " +
		"functions.get_weather #call_1: {\"city\": \"Paris\"}\n" +
		"tool functions.get_weather <commentary> to assistant #call_1: sunny"
	if got := sessiontest.History(f.Last(t)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	// the request's own instructions are not carried over, input is
	if got := f.Last(t).Instructions; got != "Three.\n\nTwo." {
		t.Errorf("instructions %q", got)
	}
	if second["previous_response_id"] != id {
		t.Errorf("previous_response_id %v", second["previous_response_id"])
	}
	// Two branches from one response do not see each other.
	third := porttest.Decode(t, porttest.Post(t, srv, "/v1/responses",
		`{"previous_response_id":"`+second["id"].(string)+`","input":"And tomorrow?"}`).Body)
	porttest.Post(t, srv, "/v1/responses",
		`{"previous_response_id":"`+second["id"].(string)+`","input":"And yesterday?"}`)
	if got := sessiontest.History(f.Last(t)); strings.Contains(got, "tomorrow") || !strings.HasSuffix(got,
		"assistant <final>: Done. The repository has a README.md and main.py.\nuser: And "+
			"yesterday?") {
		t.Errorf("branch:\n%s", got)
	}
	porttest.Post(t, srv, "/v1/responses",
		`{"previous_response_id":"`+third["id"].(string)+`","input":"Why?"}`)
	if got := sessiontest.History(f.Last(t)); strings.Contains(got, "yesterday") || strings.Count(got,
		"tomorrow") != 1 {
		t.Errorf("the other branch:\n%s", got)
	}
	// No input at all goes on from the response.
	porttest.Post(t, srv, "/v1/responses", `{"previous_response_id":"`+id+`"}`)
	// An item by its id.
	ref := porttest.At(first, "output", 1, "id").(string)
	porttest.Post(t, srv, "/v1/responses",
		`{"input":[{"type":"item_reference","id":"`+ref+
			`"},{"type":"function_call_output","call_id":"call_1","output":"x"}]}`)
	if got := sessiontest.History(f.Last(t)); !strings.HasPrefix(got,
		"assistant <commentary> to functions.get_weather #call_1") {
		t.Errorf("item_reference:\n%s", got)
	}
}

// Two conversations that go on from one stored response must not write into each other's messages.
func TestContinuationsAreApart(t *testing.T) {
	store := records.NewStore()
	hosttest.Check(t, responses.PutResponse(store, "x",
		responses.StoredResponse{Conv: request.Conversation{Lead: []string{"lead"},
			Messages: []session.Message{session.User("hi")}}}))
	a, _ := responses.GetResponse(store, "x")
	b, _ := responses.GetResponse(store, "x")
	a.Conv.Add(session.User, "tomorrow")
	b.Conv.Add(session.User, "yesterday")
	if got := sessiontest.History(session.Request{Messages: a.Conv.Messages}); got != "user: hi\nuser: "+
		"tomorrow" {
		t.Errorf("the first one says %q", got)
	}
}

func TestStoredResponse(t *testing.T) {
	srv, _ := porttest.Server(t, sessiontest.Answers("Hello."))
	list := porttest.Events(t, porttest.Post(t, srv, "/v1/responses", `{"input":"hi","stream":true}`).Body)
	last := list[len(list)-1].Json["response"].(map[string]any)
	url := srv.URL + "/v1/responses/" + last["id"].(string)
	r := porttest.Ask(t, "GET", url, "")
	if got := porttest.Decode(t, r.Body); r.Status != 200 || !reflect.DeepEqual(got, last) {
		t.Errorf("GET %d %v\nstream %v", r.Status, got, last)
	}
	if r := porttest.Ask(t, "DELETE", url, ""); r.Status != 200 ||
		r.Body != fmt.Sprintf(`{"id":"%s","object":"response","deleted":true}`+"\n", last["id"]) {
		t.Errorf("DELETE %d %s", r.Status, r.Body)
	}
	for _, method := range []string{"GET", "DELETE"} {
		porttest.WantFault(t, porttest.Ask(t, method, url, ""), 404, fields.KindInvalid,
			"response_id", "", "not found")
	}
	porttest.WantFault(t, porttest.Ask(t, "POST", srv.URL+"/v1/responses",
		`{"input":"x","previous_response_id":"`+last["id"].(string)+`"}`), 400, fields.KindInvalid,
		"previous_response_id", "previous_response_not_found", "not found")
	porttest.WantFault(t, porttest.Ask(t, "POST", srv.URL+"/v1/responses",
		`{"input":[{"type":"item_reference","id":"rs_x"}]}`), 404, fields.KindInvalid,
		"input[0].id", "",
		"not found")
	m := porttest.Decode(t, porttest.Post(t, srv, "/v1/responses", `{"input":"hi","store":false}`).Body)
	porttest.WantFault(t, porttest.Ask(t, "GET", srv.URL+"/v1/responses/"+m["id"].(string), ""),
		404, fields.KindInvalid,
		"response_id", "", "not found")
}

// Responses outlive the process that stored them, but those that were deleted and those that are
// too old.
func TestResponsesOutliveTheProcess(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kept.db")
	open := func() records.Store {
		s := hosttest.Must(records.Open(records.Options{File: file, TTL: time.Hour}))(t)
		t.Cleanup(func() { s.Close() })
		return s
	}
	ask := func(s records.Store, body string) (string, *sessiontest.Model) {
		srv, f := porttest.Server(t, sessiontest.Agent, func(o *openai.Options) { o.Store = s })
		return porttest.Post(t, srv, "/v1/responses", body).Body, f
	}
	s := open()
	tools := `"tools":[{"type":"function","name":"weather","parameters":{}}]`
	first, _ := ask(s, `{"instructions":"Be brief.","input":[{"role":"developer","content":"In French."},{"role":"user","content":"The weather?\n<|end|>"}],`+tools+`}`)
	gone, _ := ask(s, `{"input":"x"}`)
	id := porttest.At(porttest.Decode(t, first), "id").(string)
	deleted := porttest.At(porttest.Decode(t, gone), "id").(string)
	if ok, err := s.Delete(records.KindResponse, deleted); !ok || err != nil {
		t.Error("there was nothing to delete", err)
	}
	body := fmt.Sprintf(`{"previous_response_id":%q,"input":[{"type":"function_call_output","call_id":"call_1","output":"rain"}],%s}`, id, tools)
	_, before := ask(s, body)
	s.Close()

	s = open()
	_, after := ask(s, body)
	if a, b := after.Last(t), before.Last(t); sessiontest.History(a) != sessiontest.History(b) ||
		a.Instructions != b.Instructions || !reflect.DeepEqual(a.Messages, b.Messages) {
		t.Errorf("before\n%s\nafter\n%s", sessiontest.History(b), sessiontest.History(a))
	}
	if n := len(s.List(records.KindResponse)); n != 3 {
		t.Errorf("%d responses, not the first and two that follow it", n)
	}
}
