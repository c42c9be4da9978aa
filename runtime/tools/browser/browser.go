// Package browser is the browser tool: search, open and find, as the models were trained with them
// (harmony.BuiltinBrowser).
//
// Each call shows a page. The cursor, the number in front of it, names that page for the rest of
// the conversation: in later calls, and in citations. What must stay true: a page or server costs
// at most the limits of fetch.go; a private address is reached only if the user allowed it; errors
// tell the model what to try next.
package browser

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ossrun/ossrun/runtime/session"
)

// Options of a Tool. Zero values are the defaults.
type Options struct {
	Search Search         // nil: search is refused, pages can be opened
	Allow  []netip.Prefix // addresses that may be reached although they are private
	Time   time.Duration  // limit for one page; 0: 20 s
	Size   int64          // bytes read of one page; 0: 10 MiB
}

// Tool is the browser of one conversation.
type Tool struct {
	o      Options
	client *http.Client

	mu        sync.Mutex // one call at a time
	views     []*page    // indexed by cursor
	viewBytes int        // bytes of text in views
	reach     reach
}

func New(o Options) *Tool {
	o.Time, o.Size = cmp.Or(o.Time, 20*time.Second), cmp.Or(o.Size, 10<<20)
	t := &Tool{o: o, client: pageClient(o.Allow)}
	check := t.client.CheckRedirect
	t.client.CheckRedirect = func(r *http.Request, via []*http.Request) error {
		return cmp.Or(t.reach.refuses(r.URL), check(r, via))
	}
	return t
}

func (t *Tool) Offer(r *session.Request) { r.Browser = true }

func (t *Tool) Runs(recipient string) bool {
	switch recipient {
	case "browser.search", "browser.open", "browser.find":
		return true
	}
	return false
}

func (t *Tool) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.views, t.viewBytes = nil, 0
	return nil
}

// Run executes a call whose arguments are a JSON object.
func (t *Tool) Run(ctx context.Context, c session.Call, _ func(string)) (session.ToolResult,
	error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var a arguments
	if err := json.Unmarshal([]byte(c.Arguments), &a); err != nil {
		return session.ToolResult{}, fmt.Errorf("the arguments are not a JSON object: %w", err)
	}
	switch strings.TrimPrefix(c.Recipient, "browser.") {
	case "search":
		return t.search(ctx, a)
	case "open":
		return t.open(ctx, a)
	case "find":
		return t.find(a)
	}
	return session.ToolResult{}, fmt.Errorf("the browser has search, open and find, not %q",
		c.Recipient)
}

// arguments of a call. Models write numbers as text too.
type arguments map[string]any

func (a arguments) text(name string) string {
	s, _ := a[name].(string)
	return strings.TrimSpace(s)
}

// number returns the integer under a name, or fallback if there is no valid one.
func (a arguments) number(name string, fallback int) int {
	switch v := a[name].(type) {
	case float64:
		if v >= -1 && v < 1<<31 {
			return int(v)
		}
	case string:
		if n, err := strconv.Atoi(strings.TrimSpace(v)); err == nil && n >= -1 {
			return n
		}
	}
	return fallback
}

const (
	defaultHits = 10
	maxHits     = 20
)

func (t *Tool) search(ctx context.Context, a arguments) (session.ToolResult, error) {
	query := a.text("query")
	if query == "" {
		return session.ToolResult{}, errors.New("search needs a `query`")
	}
	if t.o.Search == nil {
		return session.ToolResult{}, errors.New("this browser has no search engine; " +
			"open a page by its URL instead")
	}
	if t.reach.offline {
		return session.ToolResult{}, errOffline
	}
	ctx, cancel := context.WithTimeout(ctx, t.o.Time)
	defer cancel()
	n := min(max(a.number("topn", cmp.Or(t.reach.results, defaultHits)), 1), maxHits)
	most := n
	if t.reach.only != nil {
		most = maxHits // many are left out
	}
	hits, err := t.o.Search(ctx, query, most)
	if err != nil {
		return session.ToolResult{}, fmt.Errorf("the search failed: %w", err)
	}
	if hits = t.reach.allowed(hits); len(hits) == 0 {
		return session.ToolResult{}, fmt.Errorf("no results for %q; try other words", query)
	}
	hits = hits[:min(n, len(hits))]
	p := resultsPage(query, hits)
	r, err := t.show(p, 0, -1, fmt.Sprintf("%s for %q", Count(len(p.links), "result"), query))
	r.Sources = nil
	for _, h := range hits {
		r.Sources = append(r.Sources, session.Source{URL: h.URL, Title: oneLine(h.Title)})
	}
	return r, err
}

func (t *Tool) open(ctx context.Context, a arguments) (session.ToolResult, error) {
	loc, lines := a.number("loc", -1), a.number("num_lines", -1)
	address, link := "", a.number("id", -1)
	if text := a.text("id"); link < 0 && text != "" && text != "-1" {
		address = text
	}
	source, _ := a["view_source"].(bool)
	var current *page
	if address == "" {
		var err error
		if current, err = t.view(a.number("cursor", -1)); err != nil {
			return session.ToolResult{}, err
		}
		switch {
		case link >= 0 && link >= len(current.links):
			return session.ToolResult{}, fmt.Errorf("the page has no link with the id %d; "+
				"ids are shown as 【id†text】", link)
		case link >= 0:
			l := current.links[link]
			if l.page != nil { // a match of find
				if loc < 0 {
					loc = max(l.line-3, 0)
				}
				return t.show(l.page, loc, lines, "")
			}
			address = l.url
		case !source:
			return t.show(current, max(loc, 0), lines, "")
		default:
			address = current.url
		}
	}
	p, err := t.fetch(ctx, address, source)
	if err != nil {
		return session.ToolResult{}, err
	}
	return t.show(p, max(loc, 0), lines, "")
}

func (t *Tool) find(a arguments) (session.ToolResult, error) {
	pattern, _ := a["pattern"].(string)
	if strings.TrimSpace(pattern) == "" {
		return session.ToolResult{}, errors.New("find needs a `pattern`")
	}
	current, err := t.view(a.number("cursor", -1))
	if err != nil {
		return session.ToolResult{}, err
	}
	results := current.find(pattern)
	return t.show(results, 0, -1, fmt.Sprintf("%s of %q in %s",
		Count(len(results.links), "match"), pattern, current.title))
}

// Count formats a number of things: "1 match", "3 results".
func Count(n int, thing string) string {
	switch {
	case n == 1:
	case strings.HasSuffix(thing, "ch"):
		thing += "es"
	default:
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}

// view returns the page with a cursor; -1 is the latest.
func (t *Tool) view(cursor int) (*page, error) {
	if len(t.views) == 0 {
		return nil, errors.New("no page has been opened yet; search, or open a URL")
	}
	if cursor < 0 {
		cursor = len(t.views) - 1
	}
	if cursor >= len(t.views) {
		return nil, fmt.Errorf("there is no page with cursor %d; the latest one has cursor %d",
			cursor, len(t.views)-1)
	}
	if p := t.views[cursor]; p.lines != nil {
		return p, nil
	}
	return nil, fmt.Errorf("the page with cursor %d is no longer kept; open %s again", cursor,
		t.views[cursor].url)
}

// maxViewBytes is the bytes of pages that a conversation keeps; the oldest pages lose their text
// first.
const maxViewBytes = 32 << 20

// show gives a page the next cursor and returns the window that the model sees.
func (t *Tool) show(p *page, loc, lines int, title string) (session.ToolResult, error) {
	text, err := p.window(len(t.views), loc, lines)
	if err != nil {
		return session.ToolResult{}, err
	}
	t.views = append(t.views, p)
	t.viewBytes += p.size
	for i := 0; t.viewBytes > maxViewBytes && i < len(t.views)-1; i++ {
		old := t.views[i]
		if old == p || old.lines == nil {
			continue
		}
		for _, v := range t.views { // it may have several cursors
			if v == old {
				t.viewBytes -= old.size
			}
		}
		old.lines, old.links = nil, nil
	}
	title = cmp.Or(title, strings.TrimSpace(p.title+" "+p.url))
	return session.ToolResult{Text: text, Title: title,
		Sources: []session.Source{{URL: p.url, Title: p.title}}}, nil
}

// absolute parses an address, of which models and pages often omit the scheme.
func absolute(address string) (*url.URL, error) {
	if !strings.Contains(address, "://") {
		address = "https://" + address
	}
	u, err := url.Parse(address)
	if err == nil && u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("only http and https can be opened, not %s", u.Scheme)
	}
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("%q is not a URL; open takes one such as https://example.com/page",
			address)
	}
	u.User, u.Fragment = nil, ""
	return u, nil
}
