package device

import (
	"fmt"

	"github.com/ossrun/ossrun/gpu/driver"
)

// The memory of a step's state (state.go): on the card, and twice in pinned memory for the copies.
// Long sequences make the tables large, so all steps of a device share this memory.
//
// What must stay true: the queue that runs a step also writes its state, so the state is valid
// while the step runs and no longer. Code that needs to know something of a step that was queued
// before others (sampling) gets it elsewhere.

// stateMemory is shared by the steps of a device.
type stateMemory struct {
	shared
	*region
	pinned [2]pinned // in turn: one is written while the device reads the other
	turn   int
}

// pinned is memory that a queue copies from while the host goes on. It is neither written nor freed
// before the event after its last copy has passed.
type pinned struct {
	memory *driver.HostMemory
	copied *driver.Event
}

// pin makes pinned memory of so many bytes.
func (h *holding) pin(bytes int) pinned { return pinned{h.host(bytes), h.event(false)} }

// joinState gives a step memory for so many bytes of state.
func (d *Device) joinState(bytes int) (*stateMemory, error) {
	return share(d, stateSharing, int64(bytes), func(s shared) (*stateMemory, error) {
		m := &stateMemory{shared: s}
		m.region = m.holding.region(int64(bytes))
		m.pinned = [2]pinned{m.pin(bytes), m.pin(bytes)}
		return m, m.made()
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
	err := m.d.stream.CopyIn(m.at, p.memory, 0, used)
	if err == nil {
		err = p.copied.Record(m.d.stream)
	}
	if err != nil {
		return fmt.Errorf("send the step's state: %w", err)
	}
	return nil
}
