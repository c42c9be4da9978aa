package hub

// Downloading one range, or a file from a server without ranges, to disk, with retries.

import (
	"context"
	"errors"
	"io"
	"net/http"
)

// errNoRanges reports a server that answers a range with the full file.
var errNoRanges = errors.New("the server sends whole files only")

// errTruncated reports a connection that ended before its range.
var errTruncated = errors.New("the connection was cut")

// wholeFile is the index of the range that is the full file.
const wholeFile = -1

// fetch downloads range i with retries. buffer has pieceBytes.
func (t *transfer) fetch(i int, buffer []byte) error {
	return t.persist(t.ctx, func(err error) {
		t.pull.note("%s: %v, trying again", t.want.Path, err)
	}, func(address string, foreign bool) (int64, error) {
		prev := t.missing(i)
		err := t.try(i, address, foreign, buffer)
		if errors.Is(err, errNoRanges) {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.fullOnly = true
			return 0, nil
		}
		return prev - t.missing(i), err
	})
}

// missing is the number of bytes that a range lacks.
func (t *transfer) missing(i int) int64 {
	if i != wholeFile {
		_, length := t.remaining(i)
		return length
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.progress.size - t.progress.done()
}

// try downloads the rest of range i, or the full file in order, skipping bytes on disk.
func (t *transfer) try(i int, address string, foreign bool, buffer []byte) error {
	var from, length int64 // the whole file
	if i != wholeFile {
		from, length = t.remaining(i)
	}
	ctx, cancel := context.WithCancelCause(t.ctx)
	defer cancel(nil)
	response, err := t.get(ctx, address, foreign, from, length)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	switch full := response.StatusCode == http.StatusOK; {
	case !full && i == wholeFile:
		return &ProtocolError{response.Request.URL.Host,
			"it sends a part where the whole was asked for"}
	case !full:
		err = t.agrees(response.Header.Get("Content-Range"), from, length)
	case i != wholeFile && (from != 0 || length != t.want.Size):
		return errNoRanges
	case response.ContentLength >= 0 && response.ContentLength != t.want.Size:
		err = t.contradiction("a length of %d bytes", response.ContentLength)
	}
	if err != nil {
		return err
	}
	body := withIdleTimeout(response.Body, t.client.Stall, cancel)
	defer body.stop()
	if i != wholeFile {
		return t.receive(ctx, body, i, length, buffer)
	}
	for i := range t.progress.written {
		start, _ := t.progress.span(i)
		from, length := t.remaining(i)
		if _, err := io.CopyN(io.Discard, body, from-start); err != nil {
			return reason(ctx, err)
		}
		if err := t.receive(ctx, body, i, length, buffer); err != nil {
			return err
		}
	}
	return nil
}

// receive writes length bytes of a body to range i. Bytes before an error count.
func (t *transfer) receive(ctx context.Context, body io.Reader, i int, length int64,
	buffer []byte) error {
	for length > 0 {
		n, err := io.ReadFull(body, buffer[:min(int64(len(buffer)), length)])
		if n > 0 {
			if err := t.write(i, buffer[:n]); err != nil {
				return &permanentError{err}
			}
			length -= int64(n)
		}
		if err != nil && length > 0 {
			return reason(ctx, err)
		}
	}
	return nil
}

// reason converts the error of a truncated body.
func reason(ctx context.Context, err error) error {
	switch {
	case errors.Is(context.Cause(ctx), errStalled):
		return errStalled
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errTruncated
	}
	return err
}
