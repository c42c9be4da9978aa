// The messages on the socket. A turn uses the session's types directly; errors, which are
// interfaces, are converted.

package local

import (
	"encoding/json"
	"errors"
	"reflect"
	"time"

	"github.com/ossrun/ossrun/runtime/sched"
	"github.com/ossrun/ossrun/runtime/session"
)

// The kinds of orders.
const (
	doStatus = "status"
	doTurn   = "turn"
	doCancel = "cancel" // of the connection's turn
	doStop   = "stop"
)

type order struct {
	Do  string `json:"do"`
	Now bool   `json:"now,omitempty"` // with stop
	// with turn; "": the default model
	Model   string           `json:"model,omitempty"`
	Request *session.Request `json:"request,omitempty"` // with turn
}

type State string

const (
	Loading  State = "loading"
	Ready    State = "ready"
	Draining State = "draining"
	// Unreachable: none of the upstream servers answers
	Unreachable State = "unreachable"
)

// Chat is the Kind of a chat that others may join: it has no port and cannot be stopped by others.
const Chat = "chat"

// Status describes a server. `ossrun ps --json` prints it too.
type Status struct {
	Protocol int       `json:"protocol"`
	Kind     string    `json:"kind,omitempty"` // "": a server
	Version  string    `json:"version"`
	PID      int       `json:"pid"`
	URL      string    `json:"url"`
	State    State     `json:"state"`
	Work     string    `json:"work,omitempty"` // before there are models, such as a download
	Started  time.Time `json:"started"`
	Models   []Model   `json:"models"` // the default one first
}

type Model struct {
	Name    string     `json:"name"`
	Aliases []string   `json:"aliases,omitempty"`
	Source  string     `json:"source,omitempty"` // opens it, if its name does not: a folder
	State   string     `json:"state"`            // a serve.State
	Device  string     `json:"device,omitempty"`
	Context int        `json:"context"`         // tokens
	Bytes   int64      `json:"bytes"`           // of memory
	Dense   string     `json:"dense,omitempty"` // type of its dense weights: "bf16", "q8"
	Running int        `json:"running"`
	Waiting int        `json:"waiting"`
	KV      float64    `json:"kv_usage"`             // 0 to 1
	Unloads *time.Time `json:"unloads_at,omitempty"` // unless it is used
}

// turnLine is one line of a turn: its start, its refusal, an event, or its result.
type turnLine struct {
	Started bool            `json:"started,omitempty"` // the first line of a turn that runs
	Refused *wireError      `json:"refused,omitempty"` // the only line of a refused turn
	Kind    string          `json:"kind,omitempty"`    // of Event, a key of events
	Event   json.RawMessage `json:"event,omitempty"`
	Result  *session.Result `json:"result,omitempty"` // the last line
	Err     *wireError      `json:"err,omitempty"`    // with Result: its Done.Err
}

// events are the types of the lines between the first and the last.
var events = map[string]reflect.Type{}

func init() {
	for _, e := range []session.Event{session.Reasoning{}, session.Commentary{}, session.Answer{},
		session.CallStart{}, session.CallArguments{}, session.CallEnd{}, session.Prefill{}} {
		events[reflect.TypeOf(e).Name()] = reflect.TypeOf(e)
	}
}

func eventLine(e session.Event) turnLine {
	text, _ := json.Marshal(e) // texts and numbers
	return turnLine{Kind: reflect.TypeOf(e).Name(), Event: text}
}

// event decodes a line's event; nil if it has none.
func (s turnLine) event() session.Event {
	kind := events[s.Kind]
	if kind == nil {
		return nil
	}
	e := reflect.New(kind)
	if json.Unmarshal(s.Event, e.Interface()) != nil {
		return nil
	}
	return e.Elem().Interface().(session.Event)
}

// wireError keeps the errors that callers distinguish.
type wireError struct {
	Kind       string
	Text       string
	Param      string `json:",omitempty"`
	Max, Asked int    `json:",omitempty"`
}

func errorToWire(err error) *wireError {
	request, wrong := errors.AsType[*session.RequestError](err)
	tooLong, long := errors.AsType[*sched.ContextLengthError](err)
	switch {
	case err == nil:
		return nil
	case wrong:
		return &wireError{Kind: "request", Text: request.Msg, Param: request.Param}
	case long:
		return &wireError{Kind: "context", Max: tooLong.Max, Asked: tooLong.Needed}
	case errors.Is(err, sched.ErrQueueFull):
		return &wireError{Kind: "full"}
	case errors.Is(err, sched.ErrClosed):
		return &wireError{Kind: "closed"}
	}
	return &wireError{Kind: "other", Text: err.Error()}
}

func (w *wireError) err() error {
	if w == nil {
		return nil
	}
	switch w.Kind {
	case "request":
		return &session.RequestError{Param: w.Param, Msg: w.Text}
	case "context":
		return &sched.ContextLengthError{Max: w.Max, Needed: w.Asked}
	case "full":
		return sched.ErrQueueFull
	case "closed":
		return sched.ErrClosed
	}
	return errors.New(w.Text)
}
