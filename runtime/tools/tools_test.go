package tools

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/harmony"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/runtime/tools/browser"
	"github.com/ossrun/ossrun/runtime/tools/mcp"
)

// machine has these programs and these variables, and no others that matter here.
func machine(t *testing.T, programs []string, variables ...string) {
	t.Helper()
	folder := t.TempDir()
	for _, p := range programs {
		if err := os.WriteFile(filepath.Join(folder, p), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", folder)
	for _, name := range []string{"EXA_API_KEY", "BRAVE_API_KEY", "SEARXNG_URL",
		"PYTHON_EXECUTION_BACKEND"} {
		t.Setenv(name, "")
	}
	for _, v := range variables {
		name, value, _ := strings.Cut(v, "=")
		t.Setenv(name, value)
	}
}

func TestNetwork(t *testing.T) {
	for in, want := range map[string]string{"10.1.2.3": "10.1.2.3/32", "fd00::1/8": "fd00::/8",
		"192.168.7.1/16": "192.168.0.0/16", "everything": "", "10.1.2.3/99": "", "": ""} {
		got, err := Network(in)
		if (err == nil) != (want != "") || err == nil && got.String() != want {
			t.Errorf("%q: %v %v", in, got, err)
		}
	}
}

func TestOpen(t *testing.T) {
	all := []string{"podman", "docker", "python3"}
	for _, c := range []struct {
		name                    string
		programs, variables     []string
		o                       Options
		lines, notes, wantError string
	}{
		{"nothing", all, nil, Options{}, "", "", ""},
		{"both", all, []string{"EXA_API_KEY=k"}, Options{Names: []string{"browser", "python"}},
			"browser: search with Exa;python: in podman", "", ""},
		{"the guide", all, []string{"EXA_API_KEY=k", "PYTHON_EXECUTION_BACKEND=dangerously_use_uv"},
			Options{Servers: []string{"demo"}},
			"browser: search with Exa;python: on this machine itself, without a sandbox", "", ""},
		{"the guide without an engine", all, nil, Options{Servers: []string{"demo"}},
			"browser: search with none;python: in podman", "does not search. Set EXA_API_KEY", ""},
		{"the guide with one that is wrong", all, nil, Options{Servers: []string{"demo"},
			Search: "brave"}, "", "", "set BRAVE_API_KEY"},
		{"the guide without a sandbox", nil, []string{"EXA_API_KEY=k"},
			Options{Names: []string{"auto"}, Servers: []string{"demo"}}, "", "", "needs a sandbox"},
		{"the guide's docker", all, []string{"PYTHON_EXECUTION_BACKEND=docker"},
			Options{Names: []string{"python"}}, "python: in docker", "", ""},
		{"the flag wins", all, []string{"PYTHON_EXECUTION_BACKEND=dangerously_use_uv"},
			Options{Names: []string{"python"}, Sandbox: "docker"}, "python: in docker", "", ""},
		{"what there is", nil, []string{"BRAVE_API_KEY=k"}, Options{Names: []string{"auto"}},
			"browser: search with Brave", "the python tool needs a sandbox", ""},
		{"never unsafe by itself", []string{"python3"}, nil, Options{Names: []string{"auto"}}, "",
			"no search engine;needs a sandbox", ""},
		{"no engine", all, nil, Options{Names: []string{"browser"}}, "", "", "set EXA_API_KEY"},
		{"no sandbox", nil, nil, Options{Names: []string{"python"}}, "", "", "install"},
		{"another", all, nil, Options{Names: []string{"shell"}}, "", "", `unknown tool "shell"`},
		{"no address", all, nil, Options{Servers: []string{"localhost"}}, "", "", "HOST:PORT"},
		{"the file's own notes stay", all, nil, Options{Names: []string{"browser"},
			Servers: []string{"demo"}, Skipped: []string{`"a" was skipped`}},
			"browser: search with none;python: in podman",
			`"a" was skipped;--tool-server demo: the browser opens pages`, ""},
		{"named, and not here", nil, nil, Options{Names: []string{"auto"}, Search: "none",
			Sandbox: "docker"}, "", "", "docker is not installed"},
		{"an engine without its key", all, nil, Options{Names: []string{"auto"}, Search: "exa"}, "",
			"", "EXA_API_KEY"},
		{"an engine that is not there", all, nil, Options{Names: []string{"auto"},
			Search: "http://127.0.0.1:1"}, "", "", "127.0.0.1:1 cannot be reached"},
		{"nobody there", all, nil, Options{Servers: []string{"127.0.0.1:1"}}, "",
			`"127.0.0.1:1" was skipped`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			machine(t, c.programs, c.variables...)
			got, err := Open(t.Context(), c.o)
			if c.wantError != "" {
				if err == nil || !strings.Contains(err.Error(), c.wantError) {
					t.Errorf("%v, not %q", err, c.wantError)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer got.Close()
			if lines := strings.Join(got.Lines, ";"); lines != c.lines {
				t.Errorf("%q, not %q", lines, c.lines)
			}
			for i, want := range strings.Split(c.notes, ";") {
				if c.notes != "" && (i >= len(got.Notes) || !strings.Contains(got.Notes[i], want)) {
					t.Errorf("%q, not %q", got.Notes, want)
				}
			}
			if c.notes == "" && len(got.Notes) > 0 {
				t.Error(got.Notes)
			}
		})
	}
}

// Each conversation gets its own tools, of the requested kinds; a server named browser replaces the
// built-in one.
func TestFor(t *testing.T) {
	machine(t, []string{"podman"})
	host := mcp.NewHost(harmony.BuiltinBrowser(), "1", func() (session.Tool, error) {
		return browser.New(browser.Options{}), nil
	})
	defer host.Close()
	s := httptest.NewServer(host.Handler())
	defer s.Close()
	defer http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	got, err := Open(t.Context(), Options{Names: []string{"python"},
		Servers: []string{strings.TrimPrefix(s.URL, "http://")}})
	if err != nil {
		t.Fatal(err)
	}
	defer got.Close()
	offered := func(kind, server string) (runs []string) {
		list, err := got.ForKind(kind, server)
		if kind == "" {
			list, err = got.ForConversation()
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, tool := range list {
			for _, r := range []string{"python", "browser.search"} {
				if tool.Runs(r) {
					runs = append(runs, r)
				}
			}
			if err := tool.Close(); err != nil {
				t.Error(err)
			}
		}
		return runs
	}
	for _, c := range [][3]string{{"", "", "browser.search python"}, {Python, "", "python"},
		{Browser, "", "browser.search"}, {MCP, "", ""}, {MCP, "browser", ""}, {"shell", "", ""}} {
		if got := strings.Join(offered(c[0], c[1]), " "); got != c[2] {
			t.Errorf("%v: %q", c, got)
		}
	}
	a, err := got.ForKind(Python, "")
	if err != nil {
		t.Fatal(err)
	}
	b, err := got.ForKind(Python, "")
	if err != nil || a[0] == b[0] {
		t.Errorf("two conversations share a tool: %v", err)
	}
	for _, tool := range slices.Concat(a, b) {
		if err := tool.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestLook(t *testing.T) {
	machine(t, []string{"docker"})
	got := Detect()
	if len(got) != 2 || !strings.Contains(got[0].Missing, "EXA_API_KEY") || got[1].What != "in docker" {
		t.Errorf("%+v", got)
	}
}
