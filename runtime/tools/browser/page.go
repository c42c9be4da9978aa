// A page as the model sees it: wrapped into numbered lines and shown in windows. Answers cite it by
// marks such as 【cursor†L8-L10】.

package browser

import (
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ossrun/ossrun/harmony/token"
	"github.com/ossrun/ossrun/runtime/session"
)

const (
	lineWidth  = 80
	viewTokens = 1024   // of a window without num_lines, as in training
	maxShown   = 50_000 // bytes of any window
	maxMatches = 50     // matches of a find
	matchLines = 4      // lines shown of a match
)

// page is what a cursor refers to. It never changes, except that it may lose its text.
type page struct {
	url, title string
	lines      []string
	links      []link   // by id
	sources    []source // of a page of results: the origin of each line
	size       int      // bytes of lines
}

// link leads to a URL, or to a line of an opened page.
type link struct {
	url  string
	page *page
	line int
}

// source says that the lines from here on are from another page.
type source struct {
	line       int
	url, title string
}

func newPage(address, title, text string, links []link) *page {
	p := &page{url: address, title: title, links: links}
	p.lines = wrap("\nURL: " + address + "\n" + strings.TrimRight(text, "\n "))
	for _, l := range p.lines {
		p.size += len(l) + 16
	}
	return p
}

func resultsPage(query string, hits []Hit) *page {
	var links []link
	var text strings.Builder
	text.WriteString("# Search Results\n\n")
	for i, h := range hits {
		title, _ := truncate(oneLine(h.Title), 200)
		about, _ := truncate(oneLine(h.Text), 600)
		domain := ""
		if u, err := url.Parse(h.URL); err == nil {
			domain = "†" + oneLine(u.Host)
		}
		links = append(links, link{url: h.URL})
		fmt.Fprintf(&text, "  * 【%d†%s%s】 %s\n", i, title, domain, about)
	}
	p := newPage("", query, text.String(), links)
	for n, line := range p.lines {
		if strings.HasPrefix(line, "  * 【") && len(p.sources) < len(hits) {
			h := hits[len(p.sources)]
			p.sources = append(p.sources, source{n, h.URL, oneLine(h.Title)})
		}
	}
	return p
}

func (p *page) source(line int) (address, title string) {
	address, title = p.url, p.title
	for _, s := range p.sources {
		if s.line <= line {
			address, title = s.url, s.title
		}
	}
	return address, title
}

func (p *page) window(cursor, loc, count int) (string, error) {
	last := len(p.lines) - 1
	if loc > last {
		return "", fmt.Errorf("`loc` %d is after the page's last line, %d", loc, last)
	}
	var body strings.Builder
	tokens, end := 0, loc
	for ; end <= last; end++ {
		line := fmt.Sprintf("L%d: %s\n", end, p.lines[end])
		if end > loc && (count > 0 && end-loc >= count || body.Len()+len(line) > maxShown) {
			break
		}
		if count <= 0 {
			tokens += len(token.Get().Encode(nil, line))
			if tokens > viewTokens && end > loc {
				break
			}
		}
		body.WriteString(line)
	}
	name := p.title
	if p.url != "" {
		address, truncated := truncate(p.url, 200)
		if truncated {
			address += "..."
		}
		name += " (" + address + ")"
	}
	return fmt.Sprintf("[%d] %s\n**viewing lines [%d - %d] of %d**\n\n%s", cursor, name, loc, end-1,
		last, strings.TrimSuffix(body.String(), "\n")), nil
}

// find makes a page of the matches of a pattern. Case is ignored, and a match may span lines.
func (p *page) find(pattern string) *page {
	results := &page{url: p.url, title: fmt.Sprintf("Find results for text: `%s` in `%s`", pattern,
		p.title)}
	textLines := strings.Split(withoutLinks(strings.Join(p.lines, "\n")), "\n")
	var text strings.Builder
	var starts []int // of the lines in text
	for _, line := range textLines {
		starts = append(starts, text.Len())
		text.WriteString(strings.Map(unicode.ToLower, strings.TrimRight(line, " ")) + " ")
	}
	lowered := strings.Map(unicode.ToLower, strings.Join(strings.Fields(pattern), " "))
	line, shownUntil := 0, -1
	for from := 0; len(results.links) < maxMatches; {
		i := strings.Index(text.String()[from:], lowered)
		if i < 0 {
			break
		}
		from += i
		for line+1 < len(starts) && starts[line+1] <= from {
			line++
		}
		from += len(lowered)
		if line < shownUntil {
			continue // the previous match shows this one too
		}
		shownUntil = min(line+matchLines, len(textLines))
		if results.lines != nil {
			results.lines = append(results.lines, "")
		}
		address, title := p.source(line)
		results.sources = append(results.sources, source{len(results.lines), address, title})
		results.lines = append(results.lines, fmt.Sprintf("# 【%d†match at L%d】", len(results.links),
			line))
		results.lines = append(results.lines, textLines[line:shownUntil]...)
		results.links = append(results.links, link{page: p, line: line})
	}
	if results.lines == nil {
		results.lines = []string{fmt.Sprintf("No `find` results for pattern: `%s`", pattern)}
	}
	for _, l := range results.lines {
		results.size += len(l) + 16
	}
	return results
}

// shownLink is a link as it is written in pages.
var shownLink = regexp.MustCompile(`【\d+†([^】†]*)(?:†[^】]*)?】`)

// withoutLinks replaces links by their texts and keeps every line's end.
func withoutLinks(text string) string {
	return shownLink.ReplaceAllStringFunc(text, func(l string) string {
		inside := shownLink.FindStringSubmatch(l)[1]
		return inside + strings.Repeat("\n", strings.Count(l, "\n")-strings.Count(inside, "\n"))
	})
}

// wrap breaks text at blanks into lines of at most lineWidth characters.
func wrap(text string) (lines []string) {
	for line := range strings.SplitSeq(text, "\n") {
		for {
			end, space, n := 0, 0, 0
			for i, r := range line {
				if n > lineWidth {
					break
				}
				end = i
				if r == ' ' && strings.TrimLeft(line[:i], " ") != "" {
					space = i + 1
				}
				n++
			}
			if n <= lineWidth {
				break
			}
			if space > 0 {
				end = space
			}
			lines = append(lines, strings.TrimRight(line[:end], " "))
			line = line[end:]
		}
		lines = append(lines, line)
	}
	return lines
}

// clean removes from a page's text imitations of the browser's own marks, and invisible characters.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '【':
			return '〖'
		case r == '】':
			return '〗'
		case r == '\n' || r == '\t':
			return r
		case unicode.Is(unicode.Cf, r) && r != '\u200d', unicode.IsControl(r):
			return -1 // zero-width, direction marks and tags hide text; emoji need U+200D
		}
		return r
	}, strings.ToValidUTF8(text, "\ufffd"))
}

// oneLine is clean text on one line that may be used inside a link.
func oneLine(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(clean(text)), " "), "†", "‡")
}

func truncate(text string, n int) (_ string, more bool) {
	for i := range text {
		if n == 0 {
			return text[:i], true
		}
		n--
	}
	return text, false
}

var citationMark = regexp.MustCompile(`【(\d{1,6})(?:†L(\d{1,8}))?[^【】\n]*】`)

// Citations finds the marks that refer to an opened page. On a page of search results a mark means
// the result at its line.
func (t *Tool) Citations(answer string) []session.Citation {
	t.mu.Lock()
	defer t.mu.Unlock()
	return Cite(answer, func(cursor, line int) (s session.Source) {
		if cursor < len(t.views) {
			p := t.views[cursor]
			s.URL, s.Title = p.source(line)
			if line < len(p.lines) {
				s.Text = strings.TrimSpace(withoutLinks(p.lines[line]))
			}
		}
		return s
	})
}

// Cite finds the marks of an answer for which source returns a URL.
func Cite(answer string, source func(cursor, line int) session.Source) (list []session.Citation) {
	characters, counted := 0, 0
	for _, m := range citationMark.FindAllStringSubmatchIndex(answer, -1) {
		characters += utf8.RuneCountInString(answer[counted:m[0]])
		counted = m[0]
		cursor, _ := strconv.Atoi(answer[m[2]:m[3]])
		line := 0
		if m[4] >= 0 {
			line, _ = strconv.Atoi(answer[m[4]:m[5]])
		}
		s := source(cursor, line)
		if s.URL == "" {
			continue // an unknown cursor, or the head of a page of results
		}
		list = append(list, session.Citation{Start: characters,
			End: characters + utf8.RuneCountInString(answer[m[0]:m[1]]),
			URL: s.URL, Title: s.Title, Text: s.Text})
	}
	return list
}
