package golden

import (
	"fmt"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/runtime/engine"
)

// The least of a KV manager that can feed one sequence after another to an engine: what the scheduler does with runtime/kv, without sharing.

// Pages are the free pages of a pool, handed out from the end.
type Pages struct{ Free []int32 }

// NewPages are n free pages; page 0 comes first.
func NewPages(n int) *Pages {
	p := &Pages{}
	for i := range n {
		p.Free = append(p.Free, int32(n-1-i))
	}
	return p
}

// Sequence is one sequence's block tables and length.
type Sequence struct {
	Length int // positions fed so far
	Full   []int32
	Window []int32

	pages *Pages
	spec  models.Spec
}

// NewSequence begins an empty sequence.
func (p *Pages) NewSequence(s models.Spec) *Sequence { return &Sequence{pages: p, spec: s} }

// Extend makes room for rows more positions and returns what a Batch needs to know; its tables are the sequence's own and change with the next
// Extend. Window pages that no row from here on sees are given back.
func (q *Sequence) Extend(rows int) (engine.SeqRows, error) {
	start, need := q.Length, (q.Length+rows+engine.PageTokens-1)/engine.PageTokens
	visible := engine.FirstVisible(start, q.spec.Window) / engine.PageTokens
	for i := range min(visible, len(q.Window)) {
		q.give(&q.Window[i])
	}
	for len(q.Full) < need {
		if len(q.pages.Free) < 2 {
			return engine.SeqRows{}, fmt.Errorf("no KV page is left for position %d", len(q.Full)*engine.PageTokens)
		}
		q.Full = append(q.Full, q.take())
		q.Window = append(q.Window, q.take())
	}
	q.Length += rows
	return engine.SeqRows{Start: int32(start), Rows: int32(rows), Full: q.Full, Window: q.Window}, nil
}

// Close gives every page back.
func (q *Sequence) Close() {
	for _, table := range [][]int32{q.Full, q.Window} {
		for i := range table {
			q.give(&table[i])
		}
	}
	q.Full, q.Window, q.Length = nil, nil, 0
}

func (q *Sequence) take() int32 {
	last := len(q.pages.Free) - 1
	page := q.pages.Free[last]
	q.pages.Free = q.pages.Free[:last]
	return page
}

func (q *Sequence) give(page *int32) {
	if *page >= 0 {
		q.pages.Free = append(q.pages.Free, *page)
		*page = -1
	}
}
