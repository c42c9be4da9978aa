// Package responses is POST /v1/responses, and what the port stores and runs without a client:
// responses, conversations, files and batches.
//
// What must stay true: a stream ends in exactly one of response.completed, response.incomplete and
// response.failed, or agents repeat the whole request. GET afterwards returns the response of that
// event.
package responses

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/ossrun/ossrun/harmony"
	"github.com/ossrun/ossrun/runtime/openai/answer"
	"github.com/ossrun/ossrun/runtime/openai/answer/tools"
	"github.com/ossrun/ossrun/runtime/openai/fields"
	"github.com/ossrun/ossrun/runtime/quota"
	"github.com/ossrun/ossrun/runtime/records"
	"github.com/ossrun/ossrun/runtime/session"
)

type form struct {
	*answer.Answer
	composer
	api      *API
	req      *responseRequest
	sequence int
	log      *eventLog       // nil: the response is not stored
	job      *job            // nil: it does not run in the background
	request  json.RawMessage // body of a background request
	replay   *alreadyLogged  // set if another process had begun the response
}

// API has the routes under /v1/responses and /v1/conversations.
type API struct {
	*answer.Driver
	*shared
	tools *tools.Pool
	owner string        // owner of the routes; "": all clients without a named key
	store records.Store // the owner's view
}

// shared is the state of all owners.
type shared struct {
	jobs   jobs
	offers offers

	batches jobs
	running *quota.Shared    // batches that run here
	routes  http.HandlerFunc // of the port
	ends    atomic.Bool      // this process ends; see GiveUp
}

// New makes the dialect; tools are the built-in ones, and routes the port's, for batches.
func New(d *answer.Driver, tools *tools.Pool, routes http.HandlerFunc) *API {
	all := &shared{routes: routes, running: quota.New("batches", 8)}
	return (&API{Driver: d, shared: all, tools: tools}).forOwner("")
}

func (p *API) forOwner(owner string) *API {
	return &API{p.Driver, p.shared, p.tools, owner, records.Owned(p.Store, owner)}
}

func (p *API) Read(o *fields.Object) (*answer.Request, answer.Form) {
	p = p.forOwner(o.Owner())
	req := p.parse(o)
	form := &form{api: p, req: req}
	if req.store {
		form.log = newEventLog()
	}
	if req.response.Background {
		req.Background = form.background
		form.request = o.Value().Raw
	}
	return &req.Request, form
}

func (r *form) Open(a *answer.Answer) {
	if r.job == nil {
		r.start(a)
	}
	r.response.Status = "in_progress"
	r.sendResponse("response.in_progress")
	r.tools, r.include, r.names = r.req.tools, r.req.include, r.req.names
	r.summary = r.req.summary != ""
	r.listTools()
}

// start gives the response its id and sends the first event.
func (r *form) start(a *answer.Answer) {
	r.Answer = a
	r.req.keepInput()
	r.composer = composer{response: &r.req.response, send: r.send}
	r.response.ID = cmp.Or(r.response.ID, answer.NewID("resp_"))
	r.response.CreatedAt, r.response.Model = a.Created, a.Model
	if none := []harmony.Message{}; r.req.showMessages {
		r.response.InputMessages, r.response.OutputMessages = none, none
	}
	if r.job != nil {
		r.response.Status, r.seed = "queued", r.response.ID
		r.req.Turns[0].ID = r.response.ID
	}
	r.sendResponse("response.created")
}

func (r *form) send(kind string, e streamEvent) {
	e.Type = kind
	if r.replay.isLogged(&e) {
		return
	}
	r.number(&e)
	r.publish(&e)
}

func (r *form) number(e *streamEvent) {
	e.Sequence = r.sequence
	r.sequence++
}

func (r *form) publish(e *streamEvent) {
	r.Emit(e.Type, e)
	if r.log != nil {
		r.log.add(e)
	}
	if r.job != nil && e.Delta == nil {
		if body, err := answer.Marshal(r.response); err == nil { // else put reports it
			r.job.body.Store(&body)
		}
	}
}

func (r *form) sendResponse(kind string) {
	r.send(kind, streamEvent{Response: r.response})
}

// Beat is an event, since a comment would not reset Codex's timer.
func (r *form) Beat() {
	e := streamEvent{Type: "response.in_progress", Response: r.response}
	r.number(&e)
	r.Emit(e.Type, &e)
}

func (r *form) Take(_ int, e session.Event) {
	if c, ok := e.(compactionEvent); ok {
		r.compactedTo(c)
		return
	}
	r.composer.addEvent(e)
}

func (r *form) Body(usage session.Usage) any {
	r.End(usage, nil)
	return r.response
}

// End gives the response its last status, stores it and then sends the last event: a client that
// has read it can continue from the response at once.
func (r *form) End(usage session.Usage, f *fields.Fault) {
	if r.job != nil && f != nil && f.Status != fields.StatusClientGone && r.isGivenUp() {
		return
	}
	r.finish(usage, f)
	last, err := r.store()
	if errors.Is(err, errLost) {
		return // another process ends it
	}
	if err != nil {
		f := fields.Failure(http.StatusInternalServerError, fields.KindServer,
			"the response is not stored: "+err.Error())
		r.Exchange.Fault = f
		r.response.Status, r.response.CompletedAt = "failed", nil
		r.response.Error = &responseError{f.Kind, f.Code, f.Message}
		r.req.conversation = ""
		if last, err = r.store(); err != nil { // even alone it is too large
			r.api.Log.Error("a response is not stored", "id", r.response.ID, "error", err)
		}
	}
	switch m := r.req.memory; {
	case m == nil:
	case r.response.Status == "failed":
		m.Forget(r.req.previous)
	case !r.req.store:
		if s, err := r.stored(time.Time{}); err == nil {
			m.remember(r.api.store, r.response.ID, s)
		}
	}
	r.publish(last)
}

// store writes in one change all that a response leaves: itself, its part of the conversation, and
// the end of its lease. last is its last event.
func (r *form) store() (last *streamEvent, err error) {
	kind := r.response.Status
	if kind == "cancelled" { // there is no such event
		kind = "incomplete"
	}
	last = &streamEvent{Type: "response." + kind, Response: r.response, Sequence: r.sequence}
	return last, r.api.store.Change(func(c *records.Change) error {
		if r.job != nil && !r.job.hasLease(c, r.response.ID) {
			return errLost
		}
		if err := r.appendToConversation(c); err != nil || !r.req.store {
			return err
		}
		if r.job != nil {
			c.Delete(records.KindRunning, r.response.ID)
		}
		return r.put(c, time.Time{}, r.log.withEvent(last))
	})
}

// finish closes open items and gives the response its last status.
func (r *form) finish(usage session.Usage, failed *fields.Fault) {
	r.response.Usage = wireResponseUsage(usage)
	if r.req.showMessages && len(r.Turns) > 0 {
		r.listMessages(r.Turns[0].Result())
	}
	if failed == nil {
		r.cite(r.Turns[0].Result().Citations)
	}
	switch {
	case failed != nil && failed.Status == fields.StatusClientGone:
		r.closeIncomplete()
		r.response.Status = "cancelled"
	case failed != nil:
		r.closeIncomplete()
		r.response.Status, r.response.Error = "failed", &responseError{failed.Kind,
			errorCode(failed), failed.Message}
	case r.req.Turn.PromptOnly:
		r.response.Status, r.response.CompletedAt = "completed", new(now())
	case r.Dones[0].Finish == session.FinishLoop:
		r.closeIncomplete()
		// Codex would repeat the request after any other code of OpenAI's list
		r.response.Status, r.response.Error = "failed", &responseError{fields.KindServer,
			"invalid_prompt", session.ErrLoop.Error()}
	case r.Dones[0].Cut():
		r.closeIncomplete()
		r.response.Status, r.response.IncompleteDetails = "incomplete",
			&incompleteReason{"max_output_tokens"}
	default:
		r.dropTools()
		if !r.hasOutput() { // clients read the text of the last message
			r.message("final_answer", "", nil)
		}
		r.closeItem("completed")
		r.response.Status, r.response.CompletedAt = "completed", new(now())
	}
}

// listMessages adds the Harmony messages of the prompt and of the answer.
func (r *form) listMessages(result session.Result) {
	prompt, _ := harmony.ReadAll(result.Prompt, "") // its end is a header, which is no message
	for _, m := range prompt {
		if m.Complete() {
			r.response.InputMessages = append(r.response.InputMessages, m.Message)
		}
	}
	for _, m := range result.Messages {
		r.response.OutputMessages = append(r.response.OutputMessages, m.Message)
	}
}

// hasOutput tells whether the response has text or a call for its client.
func (c *composer) hasOutput() bool {
	for _, item := range c.response.Output {
		switch item.(type) {
		case *mcpListItem, *compactionItem:
		default:
			return true
		}
	}
	return false
}

// errorCode is the code of a response that failed; OpenAI's document has a closed list.
func errorCode(f *fields.Fault) string {
	switch {
	case f.Code == "rate_limit_exceeded":
		return f.Code
	case f.Kind == fields.KindInvalid:
		return "invalid_prompt"
	}
	return fields.KindServer
}

// put stores the response and its events; until is zero if it has ended.
func (r *form) put(c *records.Change, until time.Time, log *eventLog) error {
	s, err := r.stored(until)
	if s.Log = log; err != nil {
		return err
	}
	return putResponse(c, r.response.ID, s)
}

// stored is the record of the response, without its events.
func (r *form) stored(until time.Time) (storedResponse, error) {
	body, err := answer.Marshal(r.response)
	s := storedResponse{Body: body, Items: map[string]json.RawMessage{}, Conv: r.req.conv,
		Input: r.req.input, Until: until}
	if r.req.store {
		s.Salt, s.Pages = r.req.Turns[0].Salt, r.req.Turns[0].Pages.Names()
	}
	if !until.IsZero() {
		s.Request, s.Tokens = r.request, r.sampled()
	}
	if len(r.Turns) > 0 && until.IsZero() {
		sampled := r.Turns[0].Result().Messages
		s.Conv.Messages, s.Sampled = slices.Concat(s.Conv.Messages, sampled), len(sampled)
	}
	for _, item := range r.response.Output {
		if b, err := answer.Marshal(item); err == nil {
			s.Items[item.head().ID] = b
		}
	}
	return s, err
}
