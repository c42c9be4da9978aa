//go:build unix

package chat

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A file is attached despite trailing punctuation and blanks in its name, and Tab completes exactly
// to it.
func TestNamesOfFiles(t *testing.T) {
	folder := t.TempDir()
	t.Chdir(folder)
	for _, name := range []string{"notes.txt", "my notes.txt", "my", "a [draft] (2).md", "über.txt",
		"end.", "q?.txt"} {
		if name == "my" {
			if err := os.Mkdir(name, 0o700); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.WriteFile(name, []byte("text of "+name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	whole := filepath.Join(folder, "my notes.txt")
	for text, want := range map[string]string{
		"@notes.txt":                         "notes.txt",
		"read @notes.txt.":                   "notes.txt",
		"is it in @notes.txt?":               "notes.txt",
		"see @notes.txt), then":              "notes.txt",
		"@notes.txt: what?":                  "notes.txt",
		"\"as in @notes.txt\", he said":      "notes.txt",
		"read @my notes.txt please":          "my notes.txt",
		"read @my notes.txt.":                "my notes.txt",
		"@my notes.txt and @notes.txt, both": "my notes.txt notes.txt",
		"@" + whole + "!":                    whole,
		"@a [draft] (2).md\n@über.txt…":      "a [draft] (2).md",
		"@end. and":                          "end.",
		"@q?.txt?":                           "q?.txt",
		"@notes.txt\tx":                      "notes.txt",
		"@nothing, he said":                  "! nothing",
		"me@notes.txt":                       "",
		"@ notes.txt":                        "",
		"@, @?":                              "! , ?",
	} {
		_, attached, missing, err := attachments(t.Context(), text)
		var got []string
		for _, a := range attached {
			name, _, _ := strings.Cut(a, ", ")
			got = append(got, name)
		}
		if all := strings.Join(got, " "); err != nil || strings.HasPrefix(want, "! ") &&
			strings.Join(missing, " ") != want[2:] || !strings.HasPrefix(want, "! ") && all != want {
			t.Errorf("%q: %q, missing %q, %v, not %q", text, got, missing, err, want)
		}
	}
	w := open(t, t.Context(), 80, 24, Options{Model: script(fine("Read."))})
	w.until("Ask something")
	for typed, want := range map[string]string{"see @my n": "see @my notes.txt",
		"see @a [": "see @a [draft] (2).md", "see @q?": "see @q?.txt", "x @not": "x @notes.txt"} {
		w.typing(typed + "\t")
		w.becomes(want)
		w.typing("\x15")
		w.until("Ask something")
	}
	w.typing("read @my n\t")
	w.becomes("read @my notes.txt")
	w.typing(".\r")
	w.until("attached my notes.txt")
	w.typing("/quit\r")
	if err := w.wait(); err != nil {
		t.Error(err)
	}
}
