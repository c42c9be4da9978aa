package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/runtime/tools/mcp/zootest"
)

// lively adds tools that tell how far they are, that talk without end, and that change what there
// is.
func lively(server *sdk.Server) {
	type handler = func(context.Context, *sdk.CallToolRequest) string
	add := func(name string, run handler) {
		server.AddTool(&sdk.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)},
			func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
				return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{
					Text: run(ctx, r)}}}, nil
			})
	}
	say := func(ctx context.Context, r *sdk.CallToolRequest, n sdk.ProgressNotificationParams) {
		if n.ProgressToken == nil {
			n.ProgressToken = r.Params.GetProgressToken()
		}
		_ = r.Session.NotifyProgress(ctx, &n) // the client may be gone
	}
	add("steps", func(ctx context.Context, r *sdk.CallToolRequest) string {
		say(ctx, r, sdk.ProgressNotificationParams{Progress: 1, Total: 3, Message: "one\n of many"})
		say(ctx, r, sdk.ProgressNotificationParams{Progress: 2.5})
		say(ctx, r, sdk.ProgressNotificationParams{Progress: 3, ProgressToken: "another's"})
		time.Sleep(300 * time.Millisecond) // the answer may overtake a notice
		return "done"
	})
	add("chatter", func(ctx context.Context, r *sdk.CallToolRequest) string {
		for i := range 300 {
			say(ctx, r, sdk.ProgressNotificationParams{Progress: float64(i),
				Message: strings.Repeat("ä", 1000)})
		}
		time.Sleep(300 * time.Millisecond) // as above
		return "done"
	})
	add("grow", func(context.Context, *sdk.CallToolRequest) string {
		add("new_one", func(context.Context, *sdk.CallToolRequest) string { return "new" })
		server.RemoveTools("fail")
		return "grown"
	})
}

// output runs a call and gives what it said while it ran.
func output(t *testing.T, tool *Tool, recipient string) (said []string) {
	t.Helper()
	if _, err := tool.Run(t.Context(), session.Call{Recipient: recipient, Arguments: "{}"},
		func(text string) { said = append(said, text) }); err != nil {
		t.Errorf("%s: %v", recipient, err)
	}
	return said
}

// On every transport, what a server says of a call is passed on while it runs, and no more than
// that; tools that change are offered as they are now.
func TestNotices(t *testing.T) {
	everyTransport(t, "lively", func(t *testing.T, server Server) {
		s, _ := open(t, Options{Context: func() int { return 131072 }}, server)
		tool, r := conversation(t, s)
		if got := output(t, tool, "functions.lively_steps"); !slices.Equal(got,
			[]string{"one of many (1 of 3)\n", "2.5\n"}) {
			t.Errorf("%q", got)
		}
		got := output(t, tool, "functions.lively_chatter")
		if n := len(strings.Join(got, "")); n > maxProgress || len(got) < 2 {
			t.Errorf("%d bytes of %d lines are passed on", n, len(got))
		}
		before := len(r.Functions)
		says(t, tool, "functions.lively_grow", `{}`, "grown")
		time.Sleep(time.Minute) // the notice may arrive after the answer
		r = session.Request{}
		tool.Offer(&r)
		says(t, tool, "functions.lively_new_one", `{}`, "new")
		if tool.Runs("functions.lively_fail") || len(r.Functions) != before {
			t.Errorf("%d functions, not %d; fail is there: %v", len(r.Functions), before,
				tool.Runs("functions.lively_fail"))
		}
		other := s.Tool(true, true, every)
		other.Offer(&session.Request{})
		if !other.Runs("functions.lively_fail") {
			t.Error("one conversation has changed another's tools")
		}
		other.Close()
	})
}

// A streamable HTTP server need not have a stream of notices, may answer it late and may end it.
func TestNoStreamOfNotices(t *testing.T) {
	for name, get := range map[string]http.HandlerFunc{
		"none":   func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(405) },
		"broken": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) },
		"a page": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") },
		"silent": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"short": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "event: message\ndata: {\"half")
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				port := handlers("far")
				port.Handle("GET /mcp", get)
				zootest.Serve(t, port)
				s, _ := open(t, Options{}, Server{Name: "far", URL: "http://it/mcp", Type: "http"})
				tool, _ := conversation(t, s)
				for i := range 3 {
					says(t, tool, "functions.far_count", `{}`, fmt.Sprint("call ", i+1))
					time.Sleep(noticeRetry) // the stream's end is noticed in between
				}
			})
		})
	}
}
