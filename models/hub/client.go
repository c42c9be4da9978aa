// Package hub downloads model repositories over Hugging Face's protocol, plain HTTP, into the cache
// of package store.
//
// A pull asks the hub for a revision's commit and its list of files (listing.go), then for each
// file's address, size and hash (resolve.go). It downloads them in ranges over several connections
// (pull.go, transfer.go), with a journal of the bytes on disk (journal.go). A file can also be read
// in place, range by range (remote.go).
//
// What must stay true: the token goes only to the hub's own origin. A file gets its final name once
// its hash is right and its bytes are flushed. An interrupted pull is resumed by the next one.
package hub

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ossrun/ossrun/models/mapping"
	"github.com/ossrun/ossrun/models/store"
)

// Client is the client of one hub. Its fields must be set before the first call.
type Client struct {
	Endpoint  string // https://huggingface.co, or a mirror; without trailing slash
	Token     string // "" for none
	TokenFrom string // origin of the token, for messages
	Offline   bool   // use no network
	UserAgent string

	Connections int           // ranges in parallel
	ChunkBytes  int64         // length of a range
	Stall       time.Duration // timeout of a connection without a byte
	LockTimeout time.Duration // timeout of a lock whose holder writes nothing
	Backoff     time.Duration // wait before the first retry; doubled each time
	Attempts    int           // consecutive tries without a byte

	// Retrying is called after every failed try with its error, the number of tries and the wait
	// until the next one. It is called from any goroutine and may be nil.
	Retrying func(err error, attempt int, wait time.Duration)

	http      *http.Client
	isReached atomic.Bool // the hub has answered some time
}

// firstAttempts bounds the tries of a hub that has never answered, to 10 s.
const firstAttempts = 6

const DefaultEndpoint = "https://huggingface.co"

// FromEnvironment makes a client from Hugging Face's variables: HF_ENDPOINT, HF_TOKEN
// (HUGGING_FACE_HUB_TOKEN in old setups), the token file of hf auth login at HF_TOKEN_PATH or
// HF_HOME/token, HF_HUB_OFFLINE, TRANSFORMERS_OFFLINE; and the usual proxy variables.
func FromEnvironment() *Client {
	c := New(cmp.Or(strings.TrimRight(os.Getenv("HF_ENDPOINT"), "/"), DefaultEndpoint))
	c.Token, c.TokenFrom = token()
	c.Offline = Offline()
	return c
}

// New makes a client for an endpoint, without a token.
func New(endpoint string) *Client {
	return &Client{
		Endpoint: endpoint, UserAgent: "ossrun", Connections: 8, ChunkBytes: 16 << 20,
		Stall: 30 * time.Second, LockTimeout: 10 * time.Minute, Backoff: 500 * time.Millisecond,
		Attempts: 8,
	}
}

// Offline reports whether HF_HUB_OFFLINE, or transformers' name of it, forbids the network.
func Offline() bool {
	for _, name := range [...]string{"HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"} {
		switch strings.ToUpper(os.Getenv(name)) {
		case "1", "ON", "YES", "TRUE":
			return true
		}
	}
	return false
}

func token() (text, from string) {
	for _, name := range [...]string{"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"} {
		if text := strings.TrimSpace(os.Getenv(name)); text != "" {
			return text, name
		}
	}
	path := os.Getenv("HF_TOKEN_PATH")
	if path == "" {
		home, err := store.Home()
		if err != nil {
			return "", ""
		}
		path = filepath.Join(home, "token")
	}
	content, err := mapping.ReadFile(path, 1<<16)
	if err != nil || len(content) > 4096 {
		return "", ""
	}
	return strings.TrimSpace(string(content)), path
}

// client creates the HTTP client on first use. It only speaks HTTP/1.1, because eight ranges must
// use eight connections, and follows no redirect.
func (c *Client) client() *http.Client {
	if c.http == nil {
		c.http = &http.Client{
			Transport: &http.Transport{
				Proxy: http.ProxyFromEnvironment,
				DialContext: (&net.Dialer{Timeout: min(c.Stall, 15*time.Second),
					KeepAlive: 15 * time.Second}).DialContext,
				TLSHandshakeTimeout:   min(c.Stall, 15*time.Second),
				ResponseHeaderTimeout: c.Stall,
				IdleConnTimeout:       time.Minute,
				MaxIdleConnsPerHost:   c.Connections,
				TLSNextProto:          map[string]func(string, *tls.Conn) http.RoundTripper{},
				DisableCompression:    true,
			},
			CheckRedirect: func(*http.Request,
				[]*http.Request) error {
				return http.ErrUseLastResponse
			},
		}
	}
	return c.http
}

func (c *Client) Close() {
	if c.http != nil {
		c.http.CloseIdleConnections()
	}
}

// send sends one request. The token, and the user of the hub's address, are added only if the
// address is the hub's; a redirect's user is dropped.
func (c *Client) send(ctx context.Context, method, address string,
	header http.Header) (*http.Response, error) {
	if c.Offline {
		return nil, errOffline
	}
	hub, err := url.Parse(c.Endpoint)
	if err != nil || hub.Host == "" || hub.Scheme != "http" && hub.Scheme != "https" {
		return nil, &permanentError{fmt.Errorf("HF_ENDPOINT must be a URL such as %s, not %q",
			DefaultEndpoint, c.Endpoint)}
	}
	request, err := http.NewRequestWithContext(ctx, method, address, nil)
	if err != nil {
		return nil, &permanentError{err}
	}
	maps.Copy(request.Header, header)
	request.Header.Set("User-Agent", c.UserAgent)
	request.Header.Set("Accept-Encoding", "identity") // sizes and ranges must be the file's
	request.URL.User = nil
	if hub, ok := c.hub(request.URL); ok {
		if request.URL.User = hub.User; c.Token != "" {
			request.Header.Set("Authorization", "Bearer "+c.Token)
		}
	}
	answer, err := c.client().Do(request)
	if err == nil {
		c.isReached.Store(true)
	}
	return answer, err
}

func (c *Client) isHub(address *url.URL) bool {
	_, ok := c.hub(address)
	return ok
}

// hub returns the hub's address, and whether address has the same scheme, host and port.
func (c *Client) hub(address *url.URL) (hub *url.URL, ok bool) {
	hub, err := url.Parse(c.Endpoint)
	return hub, err == nil && strings.EqualFold(hub.Scheme, address.Scheme) &&
		strings.EqualFold(hub.Host, address.Host)
}

// follow sends a request and follows redirects itself, until stop accepts one or there are no more.
// A redirect from https to http is refused.
func (c *Client) follow(ctx context.Context, method, address string, header http.Header,
	stop func(*http.Response, *url.URL) bool) (*http.Response, error) {
	for range 6 {
		response, err := c.send(ctx, method, address, header)
		if err != nil || response.StatusCode < 300 || response.StatusCode > 399 ||
			response.Header.Get("Location") == "" {
			return response, err
		}
		next, err := response.Location()
		if err == nil && response.Request.URL.Scheme == "https" && next.Scheme != "https" {
			err = fmt.Errorf("%s redirects to an address without encryption: %s://%s",
				response.Request.URL.Host, next.Scheme, next.Host)
		}
		if err != nil {
			response.Body.Close()
			return nil, &permanentError{err}
		}
		if stop != nil && stop(response, next) {
			return response, nil
		}
		response.Body.Close()
		address = next.String()
	}
	return nil, &permanentError{fmt.Errorf("%s redirects in a circle", c.host())}
}

// ask asks the hub about a repository, with retries, and reads the answer. what names the request's
// subject in errors.
func (c *Client) ask(ctx context.Context, method, address string, repo store.Repo, what string,
	stop func(*http.Response, *url.URL) bool, read func(*http.Response) error) error {
	return c.retry(ctx, func() error {
		ctx, cancel := context.WithTimeout(ctx, 2*c.Stall)
		defer cancel()
		response, err := c.follow(ctx, method, address, nil, stop)
		switch {
		case err != nil:
			return err
		case busy(response.StatusCode):
			return retryLater(response)
		case response.StatusCode >= 400:
			return c.refused(response, repo.ID(), what)
		}
		defer discard(response)
		return read(response)
	})
}

func (c *Client) host() string {
	if u, err := url.Parse(c.Endpoint); err == nil && u.Host != "" {
		return u.Host
	}
	return c.Endpoint
}
