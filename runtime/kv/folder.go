// Each page is one file with a version and a checksum, named by its prefix. A damaged file is
// removed; one of another version is kept, and counts towards the bound.

package kv

import (
	"bytes"
	"container/list"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/ossrun/ossrun/models/derived"
	"github.com/ossrun/ossrun/models/store"
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
}

const (
	fileKind   = "osskv" // and the version: a digit
	fileMagic  = fileKind + "1\x00\x00"
	fileHeader = len(fileMagic) + 4
)

func openFolder(path string, limit int64) (*folder, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	f := &folder{path: path, limit: limit, order: list.New(), files: map[pageName]*list.Element{}}
	entries, err := derived.List(path, "")
	for _, e := range entries {
		if name, ok := parseFile(e.Name()); ok {
			f.files[name] = f.order.PushBack(&file{name, e.Size()})
			f.bytes += e.Size()
		} else if strings.HasSuffix(e.Name(), ".part") { // an earlier release was killed
			_ = os.Remove(filepath.Join(path, e.Name()))
		}
	}
	f.shrink(0)
	return f, err
}

func (n pageName) file() string {
	kind := ".full"
	if n.windowed {
		kind = ".window"
	}
	return hex.EncodeToString(n.prefix[:]) + kind
}

func parseFile(name string) (n pageName, ok bool) {
	prefix, kind, _ := strings.Cut(name, ".")
	b, err := hex.DecodeString(prefix)
	if err != nil || len(b) != len(n.prefix) {
		return n, false
	}
	n = pageName{Hash(b), kind == "window"}
	return n, n.file() == name
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

// drop removes the page if it is here.
func (f *folder) drop(name pageName) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if e, ok := f.files[name]; ok {
		f.remove(e)
	}
}

func (f *folder) put(name pageName, data []byte) error {
	size := int64(fileHeader + len(data))
	if size > f.limit || f.has(name) {
		return nil
	}
	f.mu.Lock()
	f.shrink(size)
	f.mu.Unlock()
	header := binary.LittleEndian.AppendUint32([]byte(fileMagic), derived.Sum(data))
	path := filepath.Join(f.path, name.file())
	if err := store.WriteFile(path, append(header, data...), 0o600); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.files[name]; !ok {
		f.files[name] = f.order.PushFront(&file{name, size})
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
		binary.LittleEndian.Uint32(data[len(fileMagic):]) != derived.Sum(data[fileHeader:])) {
		err = fmt.Errorf("%s %w", path, derived.ErrDamaged)
	}
	if err != nil {
		f.drop(name)
		return err
	}
	derived.Touch(path) // the order of use outlives the process
	copy(page, data[fileHeader:])
	return nil
}
