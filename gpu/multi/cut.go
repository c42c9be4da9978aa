package multi

import (
	"fmt"
	"maps"
	"slices"

	"github.com/ossrun/ossrun/runtime/engine"
)

// Cuts the tape: which device runs which operations, and which buffers it needs from which one.
//
// What must stay true: a buffer crosses exactly if the next device to read it lacks its last value,
// once for each value and device.

// segment is a run of operations of one device.
type segment struct {
	place
	from, to int // of Program.Ops
	bring    []crossing
	keep     []*engine.Buffer // read when the segment has ended
}

// crossing is a buffer on its way to the segment that reads it.
type crossing struct {
	buffer *engine.Buffer
	from   int // the device that has it
}

type place struct {
	device  int // len(cards) is the host
	streams int // the layer whose experts it reads from a staging area; -1: none
}

func cut(p *engine.Program, places []place) ([]segment, error) {
	var list []segment
	for i, target := range places {
		last := len(list) - 1
		switch {
		case last < 0 || list[last].device != target.device:
		case target.streams >= 0 && target.streams != list[last].streams:
			// its experts must be there before it begins
		default:
			list[last].to = i + 1
			continue
		}
		list = append(list, segment{place: target, from: i, to: i + 1})
	}
	alive := aliveAfter(p)
	has := map[*engine.Buffer]uint64{} // a bit for each device that has the last value
	for i := range list {
		st := &list[i]
		bit := uint64(1) << st.device
		for _, op := range p.Ops[st.from:st.to] {
			for _, b := range reads(op) {
				if has[b]&bit != 0 {
					continue
				}
				from := slices.IndexFunc(list[:i],
					func(s segment) bool { return has[b]>>s.device&1 != 0 })
				if from < 0 {
					return nil, fmt.Errorf("%s reads %s, which nothing has written", op.Label,
						b.Name)
				}
				st.bring = append(st.bring, crossing{b, list[from].device})
				has[b] |= bit
			}
			for _, b := range op.Out {
				if b.Home == engine.Scratch {
					has[b] = bit
				}
			}
		}
		for _, b := range p.Buffers {
			if has[b]&bit != 0 && alive[st.to-1][b] {
				st.keep = append(st.keep, b)
			}
		}
	}
	return list, nil
}

// reads are the arena's buffers whose values an operation needs.
func reads(op *engine.Op) (list []*engine.Buffer) {
	for _, b := range op.In {
		if b.Home == engine.Scratch {
			list = append(list, b)
		}
	}
	if op.InPlace() && op.Out[0].Home == engine.Scratch {
		list = append(list, op.Out[0])
	}
	return list
}

// aliveAfter gives, for each operation, the buffers that are read before they are written again.
func aliveAfter(p *engine.Program) []map[*engine.Buffer]bool {
	alive := make([]map[*engine.Buffer]bool, len(p.Ops))
	now := map[*engine.Buffer]bool{}
	for i, op := range slices.Backward(p.Ops) {
		alive[i] = maps.Clone(now)
		for _, b := range op.Out {
			delete(now, b)
		}
		for _, b := range reads(op) {
			now[b] = true
		}
	}
	return alive
}

// places gives the device of each operation: a layer's card, or for hosted experts the host.
func (l *layout) places(p *engine.Program, streamed bool) []place {
	list := make([]place, len(p.Ops))
	seen, experts := -1, -1 // the last layer met; the layer whose experts are being computed
	for i, op := range p.Ops {
		if op.Layer >= 0 {
			seen = op.Layer
		}
		card := l.cardOf(seen)
		if op.Layer < 0 && seen >= 0 { // after the layers
			card = l.host() - 1
		}
		if op.Kind == engine.Route && l.hosted[seen] {
			experts = seen
		}
		list[i] = place{device: card, streams: -1}
		switch {
		case experts >= 0 && streamed:
			list[i].streams = experts
		case experts >= 0:
			list[i].device = l.host()
		}
		if op.Kind == engine.Combine {
			experts = -1
		}
	}
	return list
}

type layout struct {
	spans  []span       // by card
	hosted map[int]bool // layers whose experts are on the host
}

// span is the layers [from, to) of a card.
type span struct{ from, to int }

// host is the host's device number, after the cards.
func (l *layout) host() int { return len(l.spans) }

// cardOf is the card of a layer; operations before the layers are the first card's.
func (l *layout) cardOf(layer int) int {
	return slices.IndexFunc(l.spans, func(s span) bool { return layer < s.to })
}
