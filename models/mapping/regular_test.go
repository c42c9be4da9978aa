//go:build unix

package mapping

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

func TestOnlyRegularFilesAreRead(t *testing.T) {
	folder := t.TempDir()
	pipe, endless, file := filepath.Join(folder, "pipe"), filepath.Join(folder, "endless"),
		filepath.Join(folder, "file")
	hosttest.Check(t, unix.Mkfifo(pipe, 0o600))
	hosttest.Check(t, os.Symlink("/dev/zero", endless))
	hosttest.Check(t, os.WriteFile(file, []byte("0123456789"), 0o600))
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

// A shell makes a pipe of <(command).
func TestAPipeIsReadToItsEnd(t *testing.T) {
	defer func(before time.Duration) { pipeTimeout = before }(pipeTimeout)
	const hangs, most = 2 * time.Minute, 200_000
	whole := strings.Repeat("x", most-3)
	read := func(waits time.Duration, write func(w *os.File)) (string, error) {
		pipeTimeout = waits
		r, w, err := os.Pipe()
		hosttest.Check(t, err)
		defer r.Close()
		go write(w)
		text, err := ReadText(fmt.Sprintf("/dev/fd/%d", r.Fd()), most)
		w.Close()
		return string(text), err
	}
	text, err := read(hangs, func(w *os.File) {
		_, _ = w.WriteString("\xef\xbb\xbf" + whole) // more than a pipe holds
		w.Close()
	})
	if text != whole || err != nil {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	if _, err = read(time.Millisecond, func(*os.File) {}); err == nil ||
		!strings.Contains(err.Error(), "silent") {
		t.Errorf("a silent pipe: %v", err)
	}
	if _, err = read(hangs, func(w *os.File) { w.Close() }); err == nil ||
		!strings.Contains(err.Error(), "no program writes") {
		t.Errorf("an empty pipe: %v", err)
	}
	long := func(w *os.File) { _, _ = w.WriteString(strings.Repeat("x", most+1)) }
	if _, err = read(hangs, long); err == nil || !strings.Contains(err.Error(), "more than 200000") {
		t.Errorf("a long pipe: %v", err)
	}
	if text, err := ReadText(os.DevNull, 100); len(text) != 0 || err != nil {
		t.Errorf("%q, %v", text, err)
	}
}
