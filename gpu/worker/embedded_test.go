//go:build linux

package worker

import (
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// A worker that is carried inside the program: this test's own binary, started from memory and from
// a file.

// packed is this binary as a release carries its worker.
func packed(t testing.TB) (compressed, image []byte) {
	t.Helper()
	self, err := os.Executable()
	hosttest.Check(t, err)
	if image, err = os.ReadFile(self); err != nil {
		t.Fatal(err)
	}
	var to bytes.Buffer
	z := hosttest.Must(gzip.NewWriterLevel(&to, gzip.NoCompression))(t)
	hosttest.Must(z.Write(image))(t)
	hosttest.Check(t, z.Close())
	return to.Bytes(), image
}

func TestStartEmbedded(t *testing.T) {
	// what does not start from memory is tried from a file, in a cache of the test's own
	t.Setenv("XDG_RUNTIME_DIR", "")
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	compressed, _ := packed(t)
	dev := hosttest.Must(StartEmbedded(compressed, []byte("demo"),
		Options{Program: []string{"", asWorker, "cpu"}}))(t)
	running, err := os.Readlink("/proc/" + strconv.Itoa(dev.c.p.os.Pid) + "/exe")
	if err != nil || !strings.Contains(running, "memfd:ossrun-gpu-worker") {
		t.Errorf("the worker runs from %s, %v", running, err)
	}
	handed, err := os.ReadFile("/proc/" + strconv.Itoa(dev.c.p.os.Pid) + "/fd/" +
		strconv.Itoa(demoDescriptor))
	if err != nil || string(handed) != "demo" {
		t.Errorf("%q was handed over as the demo, %v", handed, err)
	}
	if _, free := dev.Memory(); free == 0 {
		t.Error("no memory")
	}
	if err := dev.Close(); err != nil {
		t.Error(err)
	}
	for what, bad := range map[string][]byte{"nothing": nil, "half": compressed[:len(compressed)/2],
		"no program": gzipped(t, "hello")} {
		if _, err := StartEmbedded(bad, nil, Options{}); err == nil {
			t.Errorf("%s: started", what)
		}
	}
}

func gzipped(t testing.TB, text string) []byte {
	t.Helper()
	var to bytes.Buffer
	z := gzip.NewWriter(&to)
	hosttest.Must(z.Write([]byte(text)))(t)
	hosttest.Check(t, z.Close())
	return to.Bytes()
}

// TestNoLoader: a worker whose loader is not on the machine is explained.
func TestNoLoader(t *testing.T) {
	_, image := packed(t)
	loader := loaderOf(image)
	if loader == "" {
		t.Skip("this test is linked statically")
	}
	elsewhere := bytes.ReplaceAll(image, []byte(loader), []byte(strings.Repeat("/", len(loader)-1)+
		"x"))
	var to bytes.Buffer
	z := hosttest.Must(gzip.NewWriterLevel(&to, gzip.NoCompression))(t)
	hosttest.Must(z.Write(elsewhere))(t)
	hosttest.Check(t, z.Close())
	if _, err := StartEmbedded(to.Bytes(), nil, Options{}); err == nil ||
		!strings.HasPrefix(err.Error(), "GPUs need the C library glibc on this machine") {
		t.Error(err)
	}
	if loaderOf([]byte("text")) != "" {
		t.Error("a text has a loader")
	}
}

// TestWriteProgram: the way around a system that starts nothing from memory. What lies there
// already is used when it is the same, byte for byte, and never from a folder that others write to.
func TestWriteProgram(t *testing.T) {
	_, image := packed(t)
	folder := filepath.Join(t.TempDir(), "run", "ossrun")
	path := hosttest.Must(writeProgram(folder, image))(t)
	dev := hosttest.Must(Options{Program: []string{"", asWorker, "cpu"}}.startAt(path))(t)
	if err := dev.Close(); err != nil {
		t.Error(err)
	}
	for _, spoil := range []func() error{
		func() error { return os.WriteFile(path, []byte("#!/bin/sh\nexit 1\n"), 0o700) },
		func() error { return os.Chmod(path, 0o400) },
	} {
		hosttest.Check(t, os.Remove(path))
		hosttest.Must(writeProgram(folder, image))(t)
		hosttest.Check(t, spoil())
		again, err := writeProgram(folder, image)
		if err != nil || again != path {
			t.Fatalf("%s, %v", again, err)
		}
		have, err := os.ReadFile(path)
		if info, _ := os.Stat(path); err != nil || !bytes.Equal(have, image) ||
			info.Mode().Perm() != 0o700 {
			t.Errorf("%v, %d bytes, %v", err, len(have), info.Mode())
		}
	}
	if info, err := os.Stat(folder); err != nil || info.Mode().Perm() != 0o700 {
		t.Error(info, err)
	}
	hosttest.Check(t, os.Chmod(folder, 0o777))
	if _, err := writeProgram(folder, image); err == nil {
		t.Error("a folder that others write to is used")
	}
	if left, _ := filepath.Glob(filepath.Join(folder, "*.new")); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
	link := filepath.Join(t.TempDir(), "ossrun")
	hosttest.Check(t, errors.Join(os.Chmod(folder, 0o700), os.Symlink(folder, link)))
	if _, err := writeProgram(link, image); err == nil {
		t.Error("a program is written behind a link")
	}
	if os.Getuid() == 0 {
		hosttest.Check(t, os.Chown(folder, 12345, 12345))
		if _, err := writeProgram(folder, image); err == nil {
			t.Error("a program is written into another user's folder")
		}
	}
}
