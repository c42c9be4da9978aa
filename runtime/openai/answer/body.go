// Reading a request's body: the limits of size and time.
//
// What must stay true: a client that stops sending, or sends a byte now and then, is cut off within
// a minute; a slow but steady one is served. The bodies of all unanswered requests together never
// exceed MaxBodies, and those of one client leave some of it to the others. A compressed body is
// decoded while it is read and takes no more memory than a plain one: the limits apply before and
// after decompression.

package answer

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/ossrun/ossrun/runtime/openai/fields"
	"github.com/ossrun/ossrun/runtime/quota"
	"github.com/ossrun/ossrun/runtime/session"
)

const (
	// StandardBody is the default of Options.MaxBody.
	StandardBody = 16 << 20
	// bodyGrace is how long a body may be silent, and the time before its rate is checked.
	bodyGrace = 30 * time.Second
	// bodyRate is the rate below which a body of any length is cut off after bodyGrace.
	bodyRate = 64 << 10 // bytes a second
)

// timedBody extends the connection's deadline as the body arrives.
type timedBody struct {
	io.ReadCloser
	control *http.ResponseController
	started time.Time
	arrived int64
	client  string
	quota   *quota.Shared
	counted int64 // bytes of quota
}

// errNoRoom ends reading a body if the bodies of other requests leave no room for it.
var errNoRoom = errors.New("too much text waits already")

// LimitBody bounds the body's length and time. The deadline is set at once, since the server also
// reads bodies that no handler has read. The bytes count against MaxBodies until release.
func (d *Driver) LimitBody(w http.ResponseWriter, r *http.Request) (release func()) {
	if r.Body == nil || r.Body == http.NoBody {
		return func() {}
	}
	body := http.MaxBytesReader(w, r.Body, d.MaxBody)
	if open := encodings[contentEncoding(r)]; open != nil {
		// the decompressed body is bounded and counted too
		body = http.MaxBytesReader(w, &decodedBody{ReadCloser: body, open: open}, d.MaxBody)
		r.ContentLength = -1
	}
	t := &timedBody{ReadCloser: body,
		control: http.NewResponseController(w), started: time.Now(), quota: d.bodies}
	t.extend()
	r.Body = t
	return func() { d.bodies.Return(t.client, t.counted) }
}

func (t *timedBody) extend() {
	steady := t.started.Add(bodyGrace + time.Duration(t.arrived)*time.Second/bodyRate)
	if silent := time.Now().Add(bodyGrace); silent.Before(steady) {
		steady = silent
	}
	_ = t.control.SetReadDeadline(steady) // a recorder in a test has none
}

func (t *timedBody) Read(b []byte) (int, error) {
	n, err := t.ReadCloser.Read(b)
	t.arrived += int64(n)
	if n > 0 && !t.quota.Take(t.client, int64(n)) {
		return n, errNoRoom
	}
	t.counted += int64(n)
	switch err {
	case nil:
		t.extend()
	case io.EOF: // from here on a read only tells that the client is gone
		_ = t.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

func (d *Driver) readBody(e *Exchange, r *http.Request) (*fields.Object, *fields.Fault) {
	if name := contentEncoding(r); name != "" && encodings[name] == nil {
		return nil, fields.Refusal(http.StatusUnsupportedMediaType, "", "unsupported_encoding",
			fmt.Sprintf("the request body is in the encoding %q; send it as it is, or in %s",
				fields.Brief(name), strings.Join(slices.Sorted(maps.Keys(encodings)), ", ")))
	}
	b, err := d.readAll(e, r)
	if err != nil {
		return nil, bodyFault(err)
	}
	if d.LogPrompts {
		d.Log.Info("prompt", "id", r.Header.Get("X-Request-Id"), "body", string(b))
	}
	if f := d.prepare(e, r, len(b)); f != nil {
		return nil, f
	}
	return fields.ParseRequest(r.Context(), b, e.Client, d.IgnoreImages)
}

// ReadForm reads a multipart form within the limits of a body.
func (d *Driver) ReadForm(e *Exchange, r *http.Request) *fields.Fault {
	if t, timed := r.Body.(*timedBody); timed {
		t.client = e.Client
	}
	if err := r.ParseMultipartForm(d.MaxBody); err != nil {
		return bodyFault(err)
	}
	return nil
}

// ReadMessage reads a message of a WebSocket within the limits of a body; e is its connection's.
// The bytes count until release.
func (d *Driver) ReadMessage(ctx context.Context, e *Exchange, message io.Reader) (b []byte,
	release func(), f *fields.Fault) {
	r := (&http.Request{Body: io.NopCloser(message), ContentLength: -1}).WithContext(ctx)
	release = d.LimitBody(e, r)
	b, err := d.readAll(e, r)
	if err != nil {
		f = bodyFault(err)
	}
	return b, release, f
}

func bodyFault(err error) *fields.Fault {
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return fields.Refusal(http.StatusRequestEntityTooLarge, "", "request_too_large",
			fmt.Sprintf("the request body is larger than %d MiB; the server's --max-body "+
				"raises the limit", tooLarge.Limit>>20))
	case errors.Is(err, errNoRoom):
		return fields.FaultOf(&session.BusyError{RetryAfter: time.Second}, "")
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fields.Refusal(http.StatusRequestTimeout, "", "request_timeout",
			"the request body did not come in time")
	}
	return fields.Invalid("", "the request body could not be read: %v", err)
}

// readByte estimates the time to read or decompress a byte.
const readByte = 4 * time.Nanosecond

// readAll reads the body. A client first waits for the pause after its recent large bodies; the
// time limit starts then.
func (d *Driver) readAll(e *Exchange, r *http.Request) ([]byte, error) {
	t, timed := r.Body.(*timedBody)
	if timed {
		t.client = e.Client
	}
	if r.ContentLength >= 0 && r.ContentLength <= session.SmallRequest {
		return readAll(r.Body, r.ContentLength)
	}
	if err := d.gate.Await(r.Context(), e.Client); err != nil {
		return nil, err
	}
	if timed {
		t.started = time.Now()
		t.extend()
	}
	b, err := readAll(r.Body, r.ContentLength)
	d.gate.Charge(e.Client, time.Duration(len(b))*readByte)
	return b, err
}

// readAll is io.ReadAll for length bytes, -1 if unknown. It allocates the announced length only
// after an eighth has arrived, and copies little.
func readAll(r io.Reader, length int64) ([]byte, error) {
	b := make([]byte, 0, min(max(length+1, 512), 64<<10))
	for {
		n, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		switch {
		case err == io.EOF:
			return b, nil
		case err != nil:
			return b, err
		case len(b) < cap(b):
		case int64(len(b)) <= length: // one byte more, to read the end
			b = append(make([]byte, 0, min(8*int64(len(b)), length+1)), b...)
		default:
			b = append(b, 0)[:len(b)]
		}
	}
}

// prepare admits a request to reading and checking, large ones a few at a time. endReading ends
// this when the request waits for something else, EndPreparing when its turns run or it ends.
func (d *Driver) prepare(e *Exchange, r *http.Request, bytes int) *fields.Fault {
	if !d.preparing.Take(e.Client, 1) {
		return fields.FaultOf(&session.BusyError{RetryAfter: time.Second}, "")
	}
	leave, err := d.gate.Enter(r.Context(), e.Client, bytes)
	if err != nil {
		d.preparing.Return(e.Client, 1)
		return fields.FaultOf(err, "")
	}
	e.endReading = sync.OnceFunc(leave)
	e.EndPreparing = sync.OnceFunc(func() {
		e.endReading()
		d.preparing.Return(e.Client, 1)
	})
	return nil
}

// zstdWindow bounds a decoder's memory for any frame: the least that RFC 8878 requires.
const zstdWindow = 8 << 20

// encodings open a compressed body, by the name in Content-Encoding.
var encodings = map[string]func(io.Reader) (io.Reader, func(), error){
	"gzip": func(r io.Reader) (io.Reader, func(), error) {
		z, err := gzip.NewReader(r)
		return z, func() {}, err
	},
	"zstd": func(r io.Reader) (io.Reader, func(), error) {
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(zstdWindow))
		if err != nil {
			return nil, nil, err
		}
		return z, z.Close, nil
	},
}

// contentEncoding is the encoding of a request's body, "" for none.
func contentEncoding(r *http.Request) string {
	name := strings.ToLower(strings.TrimSpace(strings.Join(r.Header.Values("Content-Encoding"),
		", ")))
	switch name {
	case "identity":
		return ""
	case "x-gzip":
		return "gzip"
	}
	return name
}

// decodedBody is a compressed body, opened when it is read.
type decodedBody struct {
	io.ReadCloser
	open func(io.Reader) (io.Reader, func(), error)
	text io.Reader
	end  func()
}

func (d *decodedBody) Read(b []byte) (n int, err error) {
	if d.text == nil {
		if d.text, d.end, err = d.open(d.ReadCloser); err != nil {
			d.text = nil
			return 0, err
		}
	}
	n, err = d.text.Read(b)
	if err != nil {
		d.end()
	}
	return n, err
}
