// What is made once and shared by all turns: schemas, expressions, numbers, header tables.

package grammar

import "sync"

// How much the caches keep. Beyond that a cache begins anew; running turns keep what they have.
const (
	keptAutomata     = 1024
	keptHeaderTables = 256
)

// cache is safe for concurrent use. Two that miss at once make the same thing twice, and the later
// one stays.
type cache[K comparable, V any] struct {
	most int
	mu   sync.Mutex
	made map[K]V
}

func (c *cache[K, V]) find(key K) (V, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v, ok := c.made[key]
	return v, ok
}

func (c *cache[K, V]) keep(key K, v V) V {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.made == nil || len(c.made) >= c.most {
		c.made = map[K]V{}
	}
	c.made[key] = v
	return v
}
