// Records of separate clients: a client cannot reach another's, even with its keys.

package records

import (
	"errors"
	"strings"
)

// Owned is the store as one owner sees it. owner has no slash; "" sees the records without
// an owner. The store itself has them under OwnedKey.
func Owned(s Store, owner string) Store { return ownedStore{s, owner} }

// OwnedKey is the key of an owner's record in the store itself.
func OwnedKey(owner, key string) string {
	if owner == "" {
		return key
	}
	return owner + "/" + key
}

// OwnerOf splits a key of the store itself into owner and key.
func OwnerOf(stored string) (owner, key string) {
	if owner, key, owned := strings.Cut(stored, "/"); owned {
		return owner, key
	}
	return "", stored
}

// DeleteOwned deletes the records of an owner and returns how many there were.
func DeleteOwned(s Store, owner string) (n int, err error) {
	return takeFrom(s, owner, func(*Change, Record) error { return nil })
}

// MoveOwned gives the records of an owner to another and returns how many there were.
func MoveOwned(s Store, owner, to string) (n int, err error) {
	return takeFrom(s, owner, func(c *Change, r Record) error { return c.Put(toStored(to, r)) })
}

// takeFrom deletes the records of an owner and passes each to add, in a change for each kind.
func takeFrom(s Store, owner string, add func(*Change, Record) error) (n int, err error) {
	for _, kind := range []Kind{KindRunning, KindResponse, KindConversation, KindTurn, KindChat,
		KindBatch, KindFile, KindContent, KindCompletion} {
		list := Owned(s, owner).List(kind)
		n += len(list)
		if len(list) == 0 {
			continue
		}
		if err := s.Change(func(c *Change) error {
			var err error
			for _, r := range list {
				c.Delete(kind, OwnedKey(owner, r.Key))
				err = errors.Join(err, add(c, r))
			}
			return err
		}); err != nil {
			return n, err
		}
	}
	return n, nil
}

// isOwner tells whether a stored key is the owner's; a key without an owner may not name one.
func isOwner(owner, stored string) bool {
	keyOwner, _ := OwnerOf(stored)
	return keyOwner == owner
}

type ownedStore struct {
	Store
	owner string
}

// toStored converts an owner's record for the store itself.
func toStored(owner string, r Record) Record {
	r.Key = OwnedKey(owner, r.Key)
	also := make([]string, len(r.Also))
	for i, key := range r.Also {
		also[i] = OwnedKey(owner, key)
	}
	r.Also = also
	return r
}

func (s ownedStore) fromStored(r Record) Record {
	r.Key = strings.TrimPrefix(r.Key, s.owner+"/")
	keys := make([]string, len(r.Also)) // the store still has r.Also
	for i, key := range r.Also {
		keys[i] = strings.TrimPrefix(key, s.owner+"/")
	}
	r.Also = keys
	return r
}

func (s ownedStore) Put(r Record) error { return s.Store.Put(toStored(s.owner, r)) }

func (s ownedStore) Get(kind Kind, key string) (Record, bool) {
	r, ok := s.Store.Get(kind, OwnedKey(s.owner, key))
	return s.fromStored(r), ok && isOwner(s.owner, r.Key)
}

func (s ownedStore) List(kind Kind) (records []Record) {
	for _, r := range s.Store.List(kind) {
		if isOwner(s.owner, r.Key) {
			records = append(records, s.fromStored(r))
		}
	}
	return records
}

func (s ownedStore) Delete(kind Kind, key string) (bool, error) { return remove(s, kind, key) }

func (s ownedStore) Change(work func(c *Change) error) error {
	return s.Store.Change(func(c *Change) error {
		c.owner, c.ownerOnly = s.owner, true
		return work(c)
	})
}

func (s ownedStore) Unsaved(kind Kind, key string) error {
	return s.Store.Unsaved(kind, OwnedKey(s.owner, key))
}
