// Each page is one file with a version and a checksum, named by its prefix. A file is written under
// another name and renamed, so a crash leaves no half-written file. A damaged file is detected by
// its checksum and removed; one of another version is kept, and counts towards the bound.

package kv

import (
	"bytes"
	"container/list"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// folder is bounded by bytes; the least recently used file goes first.
type folder struct {
	path  string
	limit int64

	mu    sync.Mutex
	bytes int64
	order *list.List // of *file, most recently used in front
	files map[pageName]*list.Element
}

type file struct {
	name  pageName
	bytes int64
	used  time.Time
}

const (
	fileKind   = "osskv" // and the version: a digit
	fileMagic  = fileKind + "1\x00\x00"
	fileHeader = len(fileMagic) + 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func openFolder(path string, limit int64) (*folder, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	f := &folder{path: path, limit: limit, order: list.New(), files: map[pageName]*list.Element{}}
	var files []*file
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".part") { // of a process that was killed
			_ = os.Remove(filepath.Join(path, e.Name()))
			continue
		}
		name, ok := parseFile(e.Name())
		info, err := e.Info()
		if !ok || err != nil {
			continue // not ours, or gone by now
		}
		files = append(files, &file{name, info.Size(), info.ModTime()})
	}
	slices.SortFunc(files, func(a, b *file) int { return a.used.Compare(b.used) })
	for _, x := range files {
		f.files[x.name] = f.order.PushFront(x)
		f.bytes += x.bytes
	}
	f.shrink(0)
	return f, nil
}

func (n pageName) file() string {
	kind := ".full"
	if n.windowed {
		kind = ".window"
	}
	return hex.EncodeToString(n.prefix[:]) + kind
}

func parseFile(name string) (n pageName, ok bool) {
	prefix, windowed := strings.CutSuffix(name, ".window")
	if !windowed {
		if prefix, ok = strings.CutSuffix(name, ".full"); !ok {
			return n, false
		}
	}
	b, err := hex.DecodeString(prefix)
	if err != nil || len(b) != len(n.prefix) {
		return n, false
	}
	return pageName{Hash(b), windowed}, true
}

func (f *folder) has(name pageName) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, ok := f.files[name]
	return ok
}

func (f *folder) size() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.bytes
}

// shrink makes room for more bytes. f.mu is held, or f is not shared yet.
func (f *folder) shrink(bytes int64) {
	for f.order.Len() > 0 && f.bytes+bytes > f.limit {
		f.remove(f.order.Back())
	}
}

func (f *folder) remove(e *list.Element) {
	x := f.order.Remove(e).(*file)
	delete(f.files, x.name)
	f.bytes -= x.bytes
	_ = os.Remove(filepath.Join(f.path, x.name.file()))
}

func (f *folder) put(name pageName, data []byte) error {
	size := int64(fileHeader + len(data))
	if size > f.limit || f.has(name) {
		return nil
	}
	f.mu.Lock()
	f.shrink(size)
	f.mu.Unlock()
	part, err := os.CreateTemp(f.path, "*.part")
	if err != nil {
		return err
	}
	header := binary.LittleEndian.AppendUint32([]byte(fileMagic), crc32.Checksum(data, castagnoli))
	_, err = part.Write(header)
	if err == nil {
		_, err = part.Write(data)
	}
	if closed := part.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(part.Name(), filepath.Join(f.path, name.file()))
	}
	if err != nil {
		_ = os.Remove(part.Name())
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.files[name]; !ok {
		f.files[name] = f.order.PushFront(&file{name, size, time.Now()})
		f.bytes += size
	}
	return nil
}

func (f *folder) get(name pageName, page []byte) error {
	f.mu.Lock()
	e, ok := f.files[name]
	if ok {
		f.order.MoveToFront(e)
	}
	f.mu.Unlock()
	if !ok {
		return ErrNotSpilled
	}
	path := filepath.Join(f.path, name.file())
	data, err := os.ReadFile(path)
	if version := len(fileKind); len(data) > version && data[version] != fileMagic[version] &&
		bytes.HasPrefix(data, []byte(fileKind)) {
		return ErrNotSpilled
	}
	if err == nil && (len(data) != fileHeader+len(page) || !bytes.HasPrefix(data,
		[]byte(fileMagic)) ||
		binary.LittleEndian.Uint32(data[len(fileMagic):]) != crc32.Checksum(data[fileHeader:],
			castagnoli)) {
		err = fmt.Errorf("%s is damaged", path)
	}
	if err != nil {
		f.mu.Lock()
		if e, ok := f.files[name]; ok {
			f.remove(e)
		}
		f.mu.Unlock()
		return err
	}
	now := time.Now()
	_ = os.Chtimes(path, now, now) // the order of use outlives the process
	copy(page, data[fileHeader:])
	return nil
}
