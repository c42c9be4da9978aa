// Starting vLLM by a plan, and watching its log.

package vllm

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/ossrun/ossrun/harmony/token"
	"github.com/ossrun/ossrun/models/store"
	"github.com/ossrun/ossrun/runtime/process"
)

// VocabularyFile is the name that openai_harmony looks for in TIKTOKEN_ENCODINGS_BASE.
const VocabularyFile = "o200k_base.tiktoken"

// WriteVocabulary writes the vocabulary to a folder, byte for byte the published file, so that vLLM
// need not fetch it. A correct file is left alone.
func WriteVocabulary(folder string) error {
	var b bytes.Buffer
	for id := range token.StartOfText {
		text := base64.StdEncoding.EncodeToString(token.Get().TokenBytes(id))
		fmt.Fprintf(&b, "%s %d\n", text, id)
	}
	path := filepath.Join(folder, VocabularyFile)
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, b.Bytes()) {
		return nil
	}
	if err := store.WriteFile(path, b.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write vLLM's vocabulary: %w", err)
	}
	return nil
}

// Watcher receives the log and the troubles of a start.
type Watcher struct {
	Log     io.Writer     // vLLM's own log
	Begin   func()        // called once vLLM is known to be installed; nil: not
	Trouble func(Trouble) // called once for each
}

const (
	// stopTimeout limits vLLM's end after it was asked to stop.
	stopTimeout = 30 * time.Second
	// logTimeout limits the reading of its log after its end.
	logTimeout = 5 * time.Second
)

// watchdogScript is a part of the shell's command: a process in vLLM's group that reads names of
// files from a pipe. When the pipe closes, even because this program was killed, it stops vLLM and
// removes these files.
const watchdogScript = `{ set -f; while read -r f; do files="$files $f"; done <&3; kill -INT 0; ` +
	`sleep 1; rm -f $files; sleep 30; kill -KILL 0; } >/dev/null 2>&1 & `

// Run runs the plan's command in a folder with its config, until it ends. ctx asks vLLM to stop.
func Run(ctx context.Context, p Plan, folder string, w Watcher) error {
	if p.File != "" {
		err := os.WriteFile(filepath.Join(folder, p.File), []byte(p.YAML()), 0o644)
		if err != nil {
			return fmt.Errorf("write vLLM's config: %w", err)
		}
	}
	program := "vllm"
	if len(p.Docker) > 0 {
		program = "docker"
	}
	if _, err := exec.LookPath(program); err != nil {
		return fmt.Errorf("%s is not installed. Install it, or choose another way by --launch "+
			"docker or local", program)
	}
	if w.Begin != nil {
		w.Begin()
	}
	if err := prepare(ctx, p, w.Log); err != nil {
		return err
	}
	alive, pipeEnd, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("start vLLM: %w", err)
	}
	defer pipeEnd.Close()
	read, write, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("start vLLM: %w", errors.Join(err, alive.Close()))
	}
	defer read.Close()
	// the plan's text is for a shell: it names variables of the environment
	c := exec.CommandContext(ctx, "sh", "-c", watchdogScript+"exec env "+p.Command()+" 3<&-")
	c.Dir = folder
	c.Env = append(os.Environ(), "VLLM_API_KEY="+p.Key)
	c.ExtraFiles = []*os.File{alive}
	c.Stdout, c.Stderr = write, write
	process.OwnGroup(c)
	memory := sharedFiles{report: pipeEnd}
	c.Cancel = func() error {
		memory.record(c.Process.Pid)
		return process.Interrupt(c)
	}
	c.WaitDelay = stopTimeout
	err = c.Start()
	alive.Close()
	write.Close()
	if err != nil {
		return fmt.Errorf("start vLLM: %w", err)
	}
	watched := make(chan struct{})
	go func() {
		w.watch(read, func() { memory.record(c.Process.Pid) })
		close(watched)
	}()
	err = c.Wait()
	memory.record(c.Process.Pid)
	process.End(c) // workers that outlived it
	// a process that has left the group may keep the log open
	_ = read.SetReadDeadline(time.Now().Add(logTimeout))
	<-watched
	memory.remove()
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("vLLM ended: %w", err)
	}
	return nil
}

// prepare fetches the container's image if it is missing.
func prepare(ctx context.Context, p Plan, log io.Writer) error {
	if len(p.Docker) == 0 ||
		exec.CommandContext(ctx, "docker", "image", "inspect", p.Image).Run() == nil {
		return nil
	}
	for _, l := range p.Prepare {
		c := exec.CommandContext(ctx, "sh", "-c", "exec "+l.Text)
		c.Stdout, c.Stderr = log, log
		if err := c.Run(); err != nil {
			return fmt.Errorf("%s: %w", l.Text, err)
		}
	}
	return nil
}

// healthLine is in vLLM's log line for each successful check by package pool.
const healthLine = `"GET /health HTTP/1.1" 200`

// watch passes the log on and looks for known troubles. started is called when all of vLLM's
// processes are running; it may not take requests yet.
func (w Watcher) watch(log io.Reader, started func()) {
	reported := map[string]bool{}
	for lines := bufio.NewReader(log); ; {
		line, err := lines.ReadString('\n')
		if line != "" && !strings.Contains(line, healthLine) {
			_, _ = io.WriteString(w.Log, line) // a log that cannot be written stops nothing
		}
		if t, ok := Diagnose(line); ok && !reported[t.Name] {
			reported[t.Name] = true
			w.Trouble(t)
		}
		if strings.Contains(line, "Application startup complete") {
			started()
		}
		if err != nil {
			return
		}
	}
}

// Trouble is a known fault of a start.
type Trouble struct {
	Pattern  *regexp.Regexp `yaml:"pattern" json:"-"`
	Families []string       `yaml:"families" json:"-"` // of affected GPUs; empty: all
	Name     string         `json:"name"`
	Cure     string         `json:"cure"`
	Place    string         `json:"place"`
	NotHere  string         `json:"not_here"` // why our own engine avoids it
}

// TroublesOn lists the known troubles on GPUs of these names.
func TroublesOn(gpus ...string) []Trouble {
	list := []Trouble{}
	for _, t := range rowsOf().Troubles {
		if slices.ContainsFunc(gpus, func(gpu string) bool {
			c := chipOf(Recognise(gpu))
			return c.Family != "other" &&
				(len(t.Families) == 0 || slices.Contains(t.Families, c.Family))
		}) {
			list = append(list, t)
		}
	}
	return list
}

// Diagnose finds a known trouble in a line of vLLM's log.
func Diagnose(line string) (Trouble, bool) {
	for _, t := range rowsOf().Troubles {
		if t.Pattern.MatchString(line) {
			return t, true
		}
	}
	return Trouble{}, false
}
