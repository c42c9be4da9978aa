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
func (t *Tool) Citations(answer string) (list []session.Citation) {
	t.mu.Lock()
	defer t.mu.Unlock()
	characters, counted := 0, 0
	for _, m := range mark.FindAllStringSubmatchIndex(answer, -1) {
		characters += utf8.RuneCountInString(answer[counted:m[0]])
		counted = m[0]
		cursor, _ := strconv.Atoi(answer[m[2]:m[3]])
		if cursor >= len(t.views) {
			continue
		}
		line := 0
		if m[4] >= 0 {
			line, _ = strconv.Atoi(answer[m[4]:m[5]])
		}
		address, title := t.views[cursor].source(line)
		if address == "" {
			continue // the head of a page of results
		}
		list = append(list, session.Citation{Start: characters,
			End: characters + utf8.RuneCountInString(answer[m[0]:m[1]]),
			URL: address, Title: title})
	}
	return list
}
