// Limits of a request's named key. Without a key every model may be used without limits.

package answer

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/ossrun/ossrun/runtime/openai/fields"
	"github.com/ossrun/ossrun/runtime/session"
)

// Admit counts a request that is about to generate, unless its key's limit is reached.
func (e *Exchange) Admit() *fields.Fault {
	retryAfter, why := e.Key.Admit()
	if why == "" {
		return nil
	}
	f := &fields.Fault{Status: http.StatusTooManyRequests, Kind: "rate_limit_error",
		Code: "rate_limit_exceeded", Message: why}
	return f.WithRetryAfter(int((retryAfter + time.Second - 1) / time.Second))
}

// FindModel returns a model that the client may use; "" is the first such model.
func (d *Driver) FindModel(ctx context.Context, e *Exchange, name string) (session.Runner, error) {
	if e.Key == nil {
		return d.Models.Get(ctx, name)
	}
	if name == "" {
		for _, m := range d.AllModels(e) {
			return d.Models.Get(ctx, m.ID)
		}
	}
	if !d.mayUse(e, name) {
		return nil, notForKey(name)
	}
	runner, err := d.Models.Get(ctx, name)
	if err == nil && !d.mayUse(e, runner.ID()) { // the list did not have this name
		err = notForKey(name)
	}
	return runner, err
}

func notForKey(name string) error {
	return fields.Refusal(http.StatusNotFound, "model", "model_not_found", "there is no model "+
		fields.Brief(name)+" for this key; GET /v1/models lists those that it may use")
}

// mayUse tells whether the client may use a model under a name that the list may not have.
func (d *Driver) mayUse(e *Exchange, name string) bool {
	for _, m := range d.Models.List() {
		names := append([]string{m.ID}, m.Aliases...)
		for _, n := range names {
			if strings.EqualFold(n, name) {
				return e.Key.MayUseModel(names...)
			}
		}
	}
	return true
}
