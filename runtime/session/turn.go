// The turn: tokens in, events out.
//
// A turn reads tokens from the scheduler's stream in the caller's goroutine. It starts no goroutine
// of its own, and a caller that stops reading delays no other. What must stay true: every turn ends
// in exactly one Done; no event holds the text of a special token; text that was generated before a
// fault is kept.
//
// A turn without a conversation continues a prompt of tokens as text: nothing is rendered, only
// Request.Final or Request.Allowed is enforced, and the tokens are not parsed as Harmony.

package session

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/ossrun/ossrun/harmony"
	"github.com/ossrun/ossrun/harmony/token"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/grammar"
	"github.com/ossrun/ossrun/runtime/sample"
	"github.com/ossrun/ossrun/runtime/sched"
)

type turn struct {
	ctx          context.Context
	cancel       context.CancelFunc
	cancelStream context.CancelFunc // ends the stream, and nothing else
	model        *Model
	req          Request
	stream       TokenStream
	reader       *harmony.Reader
	stop         *sample.StopMatcher
	rules        grammar.TurnRules
	loop         grammar.Loop

	prompt      []int32
	lastPrompt  []int32 // the prompt of the latest attempt
	pending     []Event
	tokens      []int32                 // sampled so far
	resumable   atomic.Pointer[[]int32] // tokens for Sampled; nil: the turn cannot be resumed
	readFrom    int                     // where in tokens the reader started
	callOpen    bool
	cut         bool                // the tokens have ended: a message still open is incomplete
	rescue      bool                // the second attempt, with a forced final header, was started
	firstTiming *sched.Timing       // of the first attempt, if this is the second
	decoder     token.StreamDecoder // for a text without a conversation

	heldLogprobs []TokenLogprob // logprobs of answer tokens whose text is held back
	emitted      int            // number of tokens emitted with text
	segments     []segment
	usage        Usage
	result       Result
	texts        struct{ reasoning, commentary, answer, arguments growingText } // of result
	done         bool
}

// growingText is a text that grows without copying it for each piece.
type growingText struct{ strings.Builder }

func (g *growingText) add(piece string) string {
	g.WriteString(piece)
	return g.String()
}

// Tokens that the turn adds: the start of an assistant message, and the header of an answer that
// follows it.
var (
	assistantStart = sync.OnceValue(func() []int32 {
		return harmony.RenderTurn(nil, harmony.RoleAssistant)
	})
	finalHeader = sync.OnceValue(func() []int32 {
		return append(token.Get().Encode([]int32{token.Channel}, harmony.ChannelFinal),
			token.Message)
	})
)

// predicted returns the tokens of a predicted answer, with the header that identifies it. One
// longer than the context is useless, so its encoding stops there.
func (t *turn) predicted() []int32 {
	if t.req.Prediction == "" || t.req.Prompt != nil {
		return nil
	}
	ids, ok := token.Get().EncodeWhile(slices.Concat(assistantStart(), finalHeader()),
		t.req.Prediction, func(ids int) bool {
			return ids <= t.model.context && t.ctx.Err() == nil
		})
	if !ok {
		return nil
	}
	return ids
}

// TokenStream is the tokens of one sequence, read by one goroutine: a *sched.Stream, or another
// with the same methods.
type TokenStream interface {
	Next(ctx context.Context) (sched.Token, bool)
	Finish() Finish
	Err() error
	Timing() sched.Timing
	Prompt() []engine.SampledToken
}

// Start renders the request, submits it and returns without waiting for tokens. Cancelling ctx ends
// the turn before the next step.
func (m *Model) Start(ctx context.Context, r Request) (Turn, error) {
	t := &turn{model: m, req: r, prompt: r.Prompt, stop: sample.NewStopMatcher(r.Stop),
		reader: harmony.NewReader(harmony.RoleAssistant)}
	var err error
	if r.Prompt == nil {
		if t.prompt, t.rules, t.result.Relaxed, err = m.prepare(ctx, r); err != nil {
			return nil, err
		}
	}
	t.usage.Prompt, t.result.Prompt = len(t.prompt), t.prompt
	t.ctx, t.cancel = context.WithCancel(ctx)
	if r.Prompt != nil {
		r.Sampled = nil
	}
	if r.PromptOnly {
		r.MaxTokens = 1 // it is discarded
	}
	reserved := 0
	if r.Budget != nil && len(t.prompt) < m.context { // else submit refuses the prompt
		open := r.MaxTokens == 0
		if open {
			r.MaxTokens = m.context - len(t.prompt)
		}
		if r.MaxTokens, err = r.Budget.Reserve(len(t.prompt), r.MaxTokens, open); err == nil {
			reserved, t.req.MaxTokens = len(t.prompt)+r.MaxTokens, r.MaxTokens
		}
	}
	if err == nil {
		err = t.submit(t.prompt, r.MaxTokens, r.Sampled)
	}
	if err != nil {
		t.cancel()
		if reserved > 0 {
			r.Budget.Return(reserved)
		}
		return nil, err
	}
	for _, id := range r.Sampled {
		if !t.done {
			t.accept(sched.Token{SampledToken: engine.SampledToken{ID: id}})
		}
	}
	if reserved == 0 {
		return t, nil
	}
	return OnDone(t, func(d Done) {
		r.Budget.Return(reserved - d.Usage.Prompt - d.Usage.Completion)
	}), nil
}

// submit continues a prompt and the tokens that were already sampled after it.
func (t *turn) submit(prompt []int32, maxTokens int, sampled []int32) error {
	constraint, err := t.constraint()
	if err != nil {
		return err
	}
	t.lastPrompt = prompt
	if len(sampled) > 0 && t.resume(constraint, &prompt, &maxTokens, sampled) {
		return nil
	}
	ctx, cancel := context.WithCancel(t.ctx)
	stream, err := t.model.submit(ctx, sched.TokenRequest{
		Prompt: prompt, Params: t.req.Params, MaxTokens: maxTokens, Constraint: constraint,
		Stop: t.stopTokens(), ScorePrompt: t.req.ScorePrompt, PromptTop: t.req.PromptTop,
		Prediction: t.predicted(), Salt: t.req.Salt, Share: t.req.Share,
		InMemory: t.req.InMemory, Pages: t.req.Pages, Progress: t.req.Progress,
	})
	if err != nil {
		cancel()
		return err
	}
	t.stream, t.cancelStream = stream, cancel
	return nil
}

// Next blocks for the next event; it returns false after Done was delivered.
func (t *turn) Next() (Event, bool) {
	for len(t.pending) == 0 {
		if t.done {
			return nil, false
		}
		tok, ok := t.stream.Next(t.ctx)
		if ok && tok.Prefilled > 0 {
			now := t.stream.Timing()
			t.pending = append(t.pending, Prefill{Done: tok.Prefilled, Total: now.Prompt,
				Cached: now.Cached, Took: now.Prefill})
			continue
		}
		t.scorePrompt()
		if !ok {
			t.end()
			continue
		}
		if t.req.Prompt != nil || t.req.PromptOnly {
			t.acceptText(tok)
		} else {
			t.accept(tok)
		}
		if t.req.Counts && len(t.pending) > 0 && !t.done {
			now, usage := t.stream.Timing(), t.usage
			usage.Cached = now.Cached
			t.pending = slices.Insert(t.pending, 0, Event(Counts{usage, now}))
		}
	}
	e := t.pending[0]
	t.pending = t.pending[1:]
	return e, true
}

// scorePrompt emits the prompt's logprobs, once.
func (t *turn) scorePrompt() {
	if !t.req.ScorePrompt {
		return
	}
	t.req.ScorePrompt = false
	list := make([]TokenLogprob, len(t.prompt))
	for i, s := range t.stream.Prompt() {
		list[i] = t.logprob(sched.Token{SampledToken: s})
	}
	if len(list) > 0 {
		first := token.Get().TokenBytes(t.prompt[0])
		list[0] = TokenLogprob{Token: token.Text(first), Bytes: first}
	}
	t.pending = append(t.pending, PromptScored{list})
}

// Result is the result so far. It is complete once Next has returned Done.
func (t *turn) Result() Result { return t.result }

func (t *turn) accept(tok sched.Token) {
	if slices.Contains(t.model.ends, tok.ID) && !slices.Contains(t.req.StopTokens, tok.ID) {
		tok.ID = token.Return
	}
	t.tokens = append(t.tokens, tok.ID)
	if tokens := t.tokens; !t.rescue && !t.rules.Closing {
		t.resumable.Store(&tokens)
	}
	t.usage.Completion++
	if t.stopToken(tok.ID) {
		return
	}
	n := len(t.reader.Messages())
	t.reader.Push(tok.ID)
	t.finishMessages(n)
	if t.reader.State() == harmony.InContent {
		m := t.reader.Current()
		if m.Channel == harmony.ChannelAnalysis && !m.Calls() {
			t.usage.Reasoning++
		}
		if !m.Calls() && !isAside(m) && tok.ID != token.Message && t.req.Params.Logprobs >= 0 {
			t.heldLogprobs = append(t.heldLogprobs, t.logprob(tok))
		}
		t.emitText(m, t.reader.Delta())
	}
	p := t.req.Params
	watched := !t.req.AllowLoops && !p.IgnoreEOS && p.MinTokens == 0 && !t.rules.Closing
	if watched && t.loop.Push(tok.ID) && !t.done {
		t.endLoop()
	}
}

func (t *turn) stopTokens() []int32 {
	return slices.Concat([]int32{token.Return, token.Call, token.EndOfText}, t.model.ends,
		t.req.StopTokens)
}

// stopToken ends the turn if id is one of the caller's stop tokens.
func (t *turn) stopToken(id int32) bool {
	if !slices.Contains(t.req.StopTokens, id) {
		return false
	}
	t.emitAnswer(t.stop.Flush())
	name, special := token.Get().Special(id)
	if !special {
		name = token.Text(token.Get().TokenBytes(id))
	}
	t.stopAt(name)
	return true
}

// endLoop handles a turn that repeats itself. It forces the answer, or ends the turn if the answer
// itself repeats or was forced already; an answer with a form is first completed. The repeated text
// stays in the result, but not in the prompt of the forced answer.
func (t *turn) endLoop() {
	t.cancelStream()
	if t.startClosing() {
		return
	}
	segments, messages := len(t.segments), len(t.reader.Messages())
	t.cut = true
	t.reader.Finish()
	t.finishMessages(messages)
	if t.done { // the last text had a stop string
		return
	}
	t.segments = t.segments[:segments]
	t.loop = grammar.Loop{}
	if t.result.Answer == "" && !t.rescue && t.startRescue() {
		return
	}
	t.emitAnswer(t.stop.Flush())
	if t.rules.Closing { // no token is left for the form's end
		t.finish(FinishLength, nil)
		return
	}
	t.finish(FinishLoop, ErrLoop)
}

// isAside reports whether a message without a recipient is not the answer, which is in the final
// channel or, for refusals, in none.
func isAside(m harmony.Message) bool {
	return m.Channel == harmony.ChannelAnalysis || m.Channel == harmony.ChannelCommentary
}

// emitText turns new text of the message m into an event. The first text of a call starts the call,
// even if the text is empty.
func (t *turn) emitText(m harmony.Message, text string) {
	switch {
	case m.Calls():
		if !t.callOpen {
			t.callOpen = true
			t.texts.arguments = growingText{}
			c := Call{ID: t.callID(), Name: strings.TrimPrefix(m.Recipient, "functions."),
				Recipient: m.Recipient}
			t.result.Calls = append(t.result.Calls, c)
			t.pending = append(t.pending, CallStart{Index: len(t.result.Calls) - 1, ID: c.ID,
				Name: c.Name, Recipient: c.Recipient})
		}
		if n := len(t.result.Calls) - 1; text != "" {
			t.result.Calls[n].Arguments = t.texts.arguments.add(text)
			t.pending = append(t.pending, CallArguments{Index: n, Text: text})
		}
	case m.Channel == harmony.ChannelAnalysis:
		if text != "" {
			t.result.Reasoning = t.texts.reasoning.add(text)
			t.pending = append(t.pending, Reasoning{text})
		}
	// shown to the user like an answer, so stop strings end it too
	case m.Channel == harmony.ChannelCommentary:
		visible, match := t.stop.Push(text)
		t.emitCommentary(visible)
		t.stopAt(match)
	default:
		visible, match := t.stop.Push(text)
		t.emitAnswer(visible)
		t.stopAt(match)
	}
}

func (t *turn) stopAt(match string) {
	if match != "" {
		t.result.Done.StopString = match
		t.finish(FinishStop, nil)
	}
}

func (t *turn) emitCommentary(text string) {
	if text == "" {
		return
	}
	t.result.Commentary = t.texts.commentary.add(text)
	t.pending = append(t.pending, Commentary{text})
}

func (t *turn) emitAnswer(text string) {
	if text == "" {
		return
	}
	t.result.Answer = t.texts.answer.add(text)
	a := Answer{Text: text, Logprobs: t.heldLogprobs}
	if t.req.Prompt != nil {
		a.Tokens, t.emitted = t.tokens[t.emitted:], len(t.tokens)
	}
	t.pending = append(t.pending, a)
	t.heldLogprobs = nil
}

// constraint returns the rules for the tokens; nil: none.
func (t *turn) constraint() (grammar.Constraint, error) {
	switch r := t.req; {
	case r.Prompt == nil:
		c, err := grammar.NewTurn(t.rules)
		if err != nil {
			return nil, &RequestError{"functions", err.Error()}
		}
		return c, nil
	case r.Final != nil && r.Allowed != nil:
		return nil, &RequestError{"allowed",
			"a form and a list of allowed tokens cannot both be held"}
	case r.Final != nil:
		return grammar.NewText(r.Final), nil
	case r.Allowed != nil:
		return grammar.NewAllowed(r.Allowed), nil
	}
	return nil, nil
}

func (t *turn) acceptText(tok sched.Token) {
	if t.req.PromptOnly {
		return
	}
	t.tokens = append(t.tokens, tok.ID)
	t.usage.Completion++
	if t.stopToken(tok.ID) {
		return
	}
	text := ""
	switch name, special := token.Get().Special(tok.ID); {
	case tok.ID < token.StartOfText:
		text = t.decoder.Push(tok.ID)
	case t.req.KeepSpecial && special && !slices.Contains(t.stopTokens(), tok.ID):
		text = t.decoder.Flush() + name
	default:
		return
	}
	if t.req.Params.Logprobs >= 0 {
		t.heldLogprobs = append(t.heldLogprobs, t.logprob(tok))
	}
	visible, match := t.stop.Push(text)
	t.emitAnswer(visible)
	t.stopAt(match)
}

// endText ends the turn when the stream has no more tokens.
func (t *turn) endText() {
	visible, match := t.stop.Push(t.decoder.Flush())
	t.emitAnswer(visible)
	if t.stopAt(match); t.done {
		return
	}
	t.emitAnswer(t.stop.Flush())
	why := t.stream.Finish() // stop or length: end() has handled the others
	if t.req.PromptOnly {
		why = FinishLength
	}
	t.finish(why, nil)
}
