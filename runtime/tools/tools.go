// Package tools gives a conversation the tools that the user chose: the browser, python, and the
// tools of MCP servers.
//
// What must stay true: a tool that the user named, itself or by its backend, and that cannot run is
// an error before the first turn, with advice. A tool that was only looked for, or is another
// program's, is left out with a note.
package tools

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/runtime/tools/browser"
	"github.com/ossrun/ossrun/runtime/tools/mcp"
	"github.com/ossrun/ossrun/runtime/tools/python"
)

// The kinds of tools.
const (
	Browser = "browser"
	Python  = "python"
	MCP     = "mcp"
)

// Auto is the name for every built-in tool that this machine can run.
const Auto = "auto"

type Options struct {
	Names   []string       // browser, python, auto
	Servers []string       // vLLM's --tool-server: demo (browser, python), HOST:PORT, or a URL
	Listed  []mcp.Server   // from an mcp.json, read by mcp.Config
	Skipped []string       // its entries that are not used, and why
	Sandbox string         // for python; "": the first that works here
	Search  string         // the browser's engine, see browser.Engine
	Allow   []netip.Prefix // networks that the browser may reach in addition to public ones

	// Interactive and Context are passed to mcp.Options.
	Interactive bool
	Context     func() int
}

type Tools struct {
	browser *browser.Options
	python  *python.Options
	servers *mcp.Servers

	Lines []string // a line for each tool
	Notes []string // a line for each missing tool, and why
}

// Open checks that the tools can run and connects to the servers.
func Open(ctx context.Context, o Options) (*Tools, error) {
	t := &Tools{Notes: slices.Clone(o.Skipped)}
	list := slices.Clone(o.Listed)
	names := slices.Clone(o.Names)
	for _, s := range o.Servers {
		if s == "demo" { // vLLM starts it without a search key too
			if _, _, err := browser.Engine(""); o.Search == "" && err != nil {
				o.Search = "none"
				t.Notes = append(t.Notes, "--tool-server demo: the browser opens pages and does "+
					"not search. Set EXA_API_KEY or BRAVE_API_KEY, or --search to the URL of a "+
					"SearXNG.")
			}
			names = append(names, Browser, Python)
			continue
		}
		server, err := mcp.Address(s)
		if err != nil {
			return nil, err
		}
		list = append(list, server)
	}
	for _, name := range names {
		if err := t.builtin(name, o); err != nil {
			return nil, err
		}
	}
	if len(list) > 0 {
		var notes []string
		t.servers, notes = mcp.Open(ctx, list, mcp.Options{Interactive: o.Interactive,
			Context: o.Context})
		t.Notes = append(t.Notes, notes...)
		t.Lines = append(t.Lines, t.servers.Lines()...)
		if ctx.Err() != nil {
			return nil, errors.Join(ctx.Err(), t.Close())
		}
	}
	return t, nil
}

func (t *Tools) builtin(name string, o Options) error {
	switch name {
	case Browser:
		return t.openBrowser(o)
	case Python:
		return t.openPython(o)
	case Auto:
		for _, kind := range []string{Browser, Python} {
			err := t.builtin(kind, o)
			named := kind == Browser && o.Search != "" || kind == Python && o.Sandbox != ""
			if err != nil && named {
				return err
			}
			if err != nil {
				t.Notes = append(t.Notes, err.Error())
			}
		}
		return nil
	}
	return fmt.Errorf("unknown tool %q. Use browser or python; --tool-server and "+
		"--mcp-config add MCP servers", name)
}

func (t *Tools) openBrowser(o Options) error {
	if t.browser != nil {
		return nil
	}
	search, engine, err := browser.Engine(o.Search)
	if err != nil {
		return err
	}
	t.browser = &browser.Options{Search: search, Allow: o.Allow}
	t.Lines = append(t.Lines, "browser: search with "+engine)
	return nil
}

// Network reads an address, or a network such as 192.168.0.0/16.
func Network(text string) (netip.Prefix, error) {
	if address, err := netip.ParseAddr(text); err == nil {
		return address.Prefix(address.BitLen())
	}
	network, err := netip.ParsePrefix(text)
	return network.Masked(), err
}

func (t *Tools) openPython(o Options) error {
	if t.python != nil {
		return nil
	}
	p := &python.Options{Sandbox: cmp.Or(o.Sandbox,
		sandboxFromEnv(os.Getenv("PYTHON_EXECUTION_BACKEND")))}
	trial, err := python.New(*p)
	if err != nil {
		return err
	}
	p.Sandbox = trial.Sandbox()
	stricter := trial.Stricter()
	if err := trial.Close(); err != nil {
		return err
	}
	t.python = p
	line := "python: in " + p.Sandbox
	if stricter != "" {
		line += ", " + stricter
	}
	if p.Sandbox == "unsafe" {
		line = "python: on this machine itself, without a sandbox"
	}
	t.Lines = append(t.Lines, line)
	return nil
}

// sandboxFromEnv reads the environment variable of vLLM's guide for gpt-oss.
func sandboxFromEnv(backend string) string {
	switch {
	case strings.HasPrefix(backend, "dangerously_"):
		return "unsafe"
	case backend == "docker":
		return "docker"
	}
	return ""
}

// ForConversation makes the tools for a new conversation. The caller closes them.
func (t *Tools) ForConversation() (list []session.Tool, err error) {
	for _, kind := range []string{Browser, Python, MCP} {
		created, err := t.ForKind(kind, "")
		if list = append(list, created...); err != nil {
			return list, err
		}
	}
	return list, nil
}

// ForKind makes the tools of one kind: for MCP those of the server with this name, or all for "".
// The list may be empty.
func (t *Tools) ForKind(kind, server string) ([]session.Tool, error) {
	switch {
	case kind == Browser && t.browser != nil:
		return []session.Tool{browser.New(*t.browser)}, nil
	case kind == Python && t.python != nil:
		p, err := python.New(*t.python)
		if err != nil {
			return nil, err
		}
		return []session.Tool{p}, nil
	case t.servers != nil:
		tool := t.servers.Tool(kind == Browser, kind == Python, func(name string) bool {
			return kind == MCP && (server == "" || name == server)
		})
		if tool != nil && (server == "" || len(tool.Tools()) > 0) {
			return []session.Tool{tool}, nil
		}
	}
	return nil, nil
}

// Offers lists the kinds of available built-in tools, and the labels of the MCP servers.
func (t *Tools) Offers() (kinds, labels []string) {
	browser, python := t.browser != nil, t.python != nil
	if t.servers != nil {
		b, p, list := t.servers.Offers()
		browser, python, labels = browser || b, python || p, list
	}
	if browser {
		kinds = append(kinds, Browser)
	}
	if python {
		kinds = append(kinds, Python)
	}
	return kinds, labels
}

func (t *Tools) Servers() []mcp.State {
	if t.servers == nil {
		return nil
	}
	return t.servers.States()
}

// Memory is the most bytes that programs of the built-in tools may use.
func (t *Tools) Memory() int64 {
	if t.python == nil {
		return 0
	}
	return python.TotalMemory
}

// Close closes the connections that no conversation uses.
func (t *Tools) Close() error {
	if t.servers == nil {
		return nil
	}
	return t.servers.Close()
}

// Detected is a built-in tool as this machine can run it, for doctor.
type Detected struct {
	Tool    string `json:"tool"`
	What    string `json:"what,omitempty"`
	Missing string `json:"missing,omitempty"` // how to install it
	Memory  int64  `json:"memory,omitempty"`  // bytes that its programs may use
}

// Detect reports how the built-in tools would run here.
func Detect() []Detected {
	var list []Detected
	for _, kind := range []string{Browser, Python} {
		t := &Tools{}
		detected := Detected{Tool: kind}
		if err := t.builtin(kind, Options{}); err != nil {
			detected.Missing = err.Error()
		} else {
			_, detected.What, _ = strings.Cut(t.Lines[0], ": ")
			detected.Memory = t.Memory()
		}
		list = append(list, detected)
	}
	return list
}
