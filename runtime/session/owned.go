// Records of separate clients: a client cannot reach another's, even with its keys.

package session

import "strings"

// Owned is the store as one owner sees it. owner is letters and digits; "" sees the records without
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

// owns tells whether a stored key is the owner's; a key without an owner may not name one.
func owns(owner, stored string) bool {
	of, _ := OwnerOf(stored)
	return of == owner
}

type ownedStore struct {
	Store
	owner string
}

// stored converts an owner's record for the store itself.
func stored(owner string, r Record) Record {
	r.Key = OwnedKey(owner, r.Key)
	also := make([]string, len(r.Also))
	for i, key := range r.Also {
		also[i] = OwnedKey(owner, key)
	}
	r.Also = also
	return r
}

// seen converts it back.
func (s ownedStore) seen(r Record) Record {
	r.Key = strings.TrimPrefix(r.Key, s.owner+"/")
	return r
}

func (s ownedStore) Put(r Record) error { return s.Store.Put(stored(s.owner, r)) }

func (s ownedStore) Get(kind Kind, key string) (Record, bool) {
	r, ok := s.Store.Get(kind, OwnedKey(s.owner, key))
	return s.seen(r), ok && owns(s.owner, r.Key)
}

func (s ownedStore) List(kind Kind) (own []Record) {
	for _, r := range s.Store.List(kind) {
		if owns(s.owner, r.Key) {
			own = append(own, s.seen(r))
		}
	}
	return own
}

func (s ownedStore) Delete(kind Kind, key string) (bool, error) { return remove(s, kind, key) }

func (s ownedStore) Change(work func(c *Change) error) error {
	return s.Store.Change(func(c *Change) error {
		c.owner, c.apart = s.owner, true
		return work(c)
	})
}

func (s ownedStore) Unsaved(kind Kind, key string) error {
	return s.Store.Unsaved(kind, OwnedKey(s.owner, key))
}
