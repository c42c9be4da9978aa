// Which server has computed which beginning of a prompt.

package replica

import (
	"encoding/binary"
	"hash/maphash"
)

const (
	// block is how many tokens are looked up together.
	block = 128
	// mostKnown is how many blocks one generation of the table has.
	mostKnown = 1 << 16
)

// affinity knows the servers of the blocks that were seen lately, in two generations: when the
// younger one is full the older one is dropped.
type affinity struct {
	seed         maphash.Seed
	younger, old map[uint64]*server
}

func newAffinity() affinity {
	return affinity{maphash.MakeSeed(), map[uint64]*server{}, map[uint64]*server{}}
}

// keys calls each with the key of every whole block, which stands for all tokens up to its end,
// until each returns false.
func (a *affinity) keys(ids []int32, each func(key uint64) bool) {
	var h maphash.Hash
	h.SetSeed(a.seed)
	var b [4]byte
	for i, id := range ids {
		binary.LittleEndian.PutUint32(b[:], uint32(id))
		_, _ = h.Write(b[:]) // it cannot fail
		if (i+1)%block == 0 && !each(h.Sum64()) {
			return
		}
	}
}

// find returns the server that has the longest beginning of ids; nil: none has a block of it.
func (a *affinity) find(ids []int32) (last *server) {
	a.keys(ids, func(key uint64) bool {
		s := a.younger[key]
		if s == nil {
			s = a.old[key]
		}
		if s != nil {
			last = s
		}
		return s != nil
	})
	return last
}

// add notes that a server has ids.
func (a *affinity) add(ids []int32, s *server) {
	a.keys(ids, func(key uint64) bool {
		if len(a.younger) >= mostKnown {
			a.younger, a.old = map[uint64]*server{}, a.younger
		}
		a.younger[key] = s
		return true
	})
}

// forget drops all of a server's: what it had is gone with it.
func (a *affinity) forget(s *server) {
	for _, m := range []map[uint64]*server{a.younger, a.old} {
		for key, has := range m {
			if has == s {
				delete(m, key)
			}
		}
	}
}
