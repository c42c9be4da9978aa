// Citations: the marks 【cursor†L8-L10】 of an answer, with the pages that they name.

package browser

import (
	"regexp"
	"strconv"
	"unicode/utf8"

	"github.com/ossrun/ossrun/runtime/session"
)

var mark = regexp.MustCompile(`【(\d{1,6})(?:†L(\d{1,8}))?[^【】\n]*】`)

// Citations finds the marks whose page is known. A page of search results stands for the result
// that the line is about.
func (t *Tool) Citations(answer string) []session.Citation {
	t.mu.Lock()
	defer t.mu.Unlock()
	return Cite(answer, func(cursor, line int) (address, title string) {
		if cursor < len(t.views) {
			return t.views[cursor].source(line)
		}
		return "", ""
	})
}

// Cite finds the marks of an answer for which source knows a URL.
func Cite(answer string, source func(cursor, line int) (address, title string)) (
	list []session.Citation) {
	characters, counted := 0, 0
	for _, m := range mark.FindAllStringSubmatchIndex(answer, -1) {
		characters += utf8.RuneCountInString(answer[counted:m[0]])
		counted = m[0]
		cursor, _ := strconv.Atoi(answer[m[2]:m[3]])
		line := 0
		if m[4] >= 0 {
			line, _ = strconv.Atoi(answer[m[4]:m[5]])
		}
		address, title := source(cursor, line)
		if address == "" {
			continue // nobody's, or the head of a page of results
		}
		list = append(list, session.Citation{Start: characters,
			End: characters + utf8.RuneCountInString(answer[m[0]:m[1]]),
			URL: address, Title: title})
	}
	return list
}
