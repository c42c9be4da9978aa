// ossrun mcp: our browser and python for other programs, as an MCP server.

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/harmony"
	"github.com/ossrun/ossrun/runtime/process"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/runtime/tools"
	"github.com/ossrun/ossrun/runtime/tools/mcp"
)

func mcpCommand(t Terminal) *cli.Command {
	var o tools.Options
	host, port, anyUser := "127.0.0.1", -1, false
	return &cli.Command{
		Name: "mcp",
		Flags: flagTable(backendFlags(&o), groupListen, textFlag(&host, "host"),
			intFlag(&port, "port"), switchFlag(&anyUser, "any-user"), configFlag()),
		Action: func(c *cli.Context) error {
			kind := c.Args().First()
			namespace := harmony.BuiltinPython()
			if kind == tools.Browser {
				namespace = harmony.BuiltinBrowser()
			}
			if kind != namespace.Name || c.NArg() > 1 {
				return fail(exitUsage, "mcp needs one tool: browser or python")
			}
			o.Names = []string{kind}
			backends, err := openTools(c.Context, o, notify(t))
			if err != nil {
				return err
			}
			defer backends.Close()
			server := mcp.NewHost(namespace, build().Version, func() (session.Tool, error) {
				list, err := backends.ForKind(kind, "")
				if err != nil {
					return nil, err
				}
				return list[0], nil
			})
			defer server.Close()
			if !c.IsSet("port") {
				return stdioServer(c.Context, server, t)
			}
			return httpServer(c.Context, server, t, kind, host, port, anyUser)
		},
	}
}

func stdioServer(ctx context.Context, server *mcp.Host, t Terminal) error {
	if isTerminal(t.In) {
		notify(t)("waiting for an MCP client on stdin; --port N listens on a port instead")
	}
	err := server.Stdio(ctx, t.In, t.Out)
	if err == nil || errors.Is(err, io.EOF) || errors.Is(err, os.ErrClosed) || ctx.Err() != nil {
		return ctx.Err()
	}
	return fail(exitFailure, "the client is gone: %s", err)
}

func httpServer(ctx context.Context, server *mcp.Host, t Terminal, kind, host string,
	port int, anyUser bool) error {
	outliveReaders()
	listener, err := listen(host, port)
	if err != nil {
		return err
	}
	handler := server.Handler()
	s := &http.Server{ReadHeaderTimeout: 30 * time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if p := process.PeerOf(r.Context()); p != nil && !p.Ours {
				http.Error(w, "this server serves its own user; --any-user opens it",
					http.StatusForbidden)
				return
			}
			handler.ServeHTTP(w, r)
		})}
	if !anyUser && isLocal(listener) {
		_ = process.NotePeers(s) // else they are served, and doctor says so
	}
	failed := make(chan error, 1)
	go func() { failed <- s.Serve(listener) }()
	fmt.Fprintf(t.Err, "ossrun: the %s tool is at http://%[2]s/sse and http://%[2]s/mcp\n", kind,
		addresses(listener)[0])
	select {
	case err := <-failed:
		return fail(exitFailure, "the server stopped: %s", err)
	case <-ctx.Done():
	}
	err = s.Close()
	<-failed
	return errors.Join(ctx.Err(), err)
}
