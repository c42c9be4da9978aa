package sched

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/sample"
)

// A client of 40 sequences on a machine where a row takes 10 ms: alone it has steps of 40 rows, and
// beside one like it of 80; beside others of one sequence a step takes hardly twice what theirs
// would take without it, and each of the 40 has its turn.
func TestAFloodTakesTurns(t *testing.T) {
	const flood = 40
	rows := map[int]int{0: flood, 1: 4, 3: 8, flood: 2 * flood} // of a step, by the others
	for others, most := range rows {
		o := Options{Settings: engine.Settings{Pages: 2000, MaxNumBatchedTokens: 256,
			MaxNumSeqs: 100}}
		sim := newSim(o, 97, 128)
		var clock atomic.Int64
		o.now = func() time.Time { return time.Unix(0, clock.Load()) }
		var s *Scheduler
		submitted := make(chan struct{})
		steps := map[int]int{} // of so many rows, while all decode
		o.launch = func(b *engine.Batch) {
			<-submitted
			clock.Add(int64(len(b.Tokens)) * int64(10*time.Millisecond))
			decode := 0
			for _, q := range s.running {
				if q.computed >= q.prompt {
					decode++
				}
				if waits := s.counts.Steps - q.ran; q.rests && waits > 2+flood {
					t.Errorf("a sequence waits for %d steps", waits)
				}
			}
			if decode == flood+others {
				steps[len(b.Tokens)]++
			}
		}
		s = New(sim, o)
		ask := func(client string, tokens int) *Stream {
			return submit(t, s, t.Context(), TokenRequest{Prompt: prompt(20), MaxTokens: tokens,
				Params: sample.Params{LogitBias: map[int32]float32{3: -100}},
				Share:  &Share{Client: client}})
		}
		var streams []*Stream
		for range flood {
			streams = append(streams, ask("flood", 200))
		}
		for i := range others {
			streams = append(streams, ask(fmt.Sprint("other ", i*(flood-others)), 100))
		}
		close(submitted)
		for _, st := range streams {
			if drain(t, st); st.Finish() != FinishLength {
				t.Errorf("a stream ended %q", st.Finish())
			}
		}
		s.Close()
		wider := 0
		for n, times := range steps {
			if n > most {
				wider += times
			}
		}
		if wider > 3 || steps[most] < 50 { // the first of all is as wide as it was planned
			t.Errorf("beside %d others there are steps of so many rows: %v", others, steps)
		}
	}
}
