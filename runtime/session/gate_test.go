package session

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A client that sends expensive bodies on 32 connections: while another client is active, it gets a
// quarter of a processor, the other's large piece waits for one piece, and small pieces do not
// wait. Alone it gets a full processor.
func TestDearPiecesLeaveTimeToOthers(t *testing.T) {
	const dear, piece, while = 8 << 20, 90 * time.Millisecond, 20 * time.Second
	worked := func(others bool) (work, longest time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			g := NewGate()
			ctx, end := context.WithTimeout(t.Context(), while)
			defer end()
			var mu sync.Mutex
			var all sync.WaitGroup
			for range 32 {
				all.Go(func() {
					for {
						leave, err := g.Enter(ctx, "bombs", dear)
						if err != nil {
							return
						}
						time.Sleep(piece)
						mu.Lock()
						work += piece
						mu.Unlock()
						leave()
					}
				})
			}
			for ; others && ctx.Err() == nil; time.Sleep(time.Second) {
				began := time.Now()
				leave, _ := g.Enter(ctx, "other", 1000)
				if waited := time.Since(began); waited > 0 {
					t.Errorf("a small piece waits for %v", waited)
				}
				leave()
				if leave, err := g.Enter(ctx, "other", 100_000); err == nil {
					longest = max(longest, time.Since(began))
					leave()
				}
			}
			all.Wait()
		})
		return work, longest
	}
	if work, _ := worked(false); work < while-piece {
		t.Errorf("alone it works for %v of %v", work, while)
	}
	if work, longest := worked(true); work > while*3/10 || work < while/5 || longest > piece {
		t.Errorf("beside another it works for %v of %v, and the other waits for %v", work, while,
			longest)
	}
}

// A large prompt is rendered inside the gate, a small one next to it.
func TestLargePromptsWaitAtTheGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const hi = "<|channel|>final<|message|>Hi.<|return|>"
		m, s := scripted(hi, hi)
		if err := m.gate.Acquire(t.Context(), maxPreparing); err != nil {
			t.Fatal(err)
		}
		ended := make(chan Result, 1)
		go func() {
			_, r := run(t, m, Request{Messages: []Message{User(strings.Repeat("x ", SmallRequest))}})
			ended <- r
		}()
		synctest.Wait()
		if run(t, m, Request{Messages: []Message{User("hi")}}); len(s.prompts) != 1 {
			t.Errorf("%d prompts are rendered while the gate is closed", len(s.prompts))
		}
		m.gate.Release(maxPreparing)
		if r := <-ended; r.Answer != "Hi." || len(s.prompts) != 2 {
			t.Errorf("%q, %d prompts", r.Answer, len(s.prompts))
		}
	})
}
