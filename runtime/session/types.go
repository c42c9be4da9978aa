// Package session runs turns: it renders a conversation to Harmony tokens, lets the scheduler
// generate, reads the tokens as they come, and gives the caller events. The chat and the HTTP port
// are thin layers over it, so each feature exists once.
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
	// Messages is the history, oldest first, without the system message. Its developer messages are
	// rendered in their place; Instructions and Functions become one more in front of it.
	Messages []Message

	Identity string // the first line of the system message; "" is OpenAI's own for this model
	Date     string // YYYY-MM-DD; "" is today
	Effort   string // low, medium or high; "" is medium

	Instructions string
	Functions    []harmony.ToolDescription // offered as functions.NAME
	Python       bool                      // offer the built-in python tool
	Browser      bool                      // offer the built-in browser tool

	// Prompt, if not nil, is continued as text, without a conversation. Then only Final, Allowed,
	// KeepSpecial, Params, MaxTokens and Stop are used, and all text comes as Answer.
	Prompt []int32
	// Allowed are the only tokens that may come; nil: all. KeepSpecial leaves the names of special
	// tokens in the text, but for the one that ends it.
	Allowed     []int32
	KeepSpecial bool

	// The grammar allows only legal messages that call offered tools (package grammar). These
	// fields restrict it further:
	ToolChoice grammar.ToolChoice // whether tools may, must or must not be called
	ToolName   string             // with grammar.Named: the function
	// Only are what can be called of all that is offered: python, browser, functions.NAME; nil: all
	Only []string
	// functions whose Parameters must be enforced; those of others are if they are supported
	Strict []string
	// Texts are functions whose call is a text and no JSON, with its grammar; nil: any text.
	Texts map[string]*grammar.Grammar `json:"-"`

	Final *grammar.Grammar `json:"-"` // of the answer; nil: free text
	// Schema is Final for a model behind a port, which makes its own grammar of it.
	Schema       json.RawMessage `json:"-"`
	MaxReasoning int             // most tokens of reasoning; 0: no limit; negative: no reasoning

	Params sample.Params
	// most generated tokens, reasoning included; 0: as many as the context holds
	MaxTokens int
	Stop      []string // the answer ends before the first of these; not applied to reasoning
	// ids that end the turn wherever they are sampled; the text of the one that did is left out
	StopTokens []int32

	// ScorePrompt asks for PromptScored, with PromptTop rivals of each token. PromptOnly asks for
	// nothing else, if Prompt is set.
	ScorePrompt bool
	PromptTop   int
	PromptOnly  bool

	// Sampled is what an earlier process has sampled of this turn: its events come again, and the
	// turn goes on behind it. ID makes the ids of calls the same again; "": they are random.
	Sampled []int32
	ID      string

	// Salt keeps what is remembered of the prompt apart: only turns with the same one are begun
	// faster by it.
	Salt string `json:",omitempty"`

	// Share is whose part of the machine the turn takes; nil: one of its own.
	Share *sched.Share `json:"-"`

	// Kept lets what is remembered of the turn lie on a disk, with the response or the chat that is
	// kept there anyway; else it is lost with the process.
	Kept bool `json:",omitempty"`

	// Prediction is what the answer will probably be. It changes nothing but the time.
	Prediction string

	// AllowLoops leaves a turn alone that repeats itself without end. It is not looked at either
	// where Params has IgnoreEOS or MinTokens, or where Prompt is continued.
	AllowLoops bool
}

// Event is what a turn yields: Reasoning, Commentary, Answer, CallStart, CallArguments, CallEnd,
// ToolOutput, ToolEnd or Done.
type Event interface{ event() }

// Reasoning is a piece of the analysis channel.
type Reasoning struct{ Text string }

// Commentary is a piece of text for the user before a call (the commentary channel without a
// recipient).
type Commentary struct{ Text string }

// Answer is a piece of the final channel. Logprobs has one entry for each token if Params.Logprobs
// asks for them. A token whose text is held back (half a character, the start of a stop string)
// comes with the piece that has its text.
type Answer struct {
	Text     string
	Logprobs []TokenLogprob
	Tokens   []int32 `json:",omitempty"` // where Prompt is continued: the ids since the piece before
}

// TokenLogprob is one sampled token with its logprob and the most probable alternatives.
type TokenLogprob struct {
	ID      int32
	Token   string // its bytes as text, U+FFFD where they are not valid UTF-8
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

// CallArguments is a piece of the arguments of the call with this Index.
type CallArguments struct {
	Index int
	Text  string
}

// CallEnd ends a call; Arguments is the complete text.
type CallEnd struct {
	Index     int
	Arguments string
}

// Finish says why a turn ended: for a reason of the scheduler, or in calls.
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
	StopString string // the stop string, or the text of the stop token, that was met, if any
	Usage      Usage
	Last       Usage `json:"-"` // with tools: of the model's last turn alone
	Timing     sched.Timing
	Faults     harmony.Faults // places where the tokens were not legal Harmony
	Err        error          `json:"-"` // set with FinishError and FinishLoop
	// a call had begun and did not end: what came of its arguments cannot be used
	CallCut bool
}

// Cut tells whether the turn was ended in the middle of what it said.
func (d Done) Cut() bool { return d.Finish == FinishLength || d.CallCut }

// Usage counts tokens. Completion includes Reasoning, which is the tokens of analysis messages with
// their headers and end tokens.
type Usage struct {
	Prompt, Cached, Completion, Reasoning int
	// tokens of Request.Prediction that were tried and came, and that were tried and did not
	Accepted, Rejected int
}

// Plus is the sum of both.
func (u Usage) Plus(v Usage) Usage {
	return Usage{Prompt: u.Prompt + v.Prompt, Cached: u.Cached + v.Cached,
		Completion: u.Completion + v.Completion, Reasoning: u.Reasoning + v.Reasoning,
		Accepted: u.Accepted + v.Accepted, Rejected: u.Rejected + v.Rejected}
}

// PromptScored is what the model thinks of the prompt's tokens, before anything else of a turn. The
// first token has no logprob.
type PromptScored struct{ Logprobs []TokenLogprob }

func (PromptScored) event()  {}
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

// Result is everything that a turn has generated: for callers that do not stream, and for the
// history of the next turn.
type Result struct {
	Reasoning, Commentary, Answer string
	Calls                         []Call
	Messages                      []Message // to append to the history as they are
	Prompt                        []int32   `json:"-"` // tokens that were continued
	Tokens                        []int32   // sampled tokens, those after <|start|>assistant
	// functions whose arguments are only enforced to be JSON, and why
	Relaxed   []string
	Citations []Citation // sources that the answer names, of tools that this process ran
	Done      Done
}

// BusyError says that the queue is full; it wraps sched.ErrQueueFull. After is when to try again,
// in whole seconds, at least 1.
type BusyError struct{ After time.Duration }

func (e *BusyError) Error() string {
	return fmt.Sprintf("the queue of waiting requests is full; try again in %v", e.After)
}

func (e *BusyError) Unwrap() error { return sched.ErrQueueFull }

// RequestError refuses a request. Param is the name of a field of Request.
type RequestError struct{ Param, Msg string }

func (e *RequestError) Error() string { return fmt.Sprintf("%s: %s", e.Param, e.Msg) }

// User is what a person says.
func User(text string) Message { return Message{Message: harmony.Text(harmony.RoleUser, text)} }

// Developer is an instruction that outranks the user's.
func Developer(text string) Message {
	return Message{Message: harmony.DeveloperText(text)}
}

// AssistantAnswer is an earlier answer, in the final channel.
func AssistantAnswer(text string) Message {
	return Message{Message: harmony.Text(harmony.RoleAssistant, text).WithChannel("final")}
}

// AssistantReasoning is the thought before an answer or a call, in the analysis channel.
func AssistantReasoning(text string) Message {
	return Message{Message: harmony.Text(harmony.RoleAssistant, text).WithChannel("analysis")}
}

// AssistantCommentary is text for the user that comes before a call.
func AssistantCommentary(text string) Message {
	return Message{Message: harmony.Text(harmony.RoleAssistant, text).WithChannel("commentary")}
}

// FunctionCall is an earlier call of the function name with JSON arguments.
func FunctionCall(id, name, arguments string) Message {
	return Message{CallID: id, Message: harmony.Text(harmony.RoleAssistant, arguments).
		WithChannel("commentary").WithRecipient("functions." +
		name).WithContentType(harmony.ContentTypeJSON)}
}

// ServerFunction is what the model calls a tool of an MCP server. Others may have the same name.
func ServerFunction(server, tool string) string {
	name := strings.Map(func(r rune) rune {
		if r == '-' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
			return r
		}
		return '_'
	}, server+"_"+tool)
	return name[:min(len(name), longestName)]
}

const longestName = 60

// TextCall is an earlier call of a function whose arguments are a text.
func TextCall(id, name, input string) Message {
	m := FunctionCall(id, name, input)
	m.ContentType = ""
	return m
}

// FunctionResult is what the function name returned for the call id.
func FunctionResult(id, name, output string) Message {
	m := harmony.Text(harmony.RoleTool, output).WithChannel("commentary").WithRecipient("assistant")
	m.Name = "functions." + name
	return Message{CallID: id, Message: m}
}
