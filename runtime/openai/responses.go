// POST /v1/responses and the responses that were stored.
//
// What must stay true: a stream ends in exactly one of response.completed, response.incomplete and response.failed
// (agents repeat the whole request otherwise), and what GET finds afterwards is what that event held.

package openai

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/ossrun/ossrun/runtime/session"
)

func (p *port) responses(w http.ResponseWriter, r *http.Request) {
	body, f := readBody(w, r)
	if f != nil {
		writeFault(w, f)
		return
	}
	req, f := parseResponses(body, p.store)
	if f != nil {
		writeFault(w, f)
		return
	}
	p.boundReasoning(body, &req.turn)
	runner, err := p.models.Get(r.Context(), req.model)
	if err != nil {
		writeFault(w, unavailable(err))
		return
	}
	noteIgnored(w, append(req.ignoredTools, req.ignoredItems...))
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	turn, err := runner.Start(ctx, req.turn)
	if err != nil {
		writeFault(w, faultOf(err, "input"))
		return
	}
	noteRelaxed(w, append(req.format.relaxed, turn.Result().Relaxed...))
	req.answer.ID, req.answer.CreatedAt, req.answer.Model = newID("resp_"), time.Now().Unix(), echo(req.model, runner)
	a := &responsesAnswer{req: req, port: p, runner: runner, turn: turn, w: w, ctx: r.Context(), cancel: cancel}
	a.composer = composer{answer: &req.answer, send: a.send}
	a.run()
}

// responsesAnswer is one request's answer in the making.
type responsesAnswer struct {
	req      *responsesRequest
	port     *port
	runner   session.Runner
	turn     session.Turn
	w        http.ResponseWriter
	ctx      context.Context    // the client's
	cancel   context.CancelFunc // ends the turn
	composer composer
	done     session.Done
	out      *eventStream // nil: not streamed
	sequence int
}

// send writes one event of the stream.
func (a *responsesAnswer) send(kind string, e stamped) {
	if a.out == nil {
		return
	}
	e.stamp(kind, a.sequence)
	a.sequence++
	a.out.event(kind, e)
}

func (a *responsesAnswer) sendResponse(kind string) {
	a.send(kind, &responseEvent{Response: &a.req.answer})
}

func (a *responsesAnswer) run() {
	f := follower{turns: []session.Turn{a.turn}, cancel: a.cancel, silence: a.port.silence, batch: a.take}
	if !a.req.stream {
		patient := patientWriter{w: a.w}
		f.quiet, f.whole = patient.quiet, true
	} else {
		defer a.port.pace.enter()()
		f.pace = a.port.pace
		a.out = startEvents(a.w, a.cancel)
		a.sendResponse("response.created")
		a.sendResponse("response.in_progress")
		_ = a.out.flush() // a client that is gone already: the turn is cancelled, and followed to its end all the same
		f.quiet = func() error {
			a.sendResponse("response.in_progress") // a comment would not reset Codex's timer
			return a.out.flush()
		}
	}
	a.done.Finish = session.FinishError // until the turn says otherwise
	err := f.run()
	a.port.metrics.finished(a.runner.ID(), a.done)
	noteUsage(a.w, a.done.Usage)
	if err != nil {
		noteError(a.w, err.Error())
		if a.out == nil {
			return // nobody is left to read an answer
		}
	}
	failed := failure(a.ctx, &a.done, "input")
	if failed != nil && a.out == nil {
		writeFault(a.w, failed)
		return
	}
	kind := a.finish(failed)
	a.keep()
	if a.out == nil {
		writeJSON(a.w, http.StatusOK, &a.req.answer)
		return
	}
	a.sendResponse(kind)
	_ = a.out.flush() // the last write: nothing is left to cancel
}

func (a *responsesAnswer) take(batch []arrival) error {
	for _, e := range batch {
		if d, ok := e.event.(session.Done); ok {
			a.done = d
			continue
		}
		a.composer.take(a.req.format.shown(e.event))
	}
	if a.out == nil {
		return nil
	}
	return a.out.flush()
}

// finish closes what is open and gives the response its last status. It returns the event that says so.
func (a *responsesAnswer) finish(failed *fault) string {
	answer := &a.req.answer
	answer.Usage = wireResponseUsage(a.done.Usage)
	switch {
	case failed != nil:
		noteError(a.w, failed.message)
		a.composer.end("incomplete")
		answer.Status, answer.Error = "failed", &responseError{Code: failed.code, Message: failed.message}
	case a.done.Finish == session.FinishLength:
		a.composer.end("incomplete")
		answer.Status, answer.IncompleteDetails = "incomplete", &incompleteReason{"max_output_tokens"}
	default:
		if len(answer.Output) == 0 { // clients read the text of the last message
			a.composer.message("final_answer", "", nil)
		}
		a.composer.end("completed")
		now := time.Now().Unix()
		answer.Status, answer.CompletedAt = "completed", &now
	}
	return "response." + answer.Status
}

// keep stores the response where the client did not forbid it.
func (a *responsesAnswer) keep() {
	if !a.req.store {
		return
	}
	body, err := marshal(&a.req.answer)
	if err != nil {
		noteError(a.w, err.Error())
		return
	}
	s := storedResponse{Body: body, Items: map[string]json.RawMessage{}, Talk: a.req.talk}
	s.Talk.Messages = append(s.Talk.Messages, a.turn.Result().Messages...)
	for _, item := range a.req.answer.Output {
		if b, err := marshal(item); err == nil {
			s.Items[item.itemID()] = b
		}
	}
	if err := putResponse(a.port.store, a.req.answer.ID, s); err != nil {
		noteError(a.w, "the response is not stored: "+err.Error())
	}
}

func (p *port) storedResponse(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	s, ok := getResponse(p.store, id)
	switch {
	case !ok:
		writeFault(w, noResponse(id))
	case r.URL.Query().Get("stream") == "true":
		writeFault(w, unsupported("stream", "streaming a stored response", "get it without stream"))
	default:
		writeJSON(w, http.StatusOK, s.Body)
	}
}

func (p *port) deleteResponse(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	if !p.store.Delete(session.KindResponse, id) {
		writeFault(w, noResponse(id))
		return
	}
	writeJSON(w, http.StatusOK, struct {
		ID      string `json:"id"`
		Object  string `json:"object"`
		Deleted bool   `json:"deleted"`
	}{id, "response", true})
}

func noResponse(id string) *fault {
	return &fault{status: http.StatusNotFound, kind: kindInvalid, param: "response_id", message: "Response with id '" + id + "' not found."}
}
