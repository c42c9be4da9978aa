// HTML to text: headings, lists, tables and links become a few characters, the rest is plain text.
//
// Tags are read in order without building a tree, so deep nesting costs nothing, and the text of
// unclosed elements is still shown.

package browser

import (
	"fmt"
	"net/url"
	"strings"
	"unicode"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

const (
	maxText     = 2 << 20 // bytes of a page's text
	maxLinks    = 10_000
	maxLinkText = 300 // bytes of a link's text; a longer link is treated as unclosed
)

func htmlText(source string, base *url.URL) (title, text string, links []link) {
	w := &textWriter{base: base, ids: map[string]int{}}
	z := html.NewTokenizer(strings.NewReader(source))
	for w.out.Len() < maxText {
		kind := z.Next()
		if kind == html.ErrorToken {
			break // the end of the text; there are no other errors in memory
		}
		t := z.Token()
		switch kind {
		case html.TextToken:
			w.text(t.Data)
		case html.StartTagToken:
			w.start(t)
		case html.EndTagToken:
			w.end(t.DataAtom)
		case html.SelfClosingTagToken:
			w.start(t)
			if t.DataAtom == atom.Svg || t.DataAtom == atom.A { // the others have no end anyway
				w.end(t.DataAtom)
			}
		}
	}
	w.endLink()
	if w.out.Len() >= maxText {
		w.out.WriteString("\n[the rest of the page is omitted]")
	}
	return oneLine(w.title.String()), w.out.String(), w.links
}

type textWriter struct {
	base  *url.URL
	ids   map[string]int // of links, by URL
	links []link
	out   strings.Builder
	title strings.Builder

	skipped atom.Atom // inside this element nothing is shown
	depth   int       // how many hidden elements are open
	inTitle bool
	pre     bool
	blank   bool // a blank is due before the next word
	breaks  int  // line ends due before the next word
	images  int
	lists   []int // open lists: the next number, or -1 for dots
	cells   int   // of the row so far

	open     string // the URL of the open link
	linkText strings.Builder
}

func (w *textWriter) text(s string) {
	switch {
	case w.inTitle:
		if w.title.Len() < maxLinkText {
			w.title.WriteString(s)
		}
	case w.skipped != 0:
	case w.open != "":
		w.linkText.WriteString(s)
		if w.linkText.Len() > maxLinkText {
			w.endLink()
		}
	default:
		w.words(clean(s))
	}
}

// words writes text with each run of white space as one blank, except inside <pre>.
func (w *textWriter) words(s string) {
	if w.pre {
		w.writeBreaks()
		w.out.WriteString(strings.ReplaceAll(s, "\t", "    "))
		return
	}
	for s != "" {
		i := strings.IndexFunc(s, unicode.IsSpace)
		switch {
		case i == 0:
			w.blank = true
			s = strings.TrimLeftFunc(s, unicode.IsSpace)
			continue
		case i < 0:
			i = len(s)
		}
		w.writeBreaks()
		w.out.WriteString(s[:i])
		s = s[i:]
	}
}

// writeBreaks writes the pending blank or line ends before the next word.
func (w *textWriter) writeBreaks() {
	switch {
	case w.breaks > 0 && w.out.Len() > 0:
		w.out.WriteString("\n\n"[:min(w.breaks, 2)])
	case w.breaks > 0:
	case w.blank && w.out.Len() > 0:
		w.out.WriteByte(' ')
	}
	w.breaks, w.blank = 0, false
}

func (w *textWriter) lineEnd(n int) {
	if n == 0 {
		return
	}
	if w.open != "" { // a link around blocks
		w.linkText.WriteByte(' ')
		return
	}
	w.breaks = max(w.breaks, n)
}

// literal writes our own marks, after any pending blank.
func (w *textWriter) literal(s string) {
	w.writeBreaks()
	w.out.WriteString(s)
}

// skippedElements are elements whose content is not text of the page.
var skippedElements = map[atom.Atom]bool{atom.Script: true, atom.Style: true, atom.Noscript: true,
	atom.Template: true, atom.Svg: true, atom.Iframe: true, atom.Object: true, atom.Canvas: true,
	atom.Noembed: true, atom.Noframes: true, atom.Textarea: true, atom.Audio: true,
	atom.Video: true, atom.Datalist: true}

// blocks are elements on lines of their own, with the line ends around them.
var blocks = map[atom.Atom]int{atom.P: 2, atom.Div: 1, atom.Section: 2, atom.Article: 2,
	atom.Header: 2, atom.Footer: 2, atom.Nav: 2, atom.Main: 2, atom.Aside: 2, atom.Ul: 1,
	atom.Ol: 1, atom.Li: 1, atom.Dl: 2, atom.Dt: 1, atom.Dd: 1, atom.Table: 2, atom.Tr: 1,
	atom.Caption: 1, atom.Blockquote: 2, atom.Pre: 2, atom.H1: 2, atom.H2: 2, atom.H3: 2,
	atom.H4: 2, atom.H5: 2, atom.H6: 2, atom.Form: 2, atom.Fieldset: 2, atom.Figure: 2,
	atom.Figcaption: 1, atom.Details: 2, atom.Summary: 1, atom.Address: 2, atom.Hr: 2,
	atom.Option: 1, atom.Body: 1, atom.Label: 1}

var headings = map[atom.Atom]string{atom.H1: "# ", atom.H2: "## ", atom.H3: "### ",
	atom.H4: "#### ", atom.H5: "##### ", atom.H6: "###### "}

func (w *textWriter) start(t html.Token) {
	name := t.DataAtom
	switch {
	case w.skipped != 0:
		if name == w.skipped {
			w.depth++
		}
		return
	case skippedElements[name]:
		w.skipped, w.depth = name, 1
		return
	case name == atom.Title:
		w.inTitle = true
		return
	}
	w.lineEnd(blocks[name])
	switch name {
	case atom.Br:
		w.lineEnd(w.breaks + 1)
	case atom.Base:
		if u, err := w.base.Parse(attribute(t, "href")); err == nil && u.Host != "" {
			w.base = u
		}
	case atom.A:
		w.endLink()
		w.startLink(attribute(t, "href"))
	case atom.Img:
		if alt := oneLine(attribute(t, "alt")); alt != "" {
			w.text(fmt.Sprintf("[Image %d: %s]", w.images, alt))
			w.images++
		}
	case atom.Pre:
		w.pre = w.open == ""
	case atom.Ul:
		w.lists = append(w.lists[:min(len(w.lists), 8)], -1)
	case atom.Ol:
		w.lists = append(w.lists[:min(len(w.lists), 8)], 1)
	case atom.Li:
		w.item()
	case atom.Tr:
		w.cells = 0
	case atom.Td, atom.Th:
		if w.open == "" && w.cells > 0 {
			w.blank = true
			w.literal("|")
			w.blank = true
		}
		w.cells++
	}
	if h := headings[name]; h != "" && w.open == "" {
		w.literal(h)
	}
}

func (w *textWriter) item() {
	if w.open != "" {
		return
	}
	indent := strings.Repeat("  ", max(len(w.lists), 1))
	if n := len(w.lists) - 1; n >= 0 && w.lists[n] >= 0 {
		w.literal(fmt.Sprintf("%s%d. ", indent, w.lists[n]))
		w.lists[n]++
		return
	}
	w.literal(indent + "* ")
}

func (w *textWriter) end(name atom.Atom) {
	switch {
	case w.skipped != 0:
		if name == w.skipped {
			if w.depth--; w.depth == 0 {
				w.skipped = 0
			}
		}
		return
	case name == atom.Title:
		w.inTitle = false
		return
	case name == atom.A:
		w.endLink()
		return
	}
	switch name {
	case atom.Pre:
		w.pre = false
	case atom.Ul, atom.Ol:
		w.lists = w.lists[:max(len(w.lists)-1, 0)]
	}
	w.lineEnd(blocks[name])
}

// startLink opens a link unless it only leads to a place in this page.
func (w *textWriter) startLink(href string) {
	if href = strings.TrimSpace(href); href == "" || href[0] == '#' || len(w.links) == maxLinks ||
		len(href) > 4096 {
		return
	}
	u, err := w.base.Parse(href)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return
	}
	u.Fragment, u.User = "", nil
	w.open = u.String()
}

func (w *textWriter) endLink() {
	address, raw := w.open, w.linkText.String()
	if address == "" {
		return
	}
	w.open = ""
	w.linkText.Reset()
	if len(raw) > 0 && unicode.IsSpace(rune(raw[0])) {
		w.blank = true
	}
	text := oneLine(raw)
	if text == "" {
		return
	}
	id, ok := w.ids[address]
	if !ok {
		id = len(w.links)
		w.ids[address] = id
		w.links = append(w.links, link{url: address})
	}
	domain := ""
	if u, err := url.Parse(address); err == nil && u.Host != w.base.Host {
		domain = "†" + oneLine(u.Host)
	}
	w.literal(fmt.Sprintf("【%d†%s%s】", id, text, domain))
	w.blank = unicode.IsSpace(rune(raw[len(raw)-1]))
}

func attribute(t html.Token, name string) string {
	for _, a := range t.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}
