// Which servers there are: the mcpServers of Claude Desktop and Cursor, and the addresses that
// vLLM's --tool-server takes.

package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/ossrun/ossrun/models/mapping"
)

// Server is how one server is reached: a program to start, or a URL.
type Server struct {
	Name string `json:"-"`

	Command string            `json:"command"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env"`
	Dir     string            `json:"cwd"`

	URL     string            `json:"url"`
	Headers map[string]string `json:"headers"`

	// sse, http (streamable HTTP), stdio; "" is what the fields above say, HTTP before SSE
	Type     string `json:"type"`
	Disabled bool   `json:"disabled"`
	// RequireApproval says whether clients of the port are asked for each call, if they do not say
	// it themselves: always (or ""), never
	RequireApproval string `json:"require_approval"`
	// the program runs in the sandbox of python's cells
	Sandbox bool `json:"sandbox"`

	unnamed bool // the server says its name itself
}

// Config reads a file in the form of Claude Desktop and Cursor:
//
//	{"mcpServers": {"files": {"command": "npx", "args": ["-y", "..."], "env": {"KEY": "..."}},
//	                "docs":  {"url": "https://example.com/mcp", "headers": {"K": "V"}}}}
func Config(path string) ([]Server, error) {
	text, err := mapping.ReadText(path, mapping.MostSettings)
	if err != nil {
		return nil, fmt.Errorf("read the list of MCP servers: %w", err)
	}
	var file struct {
		Servers map[string]Server `json:"mcpServers"`
	}
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, fmt.Errorf("%s is not a list of MCP servers: %w", path, err)
	}
	if file.Servers == nil {
		return nil, fmt.Errorf(`%s has no "mcpServers"`, path)
	}
	var list []Server
	for _, name := range slices.Sorted(maps.Keys(file.Servers)) {
		s := file.Servers[name]
		s.Name = name
		if s.Disabled {
			continue
		}
		if err := s.check(); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", path, name, err)
		}
		list = append(list, s)
	}
	return list, nil
}

const approvalNever = "never"

func (s *Server) check() error {
	switch s.RequireApproval {
	case "", "always", approvalNever:
	default:
		return fmt.Errorf(`"require_approval" is always or never, not %q`, s.RequireApproval)
	}
	switch s.Type = strings.ToLower(s.Type); s.Type {
	case "", "stdio", "sse", "http":
	case "streamable-http", "streamablehttp", "streamable_http":
		s.Type = "http"
	default:
		return fmt.Errorf("the type is stdio, sse or http, not %q", s.Type)
	}
	if (s.Command == "") == (s.URL == "") {
		return fmt.Errorf(`a server has either a "command" or a "url"`)
	}
	switch {
	case s.Sandbox && s.URL != "":
		return errors.New(`only a program can run in the sandbox: "sandbox" needs a "command"`)
	case s.Sandbox && s.Dir != "":
		return errors.New(`a program in the sandbox has a folder of its own. Remove "cwd"`)
	case s.Command != "":
		return nil
	}
	u, err := url.Parse(s.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("%q is not the URL of a server", s.URL)
	}
	return nil
}

// Address is a server as vLLM names it, HOST:PORT, or its URL.
func Address(text string) (Server, error) {
	if strings.Contains(text, "://") {
		s := Server{Name: text, URL: text, unnamed: true}
		return s, s.check()
	}
	if _, port, err := net.SplitHostPort(text); err != nil || port == "" {
		return Server{}, fmt.Errorf("a tool server is HOST:PORT or a URL, not %q", text)
	}
	return Server{Name: text, URL: "http://" + text + "/sse", Type: "sse", unnamed: true}, nil
}
