package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/runtime/engine"
)

// Errors between the processes: the text, and those of its causes that a caller may tell apart.

type faultText struct {
	Text   string
	Driver *driver.Error `json:",omitempty"`
	Known  []string      `json:",omitempty"`
}

// sentinels are the errors without fields of their own.
var sentinels = map[string]error{
	"closed":        engine.ErrClosed,
	"no sampling":   engine.ErrNoSampling,
	"no driver":     driver.ErrNoLibrary,
	"out of memory": driver.ErrOutOfMemory,
	"stopped":       context.Canceled,
}

func encodeFault(err error) []byte {
	t := faultText{Text: err.Error()}
	errors.As(err, &t.Driver)
	for name, e := range sentinels {
		if errors.Is(err, e) {
			t.Known = append(t.Known, name)
		}
	}
	text, bad := json.Marshal(t)
	if bad != nil { // strings and numbers always can be written
		return []byte(`{"Text":"an error that cannot be told"}`)
	}
	return text
}

// Fault is an error of the worker's device, with that error's causes.
type Fault struct {
	Text   string
	causes []error
}

func (f *Fault) Error() string   { return f.Text }
func (f *Fault) Unwrap() []error { return f.causes }

func decodeFault(text []byte) error {
	var t faultText
	if err := json.Unmarshal(text, &t); err != nil || t.Text == "" {
		return errors.New("the GPU worker failed and did not say how")
	}
	f := &Fault{Text: t.Text}
	if t.Driver != nil {
		f.causes = append(f.causes, t.Driver)
	}
	for _, name := range t.Known {
		if e := sentinels[name]; e != nil {
			f.causes = append(f.causes, e)
		}
	}
	return f
}

// ErrLost is the cause of every error after a worker's end. A new worker must be started.
var ErrLost = errors.New("the GPU worker is gone")

// Lost says how a worker ended.
type Lost struct {
	// "signal: killed", "exit status 2", "it did not answer a step for 2m0s and was ended"
	How      string
	LastLine string // the line it died with, or its last one
}

func (l *Lost) Error() string {
	text := "the GPU worker ended: " + l.How
	if l.LastLine != "" {
		text += "; it said: " + l.LastLine
	}
	return text
}

func (l *Lost) Is(target error) bool { return target == ErrLost }

// lateMessage says how a hanging worker ended.
func lateMessage(k kind, deadline time.Duration) string {
	what := "a step"
	if k != step && k != advance && k != measure {
		what = fmt.Sprintf("%q", k)
	}
	return fmt.Sprintf("it did not answer %s for %s and was ended", what, deadline)
}
