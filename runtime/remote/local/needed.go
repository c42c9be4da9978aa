// A server that another program or verb needs: the named one, a running one, or one that is started
// for it and ends with it.

package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/adrg/xdg"

	"github.com/ossrun/ossrun/runtime/process"
)

// ServerFinder describes the server that is looked for.
type ServerFinder struct {
	Caller   string // the verb or program that needs it
	Model    string // of a server that is started; "": the best model here
	MayStart bool
	Fetch    func(ctx context.Context, name string) error // of Model, before a start; may be nil
	Report   func(line string)
}

// Find returns the server's address before /v1. stop ends a server that was started.
func (n ServerFinder) Find(ctx context.Context, base string) (_ string, stop func(), err error) {
	base = strings.TrimSuffix(strings.TrimSuffix(base, "/"), "/v1")
	if base != "" {
		return base, func() {}, nil
	}
	list, err := Running(ctx)
	if err != nil {
		return "", nil, err
	}
	list = slices.DeleteFunc(list, func(s Server) bool { return len(s.Models) == 0 }) // downloads
	switch {
	case len(list) > 0:
		return list[0].URL, func() {}, nil
	case !n.MayStart:
		return "", nil, errors.New("no server is running. Run ossrun serve")
	case n.Model != "" && n.Fetch != nil:
		if err := n.Fetch(ctx, n.Model); err != nil {
			return "", nil, err
		}
	}
	return n.start(ctx)
}

// start starts a server that ends with this process. Its log is a file, since the screen is in use.
func (n ServerFinder) start(ctx context.Context) (base string, stop func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return "", nil, err
	}
	folder := filepath.Join(xdg.StateHome, "ossrun")
	if os.MkdirAll(folder, 0o700) != nil {
		if folder, err = Folder(); err != nil {
			return "", nil, err
		}
	}
	name := filepath.Join(folder, n.Caller+".log")
	log, err := os.OpenFile(name, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return "", nil, err
	}
	defer log.Close() // the server has its own
	arguments := []string{"serve", "--port", "0"}
	if n.Model != "" {
		arguments = append(arguments, "--model", n.Model)
	}
	cmd := exec.Command(self, arguments...)
	cmd.Stdout, cmd.Stderr = log, log
	process.OwnGroup(cmd)
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	n.Report(fmt.Sprintf("no server is running, so %s starts one; its log is %s", n.Caller, name))
	exited := make(chan struct{})
	go func() {
		_ = cmd.Wait() // its log says how it ended
		close(exited)
	}()
	stop = func() {
		_ = process.Interrupt(cmd) // an error means that it has ended
		select {
		case <-exited:
		case <-time.After(endTimeout):
			process.End(cmd)
			<-exited
		}
	}
	base, err = awaitReady(ctx, cmd.Process.Pid, exited)
	if err != nil {
		stop()
		if logText, read := os.ReadFile(name); read == nil && len(logText) > 0 {
			lines := bytes.Split(bytes.TrimSpace(logText), []byte("\n"))
			err = fmt.Errorf("the server did not start: %s", lines[len(lines)-1])
		}
		return "", nil, err
	}
	return base, stop, nil
}

// awaitReady waits until the server of a process can answer.
func awaitReady(ctx context.Context, pid int, exited <-chan struct{}) (string, error) {
	for {
		list, err := Running(ctx)
		if err != nil {
			return "", err
		}
		for _, s := range list {
			if s.PID == pid && s.State == Ready {
				return s.URL, nil
			}
		}
		select {
		case <-exited:
			return "", errors.New("it has ended")
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}
