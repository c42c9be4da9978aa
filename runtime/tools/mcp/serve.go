// Our own tools as MCP servers, in the form that gpt-oss's hosts expect: a server named browser
// with search, open and find, and one named python whose tool takes code.
//
// Every session has its own tool, which is closed when the session ends.

package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ossrun/ossrun/harmony"
	"github.com/ossrun/ossrun/runtime/session"
)

// Host offers a tool to other programs.
type Host struct {
	server *sdk.Server
	open   func() (session.Tool, error)

	mu       sync.Mutex
	sessions map[*sdk.ServerSession]*hostedTool
	closed   bool
}

// hostedTool is the tool of one session.
type hostedTool struct {
	mu   sync.Mutex // one call at a time
	tool session.Tool
}

// NewHost offers harmony's browser or python; open makes a tool for each session.
func NewHost(namespace harmony.ToolNamespace, version string,
	open func() (session.Tool, error)) *Host {
	versions := slices.DeleteFunc(sdk.SupportedProtocolVersions(), func(v string) bool {
		return v > newestWithSessions
	})
	h := &Host{open: open, sessions: map[*sdk.ServerSession]*hostedTool{},
		server: sdk.NewServer(&sdk.Implementation{Name: namespace.Name, Version: version},
			&sdk.ServerOptions{Instructions: namespace.Description,
				SupportedProtocolVersions: versions, Capabilities: &sdk.ServerCapabilities{}})}
	if len(namespace.Tools) == 0 { // its call is the code alone
		h.add(namespace.Name, harmony.ToolDescription{Name: namespace.Name,
			Description: namespace.Description,
			Parameters:  json.RawMessage(`{"type": "object", "properties": {"code": {"type": "string"}}, "required": ["code"]}`)})
	}
	for _, d := range namespace.Tools {
		h.add(namespace.Name+"."+d.Name, d)
	}
	return h
}

func (h *Host) add(recipient string, d harmony.ToolDescription) {
	h.server.AddTool(&sdk.Tool{Name: d.Name, Description: d.Description,
		InputSchema: d.Parameters}, func(ctx context.Context,
		r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		c := session.Call{Recipient: recipient, Name: d.Name,
			Arguments: string(r.Params.Arguments)}
		if recipient == d.Name {
			var a struct{ Code *string }
			if err := json.Unmarshal(r.Params.Arguments, &a); err != nil || a.Code == nil {
				return errorResult(errors.New("the argument is `code`, a string")), nil
			}
			c.Arguments = *a.Code
		}
		result, err := h.call(ctx, r.Session, c)
		if err != nil {
			return errorResult(fmt.Errorf("%s%w", withNewline(result.Text), err)), nil
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: result.Text}}},
			nil
	})
}

func withNewline(text string) string {
	if text == "" {
		return ""
	}
	return strings.TrimRight(text, "\n") + "\n"
}

func errorResult(err error) *sdk.CallToolResult {
	return &sdk.CallToolResult{IsError: true,
		Content: []sdk.Content{&sdk.TextContent{Text: err.Error()}}}
}

// call runs a call in its session's tool, which the first call opens.
func (h *Host) call(ctx context.Context, owner *sdk.ServerSession, c session.Call) (
	session.ToolResult, error) {
	h.mu.Lock()
	hosted := h.sessions[owner]
	if hosted == nil && !h.closed {
		hosted = &hostedTool{}
		h.sessions[owner] = hosted
		go func() {
			_ = owner.Wait() // any end is the same here
			h.end(owner)
		}()
	}
	h.mu.Unlock()
	if hosted == nil {
		return session.ToolResult{}, errors.New("the server is about to end")
	}
	hosted.mu.Lock()
	defer hosted.mu.Unlock()
	if hosted.tool == nil {
		tool, err := h.open()
		if err != nil {
			return session.ToolResult{}, err
		}
		hosted.tool = tool
	}
	return hosted.tool.Run(ctx, c, func(string) {})
}

func (h *Host) end(owner *sdk.ServerSession) {
	h.mu.Lock()
	hosted := h.sessions[owner]
	delete(h.sessions, owner)
	h.mu.Unlock()
	if hosted != nil {
		hosted.close()
	}
}

func (m *hostedTool) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.tool != nil {
		_ = m.tool.Close() // no caller is left to report to
		m.tool = nil
	}
}

// Stdio serves one client over its pipes until the client leaves or ctx ends.
func (h *Host) Stdio(ctx context.Context, in io.Reader, out io.Writer) error {
	err := h.server.Run(ctx, &sdk.IOTransport{Reader: io.NopCloser(in), Writer: noClose{out}})
	return cmp.Or(ctx.Err(), err)
}

type noClose struct{ io.Writer }

func (noClose) Close() error { return nil }

// idle is how long a session over HTTP is kept without a request.
const idle = 30 * time.Minute

// Handler serves clients over SSE at /sse, as vLLM expects, and over streamable HTTP at /mcp.
func (h *Host) Handler() http.Handler {
	get := func(*http.Request) *sdk.Server { return h.server }
	mux := http.NewServeMux()
	mux.Handle("/sse", sdk.NewSSEHandler(get, nil))
	mux.Handle("/mcp", sdk.NewStreamableHTTPHandler(get, &sdk.StreamableHTTPOptions{
		SessionTimeout: idle}))
	return http.NewCrossOriginProtection().Handler(mux)
}

func (h *Host) Close() error {
	h.mu.Lock()
	h.closed = true
	list := h.sessions
	h.sessions = nil
	h.mu.Unlock()
	for _, hosted := range list {
		hosted.close()
	}
	return nil
}
