// The known ways out of a sandbox, tried in each sandbox that works here.
//
// The attempts are cells like a model's (attacks.py). What must stay true: they never run without a
// sandbox, where they would succeed; an attempt without a verdict counts as an escape.

package python

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/ossrun/ossrun/runtime/session"
)

//go:embed attacks.py
var attacks string

// Verdict is what an attempt to get out of a sandbox came to.
type Verdict struct {
	Sandbox string `json:"sandbox"`
	Attack  string `json:"attack"`
	Blocked bool   `json:"held"`
	Ways    int    `json:"ways"`             // that were tried
	Detail  string `json:"detail,omitempty"` // what the attack reached
}

const (
	attackMemory = 256 << 20              // below the default, so that the attempts take seconds
	attackPause  = 250 * time.Millisecond // more than a thread that runs waits for the processor
)

// Sandboxes lists the sandboxes in which attacks can be tried.
func Sandboxes() []string {
	return slices.DeleteFunc(slices.Clone(Names), func(n string) bool { return n == "unsafe" })
}

// AttackSandbox tries the known ways out of a sandbox and reports each verdict at once. If no cell
// can run, it returns an error before any report.
func AttackSandbox(ctx context.Context, sandbox string, report func(Verdict)) error {
	if !slices.Contains(Sandboxes(), sandbox) {
		return errors.New("attacks are tried in a sandbox only: use bwrap, podman or docker")
	}
	planted, remove, err := plant()
	if err != nil {
		return err
	}
	defer remove()
	tool, err := New(Options{Sandbox: sandbox, Memory: attackMemory, Time: 20 * time.Second})
	if err != nil {
		return err
	}
	if _, err = tool.Run(ctx, session.Call{Arguments: "1"}, func(string) {}); err != nil {
		return errors.Join(err, tool.Close())
	}
	for _, m := range regexp.MustCompile(`(?m)^@(attack|bomb)\("(.*)"\)`).
		FindAllStringSubmatch(attacks, -1) {
		if tool == nil {
			tool, err = New(Options{Sandbox: sandbox, Memory: attackMemory, Time: 20 * time.Second})
			if err != nil {
				return err
			}
		}
		v := tool.attempt(ctx, planted, m[2], m[1] == "bomb")
		if m[1] == "bomb" || ctx.Err() != nil { // the next attempt starts in a fresh sandbox
			err, tool = tool.Close(), nil
		}
		if err := errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		report(v)
	}
	if tool == nil {
		return nil
	}
	return tool.Close()
}

// attempt runs an attack as a cell and checks the files that it returns.
func (t *Tool) attempt(ctx context.Context, planted secrets, name string, bomb bool) Verdict {
	v := Verdict{Sandbox: t.Sandbox(), Attack: name, Blocked: true}
	text, _ := json.Marshal(planted) // strings and numbers
	lines := []string{fmt.Sprintf("attempt(%q)", name)}
	if strings.Contains(attacks, fmt.Sprintf("\nAFTER[%q]", name)) ||
		strings.Contains(attacks, fmt.Sprintf("\n@after(%q)", name)) {
		lines = append(lines, fmt.Sprintf("attempt(%q, AFTER)", name))
	}
	for i, line := range lines {
		if i > 0 {
			time.Sleep(2 * attackPause)
		}
		r, err := t.Run(ctx, session.Call{Arguments: fmt.Sprintf("PLANTED = %s\n%s\n%s", text,
			attacks, line)}, func(string) {})
		output, started := strings.CutPrefix(strings.TrimSpace(r.Text), "begun")
		output, leak := strings.TrimSpace(output), planted.leaked(r.Files)
		ways := 0
		if _, e := fmt.Sscanf(output, "held %d", &ways); e != nil && bomb && started && err != nil {
			ways = 1 // the interpreter was ended
		}
		v.Ways += ways
		switch {
		case leak != "":
			v.Blocked, v.Detail = false, leak
		case strings.Contains(output, "not held: "):
			_, v.Detail, _ = strings.Cut(output, "not held: ")
			v.Blocked = false
		case ways == 0:
			v.Blocked, v.Detail = false, strings.TrimSpace(
				fmt.Sprint("no verdict: ", output, " ", err))
		}
	}
	return v
}

// secrets are what no cell may reach; attacks.py reads them.
type secrets struct {
	Home   string  `json:"home"`
	Secret string  `json:"secret"`
	Port   int     `json:"port"`
	PID    int     `json:"pid"`
	Name   string  `json:"name"`
	Memory int64   `json:"memory"`
	Disk   int64   `json:"disk"`
	Wait   int     `json:"wait"` // seconds, as is Pause
	Pause  float64 `json:"pause"`
}

// leaked checks the returned pictures as a program that shows them would.
func (s secrets) leaked(files []string) string {
	for _, file := range files {
		info, err := os.Lstat(file)
		if err != nil || !info.Mode().IsRegular() {
			return fmt.Sprintf("%s is given out, which is no file", filepath.Base(file))
		}
		if text, _ := os.ReadFile(file); strings.Contains(string(text), s.Secret) {
			return "a file of the home is given out as " + filepath.Base(file)
		}
	}
	return ""
}

func plant() (s secrets, remove func(), err error) {
	home, err := os.UserHomeDir()
	folder := ""
	if err == nil {
		folder, err = os.MkdirTemp(home, ".ossrun-secrets-")
	}
	if err != nil {
		return s, nil, fmt.Errorf("plant a secret: %w", err)
	}
	s.Secret, s.Home = filepath.Base(folder), filepath.Join(folder, "secret")
	s.PID, s.Memory, s.Disk, s.Wait = os.Getpid(), attackMemory, maxFolder, 5
	s.Pause = attackPause.Seconds()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err == nil {
		err = errors.Join(os.WriteFile(s.Home, []byte(s.Secret), 0o600),
			os.Setenv("OSSRUN_PLANTED", s.Secret))
	}
	remove = func() {
		_ = os.RemoveAll(folder) // a leftover is harmless
		_ = os.Unsetenv("OSSRUN_PLANTED")
		if l != nil {
			l.Close()
		}
	}
	if err != nil {
		remove()
		return s, nil, fmt.Errorf("plant a secret: %w", err)
	}
	s.Port = l.Addr().(*net.TCPAddr).Port
	name, _ := os.ReadFile("/proc/self/comm") // without /proc a cell sees no process either
	s.Name = strings.TrimSpace(string(name))
	return s, remove, nil
}
