package cli

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ossrun/ossrun/harmony/token"
	"github.com/ossrun/ossrun/runtime/kv"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/records"
)

// secret has a word that occurs nowhere else, and is several pages long.
func secret(n int) string {
	return fmt.Sprintf("Question %d: ", n) + strings.Repeat("the zyxomma flies at dusk, ", 25)
}

// What is deleted, and what a client asked not to store, is in no file of the state, cache and
// runtime folders: neither as text nor as tokens, nor its pages, which --swap-disk keeps: while the
// server runs, after its end, and once another one has begun.
func TestWhatIsDeletedLeavesNoPage(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"pages on the disk": {"--swap-space", "0.0001", "--keep-alive", "0"},
		"pages in memory":   {"--swap-space", "0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			deletedLeavesNoPage(t, name == "pages on the disk", append(args, "--swap-disk", "0.5",
				"--max-model-len", "8192", "--max-num-seqs", "2"))
		})
	}
}

func deletedLeavesNoPage(t *testing.T, unloads bool, args []string) {
	s := serveIn(t, t.TempDir(), nil, args...)
	asked := 0
	respond := func(input, members string) (id string) {
		t.Helper()
		var r struct{ ID string }
		s.post("/v1/responses", fmt.Sprintf(`{"model":"demo","temperature":0,`+
			`"max_output_tokens":40,"input":%q%s}`, input, members), &r)
		asked++
		return r.ID
	}
	remove := func(path string) {
		t.Helper()
		if r, text := s.send("DELETE", path, ""); r.StatusCode != 200 {
			t.Errorf("DELETE %s: %s", path, text)
		}
	}
	kept := respond(strings.Repeat("a dragonfly that stays, ", 30), "")

	// all that is deleted
	first := respond(secret(1), "")
	second := respond(secret(2), `,"previous_response_id":"`+first+`"`)
	background := respond(secret(3), `,"background":true`)
	s.eventually("the background response ends", func() bool {
		var r struct{ Status string }
		s.get("/v1/responses/"+background, &r)
		return r.Status != "queued" && r.Status != "in_progress"
	})
	var whole, part struct{ ID string }
	s.post("/v1/conversations", `{}`, &whole)
	s.post("/v1/conversations", `{}`, &part)
	for n := range 2 {
		respond(secret(4+n), `,"conversation":"`+whole.ID+`"`)
		respond(secret(6+n), `,"conversation":"`+part.ID+`"`)
	}
	pages := storedPages(t, s.home)
	if unloads {
		s.eventually("the model is unloaded", func() bool { return len(s.loadedModels()) == 0 })
		s.eventually("pages of a response are written", func() bool {
			for name := range pages[second] {
				if _, ok := diskPages(t, s.home)[name]; ok && !pages[kept][name] {
					return true
				}
			}
			return false
		})
	}
	for _, id := range []string{second, first, background} {
		if len(pages[id]) < 4 {
			t.Errorf("%s has %d pages", id, len(pages[id]))
		}
		remove("/v1/responses/" + id)
	}
	remove("/v1/conversations/" + whole.ID)
	var items struct{ Data []struct{ ID string } }
	s.get("/v1/conversations/"+part.ID+"/items?limit=100", &items)
	for _, item := range items.Data {
		remove("/v1/conversations/" + part.ID + "/items/" + item.ID)
	}

	// all that is not stored
	respond(secret(10), `,"store":false`)
	for path, body := range map[string]string{
		"/v1/chat/completions":       `"messages":[{"role":"user","content":%q}]`,
		"/v1/completions":            `"prompt":%q`,
		"/v1/responses/input_tokens": `"input":%q`,
		"/v1/responses/compact":      `"input":%q`,
	} {
		var answer map[string]any
		s.post(path, fmt.Sprintf(`{"model":"demo","store":false,`+body+`}`, secret(11)), &answer)
	}
	const queries = "vllm:prefix_cache_queries_total"
	var before float64
	if !unloads { // else it begins at 0 again
		before = s.metric(queries)
	}
	s.with("chat", "--model", "demo", "--max-tokens", "400", secret(12))
	if !unloads && s.metric(queries) <= before {
		t.Error("the chat in the terminal has not used the server")
	}

	searchHome := func(when string) {
		t.Helper()
		for name, path := range diskPages(t, s.home) {
			if !pages[kept][name] {
				t.Errorf("%s: %s is no page of the response that was kept", when, path)
			}
		}
		for what, trace := range tracesOf(" zyxomma") {
			if file := fileWith(t, s.home, trace); file != "" {
				t.Errorf("%s: %s has %s", when, file, what)
			}
		}
	}
	if unloads {
		s.eventually("the model is unloaded", func() bool { return len(s.loadedModels()) == 0 })
	}
	searchHome("while it runs")
	if code := s.end(syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d: %s", code, s.err)
	}
	searchHome("after the end")
	if n := len(diskPages(t, s.home)); n < 4 {
		t.Errorf("%d pages of what was kept are on the disk", n)
	}

	// of an earlier server, by one without the option
	s = serveIn(t, s.home, nil, "--max-model-len", "8192")
	remove("/v1/responses/" + kept)
	if left := diskPages(t, s.home); len(left) > 0 {
		t.Errorf("a later server leaves %v", left)
	}
}

// storedPages are the names of the pages of each stored response.
func storedPages(t *testing.T, home string) map[string]map[string]bool {
	t.Helper()
	store := hosttest.Must(records.Open(records.Options{TTL: time.Hour,
		File: filepath.Join(home, "ossrun", "kept.db")}))(t)
	defer store.Close()
	all := map[string]map[string]bool{}
	for _, r := range store.List(records.KindResponse) {
		var s struct{ Pages []kv.Hash }
		hosttest.Check(t, json.Unmarshal(r.Value, &s))
		_, id := records.OwnerOf(r.Key)
		all[id] = map[string]bool{}
		for _, h := range s.Pages {
			all[id][hex.EncodeToString(h[:])] = true
		}
	}
	return all
}

// diskPages are the pages in the cache folder, a path of each by its name.
func diskPages(t *testing.T, home string) map[string]string {
	t.Helper()
	list, pages := hosttest.Must(filepath.Glob(filepath.Join(home, "ossrun", "kv",
		"*.*")))(t), map[string]string{}
	for _, path := range list {
		name, _, _ := strings.Cut(filepath.Base(path), ".")
		pages[name] = path
	}
	return pages
}

// tracesOf are a text and its tokens in each width that a file may have.
func tracesOf(text string) map[string][]byte {
	var packed, narrow, wide []byte
	ids := token.Get().Encode(nil, text)
	for _, id := range ids {
		packed = binary.AppendUvarint(packed, uint64(id))
		narrow = binary.LittleEndian.AppendUint32(narrow, uint32(id))
		wide = binary.LittleEndian.AppendUint64(wide, uint64(id))
	}
	decimal, _ := json.Marshal(ids) // numbers
	traces := map[string][]byte{"the text": []byte(strings.TrimSpace(text)),
		"its tokens, packed": packed, "its tokens, 32 bits": narrow, "its tokens, 64 bits": wide,
		"its tokens, decimal": bytes.Trim(decimal, "[]")}
	for shift := range 3 { // where it may begin in a longer text of base64
		b := base64.StdEncoding.EncodeToString(append(make([]byte, shift), packed...))
		b = strings.TrimRight(b, "=")
		traces[fmt.Sprintf("its tokens, base64 after %d", shift)] =
			[]byte(b[(shift*8+5)/6 : len(b)-1])
	}
	return traces
}

// fileWith is a file below folder that has these bytes; "" for none.
func fileWith(t *testing.T, folder string, trace []byte) (found string) {
	t.Helper()
	hosttest.Check(t, filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return nil // it is gone meanwhile, or a socket
		}
		if b, err := os.ReadFile(path); err == nil && bytes.Contains(b, trace) {
			found = path
		}
		return nil
	}))
	return found
}
