// The versions of the store's file.
//
// PRAGMA user_version counts the versions of the file's form. It is raised by every change that the
// previous release would misread or lose: to a table, a trigger, or the meaning of a record's
// value. A new index, a new table or, in the table of records, a new column with a default does not
// raise it: a file with these is used as it is.
//
// What must stay true: an older file is upgraded in one transaction while no other process has it
// open. So kill -9 leaves one version or the other, and an older program never writes together with
// a newer one. A newer file is not changed at all.

package records

import (
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"strings"

	"github.com/ossrun/ossrun/models/store"
	"github.com/ossrun/ossrun/runtime/records/salvage"
)

// steps lead from each version to the next. The text of a step never changes, not even its blanks.
//
// The first one creates a file. It also upgrades a file of the releases before versions, which have
// this schema and user_version 0. Those releases compare the schema's text: a file of version 1
// they use as their own; one with any other schema they move aside, and copy its records.
//
// It has one table of records. Triggers maintain their other keys and the totals of each kind, so
// no statement that deletes can forget them.
var steps = []string{step1}

//go:embed step1.sql
var step1 string

// prepare refuses a newer file before SQLite opens it. If no other process has the file open, it
// checks the log of a crashed process and upgrades an older file.
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
		return nil // the process that has it open has checked
	}
	if err == nil { // else this system has no locks
		defer lock.Close() // closing the file releases the lock
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

// requireVersion creates version 1 in a new file, which does not disturb other processes, and fails
// if the file is then not of this version.
func (s *diskStore) requireVersion() error {
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

// upgrade runs the missing steps and returns the file's version.
func upgrade(db *sql.DB, steps []string) (version int, err error) {
	read := func(from interface{ QueryRow(string, ...any) *sql.Row }) error {
		return from.QueryRow("PRAGMA user_version").Scan(&version)
	}
	if err := read(db); err != nil || version >= len(steps) {
		return version, err
	}
	err = inTransaction(db, func(tx *sql.Tx) error {
		// again: another process may have been faster
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

// checkSchema tests that the file has all that the steps create, unchanged. Additions of other
// versions are allowed.
func (s *diskStore) checkSchema() error {
	memory, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return err
	}
	defer memory.Close()
	memory.SetMaxOpenConns(1) // each connection is a separate database
	if _, err := upgrade(memory, s.steps); err != nil {
		return err
	}
	want, err := schemaOf(memory)
	if err != nil {
		return err
	}
	is, err := schemaOf(s.db)
	for name, sql := range want {
		if err == nil && !matchesSchema(is[name], sql) {
			err = fmt.Errorf("%w: its schema says something else of %s", errDamaged, name)
		}
	}
	return err
}

// schemaOf returns a schema's statements by the names that they create.
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

// matchesSchema tells whether a statement is the expected one, or adds columns to the table of
// records, which SQLite writes last. Triggers could not fill columns added to other tables.
func matchesSchema(is, want string) bool {
	same := 0
	for same < min(len(is), len(want)) && is[same] == want[same] {
		same++
	}
	return is == want || strings.HasPrefix(want, "CREATE TABLE record(") && len(is) > len(want) &&
		strings.HasSuffix(is, want[same:])
}
