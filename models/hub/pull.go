package hub

// A pull: all needed files of a revision, over a fixed number of connections. Workers take ranges
// of the file that was opened last and open the next file when it has none left, so connections
// stay busy while a finished file is still being hashed. A file that another process fetches is
// left to it and looked at again afterwards: two pulls share the work.

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ossrun/ossrun/models/store"
)

// Options are what a pull is told.
type Options struct {
	Root     string // the cache
	Repo     store.Repo
	Revision string // "" is main
	Verify   bool   // hash files again that are there and were hashed before

	// called several times a second and at the end, by one goroutine; may be nil
	Progress func(Progress)
	Note     func(string) // a line about something unusual; called by any goroutine; may be nil
}

// Progress is how far a pull is.
type Progress struct {
	Files, FilesDone int
	Bytes, Done      int64         // Done counts what was there before
	Fetched          int64         // bytes that this pull received
	Rate             float64       // bytes a second, lately
	Left             time.Duration // 0 when it cannot be told
}

// Result is what a pull made.
type Result struct {
	Commit  string
	Path    string // the snapshot
	Bytes   int64  // of all files
	Fetched int64  // of those, what was received
	Files   []File
}

type pull struct {
	Options
	client *Client
	root   string
	repo   store.Repo
	commit string
	listed map[string]Listed

	count struct {
		done, fetched, files atomic.Int64
	}
	flushing sync.Mutex

	mu       sync.Mutex
	queue    []File // not looked at yet
	waiting  []File // another process has them
	again    []File // to be fetched from nothing
	open     []*transfer
	restarts map[string]int
	damaged  map[string]bool // what the cache has of these is wrong
	told     map[string]bool // notes that were made once
	failed   error
	tails    sync.WaitGroup // goroutines that hash and finish
	cancel   context.CancelCauseFunc
}

// restartLimit is how often one file may start again in one pull.
const restartLimit = 2

// Pull fetches what is missing of a revision. Whatever ends it early, the next one goes on from
// there.
func (c *Client) Pull(ctx context.Context, o Options) (Result, error) {
	if c.Offline {
		return Result{}, &OfflineError{o.Repo.ID(), o.Root}
	}
	revision, err := c.Revision(ctx, o.Repo, o.Revision)
	if err != nil {
		return Result{}, unwrapped(err)
	}
	if err := revision.usable(o.Repo.ID()); err != nil {
		return Result{}, unwrapped(err)
	}
	p := &pull{Options: o, client: c, root: o.Root, repo: o.Repo, commit: revision.Commit,
		listed: map[string]Listed{}, restarts: map[string]int{}, damaged: map[string]bool{},
		told: map[string]bool{}}
	result := Result{Commit: p.commit, Path: store.SnapshotPath(p.root, p.repo, p.commit)}
	if p.queue, err = p.resolve(ctx, revision.Needed()); err != nil {
		return result, unwrapped(err)
	}
	result.Files = append(result.Files, p.queue...)
	for _, f := range p.queue {
		result.Bytes += f.Size
	}
	if err := p.room(); err != nil {
		return result, err
	}
	if err := os.MkdirAll(filepath.Dir(store.BlobPath(p.root, p.repo, "x")), 0o777); err != nil {
		return result, fmt.Errorf("making the cache's folders: %w", err)
	}
	stop := p.report(len(p.queue), result.Bytes)
	err = p.run(ctx)
	if err == nil {
		err = store.WriteRef(p.root, p.repo, orMain(o.Revision), p.commit)
	}
	stop()
	result.Fetched = p.count.fetched.Load()
	return result, unwrapped(err)
}

func orMain(revision string) string {
	if revision == "" {
		return "main"
	}
	return revision
}

// unwrapped takes the mark away that only retries look at.
func unwrapped(err error) error {
	var permanent *permanentError
	if errors.As(err, &permanent) && permanent == err {
		return permanent.err
	}
	return err
}

// resolve asks about all files, several at once.
func (p *pull) resolve(ctx context.Context, list []Listed) ([]File, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	files := make([]File, len(list))
	var group sync.WaitGroup
	slots := make(chan struct{}, p.client.Connections)
	for i, l := range list {
		p.listed[l.Path] = l
		group.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			f, err := p.client.Resolve(ctx, p.repo, p.commit, l)
			if err != nil {
				cancel(err)
			}
			files[i] = f
		})
	}
	group.Wait()
	return files, context.Cause(ctx)
}

// room checks that the disk can hold what is still to be written.
func (p *pull) room() error {
	var need int64
	boot := bootID()
	seen := map[string]bool{}
	for _, f := range p.queue {
		blob := store.BlobPath(p.root, p.repo, f.ETag)
		if stat, err := os.Stat(blob); seen[blob] || err == nil && stat.Size() == f.Size {
			continue
		}
		seen[blob] = true
		need += f.Size
		if at, ok := readJournal(blob, f.Size, boot); ok {
			need -= at.done()
		}
	}
	free, err := store.Free(p.root)
	if err != nil || need <= free {
		return nil // a file system that does not tell gets its chance
	}
	return &SpaceError{Path: p.root, Need: need, Free: free}
}

// run fetches in rounds: a further one for files that start again, and for those that another
// process had.
func (p *pull) run(ctx context.Context) error {
	ctx, p.cancel = context.WithCancelCause(ctx)
	defer p.cancel(nil)
	for {
		var workers sync.WaitGroup
		for range p.client.Connections {
			workers.Go(func() { p.work(ctx) })
		}
		workers.Wait()
		p.tails.Wait()
		p.mu.Lock()
		p.open = nil
		p.queue, p.again = p.again, nil
		if len(p.queue) == 0 {
			p.queue, p.waiting = p.waiting, nil
		}
		failed, left := p.failed, len(p.queue)
		wait := left > 0 && p.told[p.queue[0].Path]
		p.mu.Unlock()
		switch {
		case failed != nil:
			return failed
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case left == 0:
			return nil
		case wait:
			select {
			case <-ctx.Done():
			case <-time.After(250 * time.Millisecond):
			}
		}
	}
}

// fail ends the pull. The first error counts.
func (p *pull) fail(err error) {
	p.mu.Lock()
	if p.failed == nil {
		p.failed = err
	}
	p.mu.Unlock()
	p.cancel(err)
}

// work does jobs until there are none.
func (p *pull) work(ctx context.Context) {
	buffer := make([]byte, pieceBytes)
	for ctx.Err() == nil {
		j, ok, err := p.next(ctx)
		if err != nil {
			p.fail(err)
		}
		if !ok {
			return
		}
		err = j.fetch(buffer)
		if errors.Is(err, errAbandoned) {
			j.t.end(errAbandoned)
		} else if err != nil && ctx.Err() == nil {
			p.fail(err)
		}
		j.t.give(j)
	}
}

// next gives a range, opening files as need be.
func (p *pull) next(ctx context.Context) (job, bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		for _, t := range p.open {
			if j, ok := t.take(); ok {
				return j, true, nil
			}
		}
		if len(p.queue) == 0 || ctx.Err() != nil {
			return job{}, false, nil
		}
		f := p.queue[0]
		p.queue = p.queue[1:]
		if err := p.begin(ctx, f); err != nil {
			return job{}, false, err
		}
	}
}

// begin looks at a file: it is there, or another process fetches it, or it is opened. Called with
// p.mu held.
func (p *pull) begin(ctx context.Context, f File) error {
	blob := store.BlobPath(p.root, p.repo, f.ETag)
	if p.have(ctx, f, blob) {
		return nil
	}
	lock, err := store.TryLock(store.LockPath(p.root, p.repo, f.ETag))
	if errors.Is(err, store.ErrLocked) {
		p.waiting = append(p.waiting, f)
		if !p.told[f.Path] {
			p.told[f.Path] = true
			p.note("%s is being fetched by another program, waiting for it", f.Path)
		}
		return nil
	}
	if err != nil {
		return err
	}
	if p.have(ctx, f, blob) { // it was finished between the look and the lock
		return lock.Release()
	}
	t, err := p.openTransfer(ctx, f, lock)
	if err != nil {
		return errors.Join(err, lock.Release())
	}
	p.open = append(p.open, t)
	p.tails.Go(func() { p.tail(t) })
	return nil
}

// tail hashes a file while it is fetched and puts it in its place.
func (p *pull) tail(t *transfer) {
	stop := context.AfterFunc(t.ctx, func() { t.end(context.Cause(t.ctx)) })
	defer stop()
	err := t.follow()
	var damaged *HashError
	restart := errors.Is(err, errAbandoned) || errors.As(err, &damaged)
	t.end(errDone)
	closing := t.close(restart)
	switch {
	case restart:
		p.restart(t.want, err)
		err = nil
	case err == nil:
		err = p.place(t.want)
	}
	if err = errors.Join(err, closing); err != nil {
		p.fail(unwrapped(err))
	}
}

// errDone ends a transfer that has nothing left to do.
var errDone = errors.New("done")

// place links a finished blob into the snapshot.
func (p *pull) place(f File) error {
	if err := store.Link(p.root, p.repo, p.commit, f.Path, f.ETag); err != nil {
		return full(p.root, err)
	}
	sweepJournal(store.BlobPath(p.root, p.repo, f.ETag))
	p.count.files.Add(1)
	return nil
}

// restart queues a file to be fetched from nothing, if that was not done too often.
func (p *pull) restart(f File, why error) {
	p.mu.Lock()
	p.restarts[f.Path]++
	n := p.restarts[f.Path]
	p.mu.Unlock()
	if n >= restartLimit {
		if errors.Is(why, errAbandoned) {
			why = &ChangedError{f.Path}
		}
		p.fail(why)
		return
	}
	if errors.Is(why, errAbandoned) {
		p.note("%s changed on the hub, starting it again", f.Path)
	} else {
		p.note("%s arrived damaged, starting it again", f.Path)
	}
	now, err := p.client.Resolve(context.Background(), p.repo, p.commit, p.listed[f.Path])
	if err != nil {
		p.fail(err)
		return
	}
	p.mu.Lock()
	p.again = append(p.again, now)
	p.mu.Unlock()
}

// have tells whether a file is in the cache. One that was not hashed since it was last written to,
// or all of them when Verify is asked for, is hashed first, in a goroutine of its own; when its
// bytes are wrong it is fetched again.
func (p *pull) have(ctx context.Context, f File, blob string) bool {
	if p.damaged[f.Path] {
		return false
	}
	path := blob
	stat, err := os.Stat(path)
	if err != nil {
		// Where links are not possible the blob became the snapshot's file.
		path = filepath.Join(store.SnapshotPath(p.root, p.repo, p.commit),
			filepath.FromSlash(f.Path))
		if stat, err = os.Lstat(path); err != nil || !stat.Mode().IsRegular() {
			return false
		}
	}
	if stat.Size() != f.Size {
		return false
	}
	if sum, ok := store.Stamped(blob); ok && path == blob && !p.Verify &&
		(f.SHA256 == "" || f.SHA256 == sum) {
		p.count.done.Add(f.Size)
		if err := p.place(f); err != nil {
			p.failed = err
			p.cancel(err)
		}
		return true
	}
	p.tails.Go(func() {
		err := p.rehash(ctx, f, path, blob)
		var damaged *HashError
		switch {
		case errors.As(err, &damaged):
			p.count.done.Add(-f.Size)
			p.note("%s in the cache is damaged, fetching it again", f.Path)
			p.mu.Lock()
			p.damaged[f.Path] = true
			p.again = append(p.again, f)
			p.mu.Unlock()
		case err != nil:
			p.fail(err)
		}
	})
	return true
}

// rehash hashes a file that is in the cache.
func (p *pull) rehash(ctx context.Context, f File, path, blob string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	sum := newSums(f)
	if err := sum.read(ctx, file, func(n int64) { p.count.done.Add(n) }); err != nil {
		return fmt.Errorf("reading %s: %w", f.Path, err)
	}
	if err := sum.check(f); err != nil {
		return err
	}
	if path == blob {
		if err := store.WriteStamp(blob, sum.sha256()); err != nil {
			// a cache that is read-only can still be used
			p.note("%s cannot be marked as checked: %v", f.Path, err)
		}
	}
	return p.place(f)
}

// note tells a person something.
func (p *pull) note(format string, args ...any) {
	if p.Note != nil {
		p.Note(fmt.Sprintf(format, args...))
	}
}
