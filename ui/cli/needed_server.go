// A server that another verb needs: the one that a flag names, the one that runs, or one that is
// started for it and ends with it.

package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/adrg/xdg"
	"github.com/ossrun/ossrun/runtime/process"
	"github.com/ossrun/ossrun/runtime/remote/client"
	"github.com/ossrun/ossrun/runtime/remote/local"
)

type neededServer struct {
	t        Terminal
	whom     string // the verb or program that needs it
	model    string // of a server that is started; empty: the best that is here
	mayStart bool
}

// find returns the server's address in front of /v1. stop ends what was started.
func (o neededServer) find(ctx context.Context, base string) (_ string, stop func(), err error) {
	base = strings.TrimSuffix(strings.TrimSuffix(base, "/"), "/v1")
	if base != "" {
		return base, func() {}, nil
	}
	list, err := runningServers(ctx)
	switch {
	case err != nil:
		return "", nil, err
	case len(list) > 0:
		return list[0].URL, func() {}, nil
	case !o.mayStart:
		return "", nil, fail(exitFailure, "no server runs: ossrun serve starts one")
	}
	return o.start(ctx)
}

// start starts a server that ends with what asked for it. Its log is a file: the screen is taken.
func (o neededServer) start(ctx context.Context) (base string, stop func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return "", nil, err
	}
	name := filepath.Join(xdg.StateHome, "ossrun", o.whom+".log")
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return "", nil, err
	}
	log, err := os.OpenFile(name, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return "", nil, err
	}
	defer log.Close() // the server has its own
	arguments := []string{"serve", "--port", "0"}
	if o.model != "" {
		arguments = append(arguments, "--model", o.model)
	}
	cmd := exec.Command(self, arguments...)
	cmd.Stdout, cmd.Stderr = log, log
	process.OwnGroup(cmd)
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	fmt.Fprintf(o.t.Err, "ossrun: no server runs, so one is started for %s; its log is %s\n",
		o.whom, name)
	gone := make(chan struct{})
	go func() {
		_ = cmd.Wait() // how it ended stands in the log
		close(gone)
	}()
	stop = func() {
		_ = process.Interrupt(cmd) // an error means that it has ended
		select {
		case <-gone:
		case <-time.After(lastWords):
			process.End(cmd)
			<-gone
		}
	}
	base, err = ready(ctx, cmd.Process.Pid, gone)
	if err != nil {
		stop()
		if said, read := os.ReadFile(name); read == nil && len(said) > 0 {
			lines := bytes.Split(bytes.TrimSpace(said), []byte("\n"))
			err = fail(exitFailure, "the server did not start: %s", lines[len(lines)-1])
		}
		return "", nil, err
	}
	return base, stop, nil
}

// ready waits until the server of a process can answer.
func ready(ctx context.Context, pid int, gone <-chan struct{}) (string, error) {
	for {
		list, err := runningServers(ctx)
		if err != nil {
			return "", err
		}
		for _, s := range list {
			if s.PID == pid && s.State == local.Ready {
				return s.URL, nil
			}
		}
		select {
		case <-gone:
			return "", errors.New("it has ended")
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func look(ctx context.Context, base, model, key string) (agentPort, error) {
	base, err := reachable(base)
	if err != nil {
		return agentPort{}, err
	}
	c, err := client.New(base, key)
	if err != nil {
		return agentPort{}, fail(exitUsage, "%s", err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	var list struct {
		Data []struct {
			ID      string
			Context int `json:"context_length"`
		}
	}
	err = c.Call(ctx, http.MethodGet, "/v1/models", nil, &list)
	refused, no := errors.AsType[*client.Error](err)
	switch {
	case no && refused.Status == http.StatusUnauthorized:
		return agentPort{}, fail(exitFailure, "the server at %s wants its key: set "+
			"OSSRUN_API_KEY or give --api-key-file", base)
	case no:
		return agentPort{}, refused
	case err != nil:
		return agentPort{}, fail(exitFailure, "the server at %s: %s", base, rootCause(err))
	case len(list.Data) == 0:
		return agentPort{}, fail(exitFailure, "the server at %s has no list of models", base)
	}
	var names []string
	for _, m := range list.Data {
		if model == "" || strings.EqualFold(m.ID, model) {
			return agentPort{base, cmp.Or(key, "none"), m.ID, m.Context}, nil
		}
		names = append(names, m.ID)
	}
	return agentPort{}, fail(exitModel, "%s; the server has %s", unknownName("model", model, names),
		strings.Join(names, ", "))
}

// reachable is a server's address as a client on this machine can use it.
func reachable(base string) (string, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" {
		return "", fail(exitUsage, "agents need a server at an address, not %q: "+
			"ossrun serve --port 8000", base)
	}
	if ip := net.ParseIP(u.Hostname()); ip != nil && ip.IsUnspecified() {
		u.Host = net.JoinHostPort("127.0.0.1", u.Port())
	}
	return u.String(), nil
}
