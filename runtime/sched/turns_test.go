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
// with one like it of 80; with others of one sequence a step takes half as long again as
// theirs would without it, and each of the 40 has its turn.
func TestAFloodTakesTurns(t *testing.T) {
	const flood = 40
	rows := map[int]int{0: flood, 1: 3, 3: 6, flood: 2 * flood} // of a step, by the others
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
				if waits := s.counts.Steps - q.lastStep; q.rests && waits > 2+flood {
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

// If clients come and go next to one of 40 sequences, on a machine where a row takes 10 ms, the
// first token of who comes takes at most 2.5 times what it takes alone, though the flood was alone
// just before. If the flood has prompts to compute, it takes the step that runs and one more.
//
// SECURITY.md: While another runs, and for two seconds after, prompts are computed in equal
// parts, and texts of over 32 KiB read in a fourth of the time.
func TestWhoComesIsNotDelayedByAFlood(t *testing.T) {
	const row, newcomer, budget, flood = 10 * time.Millisecond, 20, 256, 40
	for _, c := range []struct {
		name           string
		prompt, tokens int // of each sequence of the flood
		most           time.Duration
	}{
		{"one that decodes", 20, 400, 5 * newcomer * row / 2},
		{"one that prefills", 1000, 1, 2 * budget * row},
	} {
		o := Options{Settings: engine.Settings{Pages: 20_000, MaxNumBatchedTokens: budget,
			MaxNumSeqs: 100}}
		sim := newSim(o, 97, 128)
		var clock atomic.Int64
		o.now = func() time.Time { return time.Unix(0, clock.Load()) }
		var s *Scheduler
		submitted := make(chan struct{})
		ask := func(client string, prompt []int32, tokens int) *Stream {
			return submit(t, s, t.Context(), TokenRequest{Prompt: prompt, MaxTokens: tokens,
				Params: sample.Params{LogitBias: map[int32]float32{3: -100}},
				Share:  &Share{Client: client}})
		}
		var came []*Stream
		o.launch = func(*engine.Batch) {
			<-submitted
			if n := s.counts.Steps; n > 20 && n%4 == 0 && len(s.running) >= flood/2 {
				own := prompt(newcomer)
				own[0], own[1] = 95, int32(len(came)%97) // no other has it
				own[2] = int32(len(came) / 97)
				came = append(came, ask("newcomer", own, 1))
			}
		}
		o.prepared = func() { clock.Add(int64(len(s.batch.Tokens)) * int64(row)) } // the step ends
		s = New(sim, o)
		var streams []*Stream
		for i := range flood {
			own := prompt(c.prompt)
			own[0] = int32(i)
			streams = append(streams, ask("flood", own, c.tokens))
		}
		close(submitted)
		for _, st := range streams {
			drain(t, st)
		}
		s.Close()
		if len(came) < 10 {
			t.Fatalf("%s: only %d came", c.name, len(came))
		}
		for i, st := range came[1 : len(came)-1] { // the first meets a flood that was alone
			if first := st.Timing().TTFT; first > c.most {
				t.Errorf("%s: number %d waits for %v, more than %v", c.name, i+1, first, c.most)
				break
			}
		}
	}
}
