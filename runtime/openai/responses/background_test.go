package responses_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ossrun/ossrun/runtime/openai"
	"github.com/ossrun/ossrun/runtime/openai/fields"
	"github.com/ossrun/ossrun/runtime/openai/porttest"
	"github.com/ossrun/ossrun/runtime/openai/responses"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/records"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
)

func TestBackground(t *testing.T) {
	gate := make(chan struct{})
	srv, _ := porttest.Server(t, porttest.Slowly(gate))
	m := porttest.Decode(t, porttest.Post(t, srv, "/v1/responses", `{"input":"x","background":true}`).Body)
	porttest.Conform(t, "Response", m)
	id, _ := m["id"].(string)
	if m["status"] != "queued" || m["background"] != true {
		t.Fatalf("%v", m)
	}
	porttest.Eventually(t, func() (any, bool) {
		m := porttest.Decode(t, porttest.Ask(t, "GET", srv.URL+"/v1/responses/"+id, "").Body)
		items, _ := m["output"].([]any)
		return m, m["status"] == "in_progress" && len(items) == 2
	})
	porttest.WantFault(t, porttest.Ask(t, "POST", srv.URL+"/v1/responses",
		`{"input":"y","previous_response_id":"`+id+`"}`), 400, fields.KindInvalid,
		"previous_response_id",
		"", "still being written")
	close(gate)
	m = porttest.Ended(t, srv, id)
	if m["status"] != "completed" || porttest.At(m, "output", 1, "content", 0, "text") != "Hello." ||
		porttest.At(m, "usage", "total_tokens") != 52.0 {
		t.Errorf("%v", m)
	}
	porttest.Post(t, srv, "/v1/responses", `{"input":"y","previous_response_id":"`+id+`"}`)
}

// A background response goes on when its reader leaves, and can be read from any event on.
func TestBackgroundStream(t *testing.T) {
	gate := make(chan struct{})
	srv, _ := porttest.Server(t, porttest.Slowly(gate))
	ctx, leave := context.WithCancel(t.Context())
	stream := porttest.OpenStream(t, ctx, srv.URL+"/v1/responses",
		`{"input":"x","background":true,"stream":true}`)
	var read []porttest.Event
	for len(read) == 0 || read[len(read)-1].Name != "response.output_text.delta" {
		read = append(read, stream.Next(t))
	}
	leave()
	id := porttest.At(read[0].Json, "response", "id").(string)
	last := read[len(read)-1].Json["sequence_number"]
	late := porttest.OpenStream(t, t.Context(), fmt.Sprintf("%s/v1/responses/%s?stream=true&"+
		"starting_after=%v", srv.URL, id, last), "")
	whole := porttest.OpenStream(t, t.Context(), srv.URL+"/v1/responses/"+id+"?stream=true", "")
	close(gate)
	all := append(read, late.Rest(t)...)
	porttest.ConformResponses(t, all)
	if again := whole.Rest(t); !reflect.DeepEqual(again, all) {
		t.Errorf("read from the start\n%v\nread in two parts\n%v", again, all)
	}
	if m := porttest.Ended(t, srv, id); !reflect.DeepEqual(m, all[len(all)-1].Json["response"]) {
		t.Errorf("GET %v, the last event %v", m, all[len(all)-1].Json)
	}
	again := porttest.OpenStream(t, t.Context(), fmt.Sprintf("%s/v1/responses/%s?stream=true&"+
		"starting_after=%v", srv.URL, id, last), "").Rest(t)
	if !reflect.DeepEqual(again, all[len(read):]) {
		t.Errorf("behind event %v of an ended response\n%v\nbefore it ended\n%v", last, again,
			all[len(read):])
	}
	porttest.WantFault(t, porttest.Ask(t, "GET", srv.URL+"/v1/responses/"+id+"?stream=true&starting_after=x", ""),
		400, fields.KindInvalid, "starting_after", "", "sequence number")
}

func TestBackgroundCalls(t *testing.T) {
	srv, _ := porttest.Server(t, sessiontest.Agent)
	list := porttest.Events(t, porttest.Post(t, srv, "/v1/responses",
		`{"input":"x","background":true,"stream":true,"tools":[`+porttest.WeatherFunction+`]}`).Body)
	porttest.ConformResponses(t, list)
	id := porttest.At(list[0].Json, "response", "id").(string)
	m := porttest.Ended(t, srv, id)
	if m["status"] != "completed" || porttest.At(m, "output", 1, "name") != "get_weather" {
		t.Errorf("%v", m)
	}
	porttest.Post(t, srv, "/v1/responses", `{"previous_response_id":"`+id+
		`","input":[{"type":"function_call_output","call_id":"call_1","output":"x"}]}`)
}

func TestBackgroundCancel(t *testing.T) {
	srv, f := porttest.Server(t, porttest.Slowly(nil))
	m := porttest.Decode(t, porttest.Post(t, srv, "/v1/responses", `{"input":"x","background":true}`).Body)
	url := srv.URL + "/v1/responses/" + m["id"].(string)
	stream := porttest.OpenStream(t, t.Context(), url+"?stream=true", "")
	for stream.Next(t).Name != "response.output_text.delta" {
	}
	for range 2 {
		r := porttest.Ask(t, "POST", url+"/cancel", "")
		m = porttest.Decode(t, r.Body)
		porttest.Conform(t, "Response", m)
		if r.Status != 200 || m["status"] != "cancelled" || m["error"] != nil {
			t.Errorf("cancel: %s", r.Body)
		}
	}
	if list := stream.Rest(t); list[len(list)-1].Name != "response.incomplete" {
		t.Errorf("the stream ends in %v", list)
	}
	if f.Active() != 0 {
		t.Error("the turn still runs")
	}
	porttest.WantFault(t, porttest.Ask(t, "POST", srv.URL+"/v1/responses/resp_x/cancel", ""), 404,
		fields.KindInvalid, "response_id", "", "not found")
	srv, _ = porttest.Server(t, sessiontest.Answers("ok"))
	m = porttest.Decode(t, porttest.Post(t, srv, "/v1/responses", `{"input":"x"}`).Body)
	porttest.WantFault(t, porttest.Ask(t, "POST", srv.URL+"/v1/responses/"+m["id"].(string)+"/cancel", ""), 400,
		fields.KindInvalid, "response_id", "", "background true")
}

func TestBackgroundDelete(t *testing.T) {
	srv, f := porttest.Server(t, porttest.Slowly(nil))
	m := porttest.Decode(t, porttest.Post(t, srv, "/v1/responses", `{"input":"x","background":true}`).Body)
	url := srv.URL + "/v1/responses/" + m["id"].(string)
	if r := porttest.Ask(t, "DELETE", url, ""); r.Status != 200 || f.Active() != 0 {
		t.Errorf("%d %s, %d turns run", r.Status, r.Body, f.Active())
	}
	if r := porttest.Ask(t, "GET", url, ""); r.Status != 404 {
		t.Errorf("after the deletion: %d %s", r.Status, r.Body)
	}
}

func TestBackgroundFails(t *testing.T) {
	for _, s := range []sessiontest.Script{
		sessiontest.Fails(fmt.Errorf("no room: %w", session.ErrUnavailable)),
		func(session.Request) ([]session.Event, error) {
			return []session.Event{session.Done{Finish: session.FinishError,
				Err: errors.New("no room")}}, nil
		}} {
		srv, _ := porttest.Server(t, s)
		m := porttest.Decode(t, porttest.Post(t, srv, "/v1/responses", `{"input":"x","background":true}`).Body)
		m = porttest.Ended(t, srv, m["id"].(string))
		if text, _ := porttest.At(m, "error", "message").(string); m["status"] != "failed" ||
			!strings.Contains(text, "no room") {
			t.Errorf("%v", m)
		}
	}
}

// A response whose process has ended while it ran is found as failed, with what there was of it.
func TestBackgroundIsNotLost(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kept.db")
	open := func() records.Store {
		s := hosttest.Must(records.Open(records.Options{File: file, TTL: time.Hour}))(t)
		t.Cleanup(func() { s.Close() })
		return s
	}
	gate := make(chan struct{})
	store := open()
	// the store's content while it runs is what remains after a kill
	srv, _ := porttest.Server(t, porttest.Slowly(gate), func(o *openai.Options) {
		o.Store, o.Silence = store, time.Minute
	})
	m := porttest.Decode(t, porttest.Post(t, srv, "/v1/responses", `{"input":"x","background":true}`).Body)
	id := m["id"].(string)
	left := porttest.Eventually(t, func() (responses.StoredResponse, bool) {
		s, ok := responses.GetResponse(store, id)
		return s, ok && strings.Contains(string(s.Body), `"Think."`)
	})
	other := open() // of another process
	srv2, _ := porttest.Server(t, sessiontest.Answers("ok"),
		func(o *openai.Options) { o.Store = other })
	r := porttest.Ask(t, "GET", srv2.URL+"/v1/responses/"+id, "")
	if porttest.Decode(t, r.Body)["status"] != "in_progress" {
		t.Errorf("while it runs elsewhere: %s", r.Body)
	}
	for _, refused := range []porttest.Reply{
		porttest.Ask(t, "POST", srv2.URL+"/v1/responses/"+id+"/cancel", ""),
		porttest.Ask(t, "GET", srv2.URL+"/v1/responses/"+id+"?stream=true", ""),
	} {
		after, err := strconv.Atoi(refused.Header.Get("Retry-After")) // what the lease has left
		if refused.Status != 409 || !strings.Contains(refused.Body, "another process writes") ||
			err != nil || after < 1 || after > 60 {
			t.Errorf("%d %v %s", refused.Status, refused.Header, refused.Body)
		}
	}
	close(gate)
	porttest.Ended(t, srv, id)
	left.Until = time.Now().Add(-time.Second)
	hosttest.Check(t, responses.PutResponse(other, id, left))
	m = porttest.Decode(t, porttest.Ask(t, "GET", srv2.URL+"/v1/responses/"+id, "").Body)
	porttest.Conform(t, "Response", m)
	if porttest.At(m, "error", "code") != "server_error" || m["status"] != "failed" ||
		porttest.At(m, "output", 0, "content", 0, "text") != "Think." {
		t.Errorf("%v", m)
	}
	list := porttest.OpenStream(t, t.Context(), srv2.URL+"/v1/responses/"+id+"?stream=true", "").Rest(t)
	if list[len(list)-1].Name != "response.failed" {
		t.Errorf("the stream ends in %v", list)
	}
}

func TestInputItems(t *testing.T) {
	srv, _ := porttest.Server(t, sessiontest.Agent)
	first := porttest.Decode(t, porttest.Post(t, srv, "/v1/responses", `{"input":"x","tools":[`+porttest.WeatherFunction+
		`]}`).Body)
	second := porttest.Decode(t, porttest.Post(t, srv, "/v1/responses", `{"previous_response_id":"`+
		first["id"].(string)+`","input":[{"type":"function_call_output","call_id":"call_1",`+
		`"output":"x"},{"role":"assistant","content":"I see."},{"role":"user","content":"And?"}]}`).Body)
	url := srv.URL + "/v1/responses/" + second["id"].(string) + "/input_items"
	get := func(query string) (kinds []string, page map[string]any) {
		page = porttest.Decode(t, porttest.Ask(t, "GET", url+query, "").Body)
		porttest.Conform(t, "ResponseItemList", page)
		for _, i := range page["data"].([]any) {
			kinds = append(kinds, fmt.Sprint(porttest.At(i, "type"), " ", porttest.At(i, "content", 0, "text")))
		}
		return kinds, page
	}
	all, _ := get("?order=asc")
	want := []string{"message x", "reasoning A tool knows.", "function_call <nil>",
		"function_call_output <nil>", "message I see.", "message And?"}
	if !reflect.DeepEqual(all, want) {
		t.Errorf("%q", all)
	}
	newest, page := get("?limit=2")
	if !reflect.DeepEqual(newest, []string{want[5], want[4]}) || page["has_more"] != true {
		t.Errorf("%q %v", newest, page)
	}
	next, page := get("?limit=4&after=" + page["last_id"].(string))
	if len(next) != 4 || next[0] != want[3] || page["has_more"] != false {
		t.Errorf("%q %v", next, page)
	}
	for query, param := range map[string]string{"?order=up": "order", "?limit=0": "limit",
		"?after=x": "after"} {
		porttest.WantFault(t, porttest.Ask(t, "GET", url+query, ""), 400, fields.KindInvalid, param,
			"", param+" is")
	}
}

func TestInputTokens(t *testing.T) {
	srv, f := porttest.Server(t, sessiontest.Answers("ok"))
	r := porttest.Post(t, srv, "/v1/responses/input_tokens", `{"input":"x","instructions":"Be brief."}`)
	m := porttest.Decode(t, r.Body)
	porttest.Conform(t, "TokenCountsResource", m)
	if m["input_tokens"] != 40.0 || f.Last(t).Instructions != "Be brief." {
		t.Errorf("%s", r.Body)
	}
}

// A compacted conversation is accepted back instead of the original.
func TestCompact(t *testing.T) {
	srv, f := porttest.Server(t, sessiontest.Answers("They spoke of Paris."))
	m := porttest.Decode(t, porttest.Post(t, srv, "/v1/responses/compact",
		`{"model":"gpt-oss:20b","input":[{"role":"user","content":"Paris?"},{"role":"assistant","content":"Yes."}]}`).Body)
	porttest.Conform(t, "CompactResource", m)
	item, _ := json.Marshal(porttest.At(m, "output", 0))
	porttest.Post(t, srv, "/v1/responses", `{"input":[`+string(item)+`,{"role":"user","content":"And?"}]}`)
	if got := sessiontest.History(f.Last(t)); got != "user: Summary of our conversation so far:\n\n"+
		"They spoke of Paris.\nuser: And?" {
		t.Errorf("%q", got)
	}
	r := porttest.Post(t, srv, "/v1/responses", `{"input":[{"type":"compaction","encrypted_content":"gAAA"},`+
		`{"role":"user","content":"And?"}]}`)
	if got := r.Header.Get("X-Ossrun-Ignored"); got != "compaction" {
		t.Errorf("X-Ossrun-Ignored: %q", got)
	}
	porttest.WantFault(t, porttest.Ask(t, "POST", srv.URL+"/v1/responses/compact",
		`{"model":"gpt-oss:20b","input":[]}`),
		400, fields.KindInvalid, "input", "", "no conversation")
}
