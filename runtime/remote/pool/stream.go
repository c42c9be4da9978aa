// One sequence: tokens of a server, held to the request's grammar.
//
// A server samples freely or, in a body with a grammar, under rules that allow at least as much as
// the grammar. The first token that the grammar forbids is dropped with all that follow. That
// position is sampled again without it, or among the allowed tokens if they are few: so every token
// is as probable as under a mask. Tokens that the grammar forces are not sampled at all. Each piece
// continues after the tokens so far, which a server has in its prefix cache; so does a sequence
// whose server has failed.

package pool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/ossrun/ossrun/harmony/token"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/grammar"
	"github.com/ossrun/ossrun/runtime/grammar/automaton"
	"github.com/ossrun/ossrun/runtime/kv"
	"github.com/ossrun/ossrun/runtime/remote/client"
	"github.com/ossrun/ossrun/runtime/sched"
	"github.com/ossrun/ossrun/runtime/session"
)

// maxFailures is how many servers in a row may fail without a token.
const maxFailures = 4

// stream is a session.TokenStream. Next is called by one goroutine.
type stream struct {
	ctx  context.Context
	pool *Pool
	r    sched.TokenRequest

	ids         []int32 // the prompt and the generated tokens
	maxLen      int     // limit of len(ids)
	ready       []sched.Token
	counted     *server // counts the sequence as running; guarded by Pool.mu
	server      *server
	piece       *client.Stream // of server; nil: none is running
	only        []int32        // the piece is one token of these; nil: any
	banned      []int32        // the piece is one token and none of these; nil: no limit
	pieceSingle bool           // the running piece is one token
	rules       string         // of the piece, for the server's sampler; "": it samples freely
	ender       int32          // the token that ends a body with rules
	noRules     bool           // a server has refused rules, or failed with some
	// the piece has no more tokens
	closing  bool
	pieces   int
	failures int
	release  func() // releases ctx

	mu     sync.Mutex // guards the fields below
	finish sched.FinishReason
	err    error
	prompt []engine.SampledToken
	timing sched.Timing
	times  struct{ began, first, last time.Time }
}

func newStream(ctx context.Context, p *Pool, r sched.TokenRequest) *stream {
	s := &stream{pool: p, r: r, ids: slices.Clone(r.Prompt), maxLen: p.context}
	if r.MaxTokens > 0 {
		s.maxLen = min(s.maxLen, len(r.Prompt)+r.MaxTokens)
	}
	s.timing.Prompt = len(r.Prompt)
	s.times.began = time.Now()
	var cancel context.CancelFunc
	s.ctx, cancel = context.WithCancel(ctx)
	stopClosing := context.AfterFunc(p.ctx, cancel)
	// a turn that ends at a stop string or a loop stops reading: it only cancels ctx, which closes
	// the connection too
	stopCancel := context.AfterFunc(s.ctx, func() {
		s.setFinish(sched.FinishCancelled, nil)
		p.release(s)
	})
	s.release = func() {
		stopCancel()
		stopClosing()
		cancel()
	}
	return s
}

// Next blocks for the next token, until there are no more.
func (s *stream) Next(ctx context.Context) (sched.Token, bool) {
	for len(s.ready) == 0 {
		switch {
		case s.Finish() != "":
			s.closePiece()
			return sched.Token{}, false
		case ctx.Err() != nil || s.ctx.Err() != nil:
			s.end(sched.FinishCancelled, nil)
		case s.piece == nil:
			if err := s.begin(); err != nil {
				s.end(sched.FinishError, err)
			}
		default:
			s.read()
		}
	}
	t := s.ready[0]
	s.ready = s.ready[1:]
	return t, true
}

// begin delivers the forced tokens and asks a server for the rest, unless they end the sequence.
func (s *stream) begin() error {
	if s.r.ScorePrompt {
		if err := s.scorePrompt(); err != nil {
			return err
		}
	}
	if !s.isSingle() && s.r.Constraint != nil {
		for _, id := range s.r.Constraint.Forced() {
			if s.deliver(sched.Token{SampledToken: engine.SampledToken{ID: id}, Forced: true}) {
				return nil
			}
		}
	}
	s.rules = ""
	if m := s.grammar(); m != nil {
		s.rules = m.GBNF()
	}
	return s.onAnyServer(func(from *server) error {
		piece, err := from.client.Stream(s.ctx, "/v1/completions", s.body(from))
		if no, ok := errors.AsType[*client.Error](err); ok && s.rules != "" &&
			no.Status != http.StatusTooManyRequests {
			rules := s.rules
			s.rules = "" // it fails with them, or without them too
			piece, err = from.client.Stream(s.ctx, "/v1/completions", s.body(from))
			if s.noRules = err == nil; err != nil {
				s.rules = rules
			}
		}
		if err == nil {
			s.server, s.piece, s.pieceSingle, s.closing = from, piece, s.isSingle(), false
			s.pieces++
		}
		return err
	})
}

// grammar is the position in a grammar whose rules the next piece can have, or nil.
func (s *stream) grammar() (m *automaton.Matcher) {
	p := s.r.Params
	c, ok := s.r.Constraint.(grammar.Bodies)
	if ok && !s.noRules && s.only == nil && !p.IgnoreEOS && p.MinTokens <= s.generated() {
		m, s.ender = c.Body()
	}
	return m
}

func (s *stream) generated() int { return len(s.ids) - len(s.r.Prompt) }

// onAnyServer runs work on a server, and on the next one if that fails. The server stays taken if
// work has made it the stream's.
func (s *stream) onAnyServer(work func(*server) error) error {
	s.closePiece()
	skip := map[*server]bool{}
	var busy *session.BusyError
	var last error
	for s.failures < maxFailures {
		from := s.pool.assign(s, skip)
		if from == nil {
			break
		}
		err := work(from)
		if s.ctx.Err() != nil {
			s.closePiece()
			return s.ctx.Err()
		}
		if s.server != from {
			s.pool.release(s)
		}
		if err == nil {
			return nil
		}
		refused, ok := errors.AsType[*client.Error](err)
		switch {
		case !ok, refused.Status >= 500:
			s.pool.markDown(from, err)
			s.failures++
		case refused.Status == http.StatusTooManyRequests:
			busy = &session.BusyError{RetryAfter: max(refused.RetryAfter, time.Second)}
		default:
			return fmt.Errorf("the upstream server refuses the request: %w", err)
		}
		skip[from], last = true, err
	}
	if busy != nil {
		return busy
	}
	return &downError{last}
}

// downError says that no server is left; why is the last one's error, or nil.
type downError struct{ why error }

func (e *downError) Error() string {
	if e.why == nil {
		return "no upstream server answers"
	}
	return "no upstream server answers: " + e.why.Error()
}

func (e *downError) Unwrap() []error { return []error{session.ErrUnavailable, e.why} }

func (s *stream) read() {
	var c chunk
	err := s.piece.Into(&c)
	if err == nil {
		s.recordCached(c.Usage)
		if len(c.Choices) > 0 && !s.closing {
			err = s.take(&c.Choices[0])
		}
	}
	switch {
	case err == nil:
	case errors.Is(err, io.EOF) && s.closing: // the one token has arrived
		s.closePiece()
	case s.ctx.Err() != nil:
		s.end(sched.FinishCancelled, nil)
	default: // the sequence continues on another server
		if errors.Is(err, io.EOF) {
			err = errors.New("its answer ends in the middle")
		}
		failed, refusal := s.server, (*client.Error)(nil)
		s.noRules = s.noRules || s.rules != ""
		s.closePiece()
		if !errors.As(err, &refusal) { // a refusal may be the sequence's fault
			s.pool.markDown(failed, err)
		}
		if s.failures++; s.failures >= maxFailures {
			s.end(sched.FinishError, &sched.EngineError{Fault: err})
		}
	}
}

// take checks the tokens of a piece and delivers them.
func (s *stream) take(c *choice) error {
	tokens, err := c.tokens(s.server.idsInLogprobs, s.r.Params.Logprobs)
	if err != nil {
		return err
	}
	for _, t := range tokens {
		if t.ID < 0 || t.ID >= token.VocabSize {
			return fmt.Errorf("token %d is not in the vocabulary", t.ID)
		}
		if !s.isLegal(t.ID) {
			s.resample(t.ID)
			return nil
		}
		s.failures = 0
		if s.deliver(sched.Token{SampledToken: t}) {
			return nil
		}
		if !s.pieceSingle && s.rules == "" && s.grammar() != nil { // a body begins
			s.closePiece()
			return nil
		}
	}
	switch c.FinishReason {
	case "":
	case "stop": // at a token that the server does not send
		id, ok := c.stoppedAt()
		if !ok {
			id = token.Return
		}
		if !s.isLegal(id) { // the model ends where the grammar must continue
			s.resample(id)
			return nil
		}
		if !s.deliver(sched.Token{SampledToken: engine.SampledToken{ID: id}}) {
			s.end(sched.FinishStop, nil)
		}
	case "length":
		if !s.pieceSingle { // the server's context is shorter than reported
			s.end(sched.FinishLength, nil)
			return nil
		}
		s.closing = true
	default:
		return fmt.Errorf("it ends with %q", c.FinishReason)
	}
	return nil
}

const (
	// maxListed: up to so many allowed tokens are sent as a list; more are handled by bans.
	maxListed = 2048
	// maxBanned is how many tokens are tried at one position before all allowed ones are listed.
	maxBanned = 16
)

// resample samples the position of an illegal token again.
func (s *stream) resample(id int32) {
	s.closePiece()
	if s.r.Constraint.Forced() != nil {
		return // begin delivers them
	}
	mask := s.r.Constraint.Mask()
	if s.banned = append(s.banned, id); len(s.banned) > maxBanned || countBits(mask) <= maxListed {
		s.only = tokensOf(mask)
	}
}

func (s *stream) isSingle() bool { return s.only != nil || s.banned != nil }

// isLegal tells whether the grammar allows a token here.
func (s *stream) isLegal(id int32) bool {
	if s.r.Constraint == nil || s.r.Params.IgnoreEOS && isEnd(id) {
		return true
	}
	mask := s.r.Constraint.Mask()
	return mask == nil || mask[id/64]>>(id%64)&1 == 1
}

// deliver passes a token to the reader, and tells whether it was the last one.
func (s *stream) deliver(t sched.Token) (last bool) {
	if s.r.Constraint != nil {
		s.r.Constraint.Accept(t.ID)
	}
	s.only, s.banned = nil, nil
	s.ids = append(s.ids, t.ID)
	s.ready = append(s.ready, t)
	now := time.Now()
	s.mu.Lock()
	if s.times.first.IsZero() {
		s.times.first = now
	}
	s.times.last = now
	s.timing.Generated++
	s.mu.Unlock()
	switch {
	case slices.Contains(s.r.Stop, t.ID) && !(s.r.Params.IgnoreEOS && isEnd(t.ID)):
		s.end(sched.FinishStop, nil)
	case len(s.ids) >= s.maxLen:
		s.end(sched.FinishLength, nil)
	default:
		return false
	}
	return true
}

// isEnd tells whether the model ends its turns with a token.
func isEnd(id int32) bool {
	return id == token.Return || id == token.Call || id == token.EndOfText
}

func (s *stream) closePiece() {
	s.pool.release(s)
	if s.piece != nil {
		_ = s.piece.Close() // it may not be read to its end
	}
	s.piece, s.server = nil, nil
}

// usageTimeout limits the wait for the usage after the last token.
const usageTimeout = time.Second

// finishPiece reads the server's events after the last token, so that the connection can be reused.
func (s *stream) finishPiece() {
	clock := time.AfterFunc(usageTimeout, func() { _ = s.piece.Close() })
	defer clock.Stop()
	for {
		var c chunk
		if s.piece.Into(&c) != nil {
			return
		}
		s.recordCached(c.Usage)
	}
}

func (s *stream) end(f sched.FinishReason, err error) {
	if s.piece != nil && (f == sched.FinishStop || f == sched.FinishLength) {
		s.finishPiece()
	}
	s.closePiece()
	s.setFinish(f, err)
	s.release()
}

// setFinish records how the sequence ended, once, and counts it.
func (s *stream) setFinish(f sched.FinishReason, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.finish != "" {
		return
	}
	s.finish, s.err = f, err
	p := s.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts.GeneratedTokens += uint64(s.timing.Generated)
	p.counts.PrefixQueries += uint64(s.timing.Prompt)
	p.counts.PrefixHits += uint64(s.timing.Cached)
	switch f {
	case sched.FinishStop:
		p.counts.Stopped++
	case sched.FinishLength:
		p.counts.Length++
	case sched.FinishCancelled:
		p.counts.Cancelled++
	default:
		p.counts.Failed++
	}
}

func (s *stream) Finish() sched.FinishReason {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.finish
}

// Err is set with sched.FinishError.
func (s *stream) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Prompt has the logprobs of the prompt's tokens, if requested.
func (s *stream) Prompt() []engine.SampledToken {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.prompt
}

// Timing includes the server's queue and the network.
func (s *stream) Timing() sched.Timing {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.timing
	if !s.times.first.IsZero() {
		t.TTFT = s.times.first.Sub(s.times.began)
		t.Prefill, t.Decode = t.TTFT, s.times.last.Sub(s.times.first)
	}
	return t
}

// recordCached records how much of the prompt the first server had cached.
func (s *stream) recordCached(u client.Usage) {
	if n := u.OfPrompt.Cached; n > 0 && s.pieces == 1 {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.timing.Cached = kv.WholePages(min(n, s.timing.Prompt))
	}
}

func countBits(mask []uint64) (n int) {
	for _, word := range mask {
		n += bits.OnesCount64(word)
	}
	return n
}

func tokensOf(mask []uint64) []int32 {
	list := make([]int32, 0, countBits(mask))
	for i, word := range mask {
		for ; word != 0; word &= word - 1 {
			if id := i*64 + bits.TrailingZeros64(word); id < token.VocabSize {
				list = append(list, int32(id))
			}
		}
	}
	return list
}
