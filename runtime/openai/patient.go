// Keeps the connection of a slow whole answer alive.
//
// A client that does not stream receives nothing until the answer is complete, and may give up:
// Node after 300 s without headers, proxies often after 60 s. JSON may begin with white space,
// which every parser skips, so a line feed is sent from time to time. What must stay true: nothing
// is sent before the second heartbeat, so that errors of ordinary requests have their status. After
// that an error cuts the connection: status 200 is sent already, and clients repeat a request that
// was cut.

package openai

import "net/http"

// patientWriter sends the line feeds of one whole answer.
type patientWriter struct {
	e     *exchange
	beats int
}

// quiet is called at every heartbeat.
func (p *patientWriter) quiet() error {
	if p.beats++; p.beats < 2 {
		return nil
	}
	if p.e.status == 0 {
		p.e.Header().Set("Content-Type", "application/json")
		p.e.WriteHeader(http.StatusOK)
		p.e.beat("\n")
	}
	return writeNow(p.e, []byte{'\n'})
}
