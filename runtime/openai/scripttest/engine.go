// Package scripttest serves a scripted model through everything that a real one uses: the rendering
// of prompts, the scheduler, the grammar of the turn, the parsing of its tokens, the port. SDKs and
// agents are tested against it.
//
// The engine stores each position's token in the KV pages that the scheduler assigns, as a device
// stores keys and values. A row's conversation is read back through its block table, so an error in
// the tables changes the output. What must stay true: a forbidden token is never sampled; the
// output depends on the row's own sequence only.
package scripttest

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"
	"time"

	"github.com/ossrun/ossrun/harmony/token"
	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/runtime/engine"
)

// slot is a position in a page: its token, and the progress in its turn's plan; a nil plan is
// unknown.
type slot struct {
	token int32
	at    int32
	plan  *plan
}

// Engine is a sched.Engine that chooses tokens itself, as a GPU does.
type Engine struct {
	spec     models.Spec
	settings engine.Settings
	step     time.Duration // how long a step takes

	mu      sync.Mutex
	pages   [][engine.PageTokens]slot
	rows    []where // rows that the last queued step samples
	last    []int32 // tokens of the previous sample
	waiting []sampled
	began   time.Time // when the device begins the last queued step
	free    time.Time // when the device has done its queued work
}

// sampled are the tokens of a step, and when the device would have them.
type sampled struct {
	tokens []engine.SampledToken
	ready  time.Time
}

// where is a place in a sequence: its last position, and the block table of all of them.
type where struct {
	full []int32
	pos  int
}

// NewEngine makes an engine with these settings, whose steps take some time each.
func NewEngine(s engine.Settings, step time.Duration) *Engine {
	return &Engine{
		spec: models.Spec{Name: "script", Layers: 2, Vocab: token.VocabSize, Window: 128,
			MaxPosition: 131072, EOS: []int32{token.Return, token.EndOfText, token.Call}},
		settings: s, step: step, pages: make([][engine.PageTokens]slot, s.Pages),
	}
}

func (e *Engine) Spec() models.Spec         { return e.spec }
func (e *Engine) Settings() engine.Settings { return e.settings }
func (e *Engine) Caps() engine.Caps         { return engine.Caps{Samples: true} }
func (e *Engine) Cache() engine.Region      { return cache{e} }

func (e *Engine) Plan() engine.Plan {
	return engine.Plan{PageBytes: engine.PageTokens * slotBytes, Pages: len(e.pages)}
}

// cache is the pool's memory: it copies the tokens of pages.
type cache struct{ e *Engine }

const slotBytes = 4

func (c cache) Bytes() int64 { return int64(len(c.e.pages)) * engine.PageTokens * slotBytes }
func (c cache) Free() error  { return nil }

func (c cache) each(offset int64, b []byte, do func(*slot, []byte)) error {
	if offset%slotBytes != 0 || offset < 0 || offset+int64(len(b)) > c.Bytes() {
		return fmt.Errorf("%d bytes at %d are outside of the pool", len(b), offset)
	}
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	for i := 0; i+slotBytes <= len(b); i += slotBytes {
		at := (int(offset) + i) / slotBytes
		do(&c.e.pages[at/engine.PageTokens][at%engine.PageTokens], b[i:])
	}
	return nil
}

// Read copies tokens out.
func (c cache) Read(offset int64, dst []byte) error {
	return c.each(offset, dst, func(s *slot, b []byte) {
		binary.LittleEndian.PutUint32(b, uint32(s.token))
	})
}

// Write copies tokens in.
func (c cache) Write(offset int64, src []byte) error {
	return c.each(offset, src, func(s *slot, b []byte) {
		*s = slot{token: int32(binary.LittleEndian.Uint32(b))}
	})
}

func (e *Engine) at(w where, pos int) *slot {
	return &e.pages[w.full[pos/engine.PageTokens]][pos%engine.PageTokens]
}

// Queue reads the rows into the pages.
func (e *Engine) Queue(ctx context.Context, b *engine.Batch, from []int32) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.began = time.Now(); e.began.Before(e.free) {
		e.began = e.free
	}
	rows := make([]where, 0, len(b.Tokens))
	for _, q := range b.Seqs {
		for r := range q.Rows {
			row, w := len(rows), where{q.Full, int(q.Start + r)}
			id := b.Tokens[row]
			if from != nil && from[row] >= 0 {
				id = e.last[from[row]]
			}
			rows = append(rows, w)
			if !b.Rebuild {
				*e.at(w, w.pos) = e.next(w, id)
			}
		}
	}
	e.rows = e.rows[:0]
	for _, r := range b.LogitRows {
		w := rows[r]
		e.rows = append(e.rows, where{append([]int32(nil), w.full...), w.pos})
	}
	return nil
}

// next is the slot of a position whose token is id.
func (e *Engine) next(w where, id int32) slot {
	s := slot{token: id}
	if w.pos == 0 {
		return s
	}
	if before := *e.at(w, w.pos-1); before.plan != nil && before.plan.token(before.at) == id {
		s.plan, s.at = before.plan, before.at+1
	}
	return s
}

// Sample chooses a token for each requested row.
func (e *Engine) Sample(choices []engine.SamplingParams) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	chosen := make([]engine.SampledToken, len(choices))
	e.last = make([]int32, len(choices))
	took := e.step
	for i, c := range choices {
		var slow time.Duration
		chosen[i], slow = e.choose(e.rows[i], c)
		e.last[i] = max(chosen[i].ID, 0)
		took = max(took, slow)
	}
	// a device samples after the step, once it has the parameters
	if e.free = e.began.Add(took); e.free.Before(time.Now()) {
		e.free = time.Now()
	}
	e.waiting = append(e.waiting, sampled{chosen, e.free})
	return nil
}

// choose returns the token that follows a place.
func (e *Engine) choose(w where, c engine.SamplingParams) (engine.SampledToken, time.Duration) {
	s := e.at(w, w.pos)
	ranked := offScript()
	if s.plan == nil {
		e.recall(w, s)
	}
	var slow time.Duration
	if s.plan != nil {
		slow = s.plan.slow
		ranked = s.plan.ranked(s.at)
	}
	for id := range ranked {
		if id == fails {
			return engine.SampledToken{ID: engine.NotFinite}, slow
		}
		if c.Mask == nil || c.Mask[id/64]>>(id%64)&1 == 1 {
			return withLogprobs(id, c.Logprobs), slow
		}
	}
	return engine.SampledToken{ID: engine.NothingAllowed}, slow
}

// recall reads the full sequence and finds its place in the script.
func (e *Engine) recall(w where, s *slot) {
	ids := make([]int32, w.pos+1)
	for i := range ids {
		ids[i] = e.at(w, i).token
	}
	s.plan, s.at = planFor(ids)
}

// withLogprobs adds n rivals, each less likely than the one before.
func withLogprobs(id int32, n int) engine.SampledToken {
	t := engine.SampledToken{ID: id, Logprob: -0.01}
	for i := range int32(max(n, 0)) {
		other := (id + i) % 1000
		if i == 0 {
			other = id
		}
		t.Top = append(t.Top, engine.TokenLogprob{ID: other, Logprob: -0.01 - 5*float32(i)})
	}
	return t
}

// Wait gives the tokens of the oldest sample.
func (e *Engine) Wait(chosen []engine.SampledToken) error {
	e.mu.Lock()
	if len(e.waiting) == 0 || len(chosen) != len(e.waiting[0].tokens) {
		e.mu.Unlock()
		return fmt.Errorf("%d samples wait, %d tokens are asked for", len(e.waiting), len(chosen))
	}
	oldest := e.waiting[0]
	e.waiting = e.waiting[1:]
	e.mu.Unlock()
	copy(chosen, oldest.tokens)
	time.Sleep(time.Until(oldest.ready))
	return nil
}

// Step is used if the host samples, as with many penalties: the chosen token's logit is high.
func (e *Engine) Step(ctx context.Context, b *engine.Batch, logits []float32) error {
	if err := e.Queue(ctx, b, nil); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	clear(logits)
	for i, w := range e.rows {
		t, _ := e.choose(w, engine.SamplingParams{})
		if t.ID >= 0 {
			logits[i*e.spec.Vocab+int(t.ID)] = 100
		}
	}
	return nil
}
