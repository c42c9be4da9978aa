package responses_test

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/openai/fields"
	"github.com/ossrun/ossrun/runtime/openai/porttest"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
)

func itemsOf(t *testing.T, srv *httptest.Server, id string) (list []string, ids []string) {
	t.Helper()
	page := porttest.Decode(t, porttest.Ask(t, "GET", srv.URL+"/v1/conversations/"+id+"/items?order=asc", "").Body)
	porttest.Conform(t, "ResponseItemList", page)
	for _, i := range page["data"].([]any) {
		list = append(list, fmt.Sprint(porttest.At(i, "type"), " ", porttest.At(i, "content", 0, "text")))
		ids = append(ids, porttest.At(i, "id").(string))
	}
	return list, ids
}

// A conversation grows with each response that names it.
func TestConversation(t *testing.T) {
	srv, f := porttest.Server(t, sessiontest.Answers("Hello."))
	m := porttest.Decode(t, porttest.Post(t, srv, "/v1/conversations",
		`{"metadata":{"k":"v"},"items":[{"role":"developer","content":"Be brief."}]}`).Body)
	id, _ := m["id"].(string)
	if m["object"] != "conversation" || porttest.At(m, "metadata", "k") != "v" || id == "" {
		t.Fatalf("%v", m)
	}
	for _, body := range []string{`{"input":"One?","conversation":"` + id + `"}`,
		`{"input":"Two?","store":false,"stream":true,"conversation":{"id":"` + id + `"}}`} {
		porttest.Post(t, srv, "/v1/responses", body)
	}
	if got := sessiontest.History(f.Last(t)); got != "user: One?\nassistant <analysis>: They ask. I answer.\n"+
		"assistant <final>: Hello.\nuser: Two?" || f.Last(t).Instructions != "Be brief." {
		t.Errorf("%q after\n%s", f.Last(t).Instructions, got)
	}
	list, ids := itemsOf(t, srv, id)
	if strings.Join(list, "|") != "message Be brief.|message One?|reasoning They ask. I answer.|"+
		"message Hello.|message Two?|reasoning They ask. I answer.|message Hello." {
		t.Errorf("items %q", list)
	}
	r := porttest.Decode(t, porttest.Post(t, srv, "/v1/responses", `{"conversation":"`+id+`","background":true}`).Body)
	porttest.Conform(t, "Response", r)
	if porttest.At(r, "conversation", "id") != id {
		t.Errorf("conversation %v", r["conversation"])
	}
	porttest.Ended(t, srv, r["id"].(string))

	url := srv.URL + "/v1/conversations/" + id
	if r := porttest.Ask(t, "DELETE", url+"/items/"+ids[1], ""); porttest.Decode(t, r.Body)["id"] != id {
		t.Errorf("delete an item: %s", r.Body)
	}
	if r := porttest.Ask(t, "GET", url+"/items/"+ids[1], ""); r.Status != 404 {
		t.Errorf("a deleted item: %d %s", r.Status, r.Body)
	}
	if r := porttest.Ask(t, "GET", url+"/items/"+ids[2], ""); porttest.Decode(t, r.Body)["id"] != ids[2] {
		t.Errorf("an item: %s", r.Body)
	}
	if r := porttest.Ask(t, "POST", url, `{"metadata":{"k":"w"}}`); porttest.At(porttest.Decode(t, r.Body), "metadata",
		"k") != "w" {
		t.Errorf("metadata: %s", r.Body)
	}
	r2 := porttest.Ask(t, "POST", url+"/items", `{"items":[{"role":"user","content":"Three?"}]}`)
	porttest.Conform(t, "ResponseItemList", porttest.Decode(t, r2.Body))
	if r := porttest.Ask(t, "GET", url, ""); porttest.At(porttest.Decode(t, r.Body), "metadata", "k") != "w" {
		t.Errorf("get: %s", r.Body)
	}
	if r := porttest.Ask(t, "DELETE", url, ""); porttest.Decode(t, r.Body)["object"] != "conversation.deleted" {
		t.Errorf("delete: %s", r.Body)
	}
	for method, path := range map[string]string{"GET": "", "DELETE": "", "POST": "/items"} {
		porttest.WantFault(t, porttest.Ask(t, method, url+path, `{"items":[]}`), 404,
			fields.KindInvalid, "conversation_id", "", "not found")
	}
	porttest.WantFault(t, porttest.Ask(t, "POST", srv.URL+"/v1/responses", `{"input":"x","conversation":"`+id+`"}`),
		404, fields.KindInvalid, "conversation", "", "not found")
}

func TestConversationsRefuseWhatTheyCannotRead(t *testing.T) {
	srv, _ := porttest.Server(t, sessiontest.Answers("ok"))
	id := porttest.At(porttest.Decode(t, porttest.Post(t, srv, "/v1/conversations", `{}`).Body), "id").(string)
	for _, method := range []string{"GET", "DELETE"} { // the answer to DELETE was cut off
		porttest.WantFault(t, porttest.Ask(t, method, srv.URL+"/v1/conversations/"+id+"/items/x", ""), 404,
			fields.KindInvalid, "item_id", "", "not found")
	}
	for body, param := range map[string]string{`{"items":[7]}`: "items[0]",
		`{"items":[null]}`:                         "items[0]", // it was a panic
		`{"items":[{"role":"bot","content":"x"}]}`: "items[0].role", `{"metadata":[]}`: "metadata"} {
		r := porttest.Ask(t, "POST", srv.URL+"/v1/conversations", body)
		if r.Status != 400 || porttest.At(porttest.Decode(t, r.Body), "error", "param") != param {
			t.Errorf("%s: %d %s", body, r.Status, r.Body)
		}
	}
}
