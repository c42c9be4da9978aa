package models

// A GGUF model, written once in the Hugging Face layout, where the engine maps it. Its blocks lie differently (a scale between every
// 16 bytes, gate and up apart), and kernels for a second layout would have to be written and held to the goldens on every device; so the
// disk pays, once, and says so. The copy lies in XDG_CACHE_HOME/ossrun/converted/ID/NAME, where ID follows from the file's header, size,
// time and samples of its bytes: a file that changes is converted anew.
//
// What must stay true: a folder under converted/ID is whole, since it is renamed there after its last byte was flushed; and the
// conversion reads its source once, in pieces of an expert matrix at most.

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ossrun/ossrun/models/gguf"
	"github.com/ossrun/ossrun/models/store"
)

// Conversion is a GGUF model and its place in the Hugging Face layout.
type Conversion struct {
	Source string // the GGUF file, or the first of several
	Folder string // where the converted checkpoint is or will be
	Bytes  int64  // of the converted weights
	Done   bool

	set      *gguf.Set
	spec     Spec
	config   []byte
	generate []byte
	rewrites []rewrite
}

// Converted is what source.json beside a converted checkpoint says.
type Converted struct {
	Source  string `json:"source"`  // path of the GGUF file when it was converted
	Bytes   int64  `json:"bytes"`   // its size
	Rounded int64  `json:"rounded"` // values that bfloat16 could not hold
	Values  int64  `json:"values"`  // of the tensors that are bfloat16 here

	Folder string `json:"-"` // where it lies
}

// ConvertedRoot is the folder of all conversions.
func ConvertedRoot() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding a place for converted models: %w", err)
	}
	return filepath.Join(cache, "ossrun", "converted"), nil
}

// PlanConversion reads a GGUF model's header and checks that every tensor of a gpt-oss is there. name is what the model will be called.
func PlanConversion(path, name string) (*Conversion, error) {
	set, err := gguf.OpenSet(path)
	if err != nil {
		return nil, err
	}
	c := &Conversion{Source: set.Files[0], set: set}
	if c.config, c.generate, err = ggufConfig(set); err != nil {
		return nil, err
	}
	if c.spec, err = parseSpec(c.config, c.generate); err != nil {
		return nil, fmt.Errorf("%s, read as a Hugging Face checkpoint: %w", filepath.Base(c.Source), err)
	}
	if c.rewrites, err = ggufRewrites(c.spec, set); err != nil {
		return nil, err
	}
	root, err := ConvertedRoot()
	if err != nil {
		return nil, err
	}
	id, err := identity(set)
	if err != nil {
		return nil, err
	}
	c.Bytes = c.spec.WeightBytes()
	c.Folder = filepath.Join(root, id, name)
	c.Done = exists(filepath.Join(c.Folder, sourceName))
	return c, nil
}

// sourceName is the file beside a conversion that says what it was made from.
const sourceName = "source.json"

// identity tells a set of files from every other one without reading all of it.
func identity(set *gguf.Set) (string, error) {
	const samples, length = 64, 4 << 10
	sum := sha256.New()
	for _, path := range set.Files {
		f, err := os.Open(path)
		if err != nil {
			return "", err
		}
		stat, err := f.Stat()
		if err != nil {
			return "", errors.Join(err, f.Close())
		}
		fmt.Fprintf(sum, "%d %d\n", stat.Size(), stat.ModTime().UnixNano())
		buffer := make([]byte, length)
		for i := range int64(samples) {
			n, err := f.ReadAt(buffer, stat.Size()/samples*i)
			if err != nil && !errors.Is(err, io.EOF) {
				return "", errors.Join(err, f.Close())
			}
			sum.Write(buffer[:n])
		}
		if err := f.Close(); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(sum.Sum(nil)[:8]), nil
}

// SpaceError says that the disk cannot hold a conversion.
type SpaceError struct {
	Path       string
	Need, Free int64
}

func (e *SpaceError) Error() string {
	return fmt.Sprintf("%.2f GB are needed in %s and %.2f GB are free: make room, or set XDG_CACHE_HOME to another disk", float64(e.Need)/1e9, e.Path, float64(e.Free)/1e9)
}

// Run converts. progress is called with bytes done and bytes in all, several times a second, by one goroutine; it may be nil. Another
// process that converts the same file is waited for. Cancelling leaves nothing behind.
func (c *Conversion) Run(ctx context.Context, progress func(done, total int64)) (err error) {
	base := filepath.Dir(c.Folder)
	lock, err := waitLock(ctx, base+".lock")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	if c.Done = exists(filepath.Join(c.Folder, sourceName)); c.Done {
		return nil
	}
	partial := base + ".partial"
	if err := os.RemoveAll(partial); err != nil { // of a run that was killed
		return err
	}
	if free, err := store.Free(filepath.Dir(base)); err == nil && free < c.Bytes {
		return &SpaceError{filepath.Dir(base), c.Bytes, free}
	}
	folder := filepath.Join(partial, filepath.Base(c.Folder))
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(partial))
		}
	}()
	about := Converted{Source: c.Source, Bytes: c.set.Size}
	if about.Rounded, about.Values, err = c.weights(ctx, filepath.Join(folder, singleFile), progress); err != nil {
		return err
	}
	text, err := json.MarshalIndent(about, "", "  ")
	if err != nil {
		return err
	}
	for name, text := range map[string][]byte{"config.json": c.config, "generation_config.json": c.generate, sourceName: text} {
		if err := store.WriteFile(filepath.Join(folder, name), text); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(base); err != nil { // without source.json it is nothing
		return err
	}
	if err := os.Rename(partial, base); err != nil {
		return err
	}
	c.Done = true
	return nil
}

// waitLock takes a lock as soon as its holder gives it up.
func waitLock(ctx context.Context, path string) (*store.Lock, error) {
	for {
		lock, err := store.TryLock(path)
		if !errors.Is(err, store.ErrLocked) {
			return lock, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(250 * time.Millisecond):
		}
	}
}

// ListConverted lists what was converted, in the order of the folders.
func ListConverted() ([]Converted, error) {
	root, err := ConvertedRoot()
	if err != nil {
		return nil, err
	}
	found, err := filepath.Glob(filepath.Join(escapeGlob(root), "*", "*", sourceName))
	if err != nil {
		return nil, err
	}
	var list []Converted
	for _, path := range found {
		if strings.HasSuffix(filepath.Dir(filepath.Dir(path)), ".partial") {
			continue
		}
		text, err := readFile(path)
		var about Converted
		if err != nil || json.Unmarshal(text, &about) != nil {
			continue // deleted meanwhile, or written by somebody else
		}
		about.Folder = filepath.Dir(path)
		list = append(list, about)
	}
	return list, nil
}

// FindConverted finds what was converted from a model of another program, from a GGUF file, or in a folder; false when nothing was.
func FindConverted(name string) (Converted, bool, error) {
	list, err := ListConverted()
	if err != nil {
		return Converted{}, false, err
	}
	path := name
	if _, ok, _ := findElsewhere(name); ok {
		for _, e := range ListElsewhere() {
			if e.Name == name && e.Conversion != nil {
				path = e.Conversion.Folder
			}
		}
	} else if gguf.Is(name) {
		plan, err := PlanConversion(name, ggufName(filepath.Base(name)))
		if err != nil {
			return Converted{}, false, err
		}
		path = plan.Folder
	}
	if path, err = filepath.Abs(path); err != nil {
		return Converted{}, false, err
	}
	for _, c := range list {
		if c.Folder == path || filepath.Dir(c.Folder) == filepath.Dir(path) {
			return c, true, nil
		}
	}
	return Converted{}, false, nil
}

// Remove deletes the conversion, never what it was made from. *store.InUseError when a running ossrun reads it.
func (c Converted) Remove() (freed int64, err error) {
	return store.RemoveFolder(filepath.Dir(c.Folder))
}
