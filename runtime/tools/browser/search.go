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
)

// Search finds at most n pages.
type Search func(ctx context.Context, query string, n int) ([]Hit, error)

// Hit is a page that a search has found.
type Hit struct{ URL, Title, Text string }

// Where the engines are; tests have their own.
var (
	exaURL   = "https://api.exa.ai/search"
	braveURL = "https://api.search.brave.com/res/v1/web/search"
)

// Engine is the search engine that the user chose: "exa", "brave", the URL of a SearXNG, or "none".
// "" is the first that the environment has a key or a URL of. The name is for people.
func Engine(choice string) (_ Search, name string, err error) {
	exa, brave := os.Getenv("EXA_API_KEY"), os.Getenv("BRAVE_API_KEY")
	searxng := os.Getenv("SEARXNG_URL")
	switch choice {
	case "":
		choice = first(exa, "exa", brave, "brave", searxng, searxng)
	case "searxng":
		if searxng == "" {
			return nil, "", errors.New("set SEARXNG_URL to where SearXNG is, or give its URL")
		}
		choice = searxng
	}
	switch {
	case choice == "":
		return nil, "", errors.New("the browser has no search engine: set EXA_API_KEY or " +
			"BRAVE_API_KEY, or --search to the URL of a SearXNG; --search none is a browser " +
			"that only opens pages")
	case choice == "none":
		return nil, "none", nil
	case choice == "exa" && exa != "":
		return searchExa(exa), "Exa", nil
	case choice == "brave" && brave != "":
		return searchBrave(brave), "Brave", nil
	case choice == "exa" || choice == "brave":
		return nil, "", fmt.Errorf("set %s_API_KEY to search with it", strings.ToUpper(choice))
	}
	u, err := url.Parse(choice)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, "", fmt.Errorf("a search engine is exa, brave, none, or the URL of a "+
			"SearXNG, not %q", choice)
	}
	return searchSearXNG(u), "SearXNG at " + u.Host, nil
}

// first is the name behind the first value that is set.
func first(pairs ...string) string {
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i] != "" {
			return pairs[i+1]
		}
	}
	return ""
}

func searchExa(key string) Search {
	return func(ctx context.Context, query string, n int) (hits []Hit, err error) {
		body, _ := json.Marshal(map[string]any{"query": query, "numResults": n, // strings, numbers
			"contents": map[string]any{"highlights": true, "text": map[string]any{
				"maxCharacters": 500}}})
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, exaURL, bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		r.Header.Set("x-api-key", key)
		var found struct {
			Results []struct {
				URL, Title, Text string
				Highlights       []string
			}
		}
		err = ask(r, &found)
		for _, f := range found.Results {
			hits = append(hits, Hit{f.URL, f.Title, cmp.Or(strings.Join(f.Highlights, " ... "),
				f.Text)})
		}
		return usable(hits), err
	}
}

func searchBrave(key string) Search {
	return func(ctx context.Context, query string, n int) (hits []Hit, err error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, braveURL+"?"+url.Values{
			"q": {query}, "count": {fmt.Sprint(n)}, "text_decorations": {"false"}}.Encode(), nil)
		if err != nil {
			return nil, err
		}
		r.Header.Set("X-Subscription-Token", key)
		var found struct {
			Web struct {
				Results []struct{ URL, Title, Description string }
			}
		}
		err = ask(r, &found)
		for _, f := range found.Web.Results {
			hits = append(hits, Hit{f.URL, f.Title, f.Description})
		}
		return usable(hits), err
	}
}

func searchSearXNG(at *url.URL) Search {
	return func(ctx context.Context, query string, _ int) (hits []Hit, err error) {
		u := at.JoinPath("search")
		u.RawQuery = url.Values{"q": {query}, "format": {"json"}}.Encode()
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
		if err != nil {
			return nil, err
		}
		var found struct {
			Results []struct{ URL, Title, Content string }
		}
		if err = ask(r, &found); err != nil {
			err = fmt.Errorf("%w (SearXNG needs `json` among search.formats in its settings)", err)
		}
		for _, f := range found.Results {
			hits = append(hits, Hit{f.URL, f.Title, f.Content})
		}
		return usable(hits), err
	}
}

// usable are the hits that can be opened.
func usable(hits []Hit) (out []Hit) {
	for _, h := range hits {
		if u, err := url.Parse(h.URL); err == nil && u.Host != "" {
			h.Title = cmp.Or(h.Title, u.Host)
			out = append(out, h)
		}
	}
	return out
}

// mostAnswer is how many bytes of a search engine's answer are read.
const mostAnswer = 4 << 20

// ask sends a request to a search engine and reads its JSON.
func ask(r *http.Request, to any) error {
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
	body, err := io.ReadAll(io.LimitReader(answer.Body, mostAnswer))
	if err != nil {
		return fmt.Errorf("read the answer of %s: %w", r.URL.Host, err)
	}
	if answer.StatusCode != http.StatusOK {
		about, _ := cut(flat(string(body)), 200)
		return fmt.Errorf("%s answered %s: %s", r.URL.Host, answer.Status, about)
	}
	if err := json.Unmarshal(body, to); err != nil {
		return fmt.Errorf("%s answered what is not JSON: %w", r.URL.Host, err)
	}
	return nil
}
