package salvage

import (
	"database/sql"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	_ "modernc.org/sqlite" // writes the files that are read

	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// write makes a database with values of every kind, the last of them in the log only.
func write(t testing.TB) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "a.db")
	db := hosttest.Must(sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode(wal)"))(t)
	defer db.Close()
	db.SetMaxOpenConns(1)
	long := strings.Repeat("long ", 4000)
	for _, statement := range []string{"CREATE TABLE a(id INTEGER PRIMARY KEY, v)",
		"INSERT INTO a(v) VALUES (NULL),(0),(1),(-2),(300),(-70000),(1099511627776),(2.5)",
		"INSERT INTO a(v) VALUES ('text'),(x'00ff'),('" + long + "')", "PRAGMA wal_checkpoint",
		"INSERT INTO a(v) VALUES ('log')"} {
		hosttest.Must(db.Exec(statement))(t)
	}
	for _, suffix := range []string{"", "-wal"} {
		b := hosttest.Must(os.ReadFile(path + suffix))(t)
		hosttest.Check(t, os.WriteFile(path+"2"+suffix, b, 0o600))
	}
	return path + "2"
}

func TestRowsAreReadAsSQLiteWroteThem(t *testing.T) {
	path := write(t)
	rows := hosttest.Must(Rows(path))(t)
	var got []any
	for row := range rows {
		if len(row) == 2 { // the others are the schema's
			got = append(got, row[1])
		}
	}
	want := []any{nil, int64(0), int64(1), int64(-2), int64(300), int64(-70000), int64(1 << 40),
		2.5, "text", []byte{0, 0xff}, strings.Repeat("long ", 4000), "log"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v", got)
	}
	if left, damaged := Log(path); !left || damaged {
		t.Error("the log is whole")
	}
}

// Any bytes are read without a panic.
func FuzzRows(f *testing.F) {
	path := write(f)
	db, _ := os.ReadFile(path)
	log, _ := os.ReadFile(path + "-wal")
	f.Add(db, log)
	f.Fuzz(func(t *testing.T, db, log []byte) {
		path := filepath.Join(t.TempDir(), "a.db")
		_ = os.WriteFile(path, db, 0o600)
		_ = os.WriteFile(path+"-wal", log, 0o600)
		Log(path)
		_, _ = Version(path)
		rows := hosttest.Must(Rows(path))(t)
		for range rows {
		}
	})
}
