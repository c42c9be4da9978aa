// Records that the disk refuses are kept in memory until it accepts them, and are lost if the
// process ends first.
//
// What must stay true: records that another process has written meanwhile are not overwritten, and
// a record that could be lost that way is not acknowledged, nor is a file or batch.

package records

import (
	"database/sql"
	"errors"
	"slices"

	"github.com/ossrun/ossrun/models/store"
)

// refuse keeps refused records in memory, or returns why it cannot.
func (s *diskStore) refuse(ops []edit, err error) error {
	s.noteDamage(err)
	s.lastRefusal = refusalReason(err)
	isPut := func(o edit) bool { return !o.deleted }
	isFile := func(o edit) bool { return isPut(o) && (o.Kind == KindFile || o.Kind == KindBatch) }
	if !slices.ContainsFunc(ops, isPut) || slices.ContainsFunc(ops, isFile) || s.isContested(ops) {
		return s.lastRefusal
	}
	for _, o := range ops {
		if o.deleted {
			_, _ = s.refusedRecords.Delete(o.Kind, o.Key)
			continue
		}
		if s.refused.Add(1) == 1 {
			s.o.Notify("stored turns and responses are kept in memory only: " +
				s.lastRefusal.Error())
		}
		s.baseSums[storeKey{o.Kind, o.Key}] = s.onDisk(o.Record)
		_ = s.refusedRecords.Put(o.Record) // it is not too large
	}
	return nil
}

// isContested tells that another process may change one of these records too. If two processes each
// kept their own version in memory, only one could be written later.
func (s *diskStore) isContested(ops []edit) bool {
	return slices.ContainsFunc(ops, func(o edit) bool {
		grows := o.Kind == KindConversation || o.Kind == KindUsage
		return grows && !o.deleted && s.onDisk(o.Record) >= 0
	}) && !s.isOnlyUser()
}

// isOnlyUser tells that no other process has the file open.
func (s *diskStore) isOnlyUser() bool {
	_ = s.inUse.Close() // our own mark would count as another process
	lock, err := store.TryLock(s.lockPath())
	if err == nil {
		_ = lock.Close()
	}
	if mark, err := store.Use(s.lockPath()); err == nil {
		s.inUse = mark
	}
	return !errors.Is(err, store.ErrLocked)
}

// refusalReason describes why the disk refused a record.
func refusalReason(err error) error {
	var coded interface{ Code() int }
	if errors.As(err, &coded) {
		switch coded.Code() & 0xff {
		case 5: // SQLITE_BUSY
			return errors.New("another process has locked the file")
		case 8: // SQLITE_READONLY
			return errors.New("the file is read-only")
		case 10: // SQLITE_IOERR
			return errors.New("the disk reported an error")
		case 13: // SQLITE_FULL
			return ErrDiskFull
		}
	}
	return err
}

// flushBatch is the number of refused records that are written after a successful write.
const flushBatch = 8

// flushRefused retries refused records while the disk accepts them. It skips records that another
// process has written or deleted since.
func (s *diskStore) flushRefused(limit int) {
	for range limit {
		r, ok := s.refusedRecords.oldest()
		if !ok {
			clear(s.baseSums)
			return
		}
		key := storeKey{r.Kind, r.Key}
		if s.onDisk(r) == s.baseSums[key] {
			err := inTransaction(s.db, func(tx *sql.Tx) error { return s.add(tx, r) })
			if err != nil && !errors.Is(err, ErrFull) {
				return
			}
		}
		_, _ = s.refusedRecords.Delete(r.Kind, r.Key)
		delete(s.baseSums, key)
	}
}

// onDisk is the checksum of the record with this key on the disk, or -1.
func (s *diskStore) onDisk(r Record) (sum int64) {
	if s.db.QueryRow("SELECT sum FROM record WHERE kind = ? AND key = ?", r.Kind, r.Key).Scan(
		&sum) != nil {
		return -1
	}
	return sum
}

func (s *diskStore) Unsaved(kind Kind, key string) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	switch _, refused := s.refusedRecords.Get(kind, key); {
	case refused:
		return s.lastRefusal
	case s.onDisk(Record{Kind: kind, Key: key}) < 0:
		return errors.New("it is not in the file")
	}
	return nil
}

func (s *diskStore) Refused() int64 { return s.refused.Load() }
