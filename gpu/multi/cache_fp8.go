package multi

import (
	"errors"
	"fmt"
	"sync"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/runtime/engine"
)

// The KV pool over several cards where a number of a full layer takes one byte and one of a window
// layer two (engine.KVFP8), so that positions of the window layers take two pages: the one that a
// block table names and its twin. In the pool the named page has the first half of all window
// layers. A card that had its layers at those places would have room for whole pages; so a card has
// its own layers' halves, as if they were a model:
//
//	12 window layers, a cut behind the sixth    named page          twin
//	the pool                                    0 1 2 3 4 5         6 7 8 9 10 11
//	card 0                                      0 1 2               3 4 5
//	card 1                                      6 7 8               9 10 11
//
// Where the bytes of a page lie follows from what the page is, which steps tell. What is written
// from outside waits on the host until a step uses the page: that is one page in a thousand, on its
// way back from where it was swapped out.
//
// What must stay true: as in cache.go.

// twin is a kind of pages beside those of cache.go.
const twin uint8 = 3

// halves are the places of a run of layers: each layer among those of its kind, the window layers
// in two halves.
type halves struct {
	full, window int // how many there are
}

func halvesOf(s models.Spec, from, to int) (h halves) {
	for layer := from; layer < to; layer++ {
		if s.Sliding(layer) {
			h.window++
		} else {
			h.full++
		}
	}
	return h
}

// first is how many window layers the named page has.
func (h halves) first() int { return (h.window + 1) / 2 }

// units is the room of a page: of K and V of its positions, in one layer, in bytes.
func (h halves) units() int { return max(h.full, 2*h.first()) }

// place is that of a layer of which n of its kind come before it.
func (h halves) place(windowed bool, n int) (place int, inTwin bool) {
	if windowed && n >= h.first() {
		return n - h.first(), true
	}
	return n, false
}

// layerHome is where a card has a layer's part of a page.
type layerHome struct {
	card   int
	offset int64 // in the card's page
	inTwin bool  // in that of the twin
	bytes  int64
}

// pairedPool is the cache of all cards.
type pairedPool struct {
	dev    *Device
	pages  int
	page   int64                 // bytes, to the engine
	own    []int64               // the same by card
	parts  []engine.Region       // by card; nil for one without layers
	homes  [twin + 1][]layerHome // by kind of page, in the order of the pool
	places []halfPlace           // by layer, on its card

	mu      sync.Mutex
	kind    []uint8          // by page
	partner []int32          // by page: the twin of a window page and the other way about; -1: none
	waiting map[int32][]byte // what was written from outside and not used yet
}

// halfPlace is what a card's operations are told.
type halfPlace struct {
	place  int
	inTwin bool
}

// unitBytes is K and V of a page's positions in one layer, of one byte each.
func unitBytes(s models.Spec) int64 {
	return 2 * int64(s.KVHeads) * engine.PageTokens * int64(s.HeadDim)
}

func (d *Device) newPairedPool(p *engine.Program) (*pairedPool, error) {
	if err := d.use(); err != nil {
		return nil, err
	}
	c := &pairedPool{dev: d, pages: p.Settings.Pages, page: p.PageBytes(),
		parts: make([]engine.Region, len(d.ends)), waiting: map[int32][]byte{},
		kind: make([]uint8, p.Settings.Pages), partner: make([]int32, p.Settings.Pages)}
	for i := range c.partner {
		c.partner[i] = -1
	}
	s, unit := p.Spec, unitBytes(p.Spec)
	all, from := halvesOf(s, 0, s.Layers), 0
	for card, to := range d.ends {
		h := halvesOf(s, from, to)
		for layer := from; layer < to; layer++ {
			windowed, kind, bytes := s.Sliding(layer), full, unit
			if windowed {
				kind, bytes = kindOfWindow(all, slotOf(s, layer)), 2*unit
			}
			before := halvesOf(s, from, layer)
			n := before.full
			if windowed {
				n = before.window
			}
			place, inTwin := h.place(windowed, n)
			c.places = append(c.places, halfPlace{place, inTwin})
			c.homes[kind] = append(c.homes[kind], layerHome{card, int64(place) * bytes, inTwin,
				bytes})
		}
		c.own = append(c.own, int64(h.units())*unit)
		if to > from {
			var err error
			if c.parts[card], err = d.devices[card].Alloc(int64(c.pages) *
				c.own[card]); err != nil {
				return nil, errors.Join(fmt.Errorf("%d KV pages of layers %d to %d: %w", c.pages,
					from, to-1, err), c.Free())
			}
		}
		from = to
	}
	return c, nil
}

// kindOfWindow is the kind of page that has the n-th window layer in the pool.
func kindOfWindow(all halves, n int) uint8 {
	if _, inTwin := all.place(true, n); inTwin {
		return twin
	}
	return windowed
}

func (c *pairedPool) owner() *Device { return c.dev }
func (c *pairedPool) freed() bool    { return c.parts == nil }

func (c *pairedPool) part(card int) (engine.Region, int64) { return c.parts[card], c.own[card] }

func (c *pairedPool) place(_, layer int) (int, bool) {
	return c.places[layer].place, c.places[layer].inTwin
}

// used notes what the pages of a step are, and sends those that wait to the cards.
func (c *pairedPool) used(b *engine.Batch, window int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var late []int32
	note := func(page int32, kind uint8, partner int32) {
		c.kind[page], c.partner[page] = kind, partner
		if _, waits := c.waiting[page]; waits {
			late = append(late, page)
		}
	}
	for i := range b.Seqs {
		q := &b.Seqs[i]
		last := int(q.Start+q.Rows-1) / engine.PageTokens
		// what it writes; what it sees beside is known
		fullFrom, windowFrom := int(q.Start)/engine.PageTokens, int(q.Start)/engine.PageTokens
		if len(c.waiting) > 0 {
			fullFrom, windowFrom = 0, engine.FirstVisible(int(q.Start), window)/engine.PageTokens
		}
		for at := windowFrom; at <= last; at++ {
			named := q.Window[at]
			note(named, windowed, b.Twins[named])
			note(b.Twins[named], twin, named)
		}
		for at := fullFrom; at <= last; at++ {
			note(q.Full[at], full, -1)
		}
	}
	for _, page := range late {
		if contents, waits := c.waiting[page]; waits { // a page may be met twice
			delete(c.waiting, page)
			if err := c.write(page, contents); err != nil {
				return fmt.Errorf("KV page %d, written from outside: %w", page, err)
			}
		}
	}
	return nil
}

// spread calls do for each piece of a page that lies on one card in one piece: bytes [from, to) of
// the page are at `at` of the card's part.
func (c *pairedPool) spread(page int32, do func(card int, at int64, from, to int64) error) error {
	kind := c.kind[page]
	place := func(h layerHome) int64 {
		on := page
		if h.inTwin != (kind == twin) {
			on = c.partner[page]
		}
		return int64(on)*c.own[h.card] + h.offset
	}
	from, list := int64(0), c.homes[kind]
	for len(list) > 0 {
		at, bytes, n := place(list[0]), list[0].bytes, 1
		for n < len(list) && list[n].card == list[0].card && place(list[n]) == at+bytes {
			bytes += list[n].bytes
			n++
		}
		if err := do(list[0].card, at, from, from+bytes); err != nil {
			return err
		}
		from, list = from+bytes, list[n:]
	}
	return nil
}

func (c *pairedPool) write(page int32, contents []byte) error {
	return c.spread(page, func(card int, at, from, to int64) error {
		return c.parts[card].Write(at,
			contents[from:to])
	})
}

// contents is a page; what no layer has is 0.
func (c *pairedPool) contents(page int32) ([]byte, error) {
	if waits := c.waiting[page]; waits != nil {
		return waits, nil
	}
	data := make([]byte, c.page)
	return data, c.spread(page,
		func(card int, at, from, to int64) error { return c.parts[card].Read(at, data[from:to]) })
}

func (c *pairedPool) Bytes() int64 { return int64(c.pages) * c.page }

// Read gathers bytes from the cards.
func (c *pairedPool) Read(offset int64, dst []byte) error {
	return c.walk(offset, dst, func(page int32, within int64, part []byte) error {
		data, err := c.contents(page)
		copy(part, data[within:])
		return err
	})
}

// Write keeps bytes until a step says what their pages are.
func (c *pairedPool) Write(offset int64, src []byte) error {
	return c.walk(offset, src, func(page int32, within int64, part []byte) error {
		data := c.waiting[page]
		if data == nil && int64(len(part)) < c.page {
			var err error
			if data, err = c.contents(page); err != nil {
				return err
			}
		}
		if data == nil {
			data = make([]byte, c.page)
		}
		copy(data[within:], part)
		c.waiting[page] = data
		return nil
	})
}

// walk goes through bytes of the pool a page at a time.
func (c *pairedPool) walk(offset int64, data []byte, do func(page int32, within int64,
	part []byte) error) error {
	if c.parts == nil {
		return errors.New("this region has been freed")
	}
	if offset < 0 || offset > c.Bytes()-int64(len(data)) {
		return fmt.Errorf("%d bytes at %d of a region of %d", len(data), offset, c.Bytes())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(data) > 0 {
		page, within := offset/c.page, offset%c.page
		n := min(c.page-within, int64(len(data)))
		if err := do(int32(page), within, data[:n]); err != nil {
			return err
		}
		data, offset = data[n:], offset+n
	}
	return nil
}

func (c *pairedPool) Free() error {
	if c.parts == nil {
		return nil
	}
	err := freeAll(c.parts)
	c.parts, c.waiting = nil, nil
	c.dev.release()
	return err
}
