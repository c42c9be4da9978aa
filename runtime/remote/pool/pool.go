// Package pool generates tokens on other servers, which take token ids and give token ids:
// vLLM's /v1/completions does, and ours. To a session it is what a scheduler is, so the port,
// Harmony, the tools and the store in front are this program's.
//
// What must stay true: no token reaches the reader that the request's grammar forbids; a request
// goes to the server that has computed its beginning, where that one is up and not far busier than
// the others; a server that fails is taken out until it answers again, and what it was doing goes
// on where it was on another one.
package pool

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/ossrun/ossrun/harmony/token"
	"github.com/ossrun/ossrun/runtime/remote/client"
	"github.com/ossrun/ossrun/runtime/sched"
	"github.com/ossrun/ossrun/runtime/session"
)

// Options say which servers.
type Options struct {
	URLs    []string // of their ports
	Key     string
	Model   string        // what they call it; "": the first that each lists
	Context int           // tokens; 0: what they say, the least of them
	Check   time.Duration // between two looks at a server; 0: two seconds
	Notify  func(string)  // told which server fails and which is back; nil: nobody
	// Starting says that the servers are being started: Open looks until one answers, or ctx ends
	Starting bool
}

// Pool is the servers of one model. It is safe for concurrent use.
type Pool struct {
	o       Options
	list    []*server
	context int
	ctx     context.Context // ends at Close
	stop    context.CancelFunc
	looking sync.WaitGroup
	looked  chan struct{} // has a value when a server was looked at since it was last empty

	mu     sync.Mutex
	known  affinity
	turn   int // where the search for the least busy one begins
	closed bool
	counts sched.Counts
}

type server struct {
	client *client.Client

	// under Pool.mu
	model   string
	context int
	asLogs  bool // its ids come as the names of logprobs: vLLM before 0.10.2
	up      bool
	running int
	why     error // it is not up; nil: it is, or it was not looked at yet
	down    bool  // and that was reported
}

// The bounds of one look at a server and of the wait for others when one is up, and how often a
// wait for the first is reported; tests shorten them.
var lookTime, othersTime, sayWaiting = 10 * time.Second, 10 * time.Second, 30 * time.Second

const (
	defaultCheck = 2 * time.Second
	// firstToken bounds the token that a look asks for: a server that has just started compiles
	// and warms up at it.
	firstToken = 10 * time.Minute
	// mostTokens is assumed where no server says how long its context is: the model's own.
	mostTokens = 131072
)

// Open looks at every server. Those that do not answer are looked at again later; one must.
func Open(ctx context.Context, o Options) (*Pool, error) {
	if o.Notify == nil {
		o.Notify = func(string) {}
	}
	if o.Check == 0 {
		o.Check = defaultCheck
	}
	p := &Pool{o: o, known: newAffinity(), looked: make(chan struct{}, 1)}
	for _, url := range o.URLs {
		client, err := client.New(url, o.Key)
		if err != nil {
			return nil, err
		}
		p.list = append(p.list, &server{client: client})
	}
	p.ctx, p.stop = context.WithCancel(context.WithoutCancel(ctx))
	for _, s := range p.list {
		p.looking.Go(func() { p.watch(p.ctx, s) })
	}
	if err := p.awaitFirst(ctx); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	p.context = o.Context
	if p.context == 0 {
		p.context = mostTokens
		for _, s := range p.list {
			if s.context > 0 {
				p.context = min(p.context, s.context)
			}
		}
	}
	return p, nil
}

// awaitFirst waits until a server is up and the others were looked at, or take long. The error says
// why none is.
func (p *Pool) awaitFirst(ctx context.Context) error {
	began := time.Now()
	clock := time.NewTicker(sayWaiting)
	defer clock.Stop()
	late := time.After(othersTime)
	for isLate := false; ; {
		up, pending, failed := 0, 0, []error(nil)
		p.mu.Lock()
		for _, s := range p.list {
			switch {
			case s.up:
				up++
			case s.why == nil:
				pending++
			default:
				failed = append(failed, s.why)
			}
		}
		p.mu.Unlock()
		switch {
		case up > 0 && (pending == 0 || isLate):
			p.reportDown()
			return nil
		case up+pending == 0 && !p.o.Starting:
			return fmt.Errorf("no server can be used: %w", errors.Join(failed...))
		}
		select {
		case <-p.looked:
		case <-late:
			isLate = true
		case <-clock.C:
			p.o.Notify(fmt.Sprintf("waiting for the first answer of %s: %s so far",
				strings.Join(p.o.URLs, ", "), time.Since(began).Round(time.Second)))
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// reportDown tells which servers are not used from the start.
func (p *Pool) reportDown() {
	for _, s := range p.list {
		p.mu.Lock()
		why := s.why
		if !s.up && why == nil {
			why = errors.New("its first answer takes long")
		}
		s.down = why != nil
		p.mu.Unlock()
		if why != nil {
			p.o.Notify(fmt.Sprintf("%s is not used yet: %s", s.client.Root(), cause(why)))
		}
	}
}

// Ready is nil while a server is up.
func (p *Pool) Ready() error {
	if p.up() == 0 {
		return &downError{}
	}
	return nil
}

// Context is how many tokens a prompt and its answer may have together.
func (p *Pool) Context() int { return p.context }

// Close ends the running requests.
func (p *Pool) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.stop()
	p.looking.Wait()
	p.closeClients()
	return nil
}

func (p *Pool) closeClients() {
	for _, s := range p.list {
		s.client.Close()
	}
}

// Stats counts what went through this process.
func (p *Pool) Stats() sched.Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	st := sched.Stats{Counts: p.counts}
	for _, s := range p.list {
		st.Running += s.running
	}
	return st
}

func (p *Pool) up() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.list {
		if s.up {
			n++
		}
	}
	return n
}

// probe asks a server for its model and for one token, and takes it in if it gives token ids.
func (p *Pool) probe(ctx context.Context, s *server) error {
	short, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	listed, err := s.client.Models(short)
	if err != nil {
		return err
	}
	model, length := "", 0
	var names []string
	for _, m := range listed {
		names = append(names, m.ID)
		if model == "" && (p.o.Model == "" || strings.EqualFold(m.ID, p.o.Model)) {
			model, length = m.ID, m.Max
		}
	}
	if model == "" {
		return fmt.Errorf("%s has no model %q, but %s", s.client.Root(), p.o.Model,
			strings.Join(names, ", "))
	}
	asLogs := false
	body := map[string]any{"model": model, "prompt": []int32{token.Start}, "max_tokens": 1,
		"temperature": 0, "return_token_ids": true, "return_tokens_as_token_ids": true,
		"logprobs": 0, "skip_special_tokens": false}
	var answer struct{ Choices []choice }
	long, cancel := context.WithTimeout(ctx, firstToken)
	defer cancel()
	if err := s.client.Call(long, "POST", "/v1/completions", body, &answer); err != nil {
		return err
	}
	if len(answer.Choices) != 1 {
		return fmt.Errorf("%s gives %d answers to one prompt", s.client.Root(),
			len(answer.Choices))
	}
	if len(answer.Choices[0].TokenIDs) == 0 {
		if ids, err := answer.Choices[0].named(); err != nil || len(ids) == 0 {
			return fmt.Errorf("%s gives no token ids, neither by return_token_ids (vLLM from "+
				"0.10.2) nor by return_tokens_as_token_ids", s.client.Root())
		}
		asLogs = true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s.model, s.context, s.asLogs, s.up = model, length, asLogs, true
	return nil
}

// watch looks at a server from time to time, and at once.
func (p *Pool) watch(ctx context.Context, s *server) {
	clock := time.NewTicker(p.o.Check)
	defer clock.Stop()
	for ctx.Err() == nil {
		p.mu.Lock()
		up := s.up
		p.mu.Unlock()
		if up {
			if err := p.healthy(ctx, s); err != nil && ctx.Err() == nil {
				p.failed(s, err)
			}
		} else {
			err := p.probe(ctx, s)
			p.mu.Lock()
			back := err == nil && s.down
			s.down, s.why = s.down && !back, err
			p.mu.Unlock()
			if back {
				p.o.Notify(s.client.Root() + " answers again")
			}
			select {
			case p.looked <- struct{}{}:
			default: // awaitFirst has not seen the last one yet
			}
		}
		select {
		case <-clock.C:
		case <-ctx.Done():
		}
	}
}

// healthy asks as vLLM is asked. A port without the route is one that answers.
func (p *Pool) healthy(ctx context.Context, s *server) error {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	err := s.client.Call(ctx, "GET", "/health", nil, nil)
	if no, ok := errors.AsType[*client.Error](err); ok && no.Status == http.StatusNotFound {
		return nil
	}
	return err
}

// failed takes a server out.
func (p *Pool) failed(s *server, why error) {
	p.mu.Lock()
	was := s.up
	s.up = false
	s.down = s.down || was
	p.known.forget(s)
	p.mu.Unlock()
	if was {
		p.o.Notify(fmt.Sprintf("%s is no longer used: %s", s.client.Root(), cause(why)))
	}
}

// cause is an error without what names the address again.
func cause(err error) error {
	if at, ok := errors.AsType[*url.Error](err); ok {
		err = at.Err
	}
	if call, ok := errors.AsType[*os.SyscallError](err); ok {
		err = call.Err
	}
	return err
}

// busier is by how many requests the server that knows a prompt may be ahead of the least busy one.
const busier = 8

// choose takes a server for a sequence, until release: the one that knows most of it, or the least
// busy. not are left out; nil: none is left.
func (p *Pool) choose(q *stream, not map[*server]bool) *server {
	p.mu.Lock()
	defer p.mu.Unlock()
	var least *server
	for i := range p.list {
		s := p.list[(p.turn+i)%len(p.list)]
		if s.up && !not[s] && (least == nil || s.running < least.running) {
			least = s
		}
	}
	p.turn++
	if least == nil {
		return nil
	}
	chosen := least
	if s := p.known.find(q.ids); s != nil && s.up && !not[s] &&
		s.running <= 2*least.running+busier {
		chosen = s
	}
	p.known.add(q.ids, chosen)
	chosen.running++
	q.taken = chosen
	return chosen
}

func (p *Pool) release(q *stream) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if q.taken != nil {
		q.taken.running--
		q.taken = nil
	}
}

// Submit begins a sequence. The error is sched.ErrClosed, a *sched.ContextLengthError, a
// *session.BusyError, one that wraps session.ErrUnavailable, or a server's refusal.
func (p *Pool) Submit(ctx context.Context, r sched.TokenRequest) (session.TokenStream, error) {
	if len(r.Prompt) == 0 {
		return nil, errors.New("the prompt is empty")
	}
	if err := r.Params.Check(token.VocabSize); err != nil {
		return nil, err
	}
	forced := 0
	if r.Constraint != nil {
		forced = len(r.Constraint.Forced())
	}
	if asked := len(r.Prompt) + forced + 1; asked > p.context {
		return nil, &sched.ContextLengthError{Max: p.context, Asked: asked}
	}
	p.mu.Lock()
	closed := p.closed
	p.mu.Unlock()
	if closed {
		return nil, sched.ErrClosed
	}
	s := newStream(ctx, p, r)
	if err := s.begin(); err != nil {
		s.leave()
		s.closePiece()
		return nil, err
	}
	p.mu.Lock()
	p.counts.PromptTokens += uint64(len(r.Prompt))
	p.mu.Unlock()
	return s, nil
}

const (
	// block is how many tokens are looked up together.
	block = 128
	// mostKnown is how many blocks one generation of the table has.
	mostKnown = 1 << 16
)

// affinity knows the servers of the blocks that were seen lately, in two generations: when the
// younger one is full the older one is dropped.
type affinity struct {
	seed         maphash.Seed
	younger, old map[uint64]*server
}

func newAffinity() affinity {
	return affinity{maphash.MakeSeed(), map[uint64]*server{}, map[uint64]*server{}}
}

// keys calls each with the key of every whole block, which stands for all tokens up to its end,
// until each returns false.
func (a *affinity) keys(ids []int32, each func(key uint64) bool) {
	var h maphash.Hash
	h.SetSeed(a.seed)
	var b [4]byte
	for i, id := range ids {
		binary.LittleEndian.PutUint32(b[:], uint32(id))
		_, _ = h.Write(b[:]) // it cannot fail
		if (i+1)%block == 0 && !each(h.Sum64()) {
			return
		}
	}
}

// find returns the server that has the longest beginning of ids; nil: none has a block of it.
func (a *affinity) find(ids []int32) (last *server) {
	a.keys(ids, func(key uint64) bool {
		s := cmp.Or(a.younger[key], a.old[key])
		if s != nil {
			last = s
		}
		return s != nil
	})
	return last
}

func (a *affinity) add(ids []int32, s *server) {
	a.keys(ids, func(key uint64) bool {
		if len(a.younger) >= mostKnown {
			a.younger, a.old = map[uint64]*server{}, a.younger
		}
		a.younger[key] = s
		return true
	})
}

// forget drops all of a server's: what it had is gone with it.
func (a *affinity) forget(s *server) {
	for _, m := range []map[uint64]*server{a.younger, a.old} {
		for key, has := range m {
			if has == s {
				delete(m, key)
			}
		}
	}
}
