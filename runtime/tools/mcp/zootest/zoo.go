// Package zootest starts MCP servers that have one fault each, for the tests of what calls them.
//
// What must stay true: every server is a process or a port of its own, and says what real ones have
// been seen to say.
package zootest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// Animal is a server of testdata/zoo.py: the fault that it has, and what becomes of it.
type Animal struct {
	Over    string `json:"-"` // pipes, http, sse (the old transport)
	Fault   string `json:"-"`
	Says    string `json:"-"` // echo, when it is called
	Fails   string `json:"-"` // echo, where it does not work
	Skipped string `json:"-"` // why the server is not used
	Late    bool   `json:"-"` // it comes after that

	Name    string   `json:"-"` // and how it is reached, when the zoo is open
	Command string   `json:"command,omitempty"`
	Args    []string `json:"args,omitempty"`
	URL     string   `json:"url,omitempty"`
	Type    string   `json:"type,omitempty"`
}

const echoed = "the answer of echo"

// Zoo are all animals.
var Zoo = []Animal{
	{Over: "pipes", Fault: "none", Says: echoed},
	{Over: "pipes", Fault: "banner", Says: echoed},
	{Over: "pipes", Fault: "logs", Says: echoed},
	{Over: "pipes", Fault: "JSON of another kind", Says: echoed},
	{Over: "pipes", Fault: "half a line before", Says: echoed},
	{Over: "pipes", Fault: "on the banner's line", Says: echoed},
	{Over: "pipes", Fault: "two in a line", Says: echoed},
	{Over: "pipes", Fault: "a batch", Says: echoed},
	{Over: "pipes", Fault: "byte order mark", Says: echoed},
	{Over: "pipes", Fault: "over several lines", Says: echoed},
	{Over: "pipes", Fault: "carriage returns", Says: echoed},
	{Over: "pipes", Fault: "ids are strings", Says: echoed},
	{Over: "pipes", Fault: "no version of JSON-RPC", Says: echoed},
	{Over: "pipes", Fault: "error is null", Says: echoed},
	{Over: "pipes", Fault: "method is null", Says: echoed},
	{Over: "pipes", Fault: "notices before an answer", Says: echoed},
	{Over: "pipes", Fault: "old version", Says: echoed},
	{Over: "pipes", Fault: "does not end", Says: echoed},
	{Over: "pipes", Fault: "forgets over its pipes", Says: echoed},
	{Over: "pipes", Fault: "error is a string", Fails: "the server it: no such thing"},
	{Over: "pipes", Fault: "error without an id", Fails: "the server it: no such thing"},
	{Over: "pipes", Fault: "half a line", Fails: "ended during the call"},
	{Over: "pipes", Fault: "ends in a call", Fails: "ended during the call"},
	{Over: "pipes", Fault: "half a line and hangs", Fails: "did not answer within 5s"},
	{Over: "pipes", Fault: "hangs in a call", Fails: "did not answer within 5s"},
	{Over: "pipes", Fault: "hangs", Skipped: "it does not answer: loading."},
	{Over: "pipes", Fault: "hangs at the list", Skipped: "it does not list its tools in time."},
	{Over: "pipes", Fault: "lists nothing", Skipped: "it does not list its tools: Method not found."},
	{Over: "pipes", Fault: "ends at once", Skipped: "it ended: KeyError: no API_KEY."},
	{Over: "pipes", Fault: "strange version", Skipped: `unsupported protocol version: "1.0".`},
	{Over: "pipes", Fault: "no version", Skipped: `unsupported protocol version: "".`},
	{Over: "pipes", Fault: "comes late", Skipped: "it ended", Late: true, Says: echoed},

	{Over: "http", Fault: "none", Says: echoed},
	{Over: "http", Fault: "same cursor", Says: echoed},
	{Over: "http", Fault: "endless cursors", Says: echoed},
	{Over: "http", Fault: "cursor is a number", Says: echoed},
	{Over: "http", Fault: "two pages", Says: echoed},
	{Over: "http", Fault: "no schema type", Says: echoed},
	{Over: "http", Fault: "no schema", Says: echoed},
	{Over: "http", Fault: "schema is null", Says: echoed},
	{Over: "http", Fault: "schema of two types", Says: echoed},
	{Over: "http", Fault: "php", Says: echoed},
	{Over: "http", Fault: "a bad tool", Says: echoed},
	{Over: "http", Fault: "no tools"},
	{Over: "http", Fault: "unknown block", Says: `{"type": "json", "json": {"a": 1}}` + "\n" + echoed +
		"\n" + `{"type": "image", "data": "no base64!"}`},
	{Over: "http", Fault: "large unknown block",
		Says: "[content of type blob was skipped: 5025 bytes]\n" + echoed},
	{Over: "http", Fault: "block without type", Says: echoed},
	{Over: "http", Fault: "odd annotations", Says: echoed},
	{Over: "http", Fault: "text is a number", Says: echoed + "\n" + `{"type": "text", "text": 5}`},
	{Over: "http", Fault: "content is a string", Says: echoed},
	{Over: "http", Fault: "content is a block", Says: echoed},
	{Over: "http", Fault: "result is a string", Says: echoed},
	{Over: "http", Fault: "summary", Says: "2 rows\n" +
		`{"rows":[{"id":9007199254740993},{"id":"r-78"}]}`},
	{Over: "http", Fault: "told twice", Says: `{"a": "\u00fc"}`},
	{Over: "http", Fault: "told in a list", Says: `{"a": 1}` + "\n" + echoed},
	{Over: "http", Fault: "told alone", Says: echoed},
	{Over: "http", Fault: "only structured", Says: "[1,2]"},
	{Over: "http", Fault: "not a number", Says: echoed + "\n" + `{"x":null,"y":"NaN"}`},
	{Over: "http", Fault: "is an error", Fails: "no such row"},
	{Over: "http", Fault: "an error without words", Fails: "does not say why"},
	{Over: "http", Fault: "meta is a list", Says: echoed},
	{Over: "http", Fault: "refuses a call", Fails: "the server it: no such thing"},
	{Over: "http", Fault: "error is a string", Fails: "the server it: no such thing"},
	{Over: "http", Fault: "error without an id", Fails: "the server it: no such thing"},
	{Over: "http", Fault: "ids are strings", Says: echoed},
	{Over: "http", Fault: "wrong ids", Says: echoed},
	{Over: "http", Fault: "notices before an answer", Says: echoed},
	{Over: "http", Fault: "with a charset", Says: echoed},
	{Over: "http", Fault: "as text", Says: echoed},
	{Over: "http", Fault: "of no type", Says: echoed},
	{Over: "http", Fault: "as a stream, but JSON", Says: echoed},
	{Over: "http", Fault: "as JSON, but a stream", Says: echoed},
	{Over: "http", Fault: "byte order mark", Says: echoed},
	{Over: "http", Fault: "over several lines", Says: echoed},
	{Over: "http", Fault: "a batch", Says: echoed},
	{Over: "http", Fault: "events with CRLF", Says: echoed},
	{Over: "http", Fault: "events with CR", Says: echoed},
	{Over: "http", Fault: "events that do not end", Says: echoed},
	{Over: "http", Fault: "events that are open", Says: echoed},
	{Over: "http", Fault: "events without a blank", Says: echoed},
	{Over: "http", Fault: "events of another name", Says: echoed},
	{Over: "http", Fault: "events with comments", Says: echoed},
	{Over: "http", Fault: "events over several lines", Says: echoed},
	{Over: "http", Fault: "forgets with 404", Says: echoed},
	{Over: "http", Fault: "forgets with 404 and JSON", Says: echoed},
	{Over: "http", Fault: "forgets with 400", Says: echoed},
	{Over: "http", Fault: "forgets with 400 and JSON", Says: echoed},
	{Over: "http", Fault: "forgets with 200", Says: echoed},
	{Over: "http", Fault: "forgets with 500", Says: echoed},
	{Over: "http", Fault: "a new session each time", Says: echoed},
	{Over: "http", Fault: "refuses notices", Says: echoed},
	{Over: "http", Fault: "answers elsewhere", Says: echoed},
	{Over: "http", Fault: "not found", Says: echoed},
	{Over: "http", Fault: "fails", Fails: "the server it: no such thing"},
	{Over: "http", Fault: "ends midway", Fails: "ended during the call"},
	{Over: "http", Fault: "hangs in a call", Fails: "did not answer within 5s"},
	{Over: "http", Fault: "hangs", Skipped: "it does not answer."},
	{Over: "http", Fault: "wants a key", Skipped: "HTTP 401: Unauthorized."},
	{Over: "http", Fault: "is a page", Skipped: "its answer is not of MCP (text/html)."},
	{Over: "http", Fault: "comes late", Skipped: "HTTP 503: starting.", Late: true, Says: echoed},
	{Over: "http", Fault: "listens late", Skipped: "connection refused.", Late: true, Says: echoed},

	{Over: "sse", Fault: "none", Says: echoed},
	{Over: "sse", Fault: "old, without names", Says: echoed},
	{Over: "sse", Fault: "old, forgets", Says: echoed},
	{Over: "sse", Fault: "told twice", Says: `{"a": "\u00fc"}`},
}

// Open starts the servers of testdata/zoo.py and says how each is reached.
func Open(t *testing.T, script string, animals []Animal) (list []Animal) {
	t.Helper()
	found, err := exec.Command(hosttest.Program(t, "python3"), "-c",
		"import sys; print(sys.executable)").Output() // a script may stand before it
	if err != nil {
		t.Fatal(err)
	}
	python := strings.TrimSpace(string(found))
	if script, err = filepath.Abs(script); err != nil {
		t.Fatal(err)
	}
	arguments := []string{"-I", "-S", script, "http"}
	for _, a := range animals {
		if a.Over != "pipes" {
			arguments = append(arguments, a.Fault)
		}
	}
	far := exec.Command(python, arguments...)
	out, err := far.StdoutPipe()
	if err == nil {
		_, err = far.StdinPipe() // it ends when this process does
	}
	if err == nil {
		err = far.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = far.Process.Kill() // it serves for ever
		_ = far.Wait()
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	ports := strings.Fields(line)
	for i, a := range animals {
		a.Name = fmt.Sprintf("a%d", i)
		if a.Over == "pipes" {
			a.Command = python
			a.Args = []string{"-I", "-S", script, a.Fault, filepath.Join(t.TempDir(), "starts")}
		} else {
			path := map[string]string{"http": "/mcp", "sse": "/sse"}[a.Over]
			a.URL, a.Type = "http://127.0.0.1:"+ports[0]+path, a.Over
			ports = ports[1:]
		}
		list = append(list, a)
	}
	return list
}

// Config writes an mcp.json of these servers.
func Config(t *testing.T, animals []Animal) (path string) {
	t.Helper()
	list := map[string]Animal{}
	for _, a := range animals {
		list[a.Name] = a
	}
	text, err := json.Marshal(map[string]any{"mcpServers": list})
	path = filepath.Join(t.TempDir(), "mcp.json")
	if err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Told tells whether an answer of echo, or its error, is what becomes of the fault.
func (a Animal) Told(answer, failure string) bool {
	if a.Fails != "" {
		return strings.Contains(strings.ReplaceAll(failure, "server "+a.Name, "server it"), a.Fails)
	}
	return failure == "" && answer == a.Says
}
