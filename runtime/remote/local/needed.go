// A server that another program or verb needs: the one that is named, the one that runs, or one
// that is started for it and ends with it.

package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/adrg/xdg"

	"github.com/ossrun/ossrun/runtime/process"
)

// Needed is a server that is looked for.
type Needed struct {
	By       string // the verb or program that needs it
	Model    string // of a server that is started; "": the best that is here
	MayStart bool
	Report   func(line string)
}

// Find returns the server's address in front of /v1. stop ends what was started.
func (n Needed) Find(ctx context.Context, base string) (_ string, stop func(), err error) {
	base = strings.TrimSuffix(strings.TrimSuffix(base, "/"), "/v1")
	if base != "" {
		return base, func() {}, nil
	}
	list, err := Running(ctx)
	switch {
	case err != nil:
		return "", nil, err
	case len(list) > 0:
		return list[0].URL, func() {}, nil
	case !n.MayStart:
		return "", nil, errors.New("no server runs: ossrun serve starts one")
	}
	return n.start(ctx)
}

// start starts a server that ends with what asked for it. Its log is a file: the screen is taken.
func (n Needed) start(ctx context.Context) (base string, stop func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return "", nil, err
	}
	name := filepath.Join(xdg.StateHome, "ossrun", n.By+".log")
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return "", nil, err
	}
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
	n.Report(fmt.Sprintf("no server runs, so one is started for %s; its log is %s", n.By, name))
	gone := make(chan struct{})
	go func() {
		_ = cmd.Wait() // how it ended stands in the log
		close(gone)
	}()
	stop = func() {
		_ = process.Interrupt(cmd) // an error means that it has ended
		select {
		case <-gone:
		case <-time.After(patience):
			process.End(cmd)
			<-gone
		}
	}
	base, err = ready(ctx, cmd.Process.Pid, gone)
	if err != nil {
		stop()
		if said, read := os.ReadFile(name); read == nil && len(said) > 0 {
			lines := bytes.Split(bytes.TrimSpace(said), []byte("\n"))
			err = fmt.Errorf("the server did not start: %s", lines[len(lines)-1])
		}
		return "", nil, err
	}
	return base, stop, nil
}

// ready waits until the server of a process can answer.
func ready(ctx context.Context, pid int, gone <-chan struct{}) (string, error) {
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
		case <-gone:
			return "", errors.New("it has ended")
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}
