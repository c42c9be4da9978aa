// Package session runs turns: it renders a conversation to Harmony tokens, lets the scheduler
// generate, parses the tokens as they arrive, and gives the caller events. The chat and the HTTP
// port are thin layers over it, so each feature exists once.
//
// This file has the types that the chat, the port and the turn share. Nothing here depends on HTTP
// or on a terminal.
package session

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ossrun/ossrun/harmony"
	"github.com/ossrun/ossrun/runtime/grammar"
	"github.com/ossrun/ossrun/runtime/kv"
	"github.com/ossrun/ossrun/runtime/sample"
	"github.com/ossrun/ossrun/runtime/sched"
)

// Message is one message of the history. CallID connects a call of the assistant with its result.
// It is also the key under which the sampled tokens of the call are stored.
type Message struct {
	harmony.Message
	CallID string
}

// MarshalJSON keeps the CallID, which the embedded message's own method would lose.
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
	// Messages is the history, oldest first, without the system message. Its developer messages
	// stay in place; Instructions and Functions become one more before them.
	Messages []Message

	Identity string // first line of the system message; "": OpenAI's for this model
	Date     string // YYYY-MM-DD; "" is today
	Effort   string // low, medium or high; "" is medium

	Instructions string
	Functions    []harmony.ToolDescription // offered as functions.NAME
	Python       bool                      // offer the built-in python tool
	Browser      bool                      // offer the built-in browser tool
	Formats      string                    `json:",omitempty"` // the section on the answer's format

	// Prompt, if not nil, is continued as text, without a conversation. Then only Final, Allowed,
	// KeepSpecial, Params, MaxTokens and Stop are used, and all text is Answer.
	Prompt []int32
	// Allowed limits the tokens that can be sampled; nil: all. KeepSpecial leaves the names of
	// special tokens in the text, except the one that ends it.
	Allowed     []int32
	KeepSpecial bool

	// The grammar allows only legal messages that call offered tools (package grammar). These
	// fields restrict it further:
	ToolChoice grammar.ToolChoice // whether tools may, must or must not be called
	ToolName   string             // with grammar.Named: the function
	// Only limits the callable tools to these: python, browser, or one browser.NAME of it,
	// functions.NAME; nil: all offered
	Only []string
	// functions whose Parameters must be enforced; for others unsupported parts are skipped
	Strict []string
	// Texts are functions whose argument is text instead of JSON, with its grammar; nil: any text.
	Texts map[string]*grammar.Grammar `json:"-"`

	Final *grammar.Grammar `json:"-"` // of the answer; nil: free text
	// Schema is Final for a model behind a port, which compiles it itself.
	Schema       json.RawMessage `json:"-"`
	MaxReasoning int             // most tokens of reasoning; 0: no limit; negative: no reasoning

	Params sample.Params
	// limits generated tokens, reasoning included; 0: as many as the context holds
	MaxTokens int
	Stop      []string // the answer ends before the first of these; not applied to reasoning
	// ids that end the turn when sampled; the text of the one that did is left out
	StopTokens []int32

	// ScorePrompt asks for PromptScored, with PromptTop alternatives of each token. With PromptOnly
	// the prompt is computed, and cached, and no token of an answer follows.
	ScorePrompt bool
	PromptTop   int
	PromptOnly  bool

	// Sampled is the tokens sampled by an earlier process: their events are repeated and the turn
	// continues. ID derives the ids of calls, so they repeat too; "": random ids.
	Sampled []int32
	ID      string

	// Salt separates the prefix cache: a turn only reuses prefixes of turns with the same salt.
	Salt string `json:",omitempty"`

	// Share is the client's share of the machine; nil: a share for this turn alone.
	Share *sched.Share `json:"-"`

	// Budget bounds the tokens of all turns of the client; nil: nothing does.
	Budget Budget `json:"-"`

	// Persist allows sampled tokens to be stored on disk, since the response or chat is stored
	// there too; otherwise they are lost with the process.
	Persist bool `json:"Kept,omitempty"`

	// InMemory keeps the cached pages of prompt and answer off the disk (--swap-disk). Pages gets
	// the names of those that may be there; nil: the turn leaves no record that would delete them.
	InMemory bool        `json:",omitempty"`
	Pages    *kv.PageLog `json:"-"`

	// Progress asks for Prefill events, Counts for those of that name.
	Progress bool `json:",omitempty"`
	Counts   bool `json:",omitempty"`

	// Prediction is the expected answer. It only affects speed.
	Prediction string

	// AllowLoops disables the check for endless repetition. It is also off if Params has IgnoreEOS
	// or MinTokens, or if Prompt is set.
	AllowLoops bool
}

// Event is yielded by a turn: Prefill, Counts, PromptScored, Reasoning, Commentary, Answer,
// CallStart, CallArguments, CallEnd, ToolOutput, ToolEnd or Done.
type Event interface{ event() }

// Reasoning is a piece of the analysis channel.
type Reasoning struct{ Text string }

// Commentary is a piece of text for the user before a call (the commentary channel without a
// recipient).
type Commentary struct{ Text string }

// Answer is a piece of the final channel. Logprobs has one entry for each token if Params.Logprobs
// asks for them. A token whose text is held back (half a character, the start of a stop string) is
// in the piece that has its text.
type Answer struct {
	Text     string
	Logprobs []TokenLogprob
	Tokens   []int32 `json:",omitempty"` // with Request.Prompt: the ids since the previous piece
}

// TokenLogprob is one sampled token with its logprob and the most probable alternatives.
type TokenLogprob struct {
	ID      int32
	Token   string // its bytes as text, with U+FFFD for invalid UTF-8
	Bytes   []byte
	Logprob float32
	Top     []TokenLogprob // most probable first; Top of these is nil
}

// CallStart begins a call of a tool. Name is the function's name without "functions."; Recipient is
// the full name.
type CallStart struct {
	Index           int
	ID              string
	Name, Recipient string
}

type CallArguments struct {
	Index int
	Text  string
}

// CallEnd ends a call; Arguments is the complete text.
type CallEnd struct {
	Index     int
	Arguments string
}

// Finish is the reason why a turn ended: one of the scheduler's, or calls.
type Finish = sched.FinishReason

const (
	FinishStop             = sched.FinishStop      // the model ended it, or a stop string
	FinishLength           = sched.FinishLength    // MaxTokens or the context is used up
	FinishLoop      Finish = "loop"                // see ErrLoop
	FinishToolCalls Finish = "tool_calls"          // the turn ended in at least one call
	FinishCancelled        = sched.FinishCancelled // the caller's context was cancelled
	FinishError            = sched.FinishError     // see Done.Err
)

// ErrLoop is Done.Err with FinishLoop.
var ErrLoop = errors.New("the model repeated the same tokens without end, and was stopped")

// Done is the last event of every turn.
type Done struct {
	Finish     Finish
	StopString string // the stop string or stop token's text that ended the turn
	Usage      Usage
	Last       Usage `json:"-"` // with tools: of the model's last turn alone
	Timing     sched.Timing
	Faults     harmony.Faults // places where the tokens were not legal Harmony
	Err        error          `json:"-"` // set with FinishError and FinishLoop
	// a call was cut off: its arguments are incomplete and cannot be used
	CallCut bool
}

// Cut tells whether the output was cut off.
func (d Done) Cut() bool { return d.Finish == FinishLength || d.CallCut }

// LimitError refuses a request beyond its client's limit.
type LimitError struct {
	Reason     string
	RetryAfter time.Duration
}

func (e *LimitError) Error() string { return e.Reason }

// Budget is a number of tokens that a client may use. It is safe for concurrent use.
type Budget interface {
	// Reserve is called before each turn, of a tool loop too, with the tokens of its prompt and the
	// most that it may sample. It returns how many it may sample: fewer only if open, for a request
	// that does not limit its answer. The error may be a *LimitError.
	Reserve(prompt, most int, open bool) (granted int, err error)
	// Return takes back what a turn has not used.
	Return(tokens int)
}

// Usage counts tokens. Completion includes Reasoning, which counts analysis messages with their
// headers and end tokens.
type Usage struct {
	Prompt, Cached, Completion, Reasoning int
	// tokens of Request.Prediction that were tried: those that matched, and those that did not
	Accepted, Rejected int
}

func (u Usage) Plus(v Usage) Usage {
	return Usage{Prompt: u.Prompt + v.Prompt, Cached: u.Cached + v.Cached,
		Completion: u.Completion + v.Completion, Reasoning: u.Reasoning + v.Reasoning,
		Accepted: u.Accepted + v.Accepted, Rejected: u.Rejected + v.Rejected}
}

// Prefill tells how many tokens of a prompt are computed, after each step with some of them.
type Prefill struct {
	Done, Total, Cached int
	Took                time.Duration // since the prompt began
}

// Counts has the tokens and times of a turn so far. It precedes each event of generated text.
type Counts struct {
	Usage  Usage
	Timing sched.Timing
}

// PromptScored has the logprobs of the prompt's tokens, before any other event. The first token has
// none.
type PromptScored struct{ Logprobs []TokenLogprob }

func (Prefill) event()       {}
func (Counts) event()        {}
func (PromptScored) event()  {}
func (Reasoning) event()     {}
func (Commentary) event()    {}
func (Answer) event()        {}
func (CallStart) event()     {}
func (CallArguments) event() {}
func (CallEnd) event()       {}
func (Done) event()          {}

// Call is one finished call of a turn. Server and Tool are set by a Resolver.
type Call struct {
	ID, Name, Recipient, Arguments string
	Server, Tool                   string `json:"-"`
}

// Result is everything that a turn has generated: for callers that do not stream, and for the
// history of the next turn.
type Result struct {
	Reasoning, Commentary, Answer string
	Calls                         []Call
	Messages                      []Message // to append to the history unchanged
	Prompt                        []int32   `json:"-"` // the prompt's tokens
	Tokens                        []int32   // sampled tokens, those after <|start|>assistant
	// functions whose arguments are only checked to be JSON, and why
	Relaxed   []string
	Citations []Citation // sources that the answer cites, of tools that this process ran
	Done      Done
}

// BusyError says that the queue is full; it wraps sched.ErrQueueFull. RetryAfter is in whole
// seconds, at least 1.
type BusyError struct{ RetryAfter time.Duration }

func (e *BusyError) Error() string {
	return fmt.Sprintf("the queue of waiting requests is full; try again in %v", e.RetryAfter)
}

func (e *BusyError) Unwrap() error { return sched.ErrQueueFull }

// RequestError refuses a request. Param is the name of a field of Request.
type RequestError struct{ Param, Msg string }

func (e *RequestError) Error() string { return fmt.Sprintf("%s: %s", e.Param, e.Msg) }

func User(text string) Message { return Message{Message: harmony.Text(harmony.RoleUser, text)} }

// Developer is an instruction that outranks the user's.
func Developer(text string) Message {
	return Message{Message: harmony.DeveloperText(text)}
}

// AssistantAnswer is an earlier answer, in the final channel.
func AssistantAnswer(text string) Message {
	return Message{Message: harmony.Text(harmony.RoleAssistant, text).WithChannel("final")}
}

// AssistantReasoning is the reasoning before an answer or a call, in the analysis channel.
func AssistantReasoning(text string) Message {
	return Message{Message: harmony.Text(harmony.RoleAssistant, text).WithChannel("analysis")}
}

// AssistantCommentary is text for the user before a call.
func AssistantCommentary(text string) Message {
	return Message{Message: harmony.Text(harmony.RoleAssistant, text).WithChannel("commentary")}
}

func FunctionCall(id, name, arguments string) Message {
	return Message{CallID: id, Message: harmony.Text(harmony.RoleAssistant, arguments).
		WithChannel("commentary").WithRecipient("functions." +
		name).WithContentType(harmony.ContentTypeJSON)}
}

// ServerFunction is the function name for a tool of an MCP server. It may not be unique.
func ServerFunction(server, tool string) string {
	name := strings.Map(func(r rune) rune {
		if r == '-' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
			return r
		}
		return '_'
	}, server+"_"+tool)
	return name[:min(len(name), maxFunctionName)]
}

const maxFunctionName = 60

// TextCall is an earlier call of a function whose argument is text.
func TextCall(id, name, input string) Message {
	m := FunctionCall(id, name, input)
	m.ContentType = ""
	return m
}

func FunctionResult(id, name, output string) Message {
	m := harmony.Text(harmony.RoleTool, output).WithChannel("commentary").WithRecipient("assistant")
	m.Name = "functions." + name
	return Message{CallID: id, Message: m}
}
