// Tools between the responses of one conversation: python's variables, a browser's pages, an MCP
// server's session.
//
// A response leaves the tools that it has called to the response that continues it, by
// previous_response_id or conversation; a container is found by its own id too. What must stay
// true: a tool belongs to one turn at a time; a tool that nobody takes over is closed after a
// while, when there are too many, or with the port; a response that failed leaves its tools to
// their former owner.

package openai

import (
	"cmp"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/ossrun/ossrun/runtime/session"
)

const mostKeptTools = 32

var toolIdle = 20 * time.Minute

// keptTools are tools that no turn has. It is safe for concurrent use.
type keptTools struct {
	// makes tools for one turn; nil: there are none (see Options.Tools)
	makes func(kind, label string) ([]session.Tool, error)

	mu     sync.Mutex
	list   []*openTool // the oldest first
	closed bool
}

func newKeptTools(makes func(kind, label string) ([]session.Tool, error)) *keptTools {
	return &keptTools{makes: makes}
}

// take returns the tools of a kind that an owner has left, or the container with this id.
func (k *keptTools) take(w wantedTool, owner string) (list []*openTool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.list = slices.DeleteFunc(k.list, func(t *openTool) bool {
		mine := t.kind == w.kind && t.label == w.label && owner != "" && t.owner == owner
		if w.container != "" {
			mine = t.container == w.container
		}
		if mine = mine && t.clock.Stop(); mine { // else it is about to be closed
			list = append(list, t)
		}
		return mine
	})
	return list
}

// put keeps a tool; the oldest ones make room for it.
func (k *keptTools) put(t *openTool) {
	over := []*openTool{t}
	k.mu.Lock()
	if !k.closed {
		t.clock = time.AfterFunc(toolIdle, func() { k.end(t) })
		k.list = append(k.list, t)
		n := max(0, len(k.list)-mostKeptTools)
		over, k.list = k.list[:n:n], k.list[n:]
	}
	k.mu.Unlock()
	closeTools(over)
}

func (k *keptTools) end(t *openTool) {
	k.mu.Lock()
	at := slices.Index(k.list, t)
	if at >= 0 {
		k.list = slices.Delete(k.list, at, at+1)
	}
	k.mu.Unlock()
	if at >= 0 {
		closeTools([]*openTool{t})
	}
}

// pass gives the tools that one response has left to the response that continued it.
func (k *keptTools) pass(from, to string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, t := range k.list {
		if from != "" && t.owner == from {
			t.owner = to
		}
	}
}

// close closes all tools, and each tool that is put from now on.
func (k *keptTools) close() {
	k.mu.Lock()
	list := k.list
	k.list, k.closed = nil, true
	k.mu.Unlock()
	closeTools(list)
}

// release keeps the tools that were used, for owner or, if that is "", for their former owner; it
// closes the others.
func (k *keptTools) release(tools []*openTool, owner string) {
	for _, t := range tools {
		t.owner = cmp.Or(owner, t.owner)
		if !t.used.Load() || t.owner == "" && t.container == "" {
			closeTools([]*openTool{t})
		} else {
			k.put(t)
		}
	}
}

func closeTools(tools []*openTool) {
	for _, t := range tools {
		if t.clock != nil {
			t.clock.Stop()
		}
		_ = t.Close() // nobody uses it any more
	}
}

// open makes the tools of a turn, or takes over those that owner has left. missing are the types
// without a back end.
func (k *keptTools) open(wanted []wantedTool, owner string) (tools []*openTool,
	missing []string, err error) {
	fail := func(err error) ([]*openTool, []string, error) {
		k.release(tools, "")
		return nil, nil, err
	}
	for _, w := range wanted {
		add := func(t session.Tool, container string) *openTool {
			tool := &openTool{Tool: t, wantedTool: w}
			tool.container = container
			var r session.Request
			tool.Offer(&r)
			tool.functions = r.Functions
			tools = append(tools, tool)
			return tool
		}
		before := k.take(w, owner)
		for _, t := range before {
			tool := add(t.Tool, t.container)
			tool.owner = t.owner
			tool.used.Store(true)
		}
		switch {
		case len(before) > 0:
			continue
		case w.container != "":
			return fail(refusal(http.StatusNotFound, "tools", "container_not_found",
				"there is no container '"+brief(w.container)+"' that could be used: one is ended "+
					`when it was idle for 20 minutes; {"type": "auto"} makes a new one`))
		}
		list, err := k.makes(w.kind, w.label)
		if err != nil {
			return fail(err)
		}
		if len(list) == 0 {
			missing = append(missing, w.asked)
		}
		for _, t := range list {
			container := ""
			if w.kind == ToolPython {
				container = newID("cntr_")
			}
			add(t, container)
		}
	}
	return tools, missing, nil
}
