package responses_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ossrun/ossrun/runtime/openai"
	"github.com/ossrun/ossrun/runtime/openai/fields"
	"github.com/ossrun/ossrun/runtime/openai/porttest"
	"github.com/ossrun/ossrun/runtime/openai/responses"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/records"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
)

// A disk that fills up under the store of responses: a small file system in memory, which only root
// can mount.

// Every request is answered, every answer is found again by this process, and the next process
// finds them all, since what the disk refused is written when it has room again.
func TestFullDiskUnderTheStore(t *testing.T) {
	disk := hosttest.SmallDisk(t)
	kept := records.Options{File: filepath.Join(disk, "kept.db"), TTL: time.Hour}
	store := hosttest.Must(records.Open(kept))(t)
	srv, _ := porttest.Server(t, sessiontest.Answers("Paris."),
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
	filler := hosttest.Fill(t, disk)
	during := respond(after(before))
	refused := store.Refused()
	if refused == 0 {
		t.Error("the full disk refused nothing")
	}
	hosttest.Check(t, os.Remove(filler))
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
	next, err := records.Open(kept)
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

// What a full disk does not let go of is not said to be deleted, and can be deleted later.
func TestDeletingOnAFullDisk(t *testing.T) {
	disk := hosttest.SmallDisk(t)
	kept := records.Options{File: filepath.Join(disk, "kept.db"), TTL: time.Hour}
	store := hosttest.Must(records.Open(kept))(t)
	defer store.Close()
	srv, _ := porttest.Server(t, sessiontest.Answers("Paris."),
		func(o *openai.Options) { o.Store = store })
	id := func(path, body string) string {
		return porttest.Decode(t, porttest.Post(t, srv, path, body).Body)["id"].(string)
	}
	paths := []string{"/v1/responses/" + id("/v1/responses", `{"input":"x"}`),
		"/v1/conversations/" + id("/v1/conversations", `{}`)}
	filler := hosttest.Fill(t, disk)
	for store.Refused() == 0 { // until the log has no page left either
		porttest.Post(t, srv, "/v1/responses", `{"input":"x"}`)
	}
	for _, path := range paths {
		porttest.WantFault(t, porttest.Ask(t, "DELETE", srv.URL+path, ""), 507, fields.KindServer,
			"", "", "the disk is full")
		if r := porttest.Ask(t, "GET", srv.URL+path, ""); r.Status != 200 {
			t.Errorf("%s is not deleted, and GET answers %d", path, r.Status)
		}
	}
	hosttest.Check(t, os.Remove(filler))
	for _, path := range paths {
		if r := porttest.Ask(t, "DELETE", srv.URL+path, ""); r.Status != 200 {
			t.Errorf("%s: %d %s", path, r.Status, r.Body)
		}
		if r := porttest.Ask(t, "GET", srv.URL+path, ""); r.Status != 404 {
			t.Errorf("%s is still there: %d", path, r.Status)
		}
	}
}

// Two servers add to one conversation on a full disk: acknowledged items are stored.
func TestAddingOnAFullDisk(t *testing.T) {
	disk := hosttest.SmallDisk(t)
	var servers []string
	for range 2 {
		store := hosttest.Must(records.Open(records.Options{TTL: time.Hour,
			File: filepath.Join(disk, "kept.db")}))(t)
		defer store.Close()
		srv, _ := porttest.Server(t, sessiontest.Answers("Paris."),
			func(o *openai.Options) { o.Store = store })
		servers = append(servers, srv.URL)
	}
	path := "/v1/conversations/" + porttest.Decode(t, porttest.Ask(t, "POST",
		servers[0]+"/v1/conversations", `{}`).Body)["id"].(string) + "/items"
	acknowledged, refused := 0, 0
	add := func(i int) {
		t.Helper()
		r := porttest.Ask(t, "POST", servers[i%2]+path, fmt.Sprintf(
			`{"items":[{"role":"user","content":"%d%s"}]}`, i, strings.Repeat(" ", 20_000)))
		if r.Status == http.StatusOK {
			acknowledged++
			return
		}
		refused++
		porttest.WantFault(t, r, 507, fields.KindServer, "", "", "the disk is full")
	}
	for i := range 10 {
		add(i)
	}
	filler := hosttest.Fill(t, disk)
	for i := range 10 {
		add(i)
	}
	hosttest.Check(t, os.Remove(filler))
	for i := range 10 {
		add(i)
	}
	for _, url := range servers {
		r := porttest.Decode(t, porttest.Ask(t, "GET", url+path+"?limit=100", "").Body)
		if n := len(r["data"].([]any)); n != acknowledged || refused == 0 {
			t.Errorf("%d of %d are there, %d were refused", n, acknowledged, refused)
		}
	}
}
