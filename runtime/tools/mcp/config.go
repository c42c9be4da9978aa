// The configuration of servers: files that VS Code, Cursor, Windsurf, Gemini and Claude write, and
// the addresses that vLLM's --tool-server takes.
//
// What must stay true: an entry that cannot be used affects no other and is reported in one
// sentence; a tool that an entry forbids is not offered.

package mcp

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/ossrun/ossrun/models/mapping"
)

// Server configures one server: a program to start, or a URL.
type Server struct {
	Name string `json:"-"`

	Command string            `json:"command"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env"`
	Dir     string            `json:"cwd"`

	URL     string            `json:"url"`
	Headers map[string]string `json:"headers"`

	// sse, http (streamable HTTP), stdio; "" is decided by the fields above, HTTP before SSE
	Type     string `json:"type"`
	Disabled bool   `json:"disabled"`
	// RequireApproval says whether a client of the port must approve each call, unless the client
	// itself sets it: always (or ""), never
	RequireApproval string `json:"require_approval"`
	// the program runs in the sandbox of python's cells
	Sandbox bool `json:"sandbox"`

	// the server's own names of tools: nil is all, and Exclude overrides Include
	Include []string `json:"includeTools"`
	Exclude []string `json:"excludeTools"`

	unnamed bool        // the server reports its name itself
	replace transporter // the process, in a test
}

// entry is a server as written in a file.
type entry struct {
	Server
	HTTPURL       string   `json:"httpUrl"`   // Gemini
	ServerURL     string   `json:"serverUrl"` // Windsurf
	DisabledTools []string `json:"disabledTools"`
	Tools         []string `json:"tools"` // Copilot; "*" is all
	EnvFile       string   `json:"envFile"`
}

// Config reads a file in the form of Claude Desktop and Cursor, or VS Code's with "servers":
//
//	{"mcpServers": {"files": {"command": "npx", "args": ["-y", "..."], "env": {"KEY": "..."}},
//	                "docs":  {"url": "https://example.com/mcp", "headers": {"K": "V"}}}}
//
// A note names each entry that is not used.
func Config(path string) (list []Server, notes []string, _ error) {
	text, err := mapping.ReadText(path, mapping.MaxSettings)
	if err != nil {
		return nil, nil, err
	}
	type lists struct {
		Servers map[string]json.RawMessage `json:"mcpServers"`
		VSCode  map[string]json.RawMessage `json:"servers"`
	}
	var file struct {
		lists
		Settings lists `json:"mcp"` // of VS Code
	}
	if err := json.Unmarshal(withoutComments(text), &file); err != nil {
		return nil, nil, fmt.Errorf("%s is not a list of MCP servers: %w", path, err)
	}
	all := map[string]json.RawMessage{}
	for _, l := range []lists{file.Settings, file.lists} {
		maps.Copy(all, l.VSCode)
		maps.Copy(all, l.Servers)
	}
	if len(all) == 0 && file.Servers == nil && file.VSCode == nil {
		return nil, nil, fmt.Errorf(`%s has no "mcpServers" and no "servers"`, path)
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		s, err := readEntry(all[name])
		if s.Name = name; err != nil {
			notes = append(notes, fmt.Sprintf("%s Check %s.", skipNote(name, err),
				filepath.Base(path)))
		} else if !s.Disabled {
			list = append(list, s)
		}
	}
	return list, notes, nil
}

// skipNote formats the note about a server that is not used.
func skipNote(name string, why error) string {
	text := strings.TrimRight(strings.TrimSpace(why.Error()), ".")
	return fmt.Sprintf("MCP server %q was skipped: %s.", name, text)
}

func readEntry(text json.RawMessage) (Server, error) {
	var e entry
	if text[0] != '{' {
		return e.Server, errors.New("its entry is not an object")
	}
	state := struct{ Disabled, Enabled bool }{false, true}
	if err := json.Unmarshal(text, &state); err == nil && (state.Disabled || !state.Enabled) {
		return Server{Disabled: true}, nil // a disabled entry may use variables that are unset
	}
	expanded, err := expand(text)
	if err != nil {
		return e.Server, err
	}
	var wrong *json.UnmarshalTypeError
	switch err := json.Unmarshal(expanded, &e); {
	case errors.As(err, &wrong):
		name := wrong.Field[strings.LastIndex(wrong.Field, ".")+1:]
		return e.Server, fmt.Errorf("%q cannot be a JSON %s", name, wrong.Value)
	case err != nil:
		return e.Server, err
	}
	e.Exclude = append(e.Exclude, e.DisabledTools...)
	if e.Tools != nil && !slices.Contains(e.Tools, "*") {
		e.Include = append(e.Include, e.Tools...)
	}
	if e.Type == "" && e.URL == "" && e.HTTPURL != "" {
		e.Type = "http"
	}
	e.URL = cmp.Or(e.URL, e.HTTPURL, e.ServerURL)
	if e.EnvFile != "" {
		env, err := envFile(e.EnvFile)
		if err != nil {
			return e.Server, err
		}
		maps.Copy(env, e.Env)
		e.Env = env
	}
	if _, err := exec.LookPath(e.Command); err != nil && len(e.Args) == 0 {
		if words := strings.Fields(e.Command); len(words) > 1 { // a command line in one string
			e.Command, e.Args = words[0], words[1:]
		}
	}
	return e.Server, e.check()
}

const approvalNever = "never"

func (s *Server) check() error {
	if !slices.Contains([]string{"", "always", approvalNever}, s.RequireApproval) {
		return fmt.Errorf(`"require_approval" is always or never, not %q`, s.RequireApproval)
	}
	switch s.Type = strings.ToLower(s.Type); s.Type {
	case "", "sse", "http":
	case "stdio", "local":
		s.Type = "stdio"
	case "streamable-http", "streamablehttp", "streamable_http":
		s.Type = "http"
	default:
		return fmt.Errorf("the type is stdio, sse or http, not %q", s.Type)
	}
	if s.Command != "" && s.URL != "" { // files that serve several programs have both, and the type
		switch s.Type {
		case "stdio":
			s.URL = ""
		case "sse", "http":
			s.Command = ""
		}
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

func (s *Server) wants(tool string) bool {
	return !slices.Contains(s.Exclude, tool) &&
		(s.Include == nil || slices.Contains(s.Include, tool))
}

// Address returns the server for HOST:PORT, vLLM's form, or for a URL.
func Address(text string) (Server, error) {
	if strings.Contains(text, "://") {
		s := Server{Name: text, URL: text, unnamed: true}
		return s, s.check()
	}
	host, port, err := net.SplitHostPort(text)
	if _, portErr := strconv.ParseUint(port, 10, 16); err != nil || portErr != nil ||
		strings.Contains(host, "/") {
		return Server{}, fmt.Errorf("a tool server is HOST:PORT or a URL, not %q", text)
	}
	return Server{Name: text, URL: "http://" + text + "/sse", Type: "sse", unnamed: true}, nil
}
