package mcp

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/session"
)

// started runs a server of others until the test ends, and waits for its port.
func started(t *testing.T, port string, command string, arguments ...string) {
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
	for range 300 {
		if conn, err := net.Dial("tcp", "127.0.0.1:"+port); err == nil {
			conn.Close()
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("%s does not listen: %s", command, &said)
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return fmt.Sprint(l.Addr().(*net.TCPAddr).Port)
}

// A server made with Python's SDK, over its pipes and over streamable HTTP.
func TestPythonServer(t *testing.T) {
	python := hosttest.Program(t, "python3")
	if exec.Command(python, "-c", "import mcp.server.mcpserver").Run() != nil {
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
			port := freePort(t)
			started(t, port, python, script, port)
			return Server{Name: "snake", URL: "http://127.0.0.1:" + port + "/mcp"}
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
			for range 200 {
				if tool.Offer(&session.Request{}); tool.Runs("functions.snake_new_one") {
					break
				}
				time.Sleep(20 * time.Millisecond)
			}
			says(t, tool, "functions.snake_new_one", `{}`, "new")
			fails(t, tool, "functions.snake_die", `{}`, "ended during the call")
			if name == "stdio" {
				says(t, tool, "functions.snake_keep", `{"value":5}`, "kept [5]")
			} else {
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
	folder, everything, greeter := t.TempDir(), freePort(t), freePort(t)
	build := exec.Command("go", "build", "-o", folder,
		"github.com/modelcontextprotocol/go-sdk/examples/server/everything",
		"github.com/modelcontextprotocol/go-sdk/examples/server/sse")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	program := filepath.Join(folder, "everything")
	started(t, everything, program, "-http", "127.0.0.1:"+everything)
	started(t, greeter, filepath.Join(folder, "sse"), "-host", "127.0.0.1", "-port", greeter)
	s, notes := open(t, Options{Time: 20 * time.Second},
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
