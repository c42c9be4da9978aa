package device

import (
	"errors"
	"fmt"
)

// Where the state of a step lies (state.go): on the card, and twice in pinned memory on the way
// there. The tables of long sequences make it large, so all steps of a device have it in one place.
//
// What must stay true: a state is written by the queue that its step runs in, so it is there as
// long as its step runs and no longer. Who wants to know something of a step that was queued before
// others (sampling) has it from elsewhere.

// stateMemory is freed by the last of its steps.
type stateMemory struct {
	*region
	pinned [2]pinned // in turn: one is written while the device reads the other
	turn   int
	users  int // steps; guarded by the device's lock
}

// joinState gives a step memory for so many bytes of state: the device's, or where that is too
// small larger memory, which is the device's from then on; steps made before keep theirs.
func (d *Device) joinState(bytes int) (*stateMemory, error) {
	d.mu.Lock()
	have := d.state
	if have != nil && have.bytes >= int64(bytes) {
		have.users++
		d.mu.Unlock()
		return have, nil
	}
	d.mu.Unlock()
	made, err := d.newStateMemory(bytes)
	if err != nil {
		return nil, fmt.Errorf("%d bytes for the state of a step: %w", bytes, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.state = made
	return made, nil
}

func (d *Device) newStateMemory(bytes int) (_ *stateMemory, err error) {
	m := &stateMemory{users: 1}
	if m.region, err = d.alloc(int64(bytes)); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, m.free())
		}
	}()
	for i := range m.pinned {
		if err = m.pinned[i].pin(d, bytes); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// leave lets go of it; the last step frees it.
func (m *stateMemory) leave() error {
	d := m.dev
	d.mu.Lock()
	m.users--
	last := m.users == 0
	if last && d.state == m {
		d.state = nil
	}
	d.mu.Unlock()
	if !last {
		return nil
	}
	return m.free()
}

func (m *stateMemory) free() error {
	var errs []error
	for i := range m.pinned {
		errs = append(errs, m.pinned[i].close())
	}
	return errors.Join(append(errs, m.Free())...)
}

// send queues the copy of a state that write fills in; the lock is held.
func (m *stateMemory) send(write func(state []byte) (used int)) error {
	p := &m.pinned[m.turn]
	m.turn = 1 - m.turn
	if err := p.copied.Synchronize(); err != nil {
		return fmt.Errorf("wait for the state's memory: %w", err)
	}
	used := write(p.memory.Bytes())
	err := m.dev.stream.CopyIn(m.at, p.memory, 0, used)
	if err == nil {
		err = p.copied.Record(m.dev.stream)
	}
	if err != nil {
		return fmt.Errorf("send the step's state: %w", err)
	}
	return nil
}
