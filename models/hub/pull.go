package hub

// A pull: all needed files of a revision, over a fixed number of connections. Each file has a
// goroutine, which takes a connection for each of its ranges. When its last range has one, the next
// file begins, so connections stay busy while a finished file is still being hashed. A file that
// another process downloads is taken from the cache afterwards: two pulls share the work.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ossrun/ossrun/models/mapping"
	"github.com/ossrun/ossrun/models/store"
)

type Options struct {
	Root     string // the cache
	Repo     store.Repo
	Revision string // "" is main
	Verify   bool   // hash existing files again

	// Check reads config.json before other files are downloaded; its error ends the pull; or nil
	Check func(config []byte) error

	// called several times a second and at the end, from one goroutine; may be nil
	Progress func(Progress)
	Note     func(string) // logs an unusual event; called from any goroutine; may be nil
}

type Progress struct {
	Files, FilesDone int
	Bytes, Done      int64         // Done includes earlier pulls
	Fetched          int64         // bytes that this pull received
	Rate             float64       // bytes a second, recently
	Remaining        time.Duration // 0 if unknown
}

type Result struct {
	Commit  string
	Path    string // the snapshot
	Bytes   int64  // of all files
	Fetched int64  // received by this pull
	Files   []File
}

type pull struct {
	Options
	client *Client
	commit string

	count struct {
		done, fetched, files atomic.Int64
	}
	buffers  chan []byte // one per connection; its owner uses the connection
	flushing sync.Mutex
}

// restartLimit is how often one file may restart in one pull.
const restartLimit = 2

// Pull downloads the missing files of a revision. An interrupted pull is resumed by the next one.
func (c *Client) Pull(ctx context.Context, o Options) (Result, error) {
	if c.Offline {
		return Result{}, &OfflineError{o.Repo.ID(), o.Root}
	}
	o.Revision = cmp.Or(o.Revision, "main")
	revision, err := c.Revision(ctx, o.Repo, o.Revision)
	if err != nil {
		return Result{}, err
	}
	if err := revision.checkUsable(o.Repo.ID()); err != nil {
		return Result{}, err
	}
	p := &pull{Options: o, client: c, commit: revision.Commit,
		buffers: make(chan []byte, c.Connections)}
	for range c.Connections {
		p.buffers <- make([]byte, pieceBytes)
	}
	result := Result{Commit: p.commit, Path: store.SnapshotPath(o.Root, o.Repo, p.commit)}
	listed := revision.Needed()
	result.Files = make([]File, len(listed))
	err = mapping.Parallel(ctx, c.Connections, len(listed), new(atomic.Int64),
		func(i int, _ *[]byte) (n int64, err error) {
			result.Files[i], err = c.Resolve(ctx, o.Repo, p.commit, listed[i])
			return 0, err
		})
	if err != nil {
		return result, err
	}
	for _, f := range result.Files {
		result.Bytes += f.Size
		pinned := store.Pointer(filepath.Join(result.Path, filepath.FromSlash(f.Path)))
		if pinned != "" && f.SHA256 != "" && pinned != f.SHA256 {
			return result, fmt.Errorf("%s of commit %s had the SHA-256 %s when it was first "+
				"fetched, and %s names %s now, though a commit does not change. Ask "+
				"who runs that hub. ossrun rm deletes the files",
				f.Path, p.commit, pinned, c.host(), f.SHA256)
		}
	}
	blobs := filepath.Dir(store.BlobPath(o.Root, o.Repo, "x"))
	if err := store.MakeFolder(o.Root, o.Repo, blobs); err != nil {
		return result, fmt.Errorf("making the cache's folders: %w", err)
	}
	stop := p.report(len(result.Files), result.Bytes)
	first := 0
	if o.Check != nil && listed[0].Path == "config.json" {
		first = 1
	}
	if err = p.run(ctx, result.Files[:first], listed[:first]); err == nil && first > 0 {
		var config []byte
		if config, err = os.ReadFile(filepath.Join(result.Path, "config.json")); err == nil {
			err = o.Check(config)
		}
	}
	if err == nil {
		err = p.checkSpace(result.Files)
	}
	if err == nil {
		err = p.run(ctx, result.Files[first:], listed[first:])
	}
	if err == nil {
		err = store.WriteRef(o.Root, o.Repo, o.Revision, p.commit)
	}
	stop()
	result.Fetched = p.count.fetched.Load()
	return result, err
}

func (p *pull) checkSpace(files []File) error {
	var need int64
	boot := bootID()
	seen := map[string]bool{}
	for _, f := range files {
		blob := store.BlobPath(p.Root, p.Repo, f.ETag)
		if stat, err := os.Stat(blob); seen[blob] || err == nil && stat.Size() == f.Size {
			continue
		}
		seen[blob] = true
		need += f.Size
		if state, ok := readJournal(blob, f.Size, boot); ok {
			need -= state.done()
		}
	}
	free, err := store.Free(p.Root)
	if err != nil || need <= free {
		return nil // unknown free space: try it
	}
	return &SpaceError{Path: p.Root, Need: need, Free: free}
}

func (p *pull) run(ctx context.Context, files []File, listed []ListedFile) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var group sync.WaitGroup
	for i, f := range files {
		handed := make(chan struct{})
		next := sync.OnceFunc(func() { close(handed) })
		group.Go(func() {
			defer next()
			if err := p.pullFile(ctx, f, listed[i], next); err != nil {
				cancel(err)
			}
		})
		<-handed
	}
	group.Wait()
	return context.Cause(ctx)
}

// pullFile downloads one file into the cache, and restarts if it changed on the hub or arrived
// damaged. next is called once the next file may have the connections.
func (p *pull) pullFile(ctx context.Context, f File, listed ListedFile, next func()) error {
	for starts := 1; ; starts++ {
		err := p.attempt(ctx, f, listed, next)
		_, damaged := errors.AsType[*HashError](err)
		switch changed := errors.Is(err, errAbandoned); {
		case !changed && !damaged:
			return err
		case starts == restartLimit && changed:
			return fmt.Errorf("%s changes on the hub while it is fetched: run it again later",
				f.Path)
		case starts == restartLimit:
			return err
		case changed:
			p.note("%s changed on the hub, starting it again", f.Path)
		default:
			p.note("%s arrived damaged, starting it again", f.Path)
		}
		if f, err = p.client.Resolve(ctx, p.Repo, p.commit, listed); err != nil {
			return err
		}
	}
}

// attempt takes a file from the cache or downloads it.
func (p *pull) attempt(ctx context.Context, f File, listed ListedFile, next func()) (err error) {
	blob := store.BlobPath(p.Root, p.Repo, f.ETag)
	cached := p.linkCached(ctx, f, blob, next)
	var damaged *HashError
	switch missing := errors.Is(cached, fs.ErrNotExist); {
	case errors.As(cached, &damaged):
		p.note("%s in the cache is damaged, fetching it again", f.Path)
	case !missing:
		return cached
	}
	lock, err := p.lock(ctx, f, next)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if damaged == nil { // it may have arrived before the lock
		if err := p.linkCached(ctx, f, blob, next); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	t, err := p.openTransfer(ctx, f, listed, blob)
	if err != nil {
		return err
	}
	if err := t.run(next); err != nil {
		return err
	}
	return p.link(f)
}

// lock takes the lock of a file's blob, and waits while another program downloads it. Any process
// that can read the lock's file can hold it, so a holder that writes nothing times out.
func (p *pull) lock(ctx context.Context, f File, next func()) (*store.Lock, error) {
	path := store.LockPath(p.Root, p.Repo, f.ETag)
	blob, wrote, since := store.BlobPath(p.Root, p.Repo, f.ETag), int64(0), time.Now()
	for notified := false; ; notified = true {
		lock, err := store.TryLock(path)
		if !errors.Is(err, store.ErrLocked) {
			return lock, err
		}
		if !notified {
			next()
			p.note("%s is being fetched by %s, waiting for it", f.Path,
				cmp.Or(store.Holder(path), "another program"))
		}
		if now := writeState(blob); now != wrote {
			wrote, since = now, time.Now()
		} else if time.Since(since) > p.client.LockTimeout {
			return nil, fmt.Errorf("%s is locked by %s, which has written nothing for %v: stop "+
				"it, or delete %s", f.Path, cmp.Or(store.Holder(path), "another program"),
				p.client.LockTimeout, path)
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(250 * time.Millisecond):
		}
	}
}

// writeState changes with every write to a blob or its partial files.
func writeState(blob string) (sum int64) {
	for _, suffix := range [...]string{"", partialSuffix, journalSuffix, foreignSuffix} {
		if stat, err := os.Stat(blob + suffix); err == nil {
			sum += stat.ModTime().UnixNano() ^ stat.Size()
		}
	}
	return sum
}

func (p *pull) link(f File) error {
	if err := store.Link(p.Root, p.Repo, p.commit, f.Path, f.ETag); err != nil {
		return wrapFull(p.Root, err)
	}
	sweepJournal(store.BlobPath(p.Root, p.Repo, f.ETag))
	p.count.files.Add(1)
	return nil
}

// linkCached links a cached file into the snapshot; fs.ErrNotExist if missing. It is hashed first
// with Verify, or if it was written to since its last hash; *HashError if its bytes are wrong.
func (p *pull) linkCached(ctx context.Context, f File, blob string, next func()) error {
	path := blob
	stat, err := os.Stat(path)
	if err != nil {
		// Without links, the blob has become the snapshot's file.
		path = filepath.Join(store.SnapshotPath(p.Root, p.Repo, p.commit),
			filepath.FromSlash(f.Path))
		stat, err = os.Lstat(path)
	}
	if err != nil || !stat.Mode().IsRegular() || stat.Size() != f.Size {
		return fs.ErrNotExist
	}
	if sum, ok := store.Stamped(blob); ok && path == blob && !p.Verify &&
		(f.SHA256 == "" || f.SHA256 == sum) {
		p.count.done.Add(f.Size)
		return p.link(f)
	}
	next() // hashing needs no connection
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	sum := newHashes(f)
	if err := sum.read(ctx, file, func(n int64) { p.count.done.Add(n) }); err != nil {
		return fmt.Errorf("reading %s: %w", f.Path, err)
	}
	if err := sum.check(f); err != nil {
		p.count.done.Add(-f.Size)
		return err
	}
	if path == blob {
		if err := store.WriteStamp(blob, sum.sha256()); err != nil {
			// a cache that is read-only can still be used
			p.note("%s cannot be marked as checked: %v", f.Path, err)
		}
	}
	return p.link(f)
}

func (p *pull) note(format string, args ...any) {
	if p.Note != nil {
		p.Note(fmt.Sprintf(format, args...))
	}
}
