package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/ossrun/ossrun/runtime/session"
)

func TestBackground(t *testing.T) {
	gate := make(chan struct{})
	srv, _ := server(t, slowly(gate))
	m := decode(t, post(t, srv, "/v1/responses", `{"input":"x","background":true}`).body)
	conform(t, "Response", m)
	id, _ := m["id"].(string)
	if m["status"] != "queued" || m["background"] != true {
		t.Fatalf("%v", m)
	}
	eventually(t, func() (any, bool) {
		m := decode(t, ask(t, "GET", srv.URL+"/v1/responses/"+id, "").body)
		items, _ := m["output"].([]any)
		return m, m["status"] == "in_progress" && len(items) == 2
	})
	wantFault(t, ask(t, "POST", srv.URL+"/v1/responses",
		`{"input":"y","previous_response_id":"`+id+`"}`), 400, kindInvalid, "previous_response_id",
		"", "still being written")
	close(gate)
	m = ended(t, srv, id)
	if m["status"] != "completed" || at(m, "output", 1, "content", 0, "text") != "Hello." ||
		at(m, "usage", "total_tokens") != 52.0 {
		t.Errorf("%v", m)
	}
	post(t, srv, "/v1/responses", `{"input":"y","previous_response_id":"`+id+`"}`)
}

// A background response goes on when its reader leaves, and can be read from any event on.
func TestBackgroundStream(t *testing.T) {
	gate := make(chan struct{})
	srv, _ := server(t, slowly(gate))
	ctx, leave := context.WithCancel(t.Context())
	stream := openStream(t, ctx, srv.URL+"/v1/responses",
		`{"input":"x","background":true,"stream":true}`)
	var read []event
	for len(read) == 0 || read[len(read)-1].name != "response.output_text.delta" {
		read = append(read, stream.next(t))
	}
	leave()
	id := at(read[0].json, "response", "id").(string)
	last := read[len(read)-1].json["sequence_number"]
	late := openStream(t, t.Context(), fmt.Sprintf("%s/v1/responses/%s?stream=true&"+
		"starting_after=%v", srv.URL, id, last), "")
	whole := openStream(t, t.Context(), srv.URL+"/v1/responses/"+id+"?stream=true", "")
	close(gate)
	all := append(read, late.rest(t)...)
	conformResponses(t, all)
	if again := whole.rest(t); !reflect.DeepEqual(again, all) {
		t.Errorf("read from the start\n%v\nread in two parts\n%v", again, all)
	}
	if m := ended(t, srv, id); !reflect.DeepEqual(m, all[len(all)-1].json["response"]) {
		t.Errorf("GET %v, the last event %v", m, all[len(all)-1].json)
	}
	again := openStream(t, t.Context(), fmt.Sprintf("%s/v1/responses/%s?stream=true&"+
		"starting_after=%v", srv.URL, id, last), "").rest(t)
	if !reflect.DeepEqual(again, all[len(read):]) {
		t.Errorf("behind event %v of an ended response\n%v\nbefore it ended\n%v", last, again,
			all[len(read):])
	}
	wantFault(t, ask(t, "GET", srv.URL+"/v1/responses/"+id+"?stream=true&starting_after=x", ""),
		400, kindInvalid, "starting_after", "", "sequence number")
}

func TestBackgroundCalls(t *testing.T) {
	srv, _ := server(t, agent)
	list := events(t, post(t, srv, "/v1/responses",
		`{"input":"x","background":true,"stream":true,"tools":[`+weatherFunction+`]}`).body)
	conformResponses(t, list)
	id := at(list[0].json, "response", "id").(string)
	m := ended(t, srv, id)
	if m["status"] != "completed" || at(m, "output", 1, "name") != "get_weather" {
		t.Errorf("%v", m)
	}
	post(t, srv, "/v1/responses", `{"previous_response_id":"`+id+
		`","input":[{"type":"function_call_output","call_id":"call_1","output":"x"}]}`)
}

func TestBackgroundCancel(t *testing.T) {
	srv, f := server(t, slowly(nil))
	m := decode(t, post(t, srv, "/v1/responses", `{"input":"x","background":true}`).body)
	url := srv.URL + "/v1/responses/" + m["id"].(string)
	stream := openStream(t, t.Context(), url+"?stream=true", "")
	for stream.next(t).name != "response.output_text.delta" {
	}
	for range 2 {
		r := ask(t, "POST", url+"/cancel", "")
		m = decode(t, r.body)
		conform(t, "Response", m)
		if r.status != 200 || m["status"] != "cancelled" || m["error"] != nil {
			t.Errorf("cancel: %s", r.body)
		}
	}
	if list := stream.rest(t); list[len(list)-1].name != "response.incomplete" {
		t.Errorf("the stream ends in %v", list)
	}
	if f.active() != 0 {
		t.Error("the turn still runs")
	}
	wantFault(t, ask(t, "POST", srv.URL+"/v1/responses/resp_x/cancel", ""), 404, kindInvalid,
		"response_id", "", "not found")
	srv, _ = server(t, answers("ok"))
	m = decode(t, post(t, srv, "/v1/responses", `{"input":"x"}`).body)
	wantFault(t, ask(t, "POST", srv.URL+"/v1/responses/"+m["id"].(string)+"/cancel", ""), 400,
		kindInvalid, "response_id", "", "background true")
}

func TestBackgroundDelete(t *testing.T) {
	srv, f := server(t, slowly(nil))
	m := decode(t, post(t, srv, "/v1/responses", `{"input":"x","background":true}`).body)
	url := srv.URL + "/v1/responses/" + m["id"].(string)
	if r := ask(t, "DELETE", url, ""); r.status != 200 || f.active() != 0 {
		t.Errorf("%d %s, %d turns run", r.status, r.body, f.active())
	}
	if r := ask(t, "GET", url, ""); r.status != 404 {
		t.Errorf("after the deletion: %d %s", r.status, r.body)
	}
}

func TestBackgroundFails(t *testing.T) {
	for _, s := range []script{fails(fmt.Errorf("no room: %w", session.ErrUnavailable)),
		func(session.Request) ([]session.Event, error) {
			return []session.Event{session.Done{Finish: session.FinishError,
				Err: errors.New("no room")}}, nil
		}} {
		srv, _ := server(t, s)
		m := decode(t, post(t, srv, "/v1/responses", `{"input":"x","background":true}`).body)
		m = ended(t, srv, m["id"].(string))
		if text, _ := at(m, "error", "message").(string); m["status"] != "failed" ||
			!strings.Contains(text, "no room") {
			t.Errorf("%v", m)
		}
	}
}

// A response whose process has ended while it ran is found as failed, with what there was of it.
func TestBackgroundIsNotLost(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kept.db")
	open := func() session.Store {
		s, err := session.OpenStore(session.StoreOptions{File: file, TTL: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	gate := make(chan struct{})
	store := open()
	// what the store holds while it runs is what a kill leaves behind
	srv, _ := server(t, slowly(gate), func(o *Options) {
		o.Store, o.Silence = store, 250*time.Millisecond
	})
	m := decode(t, post(t, srv, "/v1/responses", `{"input":"x","background":true}`).body)
	id := m["id"].(string)
	record := eventually(t, func() (session.Record, bool) {
		r, ok := store.Get(session.KindResponse, id)
		return r, ok && strings.Contains(string(r.Value), `"Think."`)
	})
	other := open() // of another process
	srv2, _ := server(t, answers("ok"), func(o *Options) { o.Store = other })
	r := ask(t, "GET", srv2.URL+"/v1/responses/"+id, "")
	if decode(t, r.body)["status"] != "in_progress" {
		t.Errorf("while it runs elsewhere: %s", r.body)
	}
	wantFault(t, ask(t, "POST", srv2.URL+"/v1/responses/"+id+"/cancel", ""), 409, kindInvalid,
		"response_id", "", "another process")
	close(gate)
	ended(t, srv, id)
	other.Put(session.Record{Kind: record.Kind, Key: record.Key, Value: record.Value})
	time.Sleep(800 * time.Millisecond) // three times the silence
	m = decode(t, ask(t, "GET", srv2.URL+"/v1/responses/"+id, "").body)
	conform(t, "Response", m)
	if at(m, "error", "code") != "server_error" || m["status"] != "failed" ||
		at(m, "output", 0, "content", 0, "text") != "Think." {
		t.Errorf("%v", m)
	}
	list := openStream(t, t.Context(), srv2.URL+"/v1/responses/"+id+"?stream=true", "").rest(t)
	if list[len(list)-1].name != "response.failed" {
		t.Errorf("the stream ends in %v", list)
	}
}

func TestInputItems(t *testing.T) {
	srv, _ := server(t, agent)
	first := decode(t, post(t, srv, "/v1/responses", `{"input":"x","tools":[`+weatherFunction+
		`]}`).body)
	second := decode(t, post(t, srv, "/v1/responses", `{"previous_response_id":"`+
		first["id"].(string)+`","input":[{"type":"function_call_output","call_id":"call_1",`+
		`"output":"x"},{"role":"assistant","content":"I see."},{"role":"user","content":"And?"}]}`).body)
	url := srv.URL + "/v1/responses/" + second["id"].(string) + "/input_items"
	get := func(query string) (kinds []string, page map[string]any) {
		page = decode(t, ask(t, "GET", url+query, "").body)
		conform(t, "ResponseItemList", page)
		for _, i := range page["data"].([]any) {
			kinds = append(kinds, fmt.Sprint(at(i, "type"), " ", at(i, "content", 0, "text")))
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
		wantFault(t, ask(t, "GET", url+query, ""), 400, kindInvalid, param, "", param+" is")
	}
}

func TestInputTokens(t *testing.T) {
	srv, f := server(t, answers("ok"))
	r := post(t, srv, "/v1/responses/input_tokens", `{"input":"x","instructions":"Be brief."}`)
	m := decode(t, r.body)
	conform(t, "TokenCountsResource", m)
	if m["input_tokens"] != 40.0 || f.last(t).Instructions != "Be brief." {
		t.Errorf("%s", r.body)
	}
}

// A compacted conversation is accepted back in place of the one it stands for.
func TestCompact(t *testing.T) {
	srv, f := server(t, answers("They spoke of Paris."))
	m := decode(t, post(t, srv, "/v1/responses/compact",
		`{"input":[{"role":"user","content":"Paris?"},{"role":"assistant","content":"Yes."}]}`).body)
	conform(t, "CompactResource", m)
	item, _ := json.Marshal(at(m, "output", 0))
	post(t, srv, "/v1/responses", `{"input":[`+string(item)+`,{"role":"user","content":"And?"}]}`)
	if got := history(f.last(t)); got != "user: Summary of our conversation so far:\n\n"+
		"They spoke of Paris.\nuser: And?" {
		t.Errorf("%q", got)
	}
	r := post(t, srv, "/v1/responses", `{"input":[{"type":"compaction","encrypted_content":"gAAA"},`+
		`{"role":"user","content":"And?"}]}`)
	if got := r.header.Get("X-Ossrun-Ignored"); got != "compaction" {
		t.Errorf("X-Ossrun-Ignored: %q", got)
	}
	wantFault(t, ask(t, "POST", srv.URL+"/v1/responses/compact", `{"input":[]}`), 400, kindInvalid,
		"input", "", "no conversation")
}
