// The tools of the conversation on the screen. They keep its state, such as python's variables, so
// another conversation gets new ones: before its first turn, outside Update.

package chat

import (
	"sync"

	"github.com/ossrun/ossrun/runtime/session"
)

type toolbox struct {
	renew func() ([]session.Tool, error) // nil: the tools keep no state

	making sync.Mutex // held while new ones are made
	mu     sync.Mutex
	tools  []session.Tool
	stale  bool // they are another conversation's
}

// now are the tools to show.
func (b *toolbox) now() []session.Tool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.tools
}

// leave says that another conversation has begun.
func (b *toolbox) leave() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stale = b.renew != nil && len(b.tools) > 0
}

// ready are the tools for a turn.
func (b *toolbox) ready() ([]session.Tool, error) {
	b.making.Lock()
	defer b.making.Unlock()
	b.mu.Lock()
	tools, stale := b.tools, b.stale
	b.mu.Unlock()
	if !stale {
		return tools, nil
	}
	tools, err := b.renew()
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	b.tools, b.stale = tools, false
	b.mu.Unlock()
	return tools, nil
}
