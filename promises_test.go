// Holds that each promise of SECURITY.md has a test: a comment "SECURITY.md: " with the promise's
// words stands at the test, so that who changes one finds the other.

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// noPromises begin the sentences of SECURITY.md that promise nothing: they name limits, terms and
// what is to be done.
var noPromises = []string{
	"someone with your account, or root: nothing", "The model's code is not trusted",
	"With `bwrap` a cell has", "The sandbox is not a virtual machine",
	"Without `ctypes` there is no Landlock", "This does not prove",
	"Whoever can write to the cache can replace", "There is no release and no key yet",
	"Neither protects from someone", "Its input was built by a job without secrets",
	"the model's own code: the Python sandbox", "who attacks: what holds", "part: held by",
	"who: may", "switch: opens", "On other systems all programs",
}

var (
	comment     = regexp.MustCompile(`^\s*(?://|#) (\S.*)`)
	word        = regexp.MustCompile(`[\pL\pN]+`)
	sentenceEnd = regexp.MustCompile("[.;] +(?:[A-Z`]|bwrap)")
)

// wordsOf makes texts equal that differ in markup, case and line breaks only.
func wordsOf(text string) string {
	return strings.ToLower(strings.Join(word.FindAllString(text, -1), " "))
}

// promises are the comments of a test's file that begin with SECURITY.md and end at the next one or
// with their paragraph.
func promises(text string) (all []string) {
	inside := false
	for line := range strings.Lines(text) {
		m := comment.FindStringSubmatch(line)
		if m == nil {
			inside = false
		} else if begun, begins := strings.CutPrefix(m[1], "SECURITY.md: "); begins {
			all, inside = append(all, begun), true
		} else if inside {
			all[len(all)-1] += " " + m[1]
		}
	}
	return all
}

// promisesOf lists the sentences and the rows of tables of SECURITY.md, from its threat model on.
func promisesOf(t *testing.T, text string) (all []string) {
	_, text, found := strings.Cut(text, "\n## Threat model\n")
	if !found {
		t.Fatal("SECURITY.md has no threat model")
	}
	for block := range strings.SplitSeq(text, "\n\n") {
		if block = strings.TrimSpace(block); strings.HasPrefix(block, "#") {
			continue
		}
		if strings.HasPrefix(block, "|") {
			for row := range strings.SplitSeq(block, "\n") {
				row = strings.Replace(strings.Trim(row, "| "), " | ", ": ", 1)
				if word.MatchString(row) {
					all = append(all, row)
				}
			}
			continue
		}
		for block = strings.Join(strings.Fields(block), " "); block != ""; {
			end := sentenceEnd.FindStringIndex(block)
			if end == nil {
				all = append(all, block)
				break
			}
			all = append(all, block[:end[0]+1])
			block = strings.TrimSpace(block[end[0]+1:])
		}
	}
	return all
}

func TestEveryPromiseHasATest(t *testing.T) {
	tested := map[string]string{}
	scripts, _ := filepath.Glob("runtime/openai/scripttest/testdata/page/*.py")
	steps, _ := filepath.Glob(".ci/steps/*")
	for _, name := range slices.Concat(files(t, ".go"), scripts, steps) {
		if strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, said := range promises(string(text)) {
			tested[wordsOf(said)] = name
		}
	}
	text, err := os.ReadFile("SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	skipped := slices.Clone(noPromises)
	for _, sentence := range promisesOf(t, string(text)) {
		i := slices.IndexFunc(skipped, func(s string) bool {
			return strings.HasPrefix(wordsOf(sentence), wordsOf(s))
		})
		if i >= 0 {
			skipped = slices.Delete(skipped, i, i+1)
		} else if tested[wordsOf(sentence)] == "" {
			t.Errorf("no test has the comment \"SECURITY.md: %s\"", sentence)
		}
		delete(tested, wordsOf(sentence))
	}
	for words, name := range tested {
		t.Errorf("%s: SECURITY.md does not promise %q", name, words)
	}
	for _, s := range skipped {
		t.Errorf("SECURITY.md does not say %q", s)
	}
}
