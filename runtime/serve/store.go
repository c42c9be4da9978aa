// State of a server that outlives its models: KV pages evicted from a pool, and the sampled turns.
//
// Pages are stored in host memory and, if configured, in a folder of the cache, where a reloaded
// model or restarted server finds its prefixes. Sampled turns are stored in the XDG state folder,
// so that a tool loop resumes with the model's reasoning after a restart. What must stay true: a
// failure here never prevents a start; host memory is the plan's surplus, or a requested size that
// the plan includes.

package serve

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/adrg/xdg"

	"github.com/ossrun/ossrun/models/store"
	"github.com/ossrun/ossrun/runtime/kv"
	"github.com/ossrun/ossrun/runtime/records"
)

// maxSpareSwap is the maximum default host memory for pages.
const maxSpareSwap = 4 << 30

// KeepOptions say what outlives a model. The zero value persists nothing.
type KeepOptions struct {
	SwapSpace int64 // bytes of host memory for KV pages; below 0: the first plan's surplus
	SwapDisk  int64 // bytes of disk for further pages

	Remember       time.Duration // how long sampled turns are kept after their last use
	RememberOnDisk bool
}

// sharedState is shared by the models of one process. It is safe for concurrent use.
type sharedState struct {
	store records.Store // of sampled turns and stored responses

	disk   int64       // bytes of pages
	folder string      // for them
	lock   *store.Lock // of the folder; nil without a disk

	mu      sync.Mutex
	space   int64     // bytes of host memory; below 0: the first plan's surplus
	pages   *kv.Spill // nil before the first plan, and without room for pages
	planned bool
}

func openShared(o KeepOptions, prefixCaching bool, notify func(string)) *sharedState {
	k := &sharedState{space: o.SwapSpace, folder: filepath.Join(xdg.CacheHome, "ossrun", "kv")}
	refused := func(what string, err error) {
		if errors.Is(err, store.ErrLocked) {
			err = errors.New("another ossrun serve keeps its own there")
		}
		notify(fmt.Sprintf("%s: %s", what, err))
	}
	options := records.Options{TTL: o.Remember, Notify: notify}
	if o.RememberOnDisk && o.Remember > 0 {
		options.File = filepath.Join(xdg.StateHome, "ossrun", "kept.db")
	}
	var err error
	if k.store, err = records.Open(options); err != nil {
		refused("sampled turns and responses are not kept beyond this process", err)
		options.File = ""
		k.store, _ = records.Open(options) // without a file there is no error
	}
	if !prefixCaching {
		k.space = 0
		return k
	}
	if o.SwapDisk > 0 {
		var err error
		if k.lock, err = store.TryLock(filepath.Join(k.folder, "lock")); err == nil {
			k.disk = o.SwapDisk
		} else {
			refused("KV pages are not kept on disk", err)
		}
	}
	return k
}

// spill is the store of a model's evicted pages, or nil. All share the first plan's surplus.
func (k *sharedState) spill(p Plan) *kv.Spill {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.planned {
		return k.pages
	}
	k.planned = true
	if k.space < 0 {
		k.space = p.defaultSwap()
	}
	if k.space == 0 && k.disk == 0 {
		return nil
	}
	var err error
	k.pages, err = kv.OpenSpill(kv.SpillOptions{HostBytes: k.space, Folder: k.folder,
		DiskBytes: k.disk})
	if err != nil { // the folder: a full or read-only disk
		k.disk = 0
		k.pages, _ = kv.OpenSpill(kv.SpillOptions{HostBytes: k.space})
	}
	return k.pages
}

// untouched is host memory that pages may still fill, so plans must leave it free.
func (k *sharedState) untouched() int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.pages == nil {
		return max(0, k.space)
	}
	host, _ := k.pages.Bytes()
	return max(0, k.space-host)
}

func (k *sharedState) hostSpace() int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.pages == nil {
		return 0
	}
	return k.space
}

// lines describe the space for pages; none without any.
func (k *sharedState) lines() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.pages == nil {
		return nil
	}
	line := "evicted conversations: up to " + gb(k.space) + " of host memory"
	if k.disk > 0 {
		line += fmt.Sprintf(" and %s of %s", gb(k.disk), k.folder)
	}
	return []string{line}
}

// forget removes the pages of a deleted record from the disk: those that this process has written,
// or would write, and those of an earlier one.
func (k *sharedState) forget(names []kv.Hash) error {
	k.mu.Lock()
	pages := k.pages
	k.mu.Unlock()
	if pages != nil {
		pages.Forget(names)
	}
	return kv.RemovePages(k.folder, names)
}

// close writes pages and turns for the next start. The models must be closed.
func (k *sharedState) close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	var err error
	if k.pages != nil {
		err = k.pages.Close()
	}
	if k.lock != nil {
		err = errors.Join(err, k.lock.Close())
	}
	return errors.Join(err, k.store.Close())
}
