package engine

import (
	"errors"
	"fmt"
	"sync"
)

// Users counts the regions and steps of a device, which must be freed before the device is closed.
type Users struct {
	mu     sync.Mutex
	count  int
	closed bool
}

// Use counts one more.
func (u *Users) Use() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		return errors.New("the device is closed")
	}
	u.count++
	return nil
}

// Release counts one less.
func (u *Users) Release() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.count--
}

// Close calls end, once and not while something is in use.
func (u *Users) Close(name string, end func() error) error {
	u.mu.Lock()
	count, closed := u.count, u.closed
	u.closed = closed || count == 0
	u.mu.Unlock()
	switch {
	case closed:
		return nil
	case count > 0:
		return fmt.Errorf("%s is closed with %d regions and steps in use", name, count)
	}
	return end()
}
