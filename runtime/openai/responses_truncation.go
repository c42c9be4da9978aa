// truncation "auto": a conversation that does not fit into the context loses its oldest messages.
//
// What must stay true: the last message stays; a result never loses its call; the client is told
// how many messages the model has not read.

package openai

import (
	"context"
	"errors"
	"strconv"

	"github.com/ossrun/ossrun/harmony"
	"github.com/ossrun/ossrun/runtime/sched"
	"github.com/ossrun/ossrun/runtime/session"
)

// truncatedHeader says how many messages were dropped.
const truncatedHeader = "X-Ossrun-Truncated"

// truncating is a Runner that drops the oldest messages until a request fits.
type truncating struct {
	session.Runner
	dropped int // of the request that lost most
}

// tell tells the client what was dropped at the start of its turn.
func (t *truncating) tell(e *exchange) {
	if t != nil && t.dropped > 0 {
		e.tell(truncatedHeader, strconv.Itoa(t.dropped)+
			" of the oldest messages do not fit into the context and were left out")
	}
}

func (t *truncating) Start(ctx context.Context, r session.Request) (session.Turn, error) {
	all := r.Messages
	dropped := 0
	for {
		turn, err := t.Runner.Start(ctx, r)
		var long *sched.ContextLengthError
		if !errors.As(err, &long) {
			t.dropped = max(t.dropped, dropped)
			return turn, err
		}
		next := dropped + max(1, (len(all)-dropped)/8)
		for next < len(all) && all[next].Role == harmony.RoleTool { // its call is gone
			next++
		}
		if next >= len(all) {
			return nil, err
		}
		dropped = next
		r.Messages = all[dropped:]
	}
}
