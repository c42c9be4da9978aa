package multi

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/runtime/engine"
)

// The KV pool over several cards. Every card has the same pages, each with its own layers alone,
// and one block table serves all. To the engine, and to whoever swaps pages out, it is one pool in
// one device's layout (runtime/engine/cache.go): a page is slots, and slot i has the i-th full
// layer or the i-th windowed one, as the page is used.
//
//	slot            0       1       2              a cut between layers 2 and 3:
//	windowed layer  0       2       4              card 0: slots 0-1, card 1: slots 1-2
//	full layer      1       3       5
//
// Where the two layers of a slot lie on different cards, both have the slot. Which one is meant
// follows from how steps used the page; a page that was written from outside and not used yet has
// the same bytes on both.
//
// What must stay true: bytes that were written are read back, and a step's keys and values are read
// as it left them.

// cache is the pool to who compiles and runs steps: a pool, or with pages of 8 bits a pairedPool.
type cache interface {
	engine.Region
	owner() *Device
	freed() bool
	part(card int) (r engine.Region, page int64)    // a card's, and the bytes of a page there
	place(card, layer int) (place int, inTwin bool) // of a layer on its card, as engine.Op has it
	used(b *engine.Batch, window int) error         // before a step runs
}

// newCache makes the pool that a program wants.
func (d *Device) newCache(p *engine.Program) (engine.Region, error) {
	if p.Settings.KVCacheDtype == engine.KVFP8 {
		return d.newPairedPool(p)
	}
	return d.newPool(p)
}

// ownPage is a page's bytes on a card with layers [from, to), for a program of which p is one.
func ownPage(p *engine.Program, from, to int) int64 {
	if p.Settings.KVCacheDtype == engine.KVFP8 {
		return int64(halvesOf(p.Spec, from, to).units()) * unitBytes(p.Spec)
	}
	own := slotsOf(p.Spec, from, to)
	return int64(own.to-own.from) * slotBytes(p)
}

// slots are those of a card: [from, to) of those of a whole page.
type slots struct{ from, to int }

// slotsOf gives the slots of a card with layers [from, to).
func slotsOf(s models.Spec, from, to int) slots {
	a := slots{s.Layers, 0}
	for layer := from; layer < to; layer++ {
		at := slotOf(s, layer)
		a.from, a.to = min(a.from, at), max(a.to, at+1)
	}
	a.from = min(a.from, a.to)
	return a
}

// slotOf is a layer's place among those of its kind.
func slotOf(s models.Spec, layer int) (n int) {
	for i := range layer {
		if s.Sliding(i) == s.Sliding(layer) {
			n++
		}
	}
	return n
}

// slotBytes is K and V of a page's positions in one layer.
func slotBytes(p *engine.Program) int64 {
	return 2 * int64(p.Spec.KVHeads) * engine.PageTokens * int64(p.Spec.HeadDim) *
		p.KV().Type.Size()
}

// kinds of pages.
const (
	unused uint8 = iota // by no step since it was written from outside, or at all
	full
	windowed
)

// pool is the cache of all cards.
type pool struct {
	dev   *Device
	spec  models.Spec
	pages int
	slot  int64 // bytes
	each  int   // slots of a page
	cards []slots
	parts []engine.Region // by card; nil for one without layers
	where [3][]int        // card of a slot, by kind; -1: there is no such layer

	mu   sync.Mutex
	kind []uint8 // by page
}

func (d *Device) newPool(p *engine.Program) (*pool, error) {
	if err := d.use(); err != nil {
		return nil, err
	}
	c := &pool{dev: d, spec: p.Spec, pages: p.Settings.Pages, slot: slotBytes(p),
		parts: make([]engine.Region, len(d.ends)), kind: make([]uint8, p.Settings.Pages)}
	c.each = int(p.PageBytes() / c.slot)
	for kind := range c.where {
		c.where[kind] = make([]int, c.each)
		for i := range c.where[kind] {
			c.where[kind][i] = -1
		}
	}
	for layer := range p.Spec.Layers {
		kind := full
		if p.Spec.Sliding(layer) {
			kind = windowed
		}
		c.where[kind][slotOf(p.Spec, layer)] = d.cardOf(layer)
	}
	from := 0
	for i, to := range d.ends {
		c.cards = append(c.cards, slotsOf(p.Spec, from, to))
		if n := c.cards[i].to - c.cards[i].from; n > 0 {
			var err error
			if c.parts[i], err = d.devices[i].Alloc(int64(c.pages) * int64(n) *
				c.slot); err != nil {
				return nil, errors.Join(fmt.Errorf("%d KV pages of layers %d to %d: %w", c.pages,
					from, to-1, err), c.Free())
			}
		}
		from = to
	}
	return c, nil
}

func (c *pool) owner() *Device { return c.dev }
func (c *pool) freed() bool    { return c.parts == nil }

func (c *pool) part(card int) (engine.Region, int64) {
	own := c.cards[card]
	return c.parts[card], int64(own.to-own.from) * c.slot
}

func (c *pool) place(card, layer int) (int, bool) {
	return slotOf(c.spec, layer) - c.cards[card].from, false
}

// used notes what the pages are that a step writes.
func (c *pool) used(b *engine.Batch, _ int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range b.Seqs {
		q := &b.Seqs[i]
		for at := q.Start / engine.PageTokens; at*engine.PageTokens < q.Start+q.Rows; at++ {
			c.kind[q.Full[at]], c.kind[q.Window[at]] = full, windowed
		}
	}
	return nil
}

func (c *pool) Bytes() int64 { return int64(c.pages) * int64(c.each) * c.slot }

func (c *pool) check(offset int64, n int) error {
	if c.parts == nil {
		return errors.New("this region has been freed")
	}
	if offset < 0 || offset > c.Bytes()-int64(n) {
		return fmt.Errorf("%d bytes at %d of a region of %d", n, offset, c.Bytes())
	}
	return nil
}

// holders are the cards that have a slot of a page of a kind: the first one is to be read, all are
// to be written from outside.
func (c *pool) holders(kind uint8, slot int) []int {
	first, second := c.where[full][slot], c.where[windowed][slot]
	if kind == windowed {
		first, second = second, first
	}
	switch {
	case first < 0:
		return []int{second}
	case second < 0 || first == second:
		return []int{first}
	}
	return []int{first, second}
}

// Read gathers bytes from the cards.
func (c *pool) Read(offset int64, dst []byte) error {
	return c.walk(offset, dst, func(holders []int, at []int64,
		part []byte) error {
		return c.parts[holders[0]].Read(at[0], part)
	})
}

// Write spreads bytes over the cards.
func (c *pool) Write(offset int64, src []byte) error {
	return c.walk(offset, src, func(holders []int, at []int64, part []byte) error {
		for i, card := range holders {
			if err := c.parts[card].Write(at[i], part); err != nil {
				return err
			}
		}
		return nil
	})
}

// walk goes through bytes of the pool a run at a time: slots of one page that the same cards have.
// at is where the run lies on each of them.
func (c *pool) walk(offset int64, data []byte, do func(holders []int, at []int64,
	part []byte) error) error {
	if err := c.check(offset, len(data)); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	page := int64(c.each) * c.slot
	for len(data) > 0 {
		number, within := offset/page, offset%page
		slot := int(within / c.slot)
		holders := c.holders(c.kind[number], slot)
		n := c.slot - within%c.slot
		for next := slot + 1; next < c.each && slices.Equal(c.holders(c.kind[number], next),
			holders); next++ {
			n += c.slot
		}
		n = min(n, int64(len(data)))
		at := make([]int64, len(holders))
		for i, card := range holders {
			own := c.cards[card]
			at[i] = number*int64(own.to-own.from)*c.slot + within - int64(own.from)*c.slot
		}
		if err := do(holders, at, data[:n]); err != nil {
			return err
		}
		data, offset = data[n:], offset+n
	}
	return nil
}

func (c *pool) Free() error {
	if c.parts == nil {
		return nil
	}
	err := freeAll(c.parts)
	c.parts = nil
	c.dev.release()
	return err
}

// freeAll frees what is there of parts.
func freeAll(parts []engine.Region) error {
	var errs []error
	for _, r := range parts {
		if r != nil {
			errs = append(errs, r.Free())
		}
	}
	return errors.Join(errs...)
}
