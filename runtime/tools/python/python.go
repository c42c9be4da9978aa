// Package python is the python tool: one interpreter a conversation, in a sandbox.
//
// The interpreter runs a driver (driver.py) that takes cells and returns their output. What must
// stay true: without a sandbox nothing runs, unless the user chose "unsafe" by name; a cell has no
// network and reaches no user file outside its own folder; a cell that exceeds its memory, time or
// output costs at most its interpreter, and the model is told; Close leaves no process running.
package python

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/ossrun/ossrun/runtime/process"
	"github.com/ossrun/ossrun/runtime/session"
)

//go:embed driver.py
var driver string

// Options of a Tool. Zero values are the defaults.
type Options struct {
	Sandbox string        // bwrap, podman, docker or unsafe; "": the first of those that works
	Image   string        // for podman and docker; "": python:3.13-slim
	Memory  int64         // bytes of all processes together; 0: 2 GiB
	Time    time.Duration // for one cell; 0: 120 s, as the tool's description says
	Output  int           // bytes read from one cell; 0: 1 MiB

	folder string // for files of the cells, /mnt/data in a container
}

// Tool is the python tool of one conversation.
type Tool struct {
	o        Options
	box      sandbox
	folder   string   // the tool's own, for its files and pictures; "": not made yet
	lock     *os.File // of folder
	pictures int64    // bytes of pictures that were copied

	mu      sync.Mutex // one cell at a time
	run     *interpreter
	evicted bool // the interpreter was ended for another conversation's
}

// New looks for a sandbox. Its error says what to install.
func New(o Options) (*Tool, error) {
	o.Memory, o.Time = cmp.Or(o.Memory, 2<<30), cmp.Or(o.Time, 120*time.Second)
	o.Output, o.Image = cmp.Or(o.Output, 1<<20), cmp.Or(o.Image, "python:3.13-slim")
	box, err := findSandbox(o.Sandbox)
	if err != nil {
		return nil, err
	}
	return &Tool{o: o, box: box}, nil
}

func (t *Tool) Sandbox() string { return t.box.name }

func (t *Tool) Offer(r *session.Request)   { r.Python = true }
func (t *Tool) Runs(recipient string) bool { return recipient == "python" }

func (t *Tool) Run(ctx context.Context, c session.Call, output func(string)) (session.ToolResult,
	error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := sharedPool.acquire(ctx, t); err != nil {
		return session.ToolResult{}, err
	}
	defer func() { sharedPool.release(t, t.run == nil) }()
	if t.run == nil {
		run, err := t.start(ctx)
		if err != nil {
			return session.ToolResult{}, err
		}
		t.run = run
	}
	notice := ""
	if t.evicted {
		notice, t.evicted = "[the interpreter was ended to make room for other conversations: "+
			"its variables are gone]\n", false
		output(notice)
	}
	t.run.resume()
	text, files, err := t.run.cell(ctx, c.Arguments, t.o, output)
	text = notice + text
	if why := t.run.pause(); why != nil { // before anything is copied out
		t.run.endAtLimit(why)
		for range t.run.frames {
		}
		files = nil
	}
	result := session.ToolResult{Text: text}
	for _, name := range files {
		path, err := t.picture(filepath.Base(name))
		if err != nil {
			result.Text += fmt.Sprintf("\n[%s is not saved: %v]", filepath.Base(name), err)
			continue
		}
		result.Files = append(result.Files, path)
		result.Text += fmt.Sprintf("\n[a figure was saved as /mnt/data/%s]", filepath.Base(name))
	}
	if t.run.hasEnded() {
		why := t.run.close()
		t.run = nil
		if err == nil {
			err = why
		}
		err = fmt.Errorf("%w; the interpreter was ended, its variables are gone", err)
	}
	return result, err
}

// Close ends the interpreter and removes its folder if it is a temporary one.
func (t *Tool) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.run != nil {
		_ = t.run.close() // killed: it always ends with an error
		t.run = nil
		sharedPool.release(t, true)
	}
	if t.folder == "" {
		return nil
	}
	folder := t.folder
	t.folder = ""
	return errors.Join(os.RemoveAll(folder), t.lock.Close())
}

type interpreter struct {
	process *exec.Cmd
	stop    func() // kills all of its processes
	in      io.WriteCloser
	frames  chan frame // closed when the driver has ended
	limit   chan error // the first limit that was exceeded

	watch    chan struct{} // closed to end the watch
	watching sync.WaitGroup

	data *os.Root // its /mnt/data
	// for bwrap: its folders in memory, its /proc, the driver in both, its network's sockets
	folders   []*os.File
	processes *os.Root
	driver    *os.File // the folder in this system's /proc
	driverPID string   // in the sandbox
	sockets   *os.File
	freezer   *os.File // of its own cgroup; nil: none
}

// frame is a line of the driver.
type frame struct {
	Out   string
	Done  bool
	Ready bool
	Files []string
	Cell  string // the one that is done
}

const maxFrame = 1 << 20

// startTimeout limits the start of the driver, including a download of the image.
const startTimeout = 5 * time.Minute

func (t *Tool) start(ctx context.Context) (*interpreter, error) {
	if err := t.prepare(); err != nil {
		return nil, err
	}
	command, stop, err := t.box.command(t.o)
	if err != nil {
		return nil, err
	}
	run := &interpreter{process: command, stop: stop, frames: make(chan frame, 64),
		watch: make(chan struct{}), limit: make(chan error, 1)}
	stderr := &process.StderrTail{}
	command.Stderr = stderr
	if run.in, err = command.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	err = command.Start()
	for _, f := range command.ExtraFiles {
		f.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("start the python tool in %s: %w", t.box.name, err)
	}
	go run.read(out)
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	select {
	case f, ok := <-run.frames:
		if !ok || !f.Ready {
			break
		}
		if t.box.name == "bwrap" {
			if err = run.openFolders(); t.box.scope != nil {
				run.openFreezer("/sys/fs/cgroup")
			}
		} else {
			run.data, err = os.OpenRoot(t.o.folder)
		}
		if err == nil {
			run.watching.Go(func() { t.box.watch(run, t.o) })
			return run, nil
		}
	case <-ctx.Done():
	}
	workingSandboxes.Clear() // a sandbox that worked before may be gone
	why := cmp.Or(ctx.Err(), err, run.close())
	return nil, fmt.Errorf("start python in %s: %w%s", t.box.name, why, stderr)
}

func (r *interpreter) read(out io.Reader) {
	defer close(r.frames)
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, maxFrame)
	for lines.Scan() {
		var f frame
		if json.Unmarshal(lines.Bytes(), &f) != nil {
			continue // written by a cell that found the driver's descriptor
		}
		r.frames <- f
	}
}

// cell runs code and returns what it printed, up to the limit.
func (r *interpreter) cell(ctx context.Context, code string, o Options,
	output func(string)) (text string, files []string, err error) {
	id := rand.Text() // no earlier cell can forge its end
	if err := r.send(map[string]any{"code": code, "cell": id}); err != nil {
		r.stop()
		for range r.frames { // until hasEnded reports it
		}
		return "", nil, fmt.Errorf("the interpreter does not take a cell: %w", err)
	}
	clock := time.NewTimer(o.Time)
	defer clock.Stop()
	interrupt, why := ctx.Done(), error(nil)
	var printed strings.Builder
	omitted := 0
	for {
		select {
		case f, ok := <-r.frames:
			if !ok {
				return withOmitted(printed.String(), omitted), nil, why
			}
			if f.Done && f.Cell == id {
				return withOmitted(printed.String(), omitted), f.Files, why
			}
			if room := o.Output - printed.Len(); len(f.Out) > room {
				omitted += len(f.Out) - room
				f.Out = strings.ToValidUTF8(f.Out[:room], "")
			}
			if f.Out != "" {
				printed.WriteString(f.Out)
				output(f.Out)
			}
		case <-interrupt:
			why, interrupt = ctx.Err(), nil
			r.interrupt(clock)
		case <-clock.C:
			if why != nil { // it was interrupted and still runs
				r.stop()
				continue
			}
			why = fmt.Errorf("the cell was stopped after %v", o.Time)
			r.interrupt(clock)
		}
	}
}

// interruptGrace is how long an interrupted cell may take to end before its interpreter is killed.
const interruptGrace = 2 * time.Second

func (r *interpreter) interrupt(clock *time.Timer) {
	_ = r.send(map[string]any{"interrupt": true}) // if it fails the clock kills it
	clock.Reset(interruptGrace)
}

func (r *interpreter) send(request map[string]any) error {
	line, _ := json.Marshal(request) // strings and bools
	_, err := r.in.Write(append(line, '\n'))
	return err
}

func (r *interpreter) hasEnded() bool {
	select {
	case _, open := <-r.frames:
		return !open
	default:
		return false
	}
}

func (r *interpreter) close() error {
	r.stop()
	_ = r.in.Close()
	for range r.frames {
	}
	err := r.process.Wait()
	close(r.watch)
	r.watching.Wait()
	r.closeFolders()
	select {
	case err = <-r.limit:
	default:
	}
	return err
}

func (r *interpreter) closeFolders() {
	for _, file := range append(r.folders, r.driver, r.sockets, r.freezer) {
		file.Close() // an error for one that is not open
	}
	if r.data != nil {
		r.data.Close()
	}
	if r.processes != nil {
		r.processes.Close()
	}
	r.folders, r.driver, r.sockets, r.freezer, r.data, r.processes = nil, nil, nil, nil, nil, nil
}

// settleTime is how long the processes of a cell may take to end after it.
const settleTime = 5 * time.Second

// withOmitted appends how much output was omitted.
func withOmitted(text string, n int) string {
	if n == 0 {
		return text
	}
	return fmt.Sprintf("%s\n[%d more bytes of output are omitted]", text, n)
}
