package jsondoc

import (
	"os"
	"path/filepath"
	"testing"
)

func TestByteOrderMarks(t *testing.T) {
	for written, want := range map[string]string{
		"": "", "{}": "{}", "\xef\xbb\xbf{}": "{}", "\xef\xbb\xbf": "", "\xef\xbb": "\xef\xbb",
		"\xff\xfe{\x00}\x00": "{}", "\xfe\xff\x00{\x00}": "{}", "\xff\xfe=\xd8\x00\xde": "😀",
		"\xff\xfe{\x00}": "{", "a\xef\xbb\xbf": "a\xef\xbb\xbf",
	} {
		path := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(path, []byte(written), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%q is read as %q, %v", written, got, err)
		}
	}
	if _, err := ReadFile(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a file that is not there is read")
	}
}
