package keys

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/records"
	"github.com/ossrun/ossrun/runtime/session"
)

// add makes a key in a file as ossrun keys add does.
func add(t *testing.T, path, name string, change func(*Key)) (key string) {
	t.Helper()
	k, key := New(name)
	if change != nil {
		change(&k)
	}
	hosttest.Check(t, Change(path, func(all []Key) ([]Key, error) {
		return append(all, k), nil
	}))
	return key
}

func ring(t *testing.T, path string, s records.Store) *Ring {
	t.Helper()
	r := hosttest.Must(Open(path, s, func(line string) { t.Log(line) }))(t)
	return r
}

func TestAChangeCountsAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deep", "keys.json")
	r := ring(t, path, records.NewStore())
	if r.NeedsKey() || r.Find("anything") != nil {
		t.Error("no file asks for a key")
	}
	first := add(t, path, "alice", nil)
	second := add(t, path, "bob", nil)
	for name, key := range map[string]string{"alice": first, "bob": second} {
		if c := r.Find(key); !r.NeedsKey() || c.KeyName() != name {
			t.Errorf("the key of %s is that of %q", name, c.KeyName())
		}
	}
	for _, wrong := range []string{"", first + "x", first[:len(first)-1], strings.ToUpper(first),
		hashOf(first)} {
		if r.Find(wrong) != nil {
			t.Errorf("%q is a key", wrong)
		}
	}
	text, err := os.ReadFile(path)
	if info, _ := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", err, info.Mode())
	}
	for _, key := range []string{first, second} {
		if len(key) < 40 || strings.Contains(string(text), strings.TrimPrefix(key, Prefix)) {
			t.Errorf("%s stands in the file", key)
		}
	}
	id := r.Find(first).ID
	var renewed string
	if err := Change(path, func(all []Key) ([]Key, error) {
		renewed = all[Index(all, "ALICE")].Renew()
		return all, nil
	}); err != nil || r.Find(first) != nil || r.Find(renewed).ID != id {
		t.Error("the old key opens still, or the new one not the same records", err)
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil || r.Find(renewed) == nil ||
		r.Find(first) != nil {
		t.Error("a damaged file changes who may ask", err)
	}
	if err := os.Remove(path); err != nil || r.Find(renewed) != nil || !r.NeedsKey() {
		t.Error("without its keys a port is open to all", err)
	}
}

func TestDamagedFilesAreRefused(t *testing.T) {
	for _, text := range []string{"", "{", "[]", `{"keys":[{"id":"1","name":"a","hash":"00"}]}`,
		`{"keys":[{"id":"","name":"a","hash":"` + hashOf("a") + `"}]}`, `{"keys":{}}`, "\x00"} {
		path := filepath.Join(t.TempDir(), "keys.json")
		hosttest.Check(t, os.WriteFile(path, []byte(text), 0o600))
		if _, err := Open(path, records.NewStore(), nil); err == nil {
			t.Errorf("%q opens a port", text)
		}
		if err := Change(path, func(all []Key) ([]Key, error) { return nil, nil }); err == nil {
			t.Errorf("%q is written over", text)
		}
	}
}

// Programs that change the file at once lose no key.
func TestManyAddAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.json")
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 4 {
				add(t, path, fmt.Sprint("k", i, "-", j), nil)
			}
		})
	}
	all.Wait()
	if keys, err := Load(path); err != nil || len(keys) != 32 {
		t.Errorf("%d keys of 32, %v", len(keys), err)
	}
}

// Another user who could open the lock could hold it, and no key could be taken away.
func TestTheLockIsTheUsersOwn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "folder", "keys.json")
	for _, before := range []os.FileMode{0, 0o644} {
		if before != 0 {
			hosttest.Check(t, os.Chmod(path+".lock", before))
		}
		add(t, path, fmt.Sprint("client ", before), nil)
		info, err := os.Stat(path + ".lock")
		if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
			t.Errorf("the lock: %v, %v", info.Mode(), err)
		}
	}
}

// A minute's requests may come at once; then one comes as the minute goes on.
func TestRate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.json")
	key := add(t, path, "alice", func(k *Key) { k.Rate = 6 })
	r := ring(t, path, records.NewStore())
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	r.now = func() time.Time { return now }
	for i := range 6 {
		if _, why := r.Find(key).Admit(); why != "" {
			t.Fatalf("request %d: %s", i, why)
		}
	}
	for range 3 { // who asks again and again waits no longer
		if after, why := r.Find(key).Admit(); why == "" || after != 10*time.Second {
			t.Errorf("the seventh waits %v: %s", after, why)
		}
	}
	now = now.Add(10 * time.Second)
	if _, why := r.Find(key).Admit(); why != "" {
		t.Error("after what it was told: ", why)
	}
	if _, why := r.Find(key).Admit(); why == "" {
		t.Error("two at once")
	}
}

// Servers with one store share a day; the next day starts at zero, a restart does not.
func TestTokensOfADay(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.json")
	key := add(t, path, "alice", func(k *Key) { k.Tokens = 1000 })
	other := add(t, path, "bob", nil)
	file := filepath.Join(t.TempDir(), "kept.db")
	open := func() records.Store {
		s := hosttest.Must(records.Open(records.Options{File: file, TTL: time.Hour}))(t)
		return s
	}
	now := time.Date(2026, 11, 27, 23, 0, 0, 0, time.UTC)
	var rings []*Ring
	for range 2 {
		s := open()
		defer s.Close()
		r := ring(t, path, s)
		r.now = func() time.Time { return now }
		rings = append(rings, r)
	}
	for _, r := range rings {
		if _, why := r.Find(key).Admit(); why != "" {
			t.Fatal(why)
		}
		r.Find(key).Count(session.Usage{Prompt: 400, Cached: 300, Completion: 150}, nil)
		r.Find(other).Count(session.Usage{Prompt: 7}, nil)
		hosttest.Check(t, r.Flush())
	}
	if after, why := rings[1].Find(key).Admit(); why == "" || after != time.Hour {
		t.Errorf("1,100 of 1,000 tokens: after %v, %q", after, why)
	}
	if _, why := rings[1].Find(other).Admit(); why != "" {
		t.Error("another's tokens: ", why)
	}
	s := open()
	defer s.Close()
	again := ring(t, path, s)
	again.now = func() time.Time { return now }
	if _, why := again.Find(key).Admit(); why == "" {
		t.Error("a restart forgets the day")
	}
	want := Usage{Requests: 2, Prompt: 800, Cached: 600, Completion: 300}
	if got := AllUsage(s)[again.Find(key).ID]["2026-11-27"]; got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	now = now.Add(time.Hour)
	if _, why := again.Find(key).Admit(); why != "" {
		t.Error("the next day: ", why)
	}
}

// Usage is in the store a second later, without any request.
func TestUsageIsWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.json")
	key, s := add(t, path, "alice", nil), records.NewStore()
	synctest.Test(t, func(t *testing.T) {
		r := ring(t, path, s)
		r.Find(key).Count(session.Usage{Prompt: 5}, nil)
		r.Find(key).Count(session.Usage{Completion: 2}, nil)
		time.Sleep(time.Second)
		synctest.Wait()
		all := slices.Collect(maps.Values(AllUsage(s)[r.Find(key).ID]))
		if len(all) != 1 || all[0] != (Usage{Prompt: 5, Completion: 2}) {
			t.Errorf("%+v", all)
		}
	})
}

// Without a named key everything is allowed, and nothing is counted.
func TestNoKey(t *testing.T) {
	var r *Ring
	if r.NeedsKey() || r.Find("x") != nil || r.Owner("x") != nil || r.Flush() != nil ||
		r.Len() != 0 {
		t.Error("no ring has keys")
	}
	var c *Client
	c.Count(session.Usage{Prompt: 1}, nil)
	if _, why := c.Admit(); why != "" || !c.MayUseModel("m") || !c.MayUseTool("python") ||
		c.KeyName() != "" {
		t.Error("no key may not do everything")
	}
}

func TestWhatAKeyMay(t *testing.T) {
	c := &Client{Key: Key{Models: []string{"20B"}, Tools: []string{"browser"}}}
	if !c.MayUseModel("gpt-oss-20b", "20b") || c.MayUseModel("gpt-oss-120b", "120b") ||
		!c.MayUseTool("browser") || c.MayUseTool("python") {
		t.Error("not what it names")
	}
	if c.Tools = []string{}; c.MayUseTool("browser") {
		t.Error("none are some")
	}
}
