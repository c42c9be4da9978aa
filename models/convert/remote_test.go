package convert

// Imports from a hub: nothing of the source is stored, with any behaviour of the hub.

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ossrun/ossrun/models/hub"
	"github.com/ossrun/ossrun/models/hub/hubtest"
	"github.com/ossrun/ossrun/models/store"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

var tune = store.Repo{Owner: "someone", Name: "tune"}

// upload serves a folder.
func upload(t *testing.T, folder string) (*hubtest.Server, *hubtest.Repo, *hub.Client) {
	t.Helper()
	r := &hubtest.Repo{Files: map[string]*hubtest.File{
		"README.md": hubtest.Text("# tune\n"), "tokenizer.json": hubtest.LFS([]byte("{}"))}}
	names := hosttest.Must(os.ReadDir(folder))(t)
	for _, name := range names {
		text := hosttest.Must(os.ReadFile(filepath.Join(folder, name.Name())))(t)
		if r.Files[name.Name()] = hubtest.Text(string(text)); strings.HasSuffix(name.Name(),
			".safetensors") {
			r.Files[name.Name()] = hubtest.LFS(text)
		}
	}
	server := hubtest.New()
	server.Add(tune.ID(), r)
	client := hub.New(server.Hub.URL)
	client.ChunkBytes, client.Backoff = 32<<10, time.Millisecond
	t.Cleanup(func() {
		client.Close()
		server.Close()
	})
	return server, r, client
}

// stored is the number of bytes in a folder.
func stored(folder string) (n int64) {
	_ = filepath.WalkDir(folder, func(_ string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			if info, err := e.Info(); err == nil {
				n += info.Size()
			}
		}
		return nil // what is renamed meanwhile is counted the next time
	})
	return n
}

// TestRemoteTwin: an import from a hub that cuts connections, asks for delays and expires
// addresses, with interruptions, equals that of the files themselves. Everything is downloaded
// once, and never more than the checkpoint is stored.
func TestRemoteTwin(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HF_HOME", home)
	t.Setenv("HF_HUB_CACHE", home)
	server, r, client := upload(t, twin(t, "T2", 3))
	server.Fault = func(r hubtest.Request) (f hubtest.Fault) {
		switch {
		case r.Kind != hubtest.CDN:
		case r.N%40 == 7:
			f.Cut = 900
		case r.N == 17:
			f.Status, f.RetryAfter = 429, "1"
		case r.N%40 == 27:
			server.Expire()
		}
		return f
	}
	var source int64
	for name, f := range r.Files {
		if strings.HasSuffix(name, ".safetensors") {
			source += f.Size
		}
	}
	out := filepath.Join(t.TempDir(), "out")
	enough, stopped := errors.New("enough"), 0
	var most, whole int64
	var mu sync.Mutex
	for i := range 40 {
		ctx, stop := context.WithCancelCause(t.Context())
		calls := 0
		onPiece = func() {
			mu.Lock()
			defer mu.Unlock()
			most = max(most, stored(out))
			if calls++; calls > 40+i*30 && i < 4 {
				stop(enough)
			}
		}
		at, err := client.Remote(ctx, tune, "")
		if err == nil {
			_, err = Run(ctx, "hf:someone/tune", Options{Out: out, Remote: at})
		}
		onPiece = func() {}
		stop(nil)
		if err == nil {
			break
		}
		if !errors.Is(err, enough) {
			t.Fatal(err)
		}
		stopped++
	}
	same(t, out, "T2")
	whole = stored(out)
	if most > whole+64<<10 || stored(home) > 0 {
		t.Errorf("%d bytes were stored for a checkpoint of %d, %d in the cache", most, whole,
			stored(home))
	}
	if stopped < 2 || server.Requests(hubtest.CDN, "") < 100 {
		t.Errorf("stopped %d times, %d requests", stopped, server.Requests(hubtest.CDN, ""))
	}
	sent := server.Sent("") - server.Sent("config.json")
	if layers := int64(stopped + 1); sent > source+layers*source/4 {
		t.Errorf("%d bytes were sent of files of %d", sent, source)
	}
	for name, want := range map[string]string{"README.md": "# tune\n", "tokenizer.json": "{}"} {
		if got, err := os.ReadFile(filepath.Join(out, name)); err != nil || string(got) != want {
			t.Errorf("%s is %q, %v", name, got, err)
		}
	}
}

// TestRemoteChanged: a folder that was begun with one commit is not resumed with another.
func TestRemoteChanged(t *testing.T) {
	server, r, client := upload(t, twin(t, "T1", 1))
	out := filepath.Join(t.TempDir(), "out")
	ctx, stop := context.WithCancel(t.Context())
	var calls atomic.Int64
	onPiece = func() {
		if calls.Add(1) > 5 {
			stop()
		}
	}
	at, err := client.Remote(ctx, tune, "main")
	hosttest.Check(t, err)
	_, err = Run(ctx, "hf:someone/tune", Options{Out: out, Remote: at})
	onPiece = func() {}
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	server.Add(tune.ID(), &hubtest.Repo{Commit: strings.Repeat("5eed", 10), Files: r.Files})
	if at, err = client.Remote(t.Context(), tune, "main"); err != nil {
		t.Fatal(err)
	}
	_, err = Run(t.Context(), "hf:someone/tune", Options{Out: out, Remote: at})
	if err == nil || !strings.Contains(err.Error(), "has an import of something else in it") {
		t.Errorf("another commit: %v", err)
	}
}

// TestRemoteRefused: sources that need no import, or cannot be imported, are refused before weights
// are downloaded.
func TestRemoteRefused(t *testing.T) {
	_, released := goldenModel(t, "T1")
	server, _, client := upload(t, released)
	at, err := client.Remote(t.Context(), tune, "")
	hosttest.Check(t, err)
	_, err = Run(t.Context(), "hf:someone/tune", Options{Out: t.TempDir(), Remote: at})
	if err == nil || !strings.HasSuffix(err.Error(),
		"hf:someone/tune has MXFP4 experts: it needs no import, run `ossrun pull hf:someone/tune`") {
		t.Error(err)
	}
	if n := server.Sent(""); n > 100_000 {
		t.Errorf("%d bytes were fetched", n)
	}
	_, _, client = upload(t, filepath.Join("..", "lora", "testdata", "experts"))
	if at, err = client.Remote(t.Context(), tune, ""); err != nil {
		t.Fatal(err)
	}
	_, err = Run(t.Context(), "hf:someone/tune", Options{Out: t.TempDir(), Remote: at})
	if err == nil || err.Error() != "hf:someone/tune holds a LoRA adapter, not a model: choose its "+
		"base model, and add --lora hf:someone/tune" {
		t.Error(err)
	}
}
