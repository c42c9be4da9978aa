// Package zootest has MCP servers with one fault each, for tests of MCP clients.
//
// What must stay true: each repeats output that real servers were seen to send. Most run in this
// process and only a few are programs, so that no verdict depends on the start of a process.
package zootest

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// Animal is a server of zoo.json: its fault and its outcome.
type Animal struct {
	Over    string // pipes, http, sse (the old transport), process, memory
	Fault   string
	Says    string // echo's answer
	Fails   string // echo's error, if it does not work
	Skipped string // why the server is not used
	Late    bool   // it starts to work after that

	Reached
	wire

	mu            sync.Mutex
	starts, calls int
	sessions      map[string]bool
	streams       []chan string
	streamed      chan bool // closed with the first stream
}

// Reached is how a server is reached, once the zoo is open.
type Reached struct {
	Name    string   `json:"-"`
	Command string   `json:"command,omitempty"`
	Args    []string `json:"args,omitempty"`
	URL     string   `json:"url,omitempty"`
	Type    string   `json:"type,omitempty"`
}

//go:embed zoo.json
var rows []byte

//go:embed process.py
var script string

// Zoo returns the animals of these transports.
func Zoo(t *testing.T, transports ...string) (list []*Animal) {
	t.Helper()
	for _, way := range transports {
		var all []*Animal
		if err := json.Unmarshal(rows, &all); err != nil {
			t.Fatal(err)
		}
		for _, a := range all {
			if strings.Contains(" "+a.Over+" ", " "+way+" ") {
				a.Over, a.streamed, a.sessions = way, make(chan bool), map[string]bool{}
				if a.Fails+a.Skipped+a.Says == "" && a.Fault != "no tools" || a.Late {
					a.Says = "the answer of echo"
				}
				list = append(list, a)
			}
		}
	}
	return list
}

// Callable tells whether echo of this animal can be called.
func (a *Animal) Callable() bool { return a.Says != "" || a.Fails != "" }

// Group is animals with the same time limits.
type Group struct {
	Animals     []*Animal
	Start, Time time.Duration
}

// Groups gives short limits to the animals that use all of them, and minutes to the others.
func Groups(zoo []*Animal) []Group {
	const minutes, little = 2 * time.Minute, 300 * time.Millisecond
	groups := []Group{{nil, minutes, minutes}, {nil, minutes, little}, {nil, little, minutes}}
	for _, a := range zoo {
		i := 0
		if strings.Contains(a.Fault, "hangs") && a.Fails != "" {
			i = 1
		} else if strings.Contains(a.Fault, "hangs") {
			i = 2
		}
		groups[i].Animals = append(groups[i].Animals, a)
	}
	return groups
}

// Open names the animals, starts the port for those over HTTP, and finds Python for the processes.
func Open(t *testing.T, list []*Animal) {
	t.Helper()
	port := httptest.NewServer(handler(list))
	t.Cleanup(func() {
		port.CloseClientConnections() // some hang
		port.Close()
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	})
	setURLs(list, port.URL)
	for _, a := range list {
		if a.Over == "process" {
			a.Command = hosttest.Program(t, "python3")
			a.Args = []string{"-I", "-S", "-c", script, a.Fault}
		}
	}
}

// OpenInMemory is Open without a network.
func OpenInMemory(t *testing.T, list []*Animal) {
	t.Helper()
	Serve(t, handler(list))
	setURLs(list, "http://zoo")
	for _, a := range list {
		if a.Over == "memory" {
			a.URL = strings.Replace(a.URL, "zoo", "late", 1)
		}
	}
}

// Serve makes a handler answer at every address, without a network, inside a bubble of synctest.
// The host late listens after 3 s.
func Serve(t *testing.T, handler http.Handler) {
	t.Helper()
	listener := make(memory)
	server := &http.Server{Handler: handler}
	began := time.Now()
	replaced, transport := http.DefaultTransport, &http.Transport{DialContext: func(
		ctx context.Context, _, address string) (net.Conn, error) {
		if strings.HasPrefix(address, "late") && time.Since(began) < 3*time.Second {
			return nil, os.NewSyscallError("connect", syscall.ECONNREFUSED)
		}
		client, served := net.Pipe()
		select {
		case listener <- served:
			return client, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}}
	http.DefaultTransport = transport
	go server.Serve(listener)
	t.Cleanup(func() {
		server.Close()
		transport.CloseIdleConnections()
		http.DefaultTransport = replaced
	})
}

// memory is a listener whose connections are pipes.
type memory chan net.Conn

func (m memory) Accept() (net.Conn, error) {
	if c, open := <-m; open {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (m memory) Close() error   { close(m); return nil }
func (m memory) Addr() net.Addr { return &net.TCPAddr{} }

// handler serves the animals, each in a folder with its name.
func handler(list []*Animal) http.Handler {
	mux := http.NewServeMux()
	for i, a := range list {
		a.Name = fmt.Sprintf("a%d", i)
		mux.Handle("/"+a.Name+"/", a)
	}
	return mux
}

func setURLs(list []*Animal, port string) {
	for _, a := range list {
		switch a.Over {
		case "http", "memory":
			a.URL, a.Type = port+"/"+a.Name+"/mcp", "http"
		case "sse":
			a.URL, a.Type = port+"/"+a.Name+"/sse", "sse"
		}
	}
}

// Config writes an mcp.json of these servers.
func Config(t *testing.T, animals []*Animal) (path string) {
	t.Helper()
	list := map[string]Reached{}
	for _, a := range animals {
		list[a.Name] = a.Reached
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

// IsExpected tells whether an answer of echo, or its error, is the expected outcome.
func (a *Animal) IsExpected(answer, failure string) bool {
	if a.Fails != "" {
		return strings.Contains(strings.ReplaceAll(failure, "server "+a.Name, "server it"), a.Fails)
	}
	return failure == "" && answer == a.Says
}
