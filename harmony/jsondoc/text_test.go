package jsondoc

import "testing"

func TestByteOrderMarks(t *testing.T) {
	for written, want := range map[string]string{
		"": "", "{}": "{}", "\xef\xbb\xbf{}": "{}", "\xef\xbb\xbf": "", "\xef\xbb": "\xef\xbb",
		"\xff\xfe{\x00}\x00": "{}", "\xfe\xff\x00{\x00}": "{}", "\xff\xfe=\xd8\x00\xde": "😀",
		"\xff\xfe{\x00}": "{", "a\xef\xbb\xbf": "a\xef\xbb\xbf",
	} {
		if got := StripBOM([]byte(written)); string(got) != want {
			t.Errorf("%q is read as %q", written, got)
		}
	}
}
