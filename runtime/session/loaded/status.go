// What a set holds now, for the metrics, for /v1/models and for ossrun ps.

package loaded

import (
	"slices"
	"strings"
	"time"
)

// State of a model in a set.
type State string

const (
	Loading State = "loading"
	Ready   State = "ready"
	Leaving State = "leaving" // no new turn; it is closed after the last one
)

// Status is one model.
type Status struct {
	Key   string
	State State
	Model Model     // nil while it is loading
	Turns int       // that run, waiting in the scheduler's queue included
	Until time.Time // when it is unloaded if nobody asks for it; zero: not planned
}

// Status lists the models that are not absent, by their keys.
func (s *Set) Status() []Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]Status, 0, len(s.entries))
	for _, e := range s.entries {
		st := Status{Key: e.key, State: Ready, Model: e.model, Turns: e.turns}
		switch {
		case e.model == nil:
			st.State = Loading
		case e.leaving:
			st.State = Leaving
		case e.idle != nil:
			st.Until = e.until
		}
		list = append(list, st)
	}
	slices.SortFunc(list, func(a, b Status) int { return strings.Compare(a.Key, b.Key) })
	return list
}

// Find is the loaded model of a key, nil if it is not there.
func (s *Set) Find(key string) Model {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.entries[key]; e != nil {
		return e.model
	}
	return nil
}
