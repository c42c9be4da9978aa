// What a server keeps beside its models, so that it outlives them: KV pages that were pushed out of a pool, and the turns that
// were sampled.
//
// Pages go to host memory and, if wanted, to a folder of the cache; a model that was unloaded, or a server that was started
// again, finds its prefixes there. Sampled turns go to the XDG state folder, so that a tool loop goes on with the model's
// reasoning after a restart. What must stay true: nothing here keeps a server from starting; host memory is what the plan
// has left over or what was asked for, and in the second case the plan knows.

package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/adrg/xdg"
	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/models/store"
	"github.com/ossrun/ossrun/runtime/kv"
	"github.com/ossrun/ossrun/runtime/session"
)

// mostSwap is what is taken of spare host memory by itself.
const mostSwap = 4 << 30

// keepFlags are the settings of it.
func keepFlags() []cli.Flag {
	return []cli.Flag{
		&cli.Float64Flag{Name: "swap-space", Aliases: []string{"kv-offloading-size"}, Category: groupMemory, Usage: "keep KV pages that are pushed out, or whose model is unloaded, in `GIB` of host memory; 0 is none (default: up to 4 of what the plan leaves over on the CPU, none on a GPU)"},
		&cli.Float64Flag{Name: "swap-disk", Category: groupMemory, Usage: "and behind that in `GIB` of disk, in ~/.cache/ossrun/kv, where they outlive the server (default: none)"},
		&cli.StringFlag{Name: "remember", Category: groupLife, Value: "24h", Usage: "keep the tokens of sampled turns, and stored responses, for `TIME` after they were last used, so that reasoning comes back as it was"},
		&cli.BoolFlag{Name: "no-remember-on-disk", Category: groupLife, Usage: "keep them in memory alone, so that they do not outlive the server"},
	}
}

// readKeep reads keepFlags.
func (k *knobs) readKeep(c *cli.Context, kind string) error {
	for _, f := range []struct {
		name string
		to   *int64
	}{{"swap-space", &k.swapSpace}, {"swap-disk", &k.swapDisk}} {
		gib := c.Float64(f.name)
		if !(gib >= 0 && gib <= 1<<20) {
			return fail(exitUsage, "--%s wants GiB from 0 up, not %v", f.name, gib)
		}
		*f.to = int64(gib * (1 << 30))
	}
	if !c.IsSet("swap-space") && kind == onCPU {
		k.swapSpace = -1
	}
	ttl, err := time.ParseDuration(c.String("remember"))
	if err != nil || ttl < 0 {
		return fail(exitUsage, "--remember wants a time such as 24h or 30m, not %q", c.String("remember"))
	}
	k.remember, k.rememberOnDisk = ttl, !c.Bool("no-remember-on-disk")
	if !k.prefixCache && (k.swapSpace > 0 || k.swapDisk > 0) {
		k.notes = append(k.notes, "--no-enable-prefix-caching: no KV pages are kept, so there is nothing to swap")
	}
	return nil
}

// kept is what one server keeps. It is safe for concurrent use.
type kept struct {
	store session.Store // of sampled turns and stored responses

	disk   int64       // bytes of pages
	folder string      // for them
	lock   *store.Lock // of the folder; nil without a disk

	mu    sync.Mutex
	space int64     // bytes of host memory; below 0: what the first plan leaves over
	pages *kv.Spill // nil before the first plan, and for none
	asked bool
}

// openKept says on t what cannot be kept.
func openKept(t Terminal, k knobs) *kept {
	m := &kept{space: k.swapSpace}
	m.remember(t, k)
	if !k.prefixCache {
		m.space = 0
		return m
	}
	if k.swapDisk > 0 {
		m.folder = filepath.Join(xdg.CacheHome, "ossrun", "kv")
		var err error
		if m.lock, err = store.TryLock(filepath.Join(m.folder, "lock")); err == nil {
			m.disk = k.swapDisk
		} else {
			sayNotKept(t, "KV pages are not kept on disk", err)
		}
	}
	return m
}

// remember opens the store of what was said.
func (m *kept) remember(t Terminal, k knobs) {
	if k.rememberOnDisk && k.remember > 0 {
		folder := filepath.Join(xdg.StateHome, "ossrun", "turns")
		var err error
		if m.store, err = session.OpenStore(session.StoreOptions{Folder: folder, TTL: k.remember}); err == nil {
			return
		}
		sayNotKept(t, "what is sampled is not remembered beyond this process", err)
	}
	m.store, _ = session.OpenStore(session.StoreOptions{TTL: k.remember}) // without a folder there is no error
}

func sayNotKept(t Terminal, what string, err error) {
	if errors.Is(err, store.ErrLocked) {
		err = errors.New("another ossrun serve keeps its own there")
	}
	fmt.Fprintf(t.Err, "ossrun: %s: %s\n", what, err)
}

// spill is session.LoadOptions.Spill: what the first plan makes of it holds for all models.
func (m *kept) spill(p session.Plan) *kv.Spill {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.asked {
		return m.pages
	}
	m.asked = true
	if m.space < 0 {
		m.space = min(p.Spare, mostSwap)
	}
	if m.space == 0 && m.disk == 0 {
		return nil // pages is nil
	}
	pages, err := kv.OpenSpill(kv.SpillOptions{HostBytes: m.space, Folder: m.folder, DiskBytes: m.disk})
	if err != nil { // the folder: a full or read-only disk
		m.disk = 0
		pages, _ = kv.OpenSpill(kv.SpillOptions{HostBytes: m.space})
	}
	m.pages = pages
	return pages
}

// untouched is host memory that pages may still fill, so a plan must leave it.
func (m *kept) untouched() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.pages == nil {
		return max(0, m.space)
	}
	host, _ := m.pages.Bytes()
	return max(0, m.space-host)
}

// line says what pages may fill, "" for nothing.
func (m *kept) line() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.pages == nil:
		return ""
	case m.disk == 0:
		return fmt.Sprintf("KV pages that are pushed out: up to %s of host memory", gigabytes(m.space))
	}
	return fmt.Sprintf("KV pages that are pushed out: up to %s of host memory and %s of %s", gigabytes(m.space), gigabytes(m.disk), m.folder)
}

// close writes what is to outlive the process. The models must be closed.
func (m *kept) close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var err error
	if m.pages != nil {
		err = m.pages.Close()
	}
	if m.lock != nil {
		err = errors.Join(err, m.lock.Release())
	}
	return errors.Join(err, m.store.Close())
}
