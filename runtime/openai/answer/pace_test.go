package answer

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
)

// ticking is a turn of tokens, one every while.
func ticking(t *testing.T, every time.Duration, tokens int) session.Turn {
	wait := sessiontest.Do{Call: func() { time.Sleep(every) }}
	events := slices.Repeat([]session.Event{wait, session.Answer{Text: "x"}}, tokens)
	m := sessiontest.Model{Turns: [][]session.Event{append(events,
		sessiontest.Done(session.FinishStop))}}
	return hosttest.Must(m.Start(t.Context(), session.Request{}))(t)
}

// written is how many tokens each event of a stream has, and the longest wait for one, where others
// are open at the same time.
func written(t *testing.T, p *pace, others int, every time.Duration, tokens int) (sizes []int,
	longest time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		for range others {
			defer p.enter()()
		}
		defer p.enter()()
		last := time.Now()
		err := follower{turns: []session.Turn{ticking(t, every, tokens)}, cancel: func() {},
			silence: 15 * time.Second, pace: p, batch: func(batch []arrival) error {
				n := 0
				for _, a := range batch {
					if e, ok := a.event.(session.Answer); ok {
						n += len(e.Text)
					}
				}
				if n > 0 {
					sizes, longest = append(sizes, n), max(longest, time.Since(last))
				}
				last = time.Now()
				return nil
			}}.run()
		if err != nil {
			t.Error(err)
		}
	})
	sum := 0
	for _, n := range sizes {
		sum += n
	}
	if sum != tokens {
		t.Errorf("%d of %d tokens came", sum, tokens)
	}
	return sizes, longest
}

// One reader gets each token by itself. A thousand get several in an event, none held longer than
// 250 ms beyond its step; the first is never held. --stream-interval gathers as many as it says,
// whatever the load.
func TestStreamsArePacedByTheLoad(t *testing.T) {
	const every = 10 * time.Millisecond
	if sizes, longest := written(t, &pace{}, 0, every, 100); len(sizes) != 100 || longest > every {
		t.Errorf("idle: %d events for 100 tokens, one after %v", len(sizes), longest)
	}
	if sizes, longest := written(t, &pace{}, 99, every, 100); sizes[0] != 1 || len(sizes) < 40 ||
		len(sizes) > 60 || longest > 2*every {
		t.Errorf("100 streams: events of %v tokens, one after %v", sizes, longest)
	}
	if sizes, longest := written(t, &pace{}, 999, every, 1000); sizes[0] != 1 || len(sizes) > 60 ||
		longest > maxDelay+every {
		t.Errorf("1,000 streams: events of %v tokens, one after %v", sizes, longest)
	}
	if sizes, longest := written(t, &pace{}, 9999, every, 1000); len(sizes) < 35 ||
		longest > maxDelay+every {
		t.Errorf("10,000 streams: events of %v tokens, one after %v", sizes, longest)
	}
	for _, others := range []int{0, 999} {
		sizes, _ := written(t, &pace{tokens: 20}, others, every, 101)
		if want := []int{1, 20, 20, 20, 20, 20}; !slices.Equal(sizes, want) {
			t.Errorf("interval 20: events of %v tokens", sizes)
		}
	}
	if sizes, _ := written(t, &pace{tokens: 1}, 999, every, 100); len(sizes) != 100 {
		t.Errorf("interval 1 under load: %d events for 100 tokens", len(sizes))
	}
}
