package mcp

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/session"
)

// started runs a server of others until the test ends, and returns the port that it has bound.
func started(t *testing.T, command string, arguments ...string) (port string) {
	t.Helper()
	var said bytes.Buffer
	c := exec.Command(command, arguments...)
	c.Stdout, c.Stderr = &said, &said
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill() // it may have ended
		_ = c.Wait()
	})
	hosttest.Until(t, command+" listens", func() bool {
		port = listensAt(c.Process.Pid)
		return port != ""
	})
	return port
}

// listensAt is the port of the process's listener, from the table of Linux.
func listensAt(pid int) string {
	sockets := map[string]bool{}
	links, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	for _, link := range links {
		to, _ := os.Readlink(link) // it may be closed by now
		sockets[to] = true
	}
	for _, table := range []string{"tcp", "tcp6"} {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, table))
		for line := range strings.Lines(string(text)) {
			f := strings.Fields(line)
			if f[3] == "0A" && sockets["socket:["+f[9]+"]"] {
				port, _ := strconv.ParseUint(f[1][strings.Index(f[1], ":")+1:], 16, 16)
				return fmt.Sprint(port)
			}
		}
	}
	return ""
}

// A server made with Python's SDK, over its pipes and over streamable HTTP.
func TestPythonServer(t *testing.T) {
	python := hosttest.Program(t, "python3")
	if exec.Command(python, "-c", "import importlib.util as u; u.find_spec('mcp').name").Run() != nil {
		hosttest.Lacks(t, "python3 has no package mcp")
	}
	script, err := filepath.Abs("testdata/server.py")
	if err != nil {
		t.Fatal(err)
	}
	for name, server := range map[string]func(*testing.T) Server{
		"stdio": func(*testing.T) Server {
			return Server{Name: "snake", Command: python, Args: []string{script}}
		},
		"http": func(t *testing.T) Server {
			return Server{Name: "snake", URL: "http://127.0.0.1:" + started(t, python, script, "0") +
				"/mcp"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, notes := open(t, Options{}, server(t))
			if len(notes) > 0 {
				t.Fatal(notes)
			}
			tool, r := conversation(t, s)
			if len(r.Functions) != 6 {
				t.Errorf("%+v", r.Functions)
			}
			says(t, tool, "functions.snake_keep", `{"value":3}`, "kept [3]")
			says(t, tool, "functions.snake_keep", `{"value":4}`, "kept [3, 4]")
			fails(t, tool, "functions.snake_keep", `{"value":"x"}`, "valid integer")
			fails(t, tool, "functions.snake_fail", `{}`, "Error executing tool fail")
			says(t, tool, "functions.snake_structured", `{"city":"Graz"}`, "{\n  \"Graz\": 21\n}")
			var said []string
			if result, err := tool.Run(t.Context(), session.Call{
				Recipient: "functions.snake_steps", Arguments: `{"n":3}`},
				func(text string) { said = append(said, text) }); err != nil ||
				result.Text != "stepped" || len(said) == 0 || said[0] != "step 1 (1 of 3)\n" {
				t.Errorf("%+v, %v, said %q", result, err, said)
			}
			says(t, tool, "functions.snake_grow", `{}`, "grown")
			hosttest.Until(t, "the new tool", func() bool {
				tool.Offer(&session.Request{})
				return tool.Runs("functions.snake_new_one")
			})
			says(t, tool, "functions.snake_new_one", `{}`, "new")
			fails(t, tool, "functions.snake_die", `{}`, "ended during the call")
			if name == "http" {
				fails(t, tool, "functions.snake_keep", `{"value":5}`, "the server snake")
			}
		})
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
}

// The servers that the Go SDK brings as examples, over every transport.
func TestSDKExamples(t *testing.T) {
	if testing.Short() {
		t.Skip("builds two programs")
	}
	folder := t.TempDir()
	build := exec.Command("go", "build", "-o", folder,
		"github.com/modelcontextprotocol/go-sdk/examples/server/everything",
		"github.com/modelcontextprotocol/go-sdk/examples/server/sse")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	program := filepath.Join(folder, "everything")
	everything := started(t, program, "-http", "127.0.0.1:0")
	greeter := started(t, filepath.Join(folder, "sse"), "-host", "127.0.0.1", "-port", "0")
	s, notes := open(t, Options{},
		Server{Name: "pipes", Command: program},
		Server{Name: "http", URL: "http://127.0.0.1:" + everything},
		Server{Name: "sse", URL: "http://127.0.0.1:" + greeter + "/greeter1", Type: "sse"})
	if len(notes) > 0 {
		t.Error(notes)
	}
	tool, r := conversation(t, s)
	var names []string
	for _, f := range r.Functions {
		names = append(names, f.Name)
	}
	for _, on := range []string{"pipes", "http"} {
		if !slices.Contains(names, on+"_greet__with_Icons_") {
			t.Errorf("%s is not offered whole: %q", on, names)
		}
		says(t, tool, "functions."+on+"_greet", `{"name":"Ada"}`, "Hi Ada")
		says(t, tool, "functions."+on+"_greet__structured_", `{"name":"Ada"}`, `{"message":"Hi Ada"}`)
		says(t, tool, "functions."+on+"_ping", `{}`, "")
		// what needs a client that can do more than ours is refused, not waited for
		got, err := call(t, tool, "functions."+on+"_sample", `{}`)
		if err == nil || strings.Contains(err.Error(), "did not answer") {
			t.Errorf("sample on %s: %q, %v", on, got, err)
		}
	}
	says(t, tool, "functions.sse_greet1", `{"name":"Ada"}`, "Hi Ada")
}
