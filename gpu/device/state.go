package device

import (
	"encoding/binary"

	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/runtime/engine"
)

// The state of a step in device memory, int32 throughout:
//
//	counts    rows, logit rows, slots (rows * experts per token), rows that stand alone
//	tokens    [bucket]
//	positions [bucket]
//	fullAt    [bucket]  where in tables the row's table of the full layers begins
//	windowAt  [bucket]  the same of the windowed layers; may lie before the first entry, since
//	                    pages that have left the window are not sent
//	logitRow  [bucket]
//	alone     [bucket]  the rows that no other row of their sequence follows or precedes
//	twinAt    [bucket]  of the windowed layers' second pages; only with a cache of 8 bits
//	tables    all block tables, one after another
//
// It is written by one copy in front of the graph. Only the part of tables that is in use travels.

type layout struct {
	bucket int  // most rows
	seqs   int  // most sequences
	most   int  // entries of tables
	twins  bool // window pages have a second one
}

const counts = 4

// layoutOf is the state of a program. The tables have room for as many sequences as a step may
// have, all of them at the end of their context.
func layoutOf(p *engine.Program) layout {
	return layout{p.Rows, p.Settings.Seqs(p.Rows), engine.TableEntries(p.Spec, p.Settings, p.Rows),
		engine.WindowPages(p.Settings.KVCacheDtype) > 1}
}

func (l layout) bytes() int { return 4 * (l.at(tablesArray) + l.most) }

// place is the offset of one of the arrays behind counts, in bytes.
func (l layout) place(array int) driver.Pointer { return driver.Pointer(4 * l.at(array)) }

// at is the same in words of int32.
func (l layout) at(array int) int {
	if array == tablesArray && !l.twins {
		array = twinArray
	}
	return counts + array*l.bucket
}

const (
	tokensArray = iota
	positionsArray
	fullArray
	windowArray
	logitArray
	aloneArray
	twinArray
	tablesArray
)

// write fills the state of a batch and returns how many bytes of it are in use.
func (l layout) write(state []byte, b *engine.Batch, window, perToken int) int {
	put := func(at int, v int32) { binary.NativeEndian.PutUint32(state[4*at:], uint32(v)) }
	put(0, int32(len(b.Tokens)))
	put(1, int32(len(b.LogitRows)))
	put(2, int32(len(b.Tokens)*perToken))
	for i, t := range b.Tokens {
		put(l.at(tokensArray)+i, t)
	}
	for i, r := range b.LogitRows {
		put(l.at(logitArray)+i, r)
	}
	row, tables, used, alone := 0, l.at(tablesArray), 0, 0
	for i := range b.Seqs {
		q := &b.Seqs[i]
		need := (int(q.Start+q.Rows) + engine.PageTokens - 1) / engine.PageTokens
		first := engine.FirstVisible(int(q.Start), window) / engine.PageTokens
		fullAt := int32(used)
		for _, page := range q.Full[:need] {
			put(tables+used, page)
			used++
		}
		windowAt := int32(used - first)
		for _, page := range q.Window[first:need] {
			put(tables+used, page)
			used++
		}
		if q.Rows == 1 {
			put(l.at(aloneArray)+alone, int32(row))
			alone++
		}
		twinAt := int32(used - first)
		if l.twins && b.Twins != nil { // without them the cache is not read
			for _, page := range q.Window[first:need] {
				put(tables+used, b.Twins[page])
				used++
			}
		}
		for r := range q.Rows {
			put(l.at(positionsArray)+row, q.Start+r)
			put(l.at(fullArray)+row, fullAt)
			put(l.at(windowArray)+row, windowAt)
			if l.twins {
				put(l.at(twinArray)+row, twinAt)
			}
			row++
		}
	}
	put(3, int32(alone))
	return 4 * (tables + used)
}
