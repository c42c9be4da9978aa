// Concurrent compilation of schemas, for requests that may be cancelled, with a cache.
//
// What must stay true: compilations use at most half of the cores, so that other requests continue
// with any number of waiting schemas. A compilation ends soon after its request, and is then not
// cached as a failure.

package schema

import (
	"context"
	"crypto/sha256"
	"runtime"

	"github.com/ossrun/ossrun/runtime/grammar/automaton"
)

// compiledSchemas caches schemas by hash.
var compiledSchemas = automaton.Cache[[32]byte, *automaton.Grammar]{Most: automaton.MaxCached,
	Stale: (*automaton.Grammar).Large}

func schemaKey(raw []byte, object bool) [32]byte {
	key := sha256.Sum256(raw)
	if object {
		key[0] ^= 1
	}
	return key
}

func cached(ctx context.Context, raw []byte, object bool) (*automaton.Grammar, error) {
	return compiledSchemas.Get(schemaKey(raw, object),
		func() (*automaton.Grammar, error) { return Compile(ctx, raw, object) })
}

var slots = make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2))

// AcquireSlot waits for a compilation slot; done releases it. The error is ctx's.
func AcquireSlot(ctx context.Context) (done func(), err error) {
	select {
	case slots <- struct{}{}:
		return func() { <-slots }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// CompileWithin is Compile with a cache. arguments: raw is a function's parameters, whose value is
// an object even if the schema does not require it. It waits for a slot (see AcquireSlot) and stops
// when ctx ends.
func CompileWithin(ctx context.Context, raw []byte, arguments bool) (*automaton.Grammar, error) {
	if compiledSchemas.Has(schemaKey(raw, arguments)) {
		return cached(ctx, raw, arguments)
	}
	done, err := AcquireSlot(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	return cached(ctx, raw, arguments)
}

// pollEvery is the number of a compiler's pieces of work between two checks for cancellation.
const pollEvery = 64

// poll returns the error of a cancelled request.
func (c *compiler) poll() error {
	if c.polls++; c.polls%pollEvery != 0 || c.ctx == nil {
		return nil
	}
	return c.ctx.Err()
}
