// The store in a file: SQLite, since a chat and a server use it at once.
//
// Every record has a checksum. SQLite deletes its log when the last process closes the file
// cleanly, so a log without a process is the sign of a crash: then every page and record is checked
// before use. A damaged file is moved aside and its records are copied into a new one, at the
// latest when the store is closed. What must stay true: a record
// that was put is found by a later process, even after kill -9, unless it was refused; deleted
// content is overwritten, so salvage never restores it.

package records

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/ossrun/ossrun/models/store"
	"github.com/ossrun/ossrun/runtime/records/salvage"
)

type diskStore struct {
	o              Options
	steps          []string // of this program's version
	now            func() time.Time
	db             *sql.DB
	inUse          interface{ Close() error } // marks the file as used by this process
	unclean        bool                       // the last process did not close the file
	damaged        atomic.Pointer[error]      // the first damage found
	refused        atomic.Int64
	writing        sync.Mutex   // share while a record is written or deleted
	refusedRecords *memoryStore // records that the disk has refused, until it accepts them
	lastRefusal    error        // the latest refusal
	memoryOnly     *memoryStore // records that must not be written to disk
	// baseSums is the disk's checksum under the key of each refused record, see onDisk
	baseSums map[storeKey]int64
}

func openSteps(o Options, steps []string) (*diskStore, error) {
	s := &diskStore{o: o, steps: steps, now: time.Now, refusedRecords: newMemoryStore(o),
		memoryOnly: newMemoryStore(o), baseSums: map[storeKey]int64{}}
	err := os.MkdirAll(filepath.Dir(o.File), 0o700)
	if err == nil {
		err = create(s.lockPath())
	}
	if err == nil {
		err = s.open()
	}
	if isDamaged(err) {
		err = s.repair(err)
	}
	if err != nil {
		return nil, fmt.Errorf("open the store of turns and responses: %w", err)
	}
	return s, nil
}

// errDamaged is wrapped by errors about a damaged file.
var errDamaged = errors.New("the file is damaged")

// isDamaged also recognizes SQLite's own codes for a damaged file.
func isDamaged(err error) bool {
	var coded interface{ Code() int }
	const corrupt, noDatabase = 11, 26 // SQLITE_CORRUPT, SQLITE_NOTADB
	return errors.Is(err, errDamaged) || errors.As(err, &coded) &&
		(coded.Code()&0xff == corrupt || coded.Code()&0xff == noDatabase)
}

// open opens the file, creates it if missing, and checks it.
func (s *diskStore) open() (err error) {
	if err := s.prepare(); err != nil {
		return err
	}
	if s.inUse, err = store.Use(s.lockPath()); err != nil {
		return err
	}
	if s.db, err = connect(s.o.File); err == nil {
		err = s.requireVersion()
	}
	if err == nil {
		err = s.checkSchema()
	}
	if err == nil && s.unclean {
		err = s.check()
	}
	if err != nil {
		s.close() //nolint:errcheck // the first error counts
	}
	return err
}

func connect(file string) (*sql.DB, error) {
	if err := create(file); err != nil {
		return nil, err
	}
	query := url.Values{"_txlock": {"immediate"}, "_pragma": {"busy_timeout(10000)",
		fmt.Sprintf("page_size(%d)", salvage.PageSize), "secure_delete(1)", "journal_mode(wal)",
		"synchronous(normal)"}}
	name := (&url.URL{Scheme: "file", OmitHost: true, Path: filepath.ToSlash(file),
		RawQuery: query.Encode()}).String()
	db, err := sql.Open("sqlite", name)
	if err == nil {
		db.SetMaxOpenConns(1)
	}
	return db, err
}

// create makes an empty file that only its owner can read, if it is missing.
func create(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

func (s *diskStore) lockPath() string { return s.o.File + ".lock" }

func (s *diskStore) check() error {
	var verdict string
	if err := s.db.QueryRow("PRAGMA integrity_check(1)").Scan(&verdict); err != nil {
		return err
	}
	if verdict != "ok" {
		return fmt.Errorf("%w: %s", errDamaged, strings.ReplaceAll(verdict, "\n", " "))
	}
	return s.forEach(func(_ Record, err error) error { return err }, "")
}

// forEach passes the records that match a condition to take, or the error of an unreadable one, and
// stops at take's first error.
func (s *diskStore) forEach(take func(Record, error) error, where string, args ...any) error {
	rows, err := s.db.Query("SELECT "+recordColumns+" FROM record "+where, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := take(scan(rows)); err != nil {
			return err
		}
	}
	return rows.Err()
}

const recordColumns = "kind, key, also, used, sum, value"

func scan(row interface{ Scan(...any) error }) (Record, error) {
	v := make([]any, 6)
	if err := row.Scan(&v[0], &v[1], &v[2], &v[3], &v[4], &v[5]); err != nil {
		return Record{}, err
	}
	return parseRecord(v)
}

// parseRecord makes a record of the values of recordColumns and verifies its checksum. Further
// columns, added by another version, are ignored.
func parseRecord(v []any) (r Record, err error) {
	if len(v) < 6 {
		return r, errDamaged
	}
	kind, ok0 := v[0].(string)
	key, ok1 := v[1].(string)
	also, ok2 := v[2].(string)
	used, ok3 := v[3].(int64)
	sum, ok4 := v[4].(int64)
	value, ok5 := v[5].([]byte)
	r = Record{Kind: Kind(kind), Key: key, Value: value, Used: time.Unix(0, used)}
	if !ok0 || !ok1 || !ok2 || !ok3 || !ok4 || !ok5 || sum != checksum(r, also) ||
		json.Unmarshal([]byte(also), &r.Also) != nil {
		return r, fmt.Errorf("%w: a record is not what was written", errDamaged)
	}
	return r, nil
}

func checksum(r Record, also string) int64 {
	sum := crc32.ChecksumIEEE(fmt.Appendf(nil, "%s\x00%s\x00%s\x00", r.Kind, r.Key, also))
	return int64(crc32.Update(sum, crc32.IEEETable, r.Value))
}

func (s *diskStore) Put(r Record) error {
	if r.InMemory {
		return s.memoryOnly.Put(r)
	}
	return put(s, r)
}

func (s *diskStore) Delete(kind Kind, key string) (bool, error) { return remove(s, kind, key) }

func (s *diskStore) Change(work func(c *Change) error) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	c := &Change{bounds: s.o.Bounds}
	tx, err := s.db.Begin()
	if err != nil {
		c.get = func(kind Kind, key string) (Record, bool) { return s.find(s.db, kind, key) }
	} else {
		defer tx.Rollback() // it does nothing after Commit
		c.get = func(kind Kind, key string) (Record, bool) { return s.find(tx, kind, key) }
	}
	if failed := work(c); failed != nil || len(c.ops) == 0 {
		return failed
	}
	for i := range c.ops {
		c.ops[i].Used = s.now()
	}
	if err == nil {
		err = s.write(tx, c.ops)
	}
	if errors.Is(err, ErrFull) {
		return err
	}
	if err != nil {
		return s.refuse(c.ops, err)
	}
	deleted := false
	for _, o := range c.ops {
		_, _ = s.refusedRecords.Delete(o.Kind, o.Key) // memory refuses nothing
		if deleted = deleted || o.deleted; o.deleted {
			_, _ = s.memoryOnly.Delete(o.Kind, o.Key)
		}
	}
	if deleted { // from the log too: salvage must not restore it
		_, _ = s.db.Exec("PRAGMA wal_checkpoint(truncate)")
	}
	s.flushRefused(flushBatch)
	return nil
}

// write writes changes and ends their transaction.
func (s *diskStore) write(tx *sql.Tx, ops []edit) error {
	for _, o := range ops {
		var err error
		if o.deleted {
			_, err = tx.Exec("DELETE FROM record WHERE kind = ? AND key = ?", o.Kind, o.Key)
		} else {
			err = s.add(tx, o.Record)
		}
		if err != nil {
			return errors.Join(err, tx.Rollback())
		}
	}
	err := tx.Commit()
	_ = tx.Rollback() // a failed commit may leave it open
	return err
}

// inTransaction does all of work or nothing.
func inTransaction(db *sql.DB, work func(tx *sql.Tx) error) error {
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // it does nothing after Commit
	if err := work(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// add adds a record and drops the records beyond the bound or the TTL.
func (s *diskStore) add(tx *sql.Tx, r Record) error {
	if r.Also == nil {
		r.Also = []string{}
	}
	list, _ := json.Marshal(r.Also) // strings
	also := string(list)
	for _, step := range []struct {
		sql  string
		args []any
	}{
		{"DELETE FROM record WHERE kind = ? AND key = ?", []any{r.Kind, r.Key}},
		{"INSERT INTO record(" + recordColumns + ") VALUES(?, ?, ?, ?, ?, coalesce(?, x''))",
			[]any{r.Kind, r.Key, also, r.Used.UnixNano(), checksum(r, also), []byte(r.Value)}},
		{"DELETE FROM record WHERE kind = ? AND used < ?", []any{r.Kind, s.oldest(r.Kind)}},
	} {
		if _, err := tx.Exec(step.sql, step.args...); err != nil {
			return err
		}
	}
	bound := s.o.Bounds[r.Kind]
	for {
		var share, total amount
		if err := tx.QueryRow("SELECT records, bytes FROM total WHERE kind = ?", r.Kind).Scan(
			&total.records, &total.bytes); err != nil {
			return err
		}
		if bound.allows(total, total) { // and so is any part of it
			return nil
		}
		if _, err := tx.Exec(ownerIndex); err != nil { // only full files have it
			return err
		}
		owner := r.Key[:strings.Index(r.Key, "/")+1]
		if err := tx.QueryRow("SELECT count(*), sum(length(value)) FROM record WHERE "+
			ofOwner, r.Kind, owner).Scan(&share.records, &share.bytes); err != nil {
			return err
		}
		if bound.allows(share, total) {
			return nil
		}
		if share.records == 1 {
			return full(r)
		}
		if _, err := tx.Exec("DELETE FROM record WHERE id = (SELECT id FROM record WHERE "+
			ofOwner+" ORDER BY used LIMIT 1)", r.Kind, owner); err != nil {
			return err
		}
	}
}

// ownerIndex finds an owner's oldest record and its bytes without reading values.
const (
	keyOwner   = "substr(key, 1, instr(key, '/'))"
	ofOwner    = "kind = ? AND " + keyOwner + " = ?"
	ownerIndex = "CREATE INDEX IF NOT EXISTS record_owner ON record(kind, " + keyOwner +
		", used, length(value))"
)

// oldest is the time of use, in nanoseconds since 1970, before which a record is too old.
func (s *diskStore) oldest(kind Kind) int64 {
	if t := s.o.oldest(kind, s.now()); !t.IsZero() {
		return t.UnixNano()
	}
	return 0
}

func (s *diskStore) Get(kind Kind, key string) (Record, bool) {
	r, ok := s.find(s.db, kind, key)
	if !ok {
		return r, false
	}
	// if the disk refuses this, only the order of use is outdated
	_, _ = s.db.Exec("UPDATE record SET used = ? WHERE kind = ? AND key = ?", s.now().UnixNano(),
		r.Kind, r.Key)
	return r, true
}

// find looks in memory, and then in the file.
func (s *diskStore) find(from interface{ QueryRow(string, ...any) *sql.Row }, kind Kind,
	key string) (Record, bool) {
	for _, m := range []*memoryStore{s.refusedRecords, s.memoryOnly} {
		if r, ok := m.Get(kind, key); ok {
			return r, true
		}
	}
	r, err := scan(from.QueryRow("SELECT "+recordColumns+" FROM record WHERE used >= ? AND id ="+
		" coalesce((SELECT id FROM record WHERE kind = ? AND key = ?),"+
		" (SELECT record FROM other_key WHERE kind = ? AND key = ?))", s.oldest(kind), kind, key,
		kind, key))
	if err == nil && r.Key != key && !slices.Contains(r.Also, key) {
		err = fmt.Errorf("%w: a key leads to another record", errDamaged)
	}
	if err != nil {
		s.reportReadError(err)
		return Record{}, false
	}
	return r, true
}

func (s *diskStore) noteDamage(err error) {
	if isDamaged(err) {
		s.damaged.CompareAndSwap(nil, &err)
	}
}

func (s *diskStore) reportReadError(err error) {
	s.noteDamage(err)
	if !errors.Is(err, sql.ErrNoRows) {
		s.o.Notify("a stored turn or response cannot be read: " + err.Error())
	}
}

func (s *diskStore) List(kind Kind) []Record {
	records := append(s.refusedRecords.List(kind), s.memoryOnly.List(kind)...)
	err := s.forEach(func(r Record, err error) error {
		if err != nil {
			s.reportReadError(err)
		} else {
			records = append(records, r)
		}
		return nil
	}, "WHERE kind = ? AND used >= ? ORDER BY used DESC", kind, s.oldest(kind))
	if err != nil {
		s.reportReadError(err)
	}
	return records
}

// Close also repairs a damaged file, so that refused records are written.
func (s *diskStore) Close() error {
	s.writing.Lock()
	defer s.writing.Unlock()
	err := s.close()
	if why := s.damaged.Swap(nil); why != nil {
		err = errors.Join(s.repair(*why), s.close())
	}
	return err
}

// close is called while nothing is written.
func (s *diskStore) close() error {
	var err error
	if s.db != nil {
		s.flushRefused(math.MaxInt)
		if n := len(s.baseSums); n > 0 {
			err = fmt.Errorf("%d stored turns, responses or conversations are lost: %w", n,
				s.lastRefusal)
		}
		err = errors.Join(err, s.db.Close())
	}
	if s.inUse != nil {
		err = errors.Join(err, s.inUse.Close())
	}
	s.inUse = nil
	return err
}

// repair moves the damaged file aside and copies its readable records into a new one. It fails
// while another process uses the file.
func (s *diskStore) repair(why error) error {
	lock, err := store.TryLock(s.lockPath())
	if err != nil {
		return errors.Join(why, err)
	}
	aside := fmt.Sprintf("%s.damaged-%s", s.o.File, s.now().Format("20060102-150405.000000"))
	for _, suffix := range []string{"", "-wal"} {
		err = errors.Join(err, store.IgnoreMissing(os.Rename(s.o.File+suffix, aside+suffix)))
	}
	err = errors.Join(err, store.IgnoreMissing(os.Remove(s.o.File+"-shm")), lock.Close())
	if err != nil {
		return errors.Join(why, err)
	}
	err = s.dropOldDamaged()
	if err = errors.Join(err, s.open()); err != nil {
		return errors.Join(why, err)
	}
	rows, err := salvage.Rows(aside)
	if err != nil {
		return err
	}
	newest, read := map[storeKey]time.Time{}, 0
	if err := inTransaction(s.db, func(tx *sql.Tx) error {
		for row := range rows {
			r, err := parseRecord(row[min(1, len(row)):]) // the id is the first column
			key := storeKey{r.Kind, r.Key}
			if err != nil || r.Used.Before(newest[key]) {
				continue
			}
			newest[key], read = r.Used, read+1
			if err := s.add(tx, r); err != nil && !errors.Is(err, ErrFull) {
				return fmt.Errorf("take over what the damaged file %s holds: %w", aside, err)
			}
		}
		return nil
	}); err != nil {
		return err
	}
	for key := range s.baseSums { // records refused since the damage are newer than copied ones
		s.baseSums[key] = s.onDisk(Record{Kind: key.kind, Key: key.key})
	}
	s.o.Notify(fmt.Sprintf("the file of stored turns and responses was damaged (%v): %d records "+
		"are rescued, the file is kept as %s", why, read, aside))
	return nil
}

// maxDamagedFiles limits the files that were moved aside, since they contain users' texts.
const maxDamagedFiles = 2

// dropOldDamaged deletes the oldest damaged files, each with its log.
func (s *diskStore) dropOldDamaged() error {
	folder, prefix := filepath.Dir(s.o.File), filepath.Base(s.o.File)+".damaged-"
	entries, err := os.ReadDir(folder) // sorted, so by time
	var times []string
	for _, e := range slices.Backward(entries) {
		timestamp, ok := strings.CutPrefix(strings.TrimSuffix(e.Name(), "-wal"), prefix)
		if !ok {
			continue
		}
		if !slices.Contains(times, timestamp) {
			times = append(times, timestamp)
		}
		if slices.Index(times, timestamp) >= maxDamagedFiles {
			err = errors.Join(err, store.IgnoreMissing(os.Remove(filepath.Join(folder, e.Name()))))
		}
	}
	return err
}
