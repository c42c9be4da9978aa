package responses_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ossrun/ossrun/runtime/openai"
	"github.com/ossrun/ossrun/runtime/openai/porttest"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/records"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
)

// Responses stored by an earlier release can be read: with their items and events, a conversation,
// and a response of a killed process.
func TestWhatAnEarlierReleaseStored(t *testing.T) {
	text := hosttest.Must(os.ReadFile("../../../testdata/versions/kept-0.db"))(t)
	file := filepath.Join(t.TempDir(), "kept.db")
	hosttest.Check(t, os.WriteFile(file, text, 0o600))
	store := hosttest.Must(records.Open(records.Options{File: file,
		TTL:    100 * 365 * 24 * time.Hour, // they were stored when the file was made
		Notify: func(note string) { t.Error(note) }}))(t)
	defer store.Close()
	srv, f := porttest.Server(t, sessiontest.Agent, func(o *openai.Options) { o.Store = store })
	get := func(path string) map[string]any {
		t.Helper()
		return porttest.Decode(t, porttest.Ask(t, "GET", srv.URL+"/v1/"+path, "").Body)
	}
	const called, answered, background, left, talk = "resp_10f777bbb91d226c012753420b945c19",
		"resp_d74ad06f71b68dfca8c168b76afd3ae3", "resp_7fef8912432544f76b1549b089b9d3c1",
		"resp_26a88778cb1a5451cf57b3643e88cc98", "conv_64bacff022a8a2872b9e002fd9fb7314"
	for id, status := range map[string]string{called: "completed", answered: "completed",
		background: "completed", left: "failed"} {
		m := get("responses/" + id)
		porttest.Conform(t, "Response", m)
		if m["id"] != id || m["status"] != status {
			t.Errorf("%s is %v", id, m)
		}
	}
	page := get("responses/" + answered + "/input_items?order=asc")
	porttest.Conform(t, "ResponseItemList", page)
	items := page["data"].([]any)
	if kind := porttest.At(items[len(items)-1], "type"); kind != "function_call_output" {
		t.Errorf("the input ends in %v", items)
	}
	list := porttest.OpenStream(t, t.Context(), srv.URL+"/v1/responses/"+background+"?stream=true",
		"").Rest(t)
	if len(list) < 5 || list[len(list)-1].Name != "response.completed" {
		t.Errorf("its events are %v", list)
	}
	if m := get("conversations/" + talk); porttest.At(m, "metadata", "topic") != "x" {
		t.Errorf("the conversation is %v", m)
	}
	porttest.Post(t, srv, "/v1/responses", `{"input":"Go on.","conversation":"`+talk+`"}`)
	if got := sessiontest.History(f.Last(t)); !strings.Contains(got, "Hello!") ||
		!strings.Contains(got, "And?") {
		t.Errorf("the model is given %s", got)
	}
	// what clients keep for us
	porttest.Post(t, srv, "/v1/responses", `{"input":[{"type":"reasoning","summary":[],"encrypted_content":`+
		`"ossrun1.T3VycywgYXMgaXQgd2FzLg"},{"type":"reasoning","summary":[],"encrypted_content":`+
		`"ossrun2.QSBuZXdlciBvbmUncy4"},{"type":"message","role":"user","content":"Well?"}]}`)
	if got := sessiontest.History(f.Last(t)); !strings.Contains(got, "Ours, as it was.") || strings.Contains(got,
		"newer") {
		t.Errorf("the model is given %s", got)
	}
	porttest.Post(t, srv, "/v1/responses", `{"previous_response_id":"`+called+`","input":[{"type":`+
		`"function_call_output","call_id":"call_1","output":"snow"}],"tools":[`+porttest.WeatherFunction+`]}`)
	if got := sessiontest.History(f.Last(t)); !strings.Contains(got, "The weather?") ||
		!strings.Contains(got, "snow") {
		t.Errorf("the model is given %s", got)
	}
}
