// Compiles schemas beside others, for requests that may go away, and keeps what was compiled.
//
// What must stay true: compilations use at most half of the cores, so that other requests go on
// however many schemas wait; a compilation ends soon after its request; one that was given up is
// not kept as a failure.

package grammar

import (
	"context"
	"crypto/sha256"
	"errors"
	"runtime"
	"sync"
)

// compiledSchemas keeps schemas by their hash.
var compiledSchemas = cache[[32]byte, *Grammar]{most: keptAutomata}

// Schema compiles a JSON Schema (draft 2020-12, see docs/json-schema.md), or returns what was
// compiled for the same bytes before. Errors are *InvalidError and *UnsupportedError.
func Schema(raw []byte) (*Grammar, error) {
	return cachedSchema(context.Background(), raw, false)
}

func schemaKey(raw []byte, object bool) [32]byte {
	key := sha256.Sum256(raw)
	if object {
		key[0] ^= 1
	}
	return key
}

func cachedSchema(ctx context.Context, raw []byte, object bool) (*Grammar, error) {
	key := schemaKey(raw, object)
	compile := func() (*Grammar, error) { return compileSchema(ctx, raw, object) }
	c, err := compiledSchemas.get(key, compile)
	if err == nil && c.large() {
		compiledSchemas.drop(key)
		return compiledSchemas.get(key, compile)
	}
	return c, err
}

var compiling = make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2))

// Compiling waits for a place among those who compile; done gives it back. The error is ctx's.
func Compiling(ctx context.Context) (done func(), err error) {
	select {
	case compiling <- struct{}{}:
		return func() { <-compiling }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// SchemaWithin is Schema, or with arguments the same for the parameters of a function, whose
// arguments are an object even if the schema does not say so. It waits for its turn (see Compiling)
// and stops when ctx ends.
func SchemaWithin(ctx context.Context, raw []byte, arguments bool) (*Grammar, error) {
	if compiledSchemas.has(schemaKey(raw, arguments)) {
		return cachedSchema(ctx, raw, arguments)
	}
	done, err := Compiling(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	return cachedSchema(ctx, raw, arguments)
}

// givenUp tells whether a compilation has ended with its request.
func givenUp(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// pollEvery is how many pieces of work a compiler does before it asks whether its request is gone.
const pollEvery = 64

// poll is the error of a request that has gone.
func (c *compiler) poll() error {
	if c.polls++; c.polls%pollEvery != 0 || c.ctx == nil {
		return nil
	}
	return c.ctx.Err()
}

// What is made once and shared by all turns: schemas, expressions, numbers, header tables.

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
