package chat

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/runtime/tools"
)

// A decision for the chat covers one tool of one server: not one with a similar name or ending, nor
// one of a server that claims the same name.
func TestAllowedIsOneToolOfOneServer(t *testing.T) {
	names := []string{"query", "write_query", "write.query", "write-query", "write query",
		"files_query", "löschen", "l_schen", "削除"}
	var addresses []string
	for range 2 {
		server := sdk.NewServer(&sdk.Implementation{Name: "files", Version: "1"}, nil)
		for _, name := range names {
			server.AddTool(&sdk.Tool{Name: name, Description: name,
				InputSchema: json.RawMessage(`{"type":"object"}`)},
				func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
					text := &sdk.TextContent{Text: name}
					return &sdk.CallToolResult{Content: []sdk.Content{text}}, nil
				})
		}
		port := httptest.NewServer(sdk.NewStreamableHTTPHandler(
			func(*http.Request) *sdk.Server { return server }, nil))
		defer port.Close()
		addresses = append(addresses, port.URL)
	}
	defer http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	for _, allowed := range names {
		approval := NewApproval()
		all, err := tools.Open(t.Context(), tools.Options{Servers: addresses, Interactive: true})
		if err != nil || len(all.Notes) > 0 {
			t.Fatal(err, all.Notes)
		}
		list, err := all.ForKind(tools.MCP, "")
		if err != nil || len(list) != 1 {
			t.Fatal(list, err)
		}
		var r session.Request
		list[0].Offer(&r)
		if len(r.Functions) != 2*len(names) {
			t.Fatalf("%d functions", len(r.Functions))
		}
		asked := map[string]int{}
		call := func(function, key string) {
			model := script([]session.Event{session.CallStart{ID: "c1", Name: function,
				Recipient: "functions." + function}, session.CallEnd{Arguments: "{}"},
				session.Done{Finish: session.FinishToolCalls}}, fine("Done."))
			turn, err := session.StartWithTools(t.Context(), model, session.Request{}, list,
				session.ToolOptions{Approve: approval.Ask})
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan string)
			go func() {
				text := "no call was made"
				for e, ok := turn.Next(); ok; e, ok = turn.Next() {
					if end, ok := e.(session.ToolEnd); ok && end.Err != nil {
						text = end.Err.Error()
					} else if ok {
						text = end.Result.Text
					}
				}
				done <- text
			}()
			for {
				select {
				case ask := <-approval.asks:
					m := &Model{options: Options{Approval: approval}}
					m.modes.open(&ask)
					asked[ask.server+" "+ask.tool]++
					ask.answer(m, key)
				case text := <-done:
					if key != "n" && text != allowed {
						t.Errorf("%s, for %s: %s", function, allowed, text)
					}
					return
				}
			}
		}
		for _, f := range r.Functions[:len(names)] { // of the first server
			if f.Description == allowed {
				call(f.Name, "a")
			}
		}
		for _, f := range r.Functions {
			call(f.Name, "n")
		}
		for _, server := range []string{"files", addresses[1]} {
			for _, name := range names {
				if asked[server+" "+name] != 1 {
					t.Errorf("with %s allowed, %s of %s was asked %d times", allowed, name, server,
						asked[server+" "+name])
				}
			}
		}
		if err := list[0].Close(); err != nil {
			t.Error(err)
		}
		if err := all.Close(); err != nil {
			t.Error(err)
		}
	}
}
