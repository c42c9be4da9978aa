package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/assets/release/checksums"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// handover is the output of the build job for version 1.2.3, in a new folder.
func handover(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	write(t, folder+"/files/ossrun_1.2.3_linux_amd64.tar.gz", "archive")
	write(t, folder+"/files/"+checksums.File, fmt.Sprintf("%x  ossrun_1.2.3_linux_amd64.tar.gz\n%064d  %s\n",
		sha256.Sum256([]byte("archive")), 1, checksums.Name("1.2.3", "linux", "amd64")))
	write(t, folder+"/notes.md", "notes")
	write(t, folder+"/ossrun.rb", "cask")
	write(t, folder+"/ossrun.json", "manifest")
	return folder
}

const keys = "../checksums/testdata/"

func TestSign(t *testing.T) {
	folder := handover(t) + "/files"
	secret, key := read(t, keys+"key.sec"), read(t, keys+"key.pub")
	for name, c := range map[string]struct{ folder, secret, want string }{
		"no secret": {folder, "", "OSSRUN_RELEASE_KEY is not set; docs/release.md says how the key is made"},
		"no list":   {t.TempDir(), secret, "no such file"},
		"no key":    {folder, key, "the secret key is not one of minisign's"},
	} {
		if err := sign("1.2.3", c.folder, c.secret, key); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := os.Stat(folder + "/" + checksums.Signature); err == nil {
		t.Error("a signature was written all the same")
	}
	if err := sign("1.2.3", folder, secret, key); err != nil {
		t.Fatal(err)
	}
	if _, err := checksums.Verify([]byte(read(t, folder+"/"+checksums.File)),
		[]byte(read(t, folder+"/"+checksums.Signature)), key, "1.2.3"); err != nil {
		t.Error(err)
	}
}
