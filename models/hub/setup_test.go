package hub_test

// Shared by the tests of pulls: a sample repository, a hub that serves it, and the check that a
// cache has exactly the server's files.

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ossrun/ossrun/models/hub"
	"github.com/ossrun/ossrun/models/hub/hubtest"
	"github.com/ossrun/ossrun/models/store"
)

var tune = store.Repo{Owner: "someone", Name: "tune"}

// sample is a repository as OpenAI's are: two shards, small files, and other forms of the model in
// folders.
func sample(size int64) *hubtest.Repo {
	return &hubtest.Repo{Refs: []string{"v2", "refs/pr/1"}, Files: map[string]*hubtest.File{
		".gitattributes":         hubtest.Text("*.safetensors filter=lfs"),
		"README.md":              hubtest.Text("# tune"),
		"config.json":            hubtest.Text(`{"model_type":"gpt_oss"}`),
		"generation_config.json": hubtest.Text(`{}`),
		"model.safetensors.index.json": hubtest.Text(
			`{"weight_map":{"a":"model-00000-of-00001.safetensors"}}`),
		"tokenizer.json":                   hubtest.LFS(bytes.Repeat([]byte("token"), 1000)),
		"model-00000-of-00001.safetensors": hubtest.Generated(size, 1),
		"model-00001-of-00001.safetensors": hubtest.Generated(size/2+7, 2),
		"original/model.safetensors":       hubtest.Generated(size, 3),
		"metal/model.bin":                  hubtest.Generated(size, 4),
	}}
}

// fetched are the files of a sample that a pull must download.
var fetched = []string{"config.json", "generation_config.json", "model.safetensors.index.json",
	"tokenizer.json",
	"model-00000-of-00001.safetensors", "model-00001-of-00001.safetensors"}

// TestMain also holds that no goroutine outlives the tests. Those that run side by side wait for
// servers most of the time, so more of them run than there are processors.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == childName {
		os.Exit(pullInChild(os.Args[2:]))
	}
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// serve starts a hub with one repository and returns a client for it with short waits.
func serve(t *testing.T, r *hubtest.Repo) (*hubtest.Server, *hub.Client, hub.Options) {
	t.Helper()
	server := hubWith(t, r)
	client := quick(server)
	t.Cleanup(client.Close)
	return server, client, hub.Options{Root: t.TempDir(), Repo: tune}
}

// hubWith is a hub that has the repository, until the test ends.
func hubWith(t *testing.T, r *hubtest.Repo) *hubtest.Server {
	t.Helper()
	server := hubtest.New()
	t.Cleanup(server.Close)
	server.Add(tune.ID(), r)
	return server
}

func quick(server *hubtest.Server) *hub.Client {
	client := hub.New(server.Hub.URL)
	client.ChunkBytes, client.Backoff = 64<<10, time.Millisecond
	return client
}

// whole checks that the cache has exactly the server's files.
func whole(t *testing.T, o hub.Options, r *hubtest.Repo) {
	t.Helper()
	snapshot := store.SnapshotPath(o.Root, o.Repo, r.Commit)
	for _, name := range fetched {
		f := r.Files[name]
		file, err := os.Open(filepath.Join(snapshot, name))
		if err != nil {
			t.Errorf("after the pull: %v", err)
			continue
		}
		sum := sha256.New()
		n, err := io.Copy(sum, file)
		file.Close()
		if got := hex.EncodeToString(sum.Sum(nil)); err != nil || n != f.Size || got != f.SHA256() {
			t.Errorf("%s has %d bytes, sha256 %s, %v; want %d, %s", name, n, got, err, f.Size,
				f.SHA256())
		}
		blob := store.BlobPath(o.Root, o.Repo, f.ETag())
		if sum, ok := store.Stamped(blob); !ok || sum != f.SHA256() {
			t.Errorf("%s is stamped %s, %v", name, sum, ok)
		}
		if link, err := os.Readlink(filepath.Join(snapshot, name)); err != nil ||
			link != filepath.Join("..", "..", "blobs", f.ETag()) {
			t.Errorf("%s links to %s, %v", name, link, err)
		}
	}
	entries, err := os.ReadDir(snapshot)
	if err != nil || len(entries) != len(fetched) {
		t.Errorf("the snapshot has %v, %v", entries, err)
	}
	if ref, err := os.ReadFile(filepath.Join(o.Root, o.Repo.Folder(), "refs",
		"main")); o.Revision == "" && (err != nil || string(ref) != r.Commit) {
		t.Errorf("refs/main is %q, %v", ref, err)
	}
	unfinished, err := filepath.Glob(filepath.Join(o.Root, o.Repo.Folder(), "blobs", "*.ossrun.*"))
	if err != nil || len(unfinished) != 0 {
		t.Errorf("left behind: %v, %v", unfinished, err)
	}
}
