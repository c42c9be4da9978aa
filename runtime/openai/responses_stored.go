// What can be asked of a stored response: it, its events, its input, an end, its deletion.

package openai

import (
	"net/http"
	"strconv"
	"time"

	"github.com/ossrun/ossrun/runtime/session"
)

func (p *port) storedResponse(e *exchange, r *http.Request) (any, *fault) {
	id := r.PathValue("id")
	running := p.jobs.get(id)
	s, ok := getResponse(p.Store, id)
	if running != nil {
		s.Body, s.Log, ok = running.now(), running.log, true
	}
	if !ok {
		return nil, noResponse(id)
	}
	if r.URL.Query().Get("stream") != "true" {
		return s.Body, nil
	}
	after := -1
	if from := r.URL.Query().Get("starting_after"); from != "" {
		n, err := strconv.Atoi(from)
		if err != nil || n < 0 {
			return nil, invalid("starting_after", "starting_after is %q, it must be the sequence "+
				"number of an event", from)
		}
		after = n
	}
	switch {
	case running == nil && s.running():
		return nil, refusal(http.StatusConflict, "stream", "",
			"another process writes this response; get it without stream until it has ended")
	case s.Log == nil:
		return nil, invalid("stream", "the events of this response were not kept; get it without "+
			"stream")
	}
	p.watch(e, r, s.Log, after)
	return nil, nil
}

func (p *port) cancelResponse(_ *exchange, r *http.Request) (any, *fault) {
	id := r.PathValue("id")
	if running := p.jobs.get(id); running != nil {
		running.stop()
	}
	s, ok := getResponse(p.Store, id)
	switch {
	case !ok:
		return nil, noResponse(id)
	case s.running():
		return nil, refusal(http.StatusConflict, "response_id", "",
			"another process writes this response; cancel it there")
	case !s.background():
		return nil, invalid("response_id", "only a response with background true can be "+
			"cancelled; close the connection of another one")
	}
	return s.Body, nil
}

func (p *port) deleteResponse(_ *exchange, r *http.Request) (any, *fault) {
	id := r.PathValue("id")
	running := p.jobs.get(id)
	if running != nil {
		running.stop()
	}
	if !p.Store.Delete(session.KindResponse, id) && running == nil {
		return nil, noResponse(id)
	}
	return deletion{id, "response", true}, nil
}

type deletion struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Deleted bool   `json:"deleted"`
}

func noResponse(id string) *fault { return notFound("response_id", "Response", id) }

func (p *port) inputItems(_ *exchange, r *http.Request) (any, *fault) {
	id := r.PathValue("id")
	s, ok := getResponse(p.Store, id)
	if !ok {
		return nil, noResponse(id)
	}
	return pageOf(r, s.Input)
}

// now is in seconds since 1970.
func now() int64 { return time.Now().Unix() }
