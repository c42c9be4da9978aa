// Other programs in the sandbox of cells: MCP servers.
//
// What must stay true: such a program can access what a cell can, its own file, and the files that
// its arguments name. It is not started without a working sandbox.

package python

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Confined is a program prepared to run in the sandbox.
type Confined struct {
	*exec.Cmd
	box sandbox
	o   Options
}

// Confine prepares a program with these variables for bubblewrap. After its start the caller calls
// Watch, or Close if it fails to start.
func Confine(program string, arguments, variables []string) (*Confined, error) {
	path, err := exec.LookPath("bwrap")
	if err != nil {
		return nil, errors.New("it is to run in the sandbox, and bwrap is not installed. " +
			"Install it: apt install bubblewrap")
	}
	b := sandbox{name: "bwrap", program: path, host: true}
	if err = b.tryBwrap(); err != nil {
		return nil, fmt.Errorf("it is to run in the sandbox: %w", err)
	}
	if program, err = exec.LookPath(program); err == nil {
		program, err = filepath.Abs(program)
	}
	real := ""
	if err == nil {
		real, err = filepath.EvalSymlinks(program)
	}
	if err != nil {
		return nil, err
	}
	l := layout{program: real, mounts: []string{real}}
	if strings.HasPrefix(filepath.Base(real), "python") || strings.HasPrefix(filepath.Base(program),
		"python") {
		if l, err = layoutOf(program); err != nil {
			return nil, err
		}
		variables = append([]string{"PYTHONPATH=" + strings.Join(l.sites, ":")}, variables...)
	}
	for _, argument := range arguments {
		if info, err := os.Stat(argument); err == nil && filepath.IsAbs(argument) &&
			info.Mode().IsRegular() {
			l.mounts = append(l.mounts, argument)
		}
	}
	l.mounts = slices.DeleteFunc(l.mounts, isSystem)
	o := Options{Memory: 2 << 30}
	// which of -u and -p limits processes depends on the shell
	limits := fmt.Sprintf(`ulimit -c 0; ulimit -n %d; ulimit -u %[2]d 2>/dev/null || `+
		`ulimit -p %[2]d; exec "$@"`, 2*b.processes(), b.processes())
	c, err := b.bwrap(o, l.mounts, slices.Concat([]string{"/bin/sh", "-c", limits, "sh", l.program},
		arguments))
	if err != nil {
		return nil, err
	}
	c.Env = append(c.Env, variables...)
	return &Confined{Cmd: c, box: b, o: o}, nil
}

// Watch ends the program if it exceeds its limits. The returned function ends the watch.
func (c *Confined) Watch() (end func()) {
	c.Close()
	run := &interpreter{process: c.Cmd, watch: make(chan struct{}), limit: make(chan error, 1),
		stop: func() { _ = c.Process.Kill() }} // an error means that it has ended
	go func() {
		// its folders can be opened once bwrap has made them
		for range 100 {
			if run.openFolders() == nil {
				break
			}
			run.closeFolders()
			time.Sleep(10 * time.Millisecond)
		}
		c.box.watch(run, c.o)
		run.closeFolders()
	}()
	return func() { close(run.watch) }
}

// Close closes the files that the program is started with.
func (c *Confined) Close() {
	for _, f := range c.ExtraFiles {
		f.Close()
	}
}
