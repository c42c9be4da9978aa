// What is said on the socket. The types of a turn go as they are; errors, which are interfaces,
// have a form of their own.

package join

import (
	"errors"
	"time"

	"github.com/ossrun/ossrun/runtime/sched"
	"github.com/ossrun/ossrun/runtime/session"
)

// What an order can be.
const (
	doStatus = "status"
	doTurn   = "turn"
	doCancel = "cancel" // of the turn that the connection belongs to
	doStop   = "stop"
)

type order struct {
	Do  string `json:"do"`
	Now bool   `json:"now,omitempty"` // of stop
	// of turn; "": the one that is served by default
	Model   string           `json:"model,omitempty"`
	Request *session.Request `json:"request,omitempty"` // of turn
}

// State of a server.
type State string

const (
	Loading  State = "loading"
	Ready    State = "ready"
	Draining State = "draining"
)

// Status is what a server says of itself. It is also what ossrun ps --json prints.
type Status struct {
	Protocol int       `json:"protocol"`
	Version  string    `json:"version"`
	PID      int       `json:"pid"`
	URL      string    `json:"url"`
	State    State     `json:"state"`
	Started  time.Time `json:"started"`
	Models   []Model   `json:"models"` // the one that is served by default first
}

// Model is one that a server can answer with.
type Model struct {
	Name    string     `json:"name"`
	Aliases []string   `json:"aliases,omitempty"`
	State   string     `json:"state"` // "unloaded", "loading", "ready", "leaving"
	Device  string     `json:"device,omitempty"`
	Context int        `json:"context"` // tokens
	Bytes   int64      `json:"bytes"`   // of memory
	Running int        `json:"running"`
	Waiting int        `json:"waiting"`
	KV      float64    `json:"kv_usage"`             // 0 to 1
	Unloads *time.Time `json:"unloads_at,omitempty"` // if nobody asks for it
}

// said is one line of a turn: exactly one field is set, but for Err.
type said struct {
	// the first line of a turn that runs
	Started bool `json:"started,omitempty"`
	// the only line of one that does not
	Refused       *wireError             `json:"refused,omitempty"`
	Reasoning     *session.Reasoning     `json:"reasoning,omitempty"`
	Commentary    *session.Commentary    `json:"commentary,omitempty"`
	Answer        *session.Answer        `json:"answer,omitempty"`
	CallStart     *session.CallStart     `json:"call_start,omitempty"`
	CallArguments *session.CallArguments `json:"call_arguments,omitempty"`
	CallEnd       *session.CallEnd       `json:"call_end,omitempty"`
	Result        *session.Result        `json:"result,omitempty"` // the last line
	Err           *wireError             `json:"err,omitempty"`    // beside Result: its Done.Err
}

func say(e session.Event) said {
	switch e := e.(type) {
	case session.Reasoning:
		return said{Reasoning: &e}
	case session.Commentary:
		return said{Commentary: &e}
	case session.Answer:
		return said{Answer: &e}
	case session.CallStart:
		return said{CallStart: &e}
	case session.CallArguments:
		return said{CallArguments: &e}
	case session.CallEnd:
		return said{CallEnd: &e}
	}
	return said{}
}

// event is nil for a line that is none.
func (s said) event() session.Event {
	switch {
	case s.Reasoning != nil:
		return *s.Reasoning
	case s.Commentary != nil:
		return *s.Commentary
	case s.Answer != nil:
		return *s.Answer
	case s.CallStart != nil:
		return *s.CallStart
	case s.CallArguments != nil:
		return *s.CallArguments
	case s.CallEnd != nil:
		return *s.CallEnd
	}
	return nil
}

// wireError keeps the errors that callers tell apart.
type wireError struct {
	Kind       string
	Text       string
	Param      string `json:",omitempty"`
	Max, Asked int    `json:",omitempty"`
}

func errorToWire(err error) *wireError {
	var request *session.RequestError
	var tooLong *sched.ContextLengthError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &request):
		return &wireError{Kind: "request", Text: request.Msg, Param: request.Param}
	case errors.As(err, &tooLong):
		return &wireError{Kind: "context", Max: tooLong.Max, Asked: tooLong.Asked}
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
		return &sched.ContextLengthError{Max: w.Max, Asked: w.Asked}
	case "full":
		return sched.ErrQueueFull
	case "closed":
		return sched.ErrClosed
	}
	return errors.New(w.Text)
}
