// Fetching a page: its limits, and which addresses may be reached.
//
// The dialer checks each address after the name is resolved and before anything is sent. So
// redirects and names of private addresses are refused too. Pages are fetched without a proxy,
// because a proxy would resolve the name itself.

package browser

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/net/html/charset"

	"github.com/ossrun/ossrun/runtime/tools/pdf"
)

const maxRedirects = 5

// privateAddressError refuses an address that is private, or this machine's, and not allowed.
type privateAddressError struct{ address netip.Addr }

func (e *privateAddressError) Error() string {
	if isPublic(e.address) {
		return fmt.Sprintf("%s is an address of this machine, and was not allowed", e.address)
	}
	return fmt.Sprintf("%s is not a public address, and was not allowed", e.address)
}

func pageClient(allow []netip.Prefix) *http.Client {
	dialer := &net.Dialer{Timeout: 10 * time.Second, Control: func(_, address string,
		_ syscall.RawConn) error {
		addrPort, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("read the address %s: %w", address, err)
		}
		ip := addrPort.Addr().Unmap().WithZone("")
		if isPublic(ip) && !isLocal(ip) || slices.ContainsFunc(allow, func(p netip.Prefix) bool {
			return p.Contains(ip)
		}) {
			return nil
		}
		return &privateAddressError{ip}
	}}
	return &http.Client{
		Transport: &http.Transport{DialContext: dialer.DialContext, ForceAttemptHTTP2: true,
			DisableKeepAlives: true, TLSHandshakeTimeout: 10 * time.Second,
			MaxResponseHeaderBytes: 256 << 10},
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if len(via) > maxRedirects {
				return fmt.Errorf("it was redirected more than %d times", maxRedirects)
			}
			if r.URL.Scheme != "http" && r.URL.Scheme != "https" {
				return fmt.Errorf("it redirects to %s, and only http and https can be opened",
					r.URL.Scheme)
			}
			r.URL.User = nil // otherwise one page's URL could log in at another site
			return nil
		},
	}
}

// privateNetworks lists networks of a machine, a site or a cloud that netip does not know.
var privateNetworks = prefixes("0.0.0.0/8", "100.64.0.0/10", "168.63.129.16/32", "192.0.0.0/24",
	"192.88.99.0/24", "198.18.0.0/15", "240.0.0.0/4", "2001::/23", "2002::/16")

// publicIPv6 is the public part of IPv6. The rest maps IPv4 addresses, or belongs to a site.
var publicIPv6 = netip.MustParsePrefix("2000::/3")

func prefixes(list ...string) (out []netip.Prefix) {
	for _, p := range list {
		out = append(out, netip.MustParsePrefix(p))
	}
	return out
}

func isPublic(ip netip.Addr) bool {
	if !ip.IsGlobalUnicast() || ip.IsPrivate() || ip.IsLoopback() || ip.IsLinkLocalUnicast() ||
		ip.Is6() && !publicIPv6.Contains(ip) {
		return false
	}
	return !slices.ContainsFunc(privateNetworks,
		func(p netip.Prefix) bool { return p.Contains(ip) })
}

// isLocal tells whether an address is this machine's, whose services may trust local clients. An
// address that a router translates to this machine cannot be recognized.
func isLocal(ip netip.Addr) bool {
	list, err := net.InterfaceAddrs()
	return err != nil || slices.ContainsFunc(list, func(a net.Addr) bool {
		network, ok := a.(*net.IPNet)
		return ok && network.IP.Equal(net.IP(ip.AsSlice()))
	})
}

func (t *Tool) fetch(ctx context.Context, address string, source bool) (*page, error) {
	u, err := absolute(address)
	if err != nil {
		return nil, err
	}
	if err := t.reach.refuses(u); err != nil {
		if p := t.opened(u.String()); t.reach.offline && p != nil {
			return p, nil
		}
		return nil, fmt.Errorf("%s cannot be opened: %w", u, err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, t.o.Time,
		fmt.Errorf("it took longer than %v", t.o.Time))
	defer cancel()
	p, err := t.read(ctx, u, source)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be opened: %w", u, unwrap(ctx, err))
	}
	return p, nil
}

func (t *Tool) read(ctx context.Context, u *url.URL, source bool) (*page, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("User-Agent", "Mozilla/5.0 (compatible; ossrun)")
	r.Header.Set("Accept", "text/html, text/plain;q=0.9, application/json;q=0.8, "+
		"application/pdf;q=0.7, */*;q=0.1")
	r.Header.Set("Accept-Language", "en, *;q=0.5")
	answer, err := t.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode/100 != 2 {
		return nil, fmt.Errorf("the server answered %s", answer.Status)
	}
	content := cmp.Or(answer.Header.Get("Content-Type"), "text/html")
	kind, _, err := mime.ParseMediaType(content)
	if err != nil {
		kind, _, _ = strings.Cut(content, ";")
	}
	if kind == "application/pdf" {
		return document(ctx, answer)
	}
	isHTML := kind == "text/html" || kind == "application/xhtml+xml"
	if !isHTML && !isText(kind) {
		kind, _ = truncate(oneLine(kind), 60)
		return nil, fmt.Errorf("it is a file of type %s, and this browser reads text and HTML "+
			"only; look for the same as a web page", kind)
	}
	text, cutOff, err := t.body(answer.Body, content)
	if err != nil {
		return nil, err
	}
	finalURL := answer.Request.URL
	title, links := finalURL.Host, []link(nil)
	if isHTML && !source {
		var named string
		if named, text, links = htmlText(text, finalURL); named != "" {
			title = named
		}
		text = cmp.Or(text, "[this page has no text; it may need a browser that runs scripts]")
	} else if text = strings.ReplaceAll(clean(text), "\t", "    "); len(text) > maxText {
		text, cutOff = strings.ToValidUTF8(text[:maxText], ""), true
	}
	if cutOff {
		text += fmt.Sprintf("\n[the rest of the page is omitted, it has more than %d MiB]",
			min(t.o.Size, maxText)>>20)
	}
	return newPage(finalURL.String(), title, text, links), nil
}

func document(ctx context.Context, answer *http.Response) (*page, error) {
	raw, err := io.ReadAll(io.LimitReader(answer.Body, pdf.MaxBytes+1))
	if err != nil {
		return nil, err
	}
	text, err := pdf.Text(ctx, raw)
	if err != nil {
		return nil, err
	}
	if len(text) > maxText {
		text = fmt.Sprintf("%s\n[the rest of the document is omitted, it has more than %d MiB]",
			strings.ToValidUTF8(text[:maxText], ""), maxText>>20)
	}
	finalURL := answer.Request.URL
	text = strings.ReplaceAll(text, "\t", "    ")
	return newPage(finalURL.String(), path.Base(finalURL.Path), text, nil), nil
}

// body reads a page's text as UTF-8, up to the limit.
func (t *Tool) body(from io.Reader, content string) (_ string, cutOff bool, err error) {
	raw, err := io.ReadAll(io.LimitReader(from, t.o.Size+1))
	if err != nil {
		return "", false, err
	}
	if int64(len(raw)) > t.o.Size {
		raw, cutOff = raw[:t.o.Size], true
	}
	encoding, _, _ := charset.DetermineEncoding(raw[:min(len(raw), 1024)], content)
	text, err := encoding.NewDecoder().Bytes(raw)
	if err != nil {
		text = raw
	}
	return strings.ReplaceAll(string(text), "\r\n", "\n"), cutOff, nil
}

// isText tells whether files of a media type are shown as they are.
func isText(kind string) bool {
	switch kind {
	case "application/json", "application/xml", "application/javascript", "application/yaml",
		"application/x-yaml", "application/toml", "application/x-sh":
		return true
	}
	return strings.HasPrefix(kind, "text/") || strings.HasSuffix(kind, "+json") ||
		strings.HasSuffix(kind, "+xml") && kind != "image/svg+xml"
}

// unwrap removes an error's network wrappers, which repeat the URL.
func unwrap(ctx context.Context, err error) error {
	var private *privateAddressError
	var name *net.DNSError
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &private):
		return private
	case errors.As(err, &name) && name.IsNotFound:
		return fmt.Errorf("there is no host %s", name.Name)
	}
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}
