package records

// Files of earlier, later and other programs. testdata/versions has one of each release's form.

import (
	"bufio"
	"database/sql"
	"database/sql/driver"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"modernc.org/sqlite"

	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// longAgo keeps what a file had when it was made.
const longAgo = 100 * 365 * 24 * time.Hour

// earlier copies a file of testdata/versions, and its log if it has one.
func earlier(t *testing.T, name string) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "kept.db")
	for _, suffix := range []string{"", "-wal"} {
		b, err := os.ReadFile(filepath.Join("../../testdata/versions", name+suffix))
		if errors.Is(err, os.ErrNotExist) && suffix != "" {
			continue
		}
		if err == nil {
			err = os.WriteFile(file+suffix, b, 0o600)
		}
		hosttest.Check(t, err)
	}
	return file
}

// openAs opens a file as the release with these steps does.
func openAs(t *testing.T, file string, steps []string) (s *diskStore, notes *[]string, err error) {
	t.Helper()
	notes = new([]string)
	o := Options{File: file, TTL: longAgo,
		Notify: func(note string) { *notes = append(*notes, note) }}
	s, err = openSteps(o.withDefaults(), steps)
	if err == nil {
		t.Cleanup(func() { s.Close() })
	}
	return s, notes, err
}

// holding opens a file and fails if it was reported damaged or lacks one of the calls.
func holding(t *testing.T, file string, steps []string, calls ...int) *diskStore {
	t.Helper()
	s, notes, err := openAs(t, file, steps)
	hosttest.Check(t, err)
	for _, id := range calls {
		if !known(t, s, id) {
			t.Errorf("call %d is forgotten", id)
		}
	}
	if aside, _ := filepath.Glob(file + ".damaged*"); len(*notes) > 0 || len(aside) > 0 {
		t.Fatalf("%q, %q", *notes, aside)
	}
	return s
}

func shut(t *testing.T, s *diskStore) {
	t.Helper()
	hosttest.Check(t, s.Close())
}

// change runs a statement on a closed file.
func change(t *testing.T, file string, statements ...string) {
	t.Helper()
	db := hosttest.Must(connect(file))(t)
	defer db.Close()
	for _, statement := range statements {
		if _, err := db.Exec(statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// contents are all files of a store's folder but its lock.
func contents(t *testing.T, file string) map[string]string {
	t.Helper()
	all := map[string]string{}
	list := hosttest.Must(filepath.Glob(file + "*"))(t)
	for _, name := range list {
		if b, err := os.ReadFile(name); err != nil {
			t.Fatal(err)
		} else if !strings.HasSuffix(name, ".lock") {
			all[filepath.Base(name)] = string(b)
		}
	}
	return all
}

// asRelease0 does what the release before versions did with a file when it opened it, and puts a
// record by its statements. What it found there, it would have put aside.
func asRelease0(t *testing.T, file string, id int) {
	t.Helper()
	db := hosttest.Must(connect(file))(t)
	defer db.Close()
	memory := hosttest.Must(sql.Open("sqlite", ":memory:"))(t)
	defer memory.Close()
	memory.SetMaxOpenConns(1)
	var is, want, verdict string
	const statements = "SELECT group_concat(sql) FROM (SELECT sql FROM sqlite_schema ORDER BY name)"
	for db, text := range map[*sql.DB]*string{db: &is, memory: &want} {
		hosttest.Must(db.Exec(steps[0]))(t)
		hosttest.Check(t, db.QueryRow(statements).Scan(text))
	}
	if err := db.QueryRow("PRAGMA integrity_check(1)").Scan(&verdict); err != nil ||
		verdict != "ok" || is != want {
		t.Fatalf("%v, %s, its schema is\n%s\nnot\n%s", err, verdict, is, want)
	}
	rows := hosttest.Must(db.Query("SELECT kind, key, also, used, sum, value FROM record"))(t)
	for rows.Next() {
		hosttest.Must(scan(rows))(t)
	}
	hosttest.Check(t, errors.Join(rows.Err(), rows.Close()))
	key, value := call(id)
	r := Record{Kind: KindTurn, Key: key, Value: []byte(value)}
	if _, err := db.Exec("INSERT INTO record(kind, key, also, used, sum, value) VALUES(?, ?, ?, ?, "+
		"?, ?)", r.Kind, r.Key, "[]", time.Now().UnixNano(), checksum(r, "[]"),
		[]byte(value)); err != nil {
		t.Fatal(err)
	}
}

// A file of the release before versions is opened, whether it was closed or its process killed, and
// gets a version; that release goes on with it, and this one with that.
func TestReleasesInTurns(t *testing.T) {
	for name, calls := range map[string][]int{"kept-0.db": {0, 1, 2}, "killed-0.db": {0, 1, 3}} {
		t.Run(name, func(t *testing.T) {
			file := earlier(t, name)
			s := holding(t, file, steps, calls...)
			if name == "killed-0.db" && (!s.unclean || known(t, s, 2)) {
				t.Error("what a killed process left was not looked at, or what it deleted is back")
			}
			if name == "kept-0.db" {
				if r, ok := s.Get(KindResponse, "item of long"); !ok || len(r.Value) != 9002 {
					t.Errorf("%d bytes, %v", len(r.Value), ok)
				}
			}
			for id := 10; id < 20; id += 2 {
				keep(s, id)
				shut(t, s)
				asRelease0(t, file, id+1)
				calls = append(calls, id, id+1)
				s = holding(t, file, steps, calls...)
			}
			shut(t, s)
			var version int
			db, err := connect(file)
			if err == nil {
				err = errors.Join(db.QueryRow("PRAGMA user_version").Scan(&version), db.Close())
			}
			if err != nil || version != 1 {
				t.Errorf("version %d, %v", version, err)
			}
		})
	}
}

// What another program adds to the schema is no damage, and is there after a turn of ours.
func TestWhatOthersAddStays(t *testing.T) {
	added := []string{"CREATE INDEX another ON record(used)",
		"CREATE TABLE more(x); INSERT INTO more VALUES(7)", "CREATE VIEW seen AS SELECT key FROM record",
		"ALTER TABLE record ADD COLUMN pinned INTEGER NOT NULL DEFAULT 0",
		"CREATE TRIGGER theirs AFTER INSERT ON record BEGIN INSERT INTO more VALUES(new.id); END"}
	for n := range added {
		file := earlier(t, "kept-0.db")
		change(t, file, added[:n+1]...)
		s := holding(t, file, steps, 0, 1, 2)
		keep(s, 3)
		shut(t, s)
		s = holding(t, file, steps, 0, 1, 2, 3)
		if s.Refused() > 0 {
			t.Errorf("with %q a record is refused", added[n])
		}
		shut(t, s)
		for i, query := range []string{"SELECT 1 FROM sqlite_schema WHERE name = 'another'",
			"SELECT x FROM more", "SELECT key FROM seen", "SELECT pinned FROM record",
			"SELECT 1 FROM sqlite_schema WHERE name = 'theirs'"} {
			if i <= n {
				change(t, file, query)
			}
		}
	}
	file := earlier(t, "kept-0.db") // and does not keep a damaged file from being salvaged
	change(t, file, added[3], "PRAGMA user_version = -1")
	s, notes, err := openAs(t, file, steps)
	if err != nil || len(*notes) != 1 || !known(t, s, 0) || !known(t, s, 2) {
		t.Errorf("%v, %q", err, *notes)
	}
}

// A changed schema is damage.
func TestAChangedSchemaIsDamage(t *testing.T) {
	for _, statement := range []string{"DROP INDEX record_used", "DROP TRIGGER record_added",
		"DROP INDEX record_used; CREATE INDEX record_used ON record(kind, used, key)",
		"ALTER TABLE total RENAME COLUMN bytes TO octets",
		"ALTER TABLE other_key ADD COLUMN note TEXT", "ALTER TABLE total ADD COLUMN note TEXT"} {
		file := earlier(t, "kept-0.db")
		change(t, file, "PRAGMA user_version = 1", statement)
		s, notes, err := openAs(t, file, steps)
		if err != nil || len(*notes) != 1 || !known(t, s, 0) || !known(t, s, 2) {
			t.Errorf("%s: %v, %q", statement, err, *notes)
		}
		if r, ok := s.Get(KindResponse, "item of long"); !ok || r.Key != "long" {
			t.Errorf("%s: the other key leads to %q", statement, r.Key)
		}
	}
}

// next are the steps of a later release: it has another table and moves something into it.
var next = append(slices.Clip(steps), "CREATE TABLE later(key TEXT); INSERT INTO later SELECT key "+
	"FROM record; ALTER TABLE record ADD COLUMN later INTEGER")

// A newer file is refused in one sentence, and not a byte of it or of its log is another, whether
// its process has ended, was killed or has it open.
func TestANewerFileIsLeftAlone(t *testing.T) {
	closed := earlier(t, "kept-0.db")
	n := holding(t, closed, next, 0, 1, 2)
	keep(n, 4)
	refused := func(file string) {
		t.Helper()
		before := contents(t, file)
		s, err := Open(Options{File: file, TTL: time.Hour})
		if err == nil {
			s.Close()
			t.Fatal("it was opened")
		}
		if want := "open the store of turns and responses: a newer ossrun wrote " + file + ": it has " +
			"version 2, and this program knows versions up to 1"; err.Error() != want {
			t.Errorf("%v", err)
		}
		if after := contents(t, file); fmt.Sprint(after) != fmt.Sprint(before) {
			t.Error("its files have changed")
		}
	}
	refused(closed)
	killed := filepath.Join(t.TempDir(), "kept.db")
	for name, text := range contents(t, closed) {
		hosttest.Check(t, os.WriteFile(filepath.Join(filepath.Dir(killed), name), []byte(text),
			0o600))
	}
	os.Remove(killed + "-shm") // as after a restart of the machine
	refused(killed)
	shut(t, n)
	refused(closed)
	n = holding(t, closed, next, 0, 1, 2, 4)
	shut(t, n)
	log := earlier(t, "kept-0.db") // only the log has the version
	db, err := connect(log)
	if err == nil {
		_, err = upgrade(db, next)
	}
	hosttest.Check(t, err)
	refused(log)
	hosttest.Check(t, db.Close())
}

// While an older release has the file open, a newer one does not change it under its hands.
func TestAnUpgradeWaitsForOlderProcesses(t *testing.T) {
	file := earlier(t, "kept-0.db")
	s := holding(t, file, steps, 0)
	if _, _, err := openAs(t, file, next); err == nil || !strings.HasSuffix(err.Error(),
		"an older ossrun has "+file+" open, whose version 1 is to become 2: end that one first") {
		t.Errorf("%v", err)
	}
	keep(s, 5)
	shut(t, s)
	n := holding(t, file, next, 0, 1, 2, 5)
	shut(t, n)
	// a new file has no older process
	shut(t, holding(t, filepath.Join(t.TempDir(), "kept.db"), next))
}

// stuck is a step in whose middle the process of TestUpgradeIsKilled waits.
var stuck = append(slices.Clip(steps), "CREATE TABLE later AS WITH RECURSIVE n(i) AS (SELECT 1 UNION "+
	"ALL SELECT i+1 FROM n LIMIT 5000) SELECT randomblob(4000) FROM n; DELETE FROM record; "+
	"SELECT wait_here()")

var upgrading = flag.String("upgrading", "", "the store that this process is killed over")

// A process that is killed in the middle of a step leaves the older version, and both releases open
// it.
func TestUpgradeIsKilled(t *testing.T) {
	if file := *upgrading; file != "" {
		sqlite.MustRegisterScalarFunction("wait_here", 0, func(*sqlite.FunctionContext,
			[]driver.Value) (driver.Value, error) {
			fmt.Println("in the middle")
			select {}
		})
		_, _, err := openAs(t, file, stuck)
		t.Fatal(err)
	}
	for _, name := range []string{"kept-0.db", "killed-0.db"} {
		file := earlier(t, name)
		child := exec.Command(os.Args[0], "-test.run=^TestUpgradeIsKilled$", "-upgrading", file)
		out, err := child.StdoutPipe()
		if err == nil {
			err = child.Start()
		}
		hosttest.Check(t, err)
		line, err := bufio.NewReader(out).ReadString('\n')
		if err := errors.Join(err, child.Process.Kill()); err != nil || line != "in the middle\n" {
			t.Fatalf("%q, %v", line, err)
		}
		_ = child.Wait()
		if log, err := os.Stat(file + "-wal"); err != nil || log.Size() < 4<<20 {
			t.Errorf("%v: the step has written nothing before the kill", err)
		}
		s := holding(t, file, steps, 0, 1)
		if !s.unclean {
			t.Error("the file is not checked after a kill")
		}
		keep(s, 6)
		shut(t, s)
		n := holding(t, file, next, 0, 1, 6)
		shut(t, n)
	}
}

// A cleanly closed file is not checked at the next open. Damage is reported when it is found, and
// repaired when the store is closed, with the records refused meanwhile.
func TestDamageIsMetAfterAnOrderlyEnd(t *testing.T) {
	file := earlier(t, "kept-0.db")
	change(t, file, "UPDATE record SET value = x'00' WHERE key = 'call:call_1'",
		"UPDATE record SET sum = sum + 1 WHERE key = 'call:call_2'",
		"PRAGMA writable_schema = on", "UPDATE sqlite_schema SET rootpage = 1 WHERE name = 'record_used'")
	s, notes, err := openAs(t, file, steps)
	if err != nil || len(*notes) > 0 || !known(t, s, 0) || known(t, s, 1) || len(*notes) != 1 {
		t.Fatalf("%v, %q", err, *notes)
	}
	keep(s, 7) // the index does not take it
	if s.Refused() != 1 || !known(t, s, 7) {
		t.Errorf("%d refused, %q", s.Refused(), *notes)
	}
	shut(t, s)
	if last := (*notes)[len(*notes)-1]; !strings.Contains(last, "are rescued") {
		t.Errorf("%q", *notes)
	}
	s, notes, err = openAs(t, file, steps)
	if err != nil || len(*notes) > 0 || !known(t, s, 0) || known(t, s, 1) || known(t, s, 2) ||
		!known(t, s, 7) {
		t.Errorf("%v, %q", err, *notes)
	}
}
