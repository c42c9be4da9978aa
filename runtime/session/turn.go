// The turn machine: tokens in, events out.
//
// A Turn pulls tokens from the scheduler's stream in the caller's goroutine, so it starts none of its own and a caller
// that stops reading stops nothing but itself. What must stay true: every turn ends in exactly one Done; no event ever
// holds text of a special token; what went before a fault is kept.

package session

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"slices"
	"strings"
	"sync"

	"github.com/ossrun/ossrun/harmony"
	"github.com/ossrun/ossrun/harmony/token"
	"github.com/ossrun/ossrun/runtime/grammar"
	"github.com/ossrun/ossrun/runtime/sample"
	"github.com/ossrun/ossrun/runtime/sched"
)

// Turn is one running turn. It is not safe for concurrent use.
type Turn struct {
	ctx    context.Context
	cancel context.CancelFunc
	model  *Model
	req    Request
	stream tokenStream
	parser *harmony.Parser
	stop   *sample.StopMatcher
	rules  grammar.TurnRules
	loop   grammar.Loop

	prompt   []int32
	pending  []Event
	tokens   []int32 // sampled so far
	bodyFrom int     // where in tokens the present message starts
	callOpen bool
	resumed  bool // the message at bodyFrom is the first after a prompt, so it has no <|start|>
	rescue   bool // the second try, with a forced final header, has been started
	lost     bool // between a fault and the next <|start|>: text is kept as answer
	lostText token.StreamDecoder

	waiting  []TokenLogprob // logprobs of answer tokens whose text is held back
	segments []segment
	usage    Usage
	result   Result
	ended    bool
}

// What the turn machine adds by itself: the beginning of a message, and the header of an answer after it.
var (
	assistantStart = sync.OnceValue(func() []int32 { return harmony.RenderTurn(nil, harmony.RoleAssistant) })
	finalHeader    = sync.OnceValue(func() []int32 {
		return append(token.Get().Encode([]int32{token.Channel}, harmony.ChannelFinal), token.Message)
	})
)

// tokenStream is what a turn needs of *sched.Stream.
type tokenStream interface {
	Next(ctx context.Context) (sched.Token, bool)
	Finish() sched.Finish
	Err() error
	Timing() sched.Timing
}

// Start renders the request, submits it and returns at once. Cancelling ctx ends the turn before the next step.
func (m *Model) Start(ctx context.Context, r Request) (*Turn, error) {
	prompt, err := m.prompt(r)
	if err != nil {
		return nil, err
	}
	t := &Turn{model: m, req: r, prompt: prompt, stop: sample.NewStopMatcher(r.Stop)}
	if t.rules, t.result.Relaxed, err = rules(r); err != nil {
		return nil, err
	}
	t.ctx, t.cancel = context.WithCancel(ctx)
	if err := t.submit(prompt, nil, r.MaxTokens); err != nil {
		t.cancel()
		return nil, err
	}
	t.parser = harmony.NewParser(harmony.RoleAssistant, false)
	t.usage.Prompt = len(prompt)
	return t, nil
}

func (t *Turn) submit(prompt, forced []int32, most int) error {
	allowed, err := mask(t.rules)
	if err != nil {
		return err
	}
	stream, err := t.model.submit(t.ctx, sched.Request{
		Prompt: prompt, Forced: forced, Params: t.req.Params, MaxTokens: most,
		Stop: []int32{token.Return, token.Call, token.EndOfText}, Mask: allowed,
	})
	if err != nil {
		return err
	}
	t.stream = stream
	return nil
}

// Next blocks for the next event; it returns false after Done was delivered.
func (t *Turn) Next() (Event, bool) {
	for len(t.pending) == 0 {
		if t.ended {
			return nil, false
		}
		tok, ok := t.stream.Next(t.ctx)
		if !ok {
			t.end()
			continue
		}
		t.accept(tok)
	}
	e := t.pending[0]
	t.pending = t.pending[1:]
	return e, true
}

// Result is what the turn has said so far; whole once Next has returned false.
func (t *Turn) Result() Result { return t.result }

// accept takes one token.
func (t *Turn) accept(tok sched.Token) {
	t.tokens = append(t.tokens, tok.ID)
	t.usage.Completion++
	defer t.endLoop(tok.ID)
	if t.lost {
		t.acceptLost(tok.ID)
		return
	}
	if t.parser.State() == harmony.InHeader && strayInHeader(tok.ID) {
		t.result.Faults++
		t.lost = true
		t.acceptLost(tok.ID)
		return
	}
	if t.parser.State() == harmony.InContent && strayInBody(tok.ID) {
		t.result.Faults++
		if tok.ID != token.Start {
			return // a special token has no text, and no place in a body
		}
		t.push(token.End) // the body's ender is missing
	}
	before := len(t.parser.Messages())
	if err := t.parser.Push(tok.ID); err != nil {
		t.result.Faults++
		t.lost = true
		t.acceptLost(tok.ID)
		return
	}
	if t.parser.State() == harmony.InContent && t.parser.Channel() == "analysis" && recipientOf(t.parser.Recipient()) == "" {
		t.usage.Reasoning++
	}
	if done := t.parser.Messages(); len(done) > before {
		t.finishMessage(done[len(done)-1])
		return
	}
	if t.parser.State() == harmony.InContent {
		t.content(tok)
	}
}

// endLoop ends a turn that repeats itself without end. What it has said so far is kept.
func (t *Turn) endLoop(id int32) {
	if t.loop.Push(id) && !t.ended {
		t.emitAnswer(t.stop.Flush())
		t.finish(FinishLength, nil)
	}
}

// strayInBody tells that id is a special token which does not end a message.
func strayInBody(id int32) bool {
	_, special := token.Get().Special(id)
	return special && id != token.End && id != token.Return && id != token.Call
}

// strayInHeader tells that id is a special token which has no place in a header.
func strayInHeader(id int32) bool {
	return strayInBody(id) && id != token.Channel && id != token.Constrain && id != token.Message
}

// recipientOf is who a message is for. A content type that lost its recipient stands in its place in what the parser
// reads ("commentary <|constrain|>json"); it is nobody's name.
func recipientOf(recipient string) string {
	if strings.Contains(recipient, "<|") {
		return ""
	}
	return recipient
}

// push gives the parser a token that the model left out.
func (t *Turn) push(id int32) {
	before := len(t.parser.Messages())
	if t.parser.Push(id) != nil {
		return
	}
	if done := t.parser.Messages(); len(done) > before {
		t.finishMessage(done[len(done)-1])
	}
	t.bodyFrom = len(t.tokens) - 1
}

// content turns the newest piece of the present message into an event.
func (t *Turn) content(tok sched.Token) {
	delta := t.parser.Delta()
	if to := recipientOf(t.parser.Recipient()); to != "" {
		if !t.callOpen {
			t.callOpen = true
			t.result.Calls = append(t.result.Calls, Call{ID: newCallID(), Name: strings.TrimPrefix(to, "functions."), Recipient: to})
			c := t.result.Calls[len(t.result.Calls)-1]
			t.pending = append(t.pending, CallStart{Index: len(t.result.Calls) - 1, ID: c.ID, Name: c.Name, Recipient: to})
		}
		if delta != "" {
			t.result.Calls[len(t.result.Calls)-1].Arguments += delta
			t.pending = append(t.pending, CallArguments{Index: len(t.result.Calls) - 1, Text: delta})
		}
		return
	}
	switch t.parser.Channel() {
	case "analysis":
		if delta != "" {
			t.result.Reasoning += delta
			t.pending = append(t.pending, Reasoning{delta})
		}
	case "commentary": // shown to the user like an answer, so stop strings end it too
		text, met := t.stop.Push(delta)
		t.emitCommentary(text)
		t.stopAt(met)
	default: // final, and refusals that come without a channel
		if tok.ID != token.Message && t.req.Params.Logprobs >= 0 {
			t.waiting = append(t.waiting, t.logprob(tok))
		}
		t.answer(delta)
	}
}

// answer passes text of the final channel through the stop strings.
func (t *Turn) answer(delta string) {
	text, met := t.stop.Push(delta)
	t.emitAnswer(text)
	t.stopAt(met)
}

// stopAt ends the turn where a stop string was met.
func (t *Turn) stopAt(met string) {
	if met != "" {
		t.result.Done.StopString = met
		t.finish(FinishStop, nil)
	}
}

func (t *Turn) emitCommentary(text string) {
	if text == "" {
		return
	}
	t.result.Commentary += text
	t.pending = append(t.pending, Commentary{text})
}

func (t *Turn) emitAnswer(text string) {
	if text == "" {
		return
	}
	t.result.Answer += text
	t.pending = append(t.pending, Answer{Text: text, Logprobs: t.waiting})
	t.waiting = nil
}

// finishMessage closes the message that the last token ended.
func (t *Turn) finishMessage(m harmony.Message) {
	m.Recipient = recipientOf(m.Recipient)
	body := t.tokens[t.bodyFrom:]
	if t.bodyFrom > 0 && !t.resumed { // the second and later messages carry their own <|start|>assistant
		start := assistantStart()
		if len(body) < len(start) || !slices.Equal(body[:len(start)], start) {
			t.result.Faults++ // somebody else's name
			start = nil
		}
		body = body[len(start):]
	}
	t.bodyFrom, t.resumed = len(t.tokens), false
	reasoning := m.Channel == "analysis" && m.Recipient == ""
	if reasoning {
		t.usage.Reasoning += 3 // <|channel|>analysis and the ender; <|message|> was counted with the content
	}
	kept := slices.Clone(body)
	if n := len(kept) - 1; n >= 0 && kept[n] == token.Return {
		kept[n] = token.End
	}
	t.segments = append(t.segments, segment{reasoning: reasoning, tokens: kept})
	if m.Recipient == "" {
		switch m.Channel {
		case "analysis":
		case "commentary":
			t.emitCommentary(t.stop.Flush())
		default:
			t.emitAnswer(t.stop.Flush())
		}
		t.result.Messages = append(t.result.Messages, Message{Message: m})
		return
	}
	if !t.callOpen { // a call without arguments
		t.result.Calls = append(t.result.Calls, Call{ID: newCallID(), Name: strings.TrimPrefix(m.Recipient, "functions."), Recipient: m.Recipient})
		c := t.result.Calls[len(t.result.Calls)-1]
		t.pending = append(t.pending, CallStart{Index: len(t.result.Calls) - 1, ID: c.ID, Name: c.Name, Recipient: c.Recipient})
	}
	t.callOpen = false
	n := len(t.result.Calls) - 1
	t.result.Calls[n].Arguments = m.Text()
	t.pending = append(t.pending, CallEnd{Index: n, Arguments: m.Text()})
	t.result.Messages = append(t.result.Messages, Message{Message: m, CallID: t.result.Calls[n].ID})
}

// acceptLost keeps the text of tokens that are not legal Harmony as part of the answer, until <|start|> begins a
// message again.
func (t *Turn) acceptLost(id int32) {
	if id == token.Start {
		t.lost = false
		t.parser = harmony.NewParser("", false)
		t.bodyFrom = len(t.tokens) - 1
		if t.parser.Push(id) == nil {
			return
		}
	}
	if _, special := token.Get().Special(id); special {
		return
	}
	t.answer(t.lostText.Push(id))
}

// end is called when the stream has no more tokens.
func (t *Turn) end() {
	switch t.stream.Finish() {
	case sched.FinishError:
		t.finish(FinishError, t.stream.Err())
		return
	case sched.FinishCancelled:
		t.finish(FinishCancelled, t.ctx.Err())
		return
	}
	length := t.stream.Finish() == sched.FinishLength
	if !t.lost {
		before := len(t.parser.Messages())
		if err := t.parser.Finish(); err != nil {
			t.result.Faults++
		} else if done := t.parser.Messages(); len(done) > before && len(t.tokens) > t.bodyFrom {
			t.finishMessage(done[len(done)-1])
		}
	}
	t.emitAnswer(t.stop.Flush())
	switch {
	case length:
		t.finish(FinishLength, nil)
	case len(t.result.Calls) > 0:
		t.finish(FinishToolCalls, nil)
	case t.result.Answer == "" && !t.rescue && t.startRescue():
	default:
		t.finish(FinishStop, nil)
	}
}

// startRescue goes on once with a forced final header after a turn that ended without an answer or a call.
func (t *Turn) startRescue() bool {
	t.rescue = true
	t.rules = grammar.TurnRules{Final: t.rules.Final, MaxReasoning: -1}
	most := 0
	if t.req.MaxTokens > 0 {
		if most = t.req.MaxTokens - t.usage.Completion; most <= len(finalHeader()) {
			return false
		}
	}
	prompt := append([]int32(nil), t.prompt...)
	for _, s := range t.segments {
		prompt = harmony.RenderTurn(append(prompt, s.tokens...), harmony.RoleAssistant)
	}
	if t.submit(prompt, finalHeader(), most) != nil {
		return false
	}
	t.lost, t.callOpen = false, false
	t.parser = harmony.NewParser(harmony.RoleAssistant, false)
	t.bodyFrom, t.resumed = len(t.tokens), true
	return true
}

// finish emits Done and remembers what was sampled.
func (t *Turn) finish(f Finish, err error) {
	if t.ended {
		return
	}
	t.ended = true
	t.usage.Reasoning = min(t.usage.Reasoning, t.usage.Completion)
	timing := t.stream.Timing()
	t.cancel() // ends the request where the turn ends before it: at a stop string
	t.usage.Cached = timing.Cached
	t.result.Tokens = t.tokens
	if f == FinishError || f == FinishCancelled || f == FinishLength || t.result.Done.StopString != "" {
		t.keepPartial()
	}
	t.result.Done = Done{Finish: f, StopString: t.result.Done.StopString, Usage: t.usage, Timing: timing, Err: err}
	t.pending = append(t.pending, t.result.Done)
	if t.result.Faults == 0 && (f == FinishStop && t.result.Done.StopString == "" || f == FinishToolCalls) {
		t.remember()
	}
	t.model.finished(t)
}

// keepPartial puts an answer that was cut off into the history, so that the conversation can go on.
func (t *Turn) keepPartial() {
	for _, m := range t.result.Messages {
		if isFinal(m) {
			return
		}
	}
	if t.result.Answer != "" {
		t.result.Messages = append(t.result.Messages, AssistantAnswer(t.result.Answer))
	}
}

// remember keeps the sampled tokens under the last call's id, or under the answer's text.
func (t *Turn) remember() {
	if len(t.segments) == 0 || len(t.result.Messages) == 0 {
		return
	}
	last := t.result.Messages[len(t.result.Messages)-1]
	r := &remembered{segments: t.segments}
	switch {
	case last.CallID != "":
		r.key, r.arguments = callKey(last.CallID), last.Text()
	case isFinal(last):
		r.key = answerKey(last.Text())
	default:
		return
	}
	t.model.memory.put(r)
}

func (t *Turn) logprob(tok sched.Token) TokenLogprob {
	one := func(id int32, lp float32) TokenLogprob {
		b := token.Get().TokenBytes(id)
		return TokenLogprob{Token: strings.ToValidUTF8(string(b), "\uFFFD"), Bytes: b, Logprob: lp}
	}
	l := one(tok.ID, tok.Logprob)
	for _, c := range tok.Top {
		l.Top = append(l.Top, one(c.ID, c.Logprob))
	}
	return l
}

func newCallID() string {
	var b [12]byte
	_, _ = rand.Read(b[:])
	return "call_" + hex.EncodeToString(b[:])
}
