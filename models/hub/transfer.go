package hub

// One file's download: the partial file, the progress of its ranges, and a hash that follows the
// contiguous bytes from the beginning. Ranges are written in place, so the file is complete after
// the last one.

import (
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/ossrun/ossrun/models/store"
)

// flushEvery is the number of bytes between two flushes: the loss when the machine crashes.
const flushEvery = 256 << 20

// pieceBytes is the size of one read and write: the loss per connection when the process crashes.
const pieceBytes = 64 << 10

// transfer is the download of a file. The lock of its blob is held.
type transfer struct {
	*origin
	pull *pull
	blob string // the file's final path

	partial *os.File
	journal *journal

	mu        sync.Mutex
	changed   sync.Cond // more bytes are written, or ctx ended
	progress  progress
	fullOnly  bool // the server has no ranges: one connection takes the file
	sinceSync int64

	ctx    context.Context // ends with the first error
	cancel context.CancelCauseFunc
}

// errAbandoned reports that a file must restart.
var errAbandoned = errors.New("the file on the hub is another one now")

func (p *pull) openTransfer(ctx context.Context, f File, listed ListedFile,
	blob string) (*transfer, error) {
	t := &transfer{origin: p.client.origin(p.Repo, p.commit, f, listed), pull: p, blob: blob}
	t.changed.L = &t.mu
	if err := refuseNewer(blob); err != nil {
		return nil, err
	}
	boot := bootID()
	state, ok := readJournal(blob, f.Size, boot)
	if !ok {
		state, ok = adoptPartial(blob, f.Size, p.client.ChunkBytes)
	}
	if !ok {
		state = newProgress(f.Size, p.client.ChunkBytes)
	}
	var err error
	t.partial, err = store.Open(blob+partialSuffix, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, err
	}
	if err = t.partial.Truncate(f.Size); err == nil && ok {
		err = t.partial.Sync()
	}
	if err == nil {
		t.journal, err = startJournal(blob, state, boot)
	}
	if err != nil {
		t.partial.Close()
		return nil, wrapFull(blob, err)
	}
	t.progress = state
	t.ctx, t.cancel = context.WithCancelCause(ctx)
	p.count.done.Add(state.done())
	return t, nil
}

// run downloads the missing ranges, hashes the file meanwhile and renames it. next is called once
// all ranges have their connections.
func (t *transfer) run(next func()) error {
	defer t.cancel(nil)
	defer context.AfterFunc(t.ctx, func() {
		t.mu.Lock()
		t.changed.Broadcast()
		t.mu.Unlock()
	})()
	sum, hashed := newHashes(t.want), make(chan error, 1)
	go func() {
		err := t.follow(sum)
		if err != nil {
			t.cancel(err)
		}
		hashed <- err
	}()
	var workers sync.WaitGroup
	for i := range t.progress.written {
		if _, length := t.remaining(i); length > 0 && !t.isFullOnly() {
			t.connect(&workers, i)
		}
	}
	next()
	workers.Wait()
	if t.isFullOnly() {
		t.connect(&workers, wholeFile)
		workers.Wait()
	}
	err := errors.Join(<-hashed, t.journal.file.Close())
	var damaged *HashError
	switch {
	case err == nil:
		return t.finish(sum.sha256())
	case errors.Is(err, errAbandoned), errors.As(err, &damaged):
		t.pull.count.done.Add(-t.progress.done())
		return errors.Join(err, t.partial.Close(), dropPartial(t.blob))
	}
	return errors.Join(err, t.partial.Close())
}

// connect downloads a range over the next free connection.
func (t *transfer) connect(workers *sync.WaitGroup, i int) {
	select {
	case <-t.ctx.Done():
	case buffer := <-t.pull.buffers:
		workers.Go(func() {
			if err := t.fetch(i, buffer); err != nil {
				t.cancel(err)
			}
			t.pull.buffers <- buffer
		})
	}
}

// isFullOnly reports whether the server only sends the file from its beginning.
func (t *transfer) isFullOnly() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.fullOnly
}

// remaining returns the start of range i's rest, relative to the file, and its length.
func (t *transfer) remaining(i int) (from, length int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	start, length := t.progress.span(i)
	done := int64(t.progress.written[i])
	return start + done, length - done
}

func (t *transfer) write(i int, data []byte) error {
	from, _ := t.remaining(i)
	if _, err := t.partial.WriteAt(data, from); err != nil {
		return wrapFull(t.blob, err)
	}
	t.mu.Lock()
	t.progress.written[i] += uint32(len(data))
	n := t.progress.written[i]
	t.sinceSync += int64(len(data))
	flush := t.sinceSync >= flushEvery
	var now []uint32
	if flush {
		t.sinceSync = 0
		now = append(now, t.progress.written...)
	}
	t.changed.Broadcast()
	t.mu.Unlock()
	t.pull.count.done.Add(int64(len(data)))
	t.pull.count.fetched.Add(int64(len(data)))
	if err := t.journal.record(i, 0, n); err != nil {
		return wrapFull(t.blob, err)
	}
	if !flush {
		return nil
	}
	// one at a time: a second flush would only wait for the first one
	t.pull.flushing.Lock()
	defer t.pull.flushing.Unlock()
	err := t.partial.Sync()
	if err == nil {
		err = t.journal.flush(now)
	}
	return wrapFull(t.blob, err)
}

// contiguous is the number of bytes from the beginning without a gap.
func (t *transfer) contiguous() int64 {
	var n int64
	for i, w := range t.progress.written {
		n += int64(w)
		if _, length := t.progress.span(i); int64(w) < length {
			break
		}
	}
	return n
}

// follow hashes the file as it grows, and checks it once it is complete.
func (t *transfer) follow(sum *hashes) error {
	var hashed int64
	for hashed < t.progress.size {
		t.mu.Lock()
		for t.ctx.Err() == nil && t.contiguous() == hashed {
			t.changed.Wait()
		}
		ready := t.contiguous()
		t.mu.Unlock()
		if t.ctx.Err() != nil {
			return context.Cause(t.ctx)
		}
		if err := sum.read(t.ctx, io.NewSectionReader(t.partial, hashed, ready-hashed),
			nil); err != nil {
			return fmt.Errorf("reading %s back: %w", t.want.Path, err)
		}
		hashed = ready
	}
	return sum.check(t.want)
}

func (t *transfer) finish(sum []byte) error {
	err := errors.Join(t.partial.Sync(), t.partial.Close())
	if err == nil {
		err = os.Rename(t.blob+partialSuffix, t.blob)
	}
	if err == nil {
		err = syncFolder(filepath.Dir(t.blob))
	}
	if err == nil {
		err = store.WriteStamp(t.blob, sum)
	}
	if err != nil {
		return wrapFull(t.blob, fmt.Errorf("finishing %s: %w", t.want.Path, err))
	}
	// a remaining journal would be ignored, as its partial file is gone
	os.Remove(t.blob + journalSuffix)
	return nil
}

// syncFolder flushes a folder's entries, if the system can.
func syncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer d.Close()
	// some file systems and Windows refuse; the entries are then only as durable as they make them
	_ = d.Sync()
	return nil
}

func wrapFull(path string, err error) error {
	if store.IsFull(err) {
		return &SpaceError{Path: filepath.Dir(path)}
	}
	return err
}

// hashes are the hashes that may identify a file.
type hashes struct {
	git  hash.Hash // nil if not needed
	full hash.Hash
	// reused between reads: a file is hashed in as many reads as it has pieces
	buffer []byte
}

func newHashes(f File) *hashes {
	s := &hashes{full: sha256.New(), buffer: make([]byte, 128<<10)}
	if f.GitSHA != "" {
		s.git = sha1.New()
		fmt.Fprintf(s.git, "blob %d\x00", f.Size)
	}
	return s
}

// read hashes r; each counts the bytes, if not nil.
func (s *hashes) read(ctx context.Context, r io.Reader, count func(int64)) error {
	for {
		n, err := r.Read(s.buffer)
		s.full.Write(s.buffer[:n])
		if s.git != nil {
			s.git.Write(s.buffer[:n])
		}
		if count != nil {
			count(int64(n))
		}
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
	}
}

func (s *hashes) sha256() []byte { return s.full.Sum(nil) }

func (s *hashes) check(f File) error {
	want, got := f.SHA256, hex.EncodeToString(s.sha256())
	if want == "" && f.GitSHA != "" {
		want, got = f.GitSHA, hex.EncodeToString(s.git.Sum(nil))
	}
	if want != "" && want != got {
		return &HashError{f.Path, want, got}
	}
	return nil
}
