package device

import (
	"fmt"

	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/runtime/engine"
)

// The state of a step in device memory, int32 throughout:
//
//	counts    rows, logit rows, slots (rows * experts per token), single rows
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
// It is written by one copy before the graph. Only the used part of tables travels.

type layout struct {
	bucket int  // most rows
	seqs   int  // most sequences
	most   int  // entries of tables
	twins  bool // window pages have a second one
}

const counts = 4

// layoutOf is the state of a program, with tables of all sequences at the end of their context.
func layoutOf(p *engine.Program) layout {
	return layout{p.Rows, p.Settings.Seqs(p.Rows), engine.TableEntries(p.Spec, p.Settings, p.Rows),
		engine.WindowPages(p.Settings.KVCacheDtype) > 1}
}

func (l layout) bytes() int { return 4 * (l.wordOffset(tablesArray) + l.most) }

// offset is the offset of one of the arrays after counts, in bytes.
func (l layout) offset(array int) driver.Pointer { return driver.Pointer(4 * l.wordOffset(array)) }

// wordOffset is the same in words of int32.
func (l layout) wordOffset(array int) int {
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
func (l layout) write(to []byte, b *engine.Batch, window, perToken int) int {
	state := engine.Numbers[int32](to)
	array := func(i int) []int32 { return state[l.wordOffset(i):][:l.bucket] }
	positions, fullAt, windowAt := array(positionsArray), array(fullArray), array(windowArray)
	copy(array(tokensArray), b.Tokens)
	copy(array(logitArray), b.LogitRows)
	tables, singles := state[l.wordOffset(tablesArray):][:0], array(aloneArray)[:0]
	row := 0
	for i := range b.Seqs {
		q := &b.Seqs[i]
		need := (int(q.Start+q.Rows) + engine.PageTokens - 1) / engine.PageTokens
		first := engine.FirstVisible(int(q.Start), window) / engine.PageTokens
		if q.Rows == 1 {
			singles = append(singles, int32(row))
		}
		full := int32(len(tables))
		tables = append(tables, q.Full[:need]...)
		windowed := int32(len(tables) - first)
		tables = append(tables, q.Window[first:need]...)
		twins := int32(len(tables) - first)
		if l.twins && b.Twins != nil { // without them the cache is not read
			for _, page := range q.Window[first:need] {
				tables = append(tables, b.Twins[page])
			}
		}
		for r := range q.Rows {
			positions[row], fullAt[row], windowAt[row] = q.Start+r, full, windowed
			if l.twins {
				array(twinArray)[row] = twins
			}
			row++
		}
	}
	copy(state, []int32{int32(len(b.Tokens)), int32(len(b.LogitRows)),
		int32(len(b.Tokens) * perToken), int32(len(singles))})
	return 4 * (l.wordOffset(tablesArray) + len(tables))
}

// The memory of a state: on the card, and twice in pinned memory for the copies. Long sequences
// make the tables large, so all steps of a device share it.
//
// What must stay true: the queue that runs a step also writes its state, so the state is valid only
// while the step runs: sampling after it must not read it here.

// stateMemory is shared by the steps of a device.
type stateMemory struct {
	shared
	*region
	pinned [2]pinnedBuffer // in turn: one is written while the device reads the other
	turn   int
}

// pinnedBuffer is memory that a queue copies from until the event has passed.
type pinnedBuffer struct {
	memory *driver.HostMemory
	copied *driver.Event
}

func (h *resources) pin(bytes int) pinnedBuffer {
	return pinnedBuffer{h.host(bytes), h.event(false)}
}

// joinState gives a step memory for so many bytes of state.
func (d *Device) joinState(bytes int) (*stateMemory, error) {
	return share(d, stateSharing, int64(bytes), func(s shared) (*stateMemory, error) {
		m := &stateMemory{shared: s}
		m.region = m.resources.region(int64(bytes))
		m.pinned = [2]pinnedBuffer{m.pin(bytes), m.pin(bytes)}
		return m, m.finish()
	})
}

// send queues the copy of a state that write fills in; the lock is held.
func (m *stateMemory) send(write func(state []byte) (used int)) error {
	p := &m.pinned[m.turn]
	m.turn = 1 - m.turn
	if err := p.copied.Synchronize(); err != nil {
		return fmt.Errorf("wait for the state's memory: %w", err)
	}
	used := write(p.memory.Bytes())
	err := m.d.stream.CopyIn(m.address, p.memory, 0, used)
	if err == nil {
		err = p.copied.Record(m.d.stream)
	}
	if err != nil {
		return fmt.Errorf("send the step's state: %w", err)
	}
	return nil
}
