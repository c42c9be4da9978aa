package hub_test

// Resumed pulls: after an interruption, during another pull, from the files of another program or
// an earlier commit.

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/models/hub"
	"github.com/ossrun/ossrun/models/hub/hubtest"
	"github.com/ossrun/ossrun/models/store"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// TestCancel interrupts a pull repeatedly, each time after another megabyte; each resumes the
// previous one.
func TestCancel(t *testing.T) {
	r := sample(4 << 20)
	server, client, o := serve(t, r)
	server.SendAhead(sentAhead)
	client.ReceiveAhead(sentAhead)
	cancelled := 0
	for ; ; cancelled++ {
		ctx, cancel := context.WithCancel(t.Context())
		reached := server.HoldAt(server.Sent("") + 1<<20)
		go func() {
			select {
			case <-reached:
				cancel()
			case <-ctx.Done():
			}
		}()
		_, err := client.Pull(ctx, o)
		cancel()
		if err == nil {
			break
		}
		if !errors.Is(err, context.Canceled) || cancelled > 100 {
			t.Fatalf("pull %d: %v", cancelled, err)
		}
	}
	whole(t, o, r)
	if cancelled < 5 {
		t.Errorf("the pull was whole after %d interruptions: they do not stop it", cancelled)
	}
	var size int64
	for _, name := range fetched {
		size += r.Files[name].Size
	}
	t.Logf("%d interruptions: %d bytes were sent for %d", cancelled, server.Sent(""), size)
	// a chunk per connection is in flight
	if extra := server.Sent("") - size; extra > int64(cancelled)*int64(
		client.Connections)*client.ChunkBytes {
		t.Errorf("%d bytes were sent for %d, with %d interruptions", server.Sent(""), size,
			cancelled)
	}
}

// parts places a release's partial file next to its blob.
func parts(t *testing.T, blob string, change func([]byte) []byte) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, suffix := range []string{".ossrun.incomplete", ".ossrun.journal"} {
		text, err := os.ReadFile("../../testdata/versions/pull-1/blob" + suffix)
		if err == nil {
			text = change(text)
			err = store.WriteFile(blob+suffix, text, 0o644)
		}
		hosttest.Check(t, err)
		all[blob+suffix] = string(text)
	}
	return all
}

// TestOtherReleases resumes the flushed part of an earlier release's file. A newer release's file
// is kept and reported, even if the complete file has arrived otherwise.
func TestOtherReleases(t *testing.T) {
	const shard = "model-00000-of-00001.safetensors"
	r := sample(60_000)
	blob := func(o hub.Options) string {
		return store.BlobPath(o.Root, tune, r.Files[shard].ETag())
	}
	server, client, o := serve(t, r)
	parts(t, blob(o), bytes.Clone)
	hosttest.Must(client.Pull(t.Context(), o))(t)
	whole(t, o, r)
	if sent := server.Sent(shard); sent != 40_000 {
		t.Errorf("%d bytes were sent, 20000 were there", sent)
	}

	_, client, o = serve(t, r)
	newer := parts(t, blob(o), func(text []byte) []byte {
		return bytes.Replace(text, []byte("ossrun journal 1"), []byte("ossrun journal 2"), 1)
	})
	same := func() {
		t.Helper()
		for name, want := range newer {
			if is, err := os.ReadFile(name); err != nil || string(is) != want {
				t.Errorf("%s is another: %v", name, err)
			}
		}
	}
	if _, err := client.Pull(t.Context(), o); err == nil || !strings.Contains(err.Error(),
		"a newer ossrun has begun to fetch this file, with a journal of version 2, and this one "+
			"knows version 1: let that one end it, or delete "+blob(o)+".ossrun.*") {
		t.Errorf("%v", err)
	}
	same()
	content := make([]byte, 60_000)
	hosttest.Must(r.Files[shard].ReadAt(content, 0))(t)
	hosttest.Check(t, errors.Join(store.WriteFile(blob(o), content, 0o644),
		os.Remove(blob(o)+".ossrun.incomplete")))
	delete(newer, blob(o)+".ossrun.incomplete")
	hosttest.Must(client.Pull(t.Context(), o))(t)
	same()
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
	hosttest.Check(t, errors.Join(<-errs, <-errs))
	whole(t, o, r)
	for _, name := range fetched {
		if sent := server.Sent(name); sent != r.Files[name].Size {
			t.Errorf("%d bytes of %s were sent, it has %d", sent, name, r.Files[name].Size)
		}
	}
}

// TestAdopt resumes a partial file of an older huggingface_hub, and restarts if it was wrong.
func TestAdopt(t *testing.T) {
	const shard = "model-00000-of-00001.safetensors"
	for _, right := range []bool{true, false} {
		r := sample(1 << 20)
		f := r.Files[shard]
		server, client, o := serve(t, r)
		begin := make([]byte, 500_001)
		hosttest.Must(f.ReadAt(begin, 0))(t)
		want := f.Size - int64(len(begin))
		if !right {
			begin[70_000] ^= 1
			want += f.Size
		}
		hosttest.Check(t, store.WriteFile(store.BlobPath(o.Root, tune, f.ETag())+".incomplete",
			begin, 0o644))
		hosttest.Must(client.Pull(t.Context(), o))(t)
		whole(t, o, r)
		if sent := server.Sent(shard); sent != want {
			t.Errorf("%d bytes were sent, want %d", sent, want)
		}
	}
}

// TestKilledWhileFinishing: a process that ended between renaming a file and deleting its journal
// leaves no work to the next pull.
func TestKilledWhileFinishing(t *testing.T) {
	r := sample(300_000)
	server, client, o := serve(t, r)
	hosttest.Must(client.Pull(t.Context(), o))(t)
	for _, name := range fetched {
		if err := os.WriteFile(store.BlobPath(o.Root, tune, r.Files[name].ETag())+".ossrun.journal",
			[]byte("what was"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	server.Reset()
	hosttest.Must(client.Pull(t.Context(), o))(t)
	whole(t, o, r)
	if sent := server.Sent(""); sent != 0 {
		t.Errorf("%d bytes were sent", sent)
	}
}

// TestKilledWhileStarting: nor does a process that ended while writing a journal.
func TestKilledWhileStarting(t *testing.T) {
	r := sample(300_000)
	_, client, o := serve(t, r)
	for _, name := range fetched {
		blob := store.BlobPath(o.Root, tune, r.Files[name].ETag())
		hosttest.Check(t, os.MkdirAll(filepath.Dir(blob), 0o755))
		hosttest.Check(t, os.WriteFile(blob+".ossrun.journal.new", []byte("ha"), 0o644))
	}
	hosttest.Must(client.Pull(t.Context(), o))(t)
	whole(t, o, r)
}

// TestNewCommit keeps the shared files of two commits.
func TestNewCommit(t *testing.T) {
	r := sample(300_000)
	server, client, o := serve(t, r)
	hosttest.Must(client.Pull(t.Context(), o))(t)
	next := sample(300_000)
	next.Commit = strings.Repeat("beef", 10)
	next.Files["model-00001-of-00001.safetensors"] = hubtest.Generated(200_000, 9)
	server.Add(tune.ID(), next)
	server.Reset()
	hosttest.Must(client.Pull(t.Context(), o))(t)
	whole(t, o, next)
	if sent := server.Sent(""); sent != 200_000 {
		t.Errorf("%d bytes were sent, want those of the new shard", sent)
	}
	removal, err := store.PlanRemoval(o.Root, tune, r.Commit)
	if err != nil || removal == nil || removal.Complete || len(removal.Snapshots) != 1 {
		t.Fatalf("removing the old commit is planned as %+v, %v", removal, err)
	}
	hosttest.Check(t, removal.Run())
	whole(t, o, next)
	if _, err := os.Stat(store.BlobPath(o.Root, tune,
		r.Files["model-00001-of-00001.safetensors"].ETag())); err == nil {
		t.Error("the old shard is still there")
	}
}

// TestSpace checks the disk before requesting bytes.
func TestSpace(t *testing.T) {
	r := sample(1000)
	r.Files["model-00001-of-00001.safetensors"] = hubtest.Claimed(1 << 41)
	server, client, o := serve(t, r)
	_, err := client.Pull(t.Context(), o)
	var space *hub.SpaceError
	if !errors.As(err, &space) || space.Need < 1<<41 || space.Free <= 0 {
		t.Fatalf("the error is %v", err)
	}
	if server.Sent("") != 0 {
		t.Errorf("%d bytes were sent all the same", server.Sent(""))
	}
}

// TestImpossibleSizes, whose sum overflows, are refused before anything is reserved.
func TestImpossibleSizes(t *testing.T) {
	r := sample(1000)
	for _, name := range []string{"model-00001-of-00001.safetensors", "model-00002.safetensors"} {
		r.Files[name] = hubtest.Claimed(1 << 62)
	}
	server, client, o := serve(t, r)
	if _, err := client.Pull(t.Context(), o); err == nil ||
		!strings.Contains(err.Error(), "more than any model's file") {
		t.Errorf("the error is %v", err)
	}
	if server.Sent("") != 0 {
		t.Errorf("%d bytes were sent all the same", server.Sent(""))
	}
}
