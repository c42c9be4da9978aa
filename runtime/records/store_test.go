package records

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ossrun/ossrun/harmony/token"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// call is the record of a call's turn as the session writes it.
func call(id int) (key, value string) {
	tokens := func(text string) (b []byte) {
		every := func(string) bool { return true }
		for _, t := range token.Get().EncodeSpecial(nil, text, every) {
			b = binary.AppendUvarint(b, uint64(t))
		}
		return b
	}
	return fmt.Sprint("call:call_", id), fmt.Sprintf(`{"Arguments":"{\"n\":%d}",`+
		`"Segments":[{"Reasoning":true,"Tokens":%q},{"Tokens":%q}]}`, id,
		base64.StdEncoding.EncodeToString(tokens(fmt.Sprintf("<|channel|>analysis<|message|>"+
			"Thought %d.<|end|>", id))), base64.StdEncoding.EncodeToString(tokens(fmt.Sprintf(
			`<|channel|>commentary to=functions.f<|message|>{"n":%d}<|call|>`, id))))
}

func keep(s Store, id int) {
	key, value := call(id)
	_ = s.Put(Record{Kind: KindTurn, Key: key, Value: []byte(value)})
}

// known tells whether s has a call as it was put.
func known(t *testing.T, s Store, id int) bool {
	t.Helper()
	key, want := call(id)
	got, ok := s.Get(KindTurn, key)
	if ok && string(got.Value) != want {
		t.Fatalf("call %d came back as %s", id, got.Value)
	}
	return ok
}

func openFile(t *testing.T, file string, bounds map[Kind]Bound) (s *diskStore, notes *[]string) {
	t.Helper()
	notes = new([]string)
	store := hosttest.Must(Open(Options{File: file, TTL: time.Hour, Bounds: bounds,
		Notify: func(note string) { *notes = append(*notes, note) }}))(t)
	t.Cleanup(func() { store.Close() })
	return store.(*diskStore), notes
}

func TestSampledTurnsOutliveTheProcess(t *testing.T) {
	defer goleak.VerifyNone(t)
	file := filepath.Join(t.TempDir(), "state", "kept.db")
	s, _ := openFile(t, file, nil)
	for id := range 5 {
		keep(s, id)
	}
	// as after kill -9: never closed
	killed := filepath.Join(t.TempDir(), "killed")
	hosttest.Check(t, os.CopyFS(killed, os.DirFS(filepath.Dir(file))))
	k, notes := openFile(t, filepath.Join(killed, "kept.db"), nil)
	for id := range 5 {
		if !known(t, k, id) {
			t.Errorf("call %d is forgotten", id)
		}
	}
	if len(*notes) > 0 {
		t.Errorf("%q", *notes)
	}
	k.now = func() time.Time { return time.Now().Add(2 * time.Hour) }
	if known(t, k, 1) {
		t.Error("a call is remembered beyond its time")
	}
	k.Close()
	s.Close()
	for _, name := range []string{"kept.db", "kept.db.lock"} {
		if info, err := os.Stat(filepath.Join(filepath.Dir(file), name)); err != nil ||
			runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info, err)
		}
	}
	keep(s, 7)
	if !known(t, s, 7) || s.Refused() != 1 {
		t.Error("a record that comes after the end is kept nowhere")
	}
}

// A chat and a server have the store at once, and each finds what the other has put.
func TestTwoProcessesShareAStore(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kept.db")
	a, _ := openFile(t, file, nil)
	b, _ := openFile(t, file, nil)
	var wg sync.WaitGroup
	for i, s := range []*diskStore{a, b} {
		wg.Go(func() {
			for n := range 200 {
				keep(s, 2*n+i)
			}
		})
	}
	wg.Wait()
	for n := range 400 {
		if !known(t, a, n) || !known(t, b, n) {
			t.Fatalf("call %d is not in both", n)
		}
	}
	if n := a.Refused() + b.Refused(); n > 0 {
		t.Errorf("%d were refused", n)
	}
}

func TestTheFileIsBounded(t *testing.T) {
	file, small := filepath.Join(t.TempDir(), "kept.db"), map[Kind]Bound{KindTurn: {Bytes: 10_000}}
	s, _ := openFile(t, file, small)
	const calls = 1000
	for id := range calls {
		keep(s, id)
	}
	s.Close()
	// without a bound it has 270 bytes for each call
	if info, err := os.Stat(file); err != nil || info.Size() > int64(200*calls) {
		t.Errorf("%d bytes for 10,000 of values, %v", info.Size(), err)
	}
	if s, _ = openFile(t, file, small); !known(t, s, calls-1) || known(t, s, 10) {
		t.Error("not the last ones were kept")
	}
}

// Random faults in the file or its log: each is noticed if it costs a record, costs
// the records of at most two pages, and leaves a store that takes new records. A file that was
// closed in order is not read when it is opened: it is used first, what that refused is there
// afterwards, and what it did not meet is noticed after the next unclean end.
func TestDamagedFilesAreSalvaged(t *testing.T) {
	const records = 80
	folder := t.TempDir()
	s, _ := openFile(t, filepath.Join(folder, "kept.db"), nil)
	random := rand.New(rand.NewPCG(3, 4))
	size := func(id int) int { return 1 + id*id%6000 } // some on overflow pages
	put := func(id int) {
		s.Put(Record{Kind: KindResponse, Key: fmt.Sprint(id),
			Also:  []string{fmt.Sprint("also", id)},
			Value: bytes.Repeat([]byte{'a' + byte(id%26)}, size(id))})
	}
	for id := range records {
		put(id)
	}
	gone := map[int]bool{}
	for id := 7; id < records; id += 31 {
		gone[id] = true
		s.Delete(KindResponse, fmt.Sprint(id))
	}
	for id := records / 2; id < records; id++ { // so that half of them are in the log
		if !gone[id] {
			put(id)
		}
	}
	closed := t.TempDir() // the same without a log
	hosttest.Check(t, os.CopyFS(closed, os.DirFS(folder)))
	c, _ := openFile(t, filepath.Join(closed, "kept.db"), nil)
	c.Close()
	faults, lostSome, damaged := 60, 0, 0
	if os.Getenv("OSSRUN_LONG") != "" { // as in CI's step long-forms
		faults = 1000
	}
	for n := range faults {
		copied := t.TempDir()
		hosttest.Check(t, os.CopyFS(copied, os.DirFS([]string{folder, closed}[n%2])))
		file := filepath.Join(copied, "kept.db")
		os.Remove(file + "-shm") // as after a restart of the machine
		what := damage(t, file, random)
		c, notes := openFile(t, file, nil)
		if n%2 == 1 {
			c.List(KindResponse)
			keep(c, 9)
			told, err := len(*notes), c.Close()
			if err == nil {
				err = os.WriteFile(file+"-wal", nil, 0o600) // as a kill leaves it
			}
			if err != nil {
				t.Fatalf("fault %d, %s: %v", n, what, err)
			}
			if c, notes = openFile(t, file, nil); told > 0 {
				*notes = append(*notes, "by the first use")
			}
			if !known(t, c, 9) {
				t.Errorf("fault %d, %s: what was put after it is lost", n, what)
			}
		}
		found := map[int]bool{}
		for _, r := range c.List(KindResponse) {
			id, err := strconv.Atoi(r.Key)
			if err != nil || gone[id] || len(r.Value) != size(id) {
				t.Fatalf("fault %d, %s: %s has %d bytes", n, what, r.Key, len(r.Value))
			}
			found[id] = true
		}
		lost := records - len(gone) - len(found)
		if id := n % records; found[id] {
			if r, ok := c.Get(KindResponse, fmt.Sprint("also", id)); ok && r.Key != fmt.Sprint(id) {
				t.Fatalf("fault %d, %s: the other key of %d leads to %s", n, what, id, r.Key)
			}
		}
		if lost > 30 {
			t.Errorf("fault %d, %s: %d of %d are lost; %q", n, what, lost, records, *notes)
		}
		if lost > 0 {
			lostSome++
		}
		if len(*notes) > 0 {
			damaged++
		} else if lost > 0 && !strings.Contains(what, "end is cut") {
			t.Errorf("fault %d, %s: %d records were lost without a word", n, what, lost)
		}
		if keep(c, 9); !known(t, c, 9) || c.Refused() > 0 {
			t.Fatalf("fault %d, %s: no record is taken any more", n, what)
		}
		c.Close()
		os.RemoveAll(copied)
	}
	t.Logf("%d faults: %d were noticed, %d cost records", faults, damaged, lostSome)
	if damaged < faults/4 {
		t.Errorf("only %d of %d faults were noticed", damaged, faults)
	}
}

// damage flips a bit, clears a page or cuts off the end of the file or of its log.
func damage(t *testing.T, file string, random *rand.Rand) (what string) {
	t.Helper()
	if _, err := os.Stat(file + "-wal"); err == nil && random.IntN(2) == 0 {
		file += "-wal"
	}
	b := hosttest.Must(os.ReadFile(file))(t)
	at := random.IntN(len(b))
	what = fmt.Sprintf("at %d of %s", at, filepath.Base(file))
	switch random.IntN(8) {
	case 0:
		b, what = b[:max(0, len(b)-random.IntN(6000))], "the end is cut off "+what
	case 1:
		clear(b[at&^4095 : min(len(b), at&^4095+4096)])
		what = "a page is cleared " + what
	default:
		b[at] ^= 1 << random.IntN(8)
		what = "a bit is flipped " + what
	}
	hosttest.Check(t, os.WriteFile(file, b, 0o600))
	return what
}

// What a client stores by name outlives what this program remembers; nothing outlives no time.
func TestHowLongRecordsAreKept(t *testing.T) {
	for ttl, want := range map[time.Duration]map[Kind]int{ // days
		0: {KindFile: 0, KindBatch: 0, KindCompletion: 0, KindResponse: 0, KindUsage: 400},
		48 * time.Hour: {KindFile: 30, KindContent: 30, KindBatch: 30, KindCompletion: 30,
			KindResponse: 2, KindTurn: 2, KindConversation: 2, KindRunning: 2, KindUsage: 400},
	} {
		s := newMemoryStore(Options{TTL: ttl}.withDefaults())
		for kind, days := range want {
			made := time.Now()
			for _, age := range []time.Duration{time.Millisecond, -time.Millisecond} {
				s.now = func() time.Time { return made }
				hosttest.Check(t, s.Put(Record{Kind: kind, Key: "k"}))
				s.now = func() time.Time {
					return made.Add(time.Duration(days)*24*time.Hour - age)
				}
				if _, ok := s.Get(kind, "k"); ok != (age > 0) {
					t.Errorf("%s, remembered for %s, after %d days: %v", kind, ttl, days, ok)
				}
			}
		}
	}
}

// The least recently used go first, and with a record all of its keys go.
func TestTheStoreIsBounded(t *testing.T) {
	small := map[Kind]Bound{KindResponse: {Count: 3, Bytes: 10_000}}
	disk, _ := openFile(t, filepath.Join(t.TempDir(), "kept.db"), small)
	for name, s := range map[string]Store{"disk": disk,
		"memory": newMemoryStore(Options{TTL: time.Hour, Bounds: small})} {
		t.Run(name, func(t *testing.T) { storeIsBounded(t, s) })
	}
}

func storeIsBounded(t *testing.T, s Store) {
	put := func(id string, size int) {
		s.Put(Record{Kind: KindResponse, Key: id, Also: []string{"item_" + id},
			Value: []byte(strings.Repeat("x", size))})
	}
	for _, id := range []string{"a", "b", "c"} {
		put(id, 100)
	}
	if r, ok := s.Get(KindResponse, "item_a"); !ok || r.Key != "a" { // the most recently used now
		t.Fatal("a is gone")
	}
	put("d", 100)
	check := func(want ...string) {
		t.Helper()
		var got []string
		for _, r := range s.List(KindResponse) {
			got = append(got, r.Key)
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("kept %v, want %v", got, want)
		}
		if m, ok := s.(*memoryStore); ok && len(m.byKey) != 2*len(want) {
			t.Errorf("%d keys of %d records", len(m.byKey), len(want))
		}
	}
	check("a", "c", "d")
	put("e", 9_850)
	check("d", "e")
	if err := s.Put(Record{Kind: KindResponse, Key: "f",
		Value: make([]byte, 10_001)}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a record larger than all may be: %v", err)
	}
	check("d", "e")
	for key, want := range map[string]bool{"item_d": false, "d": true, "e": true} {
		if ok, err := s.Delete(KindResponse, key); ok != want || err != nil {
			t.Errorf("Delete(%s) is %t, %v: a record is deleted by its key and by no other", key,
				ok, err)
		}
	}
	check()
	if m, ok := s.(*memoryStore); ok && len(m.owners)+m.total[KindResponse].bytes != 0 {
		t.Errorf("%v of nothing", m.total)
	}
}

// One owner fills a store, others put little: nothing of theirs is pushed out, by any kind.
func TestOwnersPushOutTheirOwn(t *testing.T) {
	small := map[Kind]Bound{}
	for kind := range bounds {
		small[kind] = Bound{Count: 21, Bytes: 2100, Forever: true}
	}
	disk, _ := openFile(t, filepath.Join(t.TempDir(), "kept.db"), small)
	for name, all := range map[string]Store{"disk": disk,
		"memory": newMemoryStore(Options{TTL: time.Hour, Bounds: small})} {
		for kind := range small {
			for _, size := range []int{1, 200} { // what is short: records, or bytes
				t.Run(fmt.Sprint(name, " ", kind, " ", size), func(t *testing.T) {
					ownersPushOut(t, all, kind, size)
				})
			}
		}
	}
}

func ownersPushOut(t *testing.T, all Store, kind Kind, size int) {
	put := func(owner string, n int) (err error) {
		s := Owned(all, owner)
		for i := range n {
			err = errors.Join(err, s.Put(Record{Kind: kind, Key: fmt.Sprint("k", i),
				Value: []byte(strings.Repeat("x", size))}))
		}
		return err
	}
	hosttest.Check(t, put("flood", 40))
	for i, owner := range []string{"", "a", "b"} {
		if err := put(owner, 1); err != nil {
			t.Errorf("client %q has no room beside one that floods: %v", owner, err)
		}
		hosttest.Check(t, put("flood", 40))
		for _, earlier := range []string{"", "a", "b"}[:i+1] {
			if n := len(Owned(all, earlier).List(kind)); n != 1 {
				t.Errorf("%d records of %q are left of 1", n, earlier)
			}
		}
	}
	least := map[int]int{1: 18, 200: 6}[size] // of 24 records, of 2,400 bytes
	if n := len(Owned(all, "flood").List(kind)); n < least {
		t.Errorf("the flooding one has %d, of its share of %d or more", n, least)
	}
	var full error
	for i := 0; i < 100 && full == nil; i++ { // each has something: at last there is nothing left
		full = Owned(all, fmt.Sprint("c", i)).Put(Record{Kind: kind, Key: "k", Value: []byte(
			strings.Repeat("x", size))})
	}
	if !errors.Is(full, ErrFull) {
		t.Errorf("a hundred owners have more than all may: %v", full)
	}
	for _, r := range all.List(kind) {
		hosttest.Must(all.Delete(kind, r.Key))(t)
	}
}

// A change is applied completely or not at all, and no other write intervenes: two processes that
// extend one record lose nothing.
func TestChangesOfTwoProcesses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kept.db")
	if add := os.Getenv("ADD_TO_STORE"); add != "" {
		file = add
	}
	s, _ := openFile(t, file, nil)
	add := func() {
		for range 100 {
			if err := s.Change(func(c *Change) error {
				r, _ := c.Get(KindConversation, "a")
				return c.Put(Record{Kind: KindConversation, Key: "a", Value: append(
					slices.Clone(r.Value), 'x')})
			}); err != nil {
				t.Error(err)
			}
		}
	}
	if os.Getenv("ADD_TO_STORE") != "" {
		add()
		return
	}
	other := exec.Command(os.Args[0], "-test.run=^TestChangesOfTwoProcesses$")
	other.Env = append(os.Environ(), "ADD_TO_STORE="+file)
	var wg sync.WaitGroup
	wg.Go(func() {
		if out, err := other.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
	add()
	wg.Wait()
	if r, _ := s.Get(KindConversation, "a"); len(r.Value) != 200 {
		t.Errorf("%d of 200 are there", len(r.Value))
	}
	stop := errors.New("stop")
	for name, s := range map[string]Store{"disk": s, "memory": NewStore()} {
		_ = s.Put(Record{Kind: KindChat, Key: "b", Value: []byte("b")})
		err := s.Change(func(c *Change) error {
			c.Delete(KindChat, "b")
			if _, ok := c.Get(KindChat, "b"); ok {
				t.Error("a change does not see itself")
			}
			return stop
		})
		if _, ok := s.Get(KindChat, "b"); !ok || err != stop {
			t.Errorf("%s: a change that failed was done, %v", name, err)
		}
	}
}

// What must not be on a disk is found by this process alone.
// A record without a value is stored like any other.
func TestEmptyRecordsAreStored(t *testing.T) {
	s, notes := openFile(t, filepath.Join(t.TempDir(), "kept.db"), nil)
	defer s.Close()
	for key, value := range map[string][]byte{"nil": nil, "empty": {}} {
		hosttest.Check(t, s.Put(Record{Kind: KindContent, Key: key, Value: value}))
		if err := s.Unsaved(KindContent, key); err != nil {
			t.Errorf("%s: %v", key, err)
		}
		if r, ok := s.Get(KindContent, key); !ok || len(r.Value) > 0 {
			t.Errorf("%s: %v %v", key, r, ok)
		}
	}
	if len(*notes) > 0 {
		t.Error(*notes)
	}
}

func TestInMemoryRecordsStayThere(t *testing.T) {
	folder := t.TempDir()
	s, _ := openFile(t, filepath.Join(folder, "kept.db"), nil)
	_ = s.Put(Record{Kind: KindTurn, Key: "call:a", Value: []byte("SECRET"), InMemory: true})
	if _, ok := s.Get(KindTurn, "call:a"); !ok {
		t.Error("it is not found")
	}
	files, _ := filepath.Glob(filepath.Join(folder, "*"))
	for _, name := range files {
		if text, err := os.ReadFile(name); err != nil || bytes.Contains(text, []byte("SECRET")) {
			t.Errorf("%s has it, or %v", name, err)
		}
	}
	if ok, err := s.Delete(KindTurn, "call:a"); !ok || err != nil {
		t.Error(ok, err)
	}
	if _, ok := s.Get(KindTurn, "call:a"); ok {
		t.Error("it was not deleted")
	}
}

// Of the damaged files the last two stay, each with its log.
func TestDamagedFilesAreBounded(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "kept.db")
	for range 4 {
		hosttest.Check(t, os.WriteFile(file, []byte(strings.Repeat("no database", 1000)), 0o600))
		s, notes := openFile(t, file, nil)
		if len(*notes) != 1 {
			t.Errorf("%q", *notes)
		}
		s.Close()
		last, _ := filepath.Glob(file + ".damaged-*")
		hosttest.Check(t, os.WriteFile(last[len(last)-1]+"-wal", nil, 0o600))
	}
	left, _ := filepath.Glob(file + ".damaged-*")
	if len(left) != 2*maxDamagedFiles || !strings.HasPrefix(left[1], left[0]) ||
		!strings.HasPrefix(left[3], left[2]) {
		t.Errorf("%q are left", left)
	}
}
