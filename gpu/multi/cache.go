package multi

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/runtime/engine"
)

// The KV pool over several cards. Every card has the same pages, and one block table serves all. A
// card's page holds only the card's own layers, laid out as if they were a model. The engine, and
// code that swaps pages out, see one pool in one device's layout (runtime/engine/cache.go):
//
//	12 window layers, a cut after the sixth     page                    with KVFP8: page, twin
//	the pool                                    0 1 2 ... 11            0 1 2 3 4 5, 6 7 8 9 10 11
//	card 0                                      0 1 2 3 4 5             0 1 2,       3 4 5
//	card 1                                      6 7 8 9 10 11           6 7 8,       9 10 11
//
// A page's layout depends on its kind, which only steps tell. Bytes written from outside stay on
// the host until a step uses the page. Few pages wait like this: those that return after a swap.
//
// What must stay true: written bytes are read back, and keys and values as a step left them.

// Kinds of pages.
const (
	unused uint8 = iota // nothing yet
	full
	windowed
	twin // the second half of the window layers, with KVFP8
	pageKinds
)

// location is the place of a layer's part of a page.
type location struct {
	card   int
	offset int64 // in the card's page
	inTwin bool  // in the twin's page
	bytes  int64
}

// cache is the pool of all cards.
type cache struct {
	memory
	spec       models.Spec
	page       int64                 // bytes, to the engine
	pageByCard []int64               // the same by card
	homes      [pageKinds][]location // in the order of the pool

	mu      sync.Mutex
	kind    []uint8          // by page
	partner []int32          // by page: a window page's twin and a twin's window page; -1: none
	waiting map[int32][]byte // bytes written from outside and not used yet
}

func (d *Device) layersOf(card int, s models.Spec, kv string) engine.CacheLayers {
	return engine.CacheLayers{Spec: s, KV: kv, From: d.spans[card].from, To: d.spans[card].to}
}

func (d *Device) newCache(p *engine.Program) (engine.Region, error) {
	s, kv, pages := p.Spec, p.Settings.KVCacheDtype, p.Settings.Pages
	c := &cache{memory: d.memory(int64(pages) * p.PageBytes()), spec: s, page: p.PageBytes(),
		waiting: map[int32][]byte{}, kind: make([]uint8, pages),
		partner: slices.Repeat([]int32{-1}, pages)}
	for card, span := range d.spans {
		layers := d.layersOf(card, s, kv)
		for layer := span.from; layer < span.to; layer++ {
			kind := full
			if s.Sliding(layer) {
				kind = windowed
			}
			if _, second := engine.AllLayers(s, kv).Place(layer); second {
				kind = twin
			}
			place, inTwin := layers.Place(layer)
			bytes := engine.PageTokens * engine.PositionBytes(s, kv, s.Sliding(layer))
			c.homes[kind] = append(c.homes[kind],
				location{card, int64(place) * bytes, inTwin, bytes})
		}
		c.pageByCard = append(c.pageByCard, layers.PageBytes())
		var err error
		bytes := int64(pages) * c.pageByCard[card]
		if c.parts[card], err = d.devices[card].Alloc(bytes); err != nil {
			return nil, errors.Join(fmt.Errorf("%d KV pages of layers %d to %d: %w", pages,
				span.from, span.to-1, err), c.Free())
		}
	}
	return c, nil
}

// notePages notes the kinds of a step's pages, and sends waiting pages to the cards.
func (c *cache) notePages(b *engine.Batch) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	note := func(page int32, kind uint8, partner int32) {
		c.kind[page], c.partner[page] = kind, partner
	}
	for i := range b.Seqs {
		q := &b.Seqs[i]
		last := int(q.Start+q.Rows-1) / engine.PageTokens
		// pages that it writes; those that it only reads are known, except pages that wait
		fullFrom, windowFrom := int(q.Start)/engine.PageTokens, int(q.Start)/engine.PageTokens
		if len(c.waiting) > 0 {
			fullFrom = 0
			windowFrom = engine.FirstVisible(int(q.Start), c.spec.Window) / engine.PageTokens
		}
		for entry := windowFrom; entry <= last; entry++ {
			named, second := q.Window[entry], int32(-1)
			if len(b.Twins) > 0 {
				second = b.Twins[named]
				note(second, twin, named)
			}
			note(named, windowed, second)
			if err := errors.Join(c.send(named), c.send(second)); err != nil {
				return err
			}
		}
		for entry := fullFrom; entry <= last; entry++ {
			note(q.Full[entry], full, -1)
			if err := c.send(q.Full[entry]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *cache) send(page int32) error {
	contents, waits := c.waiting[page]
	if !waits {
		return nil
	}
	delete(c.waiting, page)
	if err := c.spread(page, 0, contents, engine.Region.Write); err != nil {
		return fmt.Errorf("KV page %d, written from outside: %w", page, err)
	}
	return nil
}

// spread calls do for the pieces of a page's bytes, from the first on, as the cards have them.
func (c *cache) spread(page int32, first int64, data []byte,
	do func(r engine.Region, offset int64, piece []byte) error) error {
	kind := c.kind[page]
	place := func(h location) int64 {
		p := page
		if h.inTwin != (kind == twin) {
			p = c.partner[page]
		}
		return int64(p)*c.pageByCard[h.card] + h.offset
	}
	end, from, list := first+int64(len(data)), int64(0), c.homes[kind]
	for len(list) > 0 {
		start, bytes, n := place(list[0]), list[0].bytes, 1
		for n < len(list) && list[n].card == list[0].card && place(list[n]) == start+bytes {
			bytes += list[n].bytes
			n++
		}
		if a, b := max(from, first), min(from+bytes, end); a < b {
			if err := do(c.parts[list[0].card], start+a-from, data[a-first:b-first]); err != nil {
				return err
			}
		}
		from, list = from+bytes, list[n:]
	}
	return nil
}

// Read gathers bytes from the cards; bytes of no layer are 0.
func (c *cache) Read(offset int64, dst []byte) error {
	return c.walk(offset, dst, c.read)
}

func (c *cache) read(page int32, offset int64, dst []byte) error {
	if waits := c.waiting[page]; waits != nil {
		copy(dst, waits[offset:])
		return nil
	}
	clear(dst)
	return c.spread(page, offset, dst, engine.Region.Read)
}

// Write keeps bytes until a step tells the kind of their pages.
func (c *cache) Write(offset int64, src []byte) error {
	return c.walk(offset, src, func(page int32, first int64, part []byte) error {
		data := c.waiting[page]
		if data == nil {
			data = make([]byte, c.page)
			if int64(len(part)) < c.page {
				if err := c.read(page, 0, data); err != nil {
					return err
				}
			}
			c.waiting[page] = data
		}
		copy(data[first:], part)
		return nil
	})
}

// walk goes through bytes of the pool a page at a time.
func (c *cache) walk(offset int64, data []byte, do func(page int32, first int64,
	part []byte) error) error {
	if c.parts == nil {
		return errors.New("this region has been freed")
	}
	if err := engine.Inside(offset, len(data), c.bytes); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(data) > 0 {
		page, first := offset/c.page, offset%c.page
		n := min(c.page-first, int64(len(data)))
		if err := do(int32(page), first, data[:n]); err != nil {
			return err
		}
		data, offset = data[n:], offset+n
	}
	return nil
}
