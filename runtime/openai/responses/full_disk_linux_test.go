package responses_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ossrun/ossrun/runtime/openai"
	"github.com/ossrun/ossrun/runtime/openai/answer/answertest"
	"github.com/ossrun/ossrun/runtime/openai/porttest"
	"github.com/ossrun/ossrun/runtime/openai/responses"
	"github.com/ossrun/ossrun/runtime/session"
)

// A disk that fills up under the store of responses: a small file system in memory, which only root
// can mount.

// Every request is answered, every answer is found again by this process, and the next process
// finds them all, since what the disk refused is written when it has room again.
func TestFullDiskUnderTheStore(t *testing.T) {
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=3m"); err != nil {
		t.Skipf("a file system of a known size cannot be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(disk, 0); err != nil {
			t.Error(err)
		}
	})
	kept := session.StoreOptions{File: filepath.Join(disk, "kept.db"), TTL: time.Hour}
	store, err := session.OpenStore(kept)
	if err != nil {
		t.Fatal(err)
	}
	srv, _ := porttest.Server(t, answertest.Answers("Paris."),
		func(o *openai.Options) { o.Store = store })
	// respond posts twenty requests, four at a time, each on top of an earlier response.
	respond := func(earlier string) []string {
		t.Helper()
		ids := make([]string, 20)
		var clients sync.WaitGroup
		for client := range 4 {
			clients.Go(func() {
				for i := client; i < len(ids); i += 4 {
					r := porttest.Ask(t, "POST", srv.URL+"/v1/responses", fmt.Sprintf(
						`{"input":"Which city is number %d?"%s}`, i, earlier))
					ids[i], _ = porttest.Decode(t, r.Body)["id"].(string)
					if r.Status != http.StatusOK || ids[i] == "" {
						t.Errorf("status %d: %s", r.Status, r.Body)
					}
				}
			})
		}
		clients.Wait()
		return ids
	}
	after := func(ids []string) string { return fmt.Sprintf(`,"previous_response_id":%q`, ids[0]) }
	before := respond("")
	if n := store.Refused(); n > 0 {
		t.Fatalf("%d were refused before the disk was full", n)
	}
	filler := filepath.Join(disk, "filler")
	if err := os.WriteFile(filler, make([]byte, 8<<20), 0o600); err == nil {
		t.Fatal("the disk is not full")
	}
	during := respond(after(before))
	refused := store.Refused()
	if refused == 0 {
		t.Error("the full disk refused nothing")
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	later := respond(after(during))
	if n := store.Refused() - refused; n > 0 {
		t.Errorf("%d are refused although there is room", n)
	}
	for _, id := range slices.Concat(before, during, later) {
		if r := porttest.Ask(t, "GET", srv.URL+"/v1/responses/"+id, ""); r.Status != http.StatusOK {
			t.Errorf("%s: status %d %s", id, r.Status, r.Body)
		}
	}
	srv.Close()
	if err := store.Close(); err != nil {
		t.Error(err)
	}
	var notes []string
	kept.Notify = func(text string) { notes = append(notes, text) }
	next, err := session.OpenStore(kept)
	if err != nil || len(notes) > 0 {
		t.Fatal(err, notes)
	}
	defer next.Close()
	for _, id := range slices.Concat(before, during, later) {
		if _, ok := responses.GetResponse(next, id); !ok {
			t.Errorf("%s is lost", id)
		}
	}
}
