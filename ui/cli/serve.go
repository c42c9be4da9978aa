// ossrun serve: the OpenAI port.
//
// The port is taken before the weights are loaded, so that a port in use is said at once. SIGINT or SIGTERM stops new
// requests and lets the running ones end for up to 30 s.

package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/runtime/openai"
	"github.com/ossrun/ossrun/runtime/session"
)

const drainTime = 30 * time.Second

func serveCommand(t Terminal) *cli.Command {
	return &cli.Command{
		Name:  "serve",
		Usage: "serve an OpenAI-compatible port",
		Description: "Example: ossrun serve --port 8000\n" +
			"         then, in Python: OpenAI(base_url=\"http://127.0.0.1:8000/v1\", api_key=\"none\")\n\n" + exitCodes,
		Flags: append(engineFlags(),
			&cli.StringFlag{Name: "host", Value: "127.0.0.1", Usage: "listen on this address; 0.0.0.0 is every one"},
			&cli.IntFlag{Name: "port", Value: 8000, Usage: "listen on this port; 0 picks a free one"},
			&cli.StringFlag{Name: "api-key", Usage: "ask clients for this `KEY`"}),
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return fail(exitUsage, "serve takes no argument %q; the model is given with --model", c.Args().First())
			}
			listener, err := listen(c.String("host"), c.Int("port"))
			if err != nil {
				return err
			}
			defer listener.Close()
			m, err := loadModel(c, t, false, func() {})
			if err != nil {
				return err
			}
			defer m.Close()
			log := slog.New(slog.NewTextHandler(t.Err, nil))
			server := &http.Server{
				Handler:           openai.NewHandler(openai.Options{Models: served(m), APIKey: c.String("api-key"), Version: build().Version, Log: log}),
				ReadHeaderTimeout: 30 * time.Second,
				ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
			}
			fmt.Fprintf(t.Err, "ossrun: %s on %s, context %d tokens: http://%s/v1\n", m.ID(), m.Device(), m.ContextLength(), listener.Addr())
			if ip, ok := listener.Addr().(*net.TCPAddr); ok && !ip.IP.IsLoopback() && c.String("api-key") == "" {
				fmt.Fprintln(t.Err, "ossrun: other machines can use this port without a key; --api-key K asks for one")
			}
			return serveUntilDone(c.Context, server, listener, t)
		},
	}
}

// served is the model under all the names that clients know it by.
func served(m *session.Model) openai.ModelSource {
	var aliases []string
	if e, ok := models.Lookup(m.ID()); ok && e.HF != "" { // as Hugging Face, ollama and we write it
		aliases = []string{e.HF, strings.Replace(m.ID(), "gpt-oss-", "gpt-oss:", 1), e.ID}
	}
	return openai.Single(openai.Session(m), m.Created().Unix(), aliases...)
}

func serveUntilDone(ctx context.Context, server *http.Server, listener net.Listener, t Terminal) error {
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return fail(exitFailure, "the server stopped: %s", err)
	case <-ctx.Done():
	}
	fmt.Fprintln(t.Err, "ossrun: stopping; running requests have 30 s to end")
	drain, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	err := server.Shutdown(drain)
	if err != nil {
		err = server.Close()
	}
	<-failed
	if err != nil {
		return fail(exitFailure, "stopping the server: %s", err)
	}
	return nil
}

func listen(host string, port int) (net.Listener, error) {
	if port < 0 || port > 65535 {
		return nil, fail(exitUsage, "--port must lie between 0 and 65535, not %d", port)
	}
	address := net.JoinHostPort(host, strconv.Itoa(port))
	l, err := net.Listen("tcp", address)
	switch {
	case err == nil:
		return l, nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fail(exitPort, "port %d on %s is in use: stop what listens there, or choose another with --port", port, host)
	case errors.Is(err, os.ErrPermission):
		return nil, fail(exitPort, "port %d on %s may not be used by this user: choose one above 1023 with --port", port, host)
	}
	return nil, fail(exitPort, "cannot listen on %s: %s", address, rootCause(err))
}

// rootCause strips the wrappers of net errors, which repeat the address.
func rootCause(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}
