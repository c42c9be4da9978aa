package device

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/models/modeltest"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// What a step's state says, that its room is enough, and that steps which have it in one place keep
// apart.

// Single rows of a sequence are listed in the state, for the kernel that attends
// for them.
func TestStateNamesRowsThatStandAlone(t *testing.T) {
	l := layout{bucket: 8, seqs: 4, most: 64}
	state := make([]byte, l.bytes())
	b := &engine.Batch{Tokens: make([]int32, 7), Seqs: []engine.SeqRows{
		{Start: 5, Rows: 1, Full: []int32{1}, Window: []int32{1}},
		{Start: 0, Rows: 3, Full: []int32{2}, Window: []int32{2}},
		{Start: 40, Rows: 1, Full: []int32{3, 4}, Window: []int32{3, 4}},
		{Start: 31, Rows: 2, Full: []int32{5, 6}, Window: []int32{5, 6}},
	}}
	l.write(state, b, 128, 4)
	word := func(i int) int32 { return int32(binary.NativeEndian.Uint32(state[4*i:])) }
	var alone []int32
	for i := range int(word(3)) {
		alone = append(alone, word(int(l.offset(aloneArray))/4+i))
	}
	if !slices.Equal(alone, []int32{0, 4}) {
		t.Errorf("rows %v stand alone", alone)
	}
}

// TestStateHasRoom: whatever sequences a step has, as many as it may and up to the end of the
// context, its tables find room; and at worst they leave a page a sequence free.
func TestStateHasRoom(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	s := modeltest.Tiny()
	s.MaxPosition, s.Window = 1000, 40
	fullest := map[string]float64{}
	for range 4000 {
		rows := 1 + random.IntN(40)
		o := engine.Settings{KVCacheDtype: []string{"bf16", engine.KVFP8}[random.IntN(2)],
			MaxNumSeqs: random.IntN(8)}
		p := &engine.Program{Spec: s, Settings: o, Rows: rows}
		l := layoutOf(p)
		b := &engine.Batch{Tokens: make([]int32, rows), Twins: make([]int32, 1)}
		table := make([]int32, s.MaxPosition/engine.PageTokens+1)
		for left := rows; left > 0; {
			n := 1 + random.IntN(left)
			if len(b.Seqs) == o.Seqs(rows)-1 {
				n = left
			}
			start := s.MaxPosition - n - random.IntN(40)
			if random.IntN(4) == 0 {
				start = random.IntN(start)
			}
			b.Seqs = append(b.Seqs, engine.SeqRows{Start: int32(start), Rows: int32(n), Full: table,
				Window: table})
			left -= n
		}
		used := l.write(make([]byte, l.bytes()), b, s.Window, s.ExpertsPerToken)
		if len(b.Seqs) == o.Seqs(rows) {
			fullest[o.KVCacheDtype] = max(fullest[o.KVCacheDtype], float64(used)/float64(l.bytes()))
		}
	}
	for kv, share := range fullest {
		if share < 0.9 {
			t.Errorf("%s: no state of thousands filled more than %.2f of its room", kv, share)
		}
	}
}

// TestStepsShareTheirState: steps of other sizes, and one that rebuilds, come between a step and
// the choice of its token, and nothing changes.
func TestStepsShareTheirState(t *testing.T) {
	for _, api := range apis {
		t.Run(string(api), func(t *testing.T) {
			dev, _ := open(t, api)
			eng, err := engine.New(dev, tiny(t), engine.Settings{Pages: 4, MaxNumBatchedTokens: 5,
				MaxLogits: 2})
			hosttest.Check(t, err)
			defer eng.Close()
			rebuild := &engine.Batch{Tokens: []int32{1, 2, 3}, Rebuild: true,
				Seqs: []engine.SeqRows{{Rows: 3, Full: []int32{0}, Window: []int32{3}}}}
			choice := []engine.SamplingParams{{Draw: engine.Draw{Temperature: 1, TopP: 1, Seed: 4,
				Position: 3}, Logprobs: 2}}
			run := func(between func() error) engine.SampledToken {
				t.Helper()
				var chosen [1]engine.SampledToken
				hosttest.Check(t, errors.Join(eng.Step(t.Context(), prompt(),
					make([]float32, eng.Spec().Vocab)), eng.Queue(t.Context(), next(), nil),
					between(), eng.Sample(choice), eng.Wait(chosen[:])))
				return chosen[0]
			}
			alone := run(func() error { return nil })
			among := run(func() error { return eng.Step(t.Context(), rebuild, nil) })
			if alone.ID != among.ID || alone.Logprob != among.Logprob ||
				!slices.Equal(alone.Top, among.Top) {
				t.Errorf("%+v alone, %+v with a rebuild in front of the choice", alone, among)
			}
		})
	}
}

// TestMoreSequencesThanRoom: the engine refuses them, and so does a step that is asked by somebody
// else.
func TestMoreSequencesThanRoom(t *testing.T) {
	dev, _ := open(t, driver.CUDA)
	eng := hosttest.Must(engine.New(dev, tiny(t), engine.Settings{Pages: 4, MaxNumBatchedTokens: 4,
		MaxNumSeqs: 2}))(t)
	defer eng.Close()
	one := func(page int32) engine.SeqRows {
		return engine.SeqRows{Rows: 1, Full: []int32{page}, Window: []int32{page}}
	}
	many := &engine.Batch{Tokens: make([]int32, 3), Seqs: []engine.SeqRows{one(0), one(1), one(2)}}
	const want = "rows of 3 sequences are in a step, this engine was made for 2"
	if err := eng.Step(t.Context(), many, nil); err == nil || err.Error() != want {
		t.Error(err)
	}
	if err := eng.Queue(t.Context(), many, nil); err == nil || err.Error() != want {
		t.Error(err)
	}
	s := compiled(t, dev, engine.Settings{Pages: 4, MaxNumSeqs: 2}, 3)
	if err := s.Forward(many, nil, nil); err == nil ||
		err.Error() != "rows of 3 sequences are in a step, this one has room for 2" {
		t.Error(err)
	}
}

// TestCloseUnderWork: a step is closed while its work is queued and tokens are on their way, and by
// several at once; all is freed, and later users get the error.
func TestCloseUnderWork(t *testing.T) {
	for _, api := range apis {
		t.Run(string(api), func(t *testing.T) {
			dev, f := open(t, api)
			s := compiled(t, dev, engine.Settings{Pages: 4}, 1)
			choice := []engine.SamplingParams{{Draw: engine.Draw{TopP: 1}, Logprobs: -1}}
			hosttest.Check(t, errors.Join(s.Queue(next(), nil), s.Sample(choice),
				s.Queue(next(), []int32{0})))
			var all sync.WaitGroup
			for range 3 {
				all.Go(func() {
					if err := s.Close(); err != nil {
						t.Error(err)
					}
				})
				all.Go(func() {
					if err := s.Sample(choice); err != nil && !errors.Is(err, engine.ErrClosed) {
						t.Error(err)
					}
				})
			}
			all.Wait()
			for what, err := range map[string]error{"Queue": s.Queue(next(), nil),
				"Sample": s.Sample(choice), "Start": s.Start(next()), "Finish": s.Finish(),
				"Forward": s.Forward(next(), nil, nil)} {
				if !errors.Is(err, engine.ErrClosed) {
					t.Errorf("%s of a closed step: %v", what, err)
				}
			}
			if len(dev.shared) > 0 || f.Leaks() == "" {
				t.Errorf("the card keeps %v", dev.shared)
			}
		})
	}
}
