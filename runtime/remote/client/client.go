// Package client speaks to an OpenAI port, ours or another's: requests and answers in JSON, streams
// of events, refusals as errors.
//
// It knows no model, and connections are its only state. What must stay true: a malformed answer is
// an error or an event, never a panic and never more memory than the limits here; a request ends
// with its context.
package client

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	// maxAnswer limits the bytes of a body that is read at once.
	maxAnswer = 256 << 20
	// maxRefusal limits the bytes that are read of a refusal's body.
	maxRefusal = 64 << 10
	// maxIdleConns limits the idle connections; a load test uses thousands at once.
	maxIdleConns = 8192
)

// Client speaks to one port. It is safe for concurrent use.
type Client struct {
	root string // scheme, host and path before /v1
	key  string
	http *http.Client

	header http.Header // of each request
}

// New makes a client of the port at base: http://host:port, optionally with /v1, or
// unix:/path/of/a/socket. An empty key sends none.
func New(base, key string) (*Client, error) {
	transport := &http.Transport{MaxIdleConns: maxIdleConns, MaxIdleConnsPerHost: maxIdleConns,
		IdleConnTimeout: 90 * time.Second, DisableCompression: true,
		Proxy: http.ProxyFromEnvironment}
	dialer := &net.Dialer{Timeout: 10 * time.Second}
	transport.DialContext = dialer.DialContext
	if path, ok := strings.CutPrefix(base, "unix:"); ok {
		path = strings.TrimPrefix(path, "//")
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "unix", path)
		}
		return &Client{root: "http://localhost", key: key,
			http: &http.Client{Transport: transport, CheckRedirect: Redirect}}, nil
	}
	u, err := address(base)
	if err != nil {
		return nil, err
	}
	root := u.Scheme + "://" + u.Host + strings.TrimSuffix(strings.TrimRight(u.Path, "/"), "/v1")
	return &Client{root: root, key: key,
		http: &http.Client{Transport: transport, CheckRedirect: Redirect}}, nil
}

// With is the client with one more header in its requests; it shares the connections.
func (c *Client) With(name, value string) *Client {
	with := *c
	if with.header = c.header.Clone(); with.header == nil {
		with.header = http.Header{}
	}
	with.header.Set(name, value)
	return &with
}

// TrustAny accepts any certificate, for servers that signed their own.
func (c *Client) TrustAny() {
	c.http.Transport.(*http.Transport).TLSClientConfig = &tls.Config{InsecureSkipVerify: true}
}

func address(base string) (*url.URL, error) {
	if !strings.Contains(base, "://") {
		base = "http://" + base
	}
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%q is not the address of a server. Use http://host:port", base)
	}
	return u, nil
}

// Cause is the innermost error of a failed request, without the address, which net's errors repeat.
func Cause(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		for err = e; errors.Unwrap(err) != nil; err = errors.Unwrap(err) {
		}
	}
	return err
}

// Root is the address before /v1.
func (c *Client) Root() string { return c.root }

func (c *Client) Close() { c.http.CloseIdleConnections() }

// Call sends a request for a path such as /v1/models, and decodes its answer into result. A
// nil body sends none, a nil result discards the answer, a *[]byte gets it as it is.
func (c *Client) Call(ctx context.Context, method, path string, body, result any) error {
	answer, err := c.send(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if result == nil {
		_, err := io.Copy(io.Discard, io.LimitReader(answer.Body, maxAnswer))
		return err
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	switch {
	case err != nil:
		return fmt.Errorf("read the answer of %s: %w", path, err)
	case len(text) > maxAnswer:
		return fmt.Errorf("the answer of %s is longer than %d MiB", path, maxAnswer>>20)
	}
	if raw, ok := result.(*[]byte); ok {
		*raw = text
		return nil
	}
	if err := json.Unmarshal(text, result); err != nil {
		return fmt.Errorf("the answer of %s is not as expected: %w", path, err)
	}
	return nil
}

// Unusable wraps the reason why the server cannot be used.
func (c *Client) Unusable(err error) error {
	if _, ok := errors.AsType[*Error](err); ok { // it names the address
		return err
	}
	return fmt.Errorf("%s cannot be used: %w", c.root, Cause(err))
}

func (c *Client) FirstModel(ctx context.Context) (string, error) {
	list, err := c.Models(ctx)
	if err != nil {
		return "", c.Unusable(err)
	}
	if len(list) == 0 {
		return "", fmt.Errorf("%s lists no model. Name one with --model", c.root)
	}
	return list[0].ID, nil
}

// send returns an answer with a status below 300, or an error.
func (c *Client) send(ctx context.Context, method, path string, body any) (*http.Response, error) {
	var reader io.Reader
	if body != nil {
		encoded, err := encode(body)
		if err != nil {
			return nil, fmt.Errorf("encode the body of %s: %w", path, err)
		}
		reader = bytes.NewReader(encoded)
	}
	r, err := http.NewRequestWithContext(ctx, method, c.root+path, reader)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if c.key != "" {
		r.Header.Set("Authorization", "Bearer "+c.key)
	}
	maps.Copy(r.Header, c.header)
	answer, err := c.http.Do(r)
	if err != nil {
		return nil, err // it names method and address
	}
	if answer.StatusCode >= 300 {
		defer answer.Body.Close()
		return nil, refusal(answer)
	}
	return answer, nil
}

// encode encodes a body; bytes are JSON already.
func encode(body any) ([]byte, error) {
	if b, ok := body.([]byte); ok {
		return b, nil
	}
	return json.Marshal(body)
}

type Error struct {
	Status              int
	Message             string
	Type, Code, Param   string // OpenAI's fields, empty if the port sent none
	RetryAfter          time.Duration
	RequestID, shownURL string
}

func (e *Error) Error() string {
	if e.Status == http.StatusOK { // it had begun to answer
		return "the server reported an error: " + cmp.Or(e.Message, "without saying which")
	}
	return fmt.Sprintf("the server reported error %d: %s (%s)", e.Status, e.Message, e.shownURL)
}

// refusal reads OpenAI's error body, that of FastAPI and older servers, or plain text.
func refusal(r *http.Response) *Error {
	e := &Error{Status: r.StatusCode, RequestID: r.Header.Get("X-Request-Id"),
		shownURL: r.Request.URL.Redacted()}
	if s, err := strconv.ParseFloat(r.Header.Get("Retry-After"), 64); err == nil && s >= 0 &&
		s < 1e6 {
		e.RetryAfter = time.Duration(s * float64(time.Second))
	}
	text, _ := io.ReadAll(io.LimitReader(r.Body, maxRefusal)) // a part is enough
	e.fill(text)
	e.Message = cmp.Or(e.Message, http.StatusText(e.Status))
	return e
}

// fill reads a body that reports an error.
func (e *Error) fill(text []byte) {
	type fields struct {
		Message string
		Type    string
		Code    any // a string, a number or null
		Param   *string
	}
	var body struct {
		Error  json.RawMessage
		Detail json.RawMessage
		Status json.RawMessage // of our /health
		fields
	}
	if json.Unmarshal(text, &body) != nil {
		e.Message = strings.TrimSpace(string(text))
		return
	}
	f := body.fields
	if len(body.Error) > 0 && json.Unmarshal(body.Error, &f) != nil {
		_ = json.Unmarshal(body.Error, &f.Message) // ollama: the message alone
	}
	if f.Message == "" && len(body.Detail) > 0 && json.Unmarshal(body.Detail, &f.Message) != nil {
		f.Message = string(body.Detail)
	}
	if f.Message == "" {
		_ = json.Unmarshal(body.Status, &f.Message) // a number or none is no message
	}
	e.Message, e.Type = f.Message, f.Type
	if f.Param != nil {
		e.Param = *f.Param
	}
	switch code := f.Code.(type) {
	case string:
		e.Code = code
	case float64:
		e.Code = strconv.FormatFloat(code, 'f', -1, 64)
	}
}

// RetryPolicy is a retry policy: how often a request is sent, and the first pause. The pause
// doubles from one attempt to the next, up to a minute, unless the port sets it.
type RetryPolicy struct {
	Attempts int
	Pause    time.Duration
}

// Do calls send until it succeeds, fails for good, or the attempts or ctx end.
func (p RetryPolicy) Do(ctx context.Context, send func() error) error {
	for try := 0; ; try++ {
		err := send()
		if err == nil || ctx.Err() != nil || !isRetryable(err) || try+1 >= p.Attempts {
			return err
		}
		pause := min(p.Pause<<try, time.Minute)
		if no, ok := errors.AsType[*Error](err); ok && no.RetryAfter > 0 {
			pause = min(no.RetryAfter, time.Minute)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

// isRetryable tells whether a retry may succeed: after connection errors and a few refusals.
func isRetryable(err error) bool {
	e, refused := errors.AsType[*Error](err)
	return !refused || e.Status >= 500 || e.Status == http.StatusTooManyRequests ||
		e.Status == http.StatusRequestTimeout
}
