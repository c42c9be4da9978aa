package mcp

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// The headers of the configuration, and the user in a server's address, are for that server: not
// for another to which it redirects or whose endpoint it names. There the tools are as anybody
// would have them.
func TestHeadersStayWithTheirServer(t *testing.T) {
	var mu sync.Mutex
	heard := map[string][]string{} // by server: secrets received
	hearing := func(name string, next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			heard[name] = append(heard[name], r.Header.Get("X-Secret")+r.Header.Get("Authorization"))
			mu.Unlock()
			next.ServeHTTP(w, r)
		})
	}
	get := func(*http.Request) *sdk.Server { return example("far") }
	streamable := sdk.NewStreamableHTTPHandler(get, nil)
	sse := sdk.NewSSEHandler(get, nil)
	other := http.NewServeMux()
	other.Handle("/mcp", streamable)
	other.Handle("/sse", sse)
	there := httptest.NewServer(hearing("there", other))
	defer there.Close()
	own := http.NewServeMux()
	own.Handle("/mcp", streamable)
	own.Handle("/sse", sse)
	redirect := func(from, to string) {
		own.HandleFunc(from, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, to+"?"+r.URL.RawQuery, http.StatusTemporaryRedirect)
		})
	}
	redirect("/moved/mcp", "/mcp")
	redirect("/away/mcp", there.URL+"/mcp")
	redirect("/user/mcp", strings.Replace(there.URL, "//", "//planted:word@", 1)+"/mcp")
	redirect("/away/sse", there.URL+"/sse")
	here := httptest.NewServer(hearing("here", own))
	defer here.Close()
	// the messages of this stream go to the other server
	own.HandleFunc("/endpoint/sse", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "event: endpoint\ndata: %s/messages\n\n", there.URL)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	defer http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	for _, c := range []struct {
		path   string
		leaves bool
		works  bool
	}{{"/mcp", false, true}, {"/sse", false, true}, {"/moved/mcp", false, true},
		{"/away/mcp", true, true}, {"/user/mcp", true, true}, {"/away/sse", true, true},
		{"/endpoint/sse", true, false}} {
		clear(heard)
		address := strings.Replace(here.URL, "//", "//me:mine@", 1) + c.path
		s, notes := Open(t.Context(), []Server{{Name: "far", URL: address, Type: map[bool]string{
			true: "sse", false: "http"}[strings.HasSuffix(c.path, "/sse")],
			Headers: map[string]string{"X-Secret": "secret"}}}, Options{Start: 2 * time.Minute})
		if works := len(s.tools) == 8; works != c.works {
			t.Errorf("%s: %q", c.path, notes)
		}
		if c.works {
			tool, _ := conversation(t, s)
			says(t, tool, "functions.far_count", `{}`, "call 1")
			tool.Close()
		}
		s.Close()
		mu.Lock()
		for _, secrets := range heard["there"] {
			if secrets != "" {
				t.Errorf("%s: the other server has heard %q", c.path, secrets)
			}
		}
		for _, secrets := range heard["here"] {
			if secrets != "secretBasic bWU6bWluZQ==" {
				t.Errorf("%s: the server has heard %q", c.path, secrets)
			}
		}
		if len(heard["here"]) == 0 || (len(heard["there"]) > 0) != c.leaves {
			t.Errorf("%s: %d requests here, %d there", c.path, len(heard["here"]),
				len(heard["there"]))
		}
		mu.Unlock()
	}
}
