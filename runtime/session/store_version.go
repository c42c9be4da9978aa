// The versions of the store's file.
//
// PRAGMA user_version counts the forms that the file has had. It goes up with every change that the
// release before would read wrongly or would lose: of a table, of a trigger, of what a record's
// value says. A further index, a further table or, in the table of records, a column with a default
// is none of that: a file that has one is used as it is.
//
// What must stay true: an older file is brought to this version in one transaction, while no other
// process has it open; so kill -9 leaves one version or the other, and no older program writes
// beside a newer one. Of a newer file not a byte changes.

package session

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/ossrun/ossrun/models/store"
	"github.com/ossrun/ossrun/runtime/session/salvage"
)

// steps lead from each version to the next. What a step says never changes, blanks included.
//
// The first one makes a new file. It also takes over one of the releases before versions, which had
// this schema and user_version 0. Those know no version, but compare the schema's text: a file of
// version 1 they use like their own, one with anything more in its schema they put aside, and take
// its records over into a new one.
//
// It has one table of records. Their other keys and the totals of each kind are kept by triggers,
// so no statement that deletes can forget them.
var steps = []string{`
CREATE TABLE IF NOT EXISTS record(
  id INTEGER PRIMARY KEY, kind TEXT NOT NULL, key TEXT NOT NULL, also TEXT NOT NULL,
  used INTEGER NOT NULL, sum INTEGER NOT NULL, value BLOB NOT NULL);
CREATE UNIQUE INDEX IF NOT EXISTS record_key ON record(kind, key);
CREATE INDEX IF NOT EXISTS record_used ON record(kind, used);
CREATE TABLE IF NOT EXISTS other_key(
  kind TEXT NOT NULL, key TEXT NOT NULL, record INTEGER NOT NULL,
  PRIMARY KEY(kind, key)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS other_key_record ON other_key(record);
CREATE TABLE IF NOT EXISTS total(
  kind TEXT PRIMARY KEY, records INTEGER NOT NULL, bytes INTEGER NOT NULL) WITHOUT ROWID;
CREATE TRIGGER IF NOT EXISTS record_added AFTER INSERT ON record BEGIN
  INSERT INTO other_key SELECT new.kind, value, new.id FROM json_each(new.also) WHERE true
    ON CONFLICT DO UPDATE SET record = excluded.record;
  INSERT INTO total VALUES(new.kind, 1, length(new.value))
    ON CONFLICT DO UPDATE SET records = records + 1, bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER IF NOT EXISTS record_deleted AFTER DELETE ON record BEGIN
  DELETE FROM other_key WHERE record = old.id;
  UPDATE total SET records = records - 1, bytes = bytes - length(old.value)
    WHERE kind = old.kind;
END;`}

// prepare refuses a newer file before SQLite opens it, and does what needs the file alone: it looks
// at the log that an ended process has left, and brings an older file to this version.
func (s *diskStore) prepare() error {
	version, err := salvage.Version(s.o.File)
	if err == nil {
		err = s.notNewer(version)
	}
	if err != nil {
		return err
	}
	lock, err := store.TryLock(s.lockPath())
	if errors.Is(err, store.ErrLocked) {
		return nil // who has the file open has looked
	}
	if err == nil { // else there are no locks here
		defer lock.Close() //nolint:errcheck // the file is closed, which gives up the lock
		var damaged bool
		if s.unclean, damaged = salvage.Log(s.o.File); damaged {
			return fmt.Errorf("%w: its log is not what was written", errDamaged)
		}
	}
	if version == len(s.steps) {
		return nil
	}
	db, err := connect(s.o.File)
	if err == nil {
		_, err = upgrade(db, s.steps)
		err = errors.Join(err, db.Close())
	}
	return err
}

func (s *diskStore) notNewer(version int) error {
	if version <= len(s.steps) {
		return nil
	}
	return fmt.Errorf("a newer ossrun wrote %s: it has version %d, and this program knows "+
		"versions up to %d", s.o.File, version, len(s.steps))
}

// current brings a file to version 1, which changes nothing for those that have it open, and holds
// that it is of this version then.
func (s *diskStore) current() error {
	version, err := upgrade(s.db, s.steps[:1])
	if err == nil {
		err = s.notNewer(version)
	}
	if err == nil && version < len(s.steps) {
		err = fmt.Errorf("an older ossrun has %s open, whose version %d is to become %d: end "+
			"that one first", s.o.File, version, len(s.steps))
	}
	return err
}

// upgrade takes the steps that the file has not had, and gives the version that it has now.
func upgrade(db *sql.DB, steps []string) (version int, err error) {
	read := func(from interface{ QueryRow(string, ...any) *sql.Row }) error {
		return from.QueryRow("PRAGMA user_version").Scan(&version)
	}
	if err := read(db); err != nil || version >= len(steps) {
		return version, err
	}
	err = inTransaction(db, func(tx *sql.Tx) error {
		// once more: another process may have been faster
		if err := read(tx); err != nil || version >= len(steps) {
			return err
		}
		if version < 0 {
			return fmt.Errorf("%w: its version is %d", errDamaged, version)
		}
		for ; version < len(steps); version++ {
			if _, err := tx.Exec(steps[version]); err != nil {
				return err
			}
		}
		_, err := tx.Exec(fmt.Sprint("PRAGMA user_version = ", len(steps)))
		return err
	})
	return version, err
}

// checkSchema holds that the file has all that the steps make, as they make it; what else it has is
// another's.
func (s *diskStore) checkSchema() error {
	memory, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return err
	}
	defer memory.Close()
	memory.SetMaxOpenConns(1) // each connection is a database of its own
	if _, err := upgrade(memory, s.steps); err != nil {
		return err
	}
	want, err := schemaOf(memory)
	if err != nil {
		return err
	}
	is, err := schemaOf(s.db)
	for name, sql := range want {
		if err == nil && !fits(is[name], sql) {
			err = fmt.Errorf("%w: its schema says something else of %s", errDamaged, name)
		}
	}
	return err
}

// schemaOf are the statements of a schema by the names of what they make.
func schemaOf(db *sql.DB) (statements map[string]string, err error) {
	rows, err := db.Query("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	statements = map[string]string{}
	for rows.Next() {
		var name, sql string
		if err := rows.Scan(&name, &sql); err != nil {
			return nil, err
		}
		statements[name] = sql
	}
	return statements, rows.Err()
}

// fits tells whether a statement is the one wanted, or of the table of records with more in it:
// SQLite writes further columns behind the others. Those of other tables the triggers cannot fill.
func fits(is, want string) bool {
	same := 0
	for same < min(len(is), len(want)) && is[same] == want[same] {
		same++
	}
	return is == want || strings.HasPrefix(want, "CREATE TABLE record(") && len(is) > len(want) &&
		strings.HasSuffix(is, want[same:])
}
