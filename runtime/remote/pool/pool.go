// Package pool generates tokens on other servers that accept and return token ids, as the
// /v1/completions of vLLM and of ossrun. To a session it acts as a scheduler, so the port, Harmony,
// the tools and the store stay in this program.
//
// What must stay true: no token that the request's grammar forbids reaches the reader; a request
// goes to the server that has its prefix cached, if it is up and not far busier than the others; a
// failed server is not used until it answers again, and its requests resume on another one.
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
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ossrun/ossrun/harmony/token"
	"github.com/ossrun/ossrun/runtime/remote/client"
	"github.com/ossrun/ossrun/runtime/sched"
	"github.com/ossrun/ossrun/runtime/session"
)

type Options struct {
	URLs    []string // of their ports; dns+http://name:port is every address of the name
	Key     string
	Model   string        // the servers' name for it; "": one of Names, or the first of each
	Names   []string      // of the model, in lower case
	Context int           // tokens; 0: the least that a server reports
	Check   time.Duration // interval of a server's checks; 0: two seconds
	Notify  func(string)  // receives messages about servers that fail and come back; may be nil
	// Starting says that the servers are being started: Open waits until one answers, or ctx ends
	Starting bool
}

// Pool is the servers of one model. It is safe for concurrent use.
type Pool struct {
	o        Options
	names    []*url.URL // whose addresses are servers
	context  int
	ctx      context.Context // ends at Close
	stop     context.CancelFunc
	watchers sync.WaitGroup
	checked  chan struct{} // has a value if a server was checked since the last read

	mu       sync.Mutex
	list     []*server
	affinity affinity
	turn     int // start of the next search for the least busy server
	closed   bool
	counts   sched.Counts
}

type server struct {
	client *client.Client
	name   *url.URL           // whose address it is; nil: none
	stop   context.CancelFunc // ends its checks

	// guarded by Pool.mu
	model         string
	context       int
	idsInLogprobs bool // its ids arrive as the names of logprobs: vLLM before 0.10.2
	up            bool
	running       int
	lastErr       error // why it is not up; nil: it is, or it was not checked yet
	reportedDown  bool  // and that was reported
}

// Limits for checking a server and for waiting for the others once one is up, and how often a wait
// for the first is reported. Tests shorten them.
var checkTimeout, othersTimeout, waitNotice = 10 * time.Second, 10 * time.Second, 30 * time.Second

const (
	defaultCheck = 2 * time.Second
	// firstTokenTimeout limits the request for one token in a check: a server that has just started
	// compiles and warms up during it.
	firstTokenTimeout = 10 * time.Minute
	// defaultContext is assumed if no server reports its context: the model's own.
	defaultContext = 131072
)

// Open checks every server. At least one must answer; the others are checked again later.
func Open(ctx context.Context, o Options) (*Pool, error) {
	if o.Notify == nil {
		o.Notify = func(string) {}
	}
	o.Check = cmp.Or(o.Check, defaultCheck)
	p := &Pool{o: o, affinity: newAffinity(), checked: make(chan struct{}, 1)}
	p.ctx, p.stop = context.WithCancel(context.WithoutCancel(ctx))
	for _, address := range o.URLs {
		if err := p.addURL(address); err != nil {
			return nil, errors.Join(err, p.Close())
		}
	}
	for _, name := range p.names {
		p.watchers.Go(func() { p.follow(p.ctx, name) })
	}
	if err := p.awaitFirst(ctx); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	p.context = o.Context
	if p.context == 0 {
		p.context = defaultContext
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, s := range p.list {
			if s.context > 0 {
				p.context = min(p.context, s.context)
			}
		}
	}
	return p, nil
}

// awaitFirst waits until a server is up and the others were checked, or take too long. The error
// says why none can be used, however long the wait.
func (p *Pool) awaitFirst(ctx context.Context) error {
	began, quiet := time.Now(), p.o.Starting
	report := func(why string) {
		p.o.Notify(fmt.Sprintf("waiting for the first answer of %s: %s",
			strings.Join(p.o.URLs, ", "), why))
	}
	clock := time.NewTicker(waitNotice)
	defer clock.Stop()
	timeout := time.After(othersTimeout)
	for isLate := false; ; {
		up, pending, later, failed := 0, 0, len(p.names) > 0 || p.o.Starting, []error(nil)
		p.mu.Lock()
		for _, s := range p.list {
			switch {
			case s.up:
				up++
			case s.lastErr == nil:
				pending++
			default:
				failed = append(failed, s.lastErr)
				later = later || mayRecover(s.lastErr)
			}
		}
		p.mu.Unlock()
		switch {
		case up > 0 && (pending == 0 || isLate):
			p.reportDown()
			return nil
		case up+pending == 0 && !later:
			return fmt.Errorf("no server can be used: %w", errors.Join(failed...))
		case up+pending == 0 && !quiet && len(failed) > 0:
			quiet = true
			report(cause(failed[0]).Error())
		}
		select {
		case <-p.checked:
		case <-timeout:
			isLate = true
		case <-clock.C:
			report(fmt.Sprint(time.Since(began).Round(time.Second), " so far"))
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// mayRecover tells a server that does not answer yet from one that answers and cannot be used.
func mayRecover(err error) bool {
	if refused, ok := errors.AsType[*client.Error](err); ok {
		return refused.Status >= 500 || refused.Status == http.StatusTooManyRequests
	}
	_, ok := errors.AsType[*url.Error](err)
	return ok
}

// reportDown reports the servers that are not used at the start.
func (p *Pool) reportDown() {
	p.mu.Lock()
	list := slices.Clone(p.list)
	p.mu.Unlock()
	for _, s := range list {
		p.mu.Lock()
		why := s.lastErr
		if !s.up && why == nil {
			why = errors.New("its first answer takes long")
		}
		s.reportedDown = why != nil
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

// Context is the most tokens of a prompt with its answer.
func (p *Pool) Context() int { return p.context }

// Close ends the running requests.
func (p *Pool) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.stop()
	p.watchers.Wait()
	p.closeClients()
	return nil
}

func (p *Pool) closeClients() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.list {
		s.client.Close()
	}
}

// Stats counts the requests of this process.
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

// probe asks a server for its model and for one token, and marks it up if it returns token ids.
func (p *Pool) probe(ctx context.Context, s *server) error {
	short, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	listed, err := s.client.Models(short)
	if err != nil {
		return err
	}
	model, length, named := "", 0, false
	var names []string
	for _, m := range listed {
		names = append(names, m.ID)
		matches := p.o.Model == "" && slices.Contains(p.o.Names, strings.ToLower(m.ID))
		if model == "" && p.o.Model == "" || matches && !named ||
			strings.EqualFold(m.ID, p.o.Model) {
			model, length, named = m.ID, m.Max, matches
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
	long, cancel := context.WithTimeout(ctx, firstTokenTimeout)
	defer cancel()
	if err := s.client.Call(long, "POST", "/v1/completions", body, &answer); err != nil {
		return err
	}
	if len(answer.Choices) != 1 {
		return fmt.Errorf("%s gives %d answers to one prompt", s.client.Root(),
			len(answer.Choices))
	}
	if len(answer.Choices[0].TokenIDs) == 0 {
		if ids, err := answer.Choices[0].idsFromNames(); err != nil || len(ids) == 0 {
			return fmt.Errorf("%s gives no token ids, neither by return_token_ids (vLLM from "+
				"0.10.2) nor by return_tokens_as_token_ids", s.client.Root())
		}
		asLogs = true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s.model, s.context, s.idsInLogprobs, s.up = model, length, asLogs, true
	return nil
}

// watch checks a server at once and then at intervals.
func (p *Pool) watch(ctx context.Context, s *server) {
	clock := time.NewTicker(p.o.Check)
	defer clock.Stop()
	for ctx.Err() == nil {
		p.mu.Lock()
		up := s.up
		p.mu.Unlock()
		if up {
			if err := p.checkHealth(ctx, s); err != nil && ctx.Err() == nil {
				p.markDown(s, err)
			}
		} else {
			err := p.probe(ctx, s)
			p.mu.Lock()
			back := err == nil && s.reportedDown
			s.reportedDown, s.lastErr = s.reportedDown && !back, err
			p.mu.Unlock()
			if back {
				p.o.Notify(s.client.Root() + " answers again")
			}
			select {
			case p.checked <- struct{}{}:
			default: // awaitFirst has not seen the last one yet
			}
		}
		select {
		case <-clock.C:
		case <-ctx.Done():
		}
	}
}

// checkHealth sends vLLM's health request. A port without the route is healthy.
func (p *Pool) checkHealth(ctx context.Context, s *server) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	err := s.client.Call(ctx, "GET", "/health", nil, nil)
	if no, ok := errors.AsType[*client.Error](err); ok && no.Status == http.StatusNotFound {
		return nil
	}
	return err
}

func (p *Pool) markDown(s *server, why error) {
	p.mu.Lock()
	wasUp := s.up
	s.up = false
	s.reportedDown = s.reportedDown || wasUp
	p.affinity.remove(s)
	p.mu.Unlock()
	if wasUp {
		p.o.Notify(fmt.Sprintf("%s is no longer used: %s", s.client.Root(), cause(why)))
	}
}

// cause is an error without its wrappers, which repeat the address.
func cause(err error) error {
	if urlErr, ok := errors.AsType[*url.Error](err); ok {
		err = urlErr.Err
	}
	if call, ok := errors.AsType[*os.SyscallError](err); ok {
		err = call.Err
	}
	return err
}

// maxLead is how many more requests than the least busy server the one with the prefix may have.
const maxLead = 8

// assign takes a server for a sequence, until release: the one with the longest prefix, or the
// least busy one. Those in not are skipped; nil: none remains.
func (p *Pool) assign(q *stream, skip map[*server]bool) *server {
	p.mu.Lock()
	defer p.mu.Unlock()
	var least *server
	for i := range p.list {
		s := p.list[(p.turn+i)%len(p.list)]
		if s.up && !skip[s] && (least == nil || s.running < least.running) {
			least = s
		}
	}
	p.turn++
	if least == nil {
		return nil
	}
	chosen := least
	if s := p.affinity.find(q.ids); s != nil && s.up && !skip[s] &&
		s.running <= 2*least.running+maxLead {
		chosen = s
	}
	p.affinity.add(q.ids, chosen)
	chosen.running++
	q.counted = chosen
	return chosen
}

func (p *Pool) release(q *stream) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if q.counted != nil {
		q.counted.running--
		q.counted = nil
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
	if length := len(r.Prompt) + forced + 1; length > p.context {
		return nil, &sched.ContextLengthError{Max: p.context, Needed: length}
	}
	p.mu.Lock()
	closed := p.closed
	p.mu.Unlock()
	if closed {
		return nil, sched.ErrClosed
	}
	s := newStream(ctx, p, r)
	if err := s.begin(); err != nil {
		s.release()
		s.closePiece()
		return nil, err
	}
	p.mu.Lock()
	p.counts.PromptTokens += uint64(len(r.Prompt))
	p.mu.Unlock()
	return s, nil
}

const (
	// block is the tokens of one key.
	block = 128
	// maxBlocks is the blocks of one generation of the table.
	maxBlocks = 1 << 16
)

// affinity remembers the servers of recent blocks, in two generations: when the younger one is full
// the older one is dropped.
type affinity struct {
	seed        maphash.Seed
	recent, old map[uint64]*server
}

func newAffinity() affinity {
	return affinity{maphash.MakeSeed(), map[uint64]*server{}, map[uint64]*server{}}
}

// keys calls each with the key of every full block, which hashes all tokens up to its end, until
// each returns false.
func (a *affinity) keys(ids []int32, visit func(key uint64) bool) {
	var h maphash.Hash
	h.SetSeed(a.seed)
	var b [4]byte
	for i, id := range ids {
		binary.LittleEndian.PutUint32(b[:], uint32(id))
		_, _ = h.Write(b[:]) // it cannot fail
		if (i+1)%block == 0 && !visit(h.Sum64()) {
			return
		}
	}
}

// find returns the server with the longest prefix of ids; nil: none has a block of it.
func (a *affinity) find(ids []int32) (last *server) {
	a.keys(ids, func(key uint64) bool {
		s := cmp.Or(a.recent[key], a.old[key])
		if s != nil {
			last = s
		}
		return s != nil
	})
	return last
}

func (a *affinity) add(ids []int32, s *server) {
	a.keys(ids, func(key uint64) bool {
		if len(a.recent) >= maxBlocks {
			a.recent, a.old = map[uint64]*server{}, a.recent
		}
		a.recent[key] = s
		return true
	})
}

// remove drops the blocks of a server, whose cache is lost.
func (a *affinity) remove(s *server) {
	for _, m := range []map[uint64]*server{a.recent, a.old} {
		for key, has := range m {
			if has == s {
				delete(m, key)
			}
		}
	}
}
