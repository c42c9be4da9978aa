// Files named in a message: @ opens a list of git's files, which the following letters search.
// @path, @"a path with blanks" and @path#20-45 (some of its lines) attach a file's text.
//
// What must stay true: files are listed and read outside Update; a file that git ignores is not in
// the list, but can be named; a PDF is read as the page reads it.

package chat

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/ossrun/ossrun/ui/chat/term"
)

const maxListedFiles = 20_000

type fileList struct {
	names     []string
	requested bool   // the names are loaded, or being loaded
	closed    string // Esc closed the list of the @ that ends this text

	rankedFor string // the editor's text for which ranked are the rows
	ranked    []choice
}

// mention is the index of the @ of the path before the caret, or -1, and the path without quotes.
func (i *input) mention() (start int, query string) {
	text := i.editor.text
	start = pathStart(text)
	if start < 0 || i.editor.cursor != len(text) || text[:start+1] == i.files.closed {
		return -1, ""
	}
	query, quoted := strings.CutPrefix(text[start+1:], `"`)
	if strings.ContainsAny(query, `"#`) || !quoted && strings.Contains(query, " ") ||
		strings.TrimLeft(query, "/~.") != query { // Tab completes these
		return -1, ""
	}
	return start, query
}

// loadFiles lists the files once an @ is typed, and forgets them when it is gone.
func (m *Model) loadFiles() tea.Cmd {
	f := &m.input.files
	if pathStart(m.input.editor.text) < 0 {
		*f = fileList{}
		return nil
	}
	if start, _ := m.input.mention(); start < 0 || f.requested || m.plain {
		return nil
	}
	f.requested = true
	return m.background.run(func() tea.Msg { return filesListed(listFiles(m.ctx)) })
}

type filesListed []string

func (l filesListed) apply(m *Model) tea.Cmd {
	m.input.files.names, m.input.files.rankedFor = l, ""
	return nil
}

// listFiles lists the files of the working folder as git does; without a repository none.
func listFiles(ctx context.Context) (names []string) {
	// A repository may name a program as its monitor.
	out, err := exec.CommandContext(ctx, "git", "-c", "core.fsmonitor=false", "ls-files", "-z",
		"--cached", "--others", "--exclude-standard", "--deduplicate").Output()
	if err != nil {
		return nil // Tab completes paths
	}
	names = strings.Split(string(out), "\x00")
	names = slices.DeleteFunc(names, func(n string) bool { return n == "" || term.Clean(n) != n })
	return names[:min(len(names), maxListedFiles)]
}

// fileChoices are the rows of the list, the best match first.
func (i *input) fileChoices() (rows []choice) {
	start, query := i.mention()
	f := &i.files
	switch {
	case start < 0:
		return nil
	case f.rankedFor == i.editor.text:
		return f.ranked
	}
	scores, matches := map[string]int{}, []string{}
	for _, name := range f.names {
		if score, ok := fuzzy(name, query); ok {
			scores[name], matches = score, append(matches, name)
		}
	}
	slices.SortStableFunc(matches, func(a, b string) int { return scores[a] - scores[b] })
	for _, typed := range matches[:min(len(matches), maxCompletions)] {
		name := typed
		if strings.ContainsAny(typed, " \t#") {
			typed = `"` + typed + `"`
		}
		rows = append(rows, choice{text: i.editor.text[:start] + "@" + typed + " ", name: name})
	}
	f.rankedFor, f.ranked = i.editor.text, rows
	return rows
}

// fuzzy reports whether a path has the letters of a query in order. A lower score is better: few
// letters between them, and after them.
func fuzzy(path, query string) (score int, ok bool) {
	rest, query := strings.ToLower(path), strings.ToLower(query)
	if i := strings.LastIndex(rest, query); i >= 0 {
		return len(rest) - i - 1000, true
	}
	for _, r := range query {
		i := strings.IndexRune(rest, r)
		if i < 0 {
			return 0, false
		}
		score, rest = score+i, rest[i+len(string(r)):]
	}
	return score + len(rest), true
}

// lineRange matches the lines of an attachment: #20, or #20-45.
var lineRange = regexp.MustCompile(`^#(\d{1,7})(?:-(\d{1,7}))?`)

// A mentioned file may be limited to the lines from first to last; last is 0 for all.
type mentioned struct {
	path, lines string
	first, last int
}

// mentionIn is the file named at the beginning of text, after an @.
func mentionIn(text string) (f mentioned) {
	if quoted, ok := strings.CutPrefix(text, `"`); ok && strings.Contains(quoted, `"`) {
		f.path, f.lines, _ = strings.Cut(quoted, `"`)
	} else if f.path = pathIn(text); !isFile(f.path) {
		if i := strings.IndexByte(f.path, '#'); i >= 0 && lineRange.MatchString(f.path[i:]) {
			f.path, f.lines = f.path[:i], f.path[i:]
		}
	}
	m := lineRange.FindStringSubmatch(f.lines)
	if m == nil {
		return mentioned{path: f.path}
	}
	f.lines = m[0]
	f.first, _ = strconv.Atoi(m[1])
	f.last, _ = strconv.Atoi(cmp.Or(m[2], m[1]))
	return f
}

// cut returns the lines of the file that the message wants.
func (f mentioned) cut(content []byte) ([]byte, error) {
	if f.last == 0 {
		return content, nil
	}
	lines := bytes.SplitAfter(bytes.TrimSuffix(content, []byte("\n")), []byte("\n"))
	if f.first < 1 || f.first > f.last || f.first > len(lines) {
		return nil, fmt.Errorf("@%s has %s, not %d to %d", f.path,
			term.Count(len(lines), "line"), f.first, f.last)
	}
	return bytes.Join(lines[f.first-1:min(f.last, len(lines))], nil), nil
}
