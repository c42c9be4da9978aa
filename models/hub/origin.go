package hub

// Requests for one file's bytes, at their current address. Every answer is checked against the
// hub's description: another range, length or content is refused.

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ossrun/ossrun/models/store"
)

// origin is the source of a file. It is safe for concurrent use.
type origin struct {
	client *Client
	repo   store.Repo
	commit string
	want   File
	listed ListedFile

	addressMu sync.Mutex
	where     string // current address of the bytes
	foreign   bool   // on a host other than the hub
}

func (c *Client) origin(repo store.Repo, commit string, f File, listed ListedFile) *origin {
	return &origin{client: c, repo: repo, commit: commit, want: f, listed: listed,
		where: f.address, foreign: f.foreign}
}

// errExpired reports that an address on another host no longer works.
var errExpired = errors.New("the address of the file has ended")

// get requests the bytes of a file starting at from; length 0 requests the full file.
func (o *origin) get(ctx context.Context, address string, foreign bool, from,
	length int64) (*http.Response, error) {
	header := http.Header{}
	if length > 0 {
		header.Set("Range", fmt.Sprintf("bytes=%d-%d", from, from+length-1))
	}
	c := o.client
	response, err := c.follow(ctx, http.MethodGet, address, header, nil)
	if err != nil {
		return nil, err
	}
	code := response.StatusCode
	if code == http.StatusOK || code == http.StatusPartialContent {
		etag := response.Header.Get("X-Linked-Etag")
		if etag == "" && !o.want.linked && c.isHub(response.Request.URL) {
			etag = response.Header.Get("ETag")
		}
		if etag != "" && plainETag(etag) != o.want.ETag {
			response.Body.Close()
			return nil, &permanentError{errAbandoned}
		}
		return response, nil
	}
	switch {
	case busy(code):
		return nil, retryLater(response)
	case code == http.StatusRequestedRangeNotSatisfiable:
		discard(response)
		return nil, &permanentError{errAbandoned} // it is shorter than it was
	case foreign || !c.isHub(response.Request.URL):
		discard(response)
		return nil, errExpired
	}
	return nil, c.refused(response, o.repo.ID(), o.want.Path+" in "+o.repo.ID())
}

// agrees compares a Content-Range with the request.
func (o *origin) agrees(header string, from, length int64) error {
	span, total, ok := strings.Cut(strings.TrimPrefix(header, "bytes "), "/")
	first, last, ok2 := strings.Cut(span, "-")
	a, err1 := strconv.ParseInt(first, 10, 64)
	b, err2 := strconv.ParseInt(last, 10, 64)
	if !ok || !ok2 || err1 != nil || err2 != nil {
		return o.contradiction("the range %q", header)
	}
	if n, err := strconv.ParseInt(total, 10, 64); total != "*" && (err != nil || n != o.want.Size) {
		return &permanentError{errAbandoned}
	}
	if a != from || b < a || b >= from+length {
		return o.contradiction("bytes %d-%d for %d-%d", a, b, from, from+length-1)
	}
	return nil
}

// contradiction returns the error of an answer that contradicts the hub; it causes a retry.
func (o *origin) contradiction(format string, args ...any) error {
	address, _ := o.address()
	host := ""
	if u, err := url.Parse(address); err == nil {
		host = u.Host
	}
	return fmt.Errorf("%s answers with "+format, append([]any{host}, args...)...)
}

// address returns the address of the file's bytes, and whether its host is not the hub.
func (o *origin) address() (string, bool) {
	o.addressMu.Lock()
	defer o.addressMu.Unlock()
	return o.where, o.foreign
}

// persist repeats a try at the file's current address until it succeeds or its error is final. A
// try that brought bytes resets the count; note, which may be nil, gets the third error in a row.
func (o *origin) persist(ctx context.Context, note func(error),
	try func(address string, foreign bool) (received int64, err error)) error {
	patient := backoff{client: o.client}
	for {
		address, foreign := o.address()
		received, err := try(address, foreign)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, errExpired):
			if err := o.renew(ctx, address); err != nil {
				return err
			}
		}
		if received > 0 {
			patient.attempts = 0
		}
		if patient.attempts == 2 && note != nil {
			note(err)
		}
		if err := patient.retry(ctx, err); err != nil {
			return err
		}
	}
}

// renew asks the hub for a new address, unless another worker has since old.
func (o *origin) renew(ctx context.Context, old string) error {
	o.addressMu.Lock()
	defer o.addressMu.Unlock()
	if o.where != old {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	f, err := o.client.Resolve(ctx, o.repo, o.commit, o.listed)
	if err != nil {
		return err
	}
	if f.ETag != o.want.ETag || f.Size != o.want.Size {
		return errAbandoned
	}
	o.where, o.foreign = f.address, f.foreign
	return nil
}
