package hub_test

// Pulls that succeed, of a whole repository and of a revision.

import (
	"strings"
	"testing"

	"github.com/ossrun/ossrun/models/hub"
	"github.com/ossrun/ossrun/models/hub/hubtest"
	"github.com/ossrun/ossrun/models/store"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

func TestPull(t *testing.T) {
	r := sample(1 << 20)
	server, client, o := serve(t, r)
	var last hub.Progress
	o.Progress = func(p hub.Progress) { last = p }
	result := hosttest.Must(client.Pull(t.Context(), o))(t)
	whole(t, o, r)
	if result.Commit != r.Commit || result.Path != store.SnapshotPath(o.Root, tune, r.Commit) ||
		len(result.Files) != len(fetched) ||
		result.Bytes != result.Fetched || result.Bytes != server.Sent("") {
		t.Errorf("the result is %+v, the server sent %d", result, server.Sent(""))
	}
	if last.Done != result.Bytes || last.Bytes != result.Bytes || last.FilesDone != len(fetched) ||
		last.Files != len(fetched) {
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

// TestACommitDoesNotChange: a hub with other content for a downloaded commit is refused, and no
// local file changes.
//
// SECURITY.md: A commit whose files change on the hub is refused.
func TestACommitDoesNotChange(t *testing.T) {
	r := sample(100_000)
	server, client, o := serve(t, r)
	hosttest.Must(client.Pull(t.Context(), o))(t)
	const name = "model-00000-of-00001.safetensors"
	before := r.Files[name]
	r.Files[name] = hubtest.Generated(100_000, 99)
	server.Reset()
	_, err := client.Pull(t.Context(), o)
	if err == nil || !strings.Contains(err.Error(), "a commit does not change") ||
		!strings.Contains(err.Error(), before.SHA256()) {
		t.Errorf("%v", err)
	}
	if n := server.Sent(""); n > 0 {
		t.Errorf("%d bytes were fetched", n)
	}
	r.Files[name] = before
	whole(t, o, r)
}
