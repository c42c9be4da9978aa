// One connection to a server: a process and its pipes, or HTTP.
//
// A session lasts as long as its conversation. Protocol versions without sessions are the last
// resort: an interpreter would lose its variables between two calls.

package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/ossrun/ossrun/runtime/process"
	"github.com/ossrun/ossrun/runtime/remote/client"
	"github.com/ossrun/ossrun/runtime/tools/python"
)

// newestWithSessions is the last protocol version that has sessions.
const newestWithSessions = "2025-11-25"

type transporter func(stderr io.Writer) sdk.Transport

type connection struct {
	*sdk.ClientSession
	server  *Server
	command *exec.Cmd // nil for HTTP
	done    chan struct{}
	cancel  context.CancelFunc // cancels all that the connection does
	changed atomic.Bool        // the server has announced that its list of tools changed
	progress
}

// connect starts or reaches a server within the time of ctx.
func (s Server) connect(ctx context.Context) (*connection, error) {
	var why []error
	for _, version := range []string{newestWithSessions, ""} {
		kinds := []string{s.Type}
		if s.URL != "" && s.Type == "" {
			kinds = []string{"http", "sse"}
		}
		for _, kind := range kinds {
			c, err := s.try(ctx, kind, version)
			if err == nil {
				return c, nil
			}
			why = append(why, err)
			if ctx.Err() != nil || notFound(err) {
				return nil, err
			}
		}
	}
	return nil, why[0]
}

func (s Server) try(ctx context.Context, kind, version string) (*connection, error) {
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	c := &connection{server: &s, done: make(chan struct{}), cancel: cancel}
	stderr := &process.StderrTail{}
	var transport sdk.Transport
	httpClient := &http.Client{Transport: headerTransport{s.URL, s.Headers},
		CheckRedirect: client.Redirect}
	switch {
	case s.replace != nil:
		transport = s.replace(stderr)
	case s.URL == "":
		c.command = exec.Command(s.Command, s.Args...)
		c.command.Env, c.command.Dir = s.environment(), s.Dir
		var confined *python.Confined
		if s.Sandbox {
			var err error
			if confined, err = python.Confine(s.Command, s.Args, s.variables()); err != nil {
				cancel()
				return nil, err
			}
			c.command = confined.Cmd
		}
		c.command.Stderr = stderr
		c.command.WaitDelay = 2 * time.Second // a child of the server may hold its pipes
		process.OwnGroup(c.command)
		transport = &program{command: c.command}
		if s.Sandbox {
			transport = &sandboxed{Transport: transport, confined: confined, life: life}
		}
	case kind == "sse":
		httpClient.Transport = repairedHTTP{httpClient.Transport, true}
		transport = &sdk.SSEClientTransport{Endpoint: s.URL, HTTPClient: httpClient,
			MaxEventSize: -1}
	default:
		httpClient.Transport = noticeStream{repairedHTTP{httpClient.Transport, false}}
		transport = &sdk.StreamableClientTransport{Endpoint: s.URL, HTTPClient: httpClient,
			MaxRetries: -1, MaxEventSize: -1}
	}
	sdkClient := sdk.NewClient(&sdk.Implementation{Name: "ossrun", Version: "1"},
		&sdk.ClientOptions{Capabilities: &sdk.ClientCapabilities{},
			ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) {
				c.changed.Store(true)
			},
			ProgressNotificationHandler: func(_ context.Context,
				r *sdk.ProgressNotificationClientRequest) {
				c.report(r.Params)
			}})
	done := make(chan error, 1)
	go func() { // the SSE stream lives as long as the context of Connect
		session, err := sdkClient.Connect(life, transport, &sdk.ClientSessionOptions{
			ProtocolVersion: version})
		c.ClientSession = session
		done <- err
	}()
	select {
	case err := <-done:
		if err != nil {
			c.kill()
			return nil, &failure{err, reason(err) + lastErrorLine(stderr)}
		}
	case <-ctx.Done():
		c.kill()
		go func() {
			if <-done == nil {
				c.close()
			}
		}()
		return nil, errors.New("it does not answer" + lastErrorLine(stderr))
	}
	go func() {
		_ = c.Wait() // the failing call reports how it ended
		close(c.done)
	}()
	return c, nil
}

// notDelivered is the SDK's code for a request that failed at HTTP.
const notDelivered = -32005

// refusalMessage returns the server's reason for refusing a request, or "" if it did not refuse it.
func refusalMessage(err error) string {
	var rpcErr *jsonrpc.Error
	var refusalErr *refusal
	switch {
	case errors.As(err, &refusalErr):
		return refusalErr.Error()
	case errors.As(err, &rpcErr) && rpcErr.Code != notDelivered && rpcErr.Code != codeUnreadable:
		return rpcErr.Message
	}
	return ""
}

// reason returns the cause of an error without our own wrapping.
func reason(err error) string {
	var rpcErr *jsonrpc.Error
	var execErr *exec.Error
	var syscallErr *os.SyscallError
	var pathErr *os.PathError
	var dnsErr *net.DNSError
	var urlErr *url.Error
	refused := refusalMessage(err)
	switch {
	case refused != "":
		return refused
	case errors.As(err, &rpcErr) && rpcErr.Code == codeUnreadable:
		return rpcErr.Message
	case errors.Is(err, io.EOF), errors.Is(err, sdk.ErrConnectionClosed),
		errors.Is(err, syscall.EPIPE), errors.Is(err, os.ErrClosed):
		return "it ended"
	case errors.As(err, &execErr):
		return "command not found: " + execErr.Name
	case errors.As(err, &pathErr) && pathErr.Op == "fork/exec" && notFound(err):
		return "command not found: " + pathErr.Path
	case errors.As(err, &dnsErr):
		return "no such host: " + dnsErr.Name
	case errors.As(err, &pathErr):
		return fmt.Sprintf("%s: %v", pathErr.Path, pathErr.Err)
	case errors.As(err, &syscallErr):
		return syscallErr.Err.Error()
	case errors.As(err, &urlErr):
		return urlErr.Err.Error()
	}
	return err.Error()
}

// notFound tells that there is no such program, so trying again is pointless.
func notFound(err error) bool {
	return errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist)
}

// failure is the reason why a server could not be reached, for display.
type failure struct {
	error
	text string
}

func (f *failure) Error() string { return f.text }
func (f *failure) Unwrap() error { return f.error }

// lastErrorLine returns the most useful line of a program's stderr: the last that mentions an
// error, else the last.
func lastErrorLine(stderr *process.StderrTail) (line string) {
	for text := range strings.Lines(stderr.String()) {
		text = strings.TrimSpace(strings.TrimPrefix(text, ": "))
		if text != "" && (strings.Contains(text, "rror") || !strings.Contains(line, "rror")) {
			line = text
		}
	}
	if line != "" {
		line = ": " + truncate(line, maxRefusal, "...")
	}
	return line
}

// headerTransport adds the configured headers to requests to the configured server only, not to a
// server that it redirects to.
type headerTransport struct {
	url  string
	list map[string]string
}

func (h headerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	u, err := url.Parse(h.url)
	if err == nil && len(h.list) > 0 && client.SameOrigin(u, r.URL) {
		r = r.Clone(r.Context())
		for name, value := range h.list {
			r.Header.Set(name, value)
		}
	}
	return http.DefaultTransport.RoundTrip(r)
}

func (c *connection) isDone() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// closeTimeout is how long a server may take to end a session.
const closeTimeout = 5 * time.Second

func (c *connection) close() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	// an error changes nothing: the connection is gone
	_, _ = await(ctx, func() (any, error) { return nil, c.ClientSession.Close() })
	c.kill()
}

// kill ends the connection at once, with all processes that the server started.
func (c *connection) kill() {
	c.cancel()
	if c.command != nil && c.command.Process != nil {
		process.End(c.command)
	}
}

// environment is the part of our environment that a server's process gets: keys only if configured.
func (s Server) environment() (list []string) {
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		if slices.Contains(inheritedEnv, strings.ToUpper(name)) || strings.HasPrefix(name, "LC_") {
			list = append(list, pair)
		}
	}
	return append(list, s.variables()...)
}

func (s Server) variables() (list []string) {
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		list = append(list, name+"="+s.Env[name])
	}
	return list
}

// sandboxed starts a program in the sandbox and watches it from then on.
type sandboxed struct {
	sdk.Transport
	confined *python.Confined
	life     context.Context // of the connection
}

func (w *sandboxed) Connect(ctx context.Context) (sdk.Connection, error) {
	connected, err := w.Transport.Connect(ctx)
	if err != nil {
		w.confined.Close()
		return nil, err
	}
	context.AfterFunc(w.life, w.confined.Watch())
	return connected, nil
}

var inheritedEnv = []string{"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "LANG", "TZ",
	"TMPDIR", "TEMP", "TMP", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME",
	"XDG_RUNTIME_DIR", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR",
	"NODE_EXTRA_CA_CERTS",
	"APPDATA", "LOCALAPPDATA", "HOMEDRIVE", "HOMEPATH", "PATHEXT", "PROGRAMFILES", "SYSTEMDRIVE",
	"SYSTEMROOT", "USERNAME", "USERPROFILE", "COMSPEC"}

func (s Server) name(c *connection) string {
	if r := c.InitializeResult(); s.unnamed && r != nil && r.ServerInfo != nil {
		return cmp.Or(r.ServerInfo.Name, s.Name)
	}
	return s.Name
}
