// POST /v1/responses/input_tokens and /v1/responses/compact: what a conversation costs, and how it
// gets shorter.

package openai

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/ossrun/ossrun/runtime/sample"
	"github.com/ossrun/ossrun/runtime/sched"
	"github.com/ossrun/ossrun/runtime/session"
)

// countPrompt is how many tokens the prompt of a request has. The turn is cancelled before it
// generates anything.
func countPrompt(ctx context.Context, runner session.Runner, r session.Request) (int, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r.MaxTokens = 1
	turn, err := runner.Start(ctx, r)
	var long *sched.ContextLengthError
	if errors.As(err, &long) {
		return long.Asked - 1, nil // it counts the first token of the answer
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

func (p *port) countInput(_ *exchange, r *http.Request, o *object) (any, *fault) {
	req, runner, f := p.readConversation(r, o)
	if f != nil {
		return nil, f
	}
	turn := req.turns[0]
	tools, _, err := p.open(req.wanted, "")
	if err != nil {
		return nil, faultOf(err, req.history)
	}
	for _, t := range tools {
		t.Offer(&turn)
	}
	p.release(tools, "")
	n, err := countPrompt(r.Context(), runner, turn)
	if err != nil {
		return nil, faultOf(err, req.history)
	}
	return struct {
		Object string `json:"object"`
		Tokens int    `json:"input_tokens"`
	}{"response.input_tokens", n}, nil
}

// readConversation reads a request that has a conversation and asks for no answer.
func (p *port) readConversation(r *http.Request, o *object) (*responsesRequest, session.Runner,
	*fault) {
	req := parseResponses(o, &p.Options)
	if o.c.first != nil {
		return nil, nil, o.c.first
	}
	runner, err := p.Models.Get(r.Context(), req.model)
	if err != nil {
		return nil, nil, unavailable(err)
	}
	return req, runner, nil
}

func (p *port) compact(e *exchange, r *http.Request, o *object) (any, *fault) {
	req, runner, f := p.readConversation(r, o)
	if f != nil {
		return nil, f
	}
	turn := req.turns[0]
	if len(turn.Messages) == 0 {
		return nil, invalid("input", "input has no conversation that could be compacted")
	}
	turn.Params = sample.Defaults()
	var summary session.Summary
	err := p.patiently(e, func() (err error) {
		summary, err = session.Compact(r.Context(), runner, turn)
		return err
	})
	if err != nil {
		return nil, faultOf(err, req.history)
	}
	e.usage = summary.Usage
	return struct {
		ID        string           `json:"id"`
		Object    string           `json:"object"`
		CreatedAt int64            `json:"created_at"`
		Output    []compactionItem `json:"output"`
		Usage     *responseUsage   `json:"usage"`
	}{newID("resp_"), "response.compaction", now(),
		[]compactionItem{{itemHead{newID("cmp_"), "compaction"}, seal(summary.Text)}},
		wireResponseUsage(summary.Usage)}, nil
}

// patiently does a job that may take long while it keeps the connection alive.
func (p *port) patiently(e *exchange, do func() error) error {
	ended := make(chan error, 1)
	go func() { ended <- do() }()
	patient := patientWriter{e: e}
	clock := time.NewTicker(p.Silence)
	defer clock.Stop()
	for {
		select {
		case err := <-ended:
			return err
		case <-clock.C:
			_ = patient.quiet() // a client that is gone ends the request's context too
		}
	}
}
