package answer_test

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/ossrun/ossrun/runtime/openai"
	"github.com/ossrun/ossrun/runtime/openai/porttest"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
)

func zipped(t *testing.T, name, text string) string {
	t.Helper()
	var b bytes.Buffer
	switch name {
	case "gzip", "x-gzip", "GZIP":
		w := gzip.NewWriter(&b)
		_, _ = w.Write([]byte(text))
		_ = w.Close()
	case "zstd":
		w, err := zstd.NewWriter(&b)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = w.Write([]byte(text))
		_ = w.Close()
	default:
		return text
	}
	return b.String()
}

// TestEncodedBodies: a compressed body is read like an uncompressed one, in every dialect, and the
// limits apply to the decompressed size.
func TestEncodedBodies(t *testing.T) {
	srv, f := porttest.Server(t, sessiontest.Answers("ok"), func(o *openai.Options) {
		o.MaxBody = 1 << 20
	})
	bodies := map[string]string{
		"/v1/chat/completions": `{"messages":[{"role":"user","content":"zipped"}]}`,
		"/v1/messages":         `{"max_tokens":9,"messages":[{"role":"user","content":"zipped"}]}`,
		"/v1/responses":        `{"input":"zipped"}`,
		"/api/chat":            `{"model":"gpt-oss:20b","messages":[{"role":"user","content":"zipped"}]}`,
	}
	for _, name := range []string{"gzip", "x-gzip", "GZIP", "zstd", "identity"} {
		for path, body := range bodies {
			for _, mark := range []string{"", "\xef\xbb\xbf"} {
				r := porttest.Ask(t, "POST", srv.URL+path, zipped(t, name, mark+body),
					"Content-Encoding", name)
				if r.Status != 200 || sessiontest.History(f.Last(t)) != "user: zipped" {
					t.Errorf("%s %s: %d %s", name, path, r.Status, r.Body)
				}
			}
		}
		bomb := zipped(t, name, `{"messages":[{"role":"user","content":"`+
			strings.Repeat("a", 4<<20)+`"}]}`)
		if r := porttest.Ask(t, "POST", srv.URL+"/v1/chat/completions", bomb, "Content-Encoding",
			name); r.Status != http.StatusRequestEntityTooLarge {
			t.Errorf("%s: a bomb: %d %s", name, r.Status, r.Body)
		}
	}
	hello := bodies["/v1/chat/completions"]
	for _, c := range []struct {
		name, body string
		status     int
	}{
		{"br", hello, 415}, {"gzip, gzip", hello, 415}, {"deflate", hello, 415},
		{"gzip", hello, 400}, {"gzip", zipped(t, "gzip", hello)[:30], 400}, {"gzip", "", 400},
		{"zstd", hello, 400}, {"zstd", zipped(t, "zstd", hello)[:30], 400},
	} {
		r := porttest.Ask(t, "POST", srv.URL+"/v1/chat/completions", c.body, "Content-Encoding",
			c.name)
		if r.Status != c.status || !strings.Contains(r.Body, "the request body") {
			t.Errorf("%s: %d %s", c.name, r.Status, r.Body)
		}
	}
}
