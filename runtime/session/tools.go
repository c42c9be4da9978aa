// Tools that this process runs for the model: the loop from a call to its result to the next turn.
//
// The loop wraps a Runner, so that a tool runs in the process that requested it: the chat's own,
// even if another process runs the model. To its reader it is one Turn. What must stay true: a call
// is run only when it is complete; every call that was run has its result in the history, a failed
// one too; no call is run before it is approved; the turn ends in exactly one Done, with the usage
// of all its model turns; when Done is delivered no tool is running.

package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ossrun/ossrun/harmony"
	"github.com/ossrun/ossrun/runtime/grammar"
)

// Tool is called by the model and run by this process. It belongs to one conversation and keeps
// that conversation's state (the pages of a browser, an interpreter). It gets one call at a time.
type Tool interface {
	// Offer adds the tool to a request: a built-in namespace or functions. It is called for each
	// step of a turn.
	Offer(r *Request)
	// Runs tells whether the tool runs calls with this full recipient ("browser.open", "python",
	// "functions.NAME").
	Runs(recipient string) bool
	// Run runs a call and streams its output; output may be called from any goroutine until Run
	// returns. The model sees the error and may try again. When ctx ends, Run returns soon.
	Run(ctx context.Context, c Call, output func(text string)) (ToolResult, error)
	Close() error
}

type ToolResult struct {
	Text  string   // read by the model
	Title string   // one line for display; "": Text is enough
	Files []string // files written for the user, such as pictures
	// Sources are the pages that a browser has found, or the one that it shows
	Sources []Source
}

type Source struct {
	URL, Title, Text string
}

// Resolver is a Tool whose calls are run by servers. Approval is about a server's tool.
type Resolver interface {
	// Resolve adds the server's label and its own name of the tool to a call that a server runs;
	// Run then runs that tool or fails. The model sees the error.
	Resolve(c Call) (Call, error)
}

// Citer is a Tool whose results can be cited, by the marks that it taught the model.
type Citer interface {
	// Citations finds the marks in an answer.
	Citations(answer string) []Citation
}

// Citation is a place in the answer that names its source. Start and End count characters of Done's
// answer (Unicode code points), as OpenAI's annotations do, and enclose the mark.
type Citation struct {
	Start int    `json:"start"`
	End   int    `json:"end"`
	URL   string `json:"url"`
	Title string `json:"title"`
	Text  string `json:"-"` // the cited line; "": unknown
}

// ErrNeedsApproval is returned by ToolOptions.Approve for a call that the user has not allowed yet.
// The turn ends with FinishToolCalls and the call in its result.
var ErrNeedsApproval = errors.New("the call needs the user's approval")

// ToolOptions bound a loop, which at a limit makes the model answer without tools.
type ToolOptions struct {
	// Approve is asked before each call and may wait for a person. The model sees its error instead
	// of a result; ErrNeedsApproval ends the turn. nil: every call is allowed.
	Approve func(ctx context.Context, c Call) error
	Calls   int           // calls of one turn; 0: 100
	Time    time.Duration // of one call, after its approval; 0: 5 minutes
	Result  int           // characters of a result that the model reads; 0: DefaultResult
}

const DefaultResult = 60_000

// ToolOutput is output of the running call with this Index.
type ToolOutput struct {
	Index int
	Text  string
}

// ToolEnd ends a call that this process has run. Err is the error that the model saw, nil for a
// success.
type ToolEnd struct {
	Index  int
	Result ToolResult
	Took   time.Duration
	Err    error
}

func (ToolOutput) event() {}
func (ToolEnd) event()    {}

// StartWithTools starts a turn that runs the calls of tools until the model answers, calls a
// function of the caller, or reaches a limit. Without tools it is r.Start.
func StartWithTools(ctx context.Context, r Runner, req Request, tools []Tool,
	o ToolOptions) (Turn, error) {
	if len(tools) == 0 {
		return r.Start(ctx, req)
	}
	ctx, cancel := context.WithCancel(ctx)
	turn, err := r.Start(ctx, WithTools(req, tools))
	if err != nil {
		cancel()
		return nil, err
	}
	o = ToolOptions{o.Approve, cmp.Or(o.Calls, 100), cmp.Or(o.Time, 5*time.Minute),
		cmp.Or(o.Result, DefaultResult)}
	return &toolLoop{ctx: ctx, cancel: cancel, runner: r, req: req, tools: tools, o: o,
		turn: turn}, nil
}

type toolLoop struct {
	ctx    context.Context
	cancel context.CancelFunc
	runner Runner
	req    Request
	tools  []Tool
	o      ToolOptions

	turn      Turn   // of the model; nil while calls are run
	calls     []Call // of this turn that are still to be run
	running   chan Event
	total     Result
	lastUsage Usage // of the model's latest turn
	done      bool
}

func (l *toolLoop) Next() (Event, bool) {
	for !l.done {
		if l.running != nil {
			e := <-l.running
			if end, ok := e.(ToolEnd); ok {
				l.running = nil
				if l.addResult(end) {
					return l.end(Done{Finish: FinishToolCalls}), true
				}
			}
			return e, true
		}
		if len(l.calls) > 0 {
			l.run(len(l.total.Calls)-len(l.calls), l.calls[0])
			l.calls = l.calls[1:]
			continue
		}
		if l.turn == nil {
			if err := l.startNext(); err != nil {
				return l.end(Done{Finish: FinishError, Err: err}), true
			}
			continue
		}
		e, ok := l.turn.Next()
		if !ok {
			return l.end(Done{Finish: FinishError, Err: errors.New("the turn ended early")}), true
		}
		if d, ok := e.(Done); ok {
			if e = l.endModelTurn(d); e == nil {
				continue
			}
		}
		return l.renumber(e), true
	}
	return nil, false
}

// endModelTurn handles the end of a model turn. It returns nil if its calls are to be run, else the
// loop's own end.
func (l *toolLoop) endModelTurn(d Done) Event {
	res := l.turn.Result()
	l.turn = nil
	l.total, l.lastUsage = joinResults(l.total, res), d.Usage
	if d.Finish != FinishToolCalls {
		return l.end(d)
	}
	for _, c := range res.Calls {
		if l.tool(c) == nil {
			return l.end(d) // a function of the caller
		}
	}
	l.calls = res.Calls
	return nil
}

// renumber numbers an event's call within the whole loop, and counts the turns before it.
func (l *toolLoop) renumber(e Event) Event {
	offset := len(l.total.Calls)
	switch e := e.(type) {
	case Counts:
		e.Usage = l.total.Done.Usage.Plus(e.Usage)
		return e
	case CallStart:
		e.Index += offset
		return e
	case CallArguments:
		e.Index += offset
		return e
	case CallEnd:
		e.Index += offset
		return e
	}
	return e
}

func (l *toolLoop) tool(c Call) Tool {
	for _, t := range l.tools {
		if t.Runs(c.Recipient) {
			return t
		}
	}
	return nil
}

// run starts a call; its events arrive through l.running, a ToolEnd last.
func (l *toolLoop) run(index int, c Call) {
	events, tool := make(chan Event, 64), l.tool(c)
	l.running = events
	go func() {
		c, err := l.approve(tool, c)
		if err != nil {
			events <- ToolEnd{Index: index, Err: err}
			return
		}
		ctx, cancel := context.WithTimeout(l.ctx, l.o.Time)
		defer cancel()
		began := time.Now()
		result, err := tool.Run(ctx, c, func(text string) {
			select {
			case events <- ToolOutput{index, text}:
			case <-ctx.Done(): // the reader may have stopped
			}
		})
		if err != nil && ctx.Err() == context.DeadlineExceeded && l.ctx.Err() == nil {
			err = fmt.Errorf("stopped after %v", l.o.Time)
		}
		events <- ToolEnd{index, result, time.Since(began), err}
	}()
}

// approve returns the call to run, or the error that the model sees instead.
func (l *toolLoop) approve(tool Tool, c Call) (_ Call, err error) {
	if r, ok := tool.(Resolver); ok {
		c, err = r.Resolve(c)
	}
	if l.o.Approve != nil && err == nil {
		err = l.o.Approve(l.ctx, c)
	}
	return c, err
}

// addResult adds a call's result to the history; true if the turn ends here.
func (l *toolLoop) addResult(e ToolEnd) (endsTurn bool) {
	if errors.Is(e.Err, ErrNeedsApproval) {
		return true
	}
	text := e.ModelText(l.o.Result)
	l.total.Messages = append(l.total.Messages, l.total.toolMessage(e.Index, text))
	return false
}

// ModelText is the result as the model reads it, up to so many characters.
func (e ToolEnd) ModelText(limit int) string {
	text := e.Result.Text
	if e.Err != nil {
		text = strings.TrimSpace(text + "\nError: " + e.Err.Error())
	}
	if cut := []rune(text); len(cut) > limit {
		text = fmt.Sprintf("%s\n[%d of %d characters are shown]", string(cut[:limit]), limit,
			len(cut))
	}
	return text
}

// toolMessage is the result of the call with this index, in the channel of the call.
func (r *Result) toolMessage(index int, text string) Message {
	c := r.Calls[index]
	m := harmony.Text(harmony.RoleTool, text).WithChannel(harmony.ChannelCommentary).
		WithRecipient("assistant")
	m.Name = c.Recipient
	for _, call := range r.Messages {
		if call.CallID == c.ID {
			m.Channel = call.Channel
		}
	}
	return Message{CallID: c.ID, Message: m}
}

// startNext starts the model's next turn on the history with the results.
func (l *toolLoop) startNext() error {
	if l.ctx.Err() != nil {
		return l.ctx.Err()
	}
	req := l.req
	req.Messages = append(req.Messages[:len(req.Messages):len(req.Messages)], l.total.Messages...)
	if req.ToolChoice != grammar.None { // the required call has been made
		req.ToolChoice, req.ToolName = grammar.Auto, ""
	}
	if len(l.total.Calls) >= l.o.Calls {
		req.ToolChoice = grammar.None
	}
	if req.MaxTokens > 0 {
		if req.MaxTokens -= l.total.Done.Usage.Completion; req.MaxTokens <= 0 {
			l.turn = FinishedWith(Done{Finish: FinishLength})
			return nil
		}
	}
	turn, err := l.runner.Start(l.ctx, WithTools(req, l.tools))
	if err == nil {
		l.turn = turn
	}
	return err
}

// WithTools adds the tools to a request; they may offer more after a call.
func WithTools(req Request, tools []Tool) Request {
	for _, t := range tools {
		t.Offer(&req)
	}
	return req
}

// end makes the loop's Done. Calls that were not run are ended by their caller.
func (l *toolLoop) end(d Done) Event {
	l.done = true
	if l.ctx.Err() != nil && d.Finish == FinishError {
		d.Finish, d.Err = FinishCancelled, l.ctx.Err()
	}
	l.cancel()
	for _, t := range l.tools {
		if c, ok := t.(Citer); ok {
			l.total.Citations = append(l.total.Citations, c.Citations(l.total.Answer)...)
		}
	}
	d.Usage, d.Last = l.total.Done.Usage, l.lastUsage
	d.Timing, d.Faults = l.total.Done.Timing, l.total.Done.Faults
	l.total.Done = d
	return d
}

// Result joins the results of all model turns, with the tools' results in its messages.
func (l *toolLoop) Result() Result {
	if l.turn != nil {
		return joinResults(l.total, l.turn.Result())
	}
	return l.total
}

// Sampled is nil: no request contains the results of tools since.
func (l *toolLoop) Sampled() []int32 { return nil }

func joinResults(a, b Result) Result {
	a.Reasoning += b.Reasoning
	a.Commentary += b.Commentary
	a.Answer += b.Answer
	a.Calls = append(a.Calls[:len(a.Calls):len(a.Calls)], b.Calls...)
	a.Messages = append(a.Messages[:len(a.Messages):len(a.Messages)], b.Messages...)
	a.Tokens = append(a.Tokens[:len(a.Tokens):len(a.Tokens)], b.Tokens...)
	a.Relaxed = b.Relaxed
	first := a.Done
	a.Done = b.Done
	a.Done.Faults = first.Faults.Plus(b.Done.Faults)
	a.Done.Usage = first.Usage.Plus(b.Done.Usage)
	if first.Timing.Generated > 0 { // the user saw the first text in the first turn
		t := first.Timing
		t.Decode += b.Done.Timing.Decode
		t.Generated += b.Done.Timing.Generated
		a.Done.Timing = t
	}
	return a
}
