// Package keys has the named keys of a port: their models, tools, rates and quotas.
//
// What must stay true: a key is random and shown once, when it is made, and the file has only its
// hash; a change of the file applies from the next request on; an unreadable file neither revokes a
// key nor admits a client.
package keys

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/adrg/xdg"

	"github.com/ossrun/ossrun/models/mapping"
	"github.com/ossrun/ossrun/models/store"
)

type Key struct {
	ID      string    `json:"id"` // owner of stored records; it stays when the key is renewed
	Name    string    `json:"name"`
	Hash    string    `json:"hash"` // SHA-256 of the key
	Created time.Time `json:"created"`
	Models  []string  `json:"models,omitempty"`     // allowed models; none: all
	Tools   []string  `json:"tools"`                // allowed kinds; null: all
	Rate    int       `json:"per_minute,omitempty"` // requests that generate; 0: any number
	Tokens  int       `json:"per_day,omitempty"`    // of prompts and answers; 0: any number
	Admin   bool      `json:"admin,omitempty"`      // may read the metrics
}

type file struct {
	Keys []Key `json:"keys"`
	// Optional says that no key is needed while there is none
	Optional bool `json:"off,omitempty"`
}

func File() string { return filepath.Join(xdg.ConfigHome, "ossrun", "keys.json") }

// maxFileBytes is some 40,000 keys.
const maxFileBytes = 16 << 20

// Load reads the keys of a file; a missing file has none.
func Load(path string) ([]Key, error) {
	f, err := load(path)
	return f.Keys, err
}

func load(path string) (f file, err error) {
	b, err := mapping.ReadText(path, maxFileBytes)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return file{Optional: true}, nil
	}
	if err != nil {
		return file{}, fmt.Errorf("reading the keys: %w", err)
	}
	if err = json.Unmarshal(b, &f); err != nil {
		return file{}, fmt.Errorf("reading the keys in %s: %w", path, err)
	}
	for _, k := range f.Keys {
		if hash, err := hex.DecodeString(k.Hash); err != nil || len(hash) != sha256.Size ||
			k.ID == "" || k.Name == "" {
			return file{}, fmt.Errorf("reading the keys in %s: the entry %q is damaged", path,
				k.Name)
		}
	}
	return f, nil
}

// Disable ends the need for keys, which outlives the last one. It fails while there are any.
func Disable(path string) error {
	return change(path, func(f *file) error {
		if len(f.Keys) > 0 {
			return fmt.Errorf("%s still has a key", f.Keys[0].Name)
		}
		f.Optional = true
		return nil
	})
}

// Change replaces the keys of a file by the result of work. Programs take turns by a lock.
func Change(path string, work func([]Key) ([]Key, error)) error {
	return change(path, func(f *file) (err error) {
		f.Keys, err = work(f.Keys)
		f.Optional = f.Optional && len(f.Keys) == 0
		return err
	})
}

func change(path string, work func(*file) error) error {
	// another user who could open the lock could hold it, and then no key could be revoked
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if f, err := store.Open(path+".lock", os.O_RDWR|os.O_CREATE, 0o600); err == nil {
		_ = f.Chmod(0o600) // an earlier version let others read it
		f.Close()
	}
	if err != nil {
		return fmt.Errorf("changing the keys: %w", err)
	}
	lock, err := store.TryLock(path + ".lock")
	for end := time.Now().Add(10 * time.Second); errors.Is(err, store.ErrLocked) &&
		time.Now().Before(end); lock, err = store.TryLock(path + ".lock") {
		time.Sleep(20 * time.Millisecond)
	}
	if err != nil {
		return fmt.Errorf("changing the keys: %w", err)
	}
	defer lock.Close()
	f, err := load(path)
	if err == nil {
		err = work(&f)
	}
	if err != nil {
		return err
	}
	b, err := json.MarshalIndent(f, "", "  ")
	if err == nil {
		err = store.WriteFile(path, append(b, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("changing the keys: %w", err)
	}
	return nil
}

// Prefix begins every key, so that a leaked key shows its purpose.
const Prefix = "ossrun-"

// Renew gives k a new key of 256 random bits, which is not stored anywhere.
func (k *Key) Renew() (key string) {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails, by its documentation
	key = Prefix + base64.RawURLEncoding.EncodeToString(b[:])
	k.Hash = hashOf(key)
	return key
}

func New(name string) (k Key, key string) {
	var id [8]byte
	_, _ = rand.Read(id[:])
	k = Key{ID: hex.EncodeToString(id[:]), Name: name, Created: time.Now().UTC().Truncate(
		time.Second)}
	key = k.Renew()
	return k, key
}

// hashOf needs no salt and no work factor: 256 random bits cannot be guessed.
var id = regexp.MustCompile(`^[0-9a-f]{16}$`)

// IsID tells whether an owner of records is a key, of now or of earlier.
func IsID(owner string) bool { return id.MatchString(owner) }

func hashOf(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

func Index(all []Key, name string) int {
	return slices.IndexFunc(all, func(k Key) bool { return strings.EqualFold(k.Name, name) })
}
