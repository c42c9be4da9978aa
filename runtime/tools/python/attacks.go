// The known ways out of a sandbox, tried in each one that this machine can use.
//
// The attempts are cells like a model's (attacks.py). What must stay true: they never run
// without a sandbox, where they would do what they try; an attempt without a verdict is not held.

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
	"strings"
	"time"

	"github.com/ossrun/ossrun/runtime/session"
)

//go:embed attacks.py
var attacks string

// Verdict is what came of an attempt.
type Verdict struct {
	Sandbox string `json:"sandbox"`
	Attack  string `json:"attack"`
	Held    bool   `json:"held"`
	Detail  string `json:"detail,omitempty"` // what was reached
}

// attackMemory is what the cells may use, less than by default so that the attempts take seconds.
const attackMemory = 512 << 20

// Attack tries the known ways out of a sandbox and reports each as it is known.
func Attack(ctx context.Context, sandbox string, report func(Verdict)) (err error) {
	if sandbox == "" || sandbox == "unsafe" {
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
	defer func() { err = errors.Join(err, tool.Close()) }()
	for _, m := range regexp.MustCompile(`(?m)^@attack\("(.*)"\)`).FindAllStringSubmatch(attacks,
		-1) {
		v := tool.attempt(ctx, planted, m[1])
		if ctx.Err() != nil {
			return ctx.Err()
		}
		report(v)
	}
	return nil
}

// attempt runs an attack as a cell.
func (t *Tool) attempt(ctx context.Context, planted, name string) Verdict {
	v := Verdict{Sandbox: t.Sandbox(), Attack: name}
	result, err := t.Run(ctx, session.Call{Arguments: fmt.Sprintf("PLANTED = %s\n%s\nattempt(%q)",
		planted, attacks, name)}, func(string) {})
	text := strings.TrimSpace(result.Text)
	if v.Held = err == nil && text == "held"; !v.Held {
		v.Detail = strings.TrimPrefix(text, "not held: ")
		if err != nil {
			v.Detail = strings.TrimSpace(v.Detail + " " + err.Error())
		}
	}
	return v
}

// plant puts what no cell may reach into its way, and describes it for attacks.py.
func plant() (planted string, remove func(), err error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return "", nil, fmt.Errorf("plant a secret: %w", err)
	}
	folder, err := os.MkdirTemp(home, ".ossrun-secrets-")
	if err != nil {
		return "", nil, fmt.Errorf("plant a secret: %w", err)
	}
	secret := filepath.Base(folder)
	file := filepath.Join(folder, "secret")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err == nil {
		err = errors.Join(os.WriteFile(file, []byte(secret), 0o600),
			os.Setenv("OSSRUN_PLANTED", secret))
	}
	remove = func() {
		_ = os.RemoveAll(folder) // nothing in it is worth a word
		_ = os.Unsetenv("OSSRUN_PLANTED")
		if l != nil {
			l.Close()
		}
	}
	if err != nil {
		remove()
		return "", nil, fmt.Errorf("plant a secret: %w", err)
	}
	name, _ := os.ReadFile("/proc/self/comm")
	text, _ := json.Marshal(map[string]any{"home": file, "secret": secret,
		"port": l.Addr().(*net.TCPAddr).Port, "pid": os.Getpid(),
		"name": strings.TrimSpace(string(name))}) // strings and numbers
	return string(text), remove, nil
}
