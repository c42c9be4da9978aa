// Stored chat completions: whole or streamed, listed, changed and deleted by their key alone.

package openai_test

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/openai"
	"github.com/ossrun/ossrun/runtime/openai/porttest"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/records"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
)

const storedRequest = `{"messages":[{"role":"user","content":"hi"},{"role":"user","content":` +
	`[{"type":"text","text":"there"}]}],"store":true,"metadata":{"topic":"a"}}`

func storedCompletion(t *testing.T, srv *httptest.Server, header ...string) string {
	t.Helper()
	return idIn(t, porttest.Ask(t, "POST", srv.URL+"/v1/chat/completions", storedRequest,
		header...))
}

func TestStoredCompletions(t *testing.T) {
	srv, _ := porttest.Server(t, sessiontest.Answers("Hello."))
	ask := func(method, path, body string) map[string]any {
		t.Helper()
		return porttest.Decode(t, porttest.Ask(t, method, srv.URL+"/v1/chat/completions"+path,
			body).Body)
	}
	ids := map[any]bool{storedCompletion(t, srv): true}
	porttest.Ask(t, "POST", srv.URL+"/v1/chat/completions",
		strings.Replace(storedRequest, `"store":true`, `"store":true,"stream":true`, 1))
	porttest.Ask(t, "POST", srv.URL+"/v1/chat/completions",
		strings.Replace(storedRequest, `"store":true,`, ``, 1))
	listed := func(query string) (list []map[string]any) {
		data, _ := ask("GET", query, "")["data"].([]any)
		for _, c := range data {
			list = append(list, c.(map[string]any))
		}
		return list
	}
	all := listed("")
	if len(all) != 2 {
		t.Fatalf("%v", all)
	}
	for _, c := range all { // the whole and the streamed one are the same
		ids[c["id"]] = true
		got := ask("GET", "/"+c["id"].(string), "")
		if porttest.At(got, "choices", 0, "message", "content") != "Hello." ||
			porttest.At(got, "metadata", "topic") != "a" || got["object"] != "chat.completion" ||
			fmt.Sprint(got) != fmt.Sprint(c) || porttest.At(got, "usage", "total_tokens") == nil {
			t.Errorf("%v", got)
		}
	}
	if len(ids) != 2 {
		t.Errorf("%v", ids)
	}
	id := all[0]["id"].(string)
	ask("POST", "/"+id, `{"metadata":{"topic":"b"}}`)
	for query, n := range map[string]int{"?metadata[topic]=b": 1, "?metadata[topic]=a": 1,
		"?metadata[other]=a": 0, "?model=other": 0, "?model=gpt-oss-20b": 2, "?limit=1": 1,
		"?order=desc&after=" + all[1]["id"].(string): 0, "?after=" + all[1]["id"].(string): 0} {
		if strings.HasPrefix(query, "?order=desc") {
			n = 1
		}
		if list := listed(query); len(list) != n {
			t.Errorf("%s: %v", query, list)
		}
	}
	messages := ask("GET", "/"+id+"/messages", "")
	if porttest.At(messages, "data", 0, "id") != id+"-0" || porttest.At(messages, "data", 0, "content") != "hi" ||
		porttest.At(messages, "data", 1, "content") != nil ||
		porttest.At(messages, "data", 1, "content_parts", 0, "text") != "there" {
		t.Errorf("%v", messages)
	}
	ask("DELETE", "/"+id, "")
	if r := porttest.Ask(t, "GET", srv.URL+"/v1/files/"+id+"/content", ""); r.Status != 404 {
		t.Errorf("its messages are left: %s", r.Body)
	}
}

// A store without room says so in the header of an answer that is not stored.
func TestCompletionThatIsNotStored(t *testing.T) {
	store := hosttest.Must(records.Open(records.Options{TTL: records.RememberedFor,
		Bounds: map[records.Kind]records.Bound{records.KindCompletion: {Bytes: 100}}}))(t)
	srv, _ := porttest.Server(t, sessiontest.Answers("Hello."),
		func(o *openai.Options) { o.Store = store })
	r := porttest.Ask(t, "POST", srv.URL+"/v1/chat/completions", storedRequest)
	if r.Status != 200 || r.Header.Get("X-Ossrun-Ignored") != "store" {
		t.Errorf("%d %v %s", r.Status, r.Header, r.Body)
	}
}
