// Whole answers of slow models.
//
// A client that does not stream sees nothing until the answer is complete, and gives up: Node after
// 300 s without headers, proxies often after 60 s. JSON may begin with white space, so a line feed
// now and then keeps the connection in use, and every parser skips it. What must stay true: nothing
// is sent in the first two heartbeats, so that an error of an ordinary request has its status; once
// headers are out, an error cuts the connection, since status 200 cannot be taken back and clients
// repeat a request that was cut.

package openai

import "net/http"

// patientWriter sends the line feeds of one whole answer.
type patientWriter struct {
	w     http.ResponseWriter
	beats int
}

// quiet is called at every heartbeat.
func (p *patientWriter) quiet() error {
	if p.beats++; p.beats < 2 {
		return nil
	}
	if !headersSent(p.w) {
		p.w.Header().Set("Content-Type", "application/json")
		p.w.WriteHeader(http.StatusOK)
	}
	return writeNow(p.w, []byte{'\n'})
}

// headersSent tells that the status of the answer is settled.
func headersSent(w http.ResponseWriter) bool {
	e, ok := w.(*exchange)
	return ok && e.status != 0
}
