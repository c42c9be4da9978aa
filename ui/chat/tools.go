// The tools of the visible conversation.
//
// Tools keep a conversation's state, such as python's variables, so another conversation gets new
// ones: before its first turn, outside Update. Update and View call no method of a tool, since a
// tool may wait for a server: they show the model's last offer.

package chat

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/ui/chat/term"
)

func (m *Model) listTools() tea.Cmd {
	if len(m.tools.current()) == 0 {
		return m.showNotice("The model has no tools. Start ossrun with --tools browser,python " +
			"to add some.")
	}
	return m.runAsync(func() outcome {
		tools := m.tools.inspect()
		rows := []line{styledLine(term.Bold, "The model may call "+formatCount(len(tools), "tool"))}
		for _, o := range tools {
			rows = append(rows, plainLine(term.Clean(o.name), term.Clean(o.description)))
		}
		return func(m *Model) tea.Cmd { return m.showPage(rows) }
	})
}

type toolbox struct {
	replace func() ([]session.Tool, error) // nil: the tools have no state

	making    sync.Mutex // held while new ones are made
	tools     atomic.Pointer[[]session.Tool]
	stale     atomic.Bool // they have another conversation's state
	lastOffer atomic.Pointer[[]offer]
}

// current returns the present tools.
func (b *toolbox) current() []session.Tool { return *b.tools.Load() }

// offers is the last offer to the model.
func (b *toolbox) offers() []offer {
	if all := b.lastOffer.Load(); all != nil {
		return *all
	}
	return nil
}

// inspect asks the tools what they offer, which may wait for a server.
func (b *toolbox) inspect() []offer {
	var r session.Request
	for _, t := range b.current() {
		t.Offer(&r)
	}
	return b.show(r)
}

func (b *toolbox) show(r session.Request) []offer {
	all := offersIn(r)
	b.lastOffer.Store(&all)
	return all
}

// recordOffers wraps a model so that each turn records its offer.
func (b *toolbox) recordOffers(model session.Runner) session.Runner {
	return session.WithStart(model, func(ctx context.Context, r session.Request) (session.Turn,
		error) {
		b.show(r)
		return model.Start(ctx, r)
	})
}

// markStale marks the start of another conversation.
func (b *toolbox) markStale() { b.stale.Store(b.replace != nil && len(b.current()) > 0) }

// ready returns the tools for a turn, replacing stale ones.
func (b *toolbox) ready() ([]session.Tool, error) {
	b.making.Lock()
	defer b.making.Unlock()
	if !b.stale.Load() {
		return b.current(), nil
	}
	tools, err := b.replace()
	if err != nil {
		return nil, err
	}
	b.tools.Store(&tools)
	b.stale.Store(false)
	return tools, nil
}

// An offer is a tool as /tools lists it.
type offer struct{ name, description string }

// offersIn lists the tools offered in a request.
func offersIn(r session.Request) (all []offer) {
	if r.Browser {
		all = append(all, offer{"browser", "searches the web, opens pages, finds text in them"})
	}
	if r.Python {
		all = append(all, offer{"python", "runs code in a sandbox and keeps its state"})
	}
	for _, f := range r.Functions {
		does, _, _ := strings.Cut(f.Description, "\n")
		all = append(all, offer{f.Name, does})
	}
	return all
}
