// The memory of sampled turns on disk: a log that is appended to, so that a tool loop goes on with its reasoning after a
// restart.
//
// What must stay true: a crash at any moment costs at most the record that was being written; the file does not grow
// beyond a small multiple of what the memory holds; nothing here ends a turn.

package session

import (
	"bufio"
	"bytes"
	"container/list"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"time"
)

// A record is a line: the checksum of the rest in hexadecimal, a space, JSON.
type record struct {
	Key       []byte
	At        time.Time
	Arguments string `json:",omitempty"`
	Segments  []recordSegment
}

type recordSegment struct {
	Reasoning bool   `json:",omitempty"`
	Tokens    []byte // ids, varints
}

const (
	logName    = "sampled-turns.log"
	mostRecord = 64 << 20 // bytes of a line; a damaged file shall not fill the memory
	slackBytes = 1 << 20  // the log is not written anew before it is this much larger than it need be
)

// turnLog is used with Memory.mu held.
type turnLog struct {
	path  string
	file  *os.File
	bytes int64 // of the file
	least int64 // of the file when it was written anew
}

// OpenMemory is NewMemory with a log in folder, which is made if it is not there. What an earlier process left in it and is
// not too old is remembered.
func OpenMemory(folder string, maxTokens int, ttl time.Duration) (*Memory, error) {
	m := NewMemory(maxTokens, ttl)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("the folder for sampled turns: %w", err)
	}
	l := &turnLog{path: filepath.Join(folder, logName)}
	if err := l.read(m); err != nil {
		return nil, fmt.Errorf("read the sampled turns: %w", err)
	}
	if err := l.rewrite(m.order); err != nil {
		return nil, fmt.Errorf("write the sampled turns: %w", err)
	}
	m.log = l
	return m, nil
}

// Close ends the log. What is put later is in memory alone.
func (m *Memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.log == nil {
		return nil
	}
	err := m.log.file.Close()
	m.log = nil
	return err
}

// read takes in every record up to the first that is not whole.
func (l *turnLog) read(m *Memory) error {
	f, err := os.Open(l.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewReader(io.LimitReader(f, 1<<32))
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil || len(line) > mostRecord {
			return nil // the end, or what a crash left of a record
		}
		r, ok := parseRecord(line)
		if !ok {
			return nil
		}
		if age := m.now().Sub(r.at); age <= m.ttl && age >= 0 {
			m.add(r)
		}
	}
}

func parseRecord(line []byte) (*remembered, bool) {
	sum, body, ok := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte(" "))
	want, err := hex.DecodeString(string(sum))
	if !ok || err != nil || len(want) != 4 || binary.BigEndian.Uint32(want) != crc32.ChecksumIEEE(body) {
		return nil, false
	}
	var rec record
	if json.Unmarshal(body, &rec) != nil {
		return nil, false
	}
	r := &remembered{key: string(rec.Key), arguments: rec.Arguments, at: rec.At}
	for _, s := range rec.Segments {
		seg := segment{reasoning: s.Reasoning}
		for b := s.Tokens; len(b) > 0; {
			id, n := binary.Uvarint(b)
			if n <= 0 || id > 1<<30 {
				return nil, false
			}
			seg.tokens = append(seg.tokens, int32(id))
			b = b[n:]
		}
		r.segments = append(r.segments, seg)
	}
	return r, true
}

func (r *remembered) line() []byte {
	rec := record{Key: []byte(r.key), At: r.at, Arguments: r.arguments}
	for _, s := range r.segments {
		seg := recordSegment{Reasoning: s.reasoning}
		for _, id := range s.tokens {
			seg.Tokens = binary.AppendUvarint(seg.Tokens, uint64(id))
		}
		rec.Segments = append(rec.Segments, seg)
	}
	body, err := json.Marshal(rec)
	if err != nil { // strings, bytes and a time of this century
		return nil
	}
	return fmt.Appendf(nil, "%08x %s\n", crc32.ChecksumIEEE(body), body)
}

// append writes one record, and the whole log anew when most of it is no longer remembered.
func (l *turnLog) append(r *remembered, all *list.List) {
	if l.bytes > 2*l.least+slackBytes && l.rewrite(all) == nil {
		return // r is in all
	}
	n, err := l.file.Write(r.line())
	l.bytes += int64(n)
	if err != nil { // a full disk: what was half written is cut off, or the rest would not be read
		l.bytes -= int64(n)
		_ = l.file.Truncate(l.bytes)
	}
}

// rewrite replaces the log by what is remembered now, oldest first.
func (l *turnLog) rewrite(all *list.List) error {
	part, err := os.CreateTemp(filepath.Dir(l.path), logName+".*.part")
	if err != nil {
		return err
	}
	w := bufio.NewWriter(part)
	var size int64
	for e := all.Back(); e != nil; e = e.Prev() {
		n, _ := w.Write(e.Value.(*remembered).line()) // Flush has the error
		size += int64(n)
	}
	err = w.Flush()
	if err == nil {
		err = os.Rename(part.Name(), l.path)
	}
	if err != nil {
		return errors.Join(err, part.Close(), os.Remove(part.Name()))
	}
	if l.file != nil {
		_ = l.file.Close()
	}
	l.file, l.bytes, l.least = part, size, size
	return nil
}
