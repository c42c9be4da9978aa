// The server that the tests call, in this process or another, and how they call it.

package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/runtime/tools/mcp/zootest"
)

// The test program is also the server that it starts, where its first argument says so.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "server" {
		if err := example(os.Args[2]).Run(context.Background(), &sdk.StdioTransport{}); err != nil {
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// example is a server that counts its calls and misbehaves when asked.
func example(name string) *sdk.Server {
	server := sdk.NewServer(&sdk.Implementation{Name: name, Version: "1"}, nil)
	type run = func(ctx context.Context, a map[string]any) (string, error)
	add := func(tool, schema string, run run) {
		server.AddTool(&sdk.Tool{Name: tool, Description: tool + " of " + name + "\nand more",
			InputSchema: json.RawMessage(schema)},
			func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
				var a map[string]any
				if err := json.Unmarshal(r.Params.Arguments, &a); err != nil {
					return nil, err
				}
				text, err := run(ctx, a)
				if err != nil {
					return &sdk.CallToolResult{IsError: true,
						Content: []sdk.Content{&sdk.TextContent{Text: err.Error()}}}, nil
				}
				return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text},
					&sdk.ImageContent{MIMEType: "image/png", Data: []byte("abc")}}}, nil
			})
	}
	calls := 0
	anything := `{"type":"object","properties":{"text":{"type":"string"}}}`
	add("count", anything, func(context.Context, map[string]any) (string, error) {
		calls++
		return fmt.Sprint("call ", calls, " ", os.Getenv("GIVEN"), os.Getenv("SECRET")), nil
	})
	add("echo.text", anything, func(_ context.Context, a map[string]any) (string, error) {
		return fmt.Sprint(a["text"]), nil
	})
	add("fail", anything, func(context.Context, map[string]any) (string, error) {
		return "", errors.New("no such file")
	})
	add("die", anything, func(context.Context, map[string]any) (string, error) {
		os.Exit(3)
		return "", nil
	})
	add("slow", anything, func(ctx context.Context, _ map[string]any) (string, error) {
		<-ctx.Done()
		return "late", nil
	})
	add("huge", anything, func(context.Context, map[string]any) (string, error) {
		return strings.Repeat("ä", 1<<20), nil
	})
	if name == "lively" {
		lively(server)
	}
	add("bad schema", `{"type":"object","properties":{"x":{"enum":5,"type":["y",3]}}}`,
		func(context.Context, map[string]any) (string, error) { return "fine", nil })
	add("long schema", `{"type":"object","description":"`+strings.Repeat("x", 65<<10)+`"}`,
		func(context.Context, map[string]any) (string, error) { return "fine", nil })
	return server
}

func ownProcess(name string) Server {
	return Server{Name: name, Command: os.Args[0], Args: []string{"server", name},
		Env: map[string]string{"GIVEN": "given"}}
}

// overPipes is the example server over pipes, in this process.
func overPipes(name string) Server {
	start := func(io.Writer) (io.WriteCloser, io.ReadCloser) {
		read, in := io.Pipe()
		out, write := io.Pipe()
		go func() {
			_ = example(name).Run(context.Background(), &sdk.IOTransport{Reader: read,
				Writer: write}) // its client has gone
			write.Close()
		}()
		return in, out
	}
	return Server{Name: name, Command: "none", replace: func(stderr io.Writer) sdk.Transport {
		return &inProcess{start: start, stderr: stderr}
	}}
}

// open gives the servers minutes, unless o says less: Python alone takes 20 s on a busy machine.
func open(t *testing.T, o Options, list ...Server) (*Servers, []string) {
	t.Helper()
	o.Start = cmp.Or(o.Start, 2*time.Minute)
	s, notes := Open(t.Context(), list, o)
	t.Cleanup(func() { s.Close() })
	return s, notes
}

func every(string) bool { return true }

// conversation is a tool that has been offered.
func conversation(t *testing.T, s *Servers) (*Tool, session.Request) {
	t.Helper()
	tool, r := s.Tool(true, true, every), session.Request{}
	tool.Offer(&r)
	t.Cleanup(func() { tool.Close() })
	return tool, r
}

func call(t *testing.T, tool *Tool, recipient, arguments string) (string, error) {
	t.Helper()
	if !tool.Runs(recipient) {
		return "", fmt.Errorf("%s is not the tool's", recipient)
	}
	r, err := tool.Run(t.Context(), session.Call{Recipient: recipient, Arguments: arguments},
		func(string) {})
	if errors.Is(err, context.DeadlineExceeded) || err != nil &&
		strings.Contains(err.Error(), "did not answer within 2m0s") {
		t.Errorf("%s waited for all its time", recipient)
	}
	return r.Text, err
}

func says(t *testing.T, tool *Tool, recipient, arguments, want string) {
	t.Helper()
	got, err := call(t, tool, recipient, arguments)
	if err != nil || !strings.HasPrefix(got, want) {
		t.Errorf("%s: %.200q, %v, not %q", recipient, got, err, want)
	}
}

func fails(t *testing.T, tool *Tool, recipient, arguments, want string) {
	t.Helper()
	if got, err := call(t, tool, recipient, arguments); err == nil ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("%s: %.200q, %v, not %q", recipient, got, err, want)
	}
}

// handlers are the example server over both transports of HTTP.
func handlers(name string) *http.ServeMux {
	mux := http.NewServeMux()
	get := func(*http.Request) *sdk.Server { return example(name) }
	mux.Handle("/mcp", sdk.NewStreamableHTTPHandler(get, nil))
	mux.Handle("/sse", sdk.NewSSEHandler(get, nil))
	return mux
}

// everyTransport runs a test with the example server over each, in a bubble of synctest.
func everyTransport(t *testing.T, name string, test func(*testing.T, Server)) {
	for how, server := range map[string]Server{"pipes": overPipes(name),
		"http":      {Name: name, URL: "http://it/mcp"},
		"sse found": {Name: name, URL: "http://it/sse"},
		"sse":       {Name: name, URL: "http://it/sse", Type: "sse"}} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				zootest.Serve(t, handlers(name))
				test(t, server)
			})
		})
	}
}
