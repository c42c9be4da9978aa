package q8

// Records of which copy was made from which files, so that a start finds a copy without reading
// weights. One record for each source is stored next to the copies. It has the copy's name and the
// metadata of the weight files at that time.
//
// What must stay true: a valid record names a copy of exactly these bytes. A file changed shortly
// before it was opened could change again without a new change time, so it gets no record yet.
// Replacing a file invalidates its record.

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/models/mapping"
	"github.com/ossrun/ossrun/models/store"
)

// sourceSuffix ends the name of a record.
const sourceSuffix = ".source"

// Ready returns the path of a model's copy, or "" if it is missing or the model's files have
// changed since it was recorded. It reads no weights.
func Ready(model checkpoint.Model, folder string) string {
	if name := recorded(folder, model.FileStates()); name != "" {
		return filepath.Join(folder, name+Suffix)
	}
	return ""
}

// recorded returns the name of the existing copy recorded for files in these states, or "".
func recorded(folder string, states checkpoint.FileStates) string {
	if len(states.Files) == 0 {
		return ""
	}
	name, rest := readRecord(recordPath(folder, states.Files))
	if rest != describe(states.Files) {
		return ""
	}
	if versionOf(filepath.Join(folder, name+Suffix)) != formatVersion {
		return "" // gone, or cut short
	}
	return name
}

// record stores that a copy was made from files in these states. Their previous copy is removed
// unless another record names it. If the record cannot be written, the next start reads the
// weights.
func record(folder string, states checkpoint.FileStates, name string) {
	if len(states.Files) == 0 || states.Unsettled() != "" {
		return
	}
	path := recordPath(folder, states.Files)
	prev, rest := readRecord(path)
	if prev == name && rest == describe(states.Files) {
		return
	}
	text := formatVersionLine() + name + "\n" + describe(states.Files)
	if store.WriteFile(path, []byte(text), 0o644) != nil || prev == "" || prev == name {
		return
	}
	dropUnused(folder, prev)
}

func records(folder string) []string {
	list, _ := filepath.Glob(filepath.Join(folder, "*"+sourceSuffix)) // the pattern is well formed
	return list
}

func dropUnused(folder, name string) {
	for _, path := range records(folder) {
		if used, _ := readRecord(path); used == name {
			return
		}
	}
	os.Remove(filepath.Join(folder, name+Suffix))
}

// Forget removes the copies of deleted weights: those with a missing file in each of their sources.
func Forget(folder string) {
	for _, path := range records(folder) {
		name, rest := readRecord(path)
		for line := range strings.Lines(rest) {
			var file string
			if _, err := fmt.Sscanf(line, "%q size", &file); err != nil {
				break
			}
			if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
				os.Remove(path)
				dropUnused(folder, name)
				break
			}
		}
	}
}

// versionOfRecord is the format of a record; 0 for other files.
func versionOfRecord(path string) (version int) {
	text, err := mapping.ReadFile(path, 1<<20)
	if err == nil {
		_, _ = fmt.Sscanf(string(text), formatName+"%d\n", &version) // else 0
	}
	return version
}

func formatVersionLine() string { return fmt.Sprintf("%s%d\n", formatName, formatVersion) }

// recordPath is the path of the record for a list of files: next to a newer ossrun's, if any.
func recordPath(folder string, states []checkpoint.FileState) string {
	hash := sha256.New()
	for _, s := range states {
		fmt.Fprintf(hash, "%q\n", s.Path)
	}
	name := filepath.Join(folder, hex.EncodeToString(hash.Sum(nil)[:16]))
	if versionOfRecord(name+sourceSuffix) > formatVersion {
		name += fmt.Sprintf("-%d", formatVersion)
	}
	return name + sourceSuffix
}

func describe(states []checkpoint.FileState) string {
	var text strings.Builder
	for _, s := range states {
		fmt.Fprintln(&text, s)
	}
	return text.String()
}

// readRecord returns a record's copy and its lines about files; empty if it is not a record of this
// format.
func readRecord(path string) (name, rest string) {
	text, err := mapping.ReadFile(path, 1<<20)
	if err != nil {
		return "", ""
	}
	body, ok := strings.CutPrefix(string(text), formatVersionLine())
	if !ok {
		return "", ""
	}
	name, rest, _ = strings.Cut(body, "\n")
	if raw, err := hex.DecodeString(name); err != nil || len(raw) != 16 {
		return "", ""
	}
	return name, rest
}
