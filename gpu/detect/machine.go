package detect

// This machine. Nothing takes longer than toolTime a tool: a tool of a broken driver may hang.

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"time"
)

// toolTime is how long one of the vendors' tools may take.
const toolTime = 10 * time.Second

// toolBytes is how much of its output is read.
const toolBytes = 4 << 20

// ThisMachine is the machine that this process runs on. ask brings the drivers' answers and may
// be nil.
func ThisMachine(ask func(vendor string) ([]Answer, error)) Machine {
	m := Machine{Ask: ask, Run: runTool}
	if runtime.GOOS == "linux" {
		m.Files, m.OpenKFD = os.DirFS("/"), openKFD
	} else {
		m.Platform = runtime.GOOS
	}
	return m
}

func openKFD() error {
	f, err := os.OpenFile("/dev/kfd", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return f.Close()
}

// runTool runs a program without a terminal, its language independent of our environment.
func runTool(ctx context.Context, name string, args ...string) (Output, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return Output{}, fs.ErrNotExist
	}
	ctx, cancel := context.WithTimeout(ctx, toolTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.WaitDelay = time.Second
	var out cappedBuffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		return Output{}, err
	}
	return Output{Text: out.String(), Exit: cmd.ProcessState.ExitCode()}, nil
}

// cappedBuffer keeps the first toolBytes and forgets the rest.
type cappedBuffer struct{ bytes.Buffer }

func (b *cappedBuffer) Write(p []byte) (int, error) {
	if room := toolBytes - b.Len(); room > 0 {
		b.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}
