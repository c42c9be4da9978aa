//go:build linux

package worker

import (
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/sample"
	"github.com/ossrun/ossrun/runtime/sched"
)

// TestKilledWhileServing: kill -9 of the worker under a scheduler ends the running request with the
// reason; the next one runs on a new worker and gives the tokens that the first would have got.
func TestKilledWhileServing(t *testing.T) {
	for _, kind := range []string{"cpu", "CUDA"} {
		t.Run(kind, func(t *testing.T) {
			ckpt := tiny(t)
			options := engine.Settings{Pages: 16, MaxNumBatchedTokens: 8}
			dev := opened(t, kind, Options{})
			eng, err := dev.Load(t.Context(), ckpt, options, nil)
			hosttest.Check(t, err)
			var faults []error
			s := sched.New(eng, sched.Options{Settings: engine.Settings{Pages: 16,
				MaxNumBatchedTokens: 8, MaxNumSeqs: 2, MaxModelLen: 256},
				Restart: func(fault error) (sched.StepEngine, error) {
					faults = append(faults, fault)
					if err := errors.Join(eng.Close(), dev.Close()); err != nil {
						t.Error(err)
					}
					dev = opened(t, kind, Options{})
					eng, err = dev.Load(t.Context(), ckpt, options, nil)
					return eng, err
				}})
			request := func(tokens int) *sched.Stream {
				p := sample.Defaults()
				p.Seed, p.IgnoreEOS = 3, true
				st, err := s.Submit(t.Context(), sched.TokenRequest{Prompt: []int32{5, 6, 7},
					Params:    p,
					MaxTokens: tokens})
				hosttest.Check(t, err)
				return st
			}
			read := func(st *sched.Stream) (ids []int32) {
				for {
					token, more := st.Next(t.Context())
					if !more {
						return ids
					}
					ids = append(ids, token.ID)
				}
			}
			first := dev.c.p.os.Pid // dev is the scheduler's from the first request on
			want := read(request(6))
			st := request(200)
			if _, more := st.Next(t.Context()); !more {
				t.Fatal(st.Err())
			}
			hosttest.Check(t, syscall.Kill(first, syscall.SIGKILL))
			read(st)
			var fault *sched.EngineError
			if !errors.As(st.Err(), &fault) || !errors.Is(st.Err(), ErrLost) ||
				!strings.Contains(st.Err().Error(), "the GPU worker ended: signal: killed") {
				t.Errorf("%v", st.Err())
			}
			again := request(6)
			if got := read(again); !slices.Equal(got, want) || len(want) != 6 ||
				again.Err() != nil {
				t.Errorf("%v, before %v: %v", got, want, again.Err())
			}
			if err := errors.Join(s.Close(), eng.Close()); err != nil {
				t.Error(err)
			}
			if len(faults) != 1 {
				t.Errorf("%d restarts: %v", len(faults), faults)
			}
		})
	}
}
