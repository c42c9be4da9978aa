package hub

// Errors, in sentences that include the remedy.

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// AccessError reports a repository that the hub does not show: it is gated, private, or the token
// is wrong.
type AccessError struct {
	Repo, Host string
	Page       string // web page with the remedy
	Gated      bool
	TokenFrom  string // "" if no token was sent
	BadToken   bool   // the hub does not know the token
}

func (e *AccessError) Error() string {
	switch {
	case e.BadToken:
		return fmt.Sprintf(
			"%s does not know the token of %s: make a new one at %s, or take the old one away",
			e.Host, e.TokenFrom, e.Page)
	case e.Gated && e.TokenFrom == "":
		return fmt.Sprintf(
			"%s is gated: accept its terms at %s, then set HF_TOKEN to a token of that account",
			e.Repo, e.Page)
	case e.Gated:
		return fmt.Sprintf(
			"%s is gated and the token of %s has no access: accept its terms at %s with that "+
				"account", e.Repo, e.TokenFrom, e.Page)
	case e.TokenFrom == "":
		return fmt.Sprintf(
			"%s has no repository %s that everybody can see: look at %s; if it is private, set "+
				"HF_TOKEN", e.Host, e.Repo, e.Page)
	}
	return fmt.Sprintf("the token of %s may not read %s: look at %s", e.TokenFrom, e.Repo, e.Page)
}

// NotFoundError reports a missing repository, revision or file.
type NotFoundError struct{ What, Host string }

func (e *NotFoundError) Error() string { return fmt.Sprintf("%s has no %s", e.Host, e.What) }

// OfflineError reports a missing file that must not be downloaded.
type OfflineError struct{ Repo, Root string }

func (e *OfflineError) Error() string {
	return fmt.Sprintf(
		"%s is not complete in %s, and nothing is fetched offline (--offline or HF_HUB_OFFLINE)",
		e.Repo, e.Root)
}

// SpaceError reports a full disk, before or during a write.
type SpaceError struct {
	Path       string
	Need, Free int64 // bytes; Need is 0 if the disk filled up meanwhile
}

func (e *SpaceError) Error() string {
	if e.Need == 0 {
		return fmt.Sprintf(
			"the disk of %s is full: what was fetched is kept; make room and run it again", e.Path)
	}
	return fmt.Sprintf(
		"%.2f GB are to be fetched and the disk of %s has %.2f GB free: make room, or set "+
			"HF_HUB_CACHE to another disk",
		float64(e.Need)/1e9, e.Path, float64(e.Free)/1e9)
}

// HashError reports bytes that repeatedly differ from the hub's hash.
type HashError struct{ File, Want, Got string }

func (e *HashError) Error() string {
	return fmt.Sprintf("%s arrived damaged twice: its hash is %s, the hub promises %s", e.File,
		e.Got, e.Want)
}

// ProtocolError reports a server that does not speak the hub's protocol.
type ProtocolError struct{ Host, What string }

func (e *ProtocolError) Error() string {
	return fmt.Sprintf("%s does not answer as a Hugging Face hub: %s", e.Host, e.What)
}

// UnreachableError wraps the last error of all retries.
type UnreachableError struct {
	Host     string
	Attempts int
	Err      error
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("%s cannot be reached: %s (attempts: %d)", e.Host, Cause(e.Err), e.Attempts)
}
func (e *UnreachableError) Unwrap() error { return e.Err }

// Cause describes in a few words why a request failed.
func Cause(err error) string {
	var name *net.DNSError
	var status *statusError
	var timeout net.Error
	var call *net.OpError
	var untrusted *tls.CertificateVerificationError
	var wrapped *url.Error
	switch {
	case errors.As(err, &untrusted):
		return "its certificate is not trusted here (" + untrusted.Err.Error() + "); behind a " +
			"proxy that opens TLS, set SSL_CERT_FILE to its authority"
	case errors.Is(err, http.ErrSchemeMismatch):
		return "it does not speak TLS; is it http:// instead of https://?"
	case errors.As(err, &name):
		return "the name " + name.Name + " is not known (no network, or no DNS)"
	case errors.As(err, &status):
		return status.Error()
	case errors.As(err, &timeout) && timeout.Timeout(), errors.Is(err, errStalled):
		return "nothing came in time"
	case errors.As(err, &call):
		return call.Err.Error()
	case errors.As(err, &wrapped): // without its URL
		return wrapped.Err.Error()
	}
	return err.Error()
}

var errOffline = errors.New("offline")

// permanentError is not worth a retry.
type permanentError struct{ err error }

func (e *permanentError) Error() string { return e.err.Error() }
func (e *permanentError) Unwrap() error { return e.err }

// statusError is a status that may change later.
type statusError struct {
	code       int
	retryAfter time.Duration // from Retry-After
}

func (e *statusError) Error() string { return fmt.Sprintf("status %d", e.code) }

// retryLater makes a statusError of a response and closes it.
func retryLater(r *http.Response) error {
	discard(r)
	e := &statusError{code: r.StatusCode}
	text := r.Header.Get("Retry-After")
	if seconds, err := strconv.Atoi(text); err == nil && seconds > 0 {
		e.retryAfter = time.Duration(seconds) * time.Second
	} else if date, err := http.ParseTime(text); err == nil {
		e.retryAfter = time.Until(date)
	}
	return e
}

func busy(code int) bool {
	return code == http.StatusTooManyRequests || code == http.StatusRequestTimeout || code >= 500
}

// discard drains a little of an unused body and closes it, so that its connection can be reused.
func discard(r *http.Response) {
	_, _ = io.CopyN(io.Discard, r.Body, 64<<10) // errors surface at the connection's next use
	r.Body.Close()
}

// refused returns the error for a 4xx answer of the hub.
func (c *Client) refused(r *http.Response, repo, what string) error {
	defer discard(r)
	code, message := r.Header.Get("X-Error-Code"), r.Header.Get("X-Error-Message")
	page := c.Endpoint + "/" + repo
	access := &AccessError{Repo: repo, Host: c.host(), Page: page, Gated: code == "GatedRepo"}
	if c.Token != "" {
		access.TokenFrom = c.TokenFrom
	}
	switch {
	case access.Gated:
		return access
	case r.StatusCode == http.StatusUnauthorized && c.Token != "" &&
		message == "Invalid credentials in Authorization header":
		access.BadToken, access.Page = true, c.Endpoint+"/settings/tokens"
		return access
	case code == "RepoNotFound" && r.StatusCode == http.StatusNotFound:
		return &NotFoundError{"repository " + repo, c.host()}
	case r.StatusCode == http.StatusUnauthorized, r.StatusCode == http.StatusForbidden:
		return access
	case r.StatusCode == http.StatusNotFound:
		return &NotFoundError{what, c.host()}
	}
	return &ProtocolError{c.host(), fmt.Sprintf("status %d for %s", r.StatusCode, what)}
}
