// Checks the documentation pages: the number of words written by hand, that links and their anchors
// resolve, and that pages for users contain nothing about development.

package main

import (
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// maxWords limits the hand-written words of README, SECURITY, CHANGELOG and docs.
const maxWords = 25_000

// generatedBlocks matches the generated parts of pages that are otherwise written by hand.
var generatedBlocks = regexp.MustCompile(
	`(?s)<!-- registers -->.*<!-- end of registers -->|<!-- steps -->.*<!-- end of steps -->`)

// pages returns the text of each page, and which pages are generated: their first lines say so.
func pages(t *testing.T) (all map[string]string, generated map[string]bool) {
	t.Helper()
	all, generated = map[string]string{}, map[string]bool{}
	for _, name := range files(t, ".md") {
		if name == "gpu/kernels/kernels.md" || strings.HasPrefix(name, ".github/") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = string(text)
		generated[name] = strings.Contains(string(text[:min(len(text), 200)]), "\nMade by `go test ")
	}
	return all, generated
}

// users reports whether the readers of a page are users of the program.
func users(name string) bool {
	return strings.HasPrefix(name, "docs/guide/") || name == "README.md" ||
		slices.Contains([]string{"docs/configuration.md", "docs/port.md", "docs/json-schema.md",
			"CHANGELOG.md"}, name)
}

func TestPagesHaveFewWords(t *testing.T) {
	all, generated := pages(t)
	words, word := 0, regexp.MustCompile(`[\pL\pN]`)
	for name, text := range all {
		if generated[name] || strings.Contains(name, "/") && !strings.HasPrefix(name, "docs/") {
			continue
		}
		for w := range strings.FieldsSeq(generatedBlocks.ReplaceAllString(text, "")) {
			if word.MatchString(w) {
				words++
			}
		}
	}
	if words > maxWords || words < maxWords/2 {
		t.Errorf("%d words are written by hand, and %d may be", words, maxWords)
	}
}

// slug returns the anchor that GitHub generates for a heading.
func slug(heading string) string {
	heading = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`).ReplaceAllString(heading, "$1")
	heading = regexp.MustCompile(`[^\pL\pN _-]`).ReplaceAllString(strings.ToLower(heading), "")
	return strings.ReplaceAll(strings.TrimSpace(heading), " ", "-")
}

func TestLinksLeadSomewhere(t *testing.T) {
	all, _ := pages(t)
	anchors := map[string]map[string]bool{}
	for name, text := range all {
		anchors[name] = map[string]bool{}
		for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(text, -1) {
			anchors[name][slug(m[1])] = true
		}
	}
	links, reached := 0, map[string]bool{"README.md": true}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		text := strings.Join(strings.Fields(all[name]), " ") // a link may be broken over two lines
		for _, m := range regexp.MustCompile(`\]\(([^)\s]+)\)`).FindAllStringSubmatch(text, -1) {
			links++
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			file := name
			if target != "" {
				file = path.Join(path.Dir(name), target)
			}
			reached[file] = true
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s links to %s, which is not there", name, m[1])
			} else if anchor != "" && !anchors[file][anchor] {
				t.Errorf("%s links to %s, which has no such heading", name, m[1])
			}
		}
	}
	if links < 130 {
		t.Errorf("only %d links were found", links)
	}
	for name := range all {
		if strings.HasPrefix(name, "docs/") && !reached[name] {
			t.Errorf("no page links to %s", name)
		}
	}
}

// TestUsersPagesAreForUsers rejects names of tests, commits, dates of measurements and reports of
// experiments. Only README and docs/status.md list what has not been run.
func TestUsersPagesAreForUsers(t *testing.T) {
	all, _ := pages(t)
	workshop := regexp.MustCompile(`\bTest[A-Z]\w+|_test\.go|\.txtar|\b20\d\d-\d\d-\d\d\b|` +
		"\\b(?:at|commit) `?[0-9a-f]{7}\\b|(?i:not (?:been )?tried|was tried|never (?:been )?run)")
	notRun, told := regexp.MustCompile(`(?i)no (?:card|such GPU) has run`), []string{}
	for name, text := range all {
		text = strings.Join(strings.Fields(text), " ")
		if notRun.MatchString(text) {
			told = append(told, name)
		}
		if !users(name) {
			continue
		}
		for _, m := range workshop.FindAllString(text, -1) {
			if m != "2026-01-31" { // an example of a day
				t.Errorf("%s is a page for users and has %q", name, m)
			}
		}
	}
	if slices.Sort(told); !slices.Equal(told, []string{"README.md", "docs/status.md"}) {
		t.Errorf("that no card has run something is told on %v", told)
	}
}
