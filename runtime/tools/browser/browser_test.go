package browser

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/session"
)

var thisHost = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"),
	netip.MustParsePrefix("::1/128")}

// site has twenty pages about rivers, which link to each other.
func site(t *testing.T) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	for i := range 20 {
		mux.HandleFunc(fmt.Sprintf("/river/%d", i), func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			fmt.Fprintf(w, `<!DOCTYPE html><html><head><title>River &amp; №%d</title>
<style>p { color: red }</style><script>document.write("<p>from a script</p>")</script></head>
<body><h1>River %d</h1><p>The river is <b>%d</b> km long.
<ul><li>first<li>second</ul><ol><li>one</li><li>two</li></ol>
<table><tr><th>name</th><th>length</th></tr><tr><td>R%d</td><td>%d</td></tr></table>
<pre>a   b
  c</pre>`, i, i, 100+i, i, 100+i)
			for j := range 300 {
				fmt.Fprintf(w, "<p>Paragraph %d of river %d tells about the Ötztal.</p>", j, i)
			}
			fmt.Fprintf(w, `<a href="/river/%d">next <i>river</i></a>, <a href="#top">up</a>,
<a href="https://example.org/away?x=1#y">away【】†</a> <a href="javascript:x()">script</a>
<img src=x alt="a map"></body></html>`, (i+1)%20)
		})
	}
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

// searching answers with the first pages of a site.
func searching(at string) Search {
	return func(_ context.Context, query string, n int) (hits []Hit, _ error) {
		for i := range n {
			hits = append(hits, Hit{fmt.Sprintf("%s/river/%d", at, i), fmt.Sprint("River ", i),
				query + " " + strings.Repeat("is long ", 30)})
		}
		return hits, nil
	}
}

func call(t *testing.T, b *Tool, name, arguments string) (string, error) {
	t.Helper()
	result, err := b.Run(t.Context(), session.Call{Recipient: "browser." + name,
		Arguments: arguments}, func(string) {})
	return result.Text, err
}

// shows runs a call and looks for texts in what the model sees.
func shows(t *testing.T, b *Tool, name, arguments string, want ...string) string {
	t.Helper()
	got, err := call(t, b, name, arguments)
	if err != nil {
		t.Fatalf("%s %s: %v", name, arguments, err)
	}
	for _, w := range want {
		if !strings.Contains(got, w) {
			t.Errorf("%s %s: no %q in\n%.1500s", name, arguments, w, got)
		}
	}
	return got
}

func refuses(t *testing.T, b *Tool, name, arguments, want string) {
	t.Helper()
	if got, err := call(t, b, name, arguments); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s %s: %.300q, %v, not %q", name, arguments, got, err, want)
	}
}

func TestSearchOpenFind(t *testing.T) {
	defer goleak.VerifyNone(t)
	s := site(t)
	defer s.Close()
	b := New(Options{Search: searching(s.URL), Allow: thisHost})
	defer b.Close()
	host := strings.TrimPrefix(s.URL, "http://")
	refuses(t, b, "find", `{"pattern":"x"}`, "no page has been opened yet")
	shows(t, b, "search", `{"query":"long rivers","topn":5}`, "[0] long rivers\n**viewing lines [0 - ",
		"L2: # Search Results", "  * 【4†River 4†"+host+"】 long rivers is long")
	page := shows(t, b, "open", `{"id":2}`, "[1] River & №2 ("+s.URL+"/river/2)\n**viewing lines [0 - ",
		"L0: \nL1: URL: "+s.URL+"/river/2\nL2: # River 2\nL3: \nL4: The river is 102 km long.",
		"  * first\n", "  1. one\n", "  2. two\n", "name | length\n", "R2 | 102\n", "a   b\n",
		":   c\n")
	for _, never := range []string{"from a script", "color: red"} {
		if strings.Contains(page, never) {
			t.Errorf("%q is shown", never)
		}
	}
	at := regexp.MustCompile(`\*\*viewing lines \[0 - (\d+)\] of (\d+)`).FindStringSubmatch(page)
	if strings.Count(page, "\nL") != atoi(t, at[1])+1 || atoi(t, at[1]) > 200 {
		t.Errorf("%s, %d lines", at[0], strings.Count(page, "\nL"))
	}
	shows(t, b, "open", `{"cursor":1,"loc":600,"num_lines":100}`, "[2] River",
		"【0†next river】, up, 【1†away〖〗‡†example.org】 script [Image 0: a map]")
	shows(t, b, "open", `{"loc":10,"num_lines":3}`, "[3]", "**viewing lines [10 - 12] of "+at[2])
	refuses(t, b, "open", `{"loc":100000}`, "is after the page's last line, "+at[2])
	shows(t, b, "find", `{"pattern":"PARAGRAPH 299","cursor":1}`,
		"[4] Find results for text: `PARAGRAPH 299` in `River & №2`", "L0: # 【0†match at L6",
		"Paragraph 299 of river 2", "next river, up, away〖〗‡ script")
	shows(t, b, "open", `{"id":0}`, "[5] River", "Paragraph 299")
	shows(t, b, "find", `{"pattern":"nothing here"}`, "No `find` results for pattern: `nothing here`")
	shows(t, b, "open", `{"id":"0","cursor":1}`, "[7] River & №3")
	shows(t, b, "open", fmt.Sprintf(`{"id":"%s/river/7"}`, s.URL), "[8] River & №7")
	shows(t, b, "open", `{"view_source":true}`, "[9]", "<script>document.write")
	refuses(t, b, "open", `{"id":77}`, "no link with the id 77")
	refuses(t, b, "open", `{"cursor":99}`, "no page with cursor 99; the latest one has cursor 9")
	refuses(t, b, "open", `{"id":"`+s.URL+`/none"}`, "the server answered 404 Not Found")
	refuses(t, b, "open", `[]`, "not a JSON object")
	refuses(t, b, "open", `{"id":"file:///etc/passwd"}`, "only http and https")
	refuses(t, b, "open", `{"id":"no host here"}`, "is not a URL")
	refuses(t, b, "search", `{"query":" "}`, "needs a `query`")
	refuses(t, New(Options{}), "search", `{"query":"x"}`, "no search engine")
}

func atoi(t *testing.T, s string) (n int) {
	t.Helper()
	if _, err := fmt.Sscan(s, &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// Every mark of an answer that cites all twenty pages, results and matches has its offset.
func TestCitations(t *testing.T) {
	s := site(t)
	b := New(Options{Search: searching(s.URL), Allow: thisHost})
	results := shows(t, b, "search", `{"query":"rivers","topn":20}`)
	type want struct{ url, title string }
	var wants []want
	var answer strings.Builder
	for i := range 20 {
		shows(t, b, "open", fmt.Sprintf(`{"cursor":0,"id":%d}`, i))
		fmt.Fprintf(&answer, "Flüsse 😀 %d 【%d†L4-L6】 und 【%d†L5】, ", i, i+1, i+1)
		w := want{fmt.Sprintf("%s/river/%d", s.URL, i), fmt.Sprintf("River & №%d", i)}
		wants = append(wants, w, w)
	}
	line := regexp.MustCompile(`L(\d+):   \* 【3†`).FindStringSubmatch(results)[1]
	fmt.Fprintf(&answer, "no page 【99†L1】, a result 【0†L%d-L%d】, ", atoi(t, line)+1, atoi(t, line)+2)
	wants = append(wants, want{s.URL + "/river/3", "River 3"})
	shows(t, b, "find", `{"pattern":"Ötztal","cursor":8}`)
	answer.WriteString("a head 【0†L0】, a match 【21†L2】, no mark 【x†L1】 and a page【8】.")
	wants = append(wants, want{s.URL + "/river/7", "River & №7"},
		want{s.URL + "/river/7", "River & №7"})
	got := b.Citations(answer.String())
	if len(got) != len(wants) {
		t.Fatalf("%d citations, not %d: %+v", len(got), len(wants), got)
	}
	letters := []rune(answer.String())
	for i, c := range got {
		if text := string(letters[c.Start:c.End]); !strings.HasPrefix(text, "【") ||
			!strings.HasSuffix(text, "】") || strings.Count(text, "【") != 1 {
			t.Errorf("citation %d is %q", i, text)
		}
		if c.URL != wants[i].url || c.Title != wants[i].title {
			t.Errorf("citation %d: %q %q, not %+v", i, c.URL, c.Title, wants[i])
		}
	}
}

// Whatever a page does, the browser comes back in time with a sentence or with text.
func TestHostilePages(t *testing.T) {
	defer goleak.VerifyNone(t)
	mux := http.NewServeMux()
	page := func(path, kind string, write func(w io.Writer)) {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			write(w)
		})
	}
	to := func(path, target string) {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, target, http.StatusFound)
		})
	}
	many := func(text string, n int) func(io.Writer) {
		return func(w io.Writer) {
			for range n {
				if _, err := io.WriteString(w, text); err != nil {
					return
				}
			}
		}
	}
	page("/big", "text/html", many("<p>"+strings.Repeat("x ", 500), 100_000))
	page("/line", "text/plain", many("0123456789", 1<<20))
	page("/deep", "text/html", many("<div><svg><b><table><ul>", 200_000))
	page("/links", "text/html", many("<a href=/x>", 500_000))
	page("/marks", "text/html", many("【1†L2】\u200b\u202e\U000e0041<|start|>", 3))
	page("/image", "image/png", many("x", 10))
	page("/pdf", "application/pdf", many("%PDF-1.7", 1))
	page("/laughs", "application/xml", func(w io.Writer) {
		fmt.Fprint(w, `<?xml version="1.0"?><!DOCTYPE l [<!ENTITY a "ha">`)
		for c := 'b'; c < 'k'; c++ {
			fmt.Fprintf(w, `<!ENTITY %c "%s">`, c, strings.Repeat(fmt.Sprintf("&%c;", c-1), 10))
		}
		fmt.Fprint(w, "]><l>&j;</l>")
	})
	mux.HandleFunc("/bomb", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		many(strings.Repeat(" ", 1<<20), 100)(z)
		_ = z.Close() // the browser has stopped reading
	})
	mux.HandleFunc("/drip", func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			fmt.Fprint(w, "<p>drip")
			w.(http.Flusher).Flush()
			time.Sleep(20 * time.Millisecond)
		}
	})
	mux.HandleFunc("/silent", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	mux.HandleFunc("/header", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Long", strings.Repeat("x", 1<<20))
	})
	to("/endless", "/endless")
	to("/inside", "http://169.254.169.254/latest/meta-data/")
	to("/mapped", "http://[::ffff:10.0.0.1]/")
	to("/file", "file:///etc/passwd")
	mux.HandleFunc("/who", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		fmt.Fprintf(w, "you are %q", r.Header.Get("Authorization"))
	})
	s := httptest.NewServer(mux)
	defer s.Close()
	to("/login", strings.Replace(s.URL, "//", "//planted:word@", 1)+"/who")
	var all sync.WaitGroup // two of them wait for their time
	for _, c := range []struct{ path, want string }{
		{"/drip", "it took longer than 300ms"}, {"/silent", "it took longer than 300ms"},
		{"/endless", "redirected more than 5 times"}, {"/inside", "169.254.169.254 is not a public"},
		{"/mapped", "10.0.0.1 is not a public"}, {"/file", "only http and https"},
		{"/image", "type image/png"}, {"/pdf", "damaged"}, {"/header", "exceeded"},
	} {
		all.Go(func() {
			b := New(Options{Allow: thisHost, Time: 2 * time.Minute})
			if strings.HasPrefix(c.want, "it took longer") {
				b = New(Options{Allow: thisHost, Time: 300 * time.Millisecond})
			}
			refuses(t, b, "open", fmt.Sprintf(`{"id":%q}`, s.URL+c.path), c.want)
		})
	}
	all.Wait()
	patient := New(Options{Allow: thisHost, Time: 2 * time.Minute})
	for _, c := range []struct{ path, want string }{
		{"/big", "x x x"}, {"/line", "0123456789"}, {"/deep", "no text"}, {"/links", "no text"},
		{"/laughs", "ENTITY"}, {"/login", `you are ""`}, {"/bomb", "no text"}, {"/marks", "〖1†L2〗<|start|>〖"},
	} {
		got := shows(t, patient, "open", fmt.Sprintf(`{"id":%q,"num_lines":1000000}`, s.URL+c.path),
			c.want)
		if len(got) > 60_000 {
			t.Errorf("%s: %d bytes are shown", c.path, len(got))
		}
	}
	if patient.viewBytes > maxViewBytes+2*maxText*2 {
		t.Errorf("%d bytes are held", patient.viewBytes)
	}
	strict := New(Options{})
	port := s.URL[strings.LastIndex(s.URL, ":"):]
	for _, host := range []string{"127.0.0.1", "localhost", "[::1]", "2130706433", "0.0.0.0"} {
		got, err := call(t, strict, "open", fmt.Sprintf(`{"id":"http://%s%s/marks"}`, host, port))
		if err == nil {
			t.Errorf("%s was opened: %.100q", host, got)
		}
	}
	refuses(t, strict, "open", fmt.Sprintf(`{"id":"http://localhost%s/marks"}`, port),
		"is not a public address")
}

// SECURITY.md: a page that the browser tool reads: public addresses only; it can still give the
// model orders
func TestPublicAddresses(t *testing.T) {
	for text, want := range map[string]bool{
		"1.1.1.1": true, "93.184.216.34": true, "2606:4700::1111": true,
		"127.0.0.1": false, "10.1.2.3": false, "172.16.0.1": false, "192.168.1.1": false,
		"169.254.169.254": false, "100.100.100.200": false, "168.63.129.16": false, "0.1.2.3": false,
		"224.0.0.1": false, "255.255.255.255": false, "::": false, "::1": false, "fe80::1": false,
		"fd00:ec2::254": false, "64:ff9b::a00:1": false, "2002:a00:1::": false, "2001::1": false,
		"::10.0.0.1": false, "ff02::1": false, "fec0::1": false,
	} {
		if got := isPublic(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

// A page in another encoding is read as it was meant.
func TestEncodings(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<meta charset=windows-1251><p>\xcc\xee\xf1\xea\xe2\xe0")
	}))
	defer s.Close()
	shows(t, New(Options{Allow: thisHost}), "open", fmt.Sprintf(`{"id":%q}`, s.URL), "Москва")
}

// The oldest pages lose their text first; their citations stay.
func TestOldPagesAreDropped(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		fmt.Fprint(w, strings.Repeat("0123456 \n", maxText/9))
	}))
	defer s.Close()
	b := New(Options{Allow: thisHost})
	for i := range 20 {
		shows(t, b, "open", fmt.Sprintf(`{"id":"%s/%d"}`, s.URL, i))
	}
	if b.viewBytes > maxViewBytes {
		t.Errorf("%d bytes are held", b.viewBytes)
	}
	refuses(t, b, "open", `{"cursor":0}`, "is no longer kept; open "+s.URL+"/0 again")
	if got := b.Citations("【0†L1】"); len(got) != 1 || got[0].URL != s.URL+"/0" {
		t.Error(got)
	}
}

// Each engine is asked as it wants to be, and its answer is read.
func TestEngines(t *testing.T) {
	var asked string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked = r.Method + " " + r.URL.String() + " " + string(body)
		switch {
		case r.Header.Get("x-api-key") == "e":
			fmt.Fprint(w, `{"results":[{"url":"https://a.org/1","title":"A","highlights":["x","y"]}]}`)
		case r.Header.Get("X-Subscription-Token") == "b":
			fmt.Fprint(w, `{"web":{"results":[{"url":"https://a.org/1","description":"x ... y"}]}}`)
		case r.URL.Path == "/sub/search":
			fmt.Fprint(w, `{"results":[{"url":"https://a.org/1","title":"A","content":"x ... y"},{"url":"no"}]}`)
		default:
			http.Error(w, "who are you", http.StatusUnauthorized)
		}
	}))
	defer s.Close()
	oldExa, oldBrave := exaURL, braveURL
	defer func() { exaURL, braveURL = oldExa, oldBrave }()
	exaURL, braveURL = s.URL+"/exa", s.URL+"/brave"
	for _, name := range []string{"EXA_API_KEY", "BRAVE_API_KEY", "SEARXNG_URL"} {
		t.Setenv(name, "")
	}
	if _, _, err := Engine(""); err == nil || !strings.Contains(err.Error(), "set EXA_API_KEY") {
		t.Error(err)
	}
	for _, bad := range []string{"exa", "brave", "searxng", "google", "ftp://x"} {
		if _, _, err := Engine(bad); err == nil {
			t.Errorf("%s is an engine", bad)
		}
	}
	if search, name, err := Engine("none"); search != nil || name != "none" || err != nil {
		t.Error(name, err)
	}
	for _, c := range []struct{ variable, value, choice, name, want string }{
		{"EXA_API_KEY", "e", "", "Exa", `POST /exa {"contents":`},
		{"EXA_API_KEY", "e", "exa", "Exa", `"numResults":3,"query":"a \u0026 b"`},
		{"BRAVE_API_KEY", "b", "brave", "Brave", "GET /brave?count=3&q=a+%26+b"},
		{"SEARXNG_URL", s.URL + "/sub", "searxng", "SearXNG at", "GET /sub/search?format=json&q=a+%26+b"},
	} {
		t.Setenv(c.variable, c.value)
		search, name, err := Engine(c.choice)
		if err != nil || !strings.HasPrefix(name, c.name) {
			t.Fatal(name, err)
		}
		hits, err := search(t.Context(), "a & b", 3)
		if err != nil || len(hits) != 1 || hits[0].Text != "x ... y" || hits[0].Title == "" ||
			!strings.Contains(asked, c.want) {
			t.Errorf("%s: %q, %+v, %v", c.choice, asked, hits, err)
		}
	}
	t.Setenv("EXA_API_KEY", "wrong")
	search, _, err := Engine("exa")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := search(t.Context(), "x", 3); err == nil ||
		!strings.Contains(err.Error(), "401 Unauthorized: who are you") {
		t.Error(err)
	}
}

func FuzzHTML(f *testing.F) {
	f.Add("<h1>x<a href=/y>z<li><td>【1†x】<title>t")
	f.Add("<pre>a\n<a href=//b>\n</pre><svg><svg></svg>x<base href=/c>")
	base, _ := absolute("https://example.org/")
	f.Fuzz(func(t *testing.T, source string) {
		title, text, links := htmlText(source, base)
		p := newPage(base.String(), title, text, links)
		for loc := 0; loc < len(p.lines); loc += 50 {
			if _, err := p.window(0, loc, -1); err != nil {
				t.Fatal(err)
			}
		}
		_ = p.find("a")
		for _, m := range shownLink.FindAllString(strings.Join(p.lines, "\n"), -1) {
			var id int
			if _, err := fmt.Sscanf(m, "【%d†", &id); err != nil || id >= len(links) {
				t.Errorf("%q leads nowhere", m)
			}
		}
	})
}

// A call's arguments may be any JSON.
func FuzzArguments(f *testing.F) {
	f.Add("open", `{"id":3,"cursor":"1","loc":1e99,"num_lines":null}`)
	f.Fuzz(func(t *testing.T, name, arguments string) {
		b := New(Options{Allow: nil, Time: time.Millisecond})
		b.views = []*page{newPage("u", "t", "x", nil)}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := b.Run(ctx, session.Call{Recipient: "browser." + name, Arguments: arguments},
			func(string) {})
		if err == nil && !json.Valid([]byte(arguments)) {
			t.Errorf("%q was taken", arguments)
		}
	})
}

// A browser that counts: no request leaves offline, and under a list of domains only to those, by
// a search's results, pages, links and redirects.
func TestReach(t *testing.T) {
	counted := map[string]int{}
	var mu sync.Mutex
	var other *httptest.Server
	handler := func(name string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			counted[name]++
			mu.Unlock()
			if r.URL.Path == "/away" {
				http.Redirect(w, r, other.URL+"/page", http.StatusFound)
				return
			}
			fmt.Fprintf(w, `<html><body>%s has <a href="%s/page">a link</a></body></html>`, name,
				other.URL)
		}
	}
	one := httptest.NewServer(handler("one"))
	defer one.Close()
	other = httptest.NewServer(handler("other"))
	defer other.Close()
	searches := 0
	tool := New(Options{Allow: thisHost, Search: func(context.Context, string, int) ([]Hit, error) {
		searches++
		return []Hit{{one.URL + "/page", "One", ""}, {other.URL + "/page", "Other", ""}}, nil
	}})
	defer tool.Close()
	run := func(call, arguments string) (string, error) {
		r, err := tool.Run(t.Context(), session.Call{Recipient: "browser." + call,
			Arguments: arguments}, nil)
		return r.Text, err
	}
	open := func(address string) (string, error) {
		return run("open", fmt.Sprintf(`{"id":%q}`, address))
	}
	if _, err := open(one.URL + "/page"); err != nil {
		t.Fatal(err)
	}

	tool.Limit(true, nil, nil, 0)
	before := fmt.Sprint(counted, searches)
	for _, c := range [][2]string{{"search", `{"query":"x"}`}, {"open", `{"id":0}`},
		{"open", fmt.Sprintf(`{"id":%q}`, other.URL)}} {
		if _, err := run(c[0], c[1]); err == nil || !strings.Contains(err.Error(), "no live access") {
			t.Errorf("offline, %s %s: %v", c[0], c[1], err)
		}
	}
	if text, err := open(one.URL + "/page"); err != nil || !strings.Contains(text, "one has") {
		t.Errorf("offline, a page that was opened before: %q %v", text, err)
	}
	if now := fmt.Sprint(counted, searches); now != before {
		t.Errorf("offline, requests left: %s, before %s", now, before)
	}

	host := strings.TrimPrefix(one.URL, "http://")
	tool.Limit(false, []string{host}, nil, 0)
	if text, err := run("search", `{"query":"x"}`); err != nil || strings.Contains(text, "Other") ||
		!strings.Contains(text, "One") {
		t.Errorf("allowed results: %q %v", text, err)
	}
	for _, address := range []string{other.URL + "/page", one.URL + "/away"} {
		if _, err := open(address); err == nil || !strings.Contains(err.Error(), "pages of "+host) {
			t.Errorf("%s: %v", address, err)
		}
	}
	if _, err := open(one.URL + "/page"); err != nil {
		t.Error(err)
	}
	if _, err := run("open", `{"id":0}`); err == nil {
		t.Error("a link leads out of the domains")
	}
	tool.Limit(false, nil, []string{host}, 0)
	if _, err := open(one.URL + "/page"); err == nil {
		t.Error("a blocked domain is opened")
	}
	if counted["other"] != 0 {
		t.Errorf("%d requests went elsewhere", counted["other"])
	}
	tool.Limit(false, nil, nil, 0)
	if _, err := open(one.URL + "/away"); err != nil || counted["other"] != 1 {
		t.Errorf("without limits: %v, %v", err, counted)
	}
}

func TestDomains(t *testing.T) {
	for domain, want := range map[string]bool{"example.com": true, "www.example.com": true,
		"EXAMPLE.com.": true, "https://example.com/": true, "example.com/blog": true,
		"example.com/blog/a": true, "example.com/blo": false, "ample.com": false, "com": true,
		"": false, "/blog": false, "example.org": false, "a.www.example.com": false,
		"example.com/*": true, "example.com/*/a": true, "example.com/*/b": false} {
		u := hosttest.Must(url.Parse("https://www.example.com/blog/a?b"))(t)
		if got := isWithin(u, domain); got != want {
			t.Errorf("%q: %v", domain, got)
		}
	}
	for page, want := range map[string]bool{"/blog/../admin": false, "//blog/a": true,
		"/x/../blog": true, "/x/%2e%2e/blog": true} {
		u := hosttest.Must(url.Parse("https://example.com" + page))(t)
		if got := isWithin(u, "example.com/blog"); got != want {
			t.Errorf("%s is within the blog: %v", page, got)
		}
	}
}
