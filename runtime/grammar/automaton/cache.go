// Values created once and shared by all turns: schemas, expressions, numbers, header tables.

package automaton

import (
	"context"
	"errors"
	"sync"
)

// MaxCached is the capacity of a cache with an entry for each expression or schema.
const MaxCached = 1024

// Cache stores up to Most values by key: a full one is cleared, running turns keep their values. It
// is safe for concurrent use. Two goroutines that miss at once both create the value, and the later
// one stays. Failures are cached too, because detecting one may take seconds.
type Cache[K comparable, V any] struct {
	Most    int
	Stale   func(V) bool // may be nil; stale values are recreated
	mu      sync.Mutex
	entries map[K]cacheEntry[V]
}

type cacheEntry[V any] struct {
	value V
	err   error
}

// Get returns the cached value of a key, or creates it.
func (c *Cache[K, V]) Get(key K, produce func() (V, error)) (V, error) {
	c.mu.Lock()
	m, ok := c.entries[key]
	c.mu.Unlock()
	if ok && (m.err != nil || c.Stale == nil || !c.Stale(m.value)) {
		return m.value, m.err
	}
	m.value, m.err = produce()
	if errors.Is(m.err, context.Canceled) || errors.Is(m.err, context.DeadlineExceeded) {
		return m.value, m.err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries == nil || len(c.entries) >= c.Most {
		c.entries = map[K]cacheEntry[V]{}
	}
	c.entries[key] = m
	return m.value, m.err
}

// Has reports whether a key is cached.
func (c *Cache[K, V]) Has(key K) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.entries[key]
	return ok
}
