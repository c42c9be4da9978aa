// Tools between the responses of one conversation: python's variables, a browser's pages, an MCP
// server's session.
//
// A response leaves the tools that it has called to the response that continues it, by
// previous_response_id or conversation; a container is also found by its own id. What must stay
// true: a tool belongs to one turn at a time; a tool without a successor is closed after a while,
// when there are too many, or with the port; a response that failed leaves its tools to their
// former owner.

package tools

import (
	"cmp"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/ossrun/ossrun/runtime/openai/answer"
	"github.com/ossrun/ossrun/runtime/openai/fields"
	"github.com/ossrun/ossrun/runtime/quota"
	"github.com/ossrun/ossrun/runtime/session"
)

// maxIdleTools is for all clients together. One beyond its share loses its own oldest.
const maxIdleTools = 32

var toolIdle = 20 * time.Minute

// Pool are the idle tools between turns. It is safe for concurrent use.
type Pool struct {
	// newTools tools for one turn; nil: there are none (see Options.Tools)
	newTools func(kind, label string) ([]session.Tool, error)
	// offers lists the kinds, and the labels of MCP servers, that newTools makes; nil: unknown
	offers func() (kinds, labels []string)

	mu     sync.Mutex
	list   []*Tool // the oldest first
	places *quota.Shared
	closed bool
}

func NewPool(makes func(kind, label string) ([]session.Tool, error),
	offers func() (kinds, labels []string)) *Pool {
	return &Pool{newTools: makes, offers: offers, places: quota.New("idle tools", maxIdleTools)}
}

func (k *Pool) has(w Requested) bool {
	if k.newTools == nil || k.offers == nil {
		return k.newTools != nil
	}
	kinds, labels := k.offers()
	return slices.Contains(kinds, w.Kind) || w.Kind == MCP && slices.Contains(labels, w.Label)
}

// take removes and returns the tools of a kind that an owner has left, or the container with this
// id.
func (k *Pool) take(w Requested, owner string) (list []*Tool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.list = slices.DeleteFunc(k.list, func(t *Tool) bool {
		matches := t.Kind == w.Kind && t.Label == w.Label && owner != "" && t.owner == owner
		if w.Container != "" {
			matches = t.Container == w.Container
		}
		matches = matches && t.client == w.client
		if matches = matches && t.clock.Stop(); matches { // else it is about to be closed
			list = append(list, t)
			k.places.Return(t.client, 1)
		}
		return matches
	})
	return list
}

// add keeps a tool. If its client has no place left, its oldest one is closed, else this one.
func (k *Pool) add(t *Tool) {
	closing := []*Tool{t}
	k.mu.Lock()
	if !k.closed {
		closing = k.insert(t)
	}
	k.mu.Unlock()
	closeTools(closing)
}

// insert returns the tools that have no place. It is called with k.mu held.
func (k *Pool) insert(t *Tool) (closing []*Tool) {
	if !k.places.Take(t.client, 1) {
		oldest := slices.IndexFunc(k.list, func(o *Tool) bool { return o.client == t.client })
		if oldest < 0 {
			return []*Tool{t}
		}
		closing = []*Tool{k.list[oldest]} // t has its place
		k.list = slices.Delete(k.list, oldest, oldest+1)
	}
	t.clock = time.AfterFunc(toolIdle, func() { k.closeIdle(t) })
	k.list = append(k.list, t)
	return closing
}

func (k *Pool) closeIdle(t *Tool) {
	k.mu.Lock()
	index := slices.Index(k.list, t)
	if index >= 0 {
		k.list = slices.Delete(k.list, index, index+1)
		k.places.Return(t.client, 1)
	}
	k.mu.Unlock()
	if index >= 0 {
		closeTools([]*Tool{t})
	}
}

// CloseOf closes the idle tools of a client that its response or conversation owner has left; "":
// all. Those that another one has continued with have that for an owner.
func (k *Pool) CloseOf(client, owner string) {
	k.mu.Lock()
	var closing []*Tool
	k.list = slices.DeleteFunc(k.list, func(t *Tool) bool {
		matches := t.client == client && (owner == "" || t.owner == owner)
		if matches {
			closing = append(closing, t)
			k.places.Return(client, 1)
		}
		return matches
	})
	k.mu.Unlock()
	closeTools(closing)
}

// reassign gives the tools that one response has left to the response that continued it.
func (k *Pool) reassign(from, to string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, t := range k.list {
		if from != "" && t.owner == from {
			t.owner = to
		}
	}
}

// Close closes all tools, and each tool that is put from now on.
func (k *Pool) Close() {
	k.mu.Lock()
	list := k.list
	k.list, k.closed = nil, true
	k.mu.Unlock()
	closeTools(list)
}

// Release keeps the tools that were used, for owner or, if that is "", for their former owner; it
// closes the others.
func (k *Pool) Release(tools []*Tool, owner string) {
	for _, t := range tools {
		t.owner = cmp.Or(owner, t.owner)
		if !t.used.Load() || t.owner == "" && t.Container == "" {
			closeTools([]*Tool{t})
		} else {
			k.add(t)
		}
	}
}

func closeTools(tools []*Tool) {
	for _, t := range tools {
		if t.clock != nil {
			t.clock.Stop()
		}
		_ = t.Close() // no turn uses it any more
	}
}

// Open makes the tools of a turn, or takes over those that owner has left. missing are those
// without a back end.
func (k *Pool) Open(requested []Requested, owner string) (tools []*Tool,
	missing []Requested, err error) {
	fail := func(err error) ([]*Tool, []Requested, error) {
		k.Release(tools, "")
		return nil, nil, err
	}
	var fault *fields.Fault
	for _, w := range requested {
		limited := true // as the request limits it
		add := func(t session.Tool, container string) *Tool {
			tool := &Tool{Tool: t, Requested: w}
			tool.Container = container
			tool.Offer(&session.Request{}) // a server may have other tools now
			fault = cmp.Or(fault, tool.applyRules())
			limited = limited && tool.limitWeb()
			tools = append(tools, tool)
			return tool
		}
		inherited := k.take(w, owner)
		for _, t := range inherited {
			tool := add(t.Tool, t.Container)
			tool.owner = t.owner
			tool.used.Store(true)
		}
		switch {
		case len(inherited) > 0 && !limited:
			return fail(w.missing())
		case len(inherited) > 0:
			continue
		case w.Container != "":
			return fail(fields.Refusal(http.StatusNotFound, "tools", "container_not_found",
				"there is no container '"+fields.Brief(w.Container)+
					"' that could be used: one is ended "+
					`when it was idle for 20 minutes; {"type": "auto"} makes a new one`))
		}
		list, err := k.newTools(w.Kind, w.Label)
		if err != nil {
			return fail(err)
		}
		n := len(tools)
		for _, t := range list {
			container := ""
			if w.Kind == Python {
				container = answer.NewID("cntr_")
			}
			add(t, container)
		}
		if asks := func(t *Tool) bool { return t.approval.needsAny() }; !limited ||
			w.Kind == MCP && w.cannotAsk && slices.ContainsFunc(tools[n:], asks) {
			closeTools(tools[n:])
			list, tools = nil, tools[:n]
		}
		if len(list) == 0 {
			missing = append(missing, w)
		}
	}
	if fault != nil {
		return fail(fault)
	}
	return tools, missing, nil
}

// OfferTo adds tools to a request that only counts its tokens.
func (k *Pool) OfferTo(e *answer.Exchange, r *session.Request, requested []Requested) error {
	if err := claim(e, requested); err != nil {
		return err
	}
	list, _, err := k.Open(requested, "")
	for _, t := range list {
		t.Offer(r)
	}
	k.Release(list, "")
	return err
}
