// Search engines: Exa, Brave and SearXNG, each one request.

package browser

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// Search finds at most n pages.
type Search func(ctx context.Context, query string, n int) ([]Hit, error)

type Hit struct{ URL, Title, Text string }

// Addresses of the engines; tests replace them.
var (
	exaURL   = "https://api.exa.ai/search"
	braveURL = "https://api.search.brave.com/res/v1/web/search"
)

// Engine returns the search engine for the user's choice: "exa", "brave", a SearXNG's URL, or
// "none". "" is the first with a key or URL in the environment. The name is for display.
func Engine(choice string) (_ Search, name string, err error) {
	original := choice
	exaKey, braveKey := os.Getenv("EXA_API_KEY"), os.Getenv("BRAVE_API_KEY")
	searxngURL := os.Getenv("SEARXNG_URL")
	switch choice {
	case "":
		switch choice = searxngURL; {
		case exaKey != "":
			choice = "exa"
		case braveKey != "":
			choice = "brave"
		}
	case "searxng":
		if searxngURL == "" {
			return nil, "", errors.New("set SEARXNG_URL to where SearXNG is, or give its URL")
		}
		choice = searxngURL
	}
	switch {
	case choice == "":
		return nil, "", errors.New("the browser has no search engine: set EXA_API_KEY or " +
			"BRAVE_API_KEY, or --search to the URL of a SearXNG; --search none is a browser " +
			"that only opens pages")
	case choice == "none":
		return nil, "none", nil
	case choice == "exa" && exaKey != "":
		return engine(exa).search(map[string]string{"x-api-key": exaKey}, ""), "Exa", nil
	case choice == "brave" && braveKey != "":
		return engine(brave).search(map[string]string{"X-Subscription-Token": braveKey}, ""),
			"Brave", nil
	case choice == "exa" || choice == "brave":
		return nil, "", fmt.Errorf("set %s_API_KEY to search with it", strings.ToUpper(choice))
	}
	u, err := url.Parse(choice)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, "", fmt.Errorf("unknown search engine %q. Use exa, brave, none, or the "+
			"URL of a SearXNG", choice)
	}
	if original == choice { // any answer shows that it is up
		answer, err := (&http.Client{Timeout: 5 * time.Second}).Head(choice)
		if err != nil {
			return nil, "", fmt.Errorf("%s cannot be reached: %w", u.Host,
				unwrap(context.Background(), err))
		}
		answer.Body.Close()
	}
	return searxng(u).search(nil,
		" (SearXNG needs `json` among search.formats in its settings)"), "SearXNG at " + u.Host, nil
}

// An engine builds the request for n pages: a POST of body, or a GET if body is nil.
type engine func(query string, n int) (address string, body []byte)

func exa(query string, n int) (string, []byte) {
	body, _ := json.Marshal(map[string]any{"query": query, "numResults": n, // strings, numbers
		"contents": map[string]any{"highlights": true, "text": map[string]any{
			"maxCharacters": 500}}})
	return exaURL, body
}

func brave(query string, n int) (string, []byte) {
	return braveURL + "?" + url.Values{"q": {query}, "count": {fmt.Sprint(n)},
		"text_decorations": {"false"}}.Encode(), nil
}

func searxng(base *url.URL) engine {
	return func(query string, _ int) (string, []byte) {
		u := base.JoinPath("search")
		u.RawQuery = url.Values{"q": {query}, "format": {"json"}}.Encode()
		return u.String(), nil
	}
}

// result has the fields of all engines.
type result struct {
	URL, Title                 string
	Content, Description, Text string // SearXNG's, Brave's, Exa's
	Highlights                 []string
}

// search sends the headers and keeps results with a URL. hint is appended to errors.
func (e engine) search(headers map[string]string, hint string) Search {
	return func(ctx context.Context, query string, n int) (hits []Hit, err error) {
		address, body := e(query, n)
		method := http.MethodGet
		if body != nil {
			method = http.MethodPost
		}
		r, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		for name, value := range headers {
			r.Header.Set(name, value)
		}
		var answer struct {
			Results []result
			Web     struct{ Results []result } // Brave's
		}
		if err := getJSON(r, &answer); err != nil {
			return nil, fmt.Errorf("%w%s", err, hint)
		}
		for _, f := range append(answer.Results, answer.Web.Results...) {
			if u, err := url.Parse(f.URL); err == nil && u.Host != "" {
				hits = append(hits, Hit{f.URL, cmp.Or(f.Title, u.Host),
					cmp.Or(strings.Join(f.Highlights, " ... "), f.Content, f.Description, f.Text)})
			}
		}
		return hits, nil
	}
}

// maxAnswerBytes limits the bytes read of a search engine's answer.
const maxAnswerBytes = 4 << 20

func getJSON(r *http.Request, to any) error {
	r.Header.Set("Accept", "application/json")
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err // without the URL, which has the query
	}
	if err != nil {
		return fmt.Errorf("%s cannot be reached: %w", r.URL.Host, err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswerBytes))
	if err != nil {
		return fmt.Errorf("read the answer of %s: %w", r.URL.Host, err)
	}
	if answer.StatusCode != http.StatusOK {
		about, _ := truncate(oneLine(string(body)), 200)
		return fmt.Errorf("%s answered %s: %s", r.URL.Host, answer.Status, about)
	}
	if err := json.Unmarshal(body, to); err != nil {
		return fmt.Errorf("%s answered what is not JSON: %w", r.URL.Host, err)
	}
	return nil
}
