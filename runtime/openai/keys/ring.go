// The keys of a running port.

package keys

import (
	"context"
	"crypto/subtle"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ossrun/ossrun/runtime/process"
	"github.com/ossrun/ossrun/runtime/records"
)

// Ring is the current keys of a file, and their usage. It is safe for concurrent use.
type Ring struct {
	path   string
	store  records.Store // for usage
	notify func(string)
	now    func() time.Time
	// OnRemoval is called when nothing of a removed key's client runs any more; may be nil
	OnRemoval  func(id string)
	forgetting sync.WaitGroup

	mu        sync.Mutex
	keys      []Key
	keyNeeded bool        // stays when the last key is removed or the file is missing
	stamp     os.FileInfo // of the file when it was read; nil: it was missing
	use       map[string]*keyState
	flush     *time.Timer // nil: nothing is to be written
}

func Open(path string, store records.Store, notify func(string)) (*Ring, error) {
	r := &Ring{path: path, store: store, notify: notify, now: time.Now, use: map[string]*keyState{}}
	var err error
	r.stamp, _ = os.Stat(path)
	f, err := load(path)
	if err != nil && inFolderOfAnother(path) {
		notify(err.Error() + "; they are skipped, since the folder is another user's")
		f, err = file{Optional: true}, nil
	}
	r.keys, r.keyNeeded = f.Keys, !f.Optional
	return r, err
}

// inFolderOfAnother tells whether path is in a folder that only another user can look into, as the
// HOME of root in a container. A file that can be seen but not read is none: it may be needed.
func inFolderOfAnother(path string) bool {
	info, err := os.Stat(path)
	unseen := errors.Is(err, os.ErrPermission)
	for err != nil && path != filepath.Dir(path) {
		path = filepath.Dir(path)
		info, err = os.Stat(path)
	}
	return unseen && err == nil && !process.Owns(info)
}

func (r *Ring) Len() int {
	if r == nil {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.keys)
}

// NeedsKey tells whether clients need a key. A nil Ring requires none.
func (r *Ring) NeedsKey() bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reload()
	return r.keyNeeded
}

func (r *Ring) reload() {
	now, err := os.Stat(r.path)
	if err != nil {
		now = nil
	}
	if now == nil && r.stamp == nil || now != nil && r.stamp != nil && os.SameFile(now, r.stamp) &&
		now.ModTime().Equal(r.stamp.ModTime()) && now.Size() == r.stamp.Size() {
		return
	}
	r.stamp = now
	f, err := load(r.path)
	if err != nil {
		r.notify(err.Error() + "; the keys stay as they were")
		return
	}
	r.keys, r.keyNeeded = f.Keys, !f.Optional || now == nil && r.keyNeeded
	r.endLeases()
}

// Find is the client with this key, nil for a wrong one. Its duration reveals nothing about the
// keys.
func (r *Ring) Find(key string) (client *Client) {
	if r == nil {
		return nil
	}
	hash := []byte(hashOf(key))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reload()
	for _, k := range r.keys {
		if subtle.ConstantTimeCompare(hash, []byte(k.Hash)) == 1 {
			client = r.client(k)
		}
	}
	return client
}

// Owner is the client that owns records under this id, nil if its key was removed.
func (r *Ring) Owner(id string) *Client {
	if r == nil || id == "" {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range r.keys {
		if k.ID == id {
			return r.client(k)
		}
	}
	return nil
}

// client is called with r.mu held.
func (r *Ring) client(k Key) *Client {
	if r.use[k.ID] == nil {
		r.use[k.ID] = &keyState{unsaved: map[string]Usage{}}
	}
	u := r.use[k.ID]
	if u.name = k.Name; u.lease == nil {
		u.lease = &lease{}
		u.lease.ctx, u.lease.end = context.WithCancel(context.Background())
	}
	return &Client{k, r, u.lease}
}

// Totals is the usage of each name in this process.
func (r *Ring) Totals() map[string]Usage {
	all := map[string]Usage{}
	if r == nil {
		return all
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for u := range maps.Values(r.use) {
		all[u.name] = all[u.name].plus(u.total)
	}
	return all
}

// Client is a client with a named key. A nil Client has none and may do everything.
type Client struct {
	Key
	ring  *Ring
	lease *lease
}

// KeyName is the name of its key, "" without one.
func (c *Client) KeyName() string {
	if c == nil {
		return ""
	}
	return c.Name
}

// MayUseModel tells whether it may use a model that has these names.
func (c *Client) MayUseModel(names ...string) bool {
	return c == nil || len(c.Models) == 0 || slices.ContainsFunc(names, func(name string) bool {
		return slices.ContainsFunc(c.Models, func(may string) bool {
			return strings.EqualFold(may, name)
		})
	})
}

func (c *Client) MayUseTool(kind string) bool {
	return c == nil || c.Tools == nil || slices.Contains(c.Tools, kind)
}
