// Package session is the one place where a turn happens: a conversation is rendered to Harmony
// tokens, the scheduler generates, the parser reads the tokens as they come, and the caller gets
// events. The chat and the HTTP port are both thin layers over it, so a feature exists once.
//
// This file holds the words that the chat, the port and the turn machine share. Nothing here knows
// HTTP or a terminal.
package session

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/ossrun/ossrun/harmony"
	"github.com/ossrun/ossrun/runtime/grammar"
	"github.com/ossrun/ossrun/runtime/sample"
	"github.com/ossrun/ossrun/runtime/sched"
)

// Message is one message of the history. CallID ties a call of the assistant and its result
// together, and is the key under which the tokens that the model sampled for the call are
// remembered.
type Message struct {
	harmony.Message
	CallID string
}

// MarshalJSON keeps the CallID, of which the embedded message knows nothing.
func (m Message) MarshalJSON() ([]byte, error) {
	return json.Marshal(messageJSON{m.Message, m.CallID})
}

func (m *Message) UnmarshalJSON(text []byte) error {
	var j messageJSON
	err := json.Unmarshal(text, &j)
	*m = Message{j.Message, j.CallID}
	return err
}

type messageJSON struct {
	Message harmony.Message `json:"message"`
	CallID  string          `json:"call_id,omitempty"`
}

// Request asks for one turn of the assistant.
type Request struct {
	// Messages is the history, oldest first, without the system message. Developer messages among
	// it are rendered where they stand; Instructions and Functions make one more in front of them.
	Messages []Message

	Identity string // the first line of the system message; "" is OpenAI's own for this model
	Date     string // YYYY-MM-DD; "" is today
	Effort   string // low, medium or high; "" is medium

	Instructions string
	Functions    []harmony.ToolDescription // offered as functions.NAME
	Python       bool                      // offer the built-in python tool
	Browser      bool                      // offer the built-in browser tool

	// Prompt, if not nil, is continued as it is: as text, without a conversation. Then only Final,
	// Params, MaxTokens and Stop are looked at, and all that comes is Answer.
	Prompt []int32

	// What the model may write is held to legal messages that call offered tools only (package
	// grammar). These say more:
	ToolChoice grammar.ToolChoice // whether tools may, must or must not be called
	ToolName   string             // with grammar.Named: the function
	// functions whose Parameters must be held; those of others are held if they can be
	Strict       []string
	Final        grammar.Grammar `json:"-"` // of the answer; nil: free text
	MaxReasoning int             // tokens of reasoning at most; 0: no bound; less than 0: none

	Params sample.Params
	// generated tokens at most, reasoning included; 0: as many as the context holds
	MaxTokens int
	Stop      []string // the answer ends before the first of these; they do not apply to reasoning
}

// Event is what a turn yields. The sealed set is: Reasoning, Commentary, Answer, CallStart,
// CallArguments, CallEnd, Done.
type Event interface{ event() }

// Reasoning is a piece of the analysis channel.
type Reasoning struct{ Text string }

// Commentary is a piece of text for the user before a call (the commentary channel without a
// recipient).
type Commentary struct{ Text string }

// Answer is a piece of the final channel. Logprobs has one entry a token where Params.Logprobs asks
// for them; a token whose bytes are held back (half a character, the start of a stop string) comes
// with the text that releases it.
type Answer struct {
	Text     string
	Logprobs []TokenLogprob
}

// TokenLogprob is one sampled token with the logarithm of its probability and its best rivals.
type TokenLogprob struct {
	Token   string // its bytes as text, U+FFFD where they are no UTF-8 of their own
	Bytes   []byte
	Logprob float32
	Top     []TokenLogprob // most probable first; Top of these is nil
}

// CallStart opens a call of a tool. Name is the function's name without "functions."; Recipient is
// the whole.
type CallStart struct {
	Index           int
	ID              string
	Name, Recipient string
}

// CallArguments is a piece of the arguments of the call with this Index.
type CallArguments struct {
	Index int
	Text  string
}

// CallEnd closes a call; Arguments is the whole text.
type CallEnd struct {
	Index     int
	Arguments string
}

// Finish says why a turn ended: for a reason of the scheduler, or in calls.
type Finish = sched.Finish

const (
	FinishStop = sched.FinishStop // the model ended its turn, or a stop string was met
	// MaxTokens or the context is used up, or the model repeats itself without end
	FinishLength           = sched.FinishLength
	FinishToolCalls Finish = "tool_calls"          // the turn ended in at least one call
	FinishCancelled        = sched.FinishCancelled // the caller's context was cancelled
	FinishError            = sched.FinishError     // see Done.Err
)

// Done is the last event of every turn.
type Done struct {
	Finish     Finish
	StopString string // the stop string that was met, if any
	Usage      Usage
	Timing     sched.Timing
	Faults     harmony.Faults // places where the tokens were not legal Harmony
	Err        error          `json:"-"` // set with FinishError
}

// Usage counts tokens. Completion includes Reasoning: the tokens of analysis messages with their
// framing.
type Usage struct {
	Prompt, Cached, Completion, Reasoning int
}

func (Reasoning) event()     {}
func (Commentary) event()    {}
func (Answer) event()        {}
func (CallStart) event()     {}
func (CallArguments) event() {}
func (CallEnd) event()       {}
func (Done) event()          {}

// Call is one finished call of a turn.
type Call struct {
	ID, Name, Recipient, Arguments string
}

// Result is everything a turn said, for those who do not stream and for the next turn's history.
type Result struct {
	Reasoning, Commentary, Answer string
	Calls                         []Call
	Messages                      []Message // to append to the history as they are
	Tokens                        []int32   // what was sampled, after <|start|>assistant
	// functions whose arguments are held to JSON only, and why
	Relaxed []string
	Done    Done
}

// BusyError is a queue that is full: it wraps sched.ErrQueueFull. After is when there may be room,
// in whole seconds from 1 up.
type BusyError struct{ After time.Duration }

func (e *BusyError) Error() string {
	return fmt.Sprintf("the queue of waiting requests is full; try again in %v", e.After)
}

func (e *BusyError) Unwrap() error { return sched.ErrQueueFull }

// RequestError is a request that cannot be run as it was asked. Param names the field in the words
// of this package.
type RequestError struct{ Param, Msg string }

func (e *RequestError) Error() string { return fmt.Sprintf("%s: %s", e.Param, e.Msg) }
