package cli

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/runtime/tools"
)

// withoutTools is a machine that has nothing for the tools but what a test adds.
func withoutTools(t *testing.T) (programs string) {
	t.Helper()
	programs = t.TempDir()
	t.Setenv("PATH", programs)
	for _, name := range []string{"EXA_API_KEY", "BRAVE_API_KEY", "SEARXNG_URL",
		"PYTHON_EXECUTION_BACKEND"} {
		t.Setenv(name, "")
	}
	t.Setenv("HOME", t.TempDir())
	return programs
}

func TestToolFlags(t *testing.T) {
	withoutTools(t)
	chat := func(flags string) []string {
		return append(append([]string{"chat", "--model", "demo", "--device", "cpu", "--alone"},
			strings.Fields(flags)...), "hello")
	}
	for _, c := range []struct {
		arguments []string
		code      int
		want      string
	}{
		{chat("--tools python"), exitUsage, "the python tool needs a sandbox"},
		{chat("--tools browser"), exitUsage, "set EXA_API_KEY"},
		{chat("--tools shell"), exitUsage, `--tools must be browser, python`},
		{chat("--tools browser --search google"), exitUsage, `--search must be exa, brave`},
		{chat("--python-tool jail"), exitUsage, "bwrap, podman, docker, unsafe"},
		{chat("--tools auto --python-tool docker"), exitUsage, "docker is not installed"},
		{chat("--tools python --python-tool unsafe"), exitUsage, "python3 is not installed"},
		{chat("--tools auto --search http://127.0.0.1:1"), exitUsage, "127.0.0.1:1 cannot be"},
		{chat("--tool-server localhost"), exitUsage, "HOST:PORT"},
		{chat("--mcp-config /no/such"), exitUsage, "--mcp-config /no/such: "},
		{chat("--tool-server demo"), exitUsage, "needs a sandbox"},
		{chat("--tool-server demo --search exa"), exitUsage, "set EXA_API_KEY"},
		{chat("--tools auto"), exitOK, "the browser has no search engine"},
		{chat("--tools None --tool-server 127.0.0.1:1"), exitOK, `"127.0.0.1:1" was skipped`},
		{[]string{"mcp"}, exitUsage, "browser or python"},
		{[]string{"mcp", "browser", "python"}, exitUsage, "browser or python"},
		{[]string{"mcp", "python"}, exitUsage, "needs a sandbox"},
	} {
		code, out, told := runHere(t.Context(), c.arguments...)
		if code != c.code || !strings.Contains(told, c.want) {
			t.Errorf("%v: %d, %q, not %q", c.arguments, code, told, c.want)
		}
		if (out != "") != (c.code == exitOK) {
			t.Errorf("%v printed %q", c.arguments, out)
		}
	}
}

// ossrun mcp python runs cells for a client on its pipes.
func TestMCPOverStdio(t *testing.T) {
	if _, err := os.Stat("/usr/bin/python3"); err != nil {
		hosttest.Lacks(t, "python3 is not installed")
	}
	if err := os.Symlink("/usr/bin/python3", filepath.Join(withoutTools(t), "python3")); err != nil {
		t.Fatal(err)
	}
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- Run(t.Context(), []string{"ossrun", "mcp", "python", "--python-tool", "unsafe"},
			Terminal{In: in, Out: out, Err: io.Discard})
	}()
	client, err := sdk.NewClient(&sdk.Implementation{Name: "test"}, nil).Connect(t.Context(),
		&sdk.IOTransport{Reader: fromServer, Writer: toServer}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for code, want := range map[string]string{"x = 6 * 7": "", "x if 'x' in vars() else 42": "42\n"} {
		result, err := client.CallTool(t.Context(), &sdk.CallToolParams{Name: "python",
			Arguments: map[string]any{"code": code}})
		if err != nil || result.IsError || result.Content[0].(*sdk.TextContent).Text != want {
			t.Errorf("%s: %+v, %v", code, result, err)
		}
	}
	client.Close()
	toServer.Close()
	if code := <-ended; code != exitOK { // it ends with its client
		t.Errorf("exit code %d", code)
	}
}

// ossrun mcp browser --port is what --tool-server takes.
func TestMCPOverHTTP(t *testing.T) {
	withoutTools(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	told, tell := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- Run(ctx, []string{"ossrun", "mcp", "browser", "--search", "none", "--port", "0"},
			Terminal{Out: io.Discard, Err: tell})
		tell.Close()
	}()
	line := make([]byte, 1000)
	n, err := told.Read(line)
	at := regexp.MustCompile(`http://([0-9.:]+)/sse`).FindSubmatch(line[:n])
	if err != nil || at == nil {
		t.Fatalf("%q, %v", line[:n], err)
	}
	go io.Copy(io.Discard, told)
	defer http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	here, err := tools.Open(t.Context(), tools.Options{Servers: []string{string(at[1])}})
	if err != nil || len(here.Notes) > 0 {
		t.Fatal(err, here.Notes)
	}
	list, err := here.ForKind(tools.Browser, "")
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	_, err = list[0].Run(t.Context(), session.Call{Recipient: "browser.open",
		Arguments: `{"id":"http://127.0.0.1:1/"}`}, func(string) {})
	if err == nil || !strings.Contains(err.Error(), "127.0.0.1 is not a public address") {
		t.Error(err)
	}
	if err := list[0].Close(); err != nil {
		t.Error(err)
	}
	here.Close()
	stop()
	if code := <-ended; code != exitInterrupted {
		t.Errorf("exit code %d", code)
	}
}

// Requests may name the tools chosen by flags; by default the available ones, and none if other
// machines reach the port.
//
// SECURITY.md: `--host ADDRESS`: the server to other computers; Python and the browser stay off
// there unless `--tools` names them
// SECURITY.md: `--tools python`: the model's code, in the sandbox above, to whoever may ask
func TestServeTools(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		flags, refused string
	}{
		{"--search none", "mcp"},
		{"--host 0.0.0.0 --search none", "mcp, web_search"},
		{"--host 0.0.0.0 --search none --tools browser", "mcp"},
		{"--tools none", "mcp, web_search"},
	} {
		s := serveDemo(t, strings.Fields(c.flags)...)
		s.url = "http://127.0.0.1" + s.url[strings.LastIndex(s.url, ":"):]
		var list []string
		for _, kind := range []string{"mcp", "web_search"} {
			answer, _ := s.send("POST", "/v1/responses", `{"model":"demo","input":"Hello","tools":[`+
				`{"type":"`+kind+`","server_label":"x"}],"max_output_tokens":1}`)
			if answer.StatusCode == 400 {
				list = append(list, kind)
			}
		}
		if refused := strings.Join(list, ", "); refused != c.refused {
			t.Errorf("%s: refused %q, not %q", c.flags, refused, c.refused)
		}
		s.end(os.Interrupt)
		if log := s.err.String(); strings.Contains(log, "tools for requests: browser") !=
			!strings.Contains(c.refused, "web_search") {
			t.Errorf("%s: log: %s", c.flags, log)
		}
	}
}

// ossrun doctor --sandbox names each attack and whether it was held, as lines and as JSON.
//
// SECURITY.md: `ossrun doctor --sandbox` tries 34 attacks on bwrap, Podman and Docker and
// counts the ways.
func TestDoctorSandbox(t *testing.T) {
	needsSandbox(t)
	docker := t.TempDir()
	write(t, filepath.Join(docker, "docker"), "#!/bin/sh\necho no daemon >&2\nexit 1\n")
	t.Setenv("PATH", docker+":"+os.Getenv("PATH"))
	r := doctorJSON(t, 0, "--device", "cpu", "--sandbox")
	kinds := ""
	for _, a := range r.Attacks {
		if !a.Blocked || a.Sandbox != "bwrap" || a.Ways < 1 {
			t.Errorf("%+v", a)
		}
		kinds += a.Attack + "\n"
	}
	for _, want := range []string{"files of the home", "the network", "user namespaces", "ptrace",
		"keyring", "bpf", "forks", "heaps", "memfd", "shared", "file systems in memory",
		"unlinked files", "disk", "descriptors", "signals", "device nodes", "is a FIFO", "is a link",
		"buffers of sockets", "locks of files", "forged end", "between cells"} {
		if !strings.Contains(kinds, want) {
			t.Errorf("%q is not tried", want)
		}
	}
	if r.Passed == nil || !*r.Passed {
		t.Error("it has not passed")
	}
}

// TestToolThatFailsIsTold: a sandbox works at the start and not in the turn. The answer continues
// without it, with a notice outside the reasoning.
func TestToolThatFailsIsTold(t *testing.T) {
	programs := withoutTools(t)
	script := "#!/bin/sh\n[ $1 = ps ] && exit 0\necho 'no space left on device' >&2\nexit 125\n"
	write(t, filepath.Join(programs, "docker"), script)
	code, out, told := runHere(t.Context(), "chat", "--model", "demo", "--device", "cpu",
		"--temperature", "0", "--alone", "--tools", "python", "--python-tool", "docker", askSum)
	if code != exitOK || !strings.Contains(told, "no space left on device") ||
		strings.Contains(out, "no space") {
		t.Errorf("%d, %q, %q", code, out, told)
	}
}
