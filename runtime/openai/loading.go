// The port before its model is on this machine: a download takes minutes to hours, and a client
// that finds nothing there gives up.
//
// What must stay true: every request gets 503 with Retry-After at once, in its API's form, and no
// body is read.

package openai

import (
	"net/http"
	"time"

	"github.com/ossrun/ossrun/runtime/openai/answer"
	"github.com/ossrun/ossrun/runtime/openai/fields"
)

// Loading answers every request with the status, /health in its form.
func Loading(status func() error) http.Handler {
	p := &port{Options: Options{Ready: status}}
	mux := http.NewServeMux()
	for _, path := range []string{"/health", "/ready"} {
		mux.Handle(path, methods{"GET": p.health})
	}
	mux.Handle("/", methods{"": func(_ *answer.Exchange, _ *http.Request) (any, *fields.Fault) {
		return nil, fields.Failure(http.StatusServiceUnavailable, "model_loading",
			status().Error())
	}})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e := answer.NewExchange(w, answer.NewID("req_"), faultBodyOf(r.URL.Path))
		e.Header().Set("Connection", "close") // of a body that is not read
		// net/http reads some of that body after the answer.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(10 * time.Second))
		mux.ServeHTTP(e, r)
	})
}
