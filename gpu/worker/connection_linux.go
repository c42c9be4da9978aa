package worker

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/ossrun/ossrun/runtime/engine"
)

// The parent's side of the socket: requests go out and are answered in order. Only choices of
// tokens are not waited for; their answers are put aside while another request waits.

// Deadlines are how long an answer may take before the worker counts as hung; 0: the default.
type Deadlines struct {
	Step  time.Duration // a step
	Setup time.Duration // anything else: the driver compiles kernels, the disk is read
}

const (
	stepDeadline = 2 * time.Minute
	// for a step over several devices, one of which may be a CPU with a long prompt's experts
	severalDeadline = 10 * time.Minute
	setupDeadline   = 10 * time.Minute
	// partingDeadline is how long a worker may take to give its device back.
	partingDeadline = 10 * time.Second
)

type connection struct {
	p         *process
	shared    *shared
	deadlines Deadlines

	mu      sync.Mutex
	last    uint32    // number of the last request
	seen    uint32    // number of the newest answered request; all earlier ones are answered too
	pending *pending  // a choice that is not sent yet
	waiting []uint32  // choices that were sent and not answered
	tokens  []outcome // choices that were answered and not waited for
	in      message
	out     []byte
	lost    error

	several               atomic.Bool // devices run a step
	steps, sent, received atomic.Int64
}

// pending is a request that is being written into its slot.
type pending struct {
	number uint32
	codec
}

// outcome is the answer to a choice.
type outcome struct {
	chosen []engine.SampledToken
	err    error
}

// request has optional parts, which may be nil.
type request struct {
	kind kind
	ask  any                       // is sent, as JSON
	into any                       // takes the answer's JSON
	fill func(slot []byte) int     // writes the request's slot
	take func(answer []byte) error // reads the answer's slot
	// gets each part of an answer; an error: the part cannot be read
	part func(text []byte) (wantsMore bool, err error)
}

func (c *connection) call(r request) error {
	var text []byte
	if r.ask != nil {
		var err error
		if text, err = json.Marshal(r.ask); err != nil {
			return fmt.Errorf("%s: %w", r.kind, err)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.flush(); err != nil {
		return err
	}
	number, err := c.next()
	if err != nil {
		return err
	}
	m := message{kind: r.kind, number: number, text: text}
	if r.fill != nil {
		m.shared = uint32(r.fill(c.shared.slot(number)))
	}
	deadline := c.deadlines.Setup
	if r.kind == step || r.kind == measure {
		deadline = c.stepDeadline()
	}
	if err := c.send(&m); err != nil {
		return err
	}
	if err := c.await(number, r.kind, deadline); err != nil {
		return err
	}
	for c.in.kind == part {
		m := message{kind: stop, number: number}
		if r.part != nil {
			wantsMore, err := r.part(c.in.text)
			if err != nil {
				return c.disable(fmt.Errorf("a part of an answer to %s: %w", r.kind, err))
			}
			if wantsMore {
				m.kind = proceed
			}
		}
		if err := c.send(&m); err != nil {
			return err
		}
		if err := c.await(number, r.kind, deadline); err != nil {
			return err
		}
	}
	if c.in.kind == failed {
		return decodeFault(c.in.text)
	}
	if r.into != nil {
		if err := json.Unmarshal(c.in.text, r.into); err != nil {
			return c.disable(fmt.Errorf("an answer to %s that cannot be read: %w", r.kind, err))
		}
	}
	if r.take == nil {
		return nil
	}
	if err := r.take(c.shared.answer(number)[:c.in.shared]); err != nil {
		return c.disable(fmt.Errorf("an answer to %s: %w", r.kind, err))
	}
	return nil
}

// stepDeadline is the deadline of a step, unless the caller of Start chose one.
func (c *connection) stepDeadline() time.Duration {
	if c.several.Load() {
		return cmp.Or(c.deadlines.Step, severalDeadline)
	}
	return cmp.Or(c.deadlines.Step, stepDeadline)
}

// next gives the next request its number and a free slot, for which it may have to wait.
func (c *connection) next() (uint32, error) {
	if c.lost != nil {
		return 0, c.lost
	}
	if c.last-c.seen >= slots-1 && len(c.waiting) == 0 {
		c.last++
		if err := c.send(&message{kind: memory, number: c.last}); err != nil { // any will do
			return 0, err
		}
		if err := c.await(c.last, memory, c.deadlines.Setup); err != nil {
			return 0, err
		}
	}
	for c.last-c.seen >= slots-1 {
		if err := c.receive(c.stepDeadline(), advance); err != nil {
			return 0, err
		}
		if err := c.putAside(); err != nil {
			return 0, err
		}
	}
	c.last++
	return c.last, nil
}

func (c *connection) send(m *message) error {
	if c.lost != nil {
		return c.lost
	}
	c.out = m.append(c.out[:0])
	_ = c.p.conn.SetWriteDeadline(time.Now().Add(c.deadlines.Setup))
	if _, err := c.p.conn.Write(c.out); err != nil {
		return c.failure(err, m.kind, c.deadlines.Setup)
	}
	if m.kind == step || m.kind == measure || m.kind == advance {
		c.sent.Add(1)
	}
	return nil
}

// await reads until a request's answer is in c.in. Answered choices are put aside.
func (c *connection) await(number uint32, k kind, deadline time.Duration) error {
	for {
		if err := c.receive(deadline, k); err != nil {
			return err
		}
		if c.in.number == number {
			if k == step || k == measure {
				c.received.Add(1)
				c.steps.Add(1)
			}
			return nil
		}
		if err := c.putAside(); err != nil {
			return err
		}
	}
}

func (c *connection) receive(deadline time.Duration, k kind) error {
	if c.lost != nil {
		return c.lost
	}
	_ = c.p.conn.SetReadDeadline(time.Now().Add(deadline))
	if err := c.in.read(c.p.conn); err != nil {
		return c.failure(err, k, deadline)
	}
	switch {
	case c.in.kind != done && c.in.kind != failed && c.in.kind != part:
		return c.disable(fmt.Errorf("a %s is no answer", c.in.kind))
	case c.in.number-c.seen-1 >= c.last-c.seen:
		return c.disable(fmt.Errorf("an answer to request %d, which is none of %d to %d",
			c.in.number, c.seen+1, c.last))
	case c.in.shared > answerBytes:
		return c.disable(fmt.Errorf("an answer of %d bytes in a slot of %d", c.in.shared,
			answerBytes))
	}
	if c.in.kind != part {
		c.seen = c.in.number
	}
	return nil
}

// putAside keeps the answer to a choice until it is waited for.
func (c *connection) putAside() error {
	if len(c.waiting) == 0 || c.waiting[0] != c.in.number || c.in.kind == part {
		return c.disable(fmt.Errorf("an answer to request %d, which waits for none", c.in.number))
	}
	c.waiting = c.waiting[1:]
	c.received.Add(1)
	if c.in.kind == failed {
		c.tokens = append(c.tokens, outcome{err: decodeFault(c.in.text)})
		return nil
	}
	r := codec{slot: c.shared.answer(c.in.number)[:c.in.shared], reads: true}
	var o outcome
	tokensIn(&r, &o.chosen)
	if err := r.end(); err != nil {
		return c.disable(err)
	}
	c.tokens = append(c.tokens, o)
	return nil
}

// failure is the error of a socket that failed: the worker has died, or hangs.
func (c *connection) failure(err error, k kind, deadline time.Duration) error {
	why := ""
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		why = lateMessage(k, deadline)
	case errors.Is(err, io.EOF), errors.Is(err, errTorn), errors.Is(err, syscall.ECONNRESET),
		errors.Is(err, syscall.EPIPE):
	default:
		why = err.Error()
	}
	return c.end(why)
}

// disable ends a worker that sent an invalid message.
func (c *connection) disable(err error) error {
	return c.end("it was not understood and was ended: " + err.Error())
}

// dyingTime is how long a worker whose socket is closed may take to be gone.
const dyingTime = 10 * time.Second

// end makes sure that the worker is gone; every later call gives the same error.
func (c *connection) end(why string) error {
	if c.lost != nil {
		return c.lost
	}
	if why == "" {
		select {
		case <-c.p.done:
		case <-time.After(dyingTime):
			why = "it closed its socket and was ended"
		}
	}
	c.p.kill(why)
	c.lost = c.p.lost()
	return c.lost
}

// logits is the memory of the next step's n logits.
func (c *connection) logits(n int) ([]float32, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.shared == nil {
		return nil, c.lost
	}
	return c.shared.logits(n)
}

// disconnect says goodbye, waits for the process, and gives the memory back.
func (c *connection) disconnect() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.shared == nil {
		return nil
	}
	var fault error
	if c.lost == nil {
		c.pending = nil
		c.last++
		if err := c.send(&message{kind: goodbye, number: c.last}); err == nil &&
			c.await(c.last, goodbye, partingDeadline) == nil {
			if c.in.kind == failed {
				fault = decodeFault(c.in.text)
			}
			select {
			case <-c.p.done:
			case <-time.After(partingDeadline):
			}
		}
	}
	c.p.kill("it was closed")
	if c.lost == nil {
		c.lost = engine.ErrClosed
	}
	err := errors.Join(fault, c.p.conn.Close(), c.shared.close())
	c.shared = nil
	return err
}
