// What is made once and shared by all turns: schemas, expressions, numbers, header tables.

package automaton

import (
	"context"
	"errors"
	"sync"
)

// givenUp tells whether the making has ended with its request.
func givenUp(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// Kept is how many entries a cache keeps that has one for each expression or schema.
const Kept = 1024

// Cache keeps up to Most values by their keys: a full one starts again empty, running turns keep
// what it held. It is safe for concurrent use. Two goroutines that miss at once both make the
// value, and the later one stays. Failures are kept too, since finding one may take seconds.
type Cache[K comparable, V any] struct {
	Most  int
	Stale func(V) bool // may be nil; what is stale is made again
	mu    sync.Mutex
	made  map[K]made[V]
}

type made[V any] struct {
	value V
	err   error
}

// Get gives what was made for a key, or makes it.
func (c *Cache[K, V]) Get(key K, produce func() (V, error)) (V, error) {
	c.mu.Lock()
	m, ok := c.made[key]
	c.mu.Unlock()
	if ok && (m.err != nil || c.Stale == nil || !c.Stale(m.value)) {
		return m.value, m.err
	}
	m.value, m.err = produce()
	if givenUp(m.err) {
		return m.value, m.err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.made == nil || len(c.made) >= c.Most {
		c.made = map[K]made[V]{}
	}
	c.made[key] = m
	return m.value, m.err
}

// Has tells whether something was made for a key.
func (c *Cache[K, V]) Has(key K) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.made[key]
	return ok
}
