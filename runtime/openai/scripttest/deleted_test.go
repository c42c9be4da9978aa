package scripttest_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ossrun/ossrun/harmony/token"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/records"
)

// requester sends a request and returns the object of its answer.
type requester func(method, path, body string) map[string]any

// What is deleted by any route is in no file: not its text, and not its tokens, in any width.
func TestWhatIsDeletedIsOnNoDisk(t *testing.T) {
	for name, remove := range map[string]func(requester){
		"a response": func(ask requester) {
			r := ask("POST", "/v1/responses", `{"input":"a SECRET"}`)
			ask("DELETE", "/v1/responses/"+r["id"].(string), "")
		},
		"a chain, the last first": func(ask requester) {
			r := ask("POST", "/v1/responses", `{"input":"a SECRET"}`)
			s := ask("POST", "/v1/responses", `{"input":"more","previous_response_id":"`+
				r["id"].(string)+`"}`)
			ask("DELETE", "/v1/responses/"+s["id"].(string), "")
			ask("DELETE", "/v1/responses/"+r["id"].(string), "")
		},
		"a salted one with a call": func(ask requester) {
			r := ask("POST", "/v1/responses", `{"input":"a SECRET","cache_salt":"s","tools":[`+
				`{"type":"function","name":"f","parameters":{}}],"tool_choice":"required"}`)
			ask("DELETE", "/v1/responses/"+r["id"].(string), "")
		},
		"a background one": func(ask requester) {
			r := ask("POST", "/v1/responses", `{"input":"a SECRET","background":true}`)
			ask("DELETE", "/v1/responses/"+r["id"].(string), "")
		},
		"a conversation with its responses": func(ask requester) {
			c := ask("POST", "/v1/conversations", `{}`)
			for range 2 {
				ask("POST", "/v1/responses", `{"input":"a SECRET","conversation":"`+
					c["id"].(string)+`"}`)
			}
			ask("DELETE", "/v1/conversations/"+c["id"].(string), "")
		},
		"the items of a conversation": func(ask requester) {
			c := ask("POST", "/v1/conversations", `{}`)
			id := c["id"].(string)
			ask("POST", "/v1/responses", `{"input":"a SECRET","conversation":"`+id+`"}`)
			items := ask("GET", "/v1/conversations/"+id+"/items", "")["data"].([]any)
			for _, item := range items {
				ask("DELETE", "/v1/conversations/"+id+"/items/"+item.(map[string]any)["id"].(string),
					"")
			}
		},
	} {
		t.Run(name, func(t *testing.T) { deleteAndSearch(t, remove) })
	}
}

func deleteAndSearch(t *testing.T, remove func(requester)) {
	folder := t.TempDir()
	store := hosttest.Must(records.Open(records.Options{TTL: time.Hour,
		File: filepath.Join(folder, "kept.db")}))(t)
	srv := serveWith(t, store)
	remove(func(method, path, body string) (m map[string]any) {
		t.Helper()
		r := hosttest.Must(http.NewRequest(method, srv.URL+path, strings.NewReader(body)))(t)
		r.Header.Set("Content-Type", "application/json")
		resp := hosttest.Must(http.DefaultClient.Do(r))(t)
		defer resp.Body.Close()
		text := hosttest.Must(io.ReadAll(resp.Body))(t)
		if resp.StatusCode != http.StatusOK || json.Unmarshal(text, &m) != nil {
			t.Fatalf("%s %s: %s %s", method, path, resp.Status, text)
		}
		return m
	})
	for _, kind := range []records.Kind{records.KindTurn, records.KindResponse,
		records.KindRunning} {
		if n := len(store.List(kind)); n > 0 {
			t.Errorf("%d of kind %s are left", n, kind)
		}
	}
	hosttest.Check(t, store.Close())
	ids := token.Get().Encode(nil, " SECRET")
	var wide, packed []byte
	for _, id := range ids {
		wide = binary.LittleEndian.AppendUint32(wide, uint32(id))
		packed = binary.AppendUvarint(packed, uint64(id))
	}
	files, _ := filepath.Glob(filepath.Join(folder, "*"))
	for _, name := range files {
		text := hosttest.Must(os.ReadFile(name))(t)
		for what, trace := range map[string][]byte{"the text": []byte("SECRET"), "its tokens": wide,
			"its packed tokens":    packed,
			"its tokens in base64": []byte(base64.StdEncoding.EncodeToString(packed))} {
			if bytes.Contains(text, trace) {
				t.Errorf("%s has %s", filepath.Base(name), what)
			}
		}
	}
}
