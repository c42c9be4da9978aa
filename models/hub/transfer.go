package hub

// One file on its way: the partial file, how far its ranges are, who works on which, and a hash
// that follows the bytes from the beginning as they become contiguous. Ranges are written where
// they belong, so the file is whole when the last one is.

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
	"time"

	"github.com/ossrun/ossrun/models/store"
)

// flushEvery is how much of a file is written between two flushes, in bytes: what a crash of the
// machine may cost.
const flushEvery = 256 << 20

// pieceBytes is how much is read and written at once: what a crash of the process may cost a
// connection.
const pieceBytes = 64 << 10

// transfer is a file that is being fetched.
type transfer struct {
	pull *pull
	want File
	blob string // the path under its final name
	lock *store.Lock

	partial *os.File
	journal *journal

	mu        sync.Mutex
	changed   sync.Cond // more is written, or it ended
	at        progress
	taken     []bool // ranges that a worker has
	whole     bool   // the server knows no ranges: one worker takes everything
	workers   int
	ended     error // why no range is given out any more
	sinceSync int64

	ctx    context.Context
	cancel context.CancelCauseFunc

	addressMu sync.Mutex
	where     string // where the bytes are now
	foreign   bool   // on another host than the hub
}

// errAbandoned says that a file starts again from nothing.
var errAbandoned = errors.New("the file on the hub is another one now")

// openTransfer opens or makes the partial file of a blob, whose lock is held.
func (p *pull) openTransfer(ctx context.Context, f File, lock *store.Lock) (*transfer, error) {
	t := &transfer{pull: p, want: f, where: f.address, foreign: f.foreign,
		blob: store.BlobPath(p.root, p.repo, f.ETag), lock: lock}
	t.changed.L = &t.mu
	boot := bootID()
	at, ok := readJournal(t.blob, f.Size, boot)
	if !ok {
		at, ok = adopt(t.blob, f.Size, p.client.ChunkBytes)
	}
	if !ok {
		at = newProgress(f.Size, p.client.ChunkBytes)
	}
	var err error
	if t.partial, err = os.OpenFile(t.blob+partialSuffix, os.O_RDWR|os.O_CREATE,
		0o666); err != nil {
		return nil, err
	}
	if err = t.partial.Truncate(f.Size); err == nil && ok {
		err = t.partial.Sync()
	}
	if err == nil {
		t.journal, err = startJournal(t.blob, at, boot)
	}
	if err != nil {
		t.partial.Close()
		return nil, full(t.blob, err)
	}
	t.at, t.taken = at, make([]bool, len(at.written))
	t.ctx, t.cancel = context.WithCancelCause(ctx)
	p.count.done.Add(at.done())
	return t, nil
}

// job is a range for a worker; index -1 is the whole file.
type job struct {
	t     *transfer
	index int
}

// take gives out the next range that nobody has.
func (t *transfer) take() (job, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended != nil {
		return job{}, false
	}
	if t.whole {
		if t.workers > 0 || t.at.done() == t.at.size {
			return job{}, false
		}
		t.workers++
		return job{t, -1}, true
	}
	for i, taken := range t.taken {
		if _, length := t.at.span(i); !taken && int64(t.at.written[i]) < length {
			t.taken[i] = true
			t.workers++
			return job{t, i}, true
		}
	}
	return job{}, false
}

// give takes a range back from a worker, who did all of it or not.
func (t *transfer) give(j job) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if j.index >= 0 {
		t.taken[j.index] = false
	}
	t.workers--
	t.changed.Broadcast()
}

// end makes workers and the hash stop. The first reason counts.
func (t *transfer) end(reason error) {
	t.mu.Lock()
	if t.ended == nil {
		t.ended = reason
	}
	t.changed.Broadcast()
	t.mu.Unlock()
	t.cancel(reason)
}

// onlyWhole notes that the server sends a file from its beginning only.
func (t *transfer) onlyWhole() {
	t.mu.Lock()
	t.whole = true
	t.mu.Unlock()
}

// left gives where the rest of range i begins, relative to the file, and its length.
func (t *transfer) left(i int) (from, length int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	start, length := t.at.span(i)
	done := int64(t.at.written[i])
	return start + done, length - done
}

// write writes bytes that follow what range i has.
func (t *transfer) write(i int, data []byte) error {
	from, _ := t.left(i)
	if _, err := t.partial.WriteAt(data, from); err != nil {
		return full(t.blob, err)
	}
	t.mu.Lock()
	t.at.written[i] += uint32(len(data))
	n := t.at.written[i]
	t.sinceSync += int64(len(data))
	flush := t.sinceSync >= flushEvery
	var now []uint32
	if flush {
		t.sinceSync = 0
		now = append(now, t.at.written...)
	}
	t.changed.Broadcast()
	t.mu.Unlock()
	t.pull.count.done.Add(int64(len(data)))
	t.pull.count.fetched.Add(int64(len(data)))
	if err := t.journal.wrote(i, n); err != nil {
		return full(t.blob, err)
	}
	if !flush {
		return nil
	}
	// one at a time: a second flush would only wait for the first one's bytes
	t.pull.flushing.Lock()
	defer t.pull.flushing.Unlock()
	err := t.partial.Sync()
	if err == nil {
		err = t.journal.flush(now)
	}
	return full(t.blob, err)
}

// contiguous is how many bytes from the beginning are there.
func (t *transfer) contiguous() int64 {
	var n int64
	for i, w := range t.at.written {
		n += int64(w)
		if _, length := t.at.span(i); int64(w) < length {
			break
		}
	}
	return n
}

// follow hashes the file as it grows and finishes it. It ends with the transfer.
func (t *transfer) follow() error {
	sum := newSums(t.want)
	var hashed int64
	for hashed < t.at.size {
		t.mu.Lock()
		for t.ended == nil && t.contiguous() == hashed {
			t.changed.Wait()
		}
		ready, ended := t.contiguous(), t.ended
		t.mu.Unlock()
		if ended != nil {
			return ended
		}
		if err := sum.read(t.ctx, io.NewSectionReader(t.partial, hashed, ready-hashed),
			nil); err != nil {
			return fmt.Errorf("reading %s back: %w", t.want.Path, err)
		}
		hashed = ready
	}
	if err := sum.check(t.want); err != nil {
		return err
	}
	return t.finish(sum.sha256())
}

// finish gives the file its name.
func (t *transfer) finish(sum []byte) error {
	t.mu.Lock()
	for t.workers > 0 { // one may still be flushing
		t.changed.Wait()
	}
	t.mu.Unlock()
	err := errors.Join(t.partial.Sync(), t.partial.Close(), t.journal.close())
	t.partial = nil
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
		return full(t.blob, fmt.Errorf("finishing %s: %w", t.want.Path, err))
	}
	// left behind it would describe a partial file that is not there, and be passed over
	os.Remove(t.blob + journalSuffix)
	return nil
}

// close waits for the workers and gives everything back. drop forgets what was fetched.
func (t *transfer) close(drop bool) error {
	t.mu.Lock()
	for t.workers > 0 {
		t.changed.Wait()
	}
	done := t.at.done()
	t.mu.Unlock()
	t.cancel(nil)
	var errs []error
	if t.partial != nil {
		errs = append(errs, t.journal.close(), t.partial.Close())
	}
	if drop {
		t.pull.count.done.Add(-done)
		errs = append(errs, dropPartial(t.blob))
	}
	return errors.Join(append(errs, t.lock.Release())...)
}

// syncFolder flushes a folder's names, where the system can.
func syncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer d.Close()
	// some file systems and Windows refuse; the names are then as safe as they make them
	_ = d.Sync()
	return nil
}

// full turns the error of a full disk into a SpaceError.
func full(path string, err error) error {
	if store.IsFull(err) {
		return &SpaceError{Path: filepath.Dir(path)}
	}
	return err
}

// sums are the hashes that a file may be known by.
type sums struct {
	git  hash.Hash // nil when nobody asks
	full hash.Hash
	// kept from one read to the next: a file is hashed in as many reads as it has pieces
	buffer []byte
}

func newSums(f File) *sums {
	s := &sums{full: sha256.New(), buffer: make([]byte, 128<<10)}
	if f.GitSHA != "" {
		s.git = sha1.New()
		fmt.Fprintf(s.git, "blob %d\x00", f.Size)
	}
	return s
}

// read hashes what r gives; each counts the bytes, if it is not nil.
func (s *sums) read(ctx context.Context, r io.Reader, each func(int64)) error {
	for {
		n, err := r.Read(s.buffer)
		s.full.Write(s.buffer[:n])
		if s.git != nil {
			s.git.Write(s.buffer[:n])
		}
		if each != nil {
			each(int64(n))
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

func (s *sums) sha256() []byte { return s.full.Sum(nil) }

// check compares with what the hub promises. *HashError when it is something else.
func (s *sums) check(f File) error {
	want, got := f.SHA256, hex.EncodeToString(s.sha256())
	if want == "" && f.GitSHA != "" {
		want, got = f.GitSHA, hex.EncodeToString(s.git.Sum(nil))
	}
	if want != "" && want != got {
		return &HashError{f.Path, want, got}
	}
	return nil
}

// address is where the file's bytes are, and whether that is another host than the hub.
func (t *transfer) address() (string, bool) {
	t.addressMu.Lock()
	defer t.addressMu.Unlock()
	return t.where, t.foreign
}

// renew asks the hub again where the bytes are, unless another worker did since old was given.
func (t *transfer) renew(old string) error {
	t.addressMu.Lock()
	defer t.addressMu.Unlock()
	if t.where != old {
		return nil
	}
	ctx, cancel := context.WithTimeout(t.ctx, 5*time.Minute)
	defer cancel()
	f, err := t.pull.client.Resolve(ctx, t.pull.repo, t.pull.commit, t.pull.listed[t.want.Path])
	if err != nil {
		return err
	}
	if f.ETag != t.want.ETag || f.Size != t.want.Size {
		return errAbandoned
	}
	t.where, t.foreign = f.address, f.foreign
	return nil
}
