package hub_test

// Pulls from a hub with faults. Whatever the fault, what ends up in the cache is held against the server's files byte by byte.

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ossrun/ossrun/models/hub"
	"github.com/ossrun/ossrun/models/hub/hubtest"
	"github.com/ossrun/ossrun/models/store"
)

var tune = store.Repo{Owner: "someone", Name: "tune"}

// sample is a repository as OpenAI's are: two shards, small files, and other forms of the model in folders.
func sample(size int64) *hubtest.Repo {
	return &hubtest.Repo{Refs: []string{"v2", "refs/pr/1"}, Files: map[string]*hubtest.File{
		".gitattributes":                   hubtest.Text("*.safetensors filter=lfs"),
		"README.md":                        hubtest.Text("# tune"),
		"config.json":                      hubtest.Text(`{"model_type":"gpt_oss"}`),
		"generation_config.json":           hubtest.Text(`{}`),
		"model.safetensors.index.json":     hubtest.Text(`{"weight_map":{"a":"model-00000-of-00001.safetensors"}}`),
		"tokenizer.json":                   hubtest.LFS(bytes.Repeat([]byte("token"), 1000)),
		"model-00000-of-00001.safetensors": hubtest.Generated(size, 1),
		"model-00001-of-00001.safetensors": hubtest.Generated(size/2+7, 2),
		"original/model.safetensors":       hubtest.Generated(size, 3),
		"metal/model.bin":                  hubtest.Generated(size, 4),
	}}
}

// fetched are the files of a sample that a pull must bring.
var fetched = []string{"config.json", "generation_config.json", "model.safetensors.index.json", "tokenizer.json",
	"model-00000-of-00001.safetensors", "model-00001-of-00001.safetensors"}

// TestMain also holds that no goroutine outlives the tests.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == childName {
		os.Exit(pullInChild(os.Args[2:]))
	}
	goleak.VerifyTestMain(m)
}

// serve starts a hub with one repository and gives a client for it whose waits are short.
func serve(t *testing.T, r *hubtest.Repo) (*hubtest.Server, *hub.Client, hub.Options) {
	t.Helper()
	server := hubtest.New()
	server.Add(tune.ID(), r)
	client := quick(server)
	t.Cleanup(func() {
		client.Close()
		server.Close()
	})
	return server, client, hub.Options{Root: t.TempDir(), Repo: tune}
}

func quick(server *hubtest.Server) *hub.Client {
	client := hub.New(server.Hub.URL)
	client.ChunkBytes, client.Backoff = 64<<10, time.Millisecond
	return client
}

// whole checks that the cache holds exactly what the server has.
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
			t.Errorf("%s has %d bytes, sha256 %s, %v; want %d, %s", name, n, got, err, f.Size, f.SHA256())
		}
		blob := store.BlobPath(o.Root, o.Repo, f.ETag())
		if sum, ok := store.Stamped(blob); !ok || sum != f.SHA256() {
			t.Errorf("%s is stamped %s, %v", name, sum, ok)
		}
		if link, err := os.Readlink(filepath.Join(snapshot, name)); err != nil || link != filepath.Join("..", "..", "blobs", f.ETag()) {
			t.Errorf("%s links to %s, %v", name, link, err)
		}
	}
	entries, err := os.ReadDir(snapshot)
	if err != nil || len(entries) != len(fetched) {
		t.Errorf("the snapshot has %v, %v", entries, err)
	}
	if ref, err := os.ReadFile(filepath.Join(o.Root, o.Repo.Folder(), "refs", "main")); o.Revision == "" && (err != nil || string(ref) != r.Commit) {
		t.Errorf("refs/main is %q, %v", ref, err)
	}
	unfinished, err := filepath.Glob(filepath.Join(o.Root, o.Repo.Folder(), "blobs", "*.ossrun.*"))
	if err != nil || len(unfinished) != 0 {
		t.Errorf("left behind: %v, %v", unfinished, err)
	}
}

func TestPull(t *testing.T) {
	r := sample(1 << 20)
	server, client, o := serve(t, r)
	var last hub.Progress
	o.Progress = func(p hub.Progress) { last = p }
	result, err := client.Pull(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	whole(t, o, r)
	if result.Commit != r.Commit || result.Path != store.SnapshotPath(o.Root, tune, r.Commit) || len(result.Files) != len(fetched) ||
		result.Bytes != result.Fetched || result.Bytes != server.Sent("") {
		t.Errorf("the result is %+v, the server sent %d", result, server.Sent(""))
	}
	if last.Done != result.Bytes || last.Bytes != result.Bytes || last.FilesDone != len(fetched) || last.Files != len(fetched) {
		t.Errorf("the last progress is %+v of %d bytes", last, result.Bytes)
	}
	server.Reset()
	again, err := client.Pull(t.Context(), o)
	if err != nil || again.Fetched != 0 || server.Sent("") != 0 {
		t.Errorf("a second pull fetches %d, %v", again.Fetched, err)
	}
	if n := server.Sent("original/model.safetensors") + server.Sent("README.md"); n != 0 {
		t.Errorf("%d bytes of other files were fetched", n)
	}
}

func TestRevisions(t *testing.T) {
	for _, revision := range []string{"v2", "refs/pr/1", strings.Repeat("c0ffee42", 5)} {
		r := sample(100_000)
		_, client, o := serve(t, r)
		o.Revision = revision
		if _, err := client.Pull(t.Context(), o); err != nil {
			t.Fatalf("revision %s: %v", revision, err)
		}
		whole(t, o, r)
		list, err := store.Select(o.Root, tune, revision)
		if err != nil || len(list) != 1 || list[0].Commit != r.Commit {
			t.Errorf("revision %s selects %v, %v", revision, list, err)
		}
	}
}

// TestFaults pulls through faults that must not be seen from outside.
func TestFaults(t *testing.T) {
	const shard = "model-00000-of-00001.safetensors"
	first := func(k kind, f hubtest.Fault) func(hubtest.Request) hubtest.Fault {
		return func(r hubtest.Request) hubtest.Fault {
			if r.Kind == k && r.N == 0 {
				return f
			}
			return hubtest.Fault{}
		}
	}
	for name, fault := range map[string]func(hubtest.Request) hubtest.Fault{
		"list 429 with Retry-After": first(hubtest.Info, hubtest.Fault{Status: 429, RetryAfter: "1"}),
		"list 503":                  first(hubtest.Info, hubtest.Fault{Status: 503}),
		"list without sizes":        func(hubtest.Request) hubtest.Fault { return hubtest.Fault{BareList: true} },
		"head 500":                  first(hubtest.Head, hubtest.Fault{Status: 500}),
		"get 429":                   first(hubtest.Get, hubtest.Fault{Status: 429}),
		"store 503":                 first(hubtest.CDN, hubtest.Fault{Status: 503}),
		"store refuses once":        first(hubtest.CDN, hubtest.Fault{Status: 403}),
		"cut": func(r hubtest.Request) hubtest.Fault {
			if r.Kind == hubtest.CDN && r.N%2 == 0 {
				return hubtest.Fault{Cut: 1000 + int64(r.N)*100}
			}
			return hubtest.Fault{}
		},
		"stalled": first(hubtest.CDN, hubtest.Fault{Stall: time.Minute}),
		"slow":    func(r hubtest.Request) hubtest.Fault { return hubtest.Fault{Rate: 2 << 20} },
		"corrupt once": func(r hubtest.Request) hubtest.Fault {
			return hubtest.Fault{Corrupt: r.Kind == hubtest.CDN && r.Path == shard && r.N == 3}
		},
		"corrupt small file": func(r hubtest.Request) hubtest.Fault {
			return hubtest.Fault{Corrupt: r.Kind == hubtest.Get && r.Path == "config.json" && r.N == 0}
		},
		"no ranges":              func(r hubtest.Request) hubtest.Fault { return hubtest.Fault{NoRanges: r.Kind == hubtest.CDN} },
		"no ranges, cut":         func(r hubtest.Request) hubtest.Fault { return noRangesCut(r) },
		"total lies once":        first(hubtest.CDN, hubtest.Fault{Total: 5}),
		"length lies once":       first(hubtest.CDN, hubtest.Fault{NoRanges: true, Length: 1 << 40}),
		"another ETag while get": first(hubtest.Get, hubtest.Fault{ETag: "0123456789012345678901234567890123456789"}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := sample(1 << 20)
			server := hubtest.New()
			defer server.Close()
			server.Add(tune.ID(), r)
			server.Fault = fault
			client := quick(server)
			defer client.Close()
			if name == "stalled" {
				client.Stall = 300 * time.Millisecond
			}
			o := hub.Options{Root: t.TempDir(), Repo: tune}
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			if _, err := client.Pull(ctx, o); err != nil {
				t.Fatal(err)
			}
			whole(t, o, r)
		})
	}
}

type kind = hubtest.Kind

func noRangesCut(r hubtest.Request) hubtest.Fault {
	if r.Kind != hubtest.CDN {
		return hubtest.Fault{}
	}
	f := hubtest.Fault{NoRanges: true}
	if r.N < 6 {
		f.Cut = 300_000
	}
	return f
}

// TestCorruptOnce sees that one damaged file is fetched twice and no other.
func TestCorruptOnce(t *testing.T) {
	const shard = "model-00000-of-00001.safetensors"
	r := sample(1 << 20)
	server, client, o := serve(t, r)
	server.Fault = func(r hubtest.Request) hubtest.Fault {
		return hubtest.Fault{Corrupt: r.Kind == hubtest.CDN && r.Path == shard && r.N == 3}
	}
	if _, err := client.Pull(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	whole(t, o, r)
	for _, name := range fetched {
		want := r.Files[name].Size
		if name == shard {
			want *= 2
		}
		if got := server.Sent(name); got != want {
			t.Errorf("%d bytes of %s were sent, want %d", got, name, want)
		}
	}
}

// TestFlippedInCache flips a bit of each file in turn: the next pull fetches that file again and no other.
func TestFlippedInCache(t *testing.T) {
	r := sample(300_000)
	server, client, o := serve(t, r)
	if _, err := client.Pull(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	for _, name := range fetched {
		blob := store.BlobPath(o.Root, tune, r.Files[name].ETag())
		content, err := os.ReadFile(blob)
		if err != nil {
			t.Fatal(err)
		}
		content[len(content)/2] ^= 8
		time.Sleep(10 * time.Millisecond) // a file's time is only so fine
		if err := os.WriteFile(blob, content, 0o644); err != nil {
			t.Fatal(err)
		}
		server.Reset()
		if _, err := client.Pull(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		whole(t, o, r)
		if sent := server.Sent(""); sent != r.Files[name].Size || sent != server.Sent(name) {
			t.Errorf("after a flip in %s %d bytes were sent, of it %d", name, sent, server.Sent(name))
		}
	}
	// A flip that leaves the file's time as it was is found with Verify.
	name := fetched[len(fetched)-1]
	blob := store.BlobPath(o.Root, tune, r.Files[name].ETag())
	stat, err := os.Stat(blob)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(blob, make([]byte, stat.Size()), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(blob, stat.ModTime(), stat.ModTime()); err != nil {
		t.Fatal(err)
	}
	o.Verify = true
	if _, err := client.Pull(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	whole(t, o, r)
}

// TestErrors wants the right sentence for what cannot be helped.
func TestErrors(t *testing.T) {
	all := func(k kind, f hubtest.Fault) func(hubtest.Request) hubtest.Fault {
		return func(r hubtest.Request) hubtest.Fault {
			if r.Kind == k {
				return f
			}
			return hubtest.Fault{}
		}
	}
	type config struct {
		repo     func(*hubtest.Repo)
		client   func(*hub.Client)
		options  func(*hub.Options)
		fault    func(hubtest.Request) hubtest.Fault
		contains string
	}
	for name, test := range map[string]config{
		"gated, no token":     {repo: func(r *hubtest.Repo) { r.Gated, r.Token = true, "good" }, contains: "someone/tune is gated: accept its terms at http://"},
		"gated, wrong token":  {repo: func(r *hubtest.Repo) { r.Gated, r.Token = true, "good" }, client: token("other"), contains: "the token of HF_TOKEN has no access"},
		"private, no token":   {repo: func(r *hubtest.Repo) { r.Hidden, r.Token = true, "good" }, contains: "has no repository someone/tune"},
		"unknown token":       {client: token("unknown"), contains: "does not know the token of HF_TOKEN: make a new one at http://"},
		"no repository":       {options: func(o *hub.Options) { o.Repo.Name = "other" }, contains: "has no repository someone/other that everybody can see"},
		"no such, with token": {options: func(o *hub.Options) { o.Repo.Name = "other" }, client: token("good"), contains: "has no repository someone/other"},
		"no revision":         {options: func(o *hub.Options) { o.Revision = "v3" }, contains: "has no revision v3 of someone/tune"},
		"bad revision":        {options: func(o *hub.Options) { o.Revision = "../x" }, contains: "is no revision"},
		"always 503":          {fault: all(hubtest.CDN, hubtest.Fault{Status: 503}), contains: "does not answer: status 503; what was fetched is kept"},
		"always corrupt":      {fault: all(hubtest.CDN, hubtest.Fault{Corrupt: true}), contains: "arrived damaged twice: its hash is "},
		"always another ETag": {fault: all(hubtest.Get, hubtest.Fault{ETag: "another"}), contains: "changes on the hub while it is fetched"},
		"always another size": {fault: all(hubtest.CDN, hubtest.Fault{Total: 7}), contains: "changes on the hub while it is fetched"},
		"wrong size":          {fault: all(hubtest.Head, hubtest.Fault{ETag: "../../x"}), contains: "names no content"},
		"only gguf":           {repo: func(r *hubtest.Repo) { r.Files = map[string]*hubtest.File{"x.gguf": hubtest.Text("GGUF")} }, contains: "holds GGUF files"},
		"no weights":          {repo: func(r *hubtest.Repo) { r.Files = map[string]*hubtest.File{"config.json": hubtest.Text("{}")} }, contains: "has no model*.safetensors"},
		"offline":             {client: func(c *hub.Client) { c.Offline = true }, contains: "nothing is fetched offline"},
		"no hub":              {client: func(c *hub.Client) { c.Endpoint = "http://127.0.0.1:1" }, contains: "127.0.0.1:1 does not answer: "},
		"not a hub":           {client: func(c *hub.Client) { c.Endpoint += "/elsewhere" }, contains: "has no revision main"},
	} {
		t.Run(name, func(t *testing.T) {
			r := sample(200_000)
			if test.repo != nil {
				test.repo(r)
			}
			server, client, o := serve(t, r)
			server.Fault = test.fault
			if test.client != nil {
				test.client(client)
			}
			if test.options != nil {
				test.options(&o)
			}
			_, err := client.Pull(t.Context(), o)
			if err == nil || !strings.Contains(err.Error(), test.contains) || strings.Contains(err.Error(), "\n") {
				t.Errorf("the error is\n      %v\nwant: ...%s...", err, test.contains)
			}
			if server.Leaked() {
				t.Error("the store was sent the token")
			}
			if ref, err := os.ReadFile(filepath.Join(o.Root, tune.Folder(), "refs", "main")); err == nil {
				t.Errorf("a pull that failed wrote refs/main: %s", ref)
			}
		})
	}
}

func token(text string) func(*hub.Client) {
	return func(c *hub.Client) { c.Token, c.TokenFrom = text, "HF_TOKEN" }
}

// TestToken opens what a token opens, without giving it to the store.
func TestToken(t *testing.T) {
	for _, gated := range []bool{true, false} {
		r := sample(200_000)
		r.Gated, r.Hidden, r.Token = gated, !gated, "good"
		server, client, o := serve(t, r)
		token("good")(client)
		if _, err := client.Pull(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		whole(t, o, r)
		if server.Requests(hubtest.CDN, "") == 0 || server.Leaked() {
			t.Errorf("the store had %d requests, and was sent the token: %v", server.Requests(hubtest.CDN, ""), server.Leaked())
		}
	}
}

// TestExpired lets every address end in the middle of a pull.
func TestExpired(t *testing.T) {
	r := sample(4 << 20)
	server, client, o := serve(t, r)
	var once atomic.Int64
	server.Fault = func(q hubtest.Request) hubtest.Fault {
		if q.Kind == hubtest.CDN && once.Add(1)%40 == 0 {
			server.Expire()
		}
		return hubtest.Fault{}
	}
	if _, err := client.Pull(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	whole(t, o, r)
}

// TestCancel interrupts a pull again and again; each goes on where the last one stopped.
func TestCancel(t *testing.T) {
	r := sample(4 << 20)
	server, client, o := serve(t, r)
	server.Throttle(4 << 20)
	for n := 0; ; n++ {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(60+10*n)*time.Millisecond)
		before := time.Now()
		_, err := client.Pull(ctx, o)
		took := time.Since(before)
		cancel()
		if err == nil {
			break
		}
		if !errors.Is(err, context.DeadlineExceeded) || n > 100 {
			t.Fatalf("pull %d: %v", n, err)
		}
		if took > time.Second {
			t.Errorf("it took %v to stop", took)
		}
	}
	whole(t, o, r)
	var size int64
	for _, name := range fetched {
		size += r.Files[name].Size
	}
	t.Logf("%d bytes were sent for %d", server.Sent(""), size)
	if extra := server.Sent("") - size; extra > size/2 {
		t.Errorf("%d bytes were sent for %d", server.Sent(""), size)
	}
}

// TestTwoPulls run at once and share the work.
func TestTwoPulls(t *testing.T) {
	r := sample(2 << 20)
	server, client, o := serve(t, r)
	server.Throttle(4 << 20)
	other := quick(server)
	defer other.Close()
	errs := make(chan error, 2)
	for _, c := range []*hub.Client{client, other} {
		go func() {
			_, err := c.Pull(t.Context(), o)
			errs <- err
		}()
	}
	if err := errors.Join(<-errs, <-errs); err != nil {
		t.Fatal(err)
	}
	whole(t, o, r)
	for _, name := range fetched {
		if sent := server.Sent(name); sent != r.Files[name].Size {
			t.Errorf("%d bytes of %s were sent, it has %d", sent, name, r.Files[name].Size)
		}
	}
}

// TestAdopt goes on with what an older huggingface_hub left, and starts again when that was wrong.
func TestAdopt(t *testing.T) {
	const shard = "model-00000-of-00001.safetensors"
	for _, right := range []bool{true, false} {
		r := sample(1 << 20)
		f := r.Files[shard]
		server, client, o := serve(t, r)
		begin := make([]byte, 500_001)
		if _, err := f.ReadAt(begin, 0); err != nil {
			t.Fatal(err)
		}
		want := f.Size - int64(len(begin))
		if !right {
			begin[70_000] ^= 1
			want += f.Size
		}
		if err := store.WriteFile(store.BlobPath(o.Root, tune, f.ETag())+".incomplete", begin); err != nil {
			t.Fatal(err)
		}
		if _, err := client.Pull(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		whole(t, o, r)
		if sent := server.Sent(shard); sent != want {
			t.Errorf("%d bytes were sent, want %d", sent, want)
		}
	}
}

// TestNewCommit keeps what two commits share.
func TestNewCommit(t *testing.T) {
	r := sample(300_000)
	server, client, o := serve(t, r)
	if _, err := client.Pull(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	next := sample(300_000)
	next.Commit = strings.Repeat("beef", 10)
	next.Files["model-00001-of-00001.safetensors"] = hubtest.Generated(200_000, 9)
	server.Add(tune.ID(), next)
	server.Reset()
	if _, err := client.Pull(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	whole(t, o, next)
	if sent := server.Sent(""); sent != 200_000 {
		t.Errorf("%d bytes were sent, want those of the new shard", sent)
	}
	removal, err := store.PlanRemoval(o.Root, tune, r.Commit)
	if err != nil || removal == nil || removal.Whole || len(removal.Snapshots) != 1 {
		t.Fatalf("removing the old commit is planned as %+v, %v", removal, err)
	}
	if err := removal.Run(); err != nil {
		t.Fatal(err)
	}
	whole(t, o, next)
	if _, err := os.Stat(store.BlobPath(o.Root, tune, r.Files["model-00001-of-00001.safetensors"].ETag())); err == nil {
		t.Error("the old shard is still there")
	}
}

// TestSpace looks at the disk before it asks for bytes.
func TestSpace(t *testing.T) {
	r := sample(1000)
	r.Files["model-00001-of-00001.safetensors"] = hubtest.Claimed(1 << 60)
	server, client, o := serve(t, r)
	_, err := client.Pull(t.Context(), o)
	var space *hub.SpaceError
	if !errors.As(err, &space) || space.Need < 1<<60 || space.Free <= 0 {
		t.Fatalf("the error is %v", err)
	}
	if server.Sent("") != 0 {
		t.Errorf("%d bytes were sent all the same", server.Sent(""))
	}
}
