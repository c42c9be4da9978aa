// Character classes of Unicode 16, in which the split pattern is defined.
//
// Go's own tables are of another Unicode version: thousands of code points would be in another
// class and change ids.

package token

import (
	"encoding/binary"
	"errors"
)

// class is a character class of the split pattern.
type class uint8

const (
	misc   class = iota
	upper        // Lu, Lt
	lower        // Ll
	letter       // Lm, Lo: counts as upper and as lower
	mark         // M: counts as upper and as lower, and as other
	number       // N
	space        // White_Space
)

const (
	codePoints = 0x110000
	pageSize   = 256 // code points that share one entry of classTable.page
)

// classTable is a two level table: most pages of 256 code points are alike and stored once.
type classTable struct {
	ascii [128]class
	page  [codePoints / pageSize]uint16
	flat  []class // pages, pageSize each
}

func (c *classTable) lookup(r rune) class {
	return c.flat[uint32(c.page[uint32(r)/pageSize])*pageSize+uint32(r)%pageSize]
}

// newClassTable reads runs of code points, each an unsigned varint of length<<3
// class, that cover Unicode exactly.
func newClassTable(runs []byte) (classTable, error) {
	var c classTable
	var page [pageSize]class
	seen := map[[pageSize]class]uint16{}
	next := 0
	for len(runs) > 0 {
		v, n := binary.Uvarint(runs)
		if n <= 0 || v>>3 > uint64(codePoints-next) || class(v&7) > space {
			return c, errors.New("character classes: bad run")
		}
		runs = runs[n:]
		for remaining := int(v >> 3); remaining > 0; remaining-- {
			page[next%pageSize] = class(v & 7)
			next++
			if next%pageSize != 0 {
				continue
			}
			id, ok := seen[page]
			if !ok {
				id = uint16(len(seen))
				seen[page] = id
				c.flat = append(c.flat, page[:]...)
			}
			c.page[next/pageSize-1] = id
		}
	}
	if next != codePoints {
		return c, errors.New("character classes: not all code points are covered")
	}
	copy(c.ascii[:], c.flat[:128])
	return c, nil
}
