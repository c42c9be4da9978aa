package hub

// A repository that is read in place: nothing is stored on disk.
//
// What must stay true: all bytes are of one commit, and of the content that the hub named when a
// file was opened. The hash of a completely read file is checked; ranges are only covered by the
// file's ETag and size.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/ossrun/ossrun/models/mapping"
	"github.com/ossrun/ossrun/models/store"
)

// Remote is a commit of a repository.
type Remote struct {
	Repo   store.Repo
	Commit string

	client *Client
	files  []ListedFile
	free   chan struct{} // one per connection
}

// Remote opens a revision ("" is main) of a repository with a usable model.
func (c *Client) Remote(ctx context.Context, repo store.Repo, revision string) (*Remote, error) {
	rev, err := c.Revision(ctx, repo, cmp.Or(revision, "main"))
	if err == nil {
		err = rev.checkUsable(repo.ID())
	}
	if err != nil {
		return nil, err
	}
	return &Remote{repo, rev.Commit, c, rev.Files, make(chan struct{}, c.Connections)}, nil
}

// Measure returns the size of a pull and the bytes a second at which its largest file arrives now.
// Sizes that the hub does not list are left out; a rate of 0 is unknown.
func (r *Remote) Measure(ctx context.Context) (size int64, rate float64) {
	var largest ListedFile
	for _, f := range (Revision{Files: r.files}).Needed() {
		size += max(0, f.Size)
		if f.Size > largest.Size {
			largest = f
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 4*measureTime)
	defer cancel()
	f, err := r.Open(ctx, largest.Path)
	if err != nil {
		return size, 0
	}
	received, start := int64(0), time.Now()
	for piece := int64(1 << 18); time.Since(start) < measureTime; piece = min(2*piece, 64<<20) {
		buffer := make([]byte, min(piece, f.want.Size-received))
		n, err := f.ReadAt(buffer, received)
		if received += int64(n); err != nil || received == f.want.Size {
			break
		}
	}
	return size, float64(received) / time.Since(start).Seconds()
}

// measureTime is how long Measure reads.
const measureTime = time.Second

// RemoteFile is a file of a Remote. It is safe for concurrent use, until its context ends.
type RemoteFile struct {
	*origin
	ctx  context.Context
	free chan struct{}
}

// Open opens a file; fs.ErrNotExist if it is missing.
func (r *Remote) Open(ctx context.Context, name string) (*RemoteFile, error) {
	i := slices.IndexFunc(r.files, func(f ListedFile) bool { return f.Path == name })
	if i < 0 {
		return nil, fmt.Errorf("%s of %s: %w", name, r.Repo.ID(), fs.ErrNotExist)
	}
	f, err := r.client.Resolve(ctx, r.Repo, r.Commit, r.files[i])
	if err != nil {
		return nil, err
	}
	return &RemoteFile{r.client.origin(r.Repo, r.Commit, f, r.files[i]), ctx, r.free}, nil
}

// ReadFile reads a file of at most this many bytes.
func (r *Remote) ReadFile(ctx context.Context, name string, most int64) ([]byte, error) {
	f, err := r.Open(ctx, name)
	switch {
	case err != nil:
		return nil, err
	case f.want.Size > most:
		return nil, fmt.Errorf("%s of %s has %d bytes, more than the %d that are read", name,
			r.Repo.ID(), f.want.Size, most)
	}
	data := make([]byte, f.want.Size)
	if _, err := f.ReadAt(data, 0); err != nil {
		return nil, err
	}
	sum := newHashes(f.want)
	sum.full.Write(data)
	if sum.git != nil {
		sum.git.Write(data)
	}
	return data, sum.check(f.want)
}

// Stat is the hub's description of the file.
func (f *RemoteFile) Stat() File { return f.want }

// ReadAt fills p with the bytes from off, with one connection per chunk of p. It retries as a pull
// does.
func (f *RemoteFile) ReadAt(p []byte, offset int64) (int, error) {
	rest := f.want.Size - offset
	if offset < 0 || rest < int64(len(p)) {
		return 0, fmt.Errorf("%s ends at byte %d: %w", f.want.Path, f.want.Size,
			io.ErrUnexpectedEOF)
	}
	chunk := int(f.client.ChunkBytes)
	chunks := slices.Collect(slices.Chunk(p, chunk))
	err := mapping.Parallel(f.ctx, cap(f.free), len(chunks), new(atomic.Int64),
		func(i int, _ *[]byte) (int64, error) {
			select {
			case <-f.ctx.Done():
				return 0, context.Cause(f.ctx)
			case f.free <- struct{}{}:
			}
			defer func() { <-f.free }()
			return 0, f.chunk(chunks[i], offset+int64(i*chunk))
		})
	switch {
	case errors.Is(err, errAbandoned):
		err = fmt.Errorf("%s of %s has changed on %s since it was first read", f.want.Path,
			f.repo.ID(), f.client.host())
	case errors.Is(err, errNoRanges):
		err = fmt.Errorf("%s sends whole files only: run ossrun pull hf:%s first",
			f.client.host(), f.repo.ID())
	}
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

func (f *RemoteFile) chunk(p []byte, offset int64) error {
	return f.persist(f.ctx, nil, func(address string, foreign bool) (int64, error) {
		n, err := f.try(address, foreign, p, offset)
		p, offset = p[n:], offset+int64(n)
		return int64(n), err
	})
}

// try reads as much of a range as arrives.
func (f *RemoteFile) try(address string, foreign bool, p []byte, offset int64) (int, error) {
	ctx, cancel := context.WithCancelCause(f.ctx)
	defer cancel(nil)
	length := int64(len(p))
	if length == f.want.Size {
		length = 0 // a hub may not support ranges of small files
	}
	response, err := f.get(ctx, address, foreign, offset, length)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	body := withIdleTimeout(response.Body, f.client.Stall, cancel)
	defer body.stop()
	switch {
	case response.StatusCode == http.StatusPartialContent:
		err = f.agrees(response.Header.Get("Content-Range"), offset, int64(len(p)))
	case response.ContentLength >= 0 && response.ContentLength != f.want.Size:
		err = f.contradiction("a length of %d bytes", response.ContentLength)
	case offset > 0 && f.want.Size > f.client.ChunkBytes:
		err = &permanentError{errNoRanges}
	default:
		_, err = io.CopyN(io.Discard, body, offset)
	}
	n := 0
	if err == nil {
		n, err = io.ReadFull(body, p)
	}
	if err != nil {
		err = reason(ctx, err)
	}
	return n, err
}
