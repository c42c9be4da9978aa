package enginetest

import (
	"fmt"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/runtime/engine"
)

// The smallest KV manager: what the scheduler does with runtime/kv, but it shares no pages.

// Pages are the free pages of a pool, handed out from the end.
type Pages struct {
	Free  []int32
	Twins []int32 // of window pages; nil if they take one page of the pool (engine.WindowPages)
}

// NewPages are n free pages; page 0 comes first.
func NewPages(n int) *Pages {
	p := &Pages{}
	for i := range n {
		p.Free = append(p.Free, int32(n-1-i))
	}
	return p
}

// WithTwins makes window pages take two pages each if kv asks for that.
func (p *Pages) WithTwins(kv string) *Pages {
	if engine.WindowPages(kv) > 1 {
		p.Twins = make([]int32, len(p.Free))
	}
	return p
}

type Sequence struct {
	Length int // positions fed so far
	Full   []int32
	Window []int32

	pages *Pages
	spec  models.Spec
}

func (p *Pages) NewSequence(s models.Spec) *Sequence { return &Sequence{pages: p, spec: s} }

// Extend makes room for rows more positions, and gives back window pages that no later row sees.
// The tables are the sequence's own and change with the next Extend.
func (q *Sequence) Extend(rows int) (engine.SeqRows, error) {
	start, need := q.Length, (q.Length+rows+engine.PageTokens-1)/engine.PageTokens
	visible := engine.FirstVisible(start, q.spec.Window) / engine.PageTokens
	for i := range min(visible, len(q.Window)) {
		q.giveWindow(&q.Window[i])
	}
	each := 2
	if q.pages.Twins != nil {
		each = 3
	}
	for len(q.Full) < need {
		if len(q.pages.Free) < each {
			return engine.SeqRows{}, fmt.Errorf("no KV page is left for position %d",
				len(q.Full)*engine.PageTokens)
		}
		q.Full = append(q.Full, q.take())
		q.Window = append(q.Window, q.take())
		if q.pages.Twins != nil {
			q.pages.Twins[q.Window[len(q.Window)-1]] = q.take()
		}
	}
	q.Length += rows
	return engine.SeqRows{Start: int32(start), Rows: int32(rows), Full: q.Full, Window: q.Window},
		nil
}

// Twins are those of the pool, for a Batch.
func (q *Sequence) Twins() []int32 { return q.pages.Twins }

func (q *Sequence) Close() {
	for i := range q.Full {
		q.give(&q.Full[i])
		q.giveWindow(&q.Window[i])
	}
	q.Full, q.Window, q.Length = nil, nil, 0
}

func (q *Sequence) take() int32 {
	last := len(q.pages.Free) - 1
	page := q.pages.Free[last]
	q.pages.Free = q.pages.Free[:last]
	return page
}

func (q *Sequence) giveWindow(page *int32) {
	if q.pages.Twins != nil && *page >= 0 {
		q.give(&q.pages.Twins[*page])
	}
	q.give(page)
}

func (q *Sequence) give(page *int32) {
	if *page >= 0 {
		q.pages.Free = append(q.pages.Free, *page)
		*page = -1
	}
}
