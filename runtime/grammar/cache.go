// What is made once and shared by all turns: schemas, expressions, numbers, header tables.

package grammar

import "sync"

// How many entries each cache keeps. A full cache starts again empty; running turns keep theirs.
const (
	keptAutomata     = 1024
	keptHeaderTables = 256
)

// cache is safe for concurrent use. Two goroutines that miss at once both make the value, and the
// later one stays. Failures are kept too, since finding one may take seconds.
type cache[K comparable, V any] struct {
	most int
	mu   sync.Mutex
	made map[K]made[V]
}

type made[V any] struct {
	value V
	err   error
}

// get gives what was made for a key, or makes it.
func (c *cache[K, V]) get(key K, produce func() (V, error)) (V, error) {
	c.mu.Lock()
	m, ok := c.made[key]
	c.mu.Unlock()
	if ok {
		return m.value, m.err
	}
	m.value, m.err = produce()
	if givenUp(m.err) {
		return m.value, m.err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.made == nil || len(c.made) >= c.most {
		c.made = map[K]made[V]{}
	}
	c.made[key] = m
	return m.value, m.err
}

// has tells whether something was made for a key.
func (c *cache[K, V]) has(key K) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.made[key]
	return ok
}

// drop forgets what was made for a key.
func (c *cache[K, V]) drop(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.made, key)
}
