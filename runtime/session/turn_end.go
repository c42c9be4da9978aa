// The end of a message and of a turn: calls, a second attempt at an answer, the result, and storing
// the tokens. Also resuming a turn that an earlier process began.
//
// What must stay true: a resumed turn's tokens make the same events and ids again. The tokens
// sampled next follow the same rules, and are those of an uninterrupted turn if the sampling
// parameters depend on seed and position only.

package session

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"github.com/ossrun/ossrun/harmony"
	"github.com/ossrun/ossrun/harmony/token"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/grammar"
	"github.com/ossrun/ossrun/runtime/sched"
)

// finishMessages closes the messages that the last token ended: those from index before on.
func (t *turn) finishMessages(first int) {
	for _, m := range t.reader.Messages()[first:] {
		if !t.done {
			t.emitText(m.Message, t.reader.Rest())
		}
		if !t.done { // the last text may have had a stop string
			t.finishMessage(m)
		}
	}
}

func (t *turn) finishMessage(m harmony.ReadMessage) {
	body := t.tokens[t.readFrom+m.From : t.readFrom+m.To]
	if m.From > 0 { // later messages include their own <|start|>assistant
		body = body[min(len(body), len(assistantStart())):]
	}
	if m.Role != harmony.RoleAssistant {
		t.result.Done.Faults[harmony.FaultRole]++ // the model wrote another role
	}
	reasoning := m.Channel == harmony.ChannelAnalysis && !m.Calls()
	if reasoning {
		// <|channel|>analysis and the ender; <|message|> was counted with the content
		t.usage.Reasoning += 3
	}
	stored := slices.Clone(body)
	if n := len(stored) - 1; n >= 0 && stored[n] == token.Return {
		stored[n] = token.End
	}
	t.segments = append(t.segments, segment{reasoning, stored})
	message := Message{Message: m.Message}
	switch {
	case m.Calls():
		n := len(t.result.Calls) - 1
		t.callOpen = false
		if t.cut && !m.Complete() { // incomplete arguments are useless
			t.result.Done.CallCut = true
			t.result.Calls = t.result.Calls[:n]
			return
		}
		message.CallID = t.result.Calls[n].ID
		t.pending = append(t.pending, CallEnd{Index: n, Arguments: m.Text()})
	case m.Channel == harmony.ChannelCommentary:
		t.emitCommentary(t.stop.Flush())
	case !reasoning:
		t.emitAnswer(t.stop.Flush())
	}
	if !m.Calls() && m.Text() == "" && m.End == 0 {
		return // only a header, which was cut off
	}
	t.result.Messages = append(t.result.Messages, message)
}

// end ends the turn when the stream has no more tokens.
func (t *turn) end() {
	why := t.stream.Finish()
	switch why {
	case FinishError:
		t.finish(why, t.stream.Err())
		return
	case FinishCancelled:
		t.finish(why, t.ctx.Err())
		return
	}
	if t.req.Prompt != nil || t.req.PromptOnly {
		t.endText()
		return
	}
	t.cut = true
	messages := len(t.reader.Messages())
	t.reader.Finish()
	t.finishMessages(messages)
	if t.done {
		return
	}
	t.emitAnswer(t.stop.Flush())
	switch {
	case t.rules.Closing && why != FinishLength:
		t.finish(FinishLoop, ErrLoop)
	case why == FinishLength:
		t.finish(why, nil)
	case len(t.result.Calls) > 0:
		t.finish(FinishToolCalls, nil)
	case t.result.Answer == "" && !t.rescue && t.startRescue():
	default:
		t.finish(FinishStop, nil)
	}
}

// startRescue continues a turn that ended without an answer or a call: once, with a forced final
// header. It returns false if that is impossible, as after an incomplete call, whose beginning the
// client has already received.
func (t *turn) startRescue() bool {
	if t.result.Done.CallCut {
		return false
	}
	t.rescue = true
	t.resumable.Store(nil)
	t.rules = grammar.TurnRules{Final: t.rules.Final, MaxReasoning: -1,
		SampleBodies: t.rules.SampleBodies, Ends: t.rules.Ends} // forces the header
	maxTokens := 0
	if t.req.MaxTokens > 0 {
		if maxTokens = t.req.MaxTokens - t.usage.Completion; maxTokens <= len(finalHeader()) {
			return false
		}
	}
	prompt := append([]int32(nil), t.prompt...)
	for _, s := range t.segments {
		prompt = harmony.RenderTurn(append(prompt, s.Tokens...), harmony.RoleAssistant)
	}
	if !t.resubmit(prompt, maxTokens, nil) {
		return false
	}
	t.addFaults()
	t.callOpen, t.cut = false, false
	t.reader, t.readFrom = harmony.NewReader(harmony.RoleAssistant), len(t.tokens)
	return true
}

// maxClosingTokens limits the tokens that complete a form. The shortest end is taken, so only a
// very demanding form needs more; then the answer ends by length.
const maxClosingTokens = 1024

// startClosing continues an answer that loops inside a form: once, on the shortest way to the
// form's end, so that the client can parse the result.
func (t *turn) startClosing() bool {
	if t.rules.Final == nil || t.rules.Closing || t.reader.State() != harmony.InContent ||
		!isFinal(Message{Message: t.reader.Current()}) {
		return false
	}
	sampled := t.tokens[t.readFrom:]
	maxTokens := maxClosingTokens
	if t.req.MaxTokens > 0 {
		maxTokens = min(maxTokens, t.req.MaxTokens-t.usage.Completion)
	}
	t.resumable.Store(nil)
	t.rules.Closing = true
	return maxTokens > 0 && t.resubmit(t.lastPrompt, len(sampled)+maxTokens, sampled)
}

// resubmit submits another attempt and adds up the timings.
func (t *turn) resubmit(prompt []int32, maxTokens int, sampled []int32) bool {
	timing := t.stream.Timing()
	if t.firstTiming != nil {
		timing = addTiming(*t.firstTiming, timing)
	}
	if t.submit(prompt, maxTokens, sampled) != nil {
		return false
	}
	t.firstTiming = &timing
	return true
}

// finish emits Done and stores the sampled tokens.
func (t *turn) finish(f Finish, err error) {
	if t.done {
		return
	}
	t.done = true
	t.addFaults()
	t.usage.Reasoning = min(t.usage.Reasoning, t.usage.Completion)
	timing := t.stream.Timing()
	if t.firstTiming != nil {
		timing = addTiming(*t.firstTiming, timing)
	}
	t.cancel() // a stop string ends the turn before the stream
	// tokens of an earlier attempt are not part of the prompt
	t.usage.Cached = min(timing.Cached, t.usage.Prompt)
	t.usage.Accepted, t.usage.Rejected = timing.Accepted, timing.Rejected
	t.result.Tokens = t.tokens
	if f == FinishError || f == FinishCancelled || f == FinishLength || f == FinishLoop ||
		t.result.Done.StopString != "" {
		t.addPartialAnswer()
	}
	t.result.Done = Done{Finish: f, StopString: t.result.Done.StopString, Usage: t.usage,
		Timing: timing, Faults: t.result.Done.Faults, Err: err,
		CallCut: t.result.Done.CallCut || t.callOpen}
	t.pending = append(t.pending, t.result.Done)
	if t.result.Done.Faults.Total() == 0 && (f == FinishStop && t.result.Done.StopString == "" ||
		f == FinishToolCalls) {
		t.remember()
	}
}

// addTiming is the timing of a turn in two attempts. The second prompt contains the output of the
// first attempt, so only the first prompt counts.
func addTiming(first, second sched.Timing) sched.Timing {
	first.Queued += second.Queued
	first.Decode += second.TTFT + second.Decode
	first.Generated += second.Generated
	first.Accepted += second.Accepted
	first.Rejected += second.Rejected
	return first
}

func (t *turn) addFaults() {
	t.result.Done.Faults = t.result.Done.Faults.Plus(t.reader.Faults())
}

// addPartialAnswer adds an incomplete answer to the history, so that the conversation can continue.
func (t *turn) addPartialAnswer() {
	if slices.ContainsFunc(t.result.Messages, isFinal) {
		return
	}
	if t.result.Answer != "" {
		t.result.Messages = append(t.result.Messages, AssistantAnswer(t.result.Answer))
	}
}

// remember stores the sampled tokens under the last call's id, or under the answer's text.
func (t *turn) remember() {
	if len(t.segments) == 0 || len(t.result.Messages) == 0 {
		return
	}
	last, s := t.result.Messages[len(t.result.Messages)-1], t.req.turns(t.model.store)
	switch {
	case last.CallID != "":
		s.remember(callKey(last.CallID), sampledTurn{last.Text(), t.segments}, t.req.Persist)
	case isFinal(last):
		s.remember(answerKey(last.Text()), sampledTurn{"", t.segments}, t.req.Persist)
	}
}

func (t *turn) logprob(tok sched.Token) TokenLogprob {
	one := func(id int32, lp float32) TokenLogprob {
		b := token.Get().TokenBytes(id)
		return TokenLogprob{ID: id, Token: strings.ToValidUTF8(string(b), "\uFFFD"), Bytes: b,
			Logprob: lp}
	}
	l := one(tok.ID, tok.Logprob)
	for _, c := range tok.Top {
		l.Top = append(l.Top, one(c.ID, c.Logprob))
	}
	return l
}

func (t *turn) Sampled() []int32 {
	if p := t.resumable.Load(); p != nil {
		return *p
	}
	return nil
}

// resume appends the sampled tokens to the prompt, and reports whether they end the turn.
func (t *turn) resume(constraint grammar.Constraint, prompt *[]int32, maxTokens *int,
	sampled []int32) (done bool) {
	for _, id := range sampled {
		constraint.Accept(id) // a token that is illegal now was illegal then
	}
	*prompt = append((*prompt)[:len(*prompt):len(*prompt)], sampled...)
	last := sampled[len(sampled)-1]
	why := FinishStop
	if *maxTokens > 0 {
		if *maxTokens -= len(sampled); *maxTokens <= 0 {
			why = FinishLength
		}
	}
	if why == FinishLength || slices.Contains(t.stopTokens(), last) && !t.req.Params.IgnoreEOS {
		t.stream, t.cancelStream = endedStream(why), func() {}
		return true
	}
	return false
}

// callID is the id of the next call, derived from the request's id if it has one.
func (t *turn) callID() string {
	if t.req.ID == "" {
		var b [12]byte
		_, _ = rand.Read(b[:])
		return "call_" + hex.EncodeToString(b[:])
	}
	sum := sha256.Sum256([]byte(t.req.ID + " " + strconv.Itoa(len(t.result.Calls))))
	return "call_" + hex.EncodeToString(sum[:12])
}

type endedStream Finish

func (e endedStream) Next(context.Context) (sched.Token, bool) { return sched.Token{}, false }
func (e endedStream) Finish() Finish                           { return Finish(e) }
func (e endedStream) Err() error                               { return nil }
func (e endedStream) Timing() sched.Timing                     { return sched.Timing{} }
func (e endedStream) Prompt() []engine.SampledToken            { return nil }
