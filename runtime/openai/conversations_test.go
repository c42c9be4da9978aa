package openai

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
)

func itemsOf(t *testing.T, srv *httptest.Server, id string) (list []string, ids []string) {
	t.Helper()
	page := decode(t, ask(t, "GET", srv.URL+"/v1/conversations/"+id+"/items?order=asc", "").body)
	conform(t, "ResponseItemList", page)
	for _, i := range page["data"].([]any) {
		list = append(list, fmt.Sprint(at(i, "type"), " ", at(i, "content", 0, "text")))
		ids = append(ids, at(i, "id").(string))
	}
	return list, ids
}

// A conversation grows with each response that names it.
func TestConversation(t *testing.T) {
	srv, f := server(t, answers("Hello."))
	m := decode(t, post(t, srv, "/v1/conversations",
		`{"metadata":{"k":"v"},"items":[{"role":"developer","content":"Be brief."}]}`).body)
	id, _ := m["id"].(string)
	if m["object"] != "conversation" || at(m, "metadata", "k") != "v" || id == "" {
		t.Fatalf("%v", m)
	}
	for _, body := range []string{`{"input":"One?","conversation":"` + id + `"}`,
		`{"input":"Two?","store":false,"stream":true,"conversation":{"id":"` + id + `"}}`} {
		post(t, srv, "/v1/responses", body)
	}
	if got := history(f.last(t)); got != "user: One?\nassistant <analysis>: They ask. I answer.\n"+
		"assistant <final>: Hello.\nuser: Two?" || f.last(t).Instructions != "Be brief." {
		t.Errorf("%q after\n%s", f.last(t).Instructions, got)
	}
	list, ids := itemsOf(t, srv, id)
	if strings.Join(list, "|") != "message Be brief.|message One?|reasoning They ask. I answer.|"+
		"message Hello.|message Two?|reasoning They ask. I answer.|message Hello." {
		t.Errorf("items %q", list)
	}
	r := decode(t, post(t, srv, "/v1/responses", `{"conversation":"`+id+`","background":true}`).body)
	conform(t, "Response", r)
	if at(r, "conversation", "id") != id {
		t.Errorf("conversation %v", r["conversation"])
	}
	ended(t, srv, r["id"].(string))

	url := srv.URL + "/v1/conversations/" + id
	if r := ask(t, "DELETE", url+"/items/"+ids[1], ""); decode(t, r.body)["id"] != id {
		t.Errorf("delete an item: %s", r.body)
	}
	if r := ask(t, "GET", url+"/items/"+ids[1], ""); r.status != 404 {
		t.Errorf("a deleted item: %d %s", r.status, r.body)
	}
	if r := ask(t, "GET", url+"/items/"+ids[2], ""); decode(t, r.body)["id"] != ids[2] {
		t.Errorf("an item: %s", r.body)
	}
	if r := ask(t, "POST", url, `{"metadata":{"k":"w"}}`); at(decode(t, r.body), "metadata",
		"k") != "w" {
		t.Errorf("metadata: %s", r.body)
	}
	r2 := ask(t, "POST", url+"/items", `{"items":[{"role":"user","content":"Three?"}]}`)
	conform(t, "ResponseItemList", decode(t, r2.body))
	if r := ask(t, "GET", url, ""); at(decode(t, r.body), "metadata", "k") != "w" {
		t.Errorf("get: %s", r.body)
	}
	if r := ask(t, "DELETE", url, ""); decode(t, r.body)["object"] != "conversation.deleted" {
		t.Errorf("delete: %s", r.body)
	}
	for method, path := range map[string]string{"GET": "", "DELETE": "", "POST": "/items"} {
		wantFault(t, ask(t, method, url+path, `{"items":[]}`), 404, kindInvalid, "conversation_id",
			"", "not found")
	}
	wantFault(t, ask(t, "POST", srv.URL+"/v1/responses", `{"input":"x","conversation":"`+id+`"}`),
		404, kindInvalid, "conversation", "", "not found")
}

func TestConversationsRefuseWhatTheyCannotRead(t *testing.T) {
	srv, _ := server(t, answers("ok"))
	id := at(decode(t, post(t, srv, "/v1/conversations", `{}`).body), "id").(string)
	for _, method := range []string{"GET", "DELETE"} { // the answer to DELETE was cut off
		wantFault(t, ask(t, method, srv.URL+"/v1/conversations/"+id+"/items/x", ""), 404,
			kindInvalid, "item_id", "", "not found")
	}
	for body, param := range map[string]string{`{"items":[7]}`: "items[0]",
		`{"items":[null]}`:                         "items[0]", // it was a panic
		`{"items":[{"role":"bot","content":"x"}]}`: "items[0].role", `{"metadata":[]}`: "metadata"} {
		r := ask(t, "POST", srv.URL+"/v1/conversations", body)
		if r.status != 400 || at(decode(t, r.body), "error", "param") != param {
			t.Errorf("%s: %d %s", body, r.status, r.body)
		}
	}
}
