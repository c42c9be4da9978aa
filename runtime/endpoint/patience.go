// Asking again a port that is busy, broken or gone for a moment.

package endpoint

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// Patience says how often a request is sent, and how long to wait after the first try. The pause
// doubles from one try to the next, up to a minute, unless the port says how long to wait.
type Patience struct {
	Tries int
	Pause time.Duration
}

// Do sends until it works, is refused for good, or patience or ctx ends; it returns the last error.
func (p Patience) Do(ctx context.Context, send func() error) error {
	for try := 0; ; try++ {
		err := send()
		if err == nil || ctx.Err() != nil || !passing(err) || try+1 >= p.Tries {
			return err
		}
		pause := min(p.Pause<<try, time.Minute)
		var refused *Error
		if errors.As(err, &refused) && refused.RetryAfter > 0 {
			pause = min(refused.RetryAfter, time.Minute)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

// passing tells whether another try may succeed.
func passing(err error) bool {
	var e *Error
	if !errors.As(err, &e) {
		return true // the connection
	}
	return e.Status >= 500 || e.Status == http.StatusTooManyRequests ||
		e.Status == http.StatusRequestTimeout
}
