//go:build unix

package mapping

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestOnlyRegularFilesAreRead(t *testing.T) {
	folder := t.TempDir()
	pipe, endless, file := filepath.Join(folder, "pipe"), filepath.Join(folder, "endless"),
		filepath.Join(folder, "file")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/zero", endless); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("0123456789"), 0o600); err != nil {
		t.Fatal(err)
	}
	read := make(chan error, 3)
	for _, path := range []string{pipe, endless, folder} {
		go func() {
			_, err := ReadFile(path, 1<<20)
			read <- err
		}()
	}
	for range 3 {
		select {
		case err := <-read:
			if !errors.Is(err, ErrNotRegular) {
				t.Error(err)
			}
		case <-time.After(2 * time.Minute):
			t.Fatal("a path that is no file is waited for")
		}
	}
	if text, err := ReadFile(file, 10); err != nil || string(text) != "0123456789" {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := ReadFile(file, 9); err == nil || !strings.Contains(err.Error(), "more than 9") {
		t.Error(err)
	}
}
