// Package journal keeps records in a file that outlives the process: a log that is appended to, and
// written anew when most of it is no longer wanted.
//
// What must stay true: a crash at any moment costs at most the record that was being written; the
// file does not grow beyond a small multiple of what its owner keeps; one process at a time has it.
package journal

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"

	"github.com/ossrun/ossrun/models/store"
)

const (
	mostRecord = 64 << 20 // bytes of a line; a damaged file shall not fill the memory
	mostFile   = 1 << 32  // bytes that are read
	// the file is not written anew before it is this much larger than it need be
	slack = 1 << 20
)

// Journal is not safe for concurrent use. A record is a line of the file: the checksum of the rest
// in hexadecimal, a space, and the record, which has no line feed.
type Journal struct {
	path  string
	lock  *store.Lock
	file  *os.File
	bytes int64 // of the file
	least int64 // of the file when it was written anew
}

// Open gives take every record of the file at path up to the first that is not whole, oldest first,
// and writes the file anew with what kept yields then. The folder is made if it is not there. The
// error wraps store.ErrLocked where another process has the journal.
func Open(path string, take func(record []byte) bool, kept iter.Seq[[]byte]) (*Journal, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	lock, err := store.TryLock(path + ".lock")
	if err != nil {
		return nil, err
	}
	j := &Journal{path: path, lock: lock}
	if err = j.read(take); err == nil {
		err = j.rewrite(kept)
	}
	if err != nil {
		return nil, errors.Join(err, lock.Release())
	}
	return j, nil
}

// Close ends the journal; its file stays.
func (j *Journal) Close() error { return errors.Join(j.file.Close(), j.lock.Release()) }

func (j *Journal) read(take func([]byte) bool) error {
	f, err := os.Open(j.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewReader(io.LimitReader(f, mostFile))
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil || len(line) > mostRecord {
			return nil // the end, or what a crash left of a record
		}
		record, ok := checked(line)
		if !ok || !take(record) {
			return nil
		}
	}
}

// checked is the record of a line, false where the line is damaged.
func checked(line []byte) (record []byte, ok bool) {
	sum, record, ok := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte(" "))
	want, err := hex.DecodeString(string(sum))
	return record, ok && err == nil && len(want) == 4 &&
		binary.BigEndian.Uint32(want) == crc32.ChecksumIEEE(record)
}

// line is a record as it is written; nothing for one that would not be read again.
func line(record []byte) []byte {
	if len(record) > mostRecord-10 {
		return nil
	}
	return fmt.Appendf(nil, "%08x %s\n", crc32.ChecksumIEEE(record), record)
}

// Append writes one record, which kept yields too; most of the time that is all, but where most of
// the file is no longer wanted it is written anew with what kept yields. A disk that refuses costs
// what outlives the process, nothing else.
func (j *Journal) Append(record []byte, kept iter.Seq[[]byte]) {
	if j.bytes > 2*j.least+slack && j.rewrite(kept) == nil {
		return
	}
	n, err := j.file.Write(line(record))
	j.bytes += int64(n)
	if err != nil { // a full disk: what was half written is cut off, or the rest would not be read
		j.bytes -= int64(n)
		_ = j.file.Truncate(j.bytes)
	}
}

// rewrite replaces the file by one with what kept yields.
func (j *Journal) rewrite(kept iter.Seq[[]byte]) error {
	part, err := os.CreateTemp(filepath.Dir(j.path), filepath.Base(j.path)+".*.part")
	if err != nil {
		return err
	}
	w := bufio.NewWriter(part)
	var size int64
	for record := range kept {
		n, _ := w.Write(line(record)) // Flush has the error
		size += int64(n)
	}
	err = w.Flush()
	if err == nil {
		err = os.Rename(part.Name(), j.path)
	}
	if err != nil {
		return errors.Join(err, part.Close(), os.Remove(part.Name()))
	}
	if j.file != nil {
		_ = j.file.Close()
	}
	j.file, j.bytes, j.least = part, size, size
	return nil
}
