// POST /v1/responses and the responses that were stored.
//
// What must stay true: a stream ends in exactly one of response.completed, response.incomplete and
// response.failed (agents repeat the whole request otherwise), and what GET finds afterwards is
// what that event held.

package openai

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/ossrun/ossrun/runtime/session"
)

// responsesForm writes a response.
type responsesForm struct {
	*answer
	composer
	req      *responsesRequest
	sequence int
}

func (p *port) readResponses(o *object) (*request, form, *fault) {
	req, f := parseResponses(o, p.Store, p.MaxReasoning)
	if f != nil {
		return nil, nil, f
	}
	return &req.request, &responsesForm{req: req}, nil
}

func (r *responsesForm) open(a *answer) {
	r.answer = a
	r.composer = composer{response: &r.req.response, send: r.send}
	r.response.ID, r.response.CreatedAt, r.response.Model = newID("resp_"), a.created, a.model
	r.sendResponse("response.created")
	r.beat()
}

// send writes one event of the stream.
func (r *responsesForm) send(kind string, e streamEvent) {
	e.Type, e.Sequence = kind, r.sequence
	r.sequence++
	r.emit(kind, &e)
}

func (r *responsesForm) sendResponse(kind string) {
	r.send(kind, streamEvent{Response: r.response})
}

// beat is an event, since a comment would not reset Codex's timer.
func (r *responsesForm) beat() { r.sendResponse("response.in_progress") }

func (r *responsesForm) take(_ int, e session.Event) { r.composer.take(e) }

func (r *responsesForm) end(usage session.Usage, f *fault) {
	r.finish(usage, f)
	kind := r.response.Status
	if kind == "cancelled" { // there is no such event
		kind = "incomplete"
	}
	r.sendResponse("response." + kind)
}

func (r *responsesForm) whole(usage session.Usage) any {
	r.finish(usage, nil)
	return r.response
}

// finish closes what is open, gives the response its last status and stores it.
func (r *responsesForm) finish(usage session.Usage, failed *fault) {
	r.response.Usage = wireResponseUsage(usage)
	switch {
	case failed != nil && failed.status == statusClientGone:
		r.cut()
		r.response.Status = "cancelled"
	case failed != nil:
		r.cut()
		r.response.Status, r.response.Error = "failed", &responseError{Code: errorCode(failed),
			Message: failed.message}
	case r.dones[0].Finish == session.FinishLoop:
		r.cut()
		r.response.Status, r.response.Error = "failed", &responseError{Code: kindServer,
			Message: session.ErrLoop.Error()}
	case r.dones[0].Finish == session.FinishLength:
		r.cut()
		r.response.Status, r.response.IncompleteDetails = "incomplete",
			&incompleteReason{"max_output_tokens"}
	default:
		if len(r.response.Output) == 0 { // clients read the text of the last message
			r.message("final_answer", "", nil)
		}
		r.close("completed")
		now := time.Now().Unix()
		r.response.Status, r.response.CompletedAt = "completed", &now
	}
	if !r.req.store {
		return
	}
	if err := r.keep(); err != nil {
		r.exchange.fault = "the response is not stored: " + err.Error()
	}
}

// errorCode is the code of a response that failed; OpenAI's document has a closed list.
func errorCode(f *fault) string {
	switch {
	case f.code == "rate_limit_exceeded":
		return f.code
	case f.kind == kindInvalid:
		return "invalid_prompt"
	}
	return kindServer
}

func (r *responsesForm) keep() error {
	body, err := marshal(r.response)
	if err != nil {
		return err
	}
	s := storedResponse{Body: body, Items: map[string]json.RawMessage{}, Talk: r.req.talk}
	s.Talk.Messages = append(s.Talk.Messages, r.turns[0].Result().Messages...)
	for _, item := range r.response.Output {
		if b, err := marshal(item); err == nil {
			s.Items[item.itemID()] = b
		}
	}
	return putResponse(r.port.Store, r.response.ID, s)
}

func (p *port) storedResponse(e *exchange, r *http.Request) {
	id := r.PathValue("id")
	s, ok := getResponse(p.Store, id)
	switch {
	case !ok:
		writeFault(e, noResponse(id))
	case r.URL.Query().Get("stream") == "true":
		writeFault(e, unsupported("stream", "streaming a stored response", "get it without stream"))
	default:
		writeJSON(e, http.StatusOK, s.Body)
	}
}

func (p *port) deleteResponse(e *exchange, r *http.Request) {
	id := r.PathValue("id")
	if !p.Store.Delete(session.KindResponse, id) {
		writeFault(e, noResponse(id))
		return
	}
	writeJSON(e, http.StatusOK, struct {
		ID      string `json:"id"`
		Object  string `json:"object"`
		Deleted bool   `json:"deleted"`
	}{id, "response", true})
}

func noResponse(id string) *fault {
	return refusal(http.StatusNotFound, "response_id", "", "Response with id '"+id+"' not found.")
}
