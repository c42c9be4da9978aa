// A turn holds its model: it gives it back when it has ended, or when its client is gone and reads no further.

package loaded

import (
	"context"
	"sync"

	"github.com/ossrun/ossrun/runtime/session"
)

type heldTurn struct {
	session.Turn
	done func()
}

func (s *Set) follow(ctx context.Context, e *entry, t session.Turn) session.Turn {
	once := sync.OnceFunc(func() { s.release(e) })
	stop := context.AfterFunc(ctx, once)
	return &heldTurn{t, func() {
		stop()
		once()
	}}
}

// Next gives the model back with the last event.
func (t *heldTurn) Next() (session.Event, bool) {
	e, ok := t.Turn.Next()
	if _, last := e.(session.Done); last || !ok {
		t.done()
	}
	return e, ok
}
