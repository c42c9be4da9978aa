// context_management: a conversation that has more tokens than its client wants is compacted before
// the turn.
//
// What must stay true: the turn goes on from what the compaction item says and from the user's last
// message; so does the next response, whether the server has the conversation or the client sends
// it with the item; a conversation that cannot be compacted goes on as it is.

package openai

import (
	"context"
	"math"

	"github.com/ossrun/ossrun/harmony"
	"github.com/ossrun/ossrun/runtime/sample"
	"github.com/ossrun/ossrun/runtime/session"
)

// wholeContext compacts where the model's context is nearly used up.
const wholeContext = -1

// readCompaction is the number of tokens from which a conversation is compacted; 0: never.
func readCompaction(o *object) (threshold int) {
	for _, v := range o.list("context_management") {
		entry := v.object()
		if entry.text("type") != "compaction" {
			entry.get("type").must("compaction")
		}
		threshold = entry.integer("compact_threshold", 1000, math.MaxInt32, wholeContext)
	}
	return threshold
}

// compacted is the event that a conversation was compacted. It has no text; it embeds an event of
// the session, since all events must be the session's.
type compacted struct {
	session.Commentary
	summary  session.Summary
	messages []session.Message // in place of those before
}

// compacting is a Runner that compacts the conversation of its first turn.
type compacting struct {
	session.Runner
	store     session.Store
	threshold int
	begun     bool
	before    int               // messages of the conversation
	messages  []session.Message // in their place; nil: they were not compacted
}

func (c *compacting) Start(ctx context.Context, r session.Request) (session.Turn, error) {
	if c.messages != nil { // a turn after a call
		r.Messages = append(c.messages[:len(c.messages):len(c.messages)],
			r.Messages[c.before:]...)
	}
	if c.begun || len(r.Messages) < 2 {
		return c.Runner.Start(ctx, r)
	}
	c.begun, c.before = true, len(r.Messages)
	threshold := c.threshold
	if threshold == wholeContext {
		threshold = c.ContextLength() / 4 * 3
	}
	prompt, err := session.Prompt(ctx, c.store, r)
	if err != nil || len(prompt) <= threshold {
		return c.Runner.Start(ctx, r)
	}
	return &compactingTurn{ctx: ctx, runner: c, req: r}, nil
}

// compactingTurn writes the summary when it is first read, so that a stream is kept alive.
type compactingTurn struct {
	ctx     context.Context
	runner  *compacting
	req     session.Request
	turn    session.Turn // behind the summary; nil: not yet
	summary session.Summary
	ended   bool
}

func (t *compactingTurn) Next() (session.Event, bool) {
	switch {
	case t.ended:
		return nil, false
	case t.turn == nil:
		if e := t.begin(); e != nil {
			return e, true
		}
	}
	e, ok := t.turn.Next()
	if d, done := e.(session.Done); done {
		d.Usage = d.Usage.Plus(t.summary.Usage)
		e = d
	}
	return e, ok
}

// begin compacts the conversation and starts the turn that goes on from it.
func (t *compactingTurn) begin() session.Event {
	ask := t.req
	ask.Params = sample.Defaults()
	var e session.Event
	summary, err := session.Compact(t.ctx, t.runner.Runner, ask)
	if err == nil {
		t.summary = summary
		t.req.Messages = goesOn(summary, t.req.Messages)
		t.runner.messages = t.req.Messages
		e = compacted{summary: summary, messages: t.req.Messages}
	}
	if t.turn, err = t.runner.Runner.Start(t.ctx, t.req); err != nil {
		t.ended = true
		d := session.Done{Finish: session.FinishError, Err: err, Usage: t.summary.Usage}
		if t.ctx.Err() != nil {
			d.Finish = session.FinishCancelled
		}
		return d
	}
	return e
}

func (t *compactingTurn) Result() session.Result {
	if t.turn == nil {
		return session.Result{}
	}
	r := t.turn.Result()
	r.Done.Usage = r.Done.Usage.Plus(t.summary.Usage)
	return r
}

// goesOn is the conversation after compacting: the summary and the user's last message, which is
// still to be answered.
func goesOn(s session.Summary, all []session.Message) []session.Message {
	list := []session.Message{s.Message()}
	if last := all[len(all)-1]; last.Role == harmony.RoleUser {
		list = append(list, last)
	}
	return list
}

// wholeSeal marks a compaction item that stands for everything before it.
const wholeSeal = sealVersion + "all."

// compactedTo puts the summary into the conversation, and adds the item to the response.
func (r *responsesForm) compactedTo(c compacted) {
	r.req.talk.Messages = c.messages
	r.composer.begin(&compactionItem{itemHead{r.madeID("cmp_"), "compaction"},
		wholeSeal + seal(c.summary.Text)[len(sealVersion):]})
	r.close("completed")
}
