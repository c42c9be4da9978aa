// The sources that an answer names, as numbered footnotes: the mark in the text becomes [1], and
// under the answer stands the title as a link that terminals open (OSC 8).

package chat

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/ui/chat/markdown"
	"github.com/ossrun/ossrun/ui/chat/term"
)

// A source is one footnote.
type source struct{ url, title, mark string }

// cite puts numbers where the answer has marks, and the sources under it. The offsets of citations
// are those of the whole answer; its parts are searched for the marks' text.
func (a *answer) cite(whole string, citations []session.Citation, marks bool) {
	text := []rune(whole)
	numbers := map[string]int{} // by address
	for _, c := range citations {
		if c.Start < 0 || c.End > len(text) || c.Start >= c.End {
			continue
		}
		mark := term.Clean(string(text[c.Start:c.End]))
		n, known := numbers[c.URL]
		if !known {
			a.sources = append(a.sources, source{c.URL, c.Title, mark})
			n = len(a.sources)
			numbers[c.URL] = n
		}
		if marks { // they have been printed
			continue
		}
		a.replace(mark, fmt.Sprintf("[%d]", n))
	}
}

// replace puts one text in the place of the first other one in the answer.
func (a *answer) replace(mark, by string) {
	for _, p := range a.parts {
		s, ok := p.(*speech)
		if !ok || s.aside || !strings.Contains(s.text.Text(), mark) {
			continue
		}
		text := strings.Replace(s.text.Text(), mark, by, 1)
		s.text = markdown.New(a.palette, s.before)
		s.text.Push(text)
		s.text.End()
		return
	}
}

// footnotes are the rows of the sources.
func (a *answer) footnotes(l layout) []string {
	var rows []string
	for i, s := range a.sources {
		title := term.Clean(s.title)
		if title == "" {
			title = term.Clean(s.url)
		}
		number := fmt.Sprintf("[%d] ", i+1)
		if l.plain {
			rows = append(rows, s.mark+" "+title+" "+term.Clean(s.url))
			continue
		}
		row := term.Row{{Text: term.Cut(strings.ReplaceAll(title, "\n", " "),
			max(l.width-len(number), 0)), Style: term.Underline}}
		rows = append(rows, l.dim(number, len(number))+link(s.url, l.palette.Paint(row)))
	}
	return rows
}

// link makes painted text a link, if the address is one of the web.
func link(address, painted string) string {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return painted
	}
	return "\x1b]8;;" + u.String() + "\x1b\\" + painted + "\x1b]8;;\x1b\\"
}

// An offer is a tool as /tools lists it.
type offer struct{ name, does string }

// offered are the names under which tools are offered to the model.
func offered(tools []session.Tool) (all []offer) {
	var r session.Request
	for _, t := range tools {
		t.Offer(&r)
	}
	if r.Browser {
		all = append(all, offer{"browser", "searches the web, opens pages, finds text in them"})
	}
	if r.Python {
		all = append(all, offer{"python", "runs code in a sandbox and keeps its state"})
	}
	for _, f := range r.Functions {
		does, _, _ := strings.Cut(f.Description, "\n")
		all = append(all, offer{f.Name, does})
	}
	return all
}
