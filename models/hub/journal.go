package hub

// The journal of an unfinished file: the progress of each range. It is stored next to the partial
// file and has a record of two numbers for each range: bytes written, and of those the bytes
// flushed to disk.
//
// Written bytes survive the process; flushed bytes survive the machine. So a journal names the boot
// in which it was written: under the same boot the written bytes count, under another one only the
// flushed. A number is written after the bytes that it counts, so a journal never overstates, and a
// file's hash is checked in the end in any case.
//
// The partial file is not called ETAG.incomplete, as in older huggingface_hub. Those versions treat
// a file of that name as complete if its length is right, and ours has its full length, with holes,
// from the start.

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/ossrun/ossrun/models/mapping"
	"github.com/ossrun/ossrun/models/store"
)

const (
	partialSuffix = ".ossrun.incomplete"
	journalSuffix = ".ossrun.journal"
	newSuffix     = journalSuffix + ".new" // during a write
	foreignSuffix = ".incomplete"          // of older huggingface_hub: the file's beginning

	journalHead = 512 // bytes before the first range's record
	recordBytes = 8   // written and flushed, little-endian uint32
)

// header is the JSON at a journal's beginning, padded with spaces to journalHead bytes.
type header struct {
	Format string `json:"format"`
	Size   int64  `json:"size"`
	Chunk  int64  `json:"chunk"`
	Boot   string `json:"boot"`
}

const journalVersion = 1

var journalFormat = fmt.Sprint("ossrun journal ", journalVersion)

// refuseNewer refuses to resume a newer ossrun's download.
func refuseNewer(blob string) error {
	text, err := mapping.ReadFile(blob+journalSuffix, 16<<20)
	if err != nil {
		return nil // no readable journal
	}
	var h header
	var version int
	_ = json.NewDecoder(bytes.NewReader(text)).Decode(&h) // on error h has the fields read so far
	_, err = fmt.Sscanf(h.Format, "ossrun journal %d", &version)
	if err != nil || version <= journalVersion {
		return nil
	}
	return fmt.Errorf("a newer ossrun has begun to fetch this file, with a journal of version %d, "+
		"and this one knows version %d: let that one end it, or delete %s.ossrun.*", version,
		journalVersion, blob)
}

// bootID identifies this boot. Without an ID, as on all systems except Linux, only flushed bytes
// count.
func bootID() string {
	text, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(text))
}

// progress is the progress of a file's ranges: written[i] bytes of range i.
type progress struct {
	size, chunk int64
	written     []uint32
}

func newProgress(size, chunk int64) progress {
	return progress{size, chunk, make([]uint32, (size+chunk-1)/chunk)}
}

func (p progress) span(i int) (start, length int64) {
	start = int64(i) * p.chunk
	return start, min(p.chunk, p.size-start)
}

// done counts the bytes on disk.
func (p progress) done() (n int64) {
	for _, w := range p.written {
		n += int64(w)
	}
	return n
}

// readJournal returns the progress recorded for a blob; false if there is no journal for a file of
// this size.
func readJournal(blob string, size int64, boot string) (progress, bool) {
	partial, err := os.Stat(blob + partialSuffix)
	if err != nil || partial.Size() != size {
		return progress{}, false
	}
	text, err := mapping.ReadFile(blob+journalSuffix, 16<<20)
	if err != nil || len(text) < journalHead {
		return progress{}, false
	}
	var h header
	if json.Unmarshal(bytes.TrimRight(text[:journalHead], " "), &h) != nil ||
		h.Format != journalFormat || h.Size != size || h.Chunk <= 0 || h.Chunk > 1<<31 ||
		(size+h.Chunk-1)/h.Chunk != int64(len(text)-journalHead)/recordBytes {
		return progress{}, false
	}
	p := newProgress(size, h.Chunk)
	for i := range p.written {
		record := text[journalHead+i*recordBytes:]
		n := binary.LittleEndian.Uint32(record[4:])
		if h.Boot == boot && boot != "" {
			n = max(n, binary.LittleEndian.Uint32(record))
		}
		if _, length := p.span(i); int64(n) > length {
			return progress{}, false
		}
		p.written[i] = n
	}
	return p, true
}

// journal records progress on disk.
type journal struct {
	file    *os.File
	flushed []uint32
}

// startJournal rewrites the journal to record p, of which all bytes are flushed, and opens it.
func startJournal(blob string, p progress, boot string) (*journal, error) {
	head, err := json.Marshal(header{journalFormat, p.size, p.chunk, boot})
	if err != nil {
		return nil, err
	}
	text := append(head, strings.Repeat(" ", journalHead-len(head))...)
	for _, n := range p.written {
		text = binary.LittleEndian.AppendUint32(text, n)
		text = binary.LittleEndian.AppendUint32(text, n)
	}
	// all holders of the blob's lock use one name, so a killed process leaves no file that the next
	// one does not overwrite
	f, err := store.Open(blob+newSuffix, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return nil, err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(blob+newSuffix, blob+journalSuffix)
	}
	if err != nil {
		os.Remove(blob + newSuffix)
		return nil, err
	}
	if f, err = store.Open(blob+journalSuffix, os.O_WRONLY, 0); err != nil {
		return nil, err
	}
	return &journal{f, slices.Clone(p.written)}, nil
}

// flush records, after a flush of the data, that it covered the byte counts in now.
func (j *journal) flush(now []uint32) error {
	for i, n := range now {
		if n == j.flushed[i] {
			continue
		}
		if err := j.record(i, 4, n); err != nil {
			return err
		}
		j.flushed[i] = n
	}
	return nil
}

// record records one of the two numbers of range i: bytes written at 0, flushed at 4.
func (j *journal) record(i int, offset int64, n uint32) error {
	_, err := j.file.WriteAt(binary.LittleEndian.AppendUint32(nil, n),
		journalHead+int64(i)*recordBytes+offset)
	return err
}

// adoptPartial takes over the partial file of an older huggingface_hub, and renames it to ours.
func adoptPartial(blob string, size, chunk int64) (progress, bool) {
	stat, err := os.Lstat(blob + foreignSuffix)
	if err != nil || !stat.Mode().IsRegular() || stat.Size() == 0 || stat.Size() > size {
		return progress{}, false
	}
	if os.Rename(blob+foreignSuffix, blob+partialSuffix) != nil {
		return progress{}, false
	}
	p := newProgress(size, chunk)
	remaining := stat.Size()
	for i := range p.written {
		_, length := p.span(i)
		p.written[i] = uint32(min(remaining, length))
		remaining -= int64(p.written[i])
	}
	return p, true
}

// sweepJournal deletes the journal of a finished blob, left by a process that was killed right
// after renaming the file. If there is also a partial file, the blob is being downloaded again and
// the journal stays.
func sweepJournal(blob string) {
	_, err := os.Lstat(blob + partialSuffix)
	if errors.Is(err, fs.ErrNotExist) && refuseNewer(blob) == nil {
		os.Remove(blob + journalSuffix) // if that fails, every reader ignores it
	}
}

func dropPartial(blob string) (err error) {
	for _, suffix := range [...]string{newSuffix, journalSuffix, partialSuffix} {
		if e := os.Remove(blob + suffix); e != nil && !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, fmt.Errorf("deleting a broken download: %w", e))
		}
	}
	return err
}
