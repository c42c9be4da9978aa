package worker

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The worker as a process: started, watched until it ends, its output passed on.

// Descriptors that the worker finds.
const (
	socketDescriptor = 3
	memoryDescriptor = 4
	demoDescriptor   = 5 // of a worker that a program carries
)

type process struct {
	os     *os.Process
	conn   net.Conn
	done   chan struct{} // closed when the process is gone and its last line was read
	ending time.Duration // as endingTime

	mu       sync.Mutex
	how      string // the exit status, once it has ended
	end      string // why we ended it, "" when we did not
	lastLine string // the last line, or the one with which it began to die
	died     bool   // lastLine is the latter
	stuck    bool   // it does not end, even killed
}

// lineBytes is how long a line of the worker may be; longer lines are cut.
const lineBytes = 512

// dying are the first words of the lines that a crashing Go program prints.
var dying = []string{"panic: ", "fatal error: ", "SIG", "unexpected fault address"}

// start runs a program as a worker with the shared memory, and the demo's pack or nil.
func start(program []string, memory, demo *os.File, log func(line string)) (_ *process, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("make a socket for the GPU worker: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "socket"), os.NewFile(uintptr(fds[1]),
		"socket of the GPU worker")
	defer theirs.Close()
	conn, err := net.FileConn(ours)
	if err = errors.Join(err, ours.Close()); err != nil {
		return nil, err
	}
	words, says, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	cmd := exec.Command(program[0], program[1:]...)
	cmd.Stdout, cmd.Stderr = says, says
	cmd.ExtraFiles = []*os.File{theirs, memory} // from descriptor 3 on
	if demo != nil {
		cmd.ExtraFiles = append(cmd.ExtraFiles, demo)
	}
	// A process group of its own: Ctrl-C ends the running requests first, then the worker.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	p := &process{conn: conn, done: make(chan struct{}), ending: endingTime}
	started := make(chan error)
	go func() {
		// The kernel sends the death signal when the thread that made the process ends, so that
		// thread stays with the process.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		p.watch(cmd, words, log)
	}()
	err = <-started
	says.Close()
	if err != nil {
		return nil, errors.Join(err, words.Close(), conn.Close())
	}
	p.os = cmd.Process
	return p, nil
}

func (p *process) watch(cmd *exec.Cmd, words *os.File, log func(string)) {
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		p.listen(words, log)
	}()
	err := cmd.Wait()
	select {
	case <-heard:
	case <-time.After(time.Second): // a child of its own holds the pipe
	}
	words.Close()
	<-heard
	p.mu.Lock()
	p.how = "exit status 0"
	if err != nil {
		p.how = err.Error()
	}
	p.mu.Unlock()
	close(p.done)
}

// listen passes on the worker's output, a line at a time.
func (p *process) listen(words *os.File, log func(string)) {
	lines := bufio.NewReaderSize(words, lineBytes)
	for {
		line, partial, err := lines.ReadLine()
		if err != nil {
			return
		}
		text := string(bytes.ToValidUTF8(line, nil))
		for partial && err == nil { // the remainder of a line that is too long
			_, partial, err = lines.ReadLine()
		}
		if text == "" {
			continue
		}
		p.mu.Lock()
		if !p.died {
			p.lastLine = text
			p.died = slices.ContainsFunc(dying,
				func(start string) bool { return strings.HasPrefix(text, start) })
		}
		p.mu.Unlock()
		if log != nil {
			log(text)
		}
	}
}

// endingTime is how long a killed worker may take: SIGKILL does not end one in a hanging driver.
const endingTime = 30 * time.Second

// kill ends the process for a reason, which lost reports, and waits endingTime at most.
func (p *process) kill(why string) {
	p.mu.Lock()
	if p.end == "" && p.how == "" {
		p.end = why
	}
	stuck := p.stuck
	p.mu.Unlock()
	select {
	case <-p.done:
		return
	default:
	}
	if stuck {
		return
	}
	_ = p.os.Kill() // it may be gone by now
	select {
	case <-p.done:
	case <-time.After(p.ending):
		p.mu.Lock()
		p.stuck = true
		p.end += fmt.Sprintf("; its process %d does not end, so the GPU's driver holds it: the "+
			"GPU may have to be reset, or the machine started again", p.os.Pid)
		p.mu.Unlock()
	}
}

// lost says how it ended, after it has.
func (p *process) lost() *Lost {
	p.mu.Lock()
	defer p.mu.Unlock()
	return &Lost{How: cmp.Or(p.end, p.how), LastLine: p.lastLine}
}
