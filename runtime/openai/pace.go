// How often a stream is written.
//
// Every event costs a write, a wake-up of the client and a line of JSON around the text. With one
// stream each token is sent at once; a thousand streams would keep two cores busy with writing. So
// when many streams are open, each waits a little between two writes, and sends the text of that
// time as one event.
//
// What must stay true: the first piece of a turn, its calls and its end are never delayed; nothing
// is delayed longer than mostHeld or, if a number of tokens per event is configured, than the
// heartbeat.

package openai

import (
	"sync/atomic"
	"time"

	"github.com/ossrun/ossrun/runtime/session"
)

const (
	writesPerSecond = 5000                   // of all streams together; about a tenth of a core
	leastHeld       = 5 * time.Millisecond   // shorter waits are skipped
	mostHeld        = 250 * time.Millisecond // what a person still reads as flowing
)

// pace is shared by the streams of a port.
type pace struct {
	tokens int // in one event; 0: by the load
	open   atomic.Int64
}

// enter counts a stream until the function that it returns is called.
func (p *pace) enter() (leave func()) {
	p.open.Add(1)
	return func() { p.open.Add(-1) }
}

// gap is the time between two writes of one stream.
func (p *pace) gap() time.Duration {
	d := time.Duration(p.open.Load()) * time.Second / writesPerSecond
	if d < leastHeld {
		return 0
	}
	return min(d, mostHeld)
}

// hold tells how many pieces of text the next write waits for, and until when at most; last is the
// time of the last write.
func (p *pace) hold(last time.Time, heartbeat time.Duration) (pieces int, until time.Time) {
	if p.tokens > 0 {
		return p.tokens, last.Add(heartbeat)
	}
	return most, last.Add(p.gap())
}

// pieces counts the text in a batch. At least one piece came out of each token that made text.
func pieces(batch []arrival) (n int) {
	for _, a := range batch {
		if isText(a.event) {
			n++
		}
	}
	return n
}

// urgent tells that the batch has something a client acts on.
func urgent(batch []arrival) bool {
	for _, a := range batch {
		if !isText(a.event) {
			return true
		}
	}
	return false
}

func isText(e session.Event) bool {
	switch e.(type) {
	case session.Reasoning, session.Commentary, session.Answer, session.CallArguments:
		return true
	}
	return false
}
