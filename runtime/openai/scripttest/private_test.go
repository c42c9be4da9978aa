package scripttest_test

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/records"
)

// What a request does not ask to be stored is not on the disk, neither its text nor its tokens, and
// a tool loop goes on with its reasoning all the same.
func TestWhatIsNotStoredLeavesNothingOnDisk(t *testing.T) {
	folder := t.TempDir()
	open := func() records.Store {
		store := hosttest.Must(records.Open(records.Options{TTL: time.Hour,
			File: filepath.Join(folder, "kept.db")}))(t)
		t.Cleanup(func() { store.Close() })
		return store
	}
	own, other := open(), open() // of another process
	srv := serveWith(t, own)
	post := func(path, body string) {
		t.Helper()
		resp := hosttest.Must(http.Post(srv.URL+path, "application/json",
			strings.NewReader(body)))(t)
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", path, resp.Status)
		}
	}
	const messages = `"messages":[{"role":"user","content":"a SECRET"}]`
	for _, request := range [][2]string{
		{"/v1/chat/completions", `{` + messages + `}`},
		{"/v1/chat/completions", `{` + messages + `,"stream":true}`},
		{"/v1/chat/completions", `{` + messages + weather + `,"tool_choice":"required"}`},
		{"/v1/completions", `{"prompt":"a SECRET"}`},
		{"/v1/messages", `{"max_tokens":99,` + messages + `}`},
		{"/api/chat", `{"model":"gpt-oss-20b","stream":false,` + messages + `}`},
		{"/v1/responses", `{"store":false,"input":"a SECRET"}`},
		{"/v1/responses", `{"store":false,"stream":true,"input":"a SECRET"}`},
	} {
		post(request[0], request[1])
		for _, kind := range []records.Kind{records.KindTurn, records.KindResponse,
			records.KindRunning, records.KindConversation,
			records.KindCompletion, records.KindContent} {
			if n := len(other.List(kind)); n > 0 {
				t.Errorf("%s %s leaves %d of kind %s", request[0], request[1], n, kind)
			}
		}
	}
	if n := len(own.List(records.KindTurn)); n == 0 {
		t.Error("nothing is remembered in memory either")
	}
	files, _ := filepath.Glob(filepath.Join(folder, "*"))
	for _, name := range files {
		if text, err := os.ReadFile(name); err != nil || bytes.Contains(text, []byte("SECRET")) {
			t.Errorf("%s has the prompt, or %v", name, err)
		}
	}
	post("/v1/responses", `{"input":"not secret"}`)
	for _, kind := range []records.Kind{records.KindTurn, records.KindResponse} {
		if n := len(other.List(kind)); n != 1 {
			t.Errorf("a stored response leaves %d of kind %s", n, kind)
		}
	}
}
