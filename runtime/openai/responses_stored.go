// What can be asked of a stored response: it, its events, its input, an end, its deletion.

package openai

import (
	"net/http"
	"strconv"
	"time"

	"github.com/ossrun/ossrun/runtime/session"
)

func (p *port) storedResponse(e *exchange, r *http.Request) {
	id := r.PathValue("id")
	running := p.jobs.get(id)
	s, ok := getResponse(p.Store, id)
	if running != nil {
		s.Body, s.Log, ok = running.now(), running.log, true
	}
	if !ok {
		writeFault(e, noResponse(id))
		return
	}
	if r.URL.Query().Get("stream") != "true" {
		writeJSON(e, http.StatusOK, s.Body)
		return
	}
	after := -1
	if from := r.URL.Query().Get("starting_after"); from != "" {
		n, err := strconv.Atoi(from)
		if err != nil || n < 0 {
			writeFault(e, invalid("starting_after", "starting_after is %q, it must be the "+
				"sequence number of an event", from))
			return
		}
		after = n
	}
	switch {
	case running == nil && s.running():
		writeFault(e, refusal(http.StatusConflict, "stream", "",
			"another process writes this response; get it without stream until it has ended"))
	case s.Log == nil:
		writeFault(e, invalid("stream", "the events of this response were not kept; get it "+
			"without stream"))
	default:
		p.watch(e, r, s.Log, after)
	}
}

func (p *port) cancelResponse(e *exchange, r *http.Request) {
	id := r.PathValue("id")
	if running := p.jobs.get(id); running != nil {
		running.stop(false)
	}
	s, ok := getResponse(p.Store, id)
	switch {
	case !ok:
		writeFault(e, noResponse(id))
	case s.running():
		writeFault(e, refusal(http.StatusConflict, "response_id", "",
			"another process writes this response; cancel it there"))
	case !s.background():
		writeFault(e, invalid("response_id", "only a response with background true can be "+
			"cancelled; close the connection of another one"))
	default:
		writeJSON(e, http.StatusOK, s.Body)
	}
}

func (p *port) deleteResponse(e *exchange, r *http.Request) {
	id := r.PathValue("id")
	running := p.jobs.get(id)
	if running != nil {
		running.stop(true)
	}
	if !p.Store.Delete(session.KindResponse, id) && running == nil {
		writeFault(e, noResponse(id))
		return
	}
	writeJSON(e, http.StatusOK, deletion{id, "response", true})
}

type deletion struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Deleted bool   `json:"deleted"`
}

func noResponse(id string) *fault {
	return refusal(http.StatusNotFound, "response_id", "", "Response with id '"+id+"' not found.")
}

func (p *port) inputItems(e *exchange, r *http.Request) {
	id := r.PathValue("id")
	s, ok := getResponse(p.Store, id)
	if !ok {
		writeFault(e, noResponse(id))
		return
	}
	writePage(e, r, s.Input)
}

// now is in seconds since 1970.
func now() int64 { return time.Now().Unix() }
