// Overlong conversations: context_management compacts one before its turn, /v1/responses/compact
// compacts on request, truncation "auto" drops its oldest messages; input_tokens counts.
//
// What must stay true: the turn continues from the compaction item and the user's last message. So
// does the next response, whether the server has the conversation or the client sends it. A
// conversation that cannot be compacted continues unchanged. Dropping keeps the last message, never
// separates a result from its call, and the client learns the number dropped.

package responses

import (
	"context"
	"errors"
	"math"
	"net/http"

	"github.com/ossrun/ossrun/harmony"
	"github.com/ossrun/ossrun/runtime/openai/answer"
	"github.com/ossrun/ossrun/runtime/openai/fields"
	"github.com/ossrun/ossrun/runtime/openai/request"
	"github.com/ossrun/ossrun/runtime/records"
	"github.com/ossrun/ossrun/runtime/sample"
	"github.com/ossrun/ossrun/runtime/sched"
	"github.com/ossrun/ossrun/runtime/session"
)

// nearFull compacts when the model's context is nearly used up.
const nearFull = -1

// readCompaction reads the number of tokens from which a conversation is compacted; 0: never.
func (r *responseRequest) readCompaction(o *fields.Object, name string) {
	for _, v := range o.List(name) {
		entry := v.Object()
		if entry.Text("type") != "compaction" {
			entry.Get("type").MustBe("compaction")
		}
		r.compactAt = entry.Integer("compact_threshold", 1000, math.MaxInt32, nearFull)
	}
}

// compactionEvent is the event that a conversation was compacted. It has no text; it embeds an
// event of the session, since all events must be the session's.
type compactionEvent struct {
	session.Commentary
	summary  session.Summary
	messages []session.Message // they replace the earlier ones
}

// withCompaction is a runner that compacts the conversation of its first turn.
func withCompaction(runner session.Runner, store records.Store, threshold int) session.Runner {
	started, n := false, 0         // messages of the conversation
	var messages []session.Message // their replacement; nil: they were not compacted
	return session.WithStart(runner, func(ctx context.Context, r session.Request) (session.Turn,
		error) {
		if messages != nil { // a turn after a call
			r.Messages = append(messages[:len(messages):len(messages)], r.Messages[n:]...)
		}
		if started || len(r.Messages) < 2 {
			return runner.Start(ctx, r)
		}
		started, n = true, len(r.Messages)
		if threshold == nearFull {
			threshold = runner.ContextLength() / 4 * 3
		}
		prompt, err := session.Prompt(ctx, store, r)
		if err != nil || len(prompt) <= threshold {
			return runner.Start(ctx, r)
		}
		return summarizedTurn(ctx, runner, r, &messages), nil
	})
}

// summarizedTurn is a turn that continues from a summary, written at the first read, so that a
// stream is kept alive. messages becomes the compacted conversation.
func summarizedTurn(ctx context.Context, runner session.Runner, r session.Request,
	messages *[]session.Message) session.Turn {
	var used session.Usage // by the summary
	started := false
	read := func(t session.Turn) (session.Event, bool, session.Turn) {
		var first session.Event
		if !started {
			started = true
			ask := r
			ask.Params = sample.Defaults()
			summary, err := session.Compact(ctx, runner, ask)
			if err == nil {
				used, r.Messages = summary.Usage, continuation(summary, r.Messages)
				*messages = r.Messages
				first = compactionEvent{summary: summary, messages: r.Messages}
			}
			if t, err = runner.Start(ctx, r); err != nil {
				t = session.Finished(session.Result{}, failedDone(ctx, err))
				first = nil
			}
		}
		if first != nil {
			return first, true, t
		}
		e, ok := t.Next()
		if d, done := e.(session.Done); done {
			d.Usage = d.Usage.Plus(used)
			e = d
		}
		return e, ok, t
	}
	return session.Wrap(nil, session.Wrapper{Read: read, OtherPrompt: true,
		Result: func(r session.Result) session.Result {
			r.Done.Usage = r.Done.Usage.Plus(used)
			return r
		}})
}

// failedDone is the end of a turn that could not be started.
func failedDone(ctx context.Context, err error) session.Done {
	d := session.Done{Finish: session.FinishError, Err: err}
	if ctx.Err() != nil {
		d.Finish = session.FinishCancelled
	}
	return d
}

// continuation is the conversation after compacting: the summary and the user's last message, which
// is not yet answered.
func continuation(s session.Summary, all []session.Message) []session.Message {
	list := []session.Message{s.Message()}
	if last := all[len(all)-1]; last.Role == harmony.RoleUser {
		list = append(list, last)
	}
	return list
}

// fullSeal marks a compaction item that replaces everything before it.
const fullSeal = request.SealVersion + "all."

// compactedTo replaces the conversation by the summary, and adds the item to the response.
func (r *form) compactedTo(c compactionEvent) {
	r.req.conv.Messages = c.messages
	r.composer.openItem(&compactionItem{itemHead{r.repeatableID("cmp_"), "compaction"},
		fullSeal + request.Seal(c.summary.Text)[len(request.SealVersion):]})
	r.closeItem("completed")
}

// TruncatedHeader reports how many messages were dropped.
const TruncatedHeader = "X-Ossrun-Truncated"

// withTruncation is a runner that drops the oldest messages until a request fits. most becomes the
// largest number that was dropped from a request.
func withTruncation(runner session.Runner, maxDropped *int) session.Runner {
	return session.WithStart(runner, func(ctx context.Context, r session.Request) (session.Turn,
		error) {
		all := r.Messages
		dropped := 0
		for {
			turn, err := runner.Start(ctx, r)
			var long *sched.ContextLengthError
			if !errors.As(err, &long) {
				*maxDropped = max(*maxDropped, dropped)
				return turn, err
			}
			next := dropped + max(1, (len(all)-dropped)/8)
			for next < len(all) && all[next].Role == harmony.RoleTool { // its call is gone
				next++
			}
			if next >= len(all) {
				return nil, err
			}
			dropped = next
			r.Messages = all[dropped:]
		}
	})
}

// countPrompt counts the tokens of a request's prompt. The turn is cancelled before it generates
// anything.
func countPrompt(ctx context.Context, runner session.Runner, r session.Request) (int, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r.MaxTokens = 1
	turn, err := runner.Start(ctx, r)
	var long *sched.ContextLengthError
	if errors.As(err, &long) {
		return long.Needed - 1, nil // it counts the first token of the answer
	}
	if err != nil {
		return 0, err
	}
	cancel()
	var usage session.Usage
	for e, ok := turn.Next(); ok; e, ok = turn.Next() {
		if d, ok := e.(session.Done); ok {
			usage = d.Usage
		}
	}
	return usage.Prompt, nil
}

// CountInput is POST /v1/responses/input_tokens.
func (p *API) CountInput(e *answer.Exchange, r *http.Request, o *fields.Object) (
	any, *fields.Fault) {
	req, runner, f := p.readConversation(e, r, o)
	if f != nil {
		return nil, f
	}
	turn := req.Turns[0]
	if err := p.tools.OfferTo(e, &turn, req.builtins); err != nil {
		return nil, fields.FaultOf(err, req.History)
	}
	turn.InMemory, turn.Pages = true, nil // no record is left
	n, err := countPrompt(r.Context(), runner, turn)
	if err != nil {
		return nil, fields.FaultOf(err, req.History)
	}
	return struct {
		Object string `json:"object"`
		Tokens int    `json:"input_tokens"`
	}{"response.input_tokens", n}, nil
}

// readConversation reads a request with a conversation that needs no answer.
func (p *API) readConversation(e *answer.Exchange, r *http.Request, o *fields.Object) (
	*responseRequest, session.Runner, *fields.Fault) {
	req := p.forOwner(e.Client).parse(o)
	if o.Fault() != nil {
		return nil, nil, o.Fault()
	}
	runner, err := p.FindModel(r.Context(), e, req.Model)
	if err != nil {
		return nil, nil, answer.Unavailable(err)
	}
	e.LimitCache(&req.Turns[0])
	return req, runner, nil
}

// Compact is POST /v1/responses/compact.
func (p *API) Compact(e *answer.Exchange, r *http.Request, o *fields.Object) (any, *fields.Fault) {
	if !o.Need("model") {
		return nil, o.Fault()
	}
	req, runner, f := p.readConversation(e, r, o)
	if f != nil {
		return nil, f
	}
	turn := req.Turns[0]
	if len(turn.Messages) == 0 {
		return nil, fields.Invalid("input", "input has no conversation that could be compacted")
	}
	if f := e.Admit(); f != nil {
		return nil, f
	}
	turn.Params = sample.Defaults()
	counted := session.WithStart(runner, func(ctx context.Context, r session.Request) (session.Turn,
		error) {
		t, err := runner.Start(ctx, r)
		if err != nil {
			return nil, err
		}
		return session.OnDone(t, func(d session.Done) { p.Count.Finished(runner.ID(), d) }), nil
	})
	var summary session.Summary
	err := p.RunPatiently(e, func() (err error) {
		summary, err = session.Compact(r.Context(), counted, turn)
		return err
	})
	if err != nil {
		return nil, fields.FaultOf(err, req.History)
	}
	e.Usage = summary.Usage
	return struct {
		ID        string           `json:"id"`
		Object    string           `json:"object"`
		CreatedAt int64            `json:"created_at"`
		Output    []compactionItem `json:"output"`
		Usage     *responseUsage   `json:"usage"`
	}{answer.NewID("resp_"), "response.compaction", now(),
		[]compactionItem{{itemHead{answer.NewID("cmp_"), "compaction"}, request.Seal(
			summary.Text)}},
		wireResponseUsage(summary.Usage)}, nil
}
