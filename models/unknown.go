package models

// An unknown model name, and the known one that was probably meant.

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ossrun/ossrun/models/safetensors"
	"github.com/ossrun/ossrun/models/store"
)

// UnknownModelError says that a name is neither a model nor a folder.
type UnknownModelError struct {
	Name    string
	Nearest string // the most similar known name, "" if there is none
	Meaning string // what the name refers to instead, "" if unknown
}

func (e *UnknownModelError) Error() string {
	printable := safetensors.Printable(e.Name)
	if e.Meaning != "" {
		return printable + " is " + e.Meaning
	}
	if e.Nearest != "" {
		return fmt.Sprintf("unknown model %s: did you mean %s?", printable, e.Nearest)
	}
	if _, ok := store.ParseRepo(e.Name); ok {
		return fmt.Sprintf("unknown model %s; for a Hugging Face repository write hf:%s", printable,
			e.Name)
	}
	return fmt.Sprintf("unknown model %s; try %s, hf:owner/name or a folder", printable,
		strings.Join(generalIDs(), ", "))
}

func Unknown(name string) *UnknownModelError {
	var names []string
	for _, e := range catalogue() {
		names = append(append(names, e.ID), e.Aliases...)
	}
	return &UnknownModelError{Name: name, Nearest: Nearest(strings.ToLower(name), names)}
}

// IsForeignName reports whether a name is that of another program's model.
func IsForeignName(name string) bool {
	return slices.ContainsFunc([]string{"ollama:", "lmstudio:", "llama.cpp:", "gguf:"},
		func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

func generalIDs() []string {
	var ids []string
	for _, e := range catalogue() {
		if e.Special == "" {
			ids = append(ids, e.ID)
		}
	}
	return ids
}

// Nearest returns the known name with the fewest edits to name, "" if more than a third of it would
// change: "70b" is not a slip for "20b".
func Nearest(name string, names []string) string {
	best, fewest := "", len(name)/3+1
	for _, k := range names {
		if d := edits(name, k); d < fewest {
			best, fewest = k, d
		}
	}
	return best
}

// edits counts the insertions, deletions, replacements and swaps of neighbours that turn a into b
// (optimal string alignment), in len(a) * len(b) steps.
func edits(a, b string) int {
	if len(a) > 200 {
		return len(a) // not a typing error
	}
	prev2, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j]+cost, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], prev2[j-1]+1)
			}
		}
		prev2, last, row = last, row, prev2
	}
	return last[len(b)]
}
